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

const char *const loom__claim_verdict_name[] = {"not run here", "same",      "smaller",           "larger",
						"opposite",     "undecided", "not like for like"};

#define TOLERANCE 0.10 /* tolerance of a paper's value that has none, as a share of the value */
#define BEYOND    0.01 /* an effect has a direction only if it differs from the neutral value by at least this share */
#define RESAMPLES 1000 /* of the bootstrap */
#define SIDES     0.05 /* probability that the bootstrap leaves on both sides of the interval */

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
			  "1.04 .. 1.58", text);
}

enum loom__claim_verdict loom__claim_judge(const struct loom__claim *c, const struct loom__claim_value *v)
{
	double n = c->neutral, far = BEYOND * fmax(fabs(n), fabs(v->at));
	if (isnan(v->at))
		return LOOM__CLAIM_NOT_RUN;
	if (*c->incomparable)
		return LOOM__CLAIM_NOT_ALIKE;
	if (v->samples < LOOM__CLAIM_SAMPLES)
		return LOOM__CLAIM_UNDECIDED;
	if (v->low >= c->low && v->high <= c->high)
		return LOOM__CLAIM_SAME;
	/* Comparisons with n are 0 if n is NAN. */
	if ((v->low <= c->high && v->high >= c->low) || (v->low <= n && v->high >= n))
		return LOOM__CLAIM_UNDECIDED;
	/* A range that ends at the neutral value has a direction, too. */
	int above = c->low >= n, below = c->high <= n;
	if ((above && v->at < n - far) || (below && v->at > n + far))
		return LOOM__CLAIM_OPPOSITE;
	return (v->at < c->low) != below ? LOOM__CLAIM_SMALLER : LOOM__CLAIM_LARGER;
}

/* ---- its value here ------------------------------------------------------------------------------- */

enum call { AT, GEOMEAN, MEAN, MIN, MAX, CALLS };
static const char *const call_name[CALLS] = {"at", "geomean", "mean", "min", "max"};

#define MOST_CALLS 16

/* The configurations that the calls of an expression select, in the order of the calls. */
struct picks {
	struct pick {
		enum call call;
		size_t metric, n, *variant; /* variant: [n], owned; all have samples of the metric */
	} at[MOST_CALLS];
	size_t n;
	size_t next;       /* number of the call, if the expression is evaluated again */
	uint64_t resample; /* number of the resample, from 1; 0: the samples themselves */
};

struct sweep {
	const struct loom__claim *claim;
	const struct loom__view *view; /* the results; NULL: the expression is only checked */
	const struct loom__factor *factor;
	size_t factors;
	struct picks *picks;
};

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

/* Returns the median of a metric in a configuration, or that of samples that are drawn from it. */
static double median(const struct sweep *s, size_t variant, size_t metric)
{
	const struct loom__series *of = &s->view->variant[variant].series[metric];
	if (!s->picks->resample)
		return of->median.at;
	/* In each round of a sweep the configurations take turns. The same rounds are drawn for all of them, so that a
	 * time in which the machine was slow counts on both sides of a ratio. */
	struct loom__stats_rng rng = {s->picks->resample << 32};
	double *drawn = loom__must(calloc(of->n, sizeof(*drawn)));
	for (size_t i = 0; i < of->n; i += isfinite(drawn[i]) != 0)
		drawn[i] = of->value[loom__stats_below(&rng, of->rows)];
	loom__stats_sort(drawn, of->n);
	double m = loom__stats_quantile(drawn, of->n, 0.5);
	free(drawn);
	return m;
}

/* Combines the medians of the configurations by the function of the call. */
static double combined(const struct sweep *s, const struct pick *p)
{
	double *v = loom__must(calloc(p->n, sizeof(*v)));
	for (size_t i = 0; i < p->n; i++)
		v[i] = median(s, p->variant[i], p->metric);
	double x = combine(p->call, v, p->n);
	free(v);
	return x;
}

/* Finds the configurations that a call selects. */
static int pick(const struct sweep *s, enum call call, const char *metric, const char *text,
		const struct loom__constraint *c, struct loom_error *err)
{
	const struct loom__view *view = s->view;
	size_t m = loom__names_find(&view->metric_names, metric), matches = 0;
	if (m == LOOM__NO_NAME && view->metrics) {
		const char *near = loom__nearest(metric, view->metric_names.name, view->metrics);
		return LOOM__FAIL(err, LOOM_EINVAL, "%s(%.200s): no metric '%.60s' in this sweep%s%s%s",
				  call_name[call], text, metric, LOOM__MEANT(near));
	}
	if (s->picks->n == MOST_CALLS)
		return LOOM__FAIL(err, LOOM_EINVAL, "%s(%.200s): a claim has at most %d calls", call_name[call], text,
				  MOST_CALLS);
	struct pick *p = &s->picks->at[s->picks->n++];
	*p = (struct pick){call, m, 0, loom__must(calloc(view->variants + 1, sizeof(size_t)))};
	const char *note = "";
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *variant = &view->variant[i];
		if (!is_match(s, c, variant))
			continue;
		matches += strcmp(variant->status, "skipped") != 0;
		note = *variant->note ? variant->note : note;
		if (m != LOOM__NO_NAME && variant->series && variant->series[m].n)
			p->variant[p->n++] = i;
	}
	if (!matches && view->variants)
		return LOOM__FAIL(err, LOOM_EINVAL, "%s(%.200s): no configuration of this sweep matches",
				  call_name[call], text);
	if (call == AT && matches > 1)
		return LOOM__FAIL(
		    err, LOOM_EINVAL,
		    "at(%.200s): %zu configurations match: give more factors, or write geomean, mean, min or max", text,
		    matches);
	return p->n ? 0
		    : LOOM__FAIL(err, LOOM_EUNAVAIL, "%s(%.200s): no sample%s%.300s", call_name[call], text,
				 *note ? ": " : "", note);
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
	if (s->picks && s->picks->resample) {
		*value = combined(s, &s->picks->at[s->picks->next++]);
		return 0;
	}
	char *text = loom__must(strndup(arguments, length)), metric[80];
	const char *rest = text;
	int rc = 0, named = loom__take_until(&rest, ",", metric, sizeof(metric));
	if (named && loom__take(&rest, ","))
		rest += strspn(rest, " ");
	if (!named || strchr(metric, '='))
		rc = LOOM__FAIL(err, LOOM_EINVAL, "%s(%.200s): write %s(METRIC, FACTOR=VALUE, ...)", name, text, name);
	else if (*rest && loom__constraint_parse(rest, s->view ? "" : "claim", 1, s->factor, s->factors, &c, err))
		/* If there is a view, the conf has been checked already. So a value that is missing was left out on the
		 * command line, or by the file `cpu`. */
		rc = err->code = s->view ? LOOM_EUNAVAIL : LOOM_EINVAL;
	*value = 1;
	if (!rc && s->view)
		rc = pick(s, (enum call)which, metric, text, &c, err);
	if (!rc && s->view)
		*value = combined(s, &s->picks->at[s->picks->n - 1]);
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

/* Computes the interval by the bootstrap: evaluates the expression for samples that are drawn, with replacement, from
 * those of each configuration. In virtual time, samples have no noise. */
static void resample(const struct sweep *s, struct loom__claim_value *v)
{
	double *x = loom__must(calloc(RESAMPLES, sizeof(*x)));
	size_t n = 0;
	struct loom_error err;
	for (uint64_t k = 1; k <= RESAMPLES; k++) {
		s->picks->resample = k;
		s->picks->next = 0;
		if (!evaluate(s, &x[n], &err) && isfinite(x[n]))
			n++;
	}
	loom__stats_sort(x, n);
	if (n) {
		v->low = fmin(v->at, loom__stats_quantile(x, n, SIDES / 2));
		v->high = fmax(v->at, loom__stats_quantile(x, n, 1 - SIDES / 2));
	}
	free(x);
}

static void free_picks(struct picks *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->at[i].variant);
}

/* Computes the value without its interval, and what the calls select. The caller frees the picks. */
static int over_view(struct sweep *s, double *value, struct loom_error *err)
{
	struct loom__factor *factor = factors_of(s->view);
	s->factor = factor;
	s->factors = s->view->factors;
	int rc = evaluate(s, value, err);
	for (size_t f = 0; f < s->view->factors; f++)
		free(factor[f].value);
	free(factor);
	if (!rc && isnan(*value))
		rc = LOOM__FAIL(err, LOOM_EINVAL, "claim.%s has no finite value", s->claim->name);
	return rc;
}

int loom__claim_value(const struct loom__claim *c, const struct loom__view *view, struct loom__claim_value *v,
		      struct loom_error *err)
{
	struct picks picks = {0};
	struct sweep s = {.claim = c, .view = view, .picks = &picks};
	int rc = over_view(&s, &v->at, err);
	if (rc)
		v->at = NAN;
	v->low = v->high = v->at;
	v->samples = SIZE_MAX;
	if (!rc && !loom__head_simulated(view->head)) {
		for (size_t i = 0; i < picks.n; i++)
			for (size_t k = 0; k < picks.at[i].n; k++) {
				size_t n = view->variant[picks.at[i].variant[k]].series[picks.at[i].metric].n;
				v->samples = n < v->samples ? n : v->samples;
			}
		resample(&s, v);
	}
	free_picks(&picks);
	return rc;
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
	struct picks p = {0};
	unsigned char *set[2];
	if (!over_view(&(struct sweep){.claim = c, .view = view, .picks = &p}, &value, &err) && p.n == (size_t)calls) {
		int drawable = p.at[calls - 1].metric == p.at[0].metric;
		for (size_t i = 0; i < p.n; i++) {
			drawable &= p.at[i].call == AT || p.at[i].call == GEOMEAN; /* plots show no other means */
			set[i] = loom__arena_get(&view->arena, view->variants + 1, 1);
			for (size_t k = 0; k < p.at[i].n; k++)
				set[i][p.at[i].variant[k]] = 1;
		}
		if (drawable)
			mark[(*marks)++] = (struct loom__paper_mark){.of = set[0],
								     .over = calls == 2 ? set[1] : NULL,
								     .metric = p.at[0].metric,
								     .low = rest ? 1 - c->high : c->low,
								     .high = rest ? 1 - c->low : c->high};
	}
	free_picks(&p);
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
		if (settings->marks < MOST_MARKS &&
		    !loom__claim_range(loom__json_text(one, "paper"), &c.low, &c.high, &err))
			add_mark(&c, view, mark, &settings->marks);
	}
}
