/* SPDX-License-Identifier: Apache-2.0 */
/* Claims: evaluates expressions over the configurations of a sweep, and compares their values with the values in a
 * paper. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "facts/must.h"
#include "facts/token.h"
#include "papers/papers.h"
#include "report/view/derive.h"

const char *const loom__claim_verdict_name[] = {"not run here", "same",     "smaller",
						"larger",       "opposite", "not judged"};

#define TOLERANCE 0.10 /* tolerance of a paper's value that has none, as a share of the value */
#define BEYOND    0.01 /* an effect has a direction only if it differs from the neutral value by at least this share */

/* ---- the paper's value -------------------------------------------------------------------------- */

int loom__claim_range(const char *text, double *low, double *high, struct loom_error *err)
{
	const char *at = text;
	double a, b;
	int bound = loom__take(&at, ">=") ? 1 : loom__take(&at, "<=") ? -1 : 0;
	if (!loom__take_number(&at, &a))
		goto wrong;
	*low = bound < 0 ? -INFINITY : a;
	*high = bound > 0 ? INFINITY : a;
	if (bound)
		return loom__take_end(&at) ? 0 : LOOM__FAIL(err, LOOM_EINVAL, "'%.80s': text after the bound", text);
	*low = a - TOLERANCE * fabs(a);
	*high = a + TOLERANCE * fabs(a);
	if (loom__take_end(&at))
		return 0;
	int range = loom__take(&at, "..");
	if ((!range && !loom__take(&at, "+-")) || !loom__take_number(&at, &b))
		goto wrong;
	if (!range && loom__take(&at, "%"))
		b = fabs(a) * b / 100;
	if (!loom__take_end(&at) || (range ? b < a : b < 0))
		goto wrong;
	*low = range ? a : a - b;
	*high = range ? b : a + b;
	return 0;
wrong:
	return LOOM__FAIL(err, LOOM_EINVAL,
			  "'%.80s' is no value of a paper: write 0.25, 0.25 +- 0.05, 0.25 +- 20 %%, >= 0.8, <= 0.1 or "
			  "1.04 .. 1.58",
			  text);
}

enum loom__claim_verdict loom__claim_judge(const struct loom__claim *c, double v)
{
	double n = c->neutral, far = BEYOND * fmax(fabs(n), fabs(v));
	if (isnan(v))
		return LOOM__CLAIM_NOT_RUN;
	if (v >= c->low && v <= c->high)
		return LOOM__CLAIM_SAME;
	/* A range that ends at the neutral value has a direction, too. Both are 0 if n is NAN. */
	int above = c->low >= n, below = c->high <= n;
	if ((above && v < n - far) || (below && v > n + far))
		return LOOM__CLAIM_OPPOSITE;
	return (v < c->low) != below ? LOOM__CLAIM_SMALLER : LOOM__CLAIM_LARGER;
}

/* ---- its value here ------------------------------------------------------------------------------- */

struct sweep {
	const struct loom__claim *claim;
	const struct loom__view *view; /* the results; NULL: the expression is only checked */
	const struct loom__factor *factor;
	size_t factors;
	void (*named)(void *arg, const char *metric);
	void *arg;
	struct drawn *drawn; /* NULL: the value is computed; else the configurations are recorded */
};

/* The configurations that the first two calls of an expression select, for marks in plots. set[i][v] is 1 if call i
 * selects variant v. */
struct drawn {
	unsigned char *set[2];
	size_t metric[2], calls;
};

enum call { AT, GEOMEAN, MEAN, MIN, MAX, CALLS };
static const char *const call_name[CALLS] = {"at", "geomean", "mean", "min", "max"};

static int is_match(const struct sweep *s, const struct loom__constraint *c, const struct loom__variant *v)
{
	for (size_t t = 0; t < c->terms; t++) {
		const struct loom__factor *f = &s->factor[c->term[t].factor];
		const char *level = v->level ? v->level[c->term[t].factor] : NULL;
		size_t i = 0;
		while (i < f->values && (!level || strcmp(f->value[i], level)))
			i++;
		if (i == f->values || !c->term[t].match[i])
			return 0;
	}
	return 1;
}

static double combine(enum call call, const double *v, size_t n)
{
	double x = call == MIN ? INFINITY : call == MAX ? -INFINITY : 0;
	for (size_t i = 0; i < n; i++)
		x = call == MIN       ? fmin(x, v[i])
		    : call == MAX     ? fmax(x, v[i])
		    : call == GEOMEAN ? x + log(v[i])
				      : x + v[i];
	return call == MIN || call == MAX ? x : call == GEOMEAN ? exp(x / (double)n) : x / (double)n;
}

/* Computes a call: the medians of the metric in the matching configurations, combined by the function. */
static int compute(const struct sweep *s, enum call call, const char *metric, const char *text,
		   const struct loom__constraint *c, double *value, struct loom_error *err)
{
	const struct loom__view *view = s->view;
	size_t m = loom__names_find(&view->metric_names, metric), n = 0, matches = 0;
	if (m == LOOM__NO_NAME && view->metrics) {
		const char *near = loom__nearest(metric, view->metric_names.name, view->metrics);
		return LOOM__FAIL(err, LOOM_EINVAL, "%s(%.200s): no metric '%.60s' in this sweep%s%s%s",
				  call_name[call], text, metric, LOOM__MEANT(near));
	}
	double *v = loom__must(calloc(view->variants + 1, sizeof(*v)));
	const char *note = "";
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *variant = &view->variant[i];
		if (!is_match(s, c, variant))
			continue;
		matches += strcmp(variant->status, "skipped") != 0;
		note = *variant->note ? variant->note : note;
		if (m != LOOM__NO_NAME && variant->series && variant->series[m].n)
			v[n++] = variant->series[m].median.at;
	}
	int rc = 0;
	if (!matches && view->variants)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "%s(%.200s): no configuration of this sweep matches", call_name[call],
				text);
	else if (call == AT && matches > 1)
		rc = LOOM__FAIL(
		    err, LOOM_EINVAL,
		    "at(%.200s): %zu configurations match: give more factors, or write geomean, mean, min or max", text,
		    matches);
	else if (!n)
		rc = LOOM__FAIL(err, LOOM_EUNAVAIL, "%s(%.200s): no sample%s%.300s", call_name[call], text,
				*note ? ": " : "", note);
	else
		*value = combine(call, v, n);
	free(v);
	return rc;
}

/* Records the configurations that a call selects. Only at() and geomean() count, because plots show no mean, minimum or
 * maximum. */
static void draw(const struct sweep *s, enum call call, const char *metric, const struct loom__constraint *c)
{
	struct drawn *d = s->drawn;
	size_t i = d->calls++;
	if (i > 1)
		return;
	d->metric[i] = call == AT || call == GEOMEAN ? loom__names_find(&s->view->metric_names, metric) : LOOM__NO_NAME;
	for (size_t v = 0; v < s->view->variants && d->metric[i] != LOOM__NO_NAME; v++) {
		const struct loom__variant *variant = &s->view->variant[v];
		d->set[i][v] = variant->series && variant->series[d->metric[i]].n && is_match(s, c, variant);
	}
}

static int call(const void *from, const char *name, const char *arguments, size_t length, double *value,
		struct loom_error *err)
{
	const struct sweep *s = from;
	struct loom__constraint c = {0};
	size_t which = 0;
	while (which < CALLS && strcmp(name, call_name[which]))
		which++;
	if (which == CALLS)
		return LOOM_ENOENT;
	char *text = loom__must(strndup(arguments, length)), metric[80];
	const char *rest = text;
	int rc = 0, named = loom__take_until(&rest, ",", metric, sizeof(metric));
	if (named && loom__take(&rest, ","))
		rest += strspn(rest, " ");
	if (!named || strchr(metric, '='))
		rc = LOOM__FAIL(err, LOOM_EINVAL, "%s(%.200s): write %s(METRIC, FACTOR=VALUE, ...)", name, text, name);
	else if (*rest && loom__constraint_parse(rest, "", 1, s->factor, s->factors, &c, err))
		/* If there is a view, the conf has been checked already. So a value that is missing was left out on the
		 * command line. */
		rc = err->code = s->view ? LOOM_EUNAVAIL : LOOM_EINVAL;
	if (!rc && s->named)
		s->named(s->arg, metric);
	if (!rc && s->drawn)
		draw(s, (enum call)which, metric, &c);
	if (!rc && s->view && !s->drawn)
		rc = compute(s, (enum call)which, metric, text, &c, value, err);
	else
		*value = 1;
	loom__constraint_free(&c);
	free(text);
	return rc;
}

static int evaluate(const struct sweep *s, double *value, struct loom_error *err)
{
	return loom__expression(s->claim->text, call, s, value, err);
}

int loom__claim_check(const struct loom__claim *c, const struct loom__factor *factor, size_t factors,
		      struct loom_error *err)
{
	double value;
	return evaluate(&(struct sweep){.claim = c, .factor = factor, .factors = factors}, &value, err);
}

/* Returns the factors of a view in the form that a conf gives. The strings belong to the document. */
static struct loom__factor *factors_of(const struct loom__view *view)
{
	struct loom__factor *list = loom__must(calloc(view->factors + 1, sizeof(*list)));
	for (size_t f = 0; f < view->factors; f++) {
		const cJSON *value, *values = loom__view_values(view, f);
		list[f].key = (char *)(uintptr_t)view->factor[f];
		list[f].value = loom__must(calloc(loom__json_length(values) + 1, sizeof(char *)));
		cJSON_ArrayForEach(value, values)
		{
			list[f].value[list[f].values++] = (char *)(uintptr_t)loom__json_string(value);
		}
	}
	return list;
}

static int over_view(const struct loom__claim *c, struct sweep *s, const struct loom__view *view, double *value,
		     struct loom_error *err)
{
	struct loom__factor *factor = factors_of(view);
	s->claim = c;
	s->factor = factor;
	s->factors = view->factors;
	int rc = evaluate(s, value, err);
	for (size_t f = 0; f < view->factors; f++)
		free(factor[f].value);
	free(factor);
	if (!rc && isnan(*value) && !s->drawn)
		rc = LOOM__FAIL(err, LOOM_EINVAL, "claim.%s has no finite value", c->name);
	if (rc)
		*value = NAN;
	return rc;
}

int loom__claim_value(const struct loom__claim *c, const struct loom__view *view, double *value, struct loom_error *err)
{
	return over_view(c, &(struct sweep){.view = view}, view, value, err);
}

int loom__claim_metrics(const struct loom__claim *c, const struct loom__view *view,
			void (*fn)(void *arg, const char *metric), void *arg)
{
	double value;
	struct loom_error err;
	return over_view(c, &(struct sweep){.named = fn, .arg = arg}, view, &value, &err);
}

/* ---- marks -------------------------------------------------------------------------------------------- */

#define MOST_MARKS 64 /* limit on the marks of a document, which may come from anywhere */

/* Moves past NAME(...). */
static int take_call(const char **at)
{
	*at += strspn(*at, " abcdefghijklmnopqrstuvwxyz");
	return loom__take(at, "(") && loom__take_group(at);
}

/* Returns the number of calls in CALL, CALL / CALL or 1 - CALL / CALL. Returns 0 for other expressions. *rest is 1 if
 * the expression starts with "1 -". */
static int shape_of(const char *text, int *rest)
{
	const char *at = text;
	*rest = loom__take(&at, "1") && loom__take(&at, "-");
	if (!*rest)
		at = text;
	if (!take_call(&at))
		return 0;
	if (loom__take(&at, "/"))
		return take_call(&at) && loom__take_end(&at) ? 2 : 0;
	return loom__take_end(&at) && !*rest;
}

static void add_mark(const struct loom__claim *c, struct loom__view *view, struct loom__paper_mark *mark, size_t *marks)
{
	struct loom_error err;
	double value;
	int rest, calls = shape_of(c->text, &rest);
	if (!calls)
		return;
	struct drawn d = {
	    {loom__arena_get(&view->arena, view->variants + 1, 1), loom__arena_get(&view->arena, view->variants + 1, 1)},
	    {LOOM__NO_NAME, LOOM__NO_NAME},
	    0};
	if (over_view(c, &(struct sweep){.view = view, .drawn = &d}, view, &value, &err) ||
	    d.calls != (size_t)calls || d.metric[0] == LOOM__NO_NAME || (calls == 2 && d.metric[1] != d.metric[0]))
		return;
	mark[(*marks)++] = (struct loom__paper_mark){.of = d.set[0],
						     .over = calls == 2 ? d.set[1] : NULL,
						     .metric = d.metric[0],
						     .low = rest ? 1 - c->high : c->low,
						     .high = rest ? 1 - c->low : c->high};
}

void loom__figure_marks(const cJSON *paper, struct loom__view *view, struct loom__report_settings *settings)
{
	const cJSON *one, *list = loom__json_list(paper, "claims");
	struct loom__paper_mark *mark = loom__arena_get(&view->arena, MOST_MARKS, sizeof(*mark));
	struct loom_error err;
	settings->mark = mark;
	size_t claims = 0; /* counted, because a document may have any number of claims */
	cJSON_ArrayForEach(one, list)
	{
		if (claims++ == MOST_MARKS)
			break;
		struct loom__claim c = {.name = loom__json_text(one, "name"), .text = loom__json_text(one, "claim")};
		if (settings->marks < MOST_MARKS && !loom__claim_range(loom__json_text(one, "paper"), &c.low, &c.high, &err))
			add_mark(&c, view, mark, &settings->marks);
	}
}
