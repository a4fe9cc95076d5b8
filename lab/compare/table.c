/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a comparison as a text table, for terminals. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compare/compare.h"
#include "report/document.h"
#include "facts/must.h"
#include "report/grid.h"
#include "report/table.h"

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

static enum loom_better better_of(const cJSON *c)
{
	const char *better = loom__json_text(c, "better");
	return !strcmp(better, "more") ? LOOM_BETTER_MORE : !strcmp(better, "less") ? LOOM_BETTER_LESS : LOOM_BETTER_NONE;
}

static const char *median_of(const cJSON *doc, size_t variant, const char *metric, const char *unit,
			     char text[160])
{
	double m = loom__json_number(loom__compare_metric_of(doc, variant, metric), "median");
	return isnan(m) ? "-" : loom__metric_figure(text, m, metric, unit);
}

static void add_verdict(const cJSON *doc, const cJSON *c, struct loom__grid *g)
{
	const cJSON *design = loom__json_object(doc, "design");
	double more = loom__json_number(c, "more_blocks"), seconds = loom__json_number(design, "seconds");
	double block = seconds / loom__json_number(design, "complete");
	const char *word = loom__json_text(c, "verdict");
	struct loom__text text = {0};
	const cJSON *note;
	loom__text_add(&text, "%s", word);
	if (!strcmp(word, "INCONCLUSIVE") && more > 0)
		loom__text_add(&text, ", about %.0f more blocks%s%s%s", more, isfinite(block) ? " (" : "",
			       isfinite(block) ? LOOM__DURATION(more * block) : "", isfinite(block) ? ")" : "");
	else if (!strcmp(word, "EQUIVALENT"))
		loom__text_add(&text, " within %.3g %%", 100 * loom__json_number(c, "margin"));
	cJSON_ArrayForEach(note, loom__json_list(c, "notes"))
	{
		loom__text_add(&text, ", %s", loom__json_string(note));
	}
	loom__grid_cell(g, 0, "%s", loom__must_text(&text));
	loom__text_free(&text);
}

/* Returns the median of the baseline times the effect. The median of the variant's own samples could contradict the
 * effect, if load varied. */
static const char *paired_median(const cJSON *doc, const cJSON *c, char text[160])
{
	const char *metric = loom__json_text(c, "metric"), *unit = loom__json_text(c, "unit");
	double base = loom__json_number(loom__compare_metric_of(doc, 0, metric), "median");
	double effect = loom__json_number(c, "effect");
	if (isnan(base) || isnan(effect))
		return median_of(doc, (size_t)loom__json_number(c, "variant"), metric, unit, text);
	return loom__metric_figure(text, base * effect, metric, unit);
}

static void add_row(const cJSON *doc, const cJSON *c, struct loom__grid *g)
{
	char median[160], range[112], p[32];
	double effect = loom__json_number(c, "effect");
	loom__grid_cell(g, 0, "%s", loom__compare_label(doc, (size_t)loom__json_number(c, "variant")));
	loom__grid_cell(g, 0, "%s", paired_median(doc, c, median));
	loom__grid_cell(g, 0, "%s", LOOM__GAIN(effect, better_of(c)));
	loom__grid_cell(g, 0, "%s",
			isnan(effect) ? "-" :
					loom__gain_range(range, effect, loom__json_number(c, "low"),
							 loom__json_number(c, "high"), better_of(c), "?"));
	loom__grid_cell(g, 0, "%s", loom__p_value(p, loom__json_number(c, "p_holm")));
	add_verdict(doc, c, g);
}

/* Appends one table per metric. */
static void all_comparisons(const cJSON *doc, struct loom__text *out)
{
	const cJSON *c, *design = loom__json_object(doc, "design");
	struct loom__grid g = {0};
	char title[40], median[160];
	snprintf(title, sizeof(title), "%.3g %% interval", 100 * loom__json_number(design, "confidence"));
	cJSON_ArrayForEach(c, loom__json_list(doc, "comparisons"))
	{
		const char *metric = loom__json_text(c, "metric"), *better = loom__json_text(c, "better");
		if (!g.columns) {
			loom__line_add(out, "\n  %s%s%s%s\n", metric, *better ? " (" : "", better,
				       *better ? " is better)" : "");
			loom__grid_columns(&g, "variant|#median|#change");
			loom__grid_column(&g, LOOM__CELL_NUMBER, title);
			loom__grid_columns(&g, "#p|verdict");
			loom__grid_cell(&g, 0, "%s", loom__compare_label(doc, 0));
			loom__grid_cell(&g, 0, "%s", median_of(doc, 0, metric, loom__json_text(c, "unit"), median));
			loom__grid_cell(&g, 0, "baseline");
			for (int i = 0; i < 3; i++)
				loom__grid_cell(&g, 0, "%s", "");
		}
		add_row(doc, c, &g);
		if (!c->next || strcmp(loom__json_text(c->next, "metric"), metric))
			loom__grid_text(&g, out, 4);
	}
}

static void noise(const cJSON *doc, struct loom__text *out)
{
	const cJSON *o;
	cJSON_ArrayForEach(o, loom__json_list(doc, "noise"))
	{
		char range[112];
		loom__change_range(range, loom__json_number(o, "low"), loom__json_number(o, "high"), "?");
		loom__line_add(
		    out, "  %s, the baseline against itself: %s; differences below about %.2g %% cannot be detected\n",
		    loom__json_text(o, "metric"), loom__ascii(range), 100 * loom__json_number(o, "floor"));
	}
}

/* If a verdict on the first metric is inconclusive, suggests a number of blocks. If it is more than ten times the number
 * of this comparison, the suggestion is not realistic. On a busy machine CPU time decides first: other load moves it least. */
static void advise(const cJSON *doc, struct loom__text *out)
{
	const cJSON *c, *list = loom__json_list(doc, "comparisons"), *design = loom__json_object(doc, "design");
	const char *first = list && list->child ? loom__json_text(list->child, "metric") : "";
	int quiet = loom__json_true(loom__json_object(doc, "quiet"), "quiet");
	double complete = loom__json_number(design, "complete"), most = 0;
	cJSON_ArrayForEach(c, list)
	{
		double more = loom__json_number(c, "more_blocks");
		if (!strcmp(loom__json_text(c, "metric"), first) && !strcmp(loom__json_text(c, "verdict"), "INCONCLUSIVE") &&
		    more > most)
			most = more;
	}
	if (!(most > 0) || !(complete > 0))
		return;
	if (most <= 10 * complete)
		loom__line_add(out, "  to decide %s, compare again with --blocks %.0f\n", first, complete + most);
	else
		loom__line_add(out, "  no realistic number of blocks decides %s%s\n", first,
			       quiet ? "" : " on a machine as busy as now");
	if (!quiet && strcmp(first, "cpu_seconds"))
		loom__line_add(out, "  the machine is busy: judge CPU time, --metric cpu_seconds\n");
}

static void remarks(const cJSON *doc, struct loom__text *out)
{
	const cJSON *o, *quiet = loom__json_object(doc, "quiet");
	if (loom__json_length(loom__json_list(doc, "comparisons")) > 1)
		loom__line_add(out, "  p is adjusted for %zu comparisons (Holm)\n",
			       loom__json_length(loom__json_list(doc, "comparisons")));
	if (loom__json_length(loom__json_list(doc, "comparisons")))
		loom__line_add(out, "  other medians are baseline x paired change (see docs/compare.md)\n");
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

/* Appends a sentence for each variant: the verdict on the first metric. */
static void conclusion(const cJSON *doc, struct loom__text *out)
{
	const cJSON *c, *list = loom__json_list(doc, "comparisons");
	const char *first = list && list->child ? loom__json_text(list->child, "metric") : "";
	int said = 0;
	cJSON_ArrayForEach(c, list)
	{
		const char *says = loom__verdict_phrase(loom__json_text(c, "verdict"));
		double effect = loom__json_number(c, "effect");
		char change[48], range[112];
		if (strcmp(loom__json_text(c, "metric"), first) || !says || isnan(effect))
			continue;
		loom__gain(change, effect, better_of(c));
		loom__gain_range(range, effect, loom__json_number(c, "low"), loom__json_number(c, "high"), better_of(c),
				 "?");
		if (!strncmp(change, "\xc3\x97", 2))
			change[strcspn(change, " ")] = 0; /* the sentence has the word faster or slower */
		loom__text_add(out, said++ ? "" : "\n");
		loom__line_add(out, "  %s %s %s in %s: %s (%s)\n",
			       loom__compare_label(doc, (size_t)loom__json_number(c, "variant")), says,
			       loom__compare_label(doc, 0), first, loom__ascii(change), loom__ascii(range));
	}
}

void loom__compare_table(const cJSON *doc, struct loom__text *out)
{
	const char *status = loom__json_text(doc, "status");
	heading(doc, out);
	if (!loom__json_length(loom__json_list(doc, "comparisons")))
		loom__line_add(out, "\n  nothing to compare%s\n",
			       loom__json_number(loom__json_object(doc, "design"), "complete") > 0
				   ? ""
				   : ": no block was completed");
	all_comparisons(doc, out);
	struct loom__text below = {0};
	remarks(doc, &below);
	if (below.length)
		loom__text_add(out, "\n%s", below.at);
	loom__text_free(&below);
	conclusion(doc, out);
	if (strcmp(status, "ok"))
		loom__line_add(out, "  status: %s: %s\n", status,
			       loom__json_text(loom__json_object(doc, "error"), "text"));
}
