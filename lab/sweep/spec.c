/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep/spec.h"
#include "facts/must.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LISTS "sweep." /* sections with this prefix vary options */

const struct loom_opt loom__sweep_rows[] = {
	LOOM_OPT(struct loom__sweep_opts, budget, LOOM_OPT_TIME, "0",
			 "Longest time of the sweep: no sample begins after it; what was measured is kept. 0: no "
			 "limit.", .min = 0, .max = 9e18),
	LOOM_OPT(struct loom__sweep_opts, seed, LOOM_OPT_U64, "1",
			 "Seed of the random order of the samples.", .min = 0, .max = 0x1p53),
	LOOM_OPT(struct loom__sweep_opts, output, LOOM_OPT_STR, "",
			 "File for one JSON line per sample, with which --resume continues; '-' is standard output. "
			 "Empty: no file."),
	LOOM_OPT(struct loom__sweep_opts, report, LOOM_OPT_STR, "",
			 "File for a report at the end; its name ends in " LOOM__REPORT_SUFFIXES " or .json. Empty: none."),
	LOOM_OPT(struct loom__sweep_opts, metric, LOOM_OPT_STR, "",
			 "Metrics that are shown and plotted, the main one first; up to 6."),
	LOOM_OPT(struct loom__sweep_opts, derive, LOOM_OPT_STR, "",
			 "Metrics computed from others, as in 'gb_s = bytes / seconds / 1e9 [GB/s, more]', separated "
			 "by commas. Operators + - * / ^, parentheses, and abs, exp, log, log2, max, min, sqrt."),
	LOOM_OPT(struct loom__sweep_opts, pareto, LOOM_OPT_STR, "",
			 "The two metrics of the Pareto front, as in seconds,cpu_seconds."),
	LOOM_OPT(struct loom__sweep_opts, plot, LOOM_OPT_STR, "",
			 "Plots of an SVG: forest, runs, distribution, pareto, workers, lines, bars, heat. "
			 "Empty: all for which there are data, but bars and heat."),
	LOOM_OPT(struct loom__sweep_opts, x, LOOM_OPT_STR, "",
			 "The option on the x axis of lines, bars and heat, as in device.cpu.workers. Empty: one whose "
			 "values are numbers."),
	LOOM_OPT(struct loom__sweep_opts, lines, LOOM_OPT_STR, "",
			 "The option of which each value has a line. Empty: another option that is varied."),
	LOOM_OPT(struct loom__sweep_opts, facet, LOOM_OPT_STR, "",
			 "The option of which each value has a panel. Empty: a third option that is varied."),
	LOOM_OPT(struct loom__sweep_opts, show, LOOM_OPT_ENUM, "value",
			 "What lines, bars and heat show: value: the metric. ratio: the metric over that of the base. "
			 "speed-up: how much better it is than that of the base. efficiency: the speed-up per x.",
			 .choices = loom__show_name),
	LOOM_OPT(struct loom__sweep_opts, base, LOOM_OPT_STR, "",
			 "The base of ratios and speed-ups: a value of the option of lines, or of x without lines. Empty: the "
			 "first x."),
	LOOM_OPT(struct loom__sweep_opts, mean, LOOM_OPT_STR, "",
			 "An option over whose values lines, bars and heat show the geometric mean; that of x adds a value "
			 "'geomean'."),
	LOOM_OPT(struct loom__sweep_opts, width, LOOM_OPT_ENUM, "page",
			 "The width of an SVG, PNG or PDF: page, with title and caption, or column: the plots alone, in 84 mm, and "
			 "without `plot` only one: forest, or else lines, or else distribution.",
			 .choices = loom__width_name),
	LOOM_OPT(struct loom__sweep_opts, axes, LOOM_OPT_ENUM, "linear",
			 "Scales of the axes of the line plot.", .choices = loom__axes_name),
	{0},
};

struct reader {
	struct loom_config *cfg;
	struct loom__sweep_spec *spec;
	struct loom__diag *diag;
};

static void mistake(struct reader *r, const struct loom__entry *e, const char *text)
{
	loom__diag_add(r->diag, 0, e->file, e->line, e->value_column, "%s", text);
}

static int is_list(const struct loom__entry *e)
{
	return !strncmp(e->section, LISTS, strlen(LISTS));
}

static int is_rule(const struct loom__entry *e)
{
	return !strcmp(e->section, LISTS "skip") || !strcmp(e->section, LISTS "only");
}

static int is_point(const struct loom__entry *e)
{
	return !strcmp(e->section, LISTS "points");
}

int loom__sweep_spec_in(struct loom_config *cfg)
{
	const char *name;
	int found = 0;
	for (size_t i = 0; (name = loom__config_section(cfg, i)); i++)
		found |= !strcmp(name, "sweep") || !strncmp(name, LISTS, strlen(LISTS));
	return found;
}

/* ---- factors -------------------------------------------------------------------------------- */

static struct loom__factor *new_factor(struct reader *r)
{
	struct loom__sweep_spec *s = r->spec;
	s->factor = loom__must(realloc(s->factor, (s->factors + 1) * sizeof(*s->factor)));
	s->factor[s->factors] = (struct loom__factor){0};
	return &s->factor[s->factors++];
}

/* Parses [sweep.SECTION] KEY = VALUE, VALUE, which makes one factor. */
static void add_list(struct reader *r, const struct loom__entry *e)
{
	struct loom__text text = {0};
	struct loom_error err;
	struct loom__factor *f = new_factor(r);
	loom__text_add(&text, "%s.%s=%s", e->section + strlen(LISTS), e->key, e->value);
	if (loom__factor_parse(loom__must_text(&text), f, &err)) {
		mistake(r, e, err.text);
	} else {
		f->from = loom__must(calloc(f->values, sizeof(*f->from)));
		for (size_t i = 0; i < f->values; i++)
			f->from[i] = e;
	}
	loom__text_free(&text);
	/* If a key is set twice in one source, the later value wins. But a repeated --vary is an error. */
	if (e->was && e->source == LOOM_FROM_COMMAND_LINE && e->was->source == e->source)
		mistake(r, e, "varied twice: give all values at once");
}

static struct loom__factor *points_of(struct reader *r)
{
	for (size_t i = 0; i < r->spec->factors; i++)
		if (r->spec->factor[i].sets)
			return &r->spec->factor[i];
	struct loom__factor *f = new_factor(r);
	f->key = loom__must(strdup(LOOM__SWEEP_POINT));
	return f;
}

/* Returns the length of "section.key" in "section.key=value", without trailing blanks, or 0 if the text has another
 * form. */
static size_t key_of(const char *set)
{
	size_t n = strcspn(set, "=");
	const char *dot = memrchr(set, '.', n);
	if (!set[n] || !dot)
		return 0;
	while (n && (set[n - 1] == ' ' || set[n - 1] == '\t'))
		n--;
	return n;
}

static int same_key(const char *a, const char *b)
{
	size_t n = key_of(a);
	char x[200], y[200];
	if (!n || n != key_of(b) || n >= sizeof(x))
		return 0;
	memcpy(x, a, n);
	memcpy(y, b, n);
	x[n] = y[n] = 0;
	return loom__same(x, y);
}

static void check_sets(struct reader *r, const struct loom__entry *e, char **set, size_t sets)
{
	char text[400];
	for (size_t i = 0; i < sets; i++) {
		*text = 0;
		if (!key_of(set[i]))
			snprintf(text, sizeof(text),
				 "'%.120s' is not of the form section.key=value; a point is written %.40s = "
				 "section.key=value, section.key=value",
				 set[i], e->spelling);
		for (size_t j = 0; j < i; j++)
			if (same_key(set[i], set[j]))
				snprintf(text, sizeof(text), "point '%.60s' sets %.*s twice", e->spelling,
					 (int)key_of(set[i]), set[i]);
		if (*text)
			mistake(r, e, text);
	}
}

/* Parses [sweep.points] NAME = SECTION.KEY=VALUE, SECTION.KEY=VALUE, which adds one level to the factor "point". */
static void add_point(struct reader *r, const struct loom__entry *e)
{
	struct loom__factor *f = points_of(r);
	size_t n = f->values++, sets = 0;
	char **set = NULL;
	f->value = loom__must(realloc(f->value, (n + 1) * sizeof(*f->value)));
	f->sets = loom__must(realloc(f->sets, (n + 1) * sizeof(*f->sets)));
	f->from = loom__must(realloc(f->from, (n + 1) * sizeof(*f->from)));
	if (*e->value) /* an empty point changes nothing in the conf */
		loom__values_read(e->value, &set, &sets);
	set = loom__must(realloc(set, (sets + 1) * sizeof(*set)));
	set[sets] = NULL;
	f->value[n] = loom__must(strdup(e->spelling));
	f->sets[n] = set;
	f->from[n] = e;
	check_sets(r, e, set, sets);
}

static int read_factor(void *arg, const struct loom__entry *e)
{
	struct reader *r = arg;
	if (is_point(e))
		add_point(r, e);
	else if (is_list(e) && !is_rule(e))
		add_list(r, e);
	return 0;
}

/* Rejects keys that a list varies and a point also sets. */
static void check_both(struct reader *r)
{
	const struct loom__sweep_spec *s = r->spec;
	for (size_t f = 0; f < s->factors; f++)
		for (size_t p = 0; p < s->factors; p++)
			for (size_t v = 0; s->factor[p].sets && s->factor[f].from && v < s->factor[p].values; v++)
				for (char **set = s->factor[p].sets[v]; *set && f != p; set++) {
					struct loom__text t = {0};
					loom__text_add(&t, "%s=", s->factor[f].key);
					if (same_key(*set, loom__must_text(&t))) {
						t.length--; /* removes the '=' */
						loom__text_add(&t, " is varied by a list, and set by point '%s', too",
							       s->factor[p].value[v]);
						mistake(r, s->factor[f].from[0], loom__must_text(&t));
					}
					loom__text_free(&t);
				}
}

/* ---- rules ---------------------------------------------------------------------------------- */

static int read_rule(void *arg, const struct loom__entry *e)
{
	struct reader *r = arg;
	struct loom__sweep_spec *s = r->spec;
	struct loom_error err;
	if (!is_rule(e))
		return 0;
	s->constraint = loom__must(realloc(s->constraint, (s->constraints + 1) * sizeof(*s->constraint)));
	/* A constraint of the command line has a number as its key. Its name is NULL, because a number is no reason to
	 * print. */
	const char *name = e->key[strspn(e->key, "0123456789")] ? e->spelling : NULL;
	if (loom__constraint_parse(e->value, name, !strcmp(e->section, LISTS "only"), s->factor, s->factors,
				   &s->constraint[s->constraints], &err))
		mistake(r, e, err.text);
	else
		s->constraints++;
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Checks the options of the report before the first sample, because otherwise errors in these options would appear only
 * after the last sample. */
static void check_report(struct reader *r)
{
	const struct loom__sweep_opts *o = &r->spec->opts;
	struct {
		const char *key, *value;
		int good;
	} row[] = {
		{"report", o->report, !*o->report || loom__report_format_of(o->report) != LOOM__REPORT_FORMATS},
		{"pareto", o->pareto, !*o->pareto || (strchr(o->pareto, ',') && strchr(o->pareto, ',')[1])},
		{"plot", o->plot, 1},
		{"derive", o->derive, 1},
	};
	struct loom_error err = {0};
	unsigned plots;
	struct loom__derived derived;
	row[2].good = !loom__report_plots(o->plot, &plots, &err);
	if (row[2].good)
		row[3].good = !loom__derived_read(o->derive, &derived, &err);
	for (size_t i = 0; i < LOOM__COUNT(row); i++) {
		const struct loom__entry *e = loom__config_get(r->cfg, "sweep", row[i].key);
		if (row[i].good || !e)
			continue;
		if (i == 0)
			LOOM__FAIL(&err, LOOM_EINVAL,
				   "'%.100s': the name of a report must end in " LOOM__REPORT_SUFFIXES " or .json",
				   row[i].value);
		else if (i == 1)
			LOOM__FAIL(&err, LOOM_EINVAL, "'%.100s': a front needs two metrics, as in seconds,cpu_seconds",
				   row[i].value);
		mistake(r, e, err.text);
	}
}

/* Checks that the factors which the line plot uses exist. Must be called when all factors have been read. */
static void check_axes(struct reader *r)
{
	static const char *const key[] = {"x", "lines", "facet", "mean"};
	const struct loom__sweep_spec *s = r->spec;
	const char *const value[] = {s->opts.x, s->opts.lines, s->opts.facet, s->opts.mean};
	for (size_t i = 0; i < LOOM__COUNT(key); i++) {
		const struct loom__entry *e = loom__config_get(r->cfg, "sweep", key[i]);
		struct loom__near near = {.word = value[i]};
		struct loom__text t = {0}, all = {0};
		int found = !*value[i] || !s->factors; /* another check reports a sweep without factors */
		for (size_t f = 0; f < s->factors && !found; f++) {
			found = loom__same(s->factor[f].key, value[i]);
			loom__nearer(&near, s->factor[f].key);
			loom__text_add(&all, "%s%s", f ? ", " : "", s->factor[f].key);
		}
		if (!found && e) {
			loom__text_add(&t, "[sweep] %s = %.100s: this sweep does not vary it", key[i], value[i]);
			if (near.name)
				loom__text_add(&t, "; did you mean '%s'?", near.name);
			else
				loom__text_add(&t, "; it varies %s", loom__must_text(&all));
			mistake(r, e, loom__must_text(&t));
		}
		loom__text_free(&t);
		loom__text_free(&all);
	}
}

static void declare(struct reader *r)
{
	const char *name;
	loom__config_declare(r->cfg, "sweep", loom__sweep_rows, NULL);
	for (size_t i = 0; (name = loom__config_section(r->cfg, i)); i++)
		if (!strncmp(name, LISTS, strlen(LISTS))) {
			loom__config_declare(r->cfg, name, NULL, NULL);
			loom__config_ignore(r->cfg, name);
		}
}

int loom__sweep_spec_read(struct loom_config *cfg, struct loom__sweep_spec *spec, struct loom__diag *diag)
{
	static const char *const section = "sweep";
	struct reader r = {.cfg = cfg, .spec = spec, .diag = diag};
	size_t before = diag->errors;
	*spec = (struct loom__sweep_spec){0};
	declare(&r);
	/* If memory is short, some options are missing, which is not an error of the conf. */
	int filled = !loom__config_fill(cfg, &section, 1, loom__sweep_rows, &spec->opts, sizeof(spec->opts), diag) &&
		     !loom__config_broken(cfg);
	if (filled)
		check_report(&r);
	loom__config_entries(cfg, read_factor, &r);
	if (filled && diag->errors == before)
		check_axes(&r);
	if (diag->errors == before) {
		check_both(&r);
		loom__config_entries(cfg, read_rule, &r);
	}
	int rc = diag->errors > before ? LOOM_EINVAL : 0;
	if (rc)
		loom__sweep_spec_free(spec);
	return rc;
}

void loom__sweep_spec_free(struct loom__sweep_spec *spec)
{
	for (size_t i = 0; i < spec->factors; i++)
		loom__factor_free(&spec->factor[i]);
	for (size_t i = 0; i < spec->constraints; i++)
		loom__constraint_free(&spec->constraint[i]);
	free(spec->factor);
	free(spec->constraint);
	*spec = (struct loom__sweep_spec){0};
}

/* ---- configurations ---------------------------------------------------------------------------------- */

typedef void each_fn(void *arg, const char *assignment, const struct loom__entry *from);

/* Calls fn for each "section.key=value" of a configuration. `pick` has the index of the level of each factor. */
static void each_set(const struct loom__sweep_spec *spec, const size_t *pick, each_fn *fn, void *arg)
{
	for (size_t f = 0; f < spec->factors; f++) {
		const struct loom__factor *factor = &spec->factor[f];
		const struct loom__entry *from = factor->from[pick[f]];
		if (factor->sets) {
			for (char **set = factor->sets[pick[f]]; *set; set++)
				fn(arg, *set, from);
			continue;
		}
		struct loom__text t = {0};
		loom__text_add(&t, "%s=%s", factor->key, factor->value[pick[f]]);
		fn(arg, loom__must_text(&t), from);
		loom__text_free(&t);
	}
}

struct config {
	struct loom_config *cfg;
	struct loom__diag *diag;
};

static void apply(void *arg, const char *assignment, const struct loom__entry *from)
{
	struct config *c = arg;
	loom__config_set_at(c->cfg, assignment, from, c->diag);
}

void loom__sweep_spec_apply(const struct loom__sweep_spec *spec, const size_t *pick, struct loom_config *config,
			    struct loom__diag *diag)
{
	struct config c = {.cfg = config, .diag = diag};
	each_set(spec, pick, apply, &c);
}

static void overruled(void *arg, const char *assignment, const struct loom__entry *from)
{
	struct config *c = arg;
	char name[200];
	snprintf(name, sizeof(name), "%.*s", (int)key_of(assignment), assignment);
	char *dot = strrchr(name, '.');
	if (!dot)
		return;
	*dot = 0;
	const struct loom__entry *e = loom__config_get(c->cfg, name, dot + 1);
	/* A file may vary a key and also give it a value, which `gpuloom run --no-sweep` uses. */
	if (!e || e->source < from->source || e->source == LOOM_FROM_FILE)
		return;
	if (e->source == from->source && !strcmp(e->file, from->file))
		return; /* the value comes from the sweep itself */
	*dot = '.';
	if (from->line)
		loom__diag_add(c->diag, 0, e->file, e->line, e->value_column,
			       "%s is varied in %s:%d; `gpuloom run --no-sweep` leaves the sweep out", name,
			       from->file, from->line);
	else
		loom__diag_add(c->diag, 0, e->file, e->line, e->value_column, "%s is varied by %s", name,
			       from->file);
}

void loom__sweep_spec_overruled(const struct loom__sweep_spec *spec, const size_t *pick,
				const struct loom_config *config, struct loom__diag *diag)
{
	struct config c = {.cfg = (struct loom_config *)(uintptr_t)config, .diag = diag};
	each_set(spec, pick, overruled, &c);
}
