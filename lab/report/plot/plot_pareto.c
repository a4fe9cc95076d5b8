/* SPDX-License-Identifier: Apache-2.0 */
/* Draws two metrics against each other: medians with their intervals, and the front of the points that no other point
 * dominates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/plot/plot.h"
#include "report/text/table.h"
#include "facts/must.h"

#define MOST_POINTS 400
#define MOST_NAMES  14

struct pareto {
	const struct loom__view *view;
	size_t x, y;
	struct loom__scale sx, sy;
	unsigned char *front;
	struct box {
		double left, top, right, bottom;
	} taken[MOST_POINTS + MOST_NAMES]; /* areas covered by marks and names */
	size_t takens, names;
	double left, right, top, bottom;
};

static int has_both(const struct pareto *p, size_t i)
{
	const struct loom__series *s = p->view->variant[i].series;
	return s && s[p->x].n && s[p->y].n;
}

static double bounded(const struct loom__series *s, int high)
{
	if (s->median.open & (high ? LOOM__STATS_OPEN_HIGH : LOOM__STATS_OPEN_LOW))
		return s->sorted[high ? s->n - 1 : 0];
	return high ? s->median.high : s->median.low;
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
	loom__scale_fit(&p->sx, lo[0], hi[0], p->view->metric[p->x].unit, p->left, p->right, narrow ? 64 : 90);
	loom__scale_fit(&p->sy, lo[1], hi[1], p->view->metric[p->y].unit, p->bottom, p->top, 56);
	for (int k = 0; k < 2; k++)
		if (hi[k] > 20 * lo[k]) /* distant points would press all others together */
			loom__scale_log(k ? &p->sy : &p->sx, lo[k] / 1.5, hi[k] * 1.5);
	return 1;
}

static void take(struct pareto *p, struct box b)
{
	if (p->takens < LOOM__COUNT(p->taken))
		p->taken[p->takens++] = b;
}

static int is_free(const struct pareto *p, const struct box *b)
{
	int good = b->left >= p->left && b->right <= p->right + 40 && b->top >= p->top - 8 && b->bottom <= p->bottom;
	for (size_t i = 0; i < p->takens && good; i++)
		good = b->right < p->taken[i].left || b->left > p->taken[i].right || b->bottom < p->taken[i].top ||
		       b->top > p->taken[i].bottom;
	return good;
}

/* Draws the name of a point beside it. If every place beside the point overlaps other names or marks, only the tooltip
 * has the name. */
static void draw_name(struct loom__text *out, struct pareto *p, size_t i)
{
	static const double place[][2] = {{10, -8}, {10, 18}, {-10, -8}, {-10, 18}, {10, 5}, {-10, 5}};
	const struct loom__variant *v = &p->view->variant[i];
	double x = loom__scale_at(&p->sx, v->series[p->x].median.at);
	double y = loom__scale_at(&p->sy, v->series[p->y].median.at);
	double width = fmin((double)loom__markup_width(v->label), 26) * 6.9;
	for (size_t k = 0; k < LOOM__COUNT(place) && p->names < MOST_NAMES; k++) {
		double left = x + place[k][0] - (place[k][0] < 0 ? width : 0), top = y + place[k][1] - 12;
		struct box b = {left, top, left + width, top + 15};
		if (!is_free(p, &b))
			continue;
		take(p, b);
		p->names++;
		loom__svg_text(out, p->front[i] == LOOM__FRONT_ON ? "label name" : "label tick", x + place[k][0],
			       y + place[k][1], place[k][0] < 0 ? 'e' : 's', v->label, 26);
		return;
	}
}

/* The classes of a mark: a coloured filled shape on the front, a ring near it, a dot off it. */
static const char *const colour[] = {"v-open", "v-open", "v-equivalent"};
static const char *const shape[] = {"fill", "hollow", "verdict"};

static void draw_mark(struct loom__text *out, struct pareto *p, double x, double y, enum loom__front front,
		      const char *tip)
{
	static const double size[] = {3.2, 4.2, 6};
	loom__text_add(out, "<g class=\"%s\">", colour[front]);
	loom__svg_mark(out, front == LOOM__FRONT_ON, shape[front], x, y, size[front], tip);
	loom__text_add(out, "</g>\n");
	take(p, (struct box){x - 6, y - 6, x + 6, y + 6});
}

static void draw_interval(struct loom__text *out, const struct pareto *p, size_t i)
{
	const struct loom__series *a = &p->view->variant[i].series[p->x], *b = &p->view->variant[i].series[p->y];
	double x = loom__scale_at(&p->sx, a->median.at), y = loom__scale_at(&p->sy, b->median.at);
	loom__text_add(out, "<g class=\"%s\"><g class=\"whiskers%s\">", colour[p->front[i]],
		       a->median.open || b->median.open ? " open" : "");
	loom__svg_line(out, "span", loom__scale_at(&p->sx, bounded(a, 0)), y, loom__scale_at(&p->sx, bounded(a, 1)), y);
	loom__svg_line(out, "span", x, loom__scale_at(&p->sy, bounded(b, 0)), x, loom__scale_at(&p->sy, bounded(b, 1)));
	loom__text_add(out, "</g></g>\n");
}

static void draw_point(struct loom__text *out, struct pareto *p, size_t i)
{
	static const char *const word[] = {"", "; dominated, intervals overlap", "; on the front"};
	const struct loom__variant *v = &p->view->variant[i];
	const struct loom__series *a = &v->series[p->x], *b = &v->series[p->y];
	const struct loom__view_metric *x = &p->view->metric[p->x], *y = &p->view->metric[p->y];
	char tip[600];
	snprintf(tip, sizeof(tip), "%.200s: %.40s %.60s, %.40s %.60s%s", v->name, x->name,
		 LOOM__FIGURE(a->median.at, x->unit), y->name, LOOM__FIGURE(b->median.at, y->unit), word[p->front[i]]);
	draw_mark(out, p, loom__scale_at(&p->sx, a->median.at), loom__scale_at(&p->sy, b->median.at),
		  (enum loom__front)p->front[i], tip);
}

/* Draws the legend, above the plot at the right. On narrow pages the caption has the legend. */
static void draw_key(struct loom__text *out, struct pareto *p, const size_t *order, size_t n)
{
	static const char *const word[] = {"dominated", "dominated, intervals overlap", "on the front"};
	int there[3] = {0};
	double x = p->right + 40;
	for (size_t k = 0; k < n; k++)
		there[p->front[order[k]]] = 1;
	for (int front = 0; front < 3; front++)
		x -= there[front] ? (double)strlen(word[front]) * 6.6 + 34 : 0;
	for (int front = LOOM__FRONT_ON; front >= LOOM__FRONT_OFF; front--)
		if (there[front]) {
			draw_mark(out, p, x + 6, 10, (enum loom__front)front, NULL);
			loom__svg_text(out, "note", x + 18, 14, 's', word[front], 40);
			x += (double)strlen(word[front]) * 6.6 + 34;
		}
}

/* Draws the front: steps through the medians that no other median dominates. */
static void draw_line(struct loom__text *out, const struct pareto *p, const size_t *by_x, size_t n)
{
	int x_more = loom__view_more(p->view, p->x), y_more = loom__view_more(p->view, p->y), pen = 0;
	double best = y_more ? -INFINITY : INFINITY, last = 0;
	loom__text_add(out, "<path class=\"front\" d=\"");
	/* From the best x on, each point whose y exceeds all y before it is on the front. */
	for (size_t k = 0; k < n; k++) {
		const struct loom__series *s = p->view->variant[by_x[x_more ? n - 1 - k : k]].series;
		if (y_more ? s[p->y].median.at <= best : s[p->y].median.at >= best)
			continue;
		best = s[p->y].median.at;
		double x = loom__scale_at(&p->sx, s[p->x].median.at), y = loom__scale_at(&p->sy, best);
		if (pen)
			loom__text_add(out, "L%s %sL%s %s", LOOM__XY(x), LOOM__XY(last), LOOM__XY(x), LOOM__XY(y));
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

static double draw(struct loom__text *out, const struct loom__view *view, size_t x, size_t y, double width)
{
	int narrow = width < 600;
	struct pareto p = {.view = view, .x = x, .y = y, .left = narrow ? 50 : 64, .top = 36};
	double height = narrow ? 380 : 500, drawn = 0;
	size_t *order = loom__must(calloc(view->variants + 1, sizeof(*order))), n = 0;
	p.front = loom__must(calloc(view->variants + 1, 1));
	p.right = width - (narrow ? 12 : 40);
	p.bottom = height - 46;
	if (!order || !p.front || loom__view_front(view, x, y, p.front) || !fit(&p, narrow))
		goto end;
	for (size_t i = 0; i < view->variants; i++)
		if (has_both(&p, i))
			order[n++] = i;
	qsort_r(order, n, sizeof(*order), compare_x, &p);
	loom__svg_begin(out, width, height, "Pareto front of two metrics, medians with 95 % intervals");
	loom__svg_metric(out, view, y, p.sy.unit, 0, 14, 's');
	loom__svg_axis_y(out, &p.sy, p.left, p.right);
	loom__svg_axis_x(out, &p.sx, p.bottom, p.bottom);
	loom__svg_metric(out, view, x, p.sx.unit, p.right, p.bottom + 40, 'e');
	if (!narrow)
		draw_key(out, &p, order, n);
	/* Points on the front are drawn last, so that they are on top. If there are many other points, only an even
	 * selection of them is drawn. */
	for (int front = LOOM__FRONT_OFF; front <= LOOM__FRONT_ON; front++)
		for (size_t k = 0; k < n; k++)
			if (p.front[order[k]] == front && (front || k % (n / MOST_POINTS + 1) == 0))
				draw_interval(out, &p, order[k]);
	draw_line(out, &p, order, n);
	for (int front = LOOM__FRONT_OFF; front <= LOOM__FRONT_ON; front++)
		for (size_t k = 0; k < n; k++)
			if (p.front[order[k]] == front && (front || k % (n / MOST_POINTS + 1) == 0))
				draw_point(out, &p, order[k]);
	for (int front = LOOM__FRONT_ON; front >= LOOM__FRONT_OFF; front--)
		for (size_t k = 0; k < n; k++)
			if (p.front[order[k]] == front)
				draw_name(out, &p, order[k]);
	loom__svg_end(out);
	drawn = height;
end:
	free(order);
	free(p.front);
	return drawn;
}

double loom__plot_pareto(struct loom__text *out, const struct loom__view *view,
			 const struct loom__report_settings *settings, double width)
{
	struct loom__view relative;
	if (settings->x == LOOM__NO_NAME)
		return 0;
	if (!loom__view_relative(view, settings, &relative))
		return draw(out, view, settings->x, settings->y, width);
	double height = draw(out, &relative, settings->x, settings->y, width);
	loom__view_free(&relative);
	return height;
}
