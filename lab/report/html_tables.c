/* SPDX-License-Identifier: Apache-2.0 */
/* The page's tables of figures: verdicts, variants, metrics, effects, and what did not run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/html.h"
#include "facts/must.h"

#define MOST_ROWS    200
#define MOST_COLUMNS 8

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
	int more = c->more_blocks > 0 && c->verdict == LOOM__V_INCONCLUSIVE && c->more_blocks < 1e6;
	char p[32], range[80], blocks[24] = "";
	if (c->blocks >= 0 && c->blocks < 1e12)
		snprintf(blocks, sizeof(blocks), "%.0f", c->blocks);
	loom__markup_add(out, "<tr><th scope=\"row\">%s", view->variant[c->variant].label);
	if (!one_baseline(view))
		loom__markup_add(out, " <span class=\"soft\">against %s</span>",
				 view->variant[c->baseline].label);
	loom__markup_add(out,
			 "</th><td data-label=\"Metric\">%s</td><td data-label=\"Verdict\">"
			 "<span class=\"verdict %s\" data-sign=\"%s\">%s</span></td>"
			 "<td data-label=\"Change\" class=\"n\">%s</td>"
			 "<td data-label=\"Interval\" class=\"n\">%s</td><td data-label=\"p\" class=\"n\">%s</td>"
			 "<td data-label=\"Blocks\" class=\"n\">%s</td><td data-label=\"Remarks\" class=\"%s\">",
			 c->name, loom__verdict_style[c->verdict], loom__verdict_sign[c->verdict],
			 *c->word ? c->word : "none", LOOM__CHANGE(c->effect),
			 loom__change_range(range, c->low, c->high, "not bounded"),
			 loom__p_value(p, isnan(c->p_holm) ? c->p : c->p_holm), blocks,
			 *c->notes || c->more_blocks > 0 ? "soft" : "none");
	if (more)
		loom__text_add(out, "about %.0f more blocks would tell%s", c->more_blocks,
			       *c->notes ? "; " : "");
	loom__markup_add(out, "%s</td></tr>\n", c->notes);
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
		loom__markup_add(out,
				 "<p class=\"headline\"><strong>%s</strong> %s <strong>%s</strong> in %s: %s.</p>\n",
				 view->variant[c->variant].label, says[c->verdict],
				 view->variant[c->baseline].label, c->name, LOOM__CHANGE(c->effect));
		said++;
	}
}

void loom__html_verdicts(struct loom__text *out, const struct loom__view *view)
{
	size_t rows = view->comparisons < MOST_ROWS ? view->comparisons : MOST_ROWS;
	struct loom__text caption = {0};
	loom__html_section(out, "verdicts", "Verdict", "");
	loom__text_add(&caption, "Change of each metric against %s",
		       one_baseline(view) ? view->variant[view->compared[0].baseline].label : "its baseline");
	loom__html_table(out, "cards", loom__must_text(&caption),
			 "Variant|Metric|Verdict|#Change|#95 % interval|#p (Holm)|#Blocks|Remarks");
	loom__text_free(&caption);
	for (size_t i = 0; i < rows; i++)
		verdict_row(out, view, &view->compared[i]);
	loom__html_table_end(out);
	if (rows < view->comparisons)
		loom__text_add(out, "<p class=\"soft\">The first %zu of %zu comparisons.</p>\n",
			       rows, view->comparisons);
}

static void median(struct loom__text *out, const struct loom__series *s, const char *unit)
{
	loom__text_add(out, "<td data-label=\"Median\" class=\"n\">");
	loom__markup_figure(out, s->n ? s->median.at : NAN, unit);
	loom__text_add(out, "</td>");
}

static void figures(struct loom__text *out, const struct loom__series *s, const char *unit)
{
	loom__text_add(out, "<td data-label=\"Interval\" class=\"n\">");
	if (s->n && !s->median.open)
		loom__markup_range(out, s->median.low, s->median.high, unit);
	else
		loom__text_add(out, s->n ? "open" : "\xe2\x80\x93");
	loom__text_add(out, "</td><td data-label=\"Range\" class=\"n\">");
	if (s->n)
		loom__markup_range(out, s->sorted[0], s->sorted[s->n - 1], unit);
	loom__text_add(out, "</td><td data-label=\"Samples\" class=\"n\">%zu</td>", s->n);
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
		loom__markup_add(out, "%s.<wbr>", part);
	}
	loom__markup_add(out, "%s</th>", key);
}

static void variant_levels(struct loom__text *out, const struct loom__view *view,
			   const struct loom__variant *v)
{
	for (size_t f = 0; f < view->factors && f < MOST_COLUMNS; f++) {
		const char *level = v->level && v->level[f] ? v->level[f] : "";
		loom__markup_add(out,
				 f ? "<td data-label=\"%s\">%s</td>" : "<th scope=\"row\" data-label=\"%s\">%s</th>",
				 view->factor[f], level);
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
		loom__markup_add(out, "%s</th>", v->label);
		median(out, &v->series[metric], view->metric[metric].unit);
	}
	figures(out, &v->series[metric], view->metric[metric].unit);
	loom__markup_add(out, "<td data-label=\"Status\">%s</td></tr>\n", v->status);
}

void loom__html_variants(struct loom__text *out, const struct loom__view *view, size_t metric)
{
	/* The baseline stays first; the cells of a sweep stand best first. */
	size_t n, *order = loom__view_order(view, metric, view->kind == LOOM__DOC_SWEEP, &n);
	loom__html_section(out, "variants",
			   view->kind == LOOM__DOC_SWEEP ? "Cells, best first"
			   : view->variants == 1         ? "Result"
							 : "Variants",
			   "");
	struct loom__text caption = {0};
	const char *better = loom__better_name(view->metric[metric].better);
	loom__text_add(&caption, *better ? "%s, %s is better" : "%s", view->metric[metric].name, better);
	loom__html_table(out, named_by_levels(view) ? "" : "cards", loom__must_text(&caption), NULL);
	loom__text_free(&caption);
	loom__html_columns(out, named_by_levels(view) ? "#Median" : "Variant|#Median");
	for (size_t f = 0; named_by_levels(view) && f < view->factors && f < MOST_COLUMNS; f++)
		key_heading(out, view->factor[f]);
	loom__html_columns(out, "#95 % interval|#Lowest \xe2\x80\xa6 highest|#Samples|Status");
	loom__text_add(out, LOOM__HTML_BODY);
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
	loom__html_table(out, "", "Medians of all metrics", NULL);
	loom__html_columns(out, "Metric|Better");
	for (size_t i = 0; i < columns; i++)
		loom__markup_add(out, "<th scope=\"col\" class=\"n\">%s</th>", view->variant[i].label);
	loom__text_add(out, LOOM__HTML_BODY);
	for (size_t m = 0; m < view->metrics; m++) {
		const struct loom__view_metric *metric = &view->metric[m];
		if (!metric->shown)
			continue;
		loom__markup_add(out, "<tr><th scope=\"row\">%s</th><td class=\"soft\">%s</td>", metric->name,
				 loom__better_name(metric->better));
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
	char range[80];
	loom__text_add(out, "<details><summary>The same as a table</summary>\n");
	loom__html_table(out, "", "Change against the first level, other factors equal",
			 "Factor|Level|Against|#Change|#95 % interval|#Pairs of cells");
	for (size_t f = 0; f < view->factors && f < MOST_ROWS / 8; f++) {
		size_t n = loom__effect_levels(view, f, level, 16);
		for (size_t i = 1; i < n; i++) {
			struct loom__stats_interval r = {0};
			size_t pairs = loom__effect(view, metric, f, level[0], level[i], &r);
			loom__markup_add(out,
					 "<tr><th scope=\"row\">%s</th><td>%s</td><td>%s</td><td class=\"n\">%s</td>"
					 "<td class=\"n\">%s</td><td class=\"n\">%zu</td></tr>\n",
					 view->factor[f], level[i], level[0], LOOM__CHANGE(pairs ? r.at : NAN),
					 !pairs ? "\xe2\x80\x93" :
					 r.open ? "open" : loom__change_range(range, r.low, r.high, ""),
					 pairs);
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
		loom__markup_add(out, shown++ ? "<br>%s" : "%s", v->name);
	}
	if (count > shown)
		loom__text_add(out, "<br>... %zu more", count - shown);
	loom__text_add(out, count > 1 ? "</details>" : "");
	loom__markup_add(out, "</th><td class=\"nw\">%s</td><td>%s</td></tr>\n",
			 view->variant[first].status, view->variant[first].note);
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
	loom__html_table(out, "wrap", "What was left out, and why", "Which|Status|Reason");
	for (size_t g = 0; g < groups; g++)
		put_group(out, view, first[g], count[g]);
	loom__html_table_end(out);
	if (left)
		loom__text_add(out, "<p class=\"soft\">And %zu more.</p>\n", left);
	loom__text_add(out, "</section>\n");
}
