/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compare/compare.h"
#include "report/document.h"
#include "run/build.h"
#include "run/environment.h"

static cJSON *number64(uint64_t value)
{
	char text[24];
	snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	return cJSON_CreateRaw(text);
}

cJSON *loom__compare_document(const struct loom__compare_about *about)
{
	cJSON *doc = cJSON_CreateObject(), *o;
	if (!doc)
		return NULL;
	cJSON_AddStringToObject(doc, "schema", LOOM__COMPARE_SCHEMA);
	cJSON_AddStringToObject(doc, "status", "failed");
	cJSON_AddNullToObject(doc, "error");
	o = cJSON_AddObjectToObject(doc, "gpuloom");
	cJSON_AddStringToObject(o, "version", loom_version());
	loom__build_revision(o);
	char when[32];
	time_t now = time(NULL);
	struct tm utc;
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
	cJSON_AddStringToObject(doc, "started", when);
	cJSON *command = cJSON_AddArrayToObject(doc, "command");
	cJSON_AddItemToArray(command, cJSON_CreateString("gpuloom"));
	for (int i = 0; i < about->argc; i++)
		cJSON_AddItemToArray(command, cJSON_CreateString(about->argv[i]));
	o = cJSON_AddObjectToObject(doc, "design");
	cJSON_AddNumberToObject(o, "confidence", about->confidence);
	cJSON_AddNumberToObject(o, "alpha", 1 - about->confidence);
	cJSON_AddNumberToObject(o, "margin", about->margin);
	cJSON_AddStringToObject(o, "per_block", about->best ? "best" : "median");
	cJSON_AddArrayToObject(doc, "variants");
	cJSON_AddArrayToObject(doc, "warnings");
	cJSON_AddNullToObject(doc, "noise");
	return doc;
}

void loom__compare_warn(cJSON *doc, const char *id, const char *fmt, ...)
{
	char text[600];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cJSON *o = cJSON_CreateObject();
	cJSON_AddStringToObject(o, "id", id);
	cJSON_AddStringToObject(o, "text", text);
	cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(doc, "warnings"), o);
}

int loom__compare_add_variant(cJSON *doc, const char *name, const char *label, cJSON *varied,
			      cJSON *result)
{
	cJSON *o = cJSON_CreateObject();
	if (!o || !result) {
		cJSON_Delete(o);
		cJSON_Delete(varied);
		cJSON_Delete(result);
		return LOOM_ENOMEM;
	}
	cJSON_AddStringToObject(o, "name", name);
	cJSON_AddStringToObject(o, "label", label);
	cJSON_AddItemToObject(o, "varied", varied ? varied : cJSON_CreateObject());
	cJSON_AddItemToObject(o, "result", result);
	cJSON_AddItemToArray(cJSON_GetObjectItemCaseSensitive(doc, "variants"), o);
	return 0;
}

static void replace(cJSON *doc, const char *name, cJSON *item)
{
	if (item)
		cJSON_ReplaceItemInObjectCaseSensitive(doc, name, item);
}

/* The whole run lasts from the first variant's capture to the last one's. */
static void add_environment(cJSON *doc)
{
	size_t n = loom__compare_variants(doc);
	const cJSON *first = loom__json_object(loom__compare_variant(doc, 0), "result");
	const cJSON *last = loom__json_object(loom__compare_variant(doc, n - 1), "result");
	const cJSON *before = loom__json_object(loom__json_object(first, "environment"), "before");
	const cJSON *after = loom__json_object(loom__json_object(last, "environment"), "after");
	cJSON *o = cJSON_AddObjectToObject(doc, "environment");
	cJSON_AddItemToObject(o, "before", cJSON_Duplicate(before, 1));
	cJSON_AddItemToObject(o, "after", cJSON_Duplicate(after, 1));
	cJSON *quiet = cJSON_AddObjectToObject(doc, "quiet"), *reasons = cJSON_CreateArray();
	size_t disturbed = loom__environment_disturbed(before, after, reasons);
	cJSON_AddBoolToObject(quiet, "quiet", !disturbed);
	cJSON_AddItemToObject(quiet, "reasons", reasons);
	for (const char *const *fact = loom__environment_fixed; *fact; fact++) {
		const cJSON *a = cJSON_GetObjectItemCaseSensitive(before, *fact);
		const cJSON *b = cJSON_GetObjectItemCaseSensitive(after, *fact);
		if (a && b && !cJSON_Compare(a, b, 1)) {
			struct loom__text was = {0}, is = {0};
			loom__environment_text(a, &was);
			loom__environment_text(b, &is);
			loom__compare_warn(doc, "environment_changed",
					   "%s changed during the run: %.200s, then %.200s", *fact,
					   was.at ? was.at : "", is.at ? is.at : "");
			loom__text_free(&was);
			loom__text_free(&is);
		}
	}
}

int loom__compare_add_run(cJSON *doc, const struct loom__interleave *x, int code,
			  const struct loom_error *error)
{
	const struct loom__design *d = &x->design;
	cJSON *design = cJSON_GetObjectItemCaseSensitive(doc, "design");
	cJSON *schedule = cJSON_AddArrayToObject(doc, "schedule");
	cJSON_AddStringToObject(design, "order", d->order == LOOM__STATS_ABBA ? "abba" : "random");
	cJSON_AddNumberToObject(design, "blocks", d->blocks);
	cJSON_AddNumberToObject(design, "complete", x->blocks);
	cJSON_AddNumberToObject(design, "samples_per_block", d->per_block);
	cJSON_AddNumberToObject(design, "warmup", d->warmup);
	cJSON_AddNumberToObject(design, "rewarm", d->rewarm);
	cJSON_AddNumberToObject(design, "spread", (double)d->spread_ns / 1e9);
	cJSON_AddItemToObject(design, "seed", number64(d->seed));
	cJSON_AddBoolToObject(design, "interleaved", 1);
	cJSON_AddNumberToObject(design, "seconds", (double)(loom__now_ns() - x->began_ns) / 1e9);
	for (size_t i = 0; i < x->slots; i++)
		cJSON_AddItemToArray(schedule, cJSON_CreateNumber(x->slot[i]));
	replace(doc, "status", cJSON_CreateString(loom__status_name(code)));
	if (code) {
		cJSON *o = cJSON_CreateObject();
		cJSON_AddNumberToObject(o, "code", code);
		cJSON_AddStringToObject(o, "text", error->text);
		replace(doc, "error", o);
	}
	if (x->out_of_budget)
		loom__compare_warn(doc, "budget", "the time was up after %u of %u blocks", x->blocks,
				   d->blocks);
	add_environment(doc);
	return schedule ? 0 : LOOM_ENOMEM;
}

int loom__compare_add_files(cJSON *doc)
{
	cJSON *design = cJSON_GetObjectItemCaseSensitive(doc, "design"), *o;
	cJSON_AddStringToObject(design, "order", "files");
	cJSON_AddNumberToObject(design, "blocks", 0);
	cJSON_AddNumberToObject(design, "complete", 0);
	cJSON_AddNumberToObject(design, "samples_per_block", 0);
	cJSON_AddNumberToObject(design, "warmup", 0);
	cJSON_AddNullToObject(design, "seed");
	cJSON_AddBoolToObject(design, "interleaved", 0);
	cJSON_AddArrayToObject(doc, "schedule");
	replace(doc, "status", cJSON_CreateString("ok"));
	loom__compare_warn(doc, "not_interleaved",
			   "the runs were not interleaved: what moved between them, such as load or "
			   "clock rates, counts as a difference");
	const cJSON *first = loom__json_object(loom__compare_variant(doc, 0), "result");
	o = cJSON_Duplicate(loom__json_object(first, "environment"), 1);
	cJSON_AddItemToObject(doc, "environment", o ? o : cJSON_CreateObject());
	o = cJSON_AddObjectToObject(doc, "quiet");
	cJSON *reasons = cJSON_CreateArray();
	size_t disturbed = 0;
	for (size_t v = 0; v < loom__compare_variants(doc); v++) {
		const cJSON *e = loom__json_object(
			loom__json_object(loom__compare_variant(doc, v), "result"), "environment");
		cJSON *own = cJSON_CreateArray(), *reason;
		disturbed += loom__environment_disturbed(loom__json_object(e, "before"),
							 loom__json_object(e, "after"), own);
		cJSON_ArrayForEach(reason, own)
		{
			char text[400];
			snprintf(text, sizeof(text), "%.100s: %s", loom__compare_label(doc, v),
				 reason->valuestring);
			cJSON_AddItemToArray(reasons, cJSON_CreateString(text));
		}
		cJSON_Delete(own);
	}
	cJSON_AddBoolToObject(o, "quiet", !disturbed);
	cJSON_AddItemToObject(o, "reasons", reasons);
	return 0;
}

/* The spread between blocks is what sets the floor; it shrinks with the root of their number. */
int loom__compare_add_noise(cJSON *doc, const cJSON *same, uint32_t blocks)
{
	cJSON *noise = cJSON_CreateArray();
	const cJSON *c;
	double alpha = loom__json_number(loom__json_object(same, "design"), "alpha");
	cJSON_ArrayForEach(c, loom__json_list(same, "comparisons"))
	{
		const char *metric = loom__json_text(c, "metric"), *word = loom__json_text(c, "verdict");
		enum loom_better better = loom__compare_better(same, metric);
		double *a = NULL, *b = NULL;
		size_t n = 0, m = 0;
		struct loom__stats_comparison s;
		int failed = loom__compare_blocks(same, 0, metric, better, &a, &n) ||
			     loom__compare_blocks(same, 1, metric, better, &b, &m) ||
			     loom__stats_compare(a, b, n, 1 - alpha, &s);
		free(a);
		free(b);
		if (failed)
			continue;
		cJSON *o = cJSON_CreateObject();
		cJSON_AddStringToObject(o, "metric", metric);
		static const char *const keys[] = {"effect", "low", "high"};
		for (size_t k = 0; k < LOOM__COUNT(keys); k++)
			cJSON_AddItemToObject(
				o, keys[k],
				cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(c, keys[k]), 1));
		double floor = log1p(loom__stats_detectable(&s, alpha));
		cJSON_AddNumberToObject(o, "floor",
					expm1(floor * sqrt((double)n / (double)(blocks ? blocks : 1))));
		cJSON_AddItemToArray(noise, o);
		if (!strcmp(word, "FASTER") || !strcmp(word, "SLOWER"))
			loom__compare_warn(doc, "same_differs",
					   "%s: the baseline differs from itself here: do not trust a "
					   "difference of that size",
					   metric);
	}
	replace(doc, "noise", noise);
	return noise ? 0 : LOOM_ENOMEM;
}
