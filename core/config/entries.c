/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a configuration. The list has one entry per key; `was` leads to the entries with less precedence. */
#include <stdlib.h>
#include <string.h>

#include "config/inside.h"

void *loom__config_alloc(struct loom_config *cfg, size_t bytes)
{
	struct loom__block *b = calloc(1, sizeof(*b) + bytes);
	if (!b) {
		cfg->failed = 1;
		return NULL;
	}
	b->next = cfg->blocks;
	cfg->blocks = b;
	return b->bytes;
}

char *loom__config_keep(struct loom_config *cfg, const char *s, size_t n)
{
	char *copy = loom__config_alloc(cfg, n + 1);
	if (copy && n)
		memcpy(copy, s, n);
	return copy;
}

static char *keep_lower(struct loom_config *cfg, struct loom__slice s)
{
	char *copy = loom__config_keep(cfg, s.at, s.n);
	for (char *c = copy; c && *c; c++)
		*c = (char)loom__lower(*c);
	return copy;
}

/* Returns the link to the entry of a key in force. If there is none, returns the link at the end of the list. */
static struct loom__entry **find(struct loom_config *cfg, const char *section, const char *key)
{
	struct loom__entry **e = &cfg->entries;
	while (*e && !(loom__same((*e)->key, key) && loom__same((*e)->section, section)))
		e = &(*e)->next;
	return e;
}

const struct loom__entry *loom__config_get(const struct loom_config *cfg, const char *section, const char *key)
{
	return *find((struct loom_config *)(uintptr_t)cfg, section, key);
}

int loom__config_entries(const struct loom_config *cfg, loom__entry_fn *fn, void *arg)
{
	int code = 0;
	for (const struct loom__entry *e = cfg->entries; e && !code; e = e->next)
		code = fn(arg, e);
	return code;
}

struct loom__entry *loom__config_header(const struct loom_config *cfg, const char *section)
{
	struct loom__entry *h = cfg->headers;
	while (h && !loom__same(h->section, section))
		h = h->next;
	return h;
}

void loom__config_name_section(struct loom_config *cfg, const struct loom__entry *where, struct loom__slice section)
{
	char *name = keep_lower(cfg, section);
	struct loom__entry **h = &cfg->headers;
	while (name && *h && strcmp((*h)->section, name))
		h = &(*h)->next;
	if (!name || *h || !(*h = loom__config_alloc(cfg, sizeof(**h))))
		return;
	**h = *where;
	(*h)->section = name;
	(*h)->next = NULL;
}

static int too_many(struct loom__diag *diag, const struct loom__entry *e, const char *what, int most)
{
	loom__diag_add(diag, 0, e->file, e->line, e->column, "more than %d %s in one configuration", most, what);
	return LOOM_EINVAL;
}

int loom__config_add(struct loom_config *cfg, const struct loom__entry *where, struct loom__slice section,
		     struct loom__slice key, struct loom__slice value, struct loom__diag *diag)
{
	struct loom__entry *e = loom__config_alloc(cfg, sizeof(*e));
	if (!e)
		return LOOM_ENOMEM;
	*e = *where;
	e->section = keep_lower(cfg, section);
	e->key = keep_lower(cfg, key);
	e->value = loom__config_keep(cfg, value.at, value.n);
	e->spelling = loom__config_keep(cfg, key.at, key.n);
	if (cfg->failed)
		return LOOM_ENOMEM;
	if (cfg->entry_count >= LOOM__ENTRY_MOST)
		return too_many(diag, e, "values", LOOM__ENTRY_MOST);
	struct loom__entry **at = find(cfg, e->section, e->key);
	if (!*at && cfg->key_count >= LOOM__ITEMS_MOST)
		return too_many(diag, e, "keys", LOOM__ITEMS_MOST);
	cfg->key_count += !*at;
	cfg->entry_count++;
	e->next = *at && (*at)->source <= e->source ? (*at)->next : NULL;
	while (*at && (*at)->source > e->source)
		at = &(*at)->was;
	e->was = *at;
	*at = e;
	return 0;
}

/* ---- values that are in no file: --set and the API ------------------------------------------ */

const char *loom__value_fault(struct loom__slice value)
{
	size_t where;
	if (value.n > LOOM__VALUE_MOST)
		return "the value is too long: at most 4096 bytes";
	return loom__text_fault(value, &where);
}

int loom__config_assign(struct loom_config *cfg, const struct loom__entry *where, struct loom__slice section,
			struct loom__slice key, struct loom__slice value, struct loom__diag *diag)
{
	size_t at, before = diag->errors;
	const char *fault = loom__name_fault(section, 1, &at);
	if (!fault)
		fault = loom__name_fault(key, 0, &at);
	if (!fault)
		fault = loom__value_fault(value);
	if (!fault && loom__slice_is(section, "gpuloom") && loom__slice_is(key, "include"))
		fault = "include works in files alone; name another file instead";
	if (fault) {
		loom__diag_add(diag, 0, where->file, where->line, where->value_column, "%s", fault);
		return LOOM_EINVAL;
	}
	struct loom__entry place = *where;
	place.file = loom__config_keep(cfg, where->file, strlen(where->file));
	loom__config_name_section(cfg, &place, section);
	loom__config_add(cfg, &place, section, key, value, diag);
	return loom__config_verdict(cfg, diag, before);
}

int loom__config_set_at(struct loom_config *cfg, const char *assignment, const struct loom__entry *where,
			struct loom__diag *diag)
{
	const char *equals = strchr(assignment, '=');
	const char *dot = equals ? memrchr(assignment, '.', (size_t)(equals - assignment)) : NULL;
	if (!dot) {
		loom__diag_add(diag, 0, where->file, where->line, where->value_column, "expected section.key=value");
		return LOOM_EINVAL;
	}
	struct loom__slice section = {assignment, (size_t)(dot - assignment)};
	struct loom__slice key = {dot + 1, (size_t)(equals - dot - 1)};
	struct loom__slice value = {equals + 1, strlen(equals + 1)};
	return loom__config_assign(cfg, where, loom__strip(section), loom__strip(key), loom__strip(value), diag);
}

int loom__config_broken(const struct loom_config *cfg)
{
	return cfg->failed;
}

int loom__config_verdict(const struct loom_config *cfg, const struct loom__diag *diag, size_t before)
{
	if (cfg->failed)
		return LOOM_ENOMEM;
	return diag->errors > before ? LOOM_EINVAL : 0;
}
