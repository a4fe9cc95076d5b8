/* SPDX-License-Identifier: Apache-2.0 */
/* Draws lines of medians with their intervals, and thin strokes from the lowest to the highest sample. */
#include <math.h>
#include <stdio.h>

#include "facts/must.h"
#include "report/plot/sheet.h"

struct sheet {
	struct loom__sheet s;
	struct loom__scale y, x;
};

static double x_of(const struct sheet *s, const struct loom__lines_point *p)
{
	/* Lines are shifted against each other, so that their intervals at the same x do not overlap. */
	double shift = ((double)p->line - ((double)s->s.l.lines - 1) / 2) * (s->s.l.lines > 6 ? 2 : 4);
	return loom__scale_at(&s->x, p->x) + shift;
}

static void draw_point(struct loom__text *out, const struct sheet *s, const struct loom__lines_point *p)
{
	double x = x_of(s, p);
	char tip[LOOM__SHEET_TIP];
	loom__text_add(out, "<g class=\"s%zu\"><g class=\"whiskers\">", p->line % LOOM__SERIES);
	loom__svg_line(out, "span", x, loom__scale_at(&s->y, p->least), x, loom__scale_at(&s->y, p->most));
	loom__text_add(out, "</g>");
	if (!p->open) {
		double low = loom__scale_at(&s->y, p->low), high = loom__scale_at(&s->y, p->high);
		loom__svg_line(out, "span", x, low, x, high);
		loom__svg_line(out, "span", x - 4, low, x + 4, low);
		loom__svg_line(out, "span", x - 4, high, x + 4, high);
	}
	loom__text_add(out, "</g>\n");
	loom__svg_mark(out, p->line, "fill ring", x, loom__scale_at(&s->y, p->median), 4.5,
		       loom__sheet_tip(&s->s, p, tip));
	loom__sheet_mark(out, &s->y, p, x, 8);
}

/* Draws tick labels for as many levels as fit without overlap. */
static void draw_ticks(struct loom__text *out, const struct sheet *s, double y)
{
	double free = -INFINITY;
	const struct loom__lines *l = &s->s.l;
	for (size_t i = 0; i < l->xs; i++) {
		double v = (double)i;
		for (size_t k = 0; k < l->points && l->numbers; k++)
			if (l->point[k].at == i)
				v = l->point[k].x;
		double x = loom__scale_at(&s->x, v), half = (double)loom__markup_width(l->x[i]) * 3.6;
		loom__svg_line(out, "axis", x, y, x, y + 4);
		if (x - half < free)
			continue;
		loom__svg_text(out, "tick", x, y + 18, 'm', l->x[i], loom__svg_fits(s->s.width));
		free = x + half + 6;
	}
}

/* Draws the line of perfect scaling. */
static void draw_ideal(struct loom__text *out, const struct sheet *s)
{
	const struct loom__lines *l = &s->s.l;
	double first = INFINITY, last = -INFINITY;
	for (size_t i = 0; i < l->points; i++) {
		first = fmin(first, l->point[i].x);
		last = fmax(last, l->point[i].x);
	}
	int scaled = s->s.settings->show >= LOOM__SHOW_SPEEDUP && !(s->s.settings->base && *s->s.settings->base);
	if (!scaled || !l->numbers || !(first > 0))
		return;
	loom__text_add(out, "<path class=\"one open\" fill=\"none\" d=\"");
	for (int i = 0; i <= 32; i++) {
		double x = first * pow(last / first, i / 32.0),
		       y = s->s.settings->show == LOOM__SHOW_SPEEDUP ? x / first : 1;
		if (y <= s->y.hi)
			loom__text_add(out, "%c%s %s", i ? 'L' : 'M', LOOM__XY(loom__scale_at(&s->x, x)),
				       LOOM__XY(loom__scale_at(&s->y, y)));
	}
	loom__text_add(out, "\"/>\n");
}

static void draw_panel(struct loom__text *out, struct sheet *s, size_t facet)
{
	const struct loom__lines *l = &s->s.l;
	double left, top;
	loom__sheet_panel(&s->s, out, facet, &left, &top);
	double bottom = top + s->s.height;
	s->x.a = left + 20;
	s->x.b = left + s->s.width - 20;
	s->y.a = bottom;
	s->y.b = top;
	loom__svg_axis_y(out, &s->y, left, left + s->s.width);
	loom__svg_line(out, "axis", left, bottom, left + s->s.width, bottom);
	draw_ticks(out, s, bottom);
	draw_ideal(out, s);
	for (size_t line = 0; line < l->lines; line++) {
		int pen = 0;
		for (size_t i = 0; i < l->points; i++) {
			const struct loom__lines_point *p = &l->point[i];
			if (p->line != line || p->facet != facet)
				continue;
			if (!pen)
				loom__text_add(out, "<path class=\"line s%zu\" d=\"", line % LOOM__SERIES);
			loom__text_add(out, "%c%s %s", pen++ ? 'L' : 'M', LOOM__XY(x_of(s, p)),
				       LOOM__XY(loom__scale_at(&s->y, p->median)));
		}
		loom__text_add(out, "%s", pen ? "\"/>\n" : "");
		for (size_t i = 0; i < l->points; i++)
			if (l->point[i].line == line && l->point[i].facet == facet)
				draw_point(out, s, &l->point[i]);
	}
}

static void fit(struct sheet *s)
{
	const struct loom__lines *l = &s->s.l;
	int values = s->s.settings->show == LOOM__SHOW_VALUE;
	double first = INFINITY, last = -INFINITY, lo = l->lo, hi = l->hi;
	for (size_t i = 0; i < l->points; i++) {
		const struct loom__lines_point *p = &l->point[i];
		first = fmin(first, p->x);
		last = fmax(last, p->x);
		lo = isfinite(p->paper_low) ? fmin(lo, p->paper_low) : lo;
		hi = isfinite(p->paper_high) ? fmax(hi, p->paper_high) : hi;
	}
	/* The axis of ratios begins at 0. The axis of values also begins at 0 if the lowest value is small relative to
	 * the highest. */
	if (!(s->s.settings->log & LOOM__LOG_Y) && lo > 0 && (!values || lo < hi / 3))
		lo = 0;
	loom__scale_fit(&s->y, lo, hi, loom__sheet_unit(&s->s), s->s.height, 0, 48);
	if (s->s.settings->log & LOOM__LOG_Y)
		loom__scale_log(&s->y, l->lo, hi);
	s->x = (struct loom__scale){.lo = first, .hi = last > first ? last : first + 1, .b = 1};
	if (s->s.settings->log & LOOM__LOG_X && l->numbers)
		loom__scale_log(&s->x, first, s->x.hi);
	if (s->s.settings->log & LOOM__LOG_X && s->x.log) { /* the axis ends at the levels, which are the ticks */
		s->x.lo = first;
		s->x.hi = last > first ? last : 2 * first;
	}
}

double loom__plot_lines(struct loom__text *out, const struct loom__view *view,
			const struct loom__report_settings *settings, size_t metric, double width)
{
	struct sheet s = {0};
	double bottom = 0;
	if (loom__sheet_begin(&s.s, view, settings, metric, width, 0, 1) && s.s.l.xs > 1) {
		fit(&s);
		loom__sheet_open(&s.s, out, "Lines: medians with 95 % intervals over the levels of a factor", s.y.unit);
		for (size_t f = 0; f < s.s.panels; f++)
			draw_panel(out, &s, f);
		loom__sheet_close(&s.s, out);
		bottom = s.s.bottom;
	}
	loom__sheet_end(&s.s);
	return bottom;
}
