/* SPDX-License-Identifier: Apache-2.0 */
/* Draws main effects, with one panel per factor. For every level the panel shows a strip of medians, and the effect
 * relative to the first level, over configurations that differ only in this factor. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/plot/plot.h"
#include "report/text/table.h"
#include "facts/must.h"

#define MOST_LEVELS 16
#define MOST_PANELS 12
#define MOST_DOTS   200

struct effects {
	const struct loom__view *view;
	size_t metric;
	struct loom__scale x;
	double left, right;
	int narrow;
};

/* Returns the sorted medians of the configurations at one level, or at all levels if `level` is NULL. The caller frees
 * them. */
static double *medians(const struct effects *e, size_t factor, const char *level, size_t *n)
{
	const struct loom__view *view = e->view;
	double *list = loom__must(calloc(view->variants + 1, sizeof(*list)));
	*n = 0;
	for (size_t i = 0; list && i < view->variants; i++) {
		const struct loom__variant *v = &view->variant[i];
		if (v->level && v->level[factor] && v->series && v->series[e->metric].n &&
		    (!level || !strcmp(v->level[factor], level)))
			list[(*n)++] = v->series[e->metric].median.at;
	}
	if (list)
		loom__stats_sort(list, *n);
	return list;
}

static void draw_effect(struct loom__text *out, const struct effects *e, size_t factor,
			const char *base, const char *level, double y)
{
	struct loom__stats_interval ratio;
	char range[112];
	struct loom__text t = {0};
	size_t pairs =
	    base == level ? 0 : loom__effect(e->view, e->metric, factor, base, level, &ratio);
	if (base == level)
		loom__text_add(&t, "reference");
	else if (!pairs)
		loom__text_add(&t, "no matched configurations");
	else
		loom__text_add(&t, "%s", LOOM__CHANGE(ratio.at));
	if (pairs && !ratio.open)
		loom__text_add(&t, " (%s)", loom__change_range(range, ratio.low, ratio.high, ""));
	if (e->narrow)
		loom__svg_text(out, "note", e->right, y - 14, 'e', loom__must_text(&t), 40);
	else
		loom__svg_text(out, "note", e->right + 16, y + 4, 's', loom__must_text(&t), 40);
	loom__text_free(&t);
}

static void draw_level(struct loom__text *out, const struct effects *e, size_t factor,
		       const char *base, const char *level, double y)
{
	size_t n;
	double *list = medians(e, factor, level, &n);
	char tip[400];
	size_t dots = n < MOST_DOTS ? n : MOST_DOTS;
	if (e->narrow)
		loom__svg_text(out, "label", 0, y - 14, 's', level,
			       loom__svg_fits(e->right * 0.45));
	else
		loom__svg_text(out, "label", e->left - 14, y + 4, 'e', level,
			       loom__svg_fits(e->left - 14));
	loom__svg_line(out, "grid", e->left, y, e->right, y);
	for (size_t i = 0; list && i < dots; i++) {
		size_t rank = dots > 1 ? i * (n - 1) / (dots - 1) : 0;
		loom__text_add(out, "<circle class=\"dot s0\" cx=\"%s\" cy=\"%s\" r=\"3\"/>\n",
			       LOOM__XY(loom__scale_at(&e->x, list[rank])),
			       LOOM__XY(y));
	}
	if (list && n) {
		double middle = loom__stats_quantile(list, n, 0.5);
		snprintf(tip, sizeof(tip), "%.100s: median %s of %zu configuration%s", level,
			 LOOM__FIGURE(middle, e->view->metric[e->metric].unit), n, n == 1 ? "" : "s");
		loom__svg_mark(out, 0, "fill ring", loom__scale_at(&e->x, middle), y, 6, tip);
	}
	draw_effect(out, e, factor, base, level, y);
	free(list);
}

static int fit(struct effects *e)
{
	double lo = INFINITY, hi = -INFINITY;
	for (size_t f = 0; f < e->view->factors; f++) {
		size_t n;
		double *list = medians(e, f, NULL, &n);
		if (list && n) {
			lo = fmin(lo, list[0]);
			hi = fmax(hi, list[n - 1]);
		}
		free(list);
	}
	if (!(lo <= hi))
		return 0;
	loom__scale_fit(&e->x, lo, hi, e->view->metric[e->metric].unit, e->left, e->right,
			e->narrow ? 64 : 90);
	return 1;
}

double loom__plot_effects(struct loom__text *out, const struct loom__view *view, size_t metric,
			  double width)
{
	struct effects e = {.view = view, .metric = metric, .narrow = width < 600};
	const char *level[MOST_PANELS][MOST_LEVELS];
	size_t levels[MOST_PANELS], rows = 0, panels = 0;
	size_t factors = view->factors < MOST_PANELS ? view->factors : MOST_PANELS;
	e.left = e.narrow ? 6 : 190;
	e.right = e.narrow ? width - 6 : width - 220;
	for (size_t f = 0; f < factors; f++) {
		levels[f] = loom__effect_levels(view, f, level[f], MOST_LEVELS);
		levels[f] = levels[f] < 2 ? 0 : levels[f];
		rows += levels[f];
		panels += levels[f] > 0;
	}
	if (!panels || !fit(&e))
		return 0;
	double pitch = e.narrow ? 44 : 30, head = e.narrow ? 50 : 40, top = 24;
	double bottom = top + (double)panels * head + (double)rows * pitch + 6;
	loom__svg_begin(out, width, bottom + 32, "Main effects of the factors");
	loom__svg_metric(out, view, metric, e.x.unit, 0, 14, 's');
	loom__svg_axis_x(out, &e.x, bottom, top);
	double y = top;
	for (size_t f = 0; f < factors; f++) {
		if (!levels[f])
			continue;
		loom__svg_text(out, "name", 0, y + 28, 's', view->factor[f],
			       loom__svg_fits(e.narrow ? width : 600));
		y += head;
		for (size_t i = 0; i < levels[f]; i++, y += pitch)
			draw_level(out, &e, f, level[f][0], level[f][i],
				   y + pitch / 2 + (e.narrow ? 6 : 0));
	}
	loom__svg_end(out);
	return bottom + 32;
}
