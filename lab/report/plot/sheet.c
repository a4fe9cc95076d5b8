/* SPDX-License-Identifier: Apache-2.0 */
#include "report/plot/sheet.h"

#include <math.h>
#include <stdio.h>

#include "facts/must.h"
#include "report/text/table.h"

static const char *factor_name(const struct loom__sheet *s, size_t factor)
{
	return s->view->factor[factor];
}

const char *loom__sheet_unit(const struct loom__sheet *s)
{
	return s->settings->show == LOOM__SHOW_VALUE ? s->view->metric[s->l.metric].unit : "";
}

const char *loom__sheet_tip(const struct loom__sheet *s, const struct loom__lines_point *p, char tip[LOOM__SHEET_TIP])
{
	const char *line = s->l.line[p->line], *unit = loom__sheet_unit(s);
	snprintf(tip, LOOM__SHEET_TIP, "%.60s%s%.60s: %s, %s to %s in %zu samples", line, *line ? ", " : "",
		 s->l.x[p->at], LOOM__FIGURE(p->median, unit), LOOM__FIGURE(p->least, unit),
		 LOOM__FIGURE(p->most, unit), p->n);
	return tip;
}

int loom__sheet_marked(const struct loom__sheet *s)
{
	for (size_t i = 0; i < s->l.points; i++)
		if (!isnan(s->l.point[i].paper_low))
			return 1;
	return 0;
}

/* Draws the name of the factor, then mark and level of each line, wrapped to `width`. Returns the height. */
static double draw_legend(struct loom__sheet *s, double width, double top)
{
	double x = 0, y = top;
	int marked = loom__sheet_marked(s), named = s->settings->lines != LOOM__NO_NAME;
	if (!named && !marked)
		return 0;
	if (named) {
		const char *factor = factor_name(s, s->settings->lines);
		loom__svg_text(&s->legend, "note", 0, y, 's', factor, loom__svg_fits(width));
		x = (double)loom__markup_width(factor) * 6.6 + 16;
	}
	for (size_t i = 0; i < s->l.lines + (size_t)marked; i++) {
		int paper = i == s->l.lines;
		const char *name = paper ? "paper" : s->l.line[i];
		double need = (double)loom__markup_width(name) * 6.9 + 40;
		if (!named && !paper)
			continue;
		if (x + need > width) {
			x = 0;
			y += 20;
		}
		if (paper)
			loom__svg_line(&s->legend, "claim", x, y - 4, x + 12, y - 4);
		else
			loom__svg_mark(&s->legend, i, "fill ring", x + 6, y - 4, 5, NULL);
		loom__svg_text(&s->legend, "label", x + 16, y, 's', name, loom__svg_fits(width - 16));
		x += need;
	}
	return y + 26 - top;
}

int loom__sheet_begin(struct loom__sheet *s, const struct loom__view *view,
		      const struct loom__report_settings *settings, size_t metric, double width, double height,
		      int legend)
{
	*s = (struct loom__sheet){.view = view, .settings = settings, .sheet_width = width, .left = 52};
	loom__lines_create(view, settings, metric, &s->l);
	if (!s->l.points)
		return 0;
	int narrow = width < 600, facets = settings->facet != LOOM__NO_NAME;
	s->panels = s->l.facets < LOOM__PANELS ? s->l.facets : LOOM__PANELS;
	s->columns = narrow ? 1 : s->panels < 3 ? s->panels : 3;
	s->width = (width - (double)s->columns * s->left - (double)(s->columns - 1) * LOOM__PANEL_GAP / 2) /
		   (double)s->columns;
	s->height = height > 0 ? height : narrow ? 220 : s->columns == 1 ? 340 : 250;
	s->head = 26 + (legend ? draw_legend(s, width, 40) : 20) + (facets ? 24 : 6);
	s->pitch = s->height + 40 + (facets ? 26 : 0);
	size_t rows = (s->panels + s->columns - 1) / s->columns;
	s->bottom = s->head + (double)rows * s->pitch + 16 - (facets ? 26 : 0);
	return 1;
}

void loom__sheet_open(struct loom__sheet *s, struct loom__text *out, const char *label, const char *unit)
{
	const struct loom__view_metric *m = &s->view->metric[s->l.metric];
	struct loom__text name = {0};
	loom__lines_name(s->view, s->settings, &s->l, &name);
	if (*unit)
		loom__text_add(&name, " [%s]", unit);
	if (s->settings->show == LOOM__SHOW_VALUE && m->better)
		loom__text_add(&name, " \xc2\xb7 %s is better", loom__better_name(m->better));
	loom__svg_begin(out, s->sheet_width, s->bottom, label);
	loom__svg_text(out, "name", 0, 14, 's', loom__must_text(&name), loom__svg_fits(s->sheet_width));
	loom__markup_move(out, &s->legend);
	loom__text_free(&name);
}

void loom__sheet_panel(struct loom__sheet *s, struct loom__text *out, size_t facet, double *left, double *top)
{
	*left = s->left + (double)(facet % s->columns) * (s->width + s->left + LOOM__PANEL_GAP / 2.0);
	*top = s->head + (double)(facet / s->columns) * s->pitch;
	if (s->settings->facet == LOOM__NO_NAME)
		return;
	struct loom__text name = {0};
	loom__text_add(&name, "%s = %s", factor_name(s, s->settings->facet), s->l.facet[facet]);
	loom__svg_text(out, "note", *left, *top - 8, 's', loom__must_text(&name), loom__svg_fits(s->width));
	loom__text_free(&name);
}

void loom__sheet_close(struct loom__sheet *s, struct loom__text *out)
{
	loom__svg_text(out, "name", s->sheet_width, s->bottom - 4, 'e', factor_name(s, s->settings->x_factor),
		       loom__svg_fits(s->sheet_width));
	loom__svg_end(out);
}

void loom__sheet_end(struct loom__sheet *s)
{
	loom__lines_free(&s->l);
	loom__text_free(&s->legend);
}

void loom__sheet_mark(struct loom__text *out, const struct loom__scale *y, const struct loom__lines_point *p, double x,
		      double half)
{
	if (isnan(p->paper_low))
		return;
	double low = loom__scale_at(y, isinf(p->paper_low) ? p->paper_high : p->paper_low);
	double high = loom__scale_at(y, isinf(p->paper_high) ? p->paper_low : p->paper_high);
	loom__svg_line(out, "claim", x - half, low, x + half, low);
	if (isinf(p->paper_low) || isinf(p->paper_high)) {
		double end = isinf(p->paper_high) ? low - 10 : low + 10; /* the arrow shows the unbounded side */
		loom__svg_line(out, "claim", x, low, x, end);
		loom__svg_line(out, "claim", x - 3, end + (end < low ? 4 : -4), x, end);
		loom__svg_line(out, "claim", x + 3, end + (end < low ? 4 : -4), x, end);
	} else if (fabs(low - high) > 1) {
		loom__svg_line(out, "claim", x - half, high, x + half, high);
		loom__svg_line(out, "claim", x, low, x, high);
	}
}
