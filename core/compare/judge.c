/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "report/document.h"

int loom__compare_metric_parse(const char *text, struct loom__compare_metric *out,
			       struct loom_error *err)
{
	const char *colon = strchr(text, ':');
	size_t n = colon ? (size_t)(colon - text) : strlen(text);
	if (!n || n >= sizeof(out->name))
		return LOOM__FAIL(err, LOOM_EINVAL, "'%s' names no metric", text);
	*out = (struct loom__compare_metric){.better = LOOM_BETTER_NONE};
	memcpy(out->name, text, n);
	if (!colon)
		return 0;
	out->better = !strcmp(colon + 1, "more") ? LOOM_BETTER_MORE :
		      !strcmp(colon + 1, "less") ? LOOM_BETTER_LESS :
						   LOOM_BETTER_NONE;
	if (out->better)
		return 0;
	return LOOM__FAIL(err, LOOM_EINVAL, "'%s': behind the colon stands more or less", text);
}

/* One comparison to come. */
struct pair {
	const struct loom__compare_metric *metric;
	size_t variant;
	const char *unit;
	enum loom_better better;
	struct loom__stats_comparison c;
	int known;      /* c is valid */
	double *ratio;  /* per block */
	char note[300]; /* why not, or what to bear in mind */
};

/* Unit and direction from the first variant that has them. */
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
		snprintf(p->note, sizeof(p->note), "not in all samples of %s",
			 loom__compare_label(doc, lacking));
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
		cJSON_AddNumberToObject(o, name, value);
	else
		cJSON_AddNullToObject(o, name);
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
	enum loom__stats_better better =
		p->better == LOOM_BETTER_MORE ? LOOM__STATS_MORE : LOOM__STATS_LESS;
	return loom__stats_verdict_name(loom__stats_judge(&p->c, p_holm, better, margin, alpha));
}

static void add_comparison(cJSON *list, const struct pair *p, double p_holm, size_t family,
			   double margin, double alpha)
{
	cJSON *o = cJSON_CreateObject(), *notes;
	const char *word = verdict(p, p_holm, margin, alpha);
	cJSON_AddItemToArray(list, o);
	cJSON_AddStringToObject(o, "metric", p->metric->name);
	cJSON_AddStringToObject(o, "unit", p->unit);
	cJSON_AddStringToObject(o, "better", loom__better_name(p->better));
	cJSON_AddNumberToObject(o, "baseline", 0);
	cJSON_AddNumberToObject(o, "variant", (double)p->variant);
	add_interval(o, &p->c.ratio, p->known);
	if (p->known) {
		cJSON_AddNumberToObject(o, "p", p->c.test.p);
		cJSON_AddNumberToObject(o, "p_holm", p_holm);
	} else {
		cJSON_AddNullToObject(o, "p");
		cJSON_AddNullToObject(o, "p_holm");
	}
	cJSON_AddStringToObject(o, "verdict", word);
	cJSON_AddNumberToObject(o, "blocks", p->known && p->c.paired ? (double)p->c.n : 0);
	size_t more = p->known ? loom__stats_more_blocks(&p->c, margin, alpha, family) : 0;
	if (strcmp(word, "INCONCLUSIVE"))
		cJSON_AddNumberToObject(o, "more_blocks", 0);
	else if (more && more != LOOM__STATS_MANY && p->better)
		cJSON_AddNumberToObject(o, "more_blocks", (double)more);
	else
		cJSON_AddNullToObject(o, "more_blocks");
	cJSON_AddNumberToObject(o, "margin", margin);
	add_interval(cJSON_AddObjectToObject(o, "shift"), &p->c.shift, p->known);
	notes = cJSON_AddArrayToObject(o, "notes");
	if (*p->note)
		cJSON_AddItemToArray(notes, cJSON_CreateString(p->note));
	if (p->known && !p->better)
		cJSON_AddItemToArray(notes, cJSON_CreateString("which direction is better is not said"));
	cJSON_AddItemToObject(o, "ratios",
			      p->ratio ? cJSON_CreateDoubleArray(p->ratio, (int)p->c.n) :
					 cJSON_CreateArray());
}

/* What the samples of one variant look like, in the order in which they ran. */
static void look(cJSON *doc, size_t variant, const char *metric, int paired)
{
	double *x, *sorted = NULL, z;
	const char *label = loom__compare_label(doc, variant);
	size_t n = loom__compare_values(doc, variant, metric, &x);
	struct loom__stats_modes modes;
	struct loom__stats_test trend;
	if (n < 10 || loom__stats_sorted(x, n, &sorted)) {
		free(x);
		return;
	}
	size_t far = loom__stats_far_out(sorted, n);
	if (far)
		loom__compare_warn(doc, "far_out", "%s: %zu of %zu samples of %s lie far from the others; "
						   "all are kept",
				   metric, far, n, label);
	if (!loom__stats_first(x, n, &z) && fabs(z) > LOOM__STATS_FIRST_UNUSUAL)
		loom__compare_warn(doc, "first_sample",
				   "%s: the first sample of %s is unlike the others: more --warmup may help",
				   metric, label);
	if (!loom__stats_modes(x, n, &modes) && modes.two)
		loom__compare_warn(doc, "two_modes",
				   "%s: the samples of %s fall into two groups, %zu low and %zu high",
				   metric, label, modes.lower, n - modes.lower);
	if (!loom__stats_trend(x, n, &trend) && trend.p < 0.001)
		loom__compare_warn(doc, "trend", "%s: %s went %s during the run%s", metric, label,
				   trend.stat > 0 ? "up" : "down",
				   paired ? "; the blocks make up for it" : "");
	free(sorted);
	free(x);
}

static int is_new(const struct loom__compare_metric *metric, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (!strcmp(metric[j].name, metric[i].name))
			return 0;
	return 1;
}

int loom__compare_judge(cJSON *doc, const struct loom__compare_metric *metric, size_t metrics,
			struct loom_error *err)
{
	const cJSON *design = loom__json_object(doc, "design");
	double margin = loom__json_number(design, "margin"), level = loom__json_number(design, "confidence");
	int paired = loom__json_true(design, "interleaved");
	size_t variants = loom__compare_variants(doc), n = 0, known = 0;
	struct pair *pair = calloc(metrics * variants + 1, sizeof(*pair));
	double *p = calloc(metrics * variants + 1, sizeof(*p));
	cJSON *list = cJSON_AddArrayToObject(doc, "comparisons");
	int rc = pair && p && list ? 0 : LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	for (size_t m = 0; m < metrics && !rc; m++)
		for (size_t v = 1; v < variants && is_new(metric, m); v++) {
			struct pair *one = &pair[n++];
			*one = (struct pair){.metric = &metric[m], .variant = v};
			describe(doc, one);
			int failed = paired ? compare_paired(doc, one, level) :
					      compare_unpaired(doc, one, level);
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
			add_comparison(list, &pair[i], pair[i].known ? p[next++] : 1, known ? known : 1,
				       margin, 1 - level);
		free(pair[i].ratio);
	}
	for (size_t m = 0; m < metrics && !rc; m++)
		for (size_t v = 0; v < variants && is_new(metric, m); v++)
			look(doc, v, metric[m].name, paired);
	free(pair);
	free(p);
	return rc;
}
