/* SPDX-License-Identifier: Apache-2.0 */
/* Two metrics against each other: medians with their intervals, and the front of those that nothing
 * is surely better than. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/plot.h"
#include "report/table.h"

#define MOST_POINTS 400
#define MOST_NAMES  14

struct pareto {
	const struct loom__view *view;
	size_t x, y;
	struct loom__scale sx, sy;
	unsigned char *front;
	struct named {
		double left, top, right, bottom;
	} named[MOST_NAMES];
	size_t names;
	double left, right, top, bottom;
};

static int has_both(const struct pareto *p, size_t i)
{
	const struct loom__series *s = p->view->variant[i].series;
	return s && s[p->x].n && s[p->y].n;
}

static double bounded(const struct loom__series *s, int high)
{
	if (high)
		return s->median.open & LOOM__STATS_OPEN_HIGH ? s->sorted[s->n - 1]
							      : s->median.high;
	return s->median.open & LOOM__STATS_OPEN_LOW ? s->sorted[0] : s->median.low;
}

static int fit(struct pareto *p, int narrow)
{
	double lo[2] = {INFINITY, INFINITY}, hi[2] = {-INFINITY, -INFINITY};
	size_t metric[2] = {p->x, p->y};
	for (size_t i = 0; i < p->view->variants; i++)
		for (int k = 0; has_both(p, i) && k < 2; k++) {
			const struct loom__series *s = &p->view->variant[i].series[metric[k]];
			lo[k] = fmin(lo[k], bounded(s, 0));
			hi[k] = fmax(hi[k], bounded(s, 1));
		}
	if (!(lo[0] <= hi[0]))
		return 0;
	loom__scale_fit(&p->sx, lo[0], hi[0], p->view->metric[p->x].unit, p->left, p->right,
			narrow ? 64 : 90);
	loom__scale_fit(&p->sy, lo[1], hi[1], p->view->metric[p->y].unit, p->bottom, p->top, 56);
	return 1;
}

/* A name beside its point where it meets no other; else the tooltip has to do. */
static void draw_name(struct loom__text *out, struct pareto *p, const char *label, double x,
		      double y)
{
	static const double place[][2] = {{10, -8}, {10, 18}, {-10, -8}, {-10, 18}};
	size_t chars = loom__markup_width(label);
	chars = chars > 26 ? 26 : chars;
	double width = (double)chars * 6.9;
	for (size_t k = 0; k < LOOM__COUNT(place) && p->names < MOST_NAMES; k++) {
		double left = x + place[k][0] - (place[k][0] < 0 ? width : 0),
		       top = y + place[k][1] - 12;
		struct named n = {left, top, left + width, top + 15};
		int free_place = n.left >= p->left && n.right <= p->right + 40 &&
				 n.top >= p->top - 8 && n.bottom <= p->bottom;
		for (size_t i = 0; i < p->names && free_place; i++)
			free_place = n.right < p->named[i].left || n.left > p->named[i].right ||
				     n.bottom < p->named[i].top || n.top > p->named[i].bottom;
		if (!free_place)
			continue;
		p->named[p->names++] = n;
		loom__svg_text(out, "label", x + place[k][0], y + place[k][1],
			       place[k][0] < 0 ? 'e' : 's', label, 26);
		return;
	}
}

static void draw_point(struct loom__text *out, struct pareto *p, size_t i)
{
	const struct loom__variant *v = &p->view->variant[i];
	const struct loom__series *a = &v->series[p->x], *b = &v->series[p->y];
	double x = loom__scale_at(&p->sx, a->median.at), y = loom__scale_at(&p->sy, b->median.at);
	char unit[40], fx[160], fy[160], tip[600];
	const char *open = a->median.open || b->median.open ? " open" : "";
	snprintf(unit, sizeof(unit), "%s", p->view->metric[p->x].unit);
	loom__figure(a->median.at, unit, fx, sizeof(fx));
	snprintf(unit, sizeof(unit), "%s", p->view->metric[p->y].unit);
	loom__figure(b->median.at, unit, fy, sizeof(fy));
	snprintf(tip, sizeof(tip), "%.200s: %.40s %.60s, %.40s %.60s%s", v->name,
		 p->view->metric[p->x].name, fx, p->view->metric[p->y].name, fy,
		 p->front[i] ? "; on the front" : "");
	loom__text_add(out, "<g class=\"%s\">", p->front[i] ? "v-equivalent" : "v-open");
	loom__text_add(out, "<g class=\"whiskers%s\">", open);
	loom__svg_line(out, "span", loom__scale_at(&p->sx, bounded(a, 0)), y,
		       loom__scale_at(&p->sx, bounded(a, 1)), y);
	loom__svg_line(out, "span", x, loom__scale_at(&p->sy, bounded(b, 0)), x,
		       loom__scale_at(&p->sy, bounded(b, 1)));
	loom__text_add(out, "</g>\n");
	loom__svg_mark(out, p->front[i] ? 1 : 0, "verdict", x, y, p->front[i] ? 5.5 : 4, tip);
	loom__text_add(out, "</g>\n");
}

/* Steps through the medians that no other median beats: the line that the eye looks for. */
static void draw_line(struct loom__text *out, const struct pareto *p, const size_t *by_x, size_t n)
{
	int x_more = loom__view_better(p->view, p->x) == LOOM__STATS_MORE;
	int y_more = loom__view_better(p->view, p->y) == LOOM__STATS_MORE, pen = 0;
	double best = y_more ? -INFINITY : INFINITY, last = 0;
	loom__text_add(out, "<path class=\"front\" d=\"");
	for (size_t k = 0; k < n; k++) { /* from the best x on, each better y is on the line */
		const struct loom__series *s =
		    p->view->variant[by_x[x_more ? n - 1 - k : k]].series;
		if (y_more ? s[p->y].median.at <= best : s[p->y].median.at >= best)
			continue;
		best = s[p->y].median.at;
		double x = loom__scale_at(&p->sx, s[p->x].median.at),
		       y = loom__scale_at(&p->sy, best);
		if (pen)
			loom__text_add(out, "L%s %sL%s %s", LOOM__XY(x), LOOM__XY(last),
				       LOOM__XY(x), LOOM__XY(y));
		else
			loom__text_add(out, "M%s %s", LOOM__XY(x), LOOM__XY(y));
		pen = 1;
		last = y;
	}
	loom__text_add(out, pen ? "\"/>\n" : "M0 0\"/>\n");
}

static int compare_x(const void *a, const void *b, void *arg)
{
	const struct pareto *p = arg;
	double x = p->view->variant[*(const size_t *)a].series[p->x].median.at;
	double y = p->view->variant[*(const size_t *)b].series[p->x].median.at;
	return (x > y) - (x < y);
}

double loom__plot_pareto(struct loom__text *out, const struct loom__view *view, size_t x, size_t y,
			 double width)
{
	int narrow = width < 600;
	struct pareto p = {.view = view, .x = x, .y = y, .left = narrow ? 50 : 64, .top = 36};
	double height = narrow ? 380 : 470, drawn = 0;
	size_t *order = calloc(view->variants + 1, sizeof(*order)), n = 0;
	p.front = calloc(view->variants + 1, 1);
	p.right = width - (narrow ? 12 : 40);
	p.bottom = height - 46;
	if (!order || !p.front || loom__view_front(view, x, y, p.front) || !fit(&p, narrow))
		goto end;
	for (size_t i = 0; i < view->variants; i++)
		if (has_both(&p, i))
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), compare_x, &p);
	loom__svg_begin(out, width, height,
			"Pareto front of two metrics, medians with 95 % intervals");
	loom__svg_metric(out, view, y, p.sy.unit, 0, 14, 's');
	loom__svg_axis_y(out, &p.sy, p.left, p.right);
	loom__svg_axis_x(out, &p.sx, p.bottom, p.bottom);
	loom__svg_metric(out, view, x, p.sx.unit, p.right, p.bottom + 40, 'e');
	draw_line(out, &p, order, n);
	/* The front last, so that it lies on top; of many others evenly some. */
	for (int front = 0; front < 2; front++)
		for (size_t k = 0; k < n; k++)
			if (p.front[order[k]] == front && (front || k % (n / MOST_POINTS + 1) == 0))
				draw_point(out, &p, order[k]);
	for (size_t k = 0; k < n; k++)
		if (p.front[order[k]])
			draw_name(
			    out, &p, view->variant[order[k]].label,
			    loom__scale_at(&p.sx, view->variant[order[k]].series[x].median.at),
			    loom__scale_at(&p.sy, view->variant[order[k]].series[y].median.at));
	loom__svg_end(out);
	drawn = height;
end:
	free(order);
	free(p.front);
	return drawn;
}
