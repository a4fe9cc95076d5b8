/* SPDX-License-Identifier: Apache-2.0 */
/* The entries of a configuration: what was said, where, and what it overrode. */
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

static struct loom__slot *find(const struct loom_config *cfg, const char *section, const char *key)
{
	for (struct loom__slot *s = cfg->slots; s; s = s->next)
		if (loom__same(s->top->key, key) && loom__same(s->top->section, section))
			return s;
	return NULL;
}

const struct loom__entry *loom__config_get(const struct loom_config *cfg, const char *section,
					   const char *key)
{
	const struct loom__slot *slot = find(cfg, section, key);
	return slot ? slot->top : NULL;
}

int loom__config_entries(const struct loom_config *cfg, loom__entry_fn *fn, void *arg)
{
	int code = 0;
	for (const struct loom__slot *s = cfg->slots; s && !code; s = s->next)
		code = fn(arg, s->top);
	return code;
}

struct loom__header *loom__config_header(const struct loom_config *cfg, const char *section)
{
	struct loom__header *h = cfg->headers;
	while (h && !loom__same(h->section, section))
		h = h->next;
	return h;
}

void loom__config_name_section(struct loom_config *cfg, struct loom__slice section,
			       const struct loom__place *place)
{
	char *name = keep_lower(cfg, section);
	if (!name)
		return;
	struct loom__header **h = &cfg->headers;
	for (; *h; h = &(*h)->next)
		if (!strcmp((*h)->section, name))
			return;
	*h = loom__config_alloc(cfg, sizeof(**h));
	if (*h)
		**h = (struct loom__header){.section = name, .place = *place};
}

static int too_many(struct loom__diag *diag, const struct loom__place *place, const char *what,
		    int most)
{
	loom__diag_add(diag, 0, place->file, place->line, place->column,
		       "more than %d %s in one configuration", most, what);
	return LOOM_EINVAL;
}

static struct loom__slot *new_slot(struct loom_config *cfg)
{
	struct loom__slot **s = &cfg->slots;
	while (*s)
		s = &(*s)->next;
	*s = loom__config_alloc(cfg, sizeof(**s));
	cfg->slot_count += *s != NULL;
	return *s;
}

int loom__config_add(struct loom_config *cfg, const struct loom__place *place,
		     struct loom__slice section, struct loom__slice key, struct loom__slice value,
		     struct loom__diag *diag)
{
	struct loom__entry *e = loom__config_alloc(cfg, sizeof(*e));
	if (!e)
		return LOOM_ENOMEM;
	*e = (struct loom__entry){.section = keep_lower(cfg, section),
				  .key = keep_lower(cfg, key),
				  .value = loom__config_keep(cfg, value.at, value.n),
				  .spelling = loom__config_keep(cfg, key.at, key.n),
				  .source = place->source,
				  .file = place->file,
				  .line = place->line,
				  .column = place->column,
				  .value_column = place->value_column,
				  .untrusted = place->untrusted};
	if (cfg->failed)
		return LOOM_ENOMEM;
	if (cfg->entry_count >= LOOM__ENTRY_MOST)
		return too_many(diag, place, "values", LOOM__ENTRY_MOST);
	struct loom__slot *slot = find(cfg, e->section, e->key);
	if (!slot && cfg->slot_count >= LOOM__ITEMS_MOST)
		return too_many(diag, place, "keys", LOOM__ITEMS_MOST);
	if (!slot && !(slot = new_slot(cfg)))
		return LOOM_ENOMEM;
	struct loom__entry **above = &slot->top;
	while (*above && (*above)->source > e->source)
		above = &(*above)->was;
	e->was = *above;
	*above = e;
	cfg->entry_count++;
	return 0;
}

int loom__config_broken(const struct loom_config *cfg)
{
	return cfg->failed;
}

int loom__config_verdict(const struct loom_config *cfg, const struct loom__diag *diag,
			 size_t before)
{
	if (cfg->failed)
		return LOOM_ENOMEM;
	return diag->errors > before ? LOOM_EINVAL : 0;
}
