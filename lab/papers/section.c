/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the section [x-paper] of a conf, and writes its copy in the head of a sweep. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "facts/must.h"
#include "papers/papers.h"

static const char *const key_name[] = {
    "of",  "figure", "table", "part",         "shows",  "says",   "unlike",   "needs",  "lacks", "small",
    "cpu", "place",  "why",   "incomparable", "claim.", "paper.", "neutral.", "place.", "why.",  "incomparable."};
enum { NAMED = 14 }; /* the keys from here on end in the name of a claim */
static const char *const needs_name[] = {"sim", "cpu", "gpu", "two-gpus"};

struct reader {
	const struct loom_config *cfg;
	const struct loom__sweep_spec *spec;
	struct loom__figure *f;
	struct loom__diag *diag;
	struct loom__factor *factor; /* all factors of the conf, with levels that the command line leaves out */
	size_t factors;
};

#define MISTAKE(r, e, column, ...) loom__diag_add((r)->diag, 0, (e)->file, (e)->line, (column), __VA_ARGS__)

static int in_section(const struct loom__entry *e)
{
	return !strcmp(e->section, LOOM__PAPER_SECTION);
}

static const struct loom__entry *entry(const struct reader *r, const char *key)
{
	return loom__config_get(r->cfg, LOOM__PAPER_SECTION, key);
}

/* Returns the entry that belongs to claim.NAME: paper.NAME if `kind` is "paper.". An entry counts only if it is in the
 * same file as the claim. */
static const struct loom__entry *beside(const struct reader *r, const struct loom__entry *claim, const char *kind)
{
	char key[2 * LOOM__NAME_MOST];
	snprintf(key, sizeof(key), "%s%s", kind, claim->key + strlen("claim."));
	const struct loom__entry *e = entry(r, key);
	return e && !strcmp(e->file, claim->file) ? e : NULL;
}

/* Reports keys that do not exist, and keys with a name for which there is no claim. */
static int check_key(void *arg, const struct loom__entry *e)
{
	const struct reader *r = arg;
	size_t i = 0;
	if (!in_section(e))
		return 0;
	while (i < LOOM__COUNT(key_name) &&
	       (i < NAMED ? strcmp(e->key, key_name[i]) != 0 : strncmp(e->key, key_name[i], strlen(key_name[i])) != 0))
		i++;
	if (i == LOOM__COUNT(key_name)) {
		struct loom__near near = {.word = e->key};
		for (i = 0; i < NAMED; i++)
			loom__nearer(&near, key_name[i]);
		char stem[2 * LOOM__NAME_MOST];
		snprintf(stem, sizeof(stem), "%.*s.", (int)strcspn(e->key, "."), e->key);
		const char *like = strchr(e->key, '.')
				       ? loom__nearest(stem, key_name + NAMED, LOOM__COUNT(key_name) - NAMED)
				       : near.name;
		MISTAKE(r, e, e->column, "unknown key '%s' in [" LOOM__PAPER_SECTION "]%s%s%s", e->spelling,
			LOOM__MEANT(like));
	} else if (i > NAMED) {
		char key[2 * LOOM__NAME_MOST];
		const char *name = strchr(e->key, '.') + 1;
		struct loom__near near = {.word = name};
		snprintf(key, sizeof(key), "claim.%s", name);
		for (size_t k = 0; k < r->f->claims; k++)
			loom__nearer(&near, r->f->claim[k].name);
		if (!entry(r, key))
			MISTAKE(r, e, e->column, "'%s': there is no claim.%s%s%s%s", e->spelling, name,
				LOOM__MEANT(near.name));
	}
	return 0;
}

/* Returns 1 if the expression is a quotient: outside of parentheses, it has a division, and neither + nor -. A division
 * by a number only changes the unit. */
static int is_ratio(const char *text)
{
	int depth = 0, ratio = 0;
	for (const char *s = text; *s; s++) {
		depth += *s == '(' ? 1 : *s == ')' ? -1 : 0;
		if (!depth && (*s == '+' || (*s == '-' && s > text)))
			return 0;
		ratio |= !depth && *s == '/' && !isdigit((unsigned char)s[1 + strspn(s + 1, " ")]);
	}
	return ratio;
}

static void read_paper(struct reader *r, struct loom__claim *c)
{
	const struct loom__entry *e = c->entry, *paper = beside(r, e, "paper."), *neutral = beside(r, e, "neutral.");
	struct loom_error err;
	const char *end;
	c->neutral = is_ratio(c->text) ? 1 : NAN;
	if (!paper) {
		MISTAKE(r, e, e->column, "claim.%s has no paper.%s: the paper's value, such as 0.25 +- 0.05 or >= 0.8",
			c->name, c->name);
		return;
	}
	c->paper = paper->value;
	if (loom__claim_range(paper->value, &c->low, &c->high, &err))
		MISTAKE(r, paper, paper->value_column, "%s", err.text);
	if (neutral && (loom__read_double(neutral->value, &end, &c->neutral) || *end))
		MISTAKE(r, neutral, neutral->value_column, "'%.60s': the neutral value is a number", neutral->value);
}

/* Returns the value of KEY.NAME or, if there is none, of KEY. */
static const char *text_for(const struct reader *r, const struct loom__entry *claim, const char *key)
{
	char kind[24];
	snprintf(kind, sizeof(kind), "%s.", key);
	const struct loom__entry *e = beside(r, claim, kind);
	e = e ? e : entry(r, key);
	return e ? e->value : "";
}

static int read_claim(void *arg, const struct loom__entry *e)
{
	struct reader *r = arg;
	struct loom_error err;
	if (!in_section(e) || strncmp(e->key, "claim.", 6))
		return 0;
	if (e->source == LOOM_FROM_FILE && strcmp(e->file, r->f->entry->file))
		return 0; /* the claim belongs to the figure of an included conf */
	r->f->claim = loom__must(realloc(r->f->claim, (r->f->claims + 1) * sizeof(*r->f->claim)));
	struct loom__claim *c = &r->f->claim[r->f->claims++];
	*c = (struct loom__claim){.name = e->key + 6, .text = e->value, .entry = e, .paper = "", .neutral = NAN};
	read_paper(r, c);
	c->place = text_for(r, e, "place");
	c->why = text_for(r, e, "why");
	c->incomparable = text_for(r, e, "incomparable");
	if (loom__claim_check(c, r->factor, r->factors, &err))
		MISTAKE(r, e, e->value_column, "claim.%s: %s", c->name, err.text);
	return 0;
}

static void read_numbers(struct reader *r)
{
	struct loom__figure *f = r->f;
	loom__values_read(f->entry->value, &f->number, &f->numbers);
	for (size_t i = 0; i < f->numbers; i++) {
		size_t n = strspn(f->number[i], "0123456789");
		if (!n || n > 3 ||
		    (f->number[i][n] && (!isalpha((unsigned char)f->number[i][n]) || f->number[i][n + 1])))
			MISTAKE(r, f->entry, f->entry->value_column, "'%.40s' is no number of a %s: write 8 or 12a",
				f->number[i], f->table ? "table" : "figure");
	}
}

static const char *own(const struct reader *r, const char *key)
{
	const struct loom__entry *e = entry(r, key);
	return e && (e->source != LOOM_FROM_FILE || !strcmp(e->file, r->f->entry->file)) ? e->value : "";
}

static const char *value(const struct reader *r, const char *key)
{
	const struct loom__entry *e = entry(r, key);
	return e ? e->value : "";
}

static void check_needs(struct reader *r)
{
	const struct loom__entry *e = entry(r, "needs");
	for (size_t i = 0; e && i < LOOM__COUNT(needs_name); i++)
		if (!strcmp(e->value, needs_name[i]))
			return;
	if (!e)
		MISTAKE(r, r->f->entry, 0,
			"[" LOOM__PAPER_SECTION "] has no 'needs': choose from sim, cpu, gpu, two-gpus");
	else
		MISTAKE(r, e, e->value_column, "needs = %.40s: choose from sim, cpu, gpu, two-gpus", e->value);
}

/* Sets the path of the file `cpu`, which is in the folder of the conf that names it. */
static void read_cpu(struct reader *r)
{
	const struct loom__entry *e = entry(r, "cpu");
	r->f->cpu = "";
	if (!e)
		return;
	const char *slash = strrchr(e->file, '/');
	struct loom__text path = {0};
	loom__text_add(&path, "%.*s%s", slash ? (int)(slash - e->file) + 1 : 0, e->file, e->value);
	loom__must_text(&path);
	r->f->cpu = r->f->cpu_path = path.at;
	if (access(r->f->cpu, R_OK))
		MISTAKE(r, e, e->value_column, "cpu = %.80s: no file '%s'", e->value, r->f->cpu);
}

/* Returns 1 if the entry is from the command line or from another file than the figure. */
static int is_elsewhere(const struct reader *r, const struct loom__entry *e)
{
	return e->source > LOOM_FROM_FILE || strcmp(e->file, r->f->entry->file) != 0;
}

/* Copies the factors of the sweep. If a --set or a later file has narrowed a factor to the levels that the user wants
 * to run, adds the other levels again. If these levels were missing, claims over them would be reported as errors in
 * the conf. */
static void widen(struct reader *r)
{
	const struct loom__sweep_spec *s = r->spec;
	r->factor = loom__must(calloc(s->factors + 1, sizeof(*r->factor)));
	for (; r->factors < s->factors; r->factors++) {
		const struct loom__factor *f = &s->factor[r->factors];
		struct loom__factor *all = &r->factor[r->factors];
		all->key = loom__must(strdup(f->key));
		for (size_t i = 0; i < f->values; i++) {
			all->value = loom__must(realloc(all->value, (all->values + 1) * sizeof(*all->value)));
			all->value[all->values++] = loom__must(strdup(f->value[i]));
		}
		const struct loom__entry *e = f->values && f->from && !f->sets ? f->from[0] : NULL;
		while (e && is_elsewhere(r, e) && (e = e->was))
			loom__values_read(e->value, &all->value, &all->values);
	}
}

/* Finds the entry `figure` or `table`. Entries of included files precede entries of the conf, so the last entry belongs
 * to the conf itself. */
static int find_figure(void *arg, const struct loom__entry *e)
{
	struct reader *r = arg;
	int table = !strcmp(e->key, "table");
	if (!in_section(e) || (!table && strcmp(e->key, "figure")))
		return 0;
	if (r->f->entry && !strcmp(r->f->entry->file, e->file))
		MISTAKE(r, e, e->column, "[" LOOM__PAPER_SECTION "] has both 'figure' and 'table'");
	r->f->entry = e;
	r->f->table = table;
	return 0;
}

int loom__figure_read(const struct loom_config *cfg, const struct loom__sweep_spec *spec, struct loom__figure *out,
		      struct loom__diag *diag)
{
	struct reader r = {.cfg = cfg, .spec = spec, .f = out, .diag = diag};
	size_t before = diag->errors;
	*out = (struct loom__figure){0};
	loom__config_entries(cfg, find_figure, &r);
	if (!out->entry) {
		loom__config_entries(cfg, check_key, &r);
		return diag->errors > before ? LOOM_EINVAL : 0;
	}
	out->of = value(&r, "of");
	out->needs = value(&r, "needs");
	out->unlike = value(&r, "unlike");
	out->lacks = own(&r, "lacks");
	out->shows = own(&r, "shows");
	out->says = own(&r, "says");
	out->part = own(&r, "part");
	out->small = value(&r, "small");
	read_cpu(&r);
	read_numbers(&r);
	check_needs(&r);
	if (!*out->of)
		MISTAKE(&r, out->entry, 0, "[" LOOM__PAPER_SECTION "] has no 'of': the paper");
	if (!*out->shows)
		MISTAKE(&r, out->entry, 0,
			"[" LOOM__PAPER_SECTION "] has no 'shows': what the figure shows, in a sentence");
	if (!spec->factors)
		MISTAKE(&r, out->entry, 0, "[" LOOM__PAPER_SECTION "] needs a [sweep], over which its claims are made");
	widen(&r);
	if (spec->factors)
		loom__config_entries(cfg, read_claim, &r);
	for (size_t i = 0; i < r.factors; i++)
		loom__factor_free(&r.factor[i]);
	free(r.factor);
	loom__config_entries(cfg, check_key, &r);
	if (diag->errors == before)
		return 0;
	loom__figure_free(out);
	return LOOM_EINVAL;
}

void loom__figure_free(struct loom__figure *f)
{
	for (size_t i = 0; i < f->numbers; i++)
		free(f->number[i]);
	free(f->number);
	free(f->claim);
	free(f->cpu_path);
	*f = (struct loom__figure){0};
}

void loom__figure_name(const struct loom__figure *f, struct loom__text *out)
{
	loom__text_add(out, "%s ", f->table ? "table" : "figure");
	for (size_t i = 0; i < f->numbers; i++)
		loom__text_add(out, "%s%s", i ? ", " : "", f->number[i]);
	if (*f->part)
		loom__text_add(out, " (%s)", f->part);
}

void loom__figure_file(const struct loom__figure *f, struct loom__text *out)
{
	loom__text_add(out, "%s-%s-%s%s%s", f->of, f->table ? "table" : "figure", f->number[0], *f->part ? "-" : "",
		       f->part);
}

/* ---- in documents --------------------------------------------------------------------------------- */

cJSON *loom__figure_json(const struct loom__figure *f)
{
	cJSON *o = cJSON_CreateObject(), *list = loom__json_add_array(o, "numbers"), *claims;
	const char *const text[][2] = {{"of", f->of},       {"kind", f->table ? "table" : "figure"},
				       {"part", f->part},   {"shows", f->shows},
				       {"needs", f->needs}, {"unlike", f->unlike}};
	for (size_t i = 0; i < LOOM__COUNT(text); i++)
		loom__json_add_text(o, text[i][0], text[i][1]);
	for (size_t i = 0; i < f->numbers; i++)
		loom__json_append_text(list, f->number[i]);
	claims = loom__json_add_array(o, "claims");
	for (size_t i = 0; i < f->claims; i++) {
		cJSON *c = loom__json_append_object(claims);
		loom__json_add_text(c, "name", f->claim[i].name);
		loom__json_add_text(c, "claim", f->claim[i].text);
		loom__json_add_text(c, "paper", f->claim[i].paper);
		if (!isnan(f->claim[i].neutral))
			loom__json_add_number(c, "neutral", f->claim[i].neutral);
	}
	return o;
}
