/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a config, its entries in their order of precedence, and the public calls. */
#include <stdlib.h>
#include <string.h>

#include "config/inside.h"

struct loom__block {
	struct loom__block *next;
	_Alignas(max_align_t) char bytes[];
};

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

const char *loom__source_name(enum loom_source source)
{
	static const char *const names[] = {"default", "file", "environment", "command line",
					    "api"};
	return (size_t)source < LOOM__COUNT(names) ? names[source] : "unknown";
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
				  .value_column = place->value_column};
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

int loom__config_verdict(const struct loom_config *cfg, const struct loom__diag *diag,
			 size_t before)
{
	if (cfg->failed)
		return LOOM_ENOMEM;
	return diag->errors > before ? LOOM_EINVAL : 0;
}

/* ---- gpuloom.h ------------------------------------------------------------------------------ */

int loom_config_create(struct loom_config **cfg, struct loom_error *err)
{
	struct loom_config *c = calloc(1, sizeof(*c));
	if (!c)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	*cfg = c;
	return 0;
}

void loom_config_destroy(struct loom_config *cfg)
{
	if (!cfg)
		return;
	while (cfg->blocks) {
		struct loom__block *b = cfg->blocks;
		cfg->blocks = b->next;
		free(b);
	}
	loom__diag_free(&cfg->notes);
	free(cfg);
}

/* Words the outcome for a caller who has no diag, and keeps warnings for the one who has. */
static int conclude(struct loom_config *cfg, int code, struct loom__diag *diag,
		    struct loom_error *err)
{
	struct loom__text text = {0};
	if (code == LOOM_EINVAL) {
		loom__diag_text(diag, &text);
		if (loom__text_ok(&text))
			LOOM__FAIL(err, code, "%.*s", (int)text.length - 1, text.at);
		else
			code = LOOM_ENOMEM;
	} else if (!code) {
		for (size_t i = 0; i < diag->count; i++)
			loom__diag_add(&cfg->notes, 1, diag->list[i].file, diag->list[i].line,
				       diag->list[i].column, "%s", diag->list[i].text);
	}
	if (code == LOOM_ENOMEM)
		LOOM__FAIL(err, code, "out of memory");
	loom__text_free(&text);
	loom__diag_free(diag);
	return code;
}

int loom_config_load(struct loom_config *cfg, const char *path, struct loom_error *err)
{
	struct loom__diag diag = {0};
	int code = loom__config_read(cfg, path, &diag);
	return conclude(cfg, code, &diag, err);
}

int loom_config_load_text(struct loom_config *cfg, const char *name, const char *text,
			  struct loom_error *err)
{
	struct loom__diag diag = {0};
	int code = loom__config_read_text(cfg, name, text, strlen(text), &diag);
	return conclude(cfg, code, &diag, err);
}

int loom_config_set(struct loom_config *cfg, const char *section, const char *key,
		    const char *value, struct loom_error *err)
{
	struct loom__diag diag = {0};
	static char from[] = "loom_config_set";
	const struct loom__entry where = {.source = LOOM_FROM_API, .file = from};
	int code = loom__config_assign(cfg, &where, (struct loom__slice){section, strlen(section)},
				       (struct loom__slice){key, strlen(key)},
				       (struct loom__slice){value, strlen(value)}, &diag);
	return conclude(cfg, code, &diag, err);
}
