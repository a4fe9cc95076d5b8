/* SPDX-License-Identifier: Apache-2.0 */
/* Draws a heat map, with x from left to right and lines from bottom to top. A cell shows the median and, below it, the
 * value of a paper. */
#include <math.h>
#include <stdio.h>

#include "facts/must.h"
#include "report/plot/sheet.h"
#include "report/text/table.h"

struct heat {
	struct loom__sheet s;
	struct loom__scale unit; /* unit of the values */
	double cell_width, cell_height, lo, hi;
	int log;
};

/* The colours of the cells, from light to dark. Even the lightest one differs from the background of the page. */
static const unsigned char ramp[][3] = {{0xfd, 0xf0, 0xd2}, {0xf7, 0xc9, 0x78}, {0xe0, 0x8a, 0x5c},
					{0xb0, 0x4b, 0x6b}, {0x6b, 0x24, 0x6e}, {0x24, 0x10, 0x4f}};

static double share_of(const struct heat *h, double v)
{
	double share = h->log ? log(v / h->lo) / log(h->hi / h->lo) : (v - h->lo) / (h->hi - h->lo);
	return isfinite(share) ? fmax(0, fmin(1, share)) : 0.5;
}

static void colour(double share, char text[8])
{
	double at = share * (double)(LOOM__COUNT(ramp) - 1);
	size_t i = (size_t)fmin(at, (double)LOOM__COUNT(ramp) - 2);
	unsigned part[3];
	for (int k = 0; k < 3; k++)
		part[k] = (unsigned)lround(ramp[i][k] + (at - (double)i) * (ramp[i + 1][k] - ramp[i][k]));
	snprintf(text, 8, "#%02x%02x%02x", part[0] & 255, part[1] & 255, part[2] & 255);
}

/* Formats a value with three digits. The title has the unit. */
static void number(const struct heat *h, double v, char text[32])
{
	double x = v * h->unit.factor;
	snprintf(text, 32, fabs(x) >= 100 ? "%.0f" : "%.3g", x);
	for (char *c = text; *c; c++) /* a decimal point in every locale */
		if (*c == ',')
			*c = '.';
}

static void draw_cell(struct loom__text *out, const struct heat *h, const struct loom__lines_point *p, double left,
		      double bottom)
{
	double x = left + (double)p->at * h->cell_width, y = bottom - (double)(p->line + 1) * h->cell_height;
	double share = share_of(h, p->median);
	const char *ink = share > 0.55 ? "#ffffff" : "#1d2125";
	char fill[8], text[32], tip[400];
	colour(share, fill);
	number(h, p->median, text);
	snprintf(tip, sizeof(tip), "%.60s, %.60s: %s in %zu samples", h->s.l.line[p->line], h->s.l.x[p->at],
		 LOOM__FIGURE(p->median, loom__sheet_unit(&h->s)), p->n);
	loom__text_add(out, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" fill=\"%s\">", LOOM__XY(x + 0.5),
		       LOOM__XY(y + 0.5), LOOM__XY(h->cell_width - 1), LOOM__XY(h->cell_height - 1), fill);
	loom__svg_tip(out, tip);
	loom__text_add(out, "</rect>\n");
	int marked = !isnan(p->paper_low) && h->cell_height >= 30;
	if (loom__svg_fits(h->cell_width) >= 3)
		loom__text_add(out, "<text class=\"cell mid\" style=\"fill:%s\" x=\"%s\" y=\"%s\">%s</text>\n", ink,
			       LOOM__XY(x + h->cell_width / 2), LOOM__XY(y + h->cell_height / 2 + (marked ? -2 : 4)),
			       text);
	if (!marked)
		return;
	int bound = isinf(p->paper_low) || isinf(p->paper_high);
	number(h,
	       !bound                 ? (p->paper_low + p->paper_high) / 2
	       : isinf(p->paper_high) ? p->paper_low
				      : p->paper_high,
	       text);
	loom__markup_add(out, "<text class=\"cell mid\" style=\"fill:%s\" x=\"%s\" y=\"%s\">(%s%s)</text>\n", ink,
			 LOOM__XY(x + h->cell_width / 2), LOOM__XY(y + h->cell_height / 2 + 12),
			 isinf(p->paper_high)  ? "\xe2\x89\xa5"
			 : isinf(p->paper_low) ? "\xe2\x89\xa4"
					       : "",
			 text);
}

static void draw_panel(struct loom__text *out, struct heat *h, size_t facet)
{
	const struct loom__lines *l = &h->s.l;
	double left, top;
	loom__sheet_panel(&h->s, out, facet, &left, &top);
	double bottom = top + h->s.height;
	for (size_t i = 0; i < l->points; i++)
		if (l->point[i].facet == facet)
			draw_cell(out, h, &l->point[i], left, bottom);
	for (size_t i = 0; i < l->xs; i++)
		loom__svg_text(out, "tick", left + ((double)i + 0.5) * h->cell_width, bottom + 18, 'm', l->x[i],
			       loom__svg_fits(h->cell_width));
	for (size_t i = 0; i < l->lines; i++)
		loom__svg_text(out, "tick", left - 8, bottom - ((double)i + 0.5) * h->cell_height + 4, 'e', l->line[i],
			       loom__svg_fits(h->s.left));
}

double loom__plot_heat(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings, size_t metric, double width)
{
	struct heat h = {0};
	double bottom = 0;
	if (loom__sheet_begin(&h.s, view, settings, metric, width, 0, 0) && h.s.l.xs > 1 && h.s.l.lines > 1) {
		struct loom__text title = {0};
		double height = fmin(width < 600 ? 34 : 44, 420 / (double)h.s.l.lines) * (double)h.s.l.lines;
		double more = height - h.s.height;
		h.s.height = height;
		h.s.pitch += more;
		h.s.bottom += more * (double)((h.s.panels + h.s.columns - 1) / h.s.columns);
		h.cell_width = h.s.width / (double)h.s.l.xs;
		h.cell_height = height / (double)h.s.l.lines;
		h.lo = INFINITY;
		h.hi = -INFINITY;
		for (size_t i = 0; i < h.s.l.points; i++) {
			h.lo = fmin(h.lo, h.s.l.point[i].median);
			h.hi = fmax(h.hi, h.s.l.point[i].median);
		}
		h.log = h.lo > 0 && (settings->log & LOOM__LOG_Y || h.hi / h.lo > 20);
		loom__scale_fit(&h.unit, h.lo, h.hi, loom__sheet_unit(&h.s), 100, 0, 20);
		loom__sheet_open(&h.s, out, "Heat map: medians over the levels of two factors", h.unit.unit);
		loom__text_add(&title, "%s, upwards%s", view->factor[settings->lines],
			       loom__sheet_marked(&h.s) ? "; in parentheses: the paper" : "");
		loom__svg_text(out, "note", 0, h.s.head - (settings->facet == LOOM__NO_NAME ? 2 : 22), 's',
			       loom__must_text(&title), loom__svg_fits(width));
		for (size_t f = 0; f < h.s.panels; f++)
			draw_panel(out, &h, f);
		loom__sheet_close(&h.s, out);
		bottom = h.s.bottom;
		loom__text_free(&title);
	}
	loom__sheet_end(&h.s);
	return bottom;
}
