/* SPDX-License-Identifier: Apache-2.0 */
/* Draws bars of medians, grouped by x, with their 95 % intervals and the values of a paper. */
#include <math.h>
#include <stdio.h>

#include "facts/must.h"
#include "report/plot/sheet.h"

struct bars {
	struct loom__sheet s;
	struct loom__scale y;
	double group, bar; /* widths in pixels */
};

/* Fits the y axis. The axis begins at 0; a logarithmic axis begins below the smallest value. */
static void fit(struct bars *b)
{
	const struct loom__lines *l = &b->s.l;
	double lo = fmin(l->lo, 0), hi = -INFINITY;
	int log = b->s.settings->log & LOOM__LOG_Y && l->lo > 0;
	for (size_t i = 0; i < l->points; i++) {
		const struct loom__lines_point *p = &l->point[i];
		hi = fmax(hi, fmax(p->median, p->high));
		if (isfinite(p->paper_low))
			hi = fmax(hi, p->paper_low);
		if (isfinite(p->paper_high))
			hi = fmax(hi, p->paper_high);
	}
	loom__scale_fit(&b->y, lo, hi, loom__sheet_unit(&b->s), b->s.height, 0, 44);
	if (log)
		loom__scale_log(&b->y, l->lo / 1.6, hi);
	b->group = b->s.width / (double)l->xs;
	b->bar = fmin(46, b->group * 0.8 / (double)l->lines);
}

static double middle(const struct bars *b, const struct loom__lines_point *p, double left)
{
	double first = left + ((double)p->at + 0.5) * b->group - b->bar * ((double)b->s.l.lines - 1) / 2;
	return first + (double)p->line * b->bar;
}

static void draw_bar(struct loom__text *out, const struct bars *b, const struct loom__lines_point *p, double left,
		     double base)
{
	double x = middle(b, p, left), top = loom__scale_at(&b->y, p->median), half = b->bar * 0.44;
	char tip[LOOM__SHEET_TIP];
	loom__text_add(out, "<g class=\"s%zu\">", p->line % LOOM__SERIES);
	loom__text_add(out, "<rect class=\"fill\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\">", LOOM__XY(x - half),
		       LOOM__XY(fmin(top, base)), LOOM__XY(2 * half), LOOM__XY(fmax(fabs(base - top), 0.5)));
	loom__svg_tip(out, loom__sheet_tip(&b->s, p, tip));
	loom__text_add(out, "</rect></g>\n");
	if (p->n > 1 && p->low < p->high) {
		double low = loom__scale_at(&b->y, p->low), high = loom__scale_at(&b->y, p->high), cap = fmin(4, half);
		const char *pen = p->open ? "error open" : "error"; /* dashed if low and high are the extreme samples */
		loom__svg_line(out, pen, x, low, x, high);
		loom__svg_line(out, "error", x - cap, low, x + cap, low);
		loom__svg_line(out, "error", x - cap, high, x + cap, high);
	}
	loom__sheet_mark(out, &b->y, p, x, half + 2);
}

static size_t longest_level(const struct loom__lines *l)
{
	size_t longest = 0;
	for (size_t i = 0; i < l->xs; i++) {
		size_t n = loom__markup_width(l->x[i]);
		longest = n > longest ? n : longest;
	}
	return longest;
}

/* Draws the levels below the groups, at a slope if the longest level does not fit. */
static void draw_levels(struct loom__text *out, const struct bars *b, double left, double bottom)
{
	size_t fits = loom__svg_fits(b->group), longest = longest_level(&b->s.l);
	for (size_t i = 0; i < b->s.l.xs; i++) {
		double x = left + ((double)i + 0.5) * b->group;
		if (longest <= fits) {
			loom__svg_text(out, "tick", x, bottom + 18, 'm', b->s.l.x[i], fits);
			continue;
		}
		loom__text_add(out, "<g transform=\"translate(%s %s) rotate(-35)\">", LOOM__XY(x + 4),
			       LOOM__XY(bottom + 12));
		loom__svg_text(out, "tick", 0, 0, 'e', b->s.l.x[i], 12);
		loom__text_add(out, "</g>\n");
	}
}

static void draw_panel(struct loom__text *out, struct bars *b, size_t facet)
{
	double left, top;
	loom__sheet_panel(&b->s, out, facet, &left, &top);
	double bottom = top + b->s.height, right = left + b->s.width;
	b->y.a = bottom;
	b->y.b = top;
	loom__svg_axis_y(out, &b->y, left, right);
	double base = b->y.log ? bottom : loom__scale_at(&b->y, 0);
	for (size_t i = 0; i < b->s.l.points; i++)
		if (b->s.l.point[i].facet == facet)
			draw_bar(out, b, &b->s.l.point[i], left, base);
	if (b->s.settings->show != LOOM__SHOW_VALUE && b->y.lo < 1 && b->y.hi > 1)
		loom__svg_line(out, "one", left, loom__scale_at(&b->y, 1), right, loom__scale_at(&b->y, 1));
	loom__svg_line(out, "axis", left, base, right, base);
	draw_levels(out, b, left, bottom);
}

/* Returns the additional height that sloping labels need, or 0. */
static double slope(const struct loom__sheet *s)
{
	size_t fits = loom__svg_fits(s->width / (double)s->l.xs), longest = longest_level(&s->l);
	return longest <= fits ? 0 : 2.9 * (double)(longest < 12 ? longest : 12);
}

double loom__plot_bars(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings, size_t metric, double width)
{
	struct bars b = {0};
	double bottom = 0;
	if (loom__sheet_begin(&b.s, view, settings, metric, width, width < 600 ? 190 : 0, 1)) {
		double more = slope(&b.s);
		size_t rows = (b.s.panels + b.s.columns - 1) / b.s.columns;
		b.s.pitch += more;
		b.s.bottom += more * (double)rows;
		fit(&b);
		loom__sheet_open(&b.s, out, "Bars: medians with 95 % intervals, grouped by the levels of a factor",
				 b.y.unit);
		for (size_t f = 0; f < b.s.panels; f++)
			draw_panel(out, &b, f);
		loom__sheet_close(&b.s, out);
		bottom = b.s.bottom;
	}
	loom__sheet_end(&b.s);
	return bottom;
}
