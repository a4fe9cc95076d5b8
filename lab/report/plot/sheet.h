/* SPDX-License-Identifier: Apache-2.0 */
/* Parts that lines, bars and heat maps share: panels, legend, titles, and marks of a paper's values. */
#ifndef LOOM_SHEET_H
#define LOOM_SHEET_H

#include "report/view/lines.h"
#include "report/plot/plot.h"

#define LOOM__PANELS    12
#define LOOM__PANEL_GAP 28

struct loom__sheet {
	const struct loom__view *view;
	const struct loom__report_settings *settings;
	struct loom__lines l;
	struct loom__text legend;
	size_t panels, columns;
	double sheet_width, left, width, height; /* width of the sheet; left end and size of the inside of a panel */
	double head, pitch, bottom;
};

/* Computes the data, and the sizes for panels of `height`. Returns 0 if there is nothing to draw. In both cases the
 * caller ends with loom__sheet_end(). */
int loom__sheet_begin(struct loom__sheet *s, const struct loom__view *view,
		      const struct loom__report_settings *settings, size_t metric, double width, double height,
		      int legend);
/* Opens the drawing, and writes title and legend. `unit` is the unit on the axis. */
void loom__sheet_open(struct loom__sheet *s, struct loom__text *out, const char *label, const char *unit);
/* Writes the name of a panel above it. Sets *left and *top to the upper left corner of the area inside the panel. */
void loom__sheet_panel(struct loom__sheet *s, struct loom__text *out, size_t facet, double *left, double *top);
/* Writes the name of the x factor, and closes the drawing. */
void loom__sheet_close(struct loom__sheet *s, struct loom__text *out);
void loom__sheet_end(struct loom__sheet *s);
/* Returns the unit of the values shown, which is "" for ratios. */
const char *loom__sheet_unit(const struct loom__sheet *s);
/* Writes the tooltip of a point, and returns it. */
#define LOOM__SHEET_TIP 500
const char *loom__sheet_tip(const struct loom__sheet *s, const struct loom__lines_point *p, char tip[LOOM__SHEET_TIP]);
/* Marks the paper's value of a point at x: by a dash, a bracket for a range, or an arrow for a bound. */
void loom__sheet_mark(struct loom__text *out, const struct loom__scale *y, const struct loom__lines_point *p, double x,
		      double half);
/* Returns 1 if at least one point has a value of a paper. */
int loom__sheet_marked(const struct loom__sheet *s);

#endif
