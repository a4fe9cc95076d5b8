/* SPDX-License-Identifier: Apache-2.0 */
#include "compare/rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/view/document.h"
#include "facts/must.h"
#include "facts/token.h"

/* ---- gates ---------------------------------------------------------------------------------------- */

int loom__gate_rule_parse(const char *text, struct loom__gate_rule *out, struct loom_error *err)
{
	const char *at = text;
	struct loom__gate_rule r = {.text = text};
	int good = loom__take_until(&at, ": \t", r.metric, sizeof(r.metric)) && loom__take(&at, ":");
	r.faster = good && loom__take(&at, "faster");
	good =
	    good && (r.faster || loom__take(&at, "slower")) && loom__take(&at, ">") && loom__take_number(&at, &r.limit);
	if (good && loom__take(&at, "%"))
		r.limit /= 100;
	if (!good || !loom__take_end(&at) || !(r.limit >= 0) || r.limit > 100)
		return LOOM__FAIL(err, LOOM_EINVAL, "--fail-on '%s': not of the form 'METRIC: slower > 3%%'", text);
	*out = r;
	return 0;
}

/* Returns 1 if the comparison breaks the rule. Judges it again, with the rule's limit as margin. */
static int beyond(const cJSON *c, const struct loom__gate_rule *r, double alpha)
{
	double low = loom__json_number(c, "low"), high = loom__json_number(c, "high");
	double p = loom__json_number(c, "p_holm");
	struct loom__stats_comparison s = {.paired = 1};
	s.ratio.low = low > 0 ? low : 0;
	s.ratio.high = high > 0 ? high : INFINITY;
	if (isnan(p))
		return 0;
	int more = !strcmp(loom__json_text(c, "better"), "more");
	enum loom__stats_verdict v = loom__stats_judge(
		&s, p, more ? LOOM__STATS_MORE : LOOM__STATS_LESS, r->limit, alpha);
	return v == (r->faster ? LOOM__STATS_FASTER : LOOM__STATS_SLOWER);
}

/* Returns how much slower (or faster, if the rule says so) the variant is than the baseline. 0.03 means 3 %. */
static double amount(const cJSON *c, const struct loom__gate_rule *r, const char *key)
{
	double ratio = loom__json_number(c, key);
	int more = !strcmp(loom__json_text(c, "better"), "more");
	return more == r->faster ? ratio - 1 : 1 / ratio - 1;
}

static void check(const cJSON *doc, const struct loom__gate_rule *r, double alpha, int *failed,
		  int *undecided, struct loom__text *text)
{
	const cJSON *c;
	const char *word = r->faster ? "faster" : "slower";
	int seen = 0;
	cJSON_ArrayForEach(c, loom__json_list(doc, "comparisons"))
	{
		const char *metric = loom__json_text(c, "metric");
		int every = !strcmp(r->metric, "*");
		if (!every && strcmp(metric, r->metric))
			continue;
		seen = 1;
		double by = amount(c, r, "effect");
		const char *label =
			loom__compare_label(doc, (size_t)loom__json_number(c, "variant"));
		const char *gap = text->length ? "; " : "";
		char of[LOOM__COMPARE_NAME + 8] = ""; /* a rule for each metric names the metric */
		if (every)
			snprintf(of, sizeof(of), "%.*s: ", LOOM__COMPARE_NAME, metric);
		if (beyond(c, r, alpha)) {
			*failed = 1;
			loom__text_add(text, "%s%s%s is %.1f %% %s", gap, of, label, 100 * by, word);
		} else if (isnan(by)) {
			*undecided = 1;
			loom__text_add(text, "%s%s%s cannot be judged", gap, of, label);
		} else if (by > r->limit) {
			*undecided = 1;
			loom__text_add(text, "%s%s%s seems %.1f %% %s, but not with certainty beyond the "
					     "limit",
				       gap, of, label, 100 * by, word);
		}
	}
	if (!seen) {
		*undecided = 1;
		loom__text_add(text, "no comparison of %s", r->metric);
	}
	if (!text->length)
		loom__text_add(text, "no difference beyond the limit");
}

void loom__compare_gate(cJSON *doc, const struct loom__gate_rule *rule, size_t rules, size_t *failed,
		       size_t *undecided)
{
	cJSON *list = loom__json_add_array(doc, "gate");
	double alpha = loom__json_number(loom__json_object(doc, "design"), "alpha");
	*failed = *undecided = 0;
	for (size_t i = 0; i < rules; i++) {
		struct loom__text text = {0};
		int fails = 0, unsure = 0;
		check(doc, &rule[i], alpha, &fails, &unsure, &text);
		*failed += fails;
		*undecided += unsure && !fails;
		cJSON *o = loom__json_append_object(list);
		loom__json_add_text(o, "rule", rule[i].text);
		loom__json_add_bool(o, "failed", fails);
		loom__json_add_bool(o, "undecided", unsure && !fails);
		loom__json_add_text(o, "text", loom__must_text(&text));
		loom__text_free(&text);
	}
}

/* ---- bars ----------------------------------------------------------------------------------------- */

/* Parses "metric(label)". The label may contain anything but a closing parenthesis. */
static int take_term(const char **at, char metric[LOOM__COMPARE_NAME], char label[LOOM__BAR_LABELS])
{
	return loom__take_until(at, "( \t", metric, LOOM__COMPARE_NAME) && loom__take(at, "(") &&
	       loom__take_until(at, ")", label, LOOM__BAR_LABELS) && loom__take(at, ")");
}

int loom__bar_parse(const char *text, struct loom__bar *out, struct loom_error *err)
{
	struct loom__bar b = {0};
	char again[LOOM__COMPARE_NAME];
	const char *at = text;
	int good = loom__take_until(&at, ": \t", b.figure, sizeof(b.figure)) && loom__take(&at, ":") &&
		   take_term(&at, b.metric, b.of);
	if (good && loom__take(&at, "/"))
		good = take_term(&at, again, b.by) && !strcmp(again, b.metric);
	b.relation = !good ? "" : loom__take(&at, "<=") ? "<=" : loom__take(&at, ">=") ? ">=" : "";
	if (!good || (*b.relation && !loom__take_number(&at, &b.target)) || !loom__take_end(&at))
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "--bar '%s': not of the form 'NAME: METRIC(LABEL) / METRIC(LABEL) >= NUMBER' "
				  "(or without '/ METRIC(LABEL)' or the target; or <=; or LABEL | LABEL, the better of them)",
				  text);
	*out = b;
	return 0;
}

static int find_label(const cJSON *doc, const char *label, size_t *variant, struct loom_error *err)
{
	struct loom__near near = {.word = label};
	size_t n = loom__compare_variants(doc);
	for (size_t v = 0; v < n; v++) {
		const char *own = loom__compare_label(doc, v);
		if (!strcmp(own, label)) {
			*variant = v;
			return 0;
		}
		loom__nearer(&near, own);
	}
	return LOOM__FAIL(err, LOOM_EINVAL, "--bar: no variant is labelled '%s'%s%s%s", label, LOOM__MEANT(near.name));
}

/* Returns NAN if a value is not finite. */
static double median(const double *x, size_t n)
{
	double *sorted, m;
	if (loom__stats_sorted(x, n, &sorted))
		return NAN;
	m = loom__stats_quantile(sorted, n, 0.5);
	free(sorted);
	return m;
}

/* Lists one value of the metric for each block, or for each sample if the results are from files. */
static int values_of(const cJSON *doc, const struct loom__bar *b, size_t variant, double **x, size_t *n, struct loom_error *err)
{
	*x = NULL;
	if (loom__compare_blocks(doc, variant, b->metric, loom__compare_better(doc, b->metric), x, n))
		*n = loom__compare_values(doc, variant, b->metric, x);
	if (isfinite(median(*x, *n)))
		return 0;
	free(*x);
	*x = NULL;
	return LOOM__FAIL(err, LOOM_EINVAL, "--bar %s: no metric '%s' in %.100s", b->figure, b->metric,
			  loom__compare_label(doc, variant));
}

/* Takes the values of the variant that `labels` names. Of several labels it takes the variant with the best median. */
static int best_of(const cJSON *doc, const struct loom__bar *b, const char *labels, size_t *variant, double **x, size_t *n,
		   struct loom_error *err)
{
	int more = loom__compare_better(doc, b->metric) == LOOM_BETTER_MORE, rc = 0;
	char label[LOOM__BAR_LABELS];
	*x = NULL;
	for (const char *at = labels; !rc && loom__take_until(&at, "|", label, sizeof(label)); loom__take(&at, "|")) {
		size_t v = 0, m = 0;
		double *y = NULL;
		rc = find_label(doc, label, &v, err);
		rc = rc ? rc : values_of(doc, b, v, &y, &m, err);
		if (rc)
			break;
		int better = !*x || (median(y, m) > median(*x, *n)) == more;
		free(better ? *x : y);
		if (better) {
			*x = y;
			*n = m;
			*variant = v;
		}
	}
	return rc || *x ? rc : LOOM__FAIL(err, LOOM_EINVAL, "--bar %s: a label is empty", b->figure);
}

/* Adds the variant that a ratio divides, or divides by, with its median. */
static void add_side(cJSON *o, const char *key, const cJSON *doc, size_t variant, const double *x, size_t n)
{
	cJSON *side = loom__json_add_object(o, key);
	loom__json_add_text(side, "variant", loom__compare_label(doc, variant));
	loom__json_add_number(side, "median", median(x, n));
}

/* Sets x[n] to the values of the figure, and adds its unit to o, which is "" for a ratio. */
static int bar_values(const cJSON *doc, const struct loom__bar *b, double **x, size_t *n, cJSON *o, struct loom_error *err)
{
	double *y = NULL;
	size_t of = 0, by = 0, m = 0;
	int rc = best_of(doc, b, b->of, &of, x, n, err);
	if (!rc && *b->by)
		rc = best_of(doc, b, b->by, &by, &y, &m, err);
	const char *unit = rc ? "" : loom__json_text(loom__compare_metric_of(doc, of, b->metric), "unit");
	loom__json_add_text(o, "unit", *b->by ? "" : unit);
	if (rc || !*b->by)
		return rc;
	loom__json_add_text(o, "metric_unit", unit);
	add_side(o, "of", doc, of, *x, *n);
	add_side(o, "by", doc, by, y, m);
	if (strcmp(unit, loom__json_text(loom__compare_metric_of(doc, by, b->metric), "unit")))
		rc = LOOM__FAIL(err, LOOM_EINVAL, "--bar %s: '%s' has different units in %.100s and %.100s", b->figure, b->metric,
				loom__compare_label(doc, of), loom__compare_label(doc, by));
	else if (loom__json_true(loom__json_object(doc, "design"), "interleaved"))
		for (size_t i = 0; i < *n; i++)
			(*x)[i] /= y[i < m ? i : m - 1];
	else { /* the samples of files are not pairs */
		(*x)[0] = median(*x, *n) / median(y, m);
		*n = 1;
	}
	free(y);
	return rc;
}

int loom__compare_bars(cJSON *doc, const struct loom__bar *bar, size_t bars, struct loom__text *out,
		       struct loom_error *err)
{
	cJSON *list = loom__json_add_array(doc, "bars");
	for (const struct loom__bar *b = bar; b < bar + bars; b++) {
		struct loom__stats_interval is;
		double *x = NULL;
		size_t n = 0;
		cJSON *o = loom__must(cJSON_CreateObject());
		int rc = bar_values(doc, b, &x, &n, o, err);
		if (rc) {
			free(x);
			cJSON_Delete(o);
			return rc;
		}
		loom__json_append(list, o);
		loom__json_add(o, "values", cJSON_CreateDoubleArray(x, (int)n));
		double value = median(x, n);
		loom__stats_sort(x, n);
		if (loom__stats_quantile_ci(x, n, 0.5, 0.95, &is))
			is.open = LOOM__STATS_OPEN_LOW | LOOM__STATS_OPEN_HIGH;
		free(x);
		loom__json_add_text(o, "figure", b->figure);
		loom__json_add_number(o, "value", value);
		loom__json_add_number(o, "low", is.open & LOOM__STATS_OPEN_LOW ? NAN : is.low);
		loom__json_add_number(o, "high", is.open & LOOM__STATS_OPEN_HIGH ? NAN : is.high);
		if (!*b->relation) {
			loom__text_add(out, "figure %s %.6g\n", b->figure, value);
			continue;
		}
		int met = *b->relation == '<' ? value <= b->target : value >= b->target;
		loom__json_add_text(o, "relation", b->relation);
		loom__json_add_number(o, "target", b->target);
		loom__json_add_bool(o, "met", met);
		loom__text_add(out, "bar %s %.4g %s %.6g %s\n", b->figure, value, b->relation, b->target, met ? "ok" : "short");
	}
	return 0;
}
