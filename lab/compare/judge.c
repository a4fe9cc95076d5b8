/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "report/view/document.h"
#include "facts/environment.h"
#include "facts/must.h"

int loom__compare_metric_parse(const char *text, struct loom__compare_metric *out, struct loom_error *err)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	if (!n || n >= sizeof(out->name))
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s' is not the name of a metric", text);
	*out = (struct loom__compare_metric){.better = LOOM_BETTER_NONE};
	memcpy(out->name, text, n);
	if (!colon)
		return 0;
	out->better = !strcmp(colon + 1, "more")   ? LOOM_BETTER_MORE
		      : !strcmp(colon + 1, "less") ? LOOM_BETTER_LESS
						   : LOOM_BETTER_NONE;
	if (out->better)
		return 0;
	return LOOM__FAIL(err, LOOM_EINVAL, "'%s': expected more or less after the colon", text);
}

/* A comparison before the verdict: one metric of one variant against the first variant. */
struct pair {
	const struct loom__compare_metric *metric;
	size_t variant;
	const char *unit;
	enum loom_better better;
	struct loom__stats_comparison c;
	int known;      /* 1: c is valid */
	double *ratio;  /* [blocks] variant / baseline in each block */
	char note[300]; /* the reason for a missing result, or a caveat */
};

/* Sets the unit and the direction, each taken from the first variant that gives it. */
static void describe(const cJSON *doc, struct pair *p)
{
	p->unit = "";
	p->better = p->metric->better ? p->metric->better : loom__compare_better(doc, p->metric->name);
	for (size_t v = 0; v < loom__compare_variants(doc) && !*p->unit; v++)
		p->unit = loom__json_text(loom__compare_metric_of(doc, v, p->metric->name), "unit");
}

static void explain(struct pair *p, const cJSON *doc, int rc)
{
	size_t lacking = loom__compare_metric_of(doc, 0, p->metric->name) ? p->variant : 0;
	if (rc == LOOM_ENOENT)
		snprintf(p->note, sizeof(p->note), "not in all samples of %s", loom__compare_label(doc, lacking));
	else if (rc == LOOM_EINVAL)
		snprintf(p->note, sizeof(p->note), "no ratios: some values are not positive");
	else
		snprintf(p->note, sizeof(p->note), "out of memory");
}

static int compare_paired(const cJSON *doc, struct pair *p, double level)
{
	double *a = NULL, *b = NULL;
	size_t n = 0, m = 0;
	int rc = loom__compare_blocks(doc, 0, p->metric->name, p->better, &a, &n);
	if (!rc)
		rc = loom__compare_blocks(doc, p->variant, p->metric->name, p->better, &b, &m);
	if (!rc)
		rc = loom__stats_compare(a, b, n, level, &p->c);
	for (size_t i = 0; i < n && !rc; i++)
		b[i] /= a[i];
	free(a);
	if (rc) {
		free(b);
		return rc;
	}
	p->ratio = b;
	return 0;
}

static int compare_unpaired(const cJSON *doc, struct pair *p, double level)
{
	double *a = NULL, *b = NULL;
	size_t n = loom__compare_values(doc, 0, p->metric->name, &a);
	size_t m = loom__compare_values(doc, p->variant, p->metric->name, &b);
	int rc = n && m ? loom__stats_compare_unpaired(a, n, b, m, level, &p->c) : LOOM_ENOENT;
	free(a);
	free(b);
	if (!rc)
		snprintf(p->note, sizeof(p->note), "not interleaved");
	return rc;
}

static void add_bound(cJSON *o, const char *name, double value, int known)
{
	if (known && value > 0 && isfinite(value))
		loom__json_add_number(o, name, value);
	else
		loom__json_add_null(o, name);
}

static void add_interval(cJSON *o, const struct loom__stats_interval *i, int known)
{
	add_bound(o, "effect", i->at, known);
	add_bound(o, "low", i->low, known && !(i->open & LOOM__STATS_OPEN_LOW));
	add_bound(o, "high", i->high, known && !(i->open & LOOM__STATS_OPEN_HIGH));
}

static const char *verdict(const struct pair *p, double p_holm, double margin, double alpha)
{
	if (!p->known || !p->better)
		return loom__stats_verdict_name(LOOM__STATS_INCONCLUSIVE);
	enum loom__stats_better better = p->better == LOOM_BETTER_MORE ? LOOM__STATS_MORE : LOOM__STATS_LESS;
	return loom__stats_verdict_name(loom__stats_judge(&p->c, p_holm, better, margin, alpha));
}

/* Appends the result of one comparison. `family` is the number of comparisons that share alpha. `share` is the number
 * of blocks that the statistics count as one block. */
static void add_comparison(cJSON *list, const struct pair *p, double p_holm, size_t family, double share, double margin,
			   double alpha)
{
	cJSON *o = loom__json_append_object(list), *notes;
	const char *word = verdict(p, p_holm, margin, alpha);
	loom__json_add_text(o, "metric", p->metric->name);
	loom__json_add_text(o, "unit", p->unit);
	loom__json_add_text(o, "better", loom__better_name(p->better));
	loom__json_add_number(o, "baseline", 0);
	loom__json_add_number(o, "variant", (double)p->variant);
	add_interval(o, &p->c.ratio, p->known);
	if (p->known) {
		loom__json_add_number(o, "p", p->c.test.p);
		loom__json_add_number(o, "p_holm", p_holm);
	} else {
		loom__json_add_null(o, "p");
		loom__json_add_null(o, "p_holm");
	}
	loom__json_add_text(o, "verdict", word);
	loom__json_add_number(o, "blocks", p->known && p->c.paired ? (double)p->c.n : 0);
	size_t more = p->known ? loom__stats_more_blocks(&p->c, margin, alpha, family) : 0;
	if (strcmp(word, "INCONCLUSIVE"))
		loom__json_add_number(o, "more_blocks", 0);
	else if (more && more != LOOM__STATS_MANY && p->better)
		loom__json_add_number(o, "more_blocks", share * (double)more);
	else
		loom__json_add_null(o, "more_blocks");
	loom__json_add_number(o, "margin", margin);
	notes = loom__json_add_array(o, "notes");
	if (*p->note)
		loom__json_append_text(notes, p->note);
	if (p->known && !p->better)
		loom__json_append_text(notes, "the better direction is not known");
	loom__json_add(o, "ratios", p->ratio ? cJSON_CreateDoubleArray(p->ratio, (int)p->c.n) : cJSON_CreateArray());
}

/* Adds warnings about unusual samples to doc, and the number of outliers to `far`. x[n] are in run order. `more` names what the
 * user should increase. */
static void look_at(cJSON *doc, const char *metric, const char *label, const char *more, const double *x, size_t n,
		    struct loom__text *far)
{
	double *sorted = NULL, z;
	struct loom__stats_modes modes;
	if (n < 10 || loom__stats_sorted(x, n, &sorted))
		return;
	size_t out = loom__stats_far_out(sorted, n);
	if (out)
		loom__text_add(far, far->length ? ", %zu of %zu of %s" : "%zu of %zu samples of %s", out, n, label);
	if (!loom__stats_first(x, n, &z) && fabs(z) > LOOM__STATS_FIRST_UNUSUAL)
		loom__compare_warn(doc, "first_sample",
				   "%s: the first sample of %s differs from the others: more %s may help", metric,
				   label, more);
	if (!loom__stats_modes(x, n, &modes) && modes.two)
		loom__compare_warn(doc, "two_modes", "%s: the samples of %s form two groups, %zu low and %zu high",
				   metric, label, modes.lower, n - modes.lower);
	free(sorted);
}

/* Adds a warning for all outliers of a metric, and frees `far`. */
static void warn_far(cJSON *doc, const char *metric, struct loom__text *far)
{
	if (far->length)
		loom__compare_warn(doc, "far_out", "%s: %s are outliers (kept)", metric, loom__must_text(far));
	loom__text_free(far);
}

static void look(cJSON *doc, const char *metric)
{
	struct loom__text far = {0};
	for (size_t v = 0; v < loom__compare_variants(doc); v++) {
		double *x;
		size_t n = loom__compare_values(doc, v, metric, &x);
		look_at(doc, metric, loom__compare_label(doc, v), "--warmup", x, n, &far);
		free(x);
	}
	warn_far(doc, metric, &far);
}

void loom__result_warn(cJSON *result)
{
	static const char *const metric[] = {"seconds", "cpu_seconds"};
	const cJSON *e = loom__json_object(result, "environment"), *o;
	cJSON *reasons = cJSON_CreateArray();
	loom__environment_disturbed(loom__json_object(e, "before"), loom__json_object(e, "after"), reasons);
	cJSON_ArrayForEach(o, reasons)
	{
		loom__compare_warn(result, "not_quiet", "%s", loom__json_string(o));
	}
	cJSON_Delete(reasons);
	for (size_t i = 0; i < LOOM__COUNT(metric); i++) {
		struct loom__text far = {0};
		double *x;
		size_t n =
		    loom__compare_samples(loom__json_object(loom__json_object(result, "metrics"), metric[i]), &x);
		look_at(result, metric[i], "this run", "warm-up, [run] warmup,", x, n, &far);
		warn_far(result, metric[i], &far);
		free(x);
	}
}

static int is_new(const struct loom__compare_metric *metric, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (!strcmp(metric[j].name, metric[i].name))
			return 0;
	return 1;
}

int loom__compare_judge(cJSON *doc, const struct loom__compare_metric *metric, size_t metrics, struct loom_error *err)
{
	const cJSON *design = loom__json_object(doc, "design");
	double margin = loom__json_number(design, "margin"), level = loom__json_number(design, "confidence");
	int paired = loom__json_true(design, "interleaved");
	double share = loom__json_number(design, "openings") > 1 ? loom__json_number(design, "blocks_per_opening") : 1;
	size_t variants = loom__compare_variants(doc), n = 0, known = 0;
	struct pair *pair = loom__must(calloc(metrics * variants + 1, sizeof(*pair)));
	double *p = loom__must(calloc(metrics * variants + 1, sizeof(*p)));
	cJSON *list = loom__json_add_array(doc, "comparisons");
	int rc = pair && p && list ? 0 : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	for (size_t m = 0; m < metrics && !rc; m++)
		for (size_t v = 1; v < variants && is_new(metric, m); v++) {
			struct pair *one = &pair[n++];
			*one = (struct pair){.metric = &metric[m], .variant = v};
			describe(doc, one);
			int failed = paired ? compare_paired(doc, one, level) : compare_unpaired(doc, one, level);
			one->known = !failed;
			if (failed)
				explain(one, doc, failed);
			else
				p[known++] = one->c.test.p;
		}
	if (known && !rc && loom__stats_holm(p, known, p))
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	size_t next = 0;
	for (size_t i = 0; i < n; i++) {
		if (!rc)
			add_comparison(list, &pair[i], pair[i].known ? p[next++] : 1, known ? known : 1, share, margin,
				       1 - level);
		free(pair[i].ratio);
	}
	for (size_t m = 0; m < metrics && !rc; m++)
		if (is_new(metric, m))
			look(doc, metric[m].name);
	free(pair);
	free(p);
	return rc;
}

/* Sets how a saved comparison is judged, as a new one with these options would be. */
static void set_design(cJSON *design, const struct loom__compare_about *about)
{
	static const char *const key[] = {"confidence", "alpha", "margin", "per_block"};
	for (size_t i = 0; i < LOOM__COUNT(key); i++)
		cJSON_DeleteItemFromObjectCaseSensitive(design, key[i]);
	loom__compare_add_rule(design, about);
}

int loom__compare_again(cJSON *doc, const struct loom__compare_about *about, const struct loom__compare_metric *metric,
			size_t metrics, struct loom_error *err)
{
	static const char *const of_judge[] = {"comparisons", "gate", "bars"};
	cJSON *warnings = cJSON_GetObjectItemCaseSensitive(doc, "warnings"),
	      *w = cJSON_IsArray(warnings) ? warnings->child : NULL;
	if (!loom__json_length(loom__json_list(doc, "comparisons")) || !loom__json_object(doc, "design") ||
	    !cJSON_IsArray(warnings))
		return LOOM__FAIL(err, LOOM_EINVAL, "the saved comparison has no verdicts, because it ended too early or failed: run it again");
	for (cJSON *next; w; w = next) { /* those of look_at() */
		const char *id = loom__json_text(w, "id");
		next = w->next;
		if (!strcmp(id, "far_out") || !strcmp(id, "first_sample") || !strcmp(id, "two_modes"))
			cJSON_Delete(cJSON_DetachItemViaPointer(warnings, w));
	}
	if (about)
		set_design(cJSON_GetObjectItemCaseSensitive(doc, "design"), about);
	for (size_t i = 0; i < (about ? LOOM__COUNT(of_judge) : 1); i++)
		cJSON_DeleteItemFromObjectCaseSensitive(doc, of_judge[i]);
	return loom__compare_judge(doc, metric, metrics, err);
}
