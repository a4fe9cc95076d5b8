/* SPDX-License-Identifier: Apache-2.0 */
/* The page's tables of figures: verdicts, variants, metrics, effects, and what did not run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"

#define MOST_ROWS    200
#define MOST_COLUMNS 8

static const char *const verdict_style[] = {"v-faster",  "v-slower", "v-equivalent",
					    "v-trivial", "v-open",   "v-open"};
static const char *const verdict_sign[] = {"\xe2\x96\xb2", "\xe2\x96\xbc", "\xe2\x96\xa0",
					   "\xe2\x97\x86", "\xe2\x97\x8b", ""};

static void cell(struct loom__text *out, const char *label, const char *style)
{
	loom__text_add(out, "<td data-label=\"%s\"%s%s%s>", label, *style ? " class=\"" : "", style,
		       *style ? "\"" : "");
}

/* 1: all comparisons are against the same variant, which then need not be repeated. */
static int one_baseline(const struct loom__view *view)
{
	for (size_t i = 1; i < view->comparisons; i++)
		if (view->compared[i].baseline != view->compared[0].baseline)
			return 0;
	return 1;
}

static void verdict_row(struct loom__text *out, const struct loom__view *view,
			const struct loom__compared *c)
{
	char p[32];
	loom__text_add(out, "<tr>");
	loom__html_element(out, "<th scope=\"row\">", view->variant[c->variant].label, "");
	if (!one_baseline(view))
		loom__html_element(out, " <span class=\"soft\">against ",
				   view->variant[c->baseline].label, "</span>");
	loom__text_add(out, "</th>");
	cell(out, "Metric", "");
	loom__html_element(out, "", c->name, "</td>");
	cell(out, "Verdict", "");
	loom__text_add(out, "<span class=\"verdict %s\" data-sign=\"%s\">",
		       verdict_style[c->verdict], verdict_sign[c->verdict]);
	loom__html_element(out, "", *c->word ? c->word : "none", "</span></td>");
	cell(out, "Change", "n");
	loom__text_add(out, "%s</td>", LOOM__CHANGE(c->effect));
	cell(out, "Interval", "n");
	loom__text_add(out, "%s", isnan(c->low) ? "not bounded" : LOOM__CHANGE(c->low));
	loom__text_add(out, " \xe2\x80\xa6 %s</td>",
		       isnan(c->high) ? "not bounded" : LOOM__CHANGE(c->high));
	cell(out, "p", "n");
	loom__html_element(out, "", loom__p_value(p, isnan(c->p_holm) ? c->p : c->p_holm), "</td>");
	cell(out, "Blocks", "n");
	if (c->blocks >= 0 && c->blocks < 1e12)
		loom__text_add(out, "%.0f", c->blocks);
	loom__text_add(out, "</td>");
	cell(out, "Remarks", *c->notes || c->more_blocks > 0 ? "soft" : "none");
	if (c->more_blocks > 0 && c->verdict == LOOM__V_INCONCLUSIVE && c->more_blocks < 1e6)
		loom__text_add(out, "about %.0f more blocks would tell%s", c->more_blocks,
			       *c->notes ? "; " : "");
	loom__markup_text(out, c->notes);
	loom__text_add(out, "</td></tr>\n");
}

void loom__html_headline(struct loom__text *out, const struct loom__view *view)
{
	static const char *const says[] = {"is faster than", "is slower than", "is equivalent to",
					   "differs little from", "cannot be told from"};
	size_t said = 0;
	for (size_t i = 0; i < view->comparisons && said < 3; i++) {
		const struct loom__compared *c = &view->compared[i];
		if (c->verdict == LOOM__V_OTHER || strcmp(c->name, view->compared[0].name))
			continue;
		loom__html_element(out, "<p class=\"headline\"><strong>",
				   view->variant[c->variant].label, "</strong> ");
		loom__html_element(out, says[c->verdict], " ", "<strong>");
		loom__html_element(out, "", view->variant[c->baseline].label, "</strong>");
		loom__html_element(out, " in ", c->name, ": ");
		loom__text_add(out, "%s.</p>\n", LOOM__CHANGE(c->effect));
		said++;
	}
}

void loom__html_verdicts(struct loom__text *out, const struct loom__view *view)
{
	size_t rows = view->comparisons < MOST_ROWS ? view->comparisons : MOST_ROWS;
	loom__html_section(out, "verdicts", "Verdict", "");
	struct loom__text caption = {0};
	loom__html_element(&caption, "Change of each metric against ",
			   one_baseline(view) ? view->variant[view->compared[0].baseline].label
					      : "its baseline",
			   "");
	loom__html_table(out, "cards", caption.at ? caption.at : "");
	loom__text_free(&caption);
	loom__text_add(
	    out,
	    "<thead><tr><th scope=\"col\">Variant</th><th scope=\"col\">Metric</th>"
	    "<th scope=\"col\">Verdict</th><th scope=\"col\" class=\"n\">Change</th>"
	    "<th scope=\"col\" class=\"n\">95 %% interval</th>"
	    "<th scope=\"col\" class=\"n\">p (Holm)</th><th scope=\"col\" class=\"n\">Blocks</th>"
	    "<th scope=\"col\">Remarks</th></tr></thead>\n<tbody>\n");
	for (size_t i = 0; i < rows; i++)
		verdict_row(out, view, &view->compared[i]);
	loom__html_table_end(out);
	if (rows < view->comparisons)
		loom__text_add(out, "<p class=\"soft\">The first %zu of %zu comparisons.</p>\n",
			       rows, view->comparisons);
}

struct order {
	const struct loom__view *view;
	size_t metric;
};

static int better_first(const void *a, const void *b, void *arg)
{
	const struct order *o = arg;
	size_t i = *(const size_t *)a, k = *(const size_t *)b;
	const struct loom__series *s = &o->view->variant[i].series[o->metric];
	const struct loom__series *t = &o->view->variant[k].series[o->metric];
	if (!s->n || !t->n)
		return s->n ? -1 : t->n ? 1 : (i > k) - (i < k);
	double x = s->median.at, y = t->median.at;
	int order = (x > y) - (x < y);
	if (!order)
		return (i > k) - (i < k);
	return loom__view_better(o->view, o->metric) == LOOM__STATS_MORE ? -order : order;
}

static void median(struct loom__text *out, const struct loom__series *s, const char *unit)
{
	cell(out, "Median", "n");
	loom__markup_figure(out, s->n ? s->median.at : NAN, unit);
	loom__text_add(out, "</td>");
}

static void figures(struct loom__text *out, const struct loom__series *s, const char *unit)
{
	cell(out, "Interval", "n");
	if (s->n && !s->median.open) {
		loom__markup_range(out, s->median.low, s->median.high, unit);
	} else {
		loom__text_add(out, s->n ? "open" : "\xe2\x80\x93");
	}
	loom__text_add(out, "</td>");
	cell(out, "Range", "n");
	if (s->n)
		loom__markup_range(out, s->sorted[0], s->sorted[s->n - 1], unit);
	loom__text_add(out, "</td>");
	cell(out, "Samples", "n");
	loom__text_add(out, "%zu</td>", s->n);
}

/* The cells of a sweep are named by their levels, variants by their label. */
static int named_by_levels(const struct loom__view *view)
{
	return view->kind == LOOM__DOC_SWEEP && view->factors;
}

/* Long keys may break at their dots. */
static void key_heading(struct loom__text *out, const char *key)
{
	loom__text_add(out, "<th scope=\"col\" class=\"keyed\">");
	for (const char *dot; (dot = strchr(key, '.')); key = dot + 1) {
		char part[64] = "";
		strncat(part, key, (size_t)(dot - key) < 60 ? (size_t)(dot - key) : 60);
		loom__html_element(out, "", part, ".<wbr>");
	}
	loom__html_element(out, "", key, "</th>");
}

static void variant_levels(struct loom__text *out, const struct loom__view *view,
			   const struct loom__variant *v)
{
	for (size_t f = 0; f < view->factors && f < MOST_COLUMNS; f++) {
		const char *level = v->level && v->level[f] ? v->level[f] : "";
		loom__html_element(out, f ? "<td data-label=\"" : "<th scope=\"row\" data-label=\"",
				   view->factor[f], "\">");
		loom__html_element(out, "", level, f ? "</td>" : "</th>");
	}
}

static void variant_row(struct loom__text *out, const struct loom__view *view, size_t i,
			size_t metric)
{
	const struct loom__variant *v = &view->variant[i];
	loom__text_add(out, "<tr>");
	if (named_by_levels(view)) { /* what it is about first: a narrow page shows little more */
		median(out, &v->series[metric], view->metric[metric].unit);
		variant_levels(out, view, v);
	} else {
		loom__text_add(out, "<th scope=\"row\">");
		if (view->variants <= LOOM__SERIES) {
			loom__text_add(out,
				       "<svg class=\"plot key\" viewBox=\"0 0 14 14\" width=\"14\" "
				       "height=\"14\" aria-hidden=\"true\">");
			loom__svg_mark(out, i, "fill", 7, 7, 5, NULL);
			loom__text_add(out, "</svg>");
		}
		loom__html_element(out, "", v->label, "</th>");
		median(out, &v->series[metric], view->metric[metric].unit);
	}
	figures(out, &v->series[metric], view->metric[metric].unit);
	cell(out, "Status", "");
	loom__html_element(out, "", v->status, "</td></tr>\n");
}

void loom__html_variants(struct loom__text *out, const struct loom__view *view, size_t metric)
{
	size_t *order = calloc(view->variants + 1, sizeof(*order)), n = 0;
	struct order by = {view, metric};
	for (size_t i = 0; order && i < view->variants; i++)
		if (view->variant[i].series && view->variant[i].series[metric].n)
			order[n++] = i;
	/* The baseline stays first; the cells of a sweep stand best first. */
	if (view->kind == LOOM__DOC_SWEEP && order)
		qsort_r(order, n, sizeof(*order), better_first, &by);
	loom__html_section(out, "variants",
			   view->kind == LOOM__DOC_SWEEP ? "Cells, best first"
			   : view->variants == 1         ? "Result"
							 : "Variants",
			   "");
	struct loom__text caption = {0};
	loom__html_element(&caption, "", view->metric[metric].name, "");
	if (view->metric[metric].better)
		loom__text_add(&caption, ", %s is better",
			       view->metric[metric].better == LOOM__MORE_IS_BETTER ? "more"
										   : "less");
	loom__html_table(out, named_by_levels(view) ? "" : "cards", caption.at ? caption.at : "");
	loom__text_free(&caption);
	loom__text_add(out, "<thead><tr>%s",
		       named_by_levels(view) ? "<th scope=\"col\" class=\"n\">Median</th>"
					     : "<th scope=\"col\">Variant</th>"
					       "<th scope=\"col\" class=\"n\">Median</th>");
	for (size_t f = 0; named_by_levels(view) && f < view->factors && f < MOST_COLUMNS; f++)
		key_heading(out, view->factor[f]);
	loom__text_add(out, "<th scope=\"col\" class=\"n\">95 %% interval</th>"
			    "<th scope=\"col\" class=\"n\">Lowest \xe2\x80\xa6 highest</th>"
			    "<th scope=\"col\" class=\"n\">Samples</th>"
			    "<th scope=\"col\">Status</th></tr></thead>\n<tbody>\n");
	for (size_t k = 0; k < n && k < MOST_ROWS; k++)
		variant_row(out, view, order[k], metric);
	loom__html_table_end(out);
	if (n > MOST_ROWS)
		loom__text_add(out, "<p class=\"soft\">%d of %zu; the rest is in the CSV.</p>\n",
			       MOST_ROWS, n);
	loom__text_add(out, "</section>\n");
	free(order);
}

void loom__html_metrics(struct loom__text *out, const struct loom__view *view)
{
	size_t columns = view->variants < MOST_COLUMNS ? view->variants : MOST_COLUMNS;
	if (view->kind == LOOM__DOC_SWEEP || !view->metrics || !columns)
		return;
	loom__html_section(
	    out, "metrics", "All metrics",
	    "Medians. A metric that is 0 in every sample belongs to a mechanism that took no "
	    "part, and is left out.");
	loom__html_table(out, "", "Medians of all metrics");
	loom__text_add(out,
		       "<thead><tr><th scope=\"col\">Metric</th><th scope=\"col\">Better</th>");
	for (size_t i = 0; i < columns; i++)
		loom__html_element(out, "<th scope=\"col\" class=\"n\">", view->variant[i].label,
				   "</th>");
	loom__text_add(out, "</tr></thead>\n<tbody>\n");
	for (size_t m = 0; m < view->metrics; m++) {
		const struct loom__view_metric *metric = &view->metric[m];
		if (!metric->shown)
			continue;
		loom__html_element(out, "<tr><th scope=\"row\">", metric->name, "</th>");
		loom__text_add(out, "<td class=\"soft\">%s</td>",
			       metric->better == LOOM__MORE_IS_BETTER   ? "more"
			       : metric->better == LOOM__LESS_IS_BETTER ? "less"
									: "");
		for (size_t i = 0; i < columns; i++) {
			const struct loom__series *s = view->variant[i].series;
			loom__text_add(out, "<td class=\"n\">");
			loom__markup_figure(out, s && s[m].n ? s[m].median.at : NAN, metric->unit);
			loom__text_add(out, "</td>");
		}
		loom__text_add(out, "</tr>\n");
	}
	loom__html_table_end(out);
	if (view->metrics_left_out)
		loom__text_add(out, "<p class=\"soft\">Only the first %d metrics were read.</p>\n",
			       LOOM__VIEW_METRICS);
	if (columns < view->variants)
		loom__text_add(out, "<p class=\"soft\">The first %zu of %zu variants.</p>\n",
			       columns, view->variants);
	loom__text_add(out, "</section>\n");
}

void loom__html_effects(struct loom__text *out, const struct loom__view *view, size_t metric)
{
	const char *level[MOST_ROWS];
	loom__text_add(out, "<details><summary>The same as a table</summary>\n");
	loom__html_table(out, "", "Change against the first level, other factors equal");
	loom__text_add(out,
		       "<thead><tr><th scope=\"col\">Factor</th><th scope=\"col\">Level</th>"
		       "<th scope=\"col\">Against</th><th scope=\"col\" class=\"n\">Change</th>"
		       "<th scope=\"col\" class=\"n\">95 %% interval</th>"
		       "<th scope=\"col\" class=\"n\">Pairs of cells</th></tr></thead>\n<tbody>\n");
	for (size_t f = 0; f < view->factors && f < MOST_ROWS / 8; f++) {
		size_t n = loom__effect_levels(view, f, level, 16);
		for (size_t i = 1; i < n; i++) {
			struct loom__stats_interval r = {0};
			size_t pairs = loom__effect(view, metric, f, level[0], level[i], &r);
			loom__html_element(out, "<tr><th scope=\"row\">", view->factor[f], "</th>");
			loom__html_element(out, "<td>", level[i], "</td>");
			loom__html_element(out, "<td>", level[0], "</td>");
			loom__text_add(out, "<td class=\"n\">%s</td><td class=\"n\">",
				       LOOM__CHANGE(pairs ? r.at : NAN));
			if (pairs && !r.open)
				loom__text_add(out, "%s \xe2\x80\xa6 %s", LOOM__CHANGE(r.low),
					       LOOM__CHANGE(r.high));
			else
				loom__text_add(out, pairs ? "open" : "\xe2\x80\x93");
			loom__text_add(out, "</td><td class=\"n\">%zu</td></tr>\n", pairs);
		}
	}
	loom__html_table_end(out);
	loom__text_add(out, "</details>\n");
}

static int is_missing(const struct loom__variant *v)
{
	return strcmp(v->status, "ok") && !(v->rows && !*v->note);
}

static int same_reason(const struct loom__variant *a, const struct loom__variant *b)
{
	return !strcmp(a->status, b->status) && !strcmp(a->note, b->note);
}

/* Those that are missing for the same reason as `first`, behind a summary when there are several. */
static void put_group(struct loom__text *out, const struct loom__view *view, size_t first, size_t count)
{
	size_t shown = 0;
	loom__text_add(out, "<tr><th scope=\"row\">");
	if (count > 1)
		loom__text_add(out, "<details><summary>%zu of %zu</summary>", count, view->variants);
	for (size_t i = first; i < view->variants && shown < MOST_ROWS; i++) {
		const struct loom__variant *v = &view->variant[i];
		if (!is_missing(v) || !same_reason(v, &view->variant[first]))
			continue;
		loom__html_element(out, shown++ ? "<br>" : "", v->name, "");
	}
	if (count > shown)
		loom__text_add(out, "<br>... %zu more", count - shown);
	loom__text_add(out, "%s</th>", count > 1 ? "</details>" : "");
	loom__html_element(out, "<td class=\"nw\">", view->variant[first].status, "</td>");
	loom__html_element(out, "<td>", view->variant[first].note, "</td></tr>\n");
}

void loom__html_missing(struct loom__text *out, const struct loom__view *view)
{
	size_t first[MOST_ROWS], count[MOST_ROWS], groups = 0, left = 0;
	for (size_t i = 0; i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		size_t g = 0;
		if (!is_missing(v))
			continue;
		while (g < groups && !same_reason(v, &view->variant[first[g]]))
			g++;
		if (g == MOST_ROWS) {
			left++;
			continue;
		}
		if (g == groups) {
			first[g] = i;
			count[groups++] = 0;
		}
		count[g]++;
	}
	if (!groups)
		return;
	loom__html_section(out, "missing", "Not run, or not to the end", "");
	loom__html_table(out, "wrap", "What was left out, and why");
	loom__text_add(out, "<thead><tr><th scope=\"col\">Which</th><th scope=\"col\">Status</th>"
			    "<th scope=\"col\">Reason</th></tr></thead>\n<tbody>\n");
	for (size_t g = 0; g < groups; g++)
		put_group(out, view, first[g], count[g]);
	loom__html_table_end(out);
	if (left)
		loom__text_add(out, "<p class=\"soft\">And %zu more.</p>\n", left);
	loom__text_add(out, "</section>\n");
}
