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
static int take_term(const char **at, char metric[LOOM__COMPARE_NAME], char label[96])
{
	return loom__take_until(at, "( \t", metric, LOOM__COMPARE_NAME) && loom__take(at, "(") &&
	       loom__take_until(at, ")", label, 96) && loom__take(at, ")");
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
	b.at_most = good && loom__take(&at, "<=");
	if (!good || !(b.at_most || loom__take(&at, ">=")) || !loom__take_number(&at, &b.target) ||
	    !loom__take_end(&at))
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "--bar '%s': not of the form 'NAME: METRIC(LABEL) / METRIC(LABEL) >= NUMBER' "
				  "(or without the '/ METRIC(LABEL)'; or <=)",
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

static int median(const cJSON *doc, size_t variant, const char *metric, double *out)
{
	double *x;
	size_t n = loom__compare_values(doc, variant, metric, &x);
	if (n)
		*out = loom__median_of(x, n);
	free(x);
	return n ? 0 : LOOM_ENOENT;
}

static int ratio(const cJSON *doc, size_t of, size_t by, const char *metric, double *out)
{
	double *a = NULL, *b = NULL, x, y;
	size_t n, m;
	enum loom_better better = loom__compare_better(doc, metric);
	int rc = loom__compare_blocks(doc, of, metric, better, &a, &n);
	if (!rc)
		rc = loom__compare_blocks(doc, by, metric, better, &b, &m);
	if (!rc) {
		for (size_t i = 0; i < n; i++)
			a[i] /= b[i];
		*out = loom__median_of(a, n);
	} else { /* the results are from files, so there are no blocks */
		rc = median(doc, of, metric, &x) || median(doc, by, metric, &y);
		if (!rc)
			*out = x / y;
	}
	free(a);
	free(b);
	return rc;
}

int loom__compare_bars(cJSON *doc, const struct loom__bar *bar, size_t bars, struct loom__text *out,
		       struct loom_error *err)
{
	cJSON *list = loom__json_add_array(doc, "bars");
	for (size_t i = 0; i < bars; i++) {
		const struct loom__bar *b = &bar[i];
		size_t of = 0, by = 0;
		double value = NAN;
		int rc = find_label(doc, b->of, &of, err);
		if (!rc && *b->by)
			rc = find_label(doc, b->by, &by, err);
		if (rc)
			return rc;
		const char *unit = loom__json_text(loom__compare_metric_of(doc, of, b->metric), "unit");
		if (*b->by && strcmp(unit, loom__json_text(loom__compare_metric_of(doc, by, b->metric), "unit")))
			return LOOM__FAIL(err, LOOM_EINVAL, "--bar %s: '%s' has different units in %.100s and %.100s",
					  b->figure, b->metric, b->of, b->by);
		rc = *b->by ? ratio(doc, of, by, b->metric, &value) : median(doc, of, b->metric, &value);
		if (rc || !isfinite(value))
			return LOOM__FAIL(err, LOOM_EINVAL, "--bar %s: no metric '%s'", b->figure,
					  b->metric);
		int met = b->at_most ? value <= b->target : value >= b->target;
		cJSON *o = loom__json_append_object(list);
		loom__json_add_text(o, "figure", b->figure);
		loom__json_add_number(o, "value", value);
		loom__json_add_text(o, "relation", b->at_most ? "<=" : ">=");
		loom__json_add_number(o, "target", b->target);
		loom__json_add_bool(o, "met", met);
		loom__text_add(out, "bar %s %.4g %s %.6g %s\n", b->figure, value,
			       b->at_most ? "<=" : ">=", b->target, met ? "ok" : "short");
	}
	return 0;
}
