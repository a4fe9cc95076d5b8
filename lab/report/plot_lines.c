/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of medians with their intervals, and thin strokes from the lowest to the highest sample. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "report/lines.h"
#include "report/plot.h"
#include "report/table.h"
#include "facts/must.h"

#define MOST_FACETS 12
#define GAP	    28 /* space between panels */

struct sheet {
	const struct loom__view *view;
	const struct loom__report_settings *settings;
	const struct loom__lines *l;
	struct loom__scale y, x;
	double left, width, height; /* the inside of a panel */
	size_t columns;
};

static double x_of(const struct sheet *s, const struct loom__lines_point *p)
{
	/* Lines that share an x are shifted, so that their intervals do not overlap. */
	double shift = ((double)p->line - ((double)s->l->lines - 1) / 2) * (s->l->lines > 6 ? 2 : 4);
	return loom__scale_at(&s->x, p->x) + shift;
}

static void draw_point(struct loom__text *out, const struct sheet *s, const struct loom__lines_point *p)
{
	const struct loom__view *view = s->view;
	const char *unit = s->settings->show == LOOM__SHOW_VALUE ? view->metric[s->l->metric].unit : "";
	double x = x_of(s, p);
	char tip[500];
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
	snprintf(tip, sizeof(tip), "%.60s%s%.60s: %s, %s to %s in %zu samples", s->l->line[p->line],
		 *s->l->line[p->line] ? ", " : "", s->l->x[p->at], LOOM__FIGURE(p->median, unit),
		 LOOM__FIGURE(p->least, unit), LOOM__FIGURE(p->most, unit), p->n);
	loom__svg_mark(out, p->line, "fill ring", x, loom__scale_at(&s->y, p->median), 4.5, tip);
}

/* Draws tick labels for as many levels as fit without overlap. */
static void draw_ticks(struct loom__text *out, const struct sheet *s, double y)
{
	double free = -INFINITY;
	const struct loom__lines *l = s->l;
	for (size_t i = 0; i < l->xs; i++) {
		double v = (double)i;
		for (size_t k = 0; k < l->points && l->numbers; k++)
			if (l->point[k].at == i)
				v = l->point[k].x;
		double x = loom__scale_at(&s->x, v), half = (double)loom__markup_width(l->x[i]) * 3.6;
		loom__svg_line(out, "axis", x, y, x, y + 4);
		if (x - half < free)
			continue;
		loom__svg_text(out, "tick", x, y + 18, 'm', l->x[i], loom__svg_fits(s->width));
		free = x + half + 6;
	}
}

/* Draws the line of perfect scaling. */
static void draw_ideal(struct loom__text *out, const struct sheet *s)
{
	const struct loom__lines *l = s->l;
	double first = INFINITY, last = -INFINITY;
	for (size_t i = 0; i < l->points; i++) {
		first = fmin(first, l->point[i].x);
		last = fmax(last, l->point[i].x);
	}
	if (s->settings->show == LOOM__SHOW_VALUE || !l->numbers || !(first > 0))
		return;
	loom__text_add(out, "<path class=\"one open\" fill=\"none\" d=\"");
	for (int i = 0; i <= 32; i++) {
		double x = first * pow(last / first, i / 32.0),
		       y = s->settings->show == LOOM__SHOW_SPEEDUP ? x / first : 1;
		if (y <= s->y.hi)
			loom__text_add(out, "%c%s %s", i ? 'L' : 'M', LOOM__XY(loom__scale_at(&s->x, x)),
				       LOOM__XY(loom__scale_at(&s->y, y)));
	}
	loom__text_add(out, "\"/>\n");
}

static void draw_panel(struct loom__text *out, struct sheet *s, size_t facet, double left, double top)
{
	const struct loom__lines *l = s->l;
	struct loom__text name = {0};
	double bottom = top + s->height;
	s->x.a = left + 20;
	s->x.b = left + s->width - 20;
	s->y.a = bottom;
	s->y.b = top;
	if (s->settings->facet != LOOM__NO_NAME) {
		loom__text_add(&name, "%s = %s", s->view->factor[s->settings->facet], l->facet[facet]);
		loom__svg_text(out, "note", left, top - 8, 's', loom__must_text(&name), loom__svg_fits(s->width));
		loom__text_free(&name);
	}
	loom__svg_axis_y(out, &s->y, left, left + s->width);
	loom__svg_line(out, "axis", left, bottom, left + s->width, bottom);
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

/* Draws the name of the factor, then mark and level of each line, wrapped to the width. Returns the height. */
static double draw_legend(struct loom__text *out, const struct sheet *s, double width, double top)
{
	double x = 0, y = top;
	if (s->settings->lines == LOOM__NO_NAME)
		return 0;
	const char *factor = s->view->factor[s->settings->lines];
	loom__svg_text(out, "note", 0, y, 's', factor, loom__svg_fits(width));
	x = (double)loom__markup_width(factor) * 6.6 + 16;
	for (size_t i = 0; i < s->l->lines; i++) {
		double need = (double)loom__markup_width(s->l->line[i]) * 6.9 + 40;
		if (x + need > width) {
			x = 0;
			y += 20;
		}
		loom__svg_mark(out, i, "fill ring", x + 6, y - 4, 5, NULL);
		loom__svg_text(out, "label", x + 16, y, 's', s->l->line[i], loom__svg_fits(width - 16));
		x += need;
	}
	return y + 26 - top;
}

static void fit(struct sheet *s)
{
	const struct loom__lines *l = s->l;
	double first = INFINITY, last = -INFINITY, lo = l->lo;
	for (size_t i = 0; i < l->points; i++) {
		first = fmin(first, l->point[i].x);
		last = fmax(last, l->point[i].x);
	}
	/* Ratios, and values whose range is close to 0, are drawn from 0. */
	if (!(s->settings->log & LOOM__LOG_Y) && lo > 0 && (s->settings->show != LOOM__SHOW_VALUE || lo < l->hi / 3))
		lo = 0;
	loom__scale_fit(&s->y, lo, l->hi, s->settings->show == LOOM__SHOW_VALUE ? s->view->metric[l->metric].unit : "",
			s->height, 0, 48);
	if (s->settings->log & LOOM__LOG_Y)
		loom__scale_log(&s->y, l->lo, l->hi);
	s->x = (struct loom__scale){.lo = first, .hi = last > first ? last : first + 1, .b = 1};
	if (s->settings->log & LOOM__LOG_X && l->numbers)
		loom__scale_log(&s->x, first, s->x.hi);
	if (s->settings->log & LOOM__LOG_X && s->x.log) { /* no rounding outwards, because the levels are the ticks */
		s->x.lo = first;
		s->x.hi = last > first ? last : 2 * first;
	}
}

double loom__plot_lines(struct loom__text *out, const struct loom__view *view,
			const struct loom__report_settings *settings, size_t metric, double width)
{
	struct loom__lines l;
	struct loom__text name = {0};
	int narrow = width < 600;
	loom__lines_create(view, settings, metric, &l);
	struct sheet s = {.view = view, .settings = settings, .l = &l};
	size_t panels = l.facets < MOST_FACETS ? l.facets : MOST_FACETS;
	double bottom = 0;
	if (!l.points || l.xs < 2)
		goto end;
	s.columns = narrow ? 1 : panels < 3 ? panels : 3;
	s.left = 52;
	s.width = (width - (double)s.columns * s.left - (double)(s.columns - 1) * GAP / 2) / (double)s.columns;
	s.height = narrow ? 220 : s.columns == 1 ? 340 : 250;
	fit(&s);
	size_t rows = (panels + s.columns - 1) / s.columns;
	struct loom__text legend = {0};
	double head = 26 + draw_legend(&legend, &s, width, 40) + (settings->facet == LOOM__NO_NAME ? 6 : 24);
	double pitch = s.height + 40 + (settings->facet == LOOM__NO_NAME ? 0 : 26);
	bottom = head + (double)rows * pitch + 16 - (settings->facet == LOOM__NO_NAME ? 0 : 26);
	loom__lines_name(view, settings, &l, &name);
	if (*s.y.unit)
		loom__text_add(&name, " [%s]", s.y.unit);
	if (settings->show == LOOM__SHOW_VALUE && view->metric[metric].better)
		loom__text_add(&name, " \xc2\xb7 %s is better", loom__better_name(view->metric[metric].better));
	loom__svg_begin(out, width, bottom, "Lines: medians with 95 % intervals over the levels of a factor");
	loom__svg_text(out, "name", 0, 14, 's', loom__must_text(&name), loom__svg_fits(width));
	loom__markup_move(out, &legend);
	for (size_t f = 0; f < panels; f++)
		draw_panel(out, &s, f, s.left + (double)(f % s.columns) * (s.width + s.left + GAP / 2.0),
			   head + (double)(f / s.columns) * pitch);
	loom__svg_text(out, "name", width, bottom - 4, 'e', view->factor[settings->x_factor], loom__svg_fits(width));
	loom__svg_end(out);
end:
	loom__text_free(&name);
	loom__lines_free(&l);
	return bottom;
}
