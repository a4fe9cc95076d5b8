/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "report/plot/plot.h"
#include "facts/must.h"

void loom__svg_begin(struct loom__text *out, double width, double height, const char *label)
{
	loom__markup_add(out,
			 "<svg class=\"plot\" viewBox=\"0 0 %s %s\" width=\"%s\" height=\"%s\" "
			 "role=\"img\" aria-label=\"%s\">\n",
			 LOOM__XY(width), LOOM__XY(height), LOOM__XY(width), LOOM__XY(height), label);
}

void loom__svg_end(struct loom__text *out)
{
	loom__text_add(out, "</svg>\n");
}

void loom__svg_line(struct loom__text *out, const char *style, double x1, double y1, double x2, double y2)
{
	loom__text_add(out, "<line class=\"%s\" x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"/>\n", style, LOOM__XY(x1),
		       LOOM__XY(y1), LOOM__XY(x2), LOOM__XY(y2));
}

void loom__svg_box(struct loom__text *out, const char *style, double x, double y, double width, double height,
		   double round)
{
	loom__text_add(out, "<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"%s\"/>\n", style,
		       LOOM__XY(x), LOOM__XY(y), LOOM__XY(fmax(width, 0)), LOOM__XY(fmax(height, 0)), LOOM__XY(round));
}

void loom__svg_text(struct loom__text *out, const char *style, double x, double y, char anchor, const char *text,
		    size_t most)
{
	loom__text_add(out, "<text class=\"%s%s\" x=\"%s\" y=\"%s\">", style,
		       anchor == 'm'   ? " mid"
		       : anchor == 'e' ? " end"
				       : "",
		       LOOM__XY(x), LOOM__XY(y));
	loom__markup_cut(out, text, most);
	if (loom__markup_width(text) > most)
		loom__svg_tip(out, text);
	loom__text_add(out, "</text>\n");
}

void loom__svg_tip(struct loom__text *out, const char *tip)
{
	loom__markup_add(out, "<title>%s</title>", tip);
}

void loom__svg_mark(struct loom__text *out, size_t series, const char *style, double x, double y, double size,
		    const char *tip)
{
	/* Corners as multiples of the size. Shape 0 is a circle. */
	static const struct {
		int corners;
		double at[8][2];
	} shape[LOOM__SERIES] = {
	    {0, {{0}}},
	    {4, {{-.88, -.88}, {.88, -.88}, {.88, .88}, {-.88, .88}}},
	    {3, {{0, -1.2}, {1.1, .8}, {-1.1, .8}}},
	    {4, {{0, -1.3}, {1.3, 0}, {0, 1.3}, {-1.3, 0}}},
	    {3, {{0, 1.2}, {1.1, -.8}, {-1.1, -.8}}},
	    {5, {{0, -1.15}, {1.1, -.35}, {.68, .93}, {-.68, .93}, {-1.1, -.35}}},
	    {4, {{-1.3, -.6}, {1.3, -.6}, {1.3, .6}, {-1.3, .6}}},
	    {6, {{-.6, -1.05}, {.6, -1.05}, {1.2, 0}, {.6, 1.05}, {-.6, 1.05}, {-1.2, 0}}},
	};
	/* Further series repeat the colours, with other shapes. */
	size_t color = series % LOOM__SERIES, kind = (series + 3 * (series / LOOM__SERIES)) % LOOM__SERIES;
	if (!kind) {
		loom__text_add(out, "<circle class=\"%s s%zu\" cx=\"%s\" cy=\"%s\" r=\"%s\"", style, color, LOOM__XY(x),
			       LOOM__XY(y), LOOM__XY(size));
	} else {
		loom__text_add(out, "<path class=\"%s s%zu\" d=\"", style, color);
		for (int i = 0; i < shape[kind].corners; i++)
			loom__text_add(out, "%c%s %s", i ? 'L' : 'M', LOOM__XY(x + size * shape[kind].at[i][0]),
				       LOOM__XY(y + size * shape[kind].at[i][1]));
		loom__text_add(out, "Z\"");
	}
	if (tip) {
		loom__text_add(out, ">");
		loom__svg_tip(out, tip);
		loom__text_add(out, kind ? "</path>\n" : "</circle>\n");
	} else {
		loom__text_add(out, "/>\n");
	}
}

void loom__svg_axis_x(struct loom__text *out, const struct loom__scale *s, double y, double top)
{
	char label[32];
	double v;
	for (int i = 0; loom__scale_tick(s, i, &v, label); i++) {
		double x = loom__scale_at(s, v);
		if (top < y)
			loom__svg_line(out, "grid", x, top, x, y);
		loom__svg_text(out, "tick", x, y + 18, 'm', label, 32);
	}
	loom__svg_line(out, "axis", s->a, y, s->b, y);
}

void loom__svg_axis_y(struct loom__text *out, const struct loom__scale *s, double x, double right)
{
	char label[32];
	double v;
	for (int i = 0; loom__scale_tick(s, i, &v, label); i++) {
		double y = loom__scale_at(s, v);
		loom__svg_line(out, "grid", x, y, right, y);
		loom__svg_text(out, "tick", x - 8, y + 4, 'e', label, 32);
	}
}

void loom__svg_metric(struct loom__text *out, const struct loom__view *view, size_t metric, const char *unit, double x,
		      double y, char anchor)
{
	const struct loom__view_metric *m = &view->metric[metric];
	struct loom__text t = {0};
	loom__text_add(&t, "%.60s", m->name);
	if (*unit)
		loom__text_add(&t, " [%s]", unit);
	if (m->better)
		loom__text_add(&t, " \xc2\xb7 %s is better", loom__better_name(m->better));
	loom__svg_text(out, "name", x, y, anchor, loom__must_text(&t), 120);
	loom__text_free(&t);
}

size_t loom__svg_fits(double pixels)
{
	return pixels < 14 ? 2 : (size_t)(pixels / 6.9);
}
