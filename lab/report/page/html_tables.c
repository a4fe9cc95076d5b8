/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a page: verdicts, variants, metrics, and configurations that were not run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/page/html.h"
#include "report/text/table.h"
#include "facts/must.h"

#define MOST_ROWS    200
#define MOST_COLUMNS 8

/* Returns 1 if all comparisons have the same baseline, so that rows need not name it. */
static int one_baseline(const struct loom__view *view)
{
	for (size_t i = 1; i < view->comparisons; i++)
		if (view->compared[i].baseline != view->compared[0].baseline)
			return 0;
	return 1;
}

void loom__verdict_grid(const struct loom__view *view, size_t rows, int remarks, struct loom__grid *g)
{
	int against = !one_baseline(view);
	loom__grid_columns(g, "variant");
	if (against)
		loom__grid_columns(g, "against");
	loom__grid_columns(g, "metric|verdict|#change|#95 % interval|#p (Holm)|#blocks");
	if (remarks)
		loom__grid_column(g, LOOM__CELL_SOFT, "remarks");
	for (size_t i = 0; i < view->comparisons && i < rows; i++) {
		const struct loom__compared *c = &view->compared[i];
		char p[32], range[LOOM__EFFECT_RANGE];
		loom__grid_cell(g, 0, "%s", view->variant[c->variant].label);
		if (against)
			loom__grid_cell(g, 0, "%s", view->variant[c->baseline].label);
		loom__grid_cell(g, 0, "%s", c->name);
		loom__grid_cell(g, LOOM__CELL_VERDICT | (unsigned)c->verdict << 8, "%s", *c->word ? c->word : "none");
		loom__grid_cell(g, 0, "%s", LOOM__GAIN(c->effect, c->better));
		loom__grid_cell(g, 0, "%s", loom__effect_range(range, c));
		loom__grid_cell(g, 0, "%s", loom__p_value(p, isnan(c->p_holm) ? c->p : c->p_holm));
		loom__grid_cell(g, 0, "%.0zu",
				c->blocks >= 0 && c->blocks < 1e12 ? (size_t)c->blocks : 0); /* 0: empty */
		if (remarks) {
			struct loom__text text = {0};
			loom__verdict_remarks(view, c, "; ", &text);
			const char *said = loom__must_text(&text);
			loom__grid_cell(g, 0, "%s", said + strspn(said, "; "));
			loom__text_free(&text);
		}
	}
}

void loom__html_headline(struct loom__text *out, const struct loom__view *view)
{
	size_t said = 0;
	for (size_t i = 0; i < view->comparisons && said < 3; i++) {
		const struct loom__compared *c = &view->compared[i];
		char perhaps[48];
		const char *says = loom__verdict_phrase(view, c, perhaps);
		if (!says || strcmp(c->name, view->compared[0].name))
			continue;
		loom__markup_add(out,
				 "<p class=\"headline\"><strong>%s</strong> %s <strong>%s</strong> in %s%s: %s.</p>\n",
				 view->variant[c->variant].label, says, view->variant[c->baseline].label, c->name,
				 perhaps, LOOM__GAIN(c->effect, c->better));
		said++;
	}
}

void loom__html_verdicts(struct loom__text *out, const struct loom__view *view)
{
	size_t rows = view->comparisons < MOST_ROWS ? view->comparisons : MOST_ROWS;
	struct loom__text caption = {0};
	struct loom__grid g = {0};
	loom__html_section(out, "verdicts", "Verdict", "");
	loom__text_add(&caption, "Change of each metric against %s",
		       one_baseline(view) ? view->variant[view->compared[0].baseline].label : "its baseline");
	loom__verdict_grid(view, rows, 1, &g);
	loom__grid_html(&g, out, "cards", loom__must_text(&caption));
	loom__text_free(&caption);
	if (rows < view->comparisons)
		loom__text_add(out, "<p class=\"soft\">The first %zu of %zu comparisons.</p>\n", rows,
			       view->comparisons);
}

/* Appends the median of a series as a cell. */
static void median(struct loom__grid *g, const struct loom__series *s, const struct loom__view_metric *m)
{
	loom__grid_cell(g, 0, "%s", s && s->n ? LOOM__METRIC(s->median.at, m->name, m->unit) : "\xe2\x80\x93");
}

static void range(struct loom__grid *g, const struct loom__series *s, double low, double high,
		  const struct loom__view_metric *m)
{
	char text[340];
	loom__grid_cell(g, 0, "%s", s->n ? loom__metric_range(text, low, high, m->name, m->unit) : "");
}

/* Returns 1 if the table has a column per factor. If the result is 0, the table has a column with the labels of the
 * variants instead. */
static int named_by_levels(const struct loom__view *view)
{
	return view->kind == LOOM__DOC_SWEEP && view->factors;
}

static void variant_row(struct loom__grid *g, const struct loom__view *view, size_t i, size_t metric)
{
	const struct loom__variant *v = &view->variant[i];
	const struct loom__series *s = &v->series[metric];
	const struct loom__view_metric *m = &view->metric[metric];
	struct loom__text name = {0};
	if (named_by_levels(view)) { /* the median comes first, because a narrow page shows few columns */
		median(g, s, m);
		for (size_t f = 0; f < view->factors && f < MOST_COLUMNS; f++)
			loom__grid_cell(g, 0, "%s", v->level && v->level[f] ? v->level[f] : "");
	} else {
		if (view->variants <= LOOM__SERIES) {
			loom__text_add(&name,
				       "<svg class=\"plot key\" viewBox=\"0 0 14 14\" width=\"14\" height=\"14\" "
				       "aria-hidden=\"true\">");
			loom__svg_mark(&name, i, "fill", 7, 7, 5, NULL);
			loom__text_add(&name, "</svg>");
		}
		loom__markup_text(&name, v->label);
		loom__grid_markup(g, &name);
		median(g, s, m);
	}
	if (s->n && s->median.open)
		loom__grid_cell(g, 0, "needs 6 samples");
	else
		range(g, s, s->median.low, s->median.high, m);
	range(g, s, s->n ? s->sorted[0] : NAN, s->n ? s->sorted[s->n - 1] : NAN, m);
	loom__grid_cell(g, 0, "%zu", s->n);
	loom__grid_cell(g, 0, "%s", v->status);
}

void loom__html_variants(struct loom__text *out, const struct loom__view *view, size_t metric)
{
	/* Configurations of a sweep are sorted, best first. Other variants keep their order, with the baseline
	 * first. */
	size_t n, *order = loom__view_order(view, metric, view->kind == LOOM__DOC_SWEEP, &n);
	loom__html_section(out, "variants",
			   view->kind == LOOM__DOC_SWEEP ? "Configurations, best first"
			   : view->variants == 1         ? "Result"
							 : "Variants",
			   "");
	struct loom__text caption = {0};
	struct loom__grid g = {0};
	const char *better = loom__better_name(view->metric[metric].better);
	loom__text_add(&caption, *better ? "%s, %s is better" : "%s", view->metric[metric].name, better);
	loom__grid_columns(&g, named_by_levels(view) ? "#median" : "variant|#median");
	for (size_t f = 0; named_by_levels(view) && f < view->factors && f < MOST_COLUMNS; f++)
		loom__grid_column(&g, 0, view->factor[f]);
	loom__grid_columns(&g, "#95 % interval|#lowest \xe2\x80\xa6 highest|#samples|status");
	for (size_t k = 0; k < n && k < MOST_ROWS; k++)
		variant_row(&g, view, order[k], metric);
	loom__grid_html(&g, out, named_by_levels(view) ? "" : "cards", loom__must_text(&caption));
	loom__text_free(&caption);
	if (n > MOST_ROWS)
		loom__text_add(out, "<p class=\"soft\">%d of %zu; the rest is in the CSV.</p>\n", MOST_ROWS, n);
	loom__text_add(out, "</section>\n");
	free(order);
}

void loom__metric_grid(const struct loom__view *view, size_t columns, int better, struct loom__grid *g)
{
	loom__grid_columns(g, "median of");
	if (better)
		loom__grid_column(g, LOOM__CELL_SOFT, "better");
	for (size_t i = 0; i < columns; i++)
		loom__grid_column(g, LOOM__CELL_NUMBER, view->variant[i].label);
	for (size_t m = 0; m < view->metrics; m++) {
		const struct loom__view_metric *metric = &view->metric[m];
		if (!metric->shown)
			continue;
		loom__grid_cell(g, 0, "%s", metric->name);
		if (better)
			loom__grid_cell(g, 0, "%s", loom__better_name(metric->better));
		for (size_t i = 0; i < columns; i++)
			median(g, view->variant[i].series ? &view->variant[i].series[m] : NULL, metric);
	}
}

void loom__html_metrics(struct loom__text *out, const struct loom__view *view)
{
	size_t columns = view->variants < MOST_COLUMNS ? view->variants : MOST_COLUMNS;
	struct loom__grid g = {0};
	if (view->kind == LOOM__DOC_SWEEP || !view->metrics || !columns)
		return;
	loom__html_section(out, "metrics", "All metrics",
			   "Medians. Metrics that are 0 in all samples are left out, since their mechanism took no "
			   "part.");
	loom__metric_grid(view, columns, 1, &g);
	loom__grid_html(&g, out, "", "Medians of all metrics");
	if (view->metrics_left_out)
		loom__text_add(out, "<p class=\"soft\">Only the first %d metrics were read.</p>\n", LOOM__VIEW_METRICS);
	if (columns < view->variants)
		loom__text_add(out, "<p class=\"soft\">The first %zu of %zu variants.</p>\n", columns, view->variants);
	loom__text_add(out, "</section>\n");
}

static int is_missing(const struct loom__variant *v)
{
	return strcmp(v->status, "ok") && !(v->rows && !*v->note);
}

static int same_reason(const struct loom__variant *a, const struct loom__variant *b)
{
	return !strcmp(a->status, b->status) && !strcmp(a->note, b->note);
}

/* Appends a row with the variants that are missing for the same reason as `first`. If there are several such variants,
 * they are folded. */
static void add_group(struct loom__grid *g, const struct loom__view *view, size_t first, size_t count)
{
	size_t shown = 0;
	struct loom__text names = {0};
	if (count > 1)
		loom__text_add(&names, "<details><summary>%zu of %zu</summary>", count, view->variants);
	for (size_t i = first; i < view->variants && shown < MOST_ROWS; i++) {
		const struct loom__variant *v = &view->variant[i];
		if (is_missing(v) && same_reason(v, &view->variant[first]))
			loom__markup_add(&names, shown++ ? "<br>%s" : "%s", v->name);
	}
	if (count > shown)
		loom__text_add(&names, "<br>... %zu more", count - shown);
	loom__text_add(&names, count > 1 ? "</details>" : "");
	loom__grid_markup(g, &names);
	loom__grid_cell(g, LOOM__CELL_NOWRAP, "%s", view->variant[first].status);
	loom__grid_cell(g, 0, "%s", view->variant[first].note);
}

void loom__html_missing(struct loom__text *out, const struct loom__view *view)
{
	size_t first[MOST_ROWS], count[MOST_ROWS], groups = 0, left = 0;
	struct loom__grid g = {0};
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		size_t k = 0;
		if (!is_missing(v))
			continue;
		while (k < groups && !same_reason(v, &view->variant[first[k]]))
			k++;
		if (k == MOST_ROWS) {
			left++;
			continue;
		}
		if (k == groups) {
			first[k] = i;
			count[groups++] = 0;
		}
		count[k]++;
	}
	if (!groups)
		return;
	loom__html_section(out, "missing", "Not run, or not to the end", "");
	loom__grid_columns(&g, "which|status|reason");
	for (size_t k = 0; k < groups; k++)
		add_group(&g, view, first[k], count[k]);
	loom__grid_html(&g, out, "wrap", "What was left out, and why");
	if (left)
		loom__text_add(out, "<p class=\"soft\">And %zu more.</p>\n", left);
	loom__text_add(out, "</section>\n");
}
