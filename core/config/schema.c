/* SPDX-License-Identifier: Apache-2.0 */
/* Declares sections and keys, and reports unknown ones. */
#include <string.h>

#include "config/inside.h"

/* Returns the first declaration of the section, or NULL. */
static const struct loom__declared *find_section(const struct loom_config *cfg, const char *section)
{
	const struct loom__declared *d = cfg->declared;
	while (d && !loom__same(d->section, section))
		d = d->next;
	return d;
}

static void append(struct loom_config *cfg, const char *section, const struct loom_opt *rows, const char *owner)
{
	static const struct loom_opt none[] = {{0}};
	struct loom__declared **tail = &cfg->declared;
	struct loom__declared *d = loom__config_alloc(cfg, sizeof(*d));
	if (!d)
		return;
	owner = owner ? owner : "";
	*d = (struct loom__declared){.section = loom__config_keep(cfg, section, strlen(section)),
				     .owner = loom__config_keep(cfg, owner, strlen(owner)),
				     .rows = rows ? rows : none};
	while (*tail)
		tail = &(*tail)->next;
	if (!cfg->failed)
		*tail = d;
}

static int is_in(const struct loom__declared *d, const struct loom_opt *row, const char *section)
{
	return loom__same(d->section, section) || (row->section && loom__same(row->section, section));
}

/* Returns the row of option `key` in the shared section `section`, or NULL. *by is the first declaration that has such
 * a row. */
static const struct loom_opt *find_shared(const struct loom_config *cfg, const char *section, const char *key,
					  const struct loom__declared **by)
{
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		for (const struct loom_opt *row = d->rows; row->name; row++)
			if (row->section && loom__same(row->section, section) && loom__same(row->name, key)) {
				*by = d;
				return row;
			}
	return NULL;
}

static void check_shared(struct loom_config *cfg, const struct loom_opt *row, const char *owner)
{
	const struct loom__declared *by;
	const struct loom_opt *first = find_shared(cfg, row->section, row->name, &by);
	if (first && !loom__rows_same(first, row))
		loom__diag_add(&cfg->notes, 0, NULL, 0, 0, "%s and %s declare the option '%s' of [%s], which they "
				"share, in different ways", by->owner, owner, row->name, row->section);
}

int loom__config_declare(struct loom_config *cfg, const char *section, const struct loom_opt *rows, const char *owner)
{
	for (const struct loom_opt *row = rows; row && row->name; row++)
		if (row->section)
			check_shared(cfg, row, owner ? owner : "");
	append(cfg, section, rows, owner);
	for (const struct loom_opt *row = rows; row && row->name; row++)
		if (row->section && !find_section(cfg, row->section))
			append(cfg, row->section, NULL, owner);
	if (cfg->bind)
		cfg->bind(cfg, section, rows, &cfg->notes);
	return cfg->failed ? LOOM_ENOMEM : 0;
}

int loom__config_declared(const struct loom_config *cfg, const char *section)
{
	return find_section(cfg, section) != NULL;
}

const char *loom__config_section(const struct loom_config *cfg, size_t i)
{
	const struct loom__entry *h = cfg->headers;
	for (; h && i; i--)
		h = h->next;
	return h ? h->section : NULL;
}

const char *loom__config_section_at(const struct loom_config *cfg, const char *section, int *line)
{
	const struct loom__entry *h = loom__config_header(cfg, section);
	*line = h ? h->line : 0;
	return h ? h->file : NULL;
}

void loom__config_ignore(struct loom_config *cfg, const char *section)
{
	struct loom__entry *h = loom__config_header(cfg, section);
	if (h)
		h->done = 1;
}

static int is_ignored(const struct loom_config *cfg, const char *section)
{
	const struct loom__entry *h = loom__config_header(cfg, section);
	return loom__is_private(section) || (h && h->done);
}

static int is_declared(const struct loom_config *cfg, const char *section, const char *key)
{
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		for (const struct loom_opt *row = d->rows; row->name; row++)
			if (loom__same(row->name, key) && is_in(d, row, section))
				return 1;
	return 0;
}

/* Adds the sections that have this key, if there are no more than three: "; it belongs in [a] or [b]". */
static void add_homes(const struct loom_config *cfg, const char *key, struct loom__text *hint)
{
	const char *home[3];
	size_t homes = 0;
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		for (const struct loom_opt *row = d->rows; row->name; row++) {
			const char *own = row->section ? row->section : d->section;
			const char *dot = strrchr(own, '.');
			size_t i = 0;
			if (!loom__same(row->name, key) || (dot && dot[1] >= '0' && dot[1] <= '9')) /* one device */
				continue;
			while (i < homes && !loom__same(home[i], own))
				i++;
			if (i == sizeof(home) / sizeof(home[0]))
				return;
			home[i] = own;
			homes += i == homes;
		}
	for (size_t i = 0; i < homes; i++)
		loom__text_add(hint, "%s[%s]", i ? " or " : "; it belongs in ", home[i]);
}

/* Returns a section with a similar name. If there is none, returns one whose name ends with a dot and this word, as
 * scheduler.mgws does with mgws. */
static const char *nearest_section(const struct loom_config *cfg, const char *section)
{
	struct loom__near near = {.word = section};
	const char *ends = NULL;
	for (const struct loom__declared *d = cfg->declared; d; d = d->next) {
		const char *dot = strrchr(d->section, '.');
		if (dot && loom__slice_is((struct loom__slice){section, strlen(section)}, dot + 1))
			ends = d->section;
		loom__nearer(&near, d->section);
	}
	return near.name ? near.name : ends;
}

static const char *nearest_key(const struct loom_config *cfg, const char *section, const char *key)
{
	struct loom__near near = {.word = key};
	for (const struct loom__declared *d = cfg->declared; d; d = d->next)
		for (const struct loom_opt *row = d->rows; row->name; row++)
			if (is_in(d, row, section))
				loom__nearer(&near, row->name);
	return near.name;
}

static void report_section(const struct loom_config *cfg, const struct loom__entry *h, struct loom__diag *diag)
{
	const char *nearest = nearest_section(cfg, h->section);
	loom__diag_add(diag, 0, h->file, h->line, h->column, "unknown section [%s]%s%s%s", h->section,
		       nearest ? "; did you mean [" : "", nearest ? nearest : "", nearest ? "]?" : "");
}

static void report_key(const struct loom_config *cfg, const struct loom__entry *e, const struct loom__declared *d,
		       struct loom__diag *diag)
{
	struct loom__text hint = {0};
	const char *nearest = nearest_key(cfg, e->section, e->key);
	add_homes(cfg, e->key, &hint);
	if (!hint.length && nearest)
		loom__text_add(&hint, "; did you mean '%s'?", nearest);
	if (!hint.length && d->owner[0])
		loom__text_add(&hint, " (see: gpuloom describe %s)", d->owner);
	loom__diag_add(diag, 0, e->file, e->line, e->column, "unknown key '%s' in [%s]%s", e->spelling, e->section,
		       hint.length && loom__text_ok(&hint) ? hint.at : "");
	loom__text_free(&hint);
}

static int is_unknown(const struct loom_config *cfg, const struct loom__entry *e)
{
	return !is_ignored(cfg, e->section) && !loom__is_private(e->key) && !is_declared(cfg, e->section, e->key);
}

int loom__config_each_unknown(const struct loom_config *cfg, loom__entry_fn *fn, void *arg)
{
	int code = 0;
	for (const struct loom__entry *e = cfg->entries; e && !code; e = e->next)
		if (is_unknown(cfg, e))
			code = fn(arg, e);
	return code;
}

int loom__config_unknown(struct loom_config *cfg, struct loom__diag *diag)
{
	size_t before = diag->errors;
	for (size_t i = 0; i < cfg->notes.count; i++) {
		const struct loom__mistake *m = &cfg->notes.list[i];
		loom__diag_add(diag, m->warning, m->file, m->line, m->column, "%s", m->text);
	}
	loom__diag_free(&cfg->notes);
	/* An unknown section is one mistake. Its keys are not reported. */
	for (const struct loom__entry *h = cfg->headers; h; h = h->next)
		if (!find_section(cfg, h->section) && !is_ignored(cfg, h->section))
			report_section(cfg, h, diag);
	for (const struct loom__entry *top = cfg->entries; top; top = top->next) {
		const struct loom__declared *d = find_section(cfg, top->section);
		for (const struct loom__entry *e = d && is_unknown(cfg, top) ? top : NULL; e; e = e->was)
			report_key(cfg, e, d, diag);
	}
	if (cfg->bind)
		cfg->bind(cfg, NULL, NULL, diag);
	return loom__config_verdict(cfg, diag, before);
}
