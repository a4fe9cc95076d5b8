/* SPDX-License-Identifier: Apache-2.0 */
/* Comparisons: factors, verdicts, rules, environments. Samples are synthetic, so no verdict depends on the machine. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compare/rules.h"
#include "compare/vary.h"
#include "report/text/table.h"
#include "report/view/view.h"
#include "facts/environment.h"
#include "support.h"

/* ---- the factors that are varied ------------------------------------------------------------------------------ */

static void expect_factor(const char *text, const char *key, size_t n, const char *const *values)
{
	struct loom__factor f;
	struct loom_error err;
	int rc = loom__factor_parse(text, &f, &err);
	CU_ASSERT_EQUAL(rc, 0);
	if (rc)
		return;
	CU_ASSERT_STRING_EQUAL(f.key, key);
	CU_ASSERT_EQUAL(f.values, n);
	for (size_t i = 0; i < n && i < f.values; i++)
		CU_ASSERT_STRING_EQUAL(f.value[i], values[i]);
	loom__factor_free(&f);
}

TEST(vary)
{
	static const char *const bad[] = {"use=a", "scheduler.use", ".use=a", "scheduler.=a", "a.b=x,x", ""};
	struct loom__factor f;
	struct loom_error err;
	expect_factor("scheduler.use=mgws,static", "scheduler.use", 2,
		      (const char *const[]){"mgws", "static"});
	expect_factor("run.devices=cpu:0,cpu:0 cpu:1", "run.devices", 2,
		      (const char *const[]){"cpu:0", "cpu:0 cpu:1"});
	expect_factor("scheduler.mgws.queue= 1 , 2 ", "scheduler.mgws.queue", 2,
		      (const char *const[]){"1", "2"});
	expect_factor("device.cpu.cores=\"0,1\",2\\,3,", "device.cpu.cores", 3,
		      (const char *const[]){"0,1", "2,3", ""});
	expect_factor("a.b=x=y,\"\"", "a.b", 2, (const char *const[]){"x=y", ""});
	for (size_t i = 0; i < LOOM__COUNT(bad); i++)
		CU_ASSERT_NOT_EQUAL(loom__factor_parse(bad[i], &f, &err), 0);
}

/* ---- documents of made-up samples ----------------------------------------------------------------- */

struct metric {
	const char *name, *unit, *better;
	double *value; /* blocks * per_block values of the first variant, then those of the next */
};

static cJSON *make_doc(size_t variants, size_t blocks, size_t per_block, const struct metric *m,
		       size_t metrics, int interleaved)
{
	char *argv[] = {NULL};
	struct loom__compare_about about = {
		.argc = 0, .argv = argv, .confidence = 0.95, .margin = 0.01};
	cJSON *doc = loom__compare_document(&about);
	cJSON *design = cJSON_GetObjectItemCaseSensitive(doc, "design");
	size_t n = blocks * per_block;
	cJSON_AddBoolToObject(design, "interleaved", interleaved);
	cJSON_AddNumberToObject(design, "complete", (double)blocks);
	cJSON_AddNumberToObject(design, "blocks", (double)blocks);
	cJSON_AddNumberToObject(design, "samples_per_block", (double)per_block);
	for (size_t v = 0; v < variants; v++) {
		char label[24];
		cJSON *result = cJSON_CreateObject(), *all = cJSON_AddObjectToObject(result, "metrics");
		cJSON *samples = cJSON_AddArrayToObject(result, "samples");
		for (size_t i = 0; i < n; i++)
			cJSON_AddItemToArray(samples, cJSON_CreateObject());
		for (size_t k = 0; k < metrics; k++) {
			double *x = m[k].value + v * n;
			if (isnan(x[0]))
				continue; /* NaN: this variant lacks the metric */
			cJSON *o = cJSON_AddObjectToObject(all, m[k].name);
			cJSON_AddStringToObject(o, "unit", m[k].unit);
			cJSON_AddStringToObject(o, "better", m[k].better);
			cJSON_AddItemToObject(o, "samples", cJSON_CreateDoubleArray(x, (int)n));
			cJSON_AddNumberToObject(o, "median", x[0]);
		}
		snprintf(label, sizeof(label), "v%zu", v);
		loom__compare_add_variant(doc, label, label, NULL, result);
	}
	return doc;
}

static const cJSON *comparison(const cJSON *doc, size_t i)
{
	return cJSON_GetArrayItem(loom__json_list(doc, "comparisons"), (int)i);
}

static const char *verdict(const cJSON *doc, size_t i)
{
	return loom__json_text(comparison(doc, i), "verdict");
}

/* Compares two variants. The samples of the second are `ratio` times those of the first. They vary too little to affect
 * verdicts. */
static cJSON *judged(const char *better, double ratio, size_t blocks, const char *metric)
{
	double x[400];
	size_t n = blocks * 4;
	struct loom__compare_metric want = {.better = LOOM_BETTER_NONE};
	struct metric m = {"seconds", "s", better, x};
	struct loom_error err;
	for (size_t i = 0; i < n; i++) {
		x[i] = 1 + 0.001 * (double)(i * 7 % 5);
		x[n + i] = ratio * (1 + 0.001 * (double)(i * 3 % 5));
	}
	cJSON *doc = make_doc(2, blocks, 4, &m, 1, 1);
	snprintf(want.name, sizeof(want.name), "%s", metric);
	CU_ASSERT_EQUAL(loom__compare_judge(doc, &want, 1, &err), 0);
	return doc;
}

static void expect_verdict(const char *better, double ratio, size_t blocks, const char *word)
{
	cJSON *doc = judged(better, ratio, blocks, "seconds");
	CU_ASSERT_STRING_EQUAL(verdict(doc, 0), word);
	cJSON_Delete(doc);
}

TEST(verdicts)
{
	expect_verdict("less", 1.03, 20, "SLOWER");
	expect_verdict("more", 1.03, 20, "FASTER");
	expect_verdict("less", 0.97, 20, "FASTER");
	expect_verdict("more", 0.97, 20, "SLOWER");
	expect_verdict("less", 1.0, 20, "EQUIVALENT");
	expect_verdict("less", 1.5, 5, "INCONCLUSIVE"); /* five blocks give no interval */
	expect_verdict("", 1.03, 20, "INCONCLUSIVE");
	cJSON *doc = judged("less", 1.5, 5, "seconds");
	CU_ASSERT(loom__json_number(comparison(doc, 0), "more_blocks") > 0);
	CU_ASSERT(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(comparison(doc, 0), "low")));
	cJSON_Delete(doc);
	doc = judged("less", 1.03, 20, "seconds");
	CU_ASSERT_DOUBLE_EQUAL(loom__json_number(comparison(doc, 0), "effect"), 1.03, 0.003);
	CU_ASSERT_EQUAL(loom__json_length(loom__json_list(comparison(doc, 0), "ratios")), 20);
	cJSON_Delete(doc);
}

/* A metric that cannot be judged is reported as unjudged, without a verdict. */
TEST(unjudged)
{
	cJSON *doc = judged("less", 1.5, 20, "nothing");
	CU_ASSERT_STRING_EQUAL(verdict(doc, 0), "INCONCLUSIVE");
	CU_ASSERT(loom__json_length(loom__json_list(comparison(doc, 0), "notes")) > 0);
	cJSON_Delete(doc);

	double zero[160] = {0}, part[160];
	struct loom__compare_metric want[2] = {{"steals", LOOM_BETTER_LESS, 0}, {"part", LOOM_BETTER_LESS, 0}};
	struct loom_error err;
	for (size_t i = 0; i < 160; i++)
		part[i] = i < 80 ? 1 : NAN;
	struct metric m[2] = {{"steals", "", "", zero}, {"part", "", "less", part}};
	doc = make_doc(2, 20, 4, m, 2, 1);
	CU_ASSERT_EQUAL(loom__compare_judge(doc, want, 2, &err), 0);
	CU_ASSERT_STRING_EQUAL(verdict(doc, 0), "INCONCLUSIVE");
	CU_ASSERT_STRING_EQUAL(verdict(doc, 1), "INCONCLUSIVE");
	CU_ASSERT(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(comparison(doc, 0), "p")));
	cJSON_Delete(doc);
}

/* There are four comparisons, because a metric that is named twice counts once. So Holm's method multiplies the
 * smallest p by 4. */
TEST(family)
{
	double x[3 * 80];
	struct loom__compare_metric want[3] = {{"a", 0, 0}, {"b", LOOM_BETTER_MORE, 0}, {"a", 0, 0}};
	struct loom_error err;
	for (size_t i = 0; i < 240; i++)
		x[i] = (i < 80 ? 1 : 1.1) + 0.001 * (double)(i * 7 % 5);
	struct metric m[2] = {{"a", "s", "less", x}, {"b", "", "", x}};
	cJSON *doc = make_doc(3, 20, 4, m, 2, 1);
	CU_ASSERT_EQUAL(loom__compare_judge(doc, want, 3, &err), 0);
	CU_ASSERT_EQUAL(loom__json_length(loom__json_list(doc, "comparisons")), 4);
	CU_ASSERT_STRING_EQUAL(verdict(doc, 0), "SLOWER");
	CU_ASSERT_STRING_EQUAL(verdict(doc, 3), "FASTER");
	const cJSON *c = comparison(doc, 0);
	CU_ASSERT_DOUBLE_EQUAL(loom__json_number(c, "p_holm"), 4 * loom__json_number(c, "p"), 1e-9);
	cJSON_Delete(doc);
}

TEST(unpaired)
{
	double x[40];
	struct loom__compare_metric want = {.name = "seconds"};
	struct loom_error err;
	for (size_t i = 0; i < 40; i++)
		x[i] = (i < 20 ? 1 : 1.2) + 0.01 * (double)(i * 7 % 5);
	struct metric m = {"seconds", "s", "less", x};
	cJSON *doc = make_doc(2, 5, 4, &m, 1, 0);
	CU_ASSERT_EQUAL(loom__compare_judge(doc, &want, 1, &err), 0);
	CU_ASSERT_STRING_EQUAL(verdict(doc, 0), "SLOWER");
	CU_ASSERT(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(comparison(doc, 0), "more_blocks")) ||
		  loom__json_number(comparison(doc, 0), "more_blocks") == 0);
	CU_ASSERT(loom__json_length(loom__json_list(comparison(doc, 0), "notes")) == 1);
	cJSON_Delete(doc);
}

/* ---- false claims and power ------------------------------------------------------------------------ */

static double normal(struct loom__stats_rng *rng)
{
	double u = 1 - loom__stats_unit(rng), v = loom__stats_unit(rng);
	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

enum noise { PLAIN, DRIFT, SPIKES };

/* Returns a sample around 1 with 3 % of noise, and with the drift or the spikes of a shared machine if `noise` says so. */
static double moment(struct loom__stats_rng *rng, enum noise noise, double *walk)
{
	double d = 0.03 * normal(rng);
	if (noise == DRIFT) {
		*walk = 0.95 * *walk + 0.01 * normal(rng);
		d += *walk;
	}
	if (noise == SPIKES && loom__stats_unit(rng) < 0.15)
		d += 1.5 * loom__stats_unit(rng);
	return exp(d);
}

#define EACH 8 /* the default number of samples per block */

/* Returns the percentage of trials in which `ratio` is called FASTER or SLOWER, with 20 blocks and ABBA order. */
static double claims(double ratio, enum noise noise, int best, unsigned trials)
{
	unsigned claimed = 0, slots[4];
	struct loom__compare_metric want = {.name = "seconds"};
	struct loom_error err;
	for (unsigned t = 0; t < trials; t++) {
		struct loom__stats_rng rng = {1000003u * (t + 1) + noise};
		double x[2 * 20 * EACH], walk = 0;
		size_t at[2] = {0, 20 * EACH};
		for (unsigned pass = 0; pass < 20 * EACH / 2; pass++) {
			size_t n = loom__stats_block_order(t, pass, LOOM__STATS_ABBA, 2, slots);
			for (size_t i = 0; i < n; i++)
				x[at[slots[i]]++] =
					moment(&rng, noise, &walk) * (slots[i] ? ratio : 1);
		}
		struct metric m = {"seconds", "s", "less", x};
		cJSON *doc = make_doc(2, 20, EACH, &m, 1, 1);
		if (best)
			cJSON_ReplaceItemInObjectCaseSensitive(
				cJSON_GetObjectItemCaseSensitive(doc, "design"), "per_block",
				cJSON_CreateString("best"));
		loom__compare_judge(doc, &want, 1, &err);
		const char *word = verdict(doc, 0);
		claimed += !strcmp(word, "SLOWER") || !strcmp(word, "FASTER");
		cJSON_Delete(doc);
	}
	return 100.0 * claimed / trials;
}

/* Identical variants give at most 5 % false claims. If the true rate is 5 %, 600 trials give more than 7 % in one of a
 * hundred runs of this test. */
TEST(no_false_claims)
{
	for (enum noise noise = PLAIN; noise <= SPIKES; noise++)
		for (int best = 0; best < 2; best++) {
			double percent = claims(1, noise, best, 600);
			printf("A/A, noise %d, %s: %.1f %%\n", noise, best ? "best" : "median", percent);
			CU_ASSERT(percent <= 5);
		}
}

/* The default design finds a difference of 3 % in at least 80 % of trials. */
TEST(power)
{
	for (enum noise noise = PLAIN; noise <= SPIKES; noise++) {
		double percent = claims(1.03, noise, 0, 300);
		printf("3 %%, noise %d: %.1f %%\n", noise, percent);
		CU_ASSERT(percent >= 80);
	}
}

/* ---- rules ----------------------------------------------------------------------------------------- */

static void expect_gate(double ratio, size_t blocks, const char *rule, size_t fails, size_t undecided)
{
	struct loom__gate_rule r;
	struct loom_error err;
	size_t failed, unsure;
	cJSON *doc = judged("less", ratio, blocks, "seconds");
	CU_ASSERT_EQUAL(loom__gate_rule_parse(rule, &r, &err), 0);
	loom__compare_gate(doc, &r, 1, &failed, &unsure);
	CU_ASSERT_EQUAL(failed, fails);
	CU_ASSERT_EQUAL(unsure, undecided);
	cJSON_Delete(doc);
}

TEST(gate)
{
	static const char *const bad[] = {"", "seconds", "seconds: slower", "seconds: slower 3%",
					  "seconds: larger > 3%", "seconds: slower > 3% now",
					  "seconds: slower > -1%", ": slower > 3%"};
	struct loom__gate_rule r;
	struct loom_error err;
	for (size_t i = 0; i < LOOM__COUNT(bad); i++)
		CU_ASSERT_NOT_EQUAL(loom__gate_rule_parse(bad[i], &r, &err), 0);
	expect_gate(1.05, 20, "seconds: slower > 3%", 1, 0);
	expect_gate(1.05, 20, " seconds :slower>0.03 ", 1, 0);
	expect_gate(1.02, 20, "seconds: slower > 3%", 0, 0);
	expect_gate(0.90, 20, "seconds: slower > 3%", 0, 0);
	expect_gate(0.90, 20, "seconds: faster > 3%", 1, 0);
	expect_gate(1.05, 4, "seconds: slower > 3%", 0, 1);
	expect_gate(1.05, 20, "tasks_per_s: slower > 3%", 0, 1);
}

TEST(bars)
{
	static const char *const bad[] = {"x", "x: seconds >= 1", "x: seconds(v0) > 1", "x: seconds(v0 >= 1",
					  "x: seconds(v0) / steals(v1) >= 1", "x: seconds(v0) >= 1 now", "x: seconds()"};
	struct loom__bar b[4];
	struct loom_error err;
	struct loom__text out = {0};
	for (size_t i = 0; i < LOOM__COUNT(bad); i++)
		CU_ASSERT_NOT_EQUAL(loom__bar_parse(bad[i], &b[0], &err), 0);
	cJSON *doc = judged("less", 1.25, 20, "seconds");
	CU_ASSERT_EQUAL(loom__bar_parse("ratio: seconds(v0) / seconds(v1) >= 0.9", &b[0], &err), 0);
	CU_ASSERT_EQUAL(loom__bar_parse("other:seconds(v1)/seconds(v0)<=1.3", &b[1], &err), 0);
	CU_ASSERT_EQUAL(loom__bar_parse("time: seconds(v0) <= 2", &b[2], &err), 0);
	CU_ASSERT_EQUAL(loom__bar_parse("best: seconds(v0 | v1) / seconds(v1 | v0)", &b[3], &err), 0);
	CU_ASSERT_EQUAL(loom__compare_bars(doc, b, 4, &out, &err), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(out.at, "bar ratio 0.8"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.at, ">= 0.9 short\nbar other 1.25"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.at, "<= 1.3 ok\nbar time 1"));
	CU_ASSERT_PTR_NOT_NULL(strstr(out.at, "\nfigure best 1\n"));
	const cJSON *ratio = cJSON_GetArrayItem(loom__json_list(doc, "bars"), 0);
	CU_ASSERT_EQUAL(loom__json_length(loom__json_list(ratio, "values")), 20);
	double low = loom__json_number(ratio, "low"), value = loom__json_number(ratio, "value");
	CU_ASSERT_TRUE(low <= value && value <= loom__json_number(ratio, "high"));
	static const char *const unmet[] = {"x: seconds(v7) <= 2", "x: seconds(v0 | v7)", "x: nothing(v0)", "x: seconds(|)"};
	for (size_t i = 0; i < LOOM__COUNT(unmet); i++) {
		CU_ASSERT_EQUAL(loom__bar_parse(unmet[i], &b[0], &err), 0);
		CU_ASSERT_EQUAL(loom__compare_bars(doc, b, 1, &out, &err), LOOM_EINVAL);
	}
	loom__text_free(&out);
	cJSON_Delete(doc);
}

/* ---- environments ------------------------------------------------------------------------------------ */

static cJSON *with_environment(const char *kernel_a, const char *kernel_b)
{
	double x[40];
	struct metric m = {"seconds", "s", "less", x};
	for (size_t i = 0; i < 40; i++)
		x[i] = 1;
	cJSON *doc = make_doc(2, 5, 4, &m, 1, 0), *v;
	int index = 0;
	cJSON_ArrayForEach(v, loom__json_list(doc, "variants"))
	{
		cJSON *result = cJSON_GetObjectItemCaseSensitive(v, "result");
		cJSON *e = cJSON_AddObjectToObject(result, "environment");
		cJSON *before = cJSON_AddObjectToObject(e, "before");
		const char *kernel = index++ ? kernel_b : kernel_a;
		if (kernel)
			cJSON_AddStringToObject(before, "kernel", kernel);
		else
			loom__fact_none(before, "kernel", "not known");
	}
	return doc;
}

TEST(mismatch)
{
	const char *allowed[] = {"kernel"}, *wrong[] = {"kernle"};
	struct loom_error err;
	cJSON *doc = with_environment("6.1", "6.1");
	CU_ASSERT_EQUAL(loom__compare_same_environment(doc, NULL, 0, &err), 0);
	REFUSED(loom__compare_same_environment(doc, wrong, 1, &err), LOOM_EINVAL, err, "did you mean 'kernel'");
	cJSON_Delete(doc);
	doc = with_environment("6.1", "6.2");
	REFUSED(loom__compare_same_environment(doc, NULL, 0, &err), LOOM_EINVAL, err,
		"6.1 in v0, 6.2 in v1&--allow-mismatch=kernel");
	CU_ASSERT_EQUAL(loom__compare_same_environment(doc, allowed, 1, &err), 0);
	CU_ASSERT_EQUAL(loom__json_length(loom__json_list(doc, "warnings")), 1);
	cJSON_Delete(doc);
	doc = with_environment(NULL, NULL);
	CU_ASSERT_EQUAL(loom__compare_same_environment(doc, NULL, 0, &err), 0);
	cJSON_Delete(doc);
	doc = with_environment(NULL, "6.2");
	CU_ASSERT_EQUAL(loom__compare_same_environment(doc, NULL, 0, &err), LOOM_EINVAL);
	cJSON_Delete(doc);
}

/* Adds a fact of a device to the result of a variant, or a choice that names the model of a GPU. */
static void add_device(cJSON *doc, int variant, const char *part, const char *name, const char *value)
{
	cJSON *result = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(loom__json_list(doc, "variants"), variant), "result");
	cJSON *in = !strcmp(part, "choices") ? result : cJSON_GetObjectItemCaseSensitive(result, "environment");
	cJSON *group = cJSON_GetObjectItemCaseSensitive(in, part);
	loom__json_add_text(group ? group : loom__json_add_object(in, part), name, value);
}

TEST(devices_differ)
{
	const char *allowed[] = {"gpu_model"};
	struct loom_error err;
	cJSON *doc = with_environment("6.1", "6.1");
	add_device(doc, 0, "devices", "gpu_model", "H100"); /* the other job ran on a CPU */
	CU_ASSERT_EQUAL(loom__compare_same_environment(doc, NULL, 0, &err), 0);
	add_device(doc, 1, "choices", "device.cuda:0.model", "H100"); /* an older result, of a GPU */
	REFUSED(loom__compare_same_environment(doc, NULL, 0, &err), LOOM_EINVAL, err,
		"gpu_model: H100 in v0, not known (not said) in v1&--allow-mismatch=gpu_model");
	CU_ASSERT_EQUAL(loom__compare_same_environment(doc, allowed, 1, &err), 0);
	add_device(doc, 1, "devices", "gpu_model", "H200");
	REFUSED(loom__compare_same_environment(doc, NULL, 0, &err), LOOM_EINVAL, err,
		"gpu_model: H100 in v0, H200 in v1&--allow-mismatch=gpu_model");
	cJSON_Delete(doc);
}

TEST(environment)
{
	cJSON *e = loom__environment(), *fact;
	char *text = cJSON_Print(e), name[256] = "";
	for (const char *const *key = loom__environment_fixed; *key; key++) {
		fact = cJSON_GetObjectItemCaseSensitive(e, *key);
		CU_ASSERT_PTR_NOT_NULL(fact);
		CU_ASSERT(cJSON_IsString(fact) || cJSON_IsNumber(fact) ||
			  *loom__json_text(fact, "null_because"));
	}
	gethostname(name, sizeof(name) - 1);
	if (strlen(name) > 4) /* short names also occur in other words */
		CU_ASSERT_PTR_NULL(strstr(text, name));
	CU_ASSERT_PTR_NULL(strstr(text, "/home/"));
	free(text);
	cJSON_Delete(e);
}

static cJSON *load_facts(double at, double busy, double idle, double steal, double own, double waited)
{
	cJSON *o = cJSON_CreateObject();
	cJSON_AddNumberToObject(o, "uptime_s", at);
	cJSON_AddNumberToObject(o, "cpu_busy_s", busy);
	cJSON_AddNumberToObject(o, "cpu_idle_s", idle);
	cJSON_AddNumberToObject(o, "cpu_steal_s", steal);
	cJSON_AddNumberToObject(o, "own_cpu_s", own);
	cJSON_AddNumberToObject(o, "pressure_cpu_s", waited);
	return o;
}

TEST(quiet)
{
	cJSON *before = load_facts(10, 5, 10, 0, 1, 0), *reasons = cJSON_CreateArray();
	cJSON *calm = load_facts(20, 15, 20, 0, 11, 0.2), *busy = load_facts(20, 20, 14, 1, 3, 7);
	struct loom__activity a;
	CU_ASSERT_EQUAL(loom__environment_disturbed(before, calm, reasons), 0);
	CU_ASSERT_EQUAL(loom__environment_disturbed(before, busy, reasons), 3);
	loom__environment_activity(before, busy, &a);
	CU_ASSERT_DOUBLE_EQUAL(a.others, 13.0 / 20, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(a.steal, 1.0 / 20, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(a.cpu, 0.7, 1e-9);
	CU_ASSERT(isnan(a.io));
	CU_ASSERT_EQUAL(loom__environment_disturbed(NULL, NULL, reasons), 0);
	cJSON_Delete(before);
	cJSON_Delete(calm);
	cJSON_Delete(busy);
	cJSON_Delete(reasons);
}

/* The result of a run has warnings about unusual samples, if it has enough samples to tell. */
TEST(warnings_of_a_run)
{
	for (int n = 9; n < 13; n++) {
		cJSON *result = cJSON_CreateObject(), *metrics = loom__json_add_object(result, "metrics"), *list;
		list = loom__json_add_array(loom__json_add_object(metrics, "seconds"), "samples");
		loom__json_add_array(result, "warnings");
		for (int i = 0; i < n; i++)
			cJSON_AddItemToArray(list, cJSON_CreateNumber(i == 5 ? 9 : 1 + 0.001 * (i * 7 % 12)));
		loom__result_warn(result);
		char *text = cJSON_PrintUnformatted(result);
		CU_ASSERT_EQUAL(!!strstr(text, "\"far_out\",\"text\":\"seconds: 1 of"), n >= 10);
		free(text);
		cJSON_Delete(result);
	}
}

/* Checks that the table of a comparison has `text`. Deletes the comparison. */
static void check_table(cJSON *json, const char *text)
{
	struct loom__text out = {0};
	struct loom__doc doc;
	struct loom__view view;
	struct loom_error err;
	char *bytes = loom__json_print(json, 0);
	CU_ASSERT_EQUAL_FATAL(loom__doc_parse("it", bytes, strlen(bytes), &doc, &err), 0);
	CU_ASSERT_EQUAL_FATAL(loom__view_create(&doc, 1, &view, &err), 0);
	loom__table_compare(&view, &out);
	CU_ASSERT_PTR_NOT_NULL(strstr(out.at, text));
	loom__text_free(&out);
	loom__view_free(&view);
	loom__doc_free(&doc);
	cJSON_Delete(json);
}

TEST(table)
{
	check_table(judged("less", 1.5, 5, "seconds"), "INCONCLUSIVE, about");
	check_table(cJSON_Parse("{\"schema\": \"gpuloom.compare/1\"}"),
		    "nothing to compare"); /* the smallest document */
}

/* On a busy machine CPU time is advised only if the variants differ in their work, because it contains polling. */
TEST(advice)
{
#define BUSY(key)                                                                                                      \
	"{\"schema\": \"gpuloom.compare/1\", \"design\": {\"complete\": 5}, \"variants\": [{\"name\": \"a\", \"varied\": "   \
	"{\"" key "\": 1}, \"result\": {\"metrics\": {\"cpu_seconds\": {\"samples\": [1]}}}}, {\"name\": \"b\"}], "            \
	"\"comparisons\": [{\"metric\": \"seconds\", \"baseline\": 0, \"variant\": 1, \"verdict\": \"INCONCLUSIVE\", "       \
	"\"more_blocks\": 900}]}"
	check_table(cJSON_Parse(BUSY("workload.exec.command")), "a machine as busy as now; judge CPU time");
	check_table(cJSON_Parse(BUSY("scheduler.use")), "a machine as busy as now\n");
}

TEST_MAIN("compare", 120)
