/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compare/compare.h"
#include "report/view/document.h"
#include "facts/build.h"
#include "facts/environment.h"
#include "facts/facts.h"
#include "facts/must.h"

void loom__compare_add_rule(cJSON *design, const struct loom__compare_about *about)
{
	loom__json_add_number(design, "confidence", about->confidence);
	loom__json_add_number(design, "alpha", 1 - about->confidence);
	loom__json_add_number(design, "margin", about->margin);
	loom__json_add_text(design, "per_block", about->best ? "best" : "median");
}

cJSON *loom__compare_document(const struct loom__compare_about *about)
{
	cJSON *doc = cJSON_CreateObject(), *o;
	loom__json_add_text(doc, "schema", LOOM__COMPARE_SCHEMA);
	loom__json_add_text(doc, "status", "failed");
	loom__json_add_null(doc, "error");
	o = loom__json_add_object(doc, "gpuloom");
	loom__json_add_text(o, "version", loom_version());
	loom__build_revision(o);
	loom__json_add_time(doc, "started", time(NULL));
	loom__command_line(doc, about->argc, about->argv);
	loom__compare_add_rule(loom__json_add_object(doc, "design"), about);
	loom__json_add_array(doc, "variants");
	loom__json_add_array(doc, "warnings");
	loom__json_add_null(doc, "noise");
	return doc;
}

void loom__compare_warn(cJSON *doc, const char *id, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;
	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		loom__must(NULL);
	va_end(args);
	cJSON *o = loom__json_append_object(cJSON_GetObjectItemCaseSensitive(doc, "warnings"));
	loom__json_add_text(o, "id", id);
	loom__json_add_text(o, "text", text);
	free(text);
}

void loom__compare_add_variant(cJSON *doc, const char *name, const char *label, const cJSON *varied, cJSON *result)
{
	cJSON *o = loom__json_append_object(cJSON_GetObjectItemCaseSensitive(doc, "variants"));
	loom__json_add_text(o, "name", name);
	loom__json_add_text(o, "label", label);
	if (varied)
		loom__json_add_copy(o, "varied", varied);
	else
		loom__json_add_object(o, "varied");
	loom__json_add(o, "result", result);
}

/* Adds the environment of the whole run, which was captured before the first variant and after the last variant. */
static void add_environment(cJSON *doc)
{
	size_t n = loom__compare_variants(doc);
	const cJSON *first = loom__json_object(loom__compare_variant(doc, 0), "result");
	const cJSON *last = loom__json_object(loom__compare_variant(doc, n - 1), "result");
	const cJSON *before = loom__json_object(loom__json_object(first, "environment"), "before");
	const cJSON *after = loom__json_object(loom__json_object(last, "environment"), "after");
	cJSON *o = loom__json_add_object(doc, "environment");
	loom__json_add_copy(o, "before", before);
	loom__json_add_copy(o, "after", after);
	loom__json_add_copy(o, "devices", loom__json_object(loom__json_object(first, "environment"), "devices"));
	cJSON *quiet = loom__json_add_object(doc, "quiet"), *reasons = cJSON_CreateArray();
	size_t disturbed = loom__environment_disturbed(before, after, reasons);
	loom__json_add_bool(quiet, "quiet", !disturbed);
	loom__json_add(quiet, "reasons", reasons);
	for (const char *const *fact = loom__environment_fixed; *fact; fact++) {
		const cJSON *a = cJSON_GetObjectItemCaseSensitive(before, *fact);
		const cJSON *b = cJSON_GetObjectItemCaseSensitive(after, *fact);
		if (a && b && !cJSON_Compare(a, b, 1)) {
			struct loom__text was = {0}, is = {0};
			loom__environment_text(a, &was);
			loom__environment_text(b, &is);
			loom__compare_warn(doc, "environment_changed", "%s changed during the run: %.200s, then %.200s",
					   *fact, loom__must_text(&was), loom__must_text(&is));
			loom__text_free(&was);
			loom__text_free(&is);
		}
	}
}

void loom__compare_add_run(cJSON *doc, const struct loom__interleave *x, int code, const struct loom_error *error)
{
	const struct loom__design *d = &x->design;
	cJSON *design = cJSON_GetObjectItemCaseSensitive(doc, "design");
	cJSON *schedule = loom__json_add_array(doc, "schedule");
	loom__json_add_text(design, "order", d->order == LOOM__STATS_ABBA ? "abba" : "random");
	loom__json_add_number(design, "blocks", d->blocks);
	loom__json_add_number(design, "complete", x->blocks);
	loom__json_add_number(design, "samples_per_block", d->per_block);
	loom__json_add_number(design, "warmup", d->warmup);
	loom__json_add_number(design, "rewarm", d->rewarm);
	uint32_t each = loom__interleave_per_opening(d);
	loom__json_add_number(design, "openings", (d->blocks + each - 1) / each);
	loom__json_add_number(design, "blocks_per_opening", each);
	loom__json_add_number(design, "spread", (double)d->spread_ns / 1e9);
	loom__json_add_count(design, "seed", d->seed);
	loom__json_add_bool(design, "interleaved", 1);
	loom__json_add_number(design, "seconds", (double)(loom__now_ns() - x->began_ns) / 1e9);
	for (size_t i = 0; i < x->slots; i++)
		loom__json_append(schedule, cJSON_CreateNumber(x->slot[i]));
	cJSON_ReplaceItemInObjectCaseSensitive(doc, "status", cJSON_CreateString(loom__status_name(code)));
	if (code) {
		cJSON *o = cJSON_CreateObject();
		loom__json_add_number(o, "code", code);
		loom__json_add_text(o, "text", error->text);
		cJSON_ReplaceItemInObjectCaseSensitive(doc, "error", o);
	}
	if (d->openings == 1 && d->blocks > 1)
		loom__compare_warn(doc, "one_opening",
				   "all blocks share one opening: its effects, such as the placement of memory, count as a difference");
	if (x->out_of_budget)
		loom__compare_warn(doc, "budget", "the budget was used up after %u of %u blocks", x->blocks, d->blocks);
	add_environment(doc);
}

void loom__compare_add_files(cJSON *doc)
{
	cJSON *design = cJSON_GetObjectItemCaseSensitive(doc, "design"), *o;
	loom__json_add_text(design, "order", "files");
	loom__json_add_number(design, "blocks", 0);
	loom__json_add_number(design, "complete", 0);
	loom__json_add_number(design, "samples_per_block", 0);
	loom__json_add_number(design, "warmup", 0);
	loom__json_add_null(design, "seed");
	loom__json_add_bool(design, "interleaved", 0);
	loom__json_add_array(doc, "schedule");
	cJSON_ReplaceItemInObjectCaseSensitive(doc, "status", cJSON_CreateString("ok"));
	loom__compare_warn(doc, "not_interleaved",
			   "the runs were not interleaved: changes between them, such as load or "
			   "clock rates, count as differences");
	const cJSON *first = loom__json_object(loom__compare_variant(doc, 0), "result");
	const cJSON *environment = loom__json_object(first, "environment");
	if (environment)
		loom__json_add_copy(doc, "environment", environment);
	else
		loom__json_add_object(doc, "environment");
	o = loom__json_add_object(doc, "quiet");
	cJSON *reasons = cJSON_CreateArray();
	size_t disturbed = 0;
	for (size_t v = 0; v < loom__compare_variants(doc); v++) {
		const cJSON *e =
		    loom__json_object(loom__json_object(loom__compare_variant(doc, v), "result"), "environment");
		cJSON *own = cJSON_CreateArray(), *reason;
		disturbed +=
		    loom__environment_disturbed(loom__json_object(e, "before"), loom__json_object(e, "after"), own);
		cJSON_ArrayForEach(reason, own)
		{
			char text[400];
			snprintf(text, sizeof(text), "%.100s: %s", loom__compare_label(doc, v), reason->valuestring);
			loom__json_append_text(reasons, text);
		}
		cJSON_Delete(own);
	}
	/* Other programs do not record the load of the machine. */
	if (loom__json_list(first, "leading"))
		disturbed++;
	loom__json_add_bool(o, "quiet", !disturbed);
	loom__json_add(o, "reasons", reasons);
}

void loom__compare_add_warnings(cJSON *doc)
{
	for (size_t v = 0; v < loom__compare_variants(doc); v++) {
		const cJSON *w, *result = loom__json_object(loom__compare_variant(doc, v), "result");
		int foreign = loom__json_list(result, "leading") != NULL;
		cJSON_ArrayForEach(w, loom__json_list(result, "warnings"))
		{
			if (foreign || !strcmp(loom__json_text(w, "id"), "throttled"))
				loom__compare_warn(doc, loom__json_text(w, "id"), "%.100s: %.400s",
						   loom__compare_label(doc, v), loom__json_text(w, "text"));
		}
	}
}

/* Computes the noise floor from the spread between blocks of `same`. The floor is inversely proportional to the square
 * root of the number of blocks. */
void loom__compare_add_noise(cJSON *doc, const cJSON *same, uint32_t blocks)
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
		int failed = loom__compare_blocks(same, 0, metric, better, &a, &n);
		if (!failed)
			failed = loom__compare_blocks(same, 1, metric, better, &b, &m);
		if (!failed)
			failed = loom__stats_compare(a, b, n, 1 - alpha, &s);
		free(a);
		free(b);
		if (failed)
			continue;
		cJSON *o = loom__json_append_object(noise);
		loom__json_add_text(o, "metric", metric);
		static const char *const keys[] = {"effect", "low", "high"};
		for (size_t k = 0; k < LOOM__COUNT(keys); k++)
			loom__json_add_copy(o, keys[k], cJSON_GetObjectItemCaseSensitive(c, keys[k]));
		double floor = log1p(loom__stats_detectable(&s, alpha));
		loom__json_add_number(o, "floor", expm1(floor * sqrt((double)n / (double)(blocks ? blocks : 1))));
		if (!strcmp(word, "FASTER") || !strcmp(word, "SLOWER"))
			loom__compare_warn(doc, "same_differs",
					   "%s: the baseline differs from itself here: do not trust a "
					   "difference of that size",
					   metric);
	}
	cJSON_ReplaceItemInObjectCaseSensitive(doc, "noise", noise);
}
