/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as a person reads it on a terminal. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "report/document.h"
#include "facts/text.h"
#include "report/markup.h"
#include "report/table.h"

#define LABEL_MOST 34

/* "+12.3 %", "-0.42 %", "x4.10": a ratio as a change, in ASCII. */
static const char *change(char text[32], double ratio)
{
	double percent = (ratio - 1) * 100;
	if (!(ratio > 0) || !isfinite(ratio))
		snprintf(text, 32, "?");
	else if (ratio >= 3)
		snprintf(text, 32, "x%.3g", ratio);
	else
		snprintf(text, 32, "%+.*f %%", fabs(percent) < 9.95 ? 2 : fabs(percent) < 99.5 ? 1 : 0,
			 percent);
	return text;
}

static void pad(struct loom__text *out, const char *text, size_t width)
{
	size_t have = loom__markup_width(text);
	loom__line_add(out, "%s%*s", text, have < width ? (int)(width - have) : 0, "");
}

static size_t label_width(const cJSON *doc)
{
	size_t width = 8;
	for (size_t v = 0; v < loom__compare_variants(doc); v++) {
		size_t w = loom__markup_width(loom__compare_label(doc, v));
		width = w > width ? w : width;
	}
	return width < LABEL_MOST ? width : LABEL_MOST;
}

static void heading(const cJSON *doc, struct loom__text *out)
{
	const cJSON *design = loom__json_object(doc, "design");
	const cJSON *base = loom__compare_variant(doc, 0), *result = loom__json_object(base, "result");
	const char *title = loom__json_text(result, "title");
	double done = loom__json_number(design, "complete"), planned = loom__json_number(design, "blocks");
	const char *workload = loom__json_text(result, "workload"), *slash = strrchr(workload, '/');
	loom__line_add(out, "%s\n", *title ? title : slash ? slash + 1 : workload);
	if (!loom__json_true(design, "interleaved")) {
		loom__line_add(out, "  from files, not interleaved; baseline %s\n",
			       loom__json_text(base, "name"));
		return;
	}
	loom__line_add(out, "  baseline %s; %.0f", loom__json_text(base, "name"), done);
	if (done < planned)
		loom__line_add(out, " of %.0f", planned);
	loom__line_add(out, " block%s of %.0f samples each%s, %s order, %.3g s\n",
		       planned == 1 ? "" : "s", loom__json_number(design, "samples_per_block"),
		       strcmp(loom__json_text(design, "per_block"), "best") ? "" : " (the best counts)",
		       loom__json_text(design, "order"), loom__json_number(design, "seconds"));
}

static const char *median_of(const cJSON *doc, size_t variant, const char *metric, const char *unit,
			     char text[160])
{
	double m = loom__json_number(loom__compare_metric_of(doc, variant, metric), "median");
	return isnan(m) ? "-" : loom__figure(text, m, unit);
}

static void explain(const cJSON *c, const char *word, struct loom__text *out)
{
	double more = loom__json_number(c, "more_blocks");
	const cJSON *note;
	if (!strcmp(word, "INCONCLUSIVE") && more > 0)
		loom__line_add(out, ", about %.0f more blocks", more);
	else if (!strcmp(word, "EQUIVALENT"))
		loom__line_add(out, " within %.3g %%", 100 * loom__json_number(c, "margin"));
	cJSON_ArrayForEach(note, loom__json_list(c, "notes"))
	{
		loom__line_add(out, ", %s", loom__json_string(note));
	}
}

/* The baseline's median times the change: the change is of pairs, each from the same moment, and the median of all
 * samples of a variant may tell otherwise when the machine was busier during some. */
static const char *paired_median(const cJSON *doc, const cJSON *c, char text[160])
{
	const char *metric = loom__json_text(c, "metric"), *unit = loom__json_text(c, "unit");
	double base = loom__json_number(loom__compare_metric_of(doc, 0, metric), "median");
	double effect = loom__json_number(c, "effect");
	if (isnan(base) || isnan(effect))
		return median_of(doc, (size_t)loom__json_number(c, "variant"), metric, unit, text);
	return loom__figure(text, base * effect, unit);
}

static void comparison(const cJSON *doc, const cJSON *c, size_t width, struct loom__text *out)
{
	size_t variant = (size_t)loom__json_number(c, "variant");
	const char *word = loom__json_text(c, "verdict");
	char median[160], by[32], low[32], high[32], interval[80], p[32];
	double p_holm = loom__json_number(c, "p_holm"), effect = loom__json_number(c, "effect");
	if (isnan(effect))
		snprintf(interval, sizeof(interval), "-");
	else
		snprintf(interval, sizeof(interval), "%s .. %s",
			 change(low, loom__json_number(c, "low")),
			 change(high, loom__json_number(c, "high")));
	if (isnan(p_holm))
		snprintf(p, sizeof(p), "-");
	else
		snprintf(p, sizeof(p), p_holm < 0.001 ? "<0.001" : "%.3f", p_holm);
	loom__line_add(out, "    ");
	pad(out, loom__compare_label(doc, variant), width);
	loom__line_add(out, " %13s %9s %20s %7s  %s", paired_median(doc, c, median),
		       isnan(effect) ? "-" : change(by, effect), interval, p, word);
	explain(c, word, out);
	loom__line_add(out, "\n");
}

static void all_comparisons(const cJSON *doc, struct loom__text *out)
{
	const cJSON *c, *design = loom__json_object(doc, "design");
	const char *last = "";
	size_t width = label_width(doc);
	char title[32];
	snprintf(title, sizeof(title), "%.3g %% interval", 100 * loom__json_number(design, "confidence"));
	cJSON_ArrayForEach(c, loom__json_list(doc, "comparisons"))
	{
		const char *metric = loom__json_text(c, "metric"), *better = loom__json_text(c, "better");
		if (strcmp(metric, last)) {
			char median[160];
			loom__line_add(out, "\n  %s%s%s%s\n    ", metric, *better ? " (" : "", better,
				       *better ? " is better)" : "");
			pad(out, "variant", width);
			loom__line_add(out, " %13s %9s %20s %7s  verdict\n", "median", "change", title, "p");
			loom__line_add(out, "    ");
			pad(out, loom__compare_label(doc, 0), width);
			loom__line_add(out, " %13s %9s\n",
				       median_of(doc, 0, metric, loom__json_text(c, "unit"), median),
				       "baseline");
			last = metric;
		}
		comparison(doc, c, width, out);
	}
}

static void noise(const cJSON *doc, struct loom__text *out)
{
	const cJSON *o;
	cJSON_ArrayForEach(o, loom__json_list(doc, "noise"))
	{
		char low[32], high[32];
		loom__line_add(out,
			       "  %s, the baseline against itself: %s .. %s; differences under about %.2g %% "
			       "cannot be seen here\n",
			       loom__json_text(o, "metric"), change(low, loom__json_number(o, "low")),
			       change(high, loom__json_number(o, "high")),
			       100 * loom__json_number(o, "floor"));
	}
}

/* On a machine that others use, the best of a block tells what the median cannot. */
static void advise(const cJSON *doc, struct loom__text *out)
{
	const cJSON *c;
	const char *way = loom__json_text(loom__json_object(doc, "design"), "per_block");
	if (loom__json_true(loom__json_object(doc, "quiet"), "quiet") || strcmp(way, "median"))
		return;
	cJSON_ArrayForEach(c, loom__json_list(doc, "comparisons"))
	{
		if (strcmp(loom__json_text(c, "verdict"), "INCONCLUSIVE") ||
		    !(loom__json_number(c, "more_blocks") > 0))
			continue;
		loom__line_add(out, "  --per-block best may tell more while others use the machine\n");
		return;
	}
}

static void remarks(const cJSON *doc, struct loom__text *out)
{
	const cJSON *o, *quiet = loom__json_object(doc, "quiet");
	if (loom__json_length(loom__json_list(doc, "comparisons")) > 1)
		loom__line_add(out, "  p is Holm's, over all %zu comparisons\n",
			       loom__json_length(loom__json_list(doc, "comparisons")));
	if (loom__json_length(loom__json_list(doc, "comparisons")))
		loom__line_add(out, "  the baseline's median is measured; the others are it and the change, which is of pairs\n");
	noise(doc, out);
	cJSON_ArrayForEach(o, loom__json_list(quiet, "reasons"))
	{
		loom__line_add(out, "  not quiet: %s\n", loom__json_string(o));
	}
	advise(doc, out);
	cJSON_ArrayForEach(o, loom__json_list(doc, "warnings"))
	{
		loom__line_add(out, "  note: %s\n", loom__json_text(o, "text"));
	}
	cJSON_ArrayForEach(o, loom__json_list(doc, "gate"))
	{
		loom__line_add(out, "  gate '%s' %s: %s\n", loom__json_text(o, "rule"),
			       loom__json_true(o, "failed")    ? "FAILED" :
			       loom__json_true(o, "undecided") ? "is undecided" :
								 "holds",
			       loom__json_text(o, "text"));
	}
}

void loom__compare_table(const cJSON *doc, struct loom__text *out)
{
	const char *status = loom__json_text(doc, "status");
	heading(doc, out);
	if (!loom__json_length(loom__json_list(doc, "comparisons")))
		loom__line_add(out, "\n  nothing to compare: no block was completed\n");
	all_comparisons(doc, out);
	struct loom__text below = {0};
	remarks(doc, &below);
	if (below.length)
		loom__text_add(out, "\n%s", below.at);
	loom__text_free(&below);
	if (strcmp(status, "ok"))
		loom__line_add(out, "  status: %s: %s\n", status,
			       loom__json_text(loom__json_object(doc, "error"), "text"));
}
