/* SPDX-License-Identifier: Apache-2.0 */
/* Which sections and keys exist, and what to say about those that do not. */
#include <string.h>

#include "config/inside.h"

int loom__config_declare(struct loom_config *cfg, const char *section, const struct loom_opt *rows,
			 const char *owner)
{
	static const struct loom_opt none[] = {{0}};
	struct loom__declared **tail = &cfg->declared;
	struct loom__declared *d = loom__config_alloc(cfg, sizeof(*d));
	if (!d)
		return LOOM_ENOMEM;
	owner = owner ? owner : "";
	*d = (struct loom__declared){.section = loom__config_keep(cfg, section, strlen(section)),
				     .owner = loom__config_keep(cfg, owner, strlen(owner)),
				     .rows = rows ? rows : none};
	if (cfg->failed)
		return LOOM_ENOMEM;
	while (*tail)
		tail = &(*tail)->next;
	*tail = d;
	loom__config_bind(cfg, d, &cfg->notes);
	return cfg->failed ? LOOM_ENOMEM : 0;
}

/* The first declaration of the section, or NULL. */
static const struct loom__declared *find_section(const struct loom_config *cfg, const char *section)
{
	const struct loom__declared *d = cfg->declared;
	while (d && !loom__same(d->section, section))
		d = d->next;
	return d;
}

int loom__config_declared(const struct loom_config *cfg, const char *section)
{
	return find_section(cfg, section) != NULL;
}

const char *loom__config_section(const struct loom_config *cfg, size_t i)
{
	const struct loom__header *h = cfg->headers;
	for (; h && i; i--)
		h = h->next;
	return h ? h->section : NULL;
}

const char *loom__config_section_at(const struct loom_config *cfg, const char *section, int *line)
{
	const struct loom__header *h = loom__config_header(cfg, section);
	*line = h ? h->place.line : 0;
	return h ? h->place.file : NULL;
}

void loom__config_ignore(struct loom_config *cfg, const char *section)
{
	struct loom__header *h = loom__config_header(cfg, section);
	if (h)
		h->ignored = 1;
}

static int is_ignored(const struct loom_config *cfg, const char *section)
{
	const struct loom__header *h = loom__config_header(cfg, section);
	return loom__is_private(section) || (h && h->ignored);
}

static int has_key(const struct loom__declared *d, const char *key)
{
	for (const struct loom_opt *row = d->rows; row->name; row++)
		if (loom__same(row->name, key))
			return 1;
	return 0;
}

static int is_declared(const struct loom_config *cfg, const char *section, const char *key)
{
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		if (loom__same(d->section, section) && has_key(d, key))
			return 1;
	return 0;
}

/* The one section that has the key, or NULL when there is none or a choice. */
static const char *home_of(const struct loom_config *cfg, const char *key)
{
	const char *home = NULL;
	for (const struct loom__declared *d = cfg->declared; d; d = d->next) {
		if (!has_key(d, key))
			continue;
		if (home && !loom__same(home, d->section))
			return NULL;
		home = d->section;
	}
	return home;
}

static const char *nearest_section(const struct loom_config *cfg, const char *section)
{
	struct loom__near near = {.word = section};
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		loom__nearer(&near, d->section);
	return near.name;
}

static const char *nearest_key(const struct loom_config *cfg, const char *section, const char *key)
{
	struct loom__near near = {.word = key};
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		for (const struct loom_opt *row = d->rows; row->name; row++)
			if (loom__same(d->section, section))
				loom__nearer(&near, row->name);
	return near.name;
}

static void report_section(const struct loom_config *cfg, const struct loom__header *h,
			   struct loom__diag *diag)
{
	const char *nearest = nearest_section(cfg, h->section);
	loom__diag_add(diag, 0, h->place.file, h->place.line, h->place.column,
		       "unknown section [%s]%s%s%s", h->section, nearest ? "; did you mean [" : "",
		       nearest ? nearest : "", nearest ? "]?" : "");
}

static void report_key(const struct loom_config *cfg, const struct loom__entry *e,
		       const struct loom__declared *d, struct loom__diag *diag)
{
	struct loom__text hint = {0};
	const char *nearest = nearest_key(cfg, e->section, e->key), *home = home_of(cfg, e->key);
	if (nearest)
		loom__text_add(&hint, "; did you mean '%s'?", nearest);
	else if (home)
		loom__text_add(&hint, "; it belongs in [%s]", home);
	else if (d->owner[0])
		loom__text_add(&hint, " (see: gpuloom describe %s)", d->owner);
	loom__diag_add(diag, 0, e->file, e->line, e->column, "unknown key '%s' in [%s]%s",
		       e->spelling, e->section, hint.length && loom__text_ok(&hint) ? hint.at : "");
	loom__text_free(&hint);
}

int loom__config_unknown(struct loom_config *cfg, struct loom__diag *diag)
{
	size_t before = diag->errors;
	for (size_t i = 0; i < cfg->notes.count; i++) {
		const struct loom__mistake *m = &cfg->notes.list[i];
		loom__diag_add(diag, m->warning, m->file, m->line, m->column, "%s", m->text);
	}
	loom__diag_free(&cfg->notes);
	/* A section that does not exist is one mistake, however many keys it has. */
	for (const struct loom__header *h = cfg->headers; h; h = h->next)
		if (!find_section(cfg, h->section) && !is_ignored(cfg, h->section))
			report_section(cfg, h, diag);
	for (const struct loom__slot *s = cfg->slots; s; s = s->next) {
		const struct loom__entry *e = s->top;
		const struct loom__declared *d = find_section(cfg, e->section);
		if (!d || is_ignored(cfg, e->section) || loom__is_private(e->key) ||
		    is_declared(cfg, e->section, e->key))
			continue;
		for (; e; e = e->was)
			report_key(cfg, e, d, diag);
	}
	loom__config_unbound(cfg, diag);
	return loom__config_verdict(cfg, diag, before);
}
