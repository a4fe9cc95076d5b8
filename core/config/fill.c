/* SPDX-License-Identifier: Apache-2.0 */
/* Converts entries into an option struct, and lists the effective values. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/inside.h"

struct fill {
	struct loom_config *cfg;
	const char *const *sections;
	size_t n;
	struct loom__diag *diag;
};

const struct loom__entry *loom__config_entry(const struct loom_config *cfg, const char *const *sections,
					     size_t n_sections, const struct loom_opt *row)
{
	const struct loom__entry *e = NULL;
	for (size_t i = n_sections; i && !e; i--)
		e = loom__config_get(cfg, sections[i - 1], row->name);
	/* The plug-in's own section overrides the shared section, except if the value in the shared section has a
	 * source of more precedence, such as --set. */
	const struct loom__entry *shared = row->section ? loom__config_get(cfg, row->section, row->name) : NULL;
	return shared && (!e || shared->source > e->source) ? shared : e;
}

static const struct loom__entry *entry_of(const struct fill *f, const struct loom_opt *row)
{
	return loom__config_entry(f->cfg, f->sections, f->n, row);
}

/* Reports that a required key is missing. The place is the header of the section, if the conf has one. */
static void report_missing(const struct fill *f, const struct loom_opt *row)
{
	const char *section = f->n ? f->sections[f->n - 1] : "";
	const struct loom__entry *h = loom__config_header(f->cfg, section);
	loom__diag_add(f->diag, 0, h ? h->file : NULL, h ? h->line : 0, h ? h->column : 0, "[%s] needs '%s': %s",
		       section, row->name, row->help);
}

/* Returns `name` as an absolute path, or NULL with cfg->failed set. `name` is the value of e, or a word of it. */
static const char *resolve(struct loom_config *cfg, const struct loom__entry *e, const char *name)
{
	struct loom__text near = {0}, path = {0};
	const char *absolute = NULL;
	loom__beside(&near, e->source == LOOM_FROM_FILE ? e->file : "", name);
	if (loom__text_ok(&near) && near.at[0] != '/') {
		char *here = getcwd(NULL, 0);
		if (here)
			loom__text_add(&path, "%s/", here);
		else if (errno == ENOMEM)
			cfg->failed = 1;
		free(here); /* If the folder is unknown, the path stays relative, and opening the file fails later. */
	}
	loom__text_put(&path, near.at, near.length);
	if (loom__text_ok(&near) && loom__text_ok(&path))
		absolute = loom__config_keep(cfg, path.at, path.length);
	cfg->failed |= !absolute;
	loom__text_free(&near);
	loom__text_free(&path);
	return absolute;
}

/* Returns the value with absolute paths, or NULL. For a FILE or FILES row, words with a '/' are paths. For a FOLDERS
 * row, all words are paths. */
static const char *resolve_words(struct loom_config *cfg, const struct loom_opt *row, const struct loom__entry *e)
{
	const char *gaps = row->flags & LOOM__OPT_FOLDERS ? ":" : " \t,";
	if (row->flags & LOOM__OPT_FILE)
		return strchr(e->value, '/') ? resolve(cfg, e, e->value) : e->value;
	char *copy = strdup(e->value), *rest = copy, *word;
	struct loom__text out = {0};
	cfg->failed |= !copy;
	while (copy && !cfg->failed && (word = loom__word(&rest, gaps))) {
		int is_path = row->flags & LOOM__OPT_FOLDERS || strchr(word, '/');
		const char *path = is_path ? resolve(cfg, e, word) : word;
		if (out.length)
			loom__text_put(&out, gaps, 1);
		loom__word_put(&out, path ? path : "", gaps);
	}
	free(copy);
	const char *all = loom__text_ok(&out) ? loom__config_keep(cfg, out.at ? out.at : "", out.length) : NULL;
	loom__text_free(&out);
	cfg->failed |= !all;
	return cfg->failed ? NULL : all;
}

static void record(const struct fill *f, const struct loom_opt *row, const void *field, const struct loom__entry *e)
{
	int is_shared = row->section && (!e || loom__same(e->section, row->section));
	const char *section = is_shared ? row->section : f->n ? f->sections[f->n - 1] : "";
	struct loom__text text = {0};
	struct loom__effective **at = &f->cfg->effective;
	loom__value_canonical(row, field, &text);
	f->cfg->failed |= !loom__text_ok(&text);
	const char *value = loom__config_keep(f->cfg, text.at, text.length);
	loom__text_free(&text);
	section = loom__config_keep(f->cfg, section, strlen(section));
	if (f->cfg->failed)
		return;
	while (*at && !(loom__same((*at)->section, section) && loom__same((*at)->key, row->name)))
		at = &(*at)->next;
	if (!*at && !(*at = loom__config_alloc(f->cfg, sizeof(**at))))
		return;
	**at = (struct loom__effective){.section = section,
					.key = row->name,
					.row = row,
					.value = value,
					.shown = e ? e->value : row->dflt,
					.entry = e,
					.next = (*at)->next};
}

/* Reports a value of an untrusted document that names a plug-in's path or a command. */
static int refuse_untrusted(const struct fill *f, const struct loom_opt *row, const struct loom__entry *e)
{
	int loads = row->flags & LOOM__OPT_FOLDERS ||
		    (row->flags & (LOOM__OPT_FILE | LOOM__OPT_FILES) && strchr(e->value, '/'));
	if (!e->untrusted || !e->value[0] || !(loads || row->flags & LOOM_OPT_TRUST))
		return 0;
	loom__diag_add(
	    f->diag, 0, e->file, 0, 0,
	    "[%s] %s = %s: the file or command of that name would be %s, and a result is not trusted; add --trust if you "
	    "know its origin",
	    e->section, e->key, e->value, loads ? "loaded" : "run, loaded or written to");
	return LOOM_EINVAL;
}

/* Parses the user's value into the field, which holds the default. Returns 0 if the field was set. */
static int take_entry(const struct fill *f, const struct loom_opt *row, const struct loom__entry *e, void *field)
{
	struct loom_error err;
	const char *text = e->value;
	if (refuse_untrusted(f, row, e))
		return LOOM_EINVAL;
	if (row->flags & LOOM_OPT_DEPRECATED)
		loom__diag_add(f->diag, 1, e->file, e->line, e->column, "'%s' in [%s] is deprecated: %s", e->spelling,
			       e->section, row->help);
	if (row->type == LOOM_OPT_PATH && text[0] && !(text = resolve(f->cfg, e, text)))
		return LOOM_ENOMEM;
	if (row->flags & (LOOM__OPT_FILE | LOOM__OPT_FILES | LOOM__OPT_FOLDERS) && text[0] &&
	    !(text = resolve_words(f->cfg, row, e)))
		return LOOM_ENOMEM;
	int code = loom__value_parse(row, text, field, &err);
	if (code)
		loom__diag_add(f->diag, 0, e->file, e->line, e->value_column, "%s in [%s]: %s", e->spelling, e->section,
			       err.text);
	return code;
}

static void fill_row(const struct fill *f, const struct loom_opt *row, void *field)
{
	static const char *const empty = "";
	const struct loom__entry *e = entry_of(f, row);
	if (loom__value_is_text(row->type))
		memcpy(field, &empty, sizeof(empty));
	if (row->dflt)
		loom__value_parse(row, row->dflt, field, NULL); /* loom__rows_check() has parsed it before */
	int missing = !e || (loom__value_is_text(row->type) && !e->value[0]); /* an empty text counts as missing */
	if ((row->flags & LOOM_OPT_REQUIRED) && missing)
		report_missing(f, row);
	else if (!e || !take_entry(f, row, e, field))
		record(f, row, field, e);
}

int loom__config_fill(struct loom_config *cfg, const char *const *sections, size_t n_sections,
		      const struct loom_opt *rows, void *opts, size_t opts_size, struct loom__diag *diag)
{
	struct fill f = {.cfg = cfg, .sections = sections, .n = n_sections, .diag = diag};
	struct loom_error err;
	size_t before = diag->errors;
	int code = loom__rows_check(rows, opts_size, &err);
	if (code) {
		loom__diag_add(diag, 0, NULL, 0, 0, "%s", err.text);
		return code;
	}
	memset(opts, 0, opts_size);
	for (const struct loom_opt *row = rows; row && row->name && !cfg->failed; row++)
		fill_row(&f, row, (char *)opts + row->offset);
	return loom__config_verdict(cfg, diag, before);
}

void loom__config_check(struct loom_config *cfg, const char *section, const struct loom_opt *rows,
			struct loom__diag *diag)
{
	const struct fill f = {.cfg = cfg, .sections = &section, .n = 1, .diag = diag};
	for (const struct loom_opt *row = rows; row->name; row++) {
		union loom__value field;
		const struct loom__entry *e = entry_of(&f, row);
		if (e)
			take_entry(&f, row, e, &field);
	}
}

/* ---- the effective values ------------------------------------------------------------------- */

static int is_first(const struct loom_config *cfg, const struct loom__declared *d)
{
	const struct loom__declared *first = cfg->declared;
	while (first != d && !loom__same(first->section, d->section))
		first = first->next;
	return first == d;
}

/* Lists the effective values of a section. If `section` is NULL, lists the values of all sections that are not
 * declared. */
static int each_of(const struct loom_config *cfg, const char *section, loom__effective_fn *fn, void *arg)
{
	int code = 0;
	for (const struct loom__effective *e = cfg->effective; e && !code; e = e->next)
		if (section ? loom__same(section, e->section) : !loom__config_declared(cfg, e->section))
			code = fn(arg, e);
	return code;
}

int loom__config_each(const struct loom_config *cfg, loom__effective_fn *fn, void *arg)
{
	int code = 0;
	for (const struct loom__declared *d = cfg->declared; d && !code; d = d->next)
		if (is_first(cfg, d))
			code = each_of(cfg, d->section, fn, arg);
	if (!code)
		code = each_of(cfg, NULL, fn, arg);
	for (const struct loom__entry *e = cfg->entries; e && !code; e = e->next) {
		const struct loom__effective of = {
		    .section = e->section, .key = e->spelling, .value = e->value, .shown = e->value, .entry = e};
		if (loom__is_private(e->section) || loom__is_private(e->key) || !strncmp(e->section, "sweep.", 6))
			code = fn(arg, &of);
	}
	return code;
}
