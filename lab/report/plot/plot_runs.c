/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the samples in run order, which shows drift, steps and spikes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "report/plot/plot.h"
#include "report/text/table.h"

#define MOST_POINTS 240  /* limit per variant; beyond, only the lowest and highest sample of each stretch are drawn */
#define ALL_POINTS  4000 /* limit on the points of all variants together */

struct runs {
	const struct loom__view *view;
	size_t metric;
	size_t most;  /* limit on the points of each variant */
	int relative; /* 1: there are many variants, so each sample is drawn relative to the median of its variant */
	struct loom__scale x, y;
	double lo, hi, last; /* lo, hi: range of the drawn values; last: the last place in the run order */
};

static double value(const struct runs *r, const struct loom__variant *v, size_t row)
{
	double at = loom__view_value(v, r->metric, row), middle = v->series[r->metric].median.at;
	return r->relative ? (middle > 0 ? at / middle : NAN) : at;
}

static void measure(struct runs *r)
{
	r->lo = INFINITY;
	r->hi = -INFINITY;
	for (size_t i = 0; i < r->view->variants; i++) {
		const struct loom__variant *v = &r->view->variant[i];
		for (size_t row = 0; v->series && row < v->rows; row++) {
			double at = value(r, v, row);
			if (isnan(at) || isnan(v->order[row]))
				continue;
			r->lo = fmin(r->lo, at);
			r->hi = fmax(r->hi, at);
			r->last = fmax(r->last, v->order[row]);
		}
	}
}

static void draw_point(struct loom__text *out, const struct runs *r, size_t i, size_t row, double size)
{
	const struct loom__variant *v = &r->view->variant[i];
	const struct loom__view_metric *m = &r->view->metric[r->metric];
	double at = value(r, v, row);
	char tip[400];
	if (isnan(at) || isnan(v->order[row]))
		return;
	snprintf(tip, sizeof(tip), "%.150s: %s, number %.0f of the run", v->label,
		 LOOM__FIGURE(loom__view_value(v, r->metric, row), m->unit), v->order[row] + 1);
	loom__svg_mark(out, r->relative ? 0 : i, r->relative ? "dim" : "fill", loom__scale_at(&r->x, v->order[row]),
		       loom__scale_at(&r->y, at), size, tip);
}

/* Draws the lowest and the highest sample of every stretch of samples, in run order. */
static void draw_points(struct loom__text *out, const struct runs *r, size_t i)
{
	const struct loom__variant *v = &r->view->variant[i];
	size_t stretch = v->rows <= r->most ? 1 : v->rows / (r->most / 2) + 1;
	double size = v->rows > 150 ? 1.8 : v->rows > 60 ? 2.6 : 3.6;
	for (size_t row = 0; row < v->rows; row += stretch) {
		size_t low = row, high = row;
		for (size_t k = row; k < row + stretch && k < v->rows; k++) {
			double at = value(r, v, k);
			low = at < value(r, v, low) || isnan(value(r, v, low)) ? k : low;
			high = at > value(r, v, high) || isnan(value(r, v, high)) ? k : high;
		}
		draw_point(out, r, i, low < high ? low : high, size);
		if (low != high)
			draw_point(out, r, i, low < high ? high : low, size);
	}
}

static void draw_thread(struct loom__text *out, const struct runs *r, size_t i)
{
	const struct loom__variant *v = &r->view->variant[i];
	int pen = 0;
	if (v->rows > r->most)
		return;
	loom__text_add(out, "<path class=\"thread s%zu\" d=\"", i % LOOM__SERIES);
	for (size_t row = 0; row < v->rows; row++) {
		double at = value(r, v, row);
		if (isnan(at) || isnan(v->order[row]))
			continue;
		loom__text_add(out, "%c%s %s", pen ? 'L' : 'M', LOOM__XY(loom__scale_at(&r->x, v->order[row])),
			       LOOM__XY(loom__scale_at(&r->y, at)));
		pen = 1;
	}
	loom__text_add(out, pen ? "\"/>\n" : "M0 0\"/>\n");
}

struct tag {
	size_t variant;
	double y;
};

static int by_height(const void *a, const void *b)
{
	double x = ((const struct tag *)a)->y, y = ((const struct tag *)b)->y;
	return (x > y) - (x < y);
}

/* Draws labels beside the medians, moved so that they do not overlap. */
static void draw_tags(struct loom__text *out, const struct runs *r, double left, double width, double bottom)
{
	struct tag tag[LOOM__SERIES];
	size_t n = 0;
	for (size_t i = 0; i < r->view->variants; i++) {
		const struct loom__variant *v = &r->view->variant[i];
		if (!v->series || !v->series[r->metric].n)
			continue;
		double at = loom__scale_at(&r->y, v->series[r->metric].median.at);
		loom__text_add(out, "<line class=\"median s%zu\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>\n",
			       i % LOOM__SERIES, LOOM__XY(r->x.a), LOOM__XY(at), LOOM__XY(r->x.b), LOOM__XY(at));
		tag[n++] = (struct tag){i, at};
	}
	qsort(tag, n, sizeof(*tag), by_height);
	for (size_t i = 1; i < n; i++)
		tag[i].y = fmax(tag[i].y, tag[i - 1].y + 34);
	for (size_t i = n; i-- > 0;) {
		double most = i + 1 < n ? tag[i + 1].y - 34 : bottom - 12;
		tag[i].y = fmin(tag[i].y, most);
	}
	for (size_t i = 0; i < n; i++) {
		const struct loom__variant *v = &r->view->variant[tag[i].variant];
		char text[200];
		snprintf(text, sizeof(text), "median %s",
			 LOOM__FIGURE(v->series[r->metric].median.at, r->view->metric[r->metric].unit));
		loom__svg_mark(out, tag[i].variant, "fill", left + 6, tag[i].y - 4, 4, NULL);
		loom__svg_text(out, "label", left + 17, tag[i].y, 's', v->label, loom__svg_fits(width - 17));
		loom__svg_text(out, "note", left + 17, tag[i].y + 15, 's', text, loom__svg_fits(width - 17));
	}
}

/* Draws the labels above the plot, one per line, for narrow pages. Returns the y below the labels. If `out` is NULL,
 * draws nothing. */
static double draw_key(struct loom__text *out, const struct runs *r, double y, double width)
{
	for (size_t i = 0; i < r->view->variants; i++) {
		const struct loom__variant *v = &r->view->variant[i];
		if (!v->series || !v->series[r->metric].n)
			continue;
		if (out) {
			loom__svg_mark(out, i, "fill", 8, y - 4, 4, NULL);
			loom__svg_text(out, "label", 20, y, 's', v->label, loom__svg_fits(width - 20));
		}
		y += 20;
	}
	return y;
}

double loom__plot_runs(struct loom__text *out, const struct loom__view *view, size_t metric, double width)
{
	struct runs r = {.view = view, .metric = metric, .relative = view->variants > LOOM__SERIES};
	int narrow = width < 600;
	r.most = r.relative && ALL_POINTS / view->variants < MOST_POINTS ? ALL_POINTS / view->variants : MOST_POINTS;
	r.most = r.most < 2 ? 2 : r.most;
	measure(&r);
	if (!(r.lo <= r.hi))
		return 0;
	double top = narrow && !r.relative ? draw_key(NULL, &r, 42, width) : 34;
	double height = top + (narrow ? 240 : 300) + 44, bottom = height - 44;
	double side = narrow || r.relative ? 14 : 190, left = narrow ? 50 : 64;
	if (r.relative) { /* ratios have an equal range on both sides of 1 */
		double reach = fmax(fmax(r.hi - 1, 1 - r.lo), 0.005);
		r.lo = fmax(1 - reach, 0);
		r.hi = 1 + reach;
	}
	loom__scale_fit(&r.y, r.lo, r.hi, r.relative ? "" : view->metric[metric].unit, bottom, top, 56);
	loom__scale_fit(&r.x, 0, fmax(r.last, 1), "", left, width - side, narrow ? 60 : 90);
	r.x.lo = -0.02 * fmax(r.last, 1);
	if (r.x.step * r.x.factor < 1 && r.x.factor == 1) { /* ticks are at whole samples only */
		r.x.step = 1;
		r.x.decimals = 0;
	}
	loom__svg_begin(out, width, height, "Samples in the order they ran");
	if (r.relative)
		loom__svg_text(out, "name", 0, 14, 's', "each sample over the median of its variant",
			       loom__svg_fits(width));
	else
		loom__svg_metric(out, view, metric, r.y.unit, 0, 14, 's');
	loom__svg_axis_y(out, &r.y, left, width - side);
	loom__svg_axis_x(out, &r.x, bottom, bottom);
	loom__svg_text(out, "note", (left + width - side) / 2, bottom + 38, 'm', "place in the run order", 40);
	if (r.relative) {
		loom__svg_line(out, "one", left, loom__scale_at(&r.y, 1), width - side, loom__scale_at(&r.y, 1));
	} else {
		for (size_t i = 0; i < view->variants; i++)
			if (view->variant[i].series)
				draw_thread(out, &r, i);
		if (narrow)
			draw_key(out, &r, 42, width);
		else
			draw_tags(out, &r, width - side + 12, side - 12, bottom);
	}
	for (size_t i = 0; i < view->variants; i += view->variants / 2000 + 1)
		if (view->variant[i].series)
			draw_points(out, &r, i);
	loom__svg_end(out);
	return height;
}
