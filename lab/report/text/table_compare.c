/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a comparison as a text table, for terminals. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "facts/must.h"
#include "report/text/grid.h"
#include "report/text/table.h"
#include "report/view/view.h"

static void heading(const struct loom__view *view, struct loom__text *out)
{
	const cJSON *design = loom__json_object(view->head, "design");
	const char *base = view->variants ? view->variant[0].name : "";
	double done = loom__json_number(design, "complete"), planned = loom__json_number(design, "blocks");
	loom__line_add(out, "%s\n", view->title);
	if (!loom__json_true(design, "interleaved")) {
		loom__line_add(out, "  from files, not interleaved; baseline %s\n", base);
		return;
	}
	loom__line_add(out, "  baseline %s; %.0f", base, done);
	if (done < planned)
		loom__line_add(out, " of %.0f", planned);
	loom__line_add(out, " block%s of %.0f samples each%s, %s order, %.3g s\n", planned == 1 ? "" : "s",
		       loom__json_number(design, "samples_per_block"),
		       strcmp(loom__json_text(design, "per_block"), "best") ? "" : " (the best counts)",
		       loom__json_text(design, "order"), loom__json_number(design, "seconds"));
}

static double median_of(const struct loom__view *view, size_t variant, size_t metric)
{
	const struct loom__series *s = view->variant[variant].series;
	return s && metric != LOOM__NO_NAME && s[metric].n ? s[metric].median.at : NAN;
}

static void median_cell(struct loom__grid *g, double v, const struct loom__compared *c)
{
	loom__grid_cell(g, 0, "%s", isnan(v) ? "-" : LOOM__METRIC(v, c->name, c->unit));
}

char *loom__effect_range(char text[LOOM__EFFECT_RANGE], const struct loom__compared *c)
{
	if (!isnan(c->low) || !isnan(c->high))
		loom__gain_range(text, c->effect, c->low, c->high, c->better);
	else
		snprintf(text, LOOM__EFFECT_RANGE, "%s",
			 isnan(c->effect) ? "-" : c->blocks > 0 ? "too few blocks" : "too few samples");
	return text;
}

void loom__verdict_remarks(const struct loom__view *view, const struct loom__compared *c, const char *between,
			   struct loom__text *out)
{
	const cJSON *design = loom__json_object(view->head, "design");
	double block = loom__json_number(design, "seconds") / loom__json_number(design, "complete");
	if (c->verdict == LOOM__V_INCONCLUSIVE && c->more_blocks > 0 && c->more_blocks < 1e6) {
		loom__text_add(out, "%sabout %.0f more blocks", between, c->more_blocks);
		if (isfinite(block))
			loom__text_add(out, " (%s)", LOOM__DURATION(c->more_blocks * block));
	} else if (c->verdict == LOOM__V_EQUIVALENT && isfinite(c->margin)) {
		loom__text_add(out, " within %.3g %%", 100 * c->margin);
	}
	if (*c->notes)
		loom__text_add(out, "%s%s", between, c->notes);
}

const char *loom__verdict_phrase(const struct loom__view *view, const struct loom__compared *c, char perhaps[48])
{
	static const char *const list[] = {"is faster than", "is slower than", "is equivalent to", "differs little from",
					   "cannot be distinguished from"};
	double alpha = loom__json_number(loom__json_object(view->head, "design"), "alpha");
	int less = c->high < 1, large = fmax(log(c->high), -log(c->low)) > 2 * log1p(c->margin);
	int differs = c->better && c->p_holm < alpha && large && (less || c->low > 1);
	*perhaps = 0;
	if (differs && (c->verdict == LOOM__V_TRIVIAL || c->verdict == LOOM__V_INCONCLUSIVE)) {
		snprintf(perhaps, 48, ", perhaps by less than %.3g %%", 100 * c->margin);
		return list[less != (c->better == LOOM_BETTER_LESS)];
	}
	return c->verdict < LOOM__V_OTHER ? list[c->verdict] : NULL;
}

static void add_row(const struct loom__view *view, const struct loom__compared *c, struct loom__grid *g)
{
	char range[LOOM__EFFECT_RANGE], p[32];
	struct loom__text verdict = {0};
	loom__grid_cell(g, 0, "%s", view->variant[c->variant].label);
	median_cell(g, median_of(view, c->variant, c->metric), c);
	loom__grid_cell(g, 0, "%s", LOOM__GAIN(c->effect, c->better));
	loom__grid_cell(g, 0, "%s", loom__effect_range(range, c));
	loom__grid_cell(g, 0, "%s", loom__p_value(p, c->p_holm));
	loom__text_add(&verdict, "%s", c->word);
	loom__verdict_remarks(view, c, ", ", &verdict);
	loom__grid_cell(g, 0, "%s", loom__must_text(&verdict));
	loom__text_free(&verdict);
}

/* Appends one table per metric. */
static void all_comparisons(const struct loom__view *view, struct loom__text *out)
{
	struct loom__grid g = {0};
	char title[40];
	snprintf(title, sizeof(title), "%.3g %% interval",
		 100 * loom__json_number(loom__json_object(view->head, "design"), "confidence"));
	for (size_t i = 0; i < view->comparisons; i++) {
		const struct loom__compared *c = &view->compared[i];
		const char *better = loom__better_name(c->better);
		if (!g.columns) {
			loom__line_add(out, "\n  %s%s%s%s\n", c->name, *better ? " (" : "", better,
				       *better ? " is better)" : "");
			loom__grid_columns(&g, "variant|#median|#change");
			loom__grid_column(&g, LOOM__CELL_NUMBER, title);
			loom__grid_columns(&g, "#p|verdict");
			loom__grid_cell(&g, 0, "%s", view->variant[c->baseline].label);
			median_cell(&g, median_of(view, c->baseline, c->metric), c);
			loom__grid_cell(&g, 0, "baseline");
			for (int k = 0; k < 3; k++)
				loom__grid_cell(&g, 0, "%s", "");
		}
		add_row(view, c, &g);
		if (i + 1 == view->comparisons || strcmp(c[1].name, c->name))
			loom__grid_text(&g, out, 4);
	}
}

static void noise(const cJSON *doc, struct loom__text *out)
{
	const cJSON *o;
	cJSON_ArrayForEach(o, loom__json_list(doc, "noise"))
	{
		char range[112];
		loom__change_range(range, loom__json_number(o, "low"), loom__json_number(o, "high"));
		loom__line_add(out, "  %s, the baseline against itself: %s; differences below about %.2g %% cannot be detected\n",
			       loom__json_text(o, "metric"), loom__ascii(range), 100 * loom__json_number(o, "floor"));
	}
}

/* Returns 1 if a verdict on CPU time would answer the same question: the variants differ in their work only. CPU time
 * contains the polling of workers that wait, so it says nothing of schedulers and waits. */
static int cpu_time_decides(const struct loom__view *view)
{
	int decides = view->factors > 0 && loom__names_find(&view->metric_names, "cpu_seconds") != LOOM__NO_NAME;
	for (size_t f = 0; f < view->factors; f++)
		decides &= !strncmp(view->factor[f], "workload.", 9);
	return decides;
}

/* If a verdict on the first metric is inconclusive, gives one advice: a number of blocks, or, if it is more than ten times
 * the number of this comparison, what else may decide on a busy machine. */
static void advise(const struct loom__view *view, struct loom__text *out)
{
	const char *first = view->comparisons ? view->compared[0].name : "";
	int quiet = loom__json_true(loom__json_object(view->head, "quiet"), "quiet");
	double complete = loom__json_number(loom__json_object(view->head, "design"), "complete"), most = 0;
	for (size_t i = 0; i < view->comparisons; i++)
		if (!strcmp(view->compared[i].name, first) && view->compared[i].verdict == LOOM__V_INCONCLUSIVE)
			most = fmax(most, view->compared[i].more_blocks);
	if (!(most > 0) || !(complete > 0))
		return;
	if (most <= 10 * complete)
		loom__line_add(out, "  to decide %s, compare again with --blocks %.0f\n", first, complete + most);
	else
		loom__line_add(out, "  no realistic number of blocks decides %s%s%s\n", first,
			       quiet ? "" : " on a machine as busy as now",
			       quiet || !strcmp(first, "cpu_seconds") || !cpu_time_decides(view)
				   ? "" : "; judge CPU time, --metric cpu_seconds");
}

const char *loom__gate_outcome(const cJSON *rule)
{
	return loom__json_true(rule, "failed") ? "FAILED" : loom__json_true(rule, "undecided") ? "is undecided" : "holds";
}

static void remarks(const struct loom__view *view, struct loom__text *out)
{
	const cJSON *o, *doc = view->head, *quiet = loom__json_object(doc, "quiet");
	if (view->comparisons > 1)
		loom__line_add(out, "  p is adjusted for %zu comparisons (Holm)\n", view->comparisons);
	if (view->comparisons && view->compared[0].blocks > 0)
		loom__line_add(out, "  medians are of all samples; changes compare within blocks, so that varying load does not count\n");
	noise(doc, out);
	cJSON_ArrayForEach(o, loom__json_list(quiet, "reasons"))
	{
		loom__line_add(out, "  not quiet: %s\n", loom__json_string(o));
	}
	advise(view, out);
	cJSON_ArrayForEach(o, loom__json_list(doc, "warnings"))
	{
		loom__line_add(out, "  note: %s\n", loom__json_text(o, "text"));
	}
	cJSON_ArrayForEach(o, loom__json_list(doc, "gate"))
	{
		loom__line_add(out, "  gate '%s' %s: %s\n", loom__json_text(o, "rule"), loom__gate_outcome(o),
			       loom__json_text(o, "text"));
	}
}

/* Appends a sentence for each variant: the verdict on the first metric. */
static void conclusion(const struct loom__view *view, struct loom__text *out)
{
	int said = 0;
	for (size_t i = 0; i < view->comparisons; i++) {
		const struct loom__compared *c = &view->compared[i];
		char change[48], range[LOOM__EFFECT_RANGE], perhaps[48];
		const char *says = loom__verdict_phrase(view, c, perhaps);
		if (strcmp(c->name, view->compared[0].name) || !says || isnan(c->effect))
			continue;
		loom__gain(change, c->effect, c->better);
		if (!strncmp(change, "\xc3\x97", 2) && strstr(says, "er than"))
			change[strcspn(change, " ")] = 0; /* the sentence has the word faster or slower */
		loom__text_add(out, said++ ? "" : "\n");
		loom__line_add(out, "  %s %s %s in %s%s: %s (%s)\n", view->variant[c->variant].label, says,
			       view->variant[c->baseline].label, c->name, perhaps, loom__ascii(change),
			       loom__ascii(loom__effect_range(range, c)));
	}
}

void loom__table_compare(const struct loom__view *view, struct loom__text *out)
{
	const char *status = loom__json_text(view->head, "status");
	heading(view, out);
	if (!view->comparisons)
		loom__line_add(out, "\n  nothing to compare%s\n",
			       loom__json_number(loom__json_object(view->head, "design"), "complete") > 0
				   ? ""
				   : ": no block was completed");
	all_comparisons(view, out);
	struct loom__text below = {0};
	remarks(view, &below);
	if (below.length)
		loom__text_add(out, "\n%s", below.at);
	loom__text_free(&below);
	conclusion(view, out);
	if (strcmp(status, "ok"))
		loom__line_add(out, "  status: %s: %s\n", status,
			       loom__json_text(loom__json_object(view->head, "error"), "text"));
}
