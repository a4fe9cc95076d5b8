/* SPDX-License-Identifier: Apache-2.0 */
/* What plots over the levels of factors share: panels, legend, titles, and marks of a paper's values. */
#ifndef LOOM_SHEET_H
#define LOOM_SHEET_H

#include "report/lines.h"
#include "report/plot.h"

#define LOOM__PANELS    12
#define LOOM__PANEL_GAP 28

struct loom__sheet {
	const struct loom__view *view;
	const struct loom__report_settings *settings;
	struct loom__lines l;
	struct loom__text legend;
	size_t panels, columns;
	double sheet_width, left, width, height; /* width of the sheet; place and size of the inside of a panel */
	double head, pitch, bottom;
};

/* The data, and the sizes for panels of `height`; 0: there is nothing to draw. The caller ends with
 * loom__sheet_end() in both cases. */
int loom__sheet_begin(struct loom__sheet *s, const struct loom__view *view,
		      const struct loom__report_settings *settings, size_t metric, double width, double height,
		      int legend);
/* Opens the drawing, and writes title and legend; `unit` is that of the axis. */
void loom__sheet_open(struct loom__sheet *s, struct loom__text *out, const char *label, const char *unit);
/* The left upper corner of a panel, with its name above it. */
void loom__sheet_panel(struct loom__sheet *s, struct loom__text *out, size_t facet, double *left, double *top);
/* Closes the drawing with the name of the x factor. */
void loom__sheet_close(struct loom__sheet *s, struct loom__text *out);
void loom__sheet_end(struct loom__sheet *s);
/* The unit of what is shown: none for ratios. */
const char *loom__sheet_unit(const struct loom__sheet *s);
/* The paper's value of a point at x: a dash, or a bracket for a range, or an arrow for a bound. */
void loom__sheet_mark(struct loom__text *out, const struct loom__scale *y, const struct loom__lines_point *p, double x,
		      double half);
/* Returns whether a point has a value of a paper. */
int loom__sheet_marked(const struct loom__sheet *s);

#endif
