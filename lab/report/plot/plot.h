/* SPDX-License-Identifier: Apache-2.0 */
/* Plots of a view as SVG. Colours are set by style classes (style.c), so that one drawing fits light and dark pages and
 * print. Each series also has a shape of its own. Every plot is drawn for a width in pixels. Pages contain a wide and a
 * narrow drawing, because text that is scaled down is hard to read. */
#ifndef LOOM_PLOT_H
#define LOOM_PLOT_H

#include "report/text/markup.h"
#include "report/report.h"
#include "report/view/view.h"

#define LOOM__WIDE   960
#define LOOM__NARROW 344
#define LOOM__SERIES 8 /* number of colours and of shapes; further series have other pairs of them */

/* A linear or logarithmic axis that maps the values lo..hi to the pixels a..b. */
struct loom__scale {
	double lo, hi, a, b;
	double step, factor; /* ticks are multiples of step; labels show the value times factor */
	int decimals, log;
	char unit[40]; /* unit of the labels: "ms", "Mtasks/s" */
};
/* Fits the axis to lo..hi with a margin. There is about one tick per `spacing` pixels. */
void loom__scale_fit(struct loom__scale *s, double lo, double hi, const char *unit, double a, double b, double spacing);
/* Makes the axis logarithmic, with ticks at 1, 2 and 5 times powers of ten. Has no effect if lo <= 0. */
void loom__scale_log(struct loom__scale *s, double lo, double hi);
double loom__scale_at(const struct loom__scale *s, double v);
/* Sets *v and the label for tick number i. Returns 0 after the last tick. */
int loom__scale_tick(const struct loom__scale *s, int i, double *v, char label[32]);

/* ---- svg.c ----------------------------------------------------------------------------------- */
void loom__svg_begin(struct loom__text *out, double width, double height, const char *label);
void loom__svg_end(struct loom__text *out);
void loom__svg_line(struct loom__text *out, const char *style, double x1, double y1, double x2, double y2);
void loom__svg_box(struct loom__text *out, const char *style, double x, double y, double width, double height,
		   double round);
/* Draws text. `anchor` says where x is in the text: at its 's'tart, 'm'iddle or 'e'nd. `text` is untrusted, and is cut
 * to `most` characters. */
void loom__svg_text(struct loom__text *out, const char *style, double x, double y, char anchor, const char *text,
		    size_t most);
/* Draws the mark of a series. `tip` is its tooltip, or NULL. */
void loom__svg_mark(struct loom__text *out, size_t series, const char *style, double x, double y, double size,
		    const char *tip);
void loom__svg_tip(struct loom__text *out, const char *tip);
/* Draw the ticks of an axis with their labels, and grid lines. loom__svg_axis_x() draws a horizontal axis at y, with
 * grid lines up to `top`. loom__svg_axis_y() draws a vertical axis at x, with grid lines to `right`. */
void loom__svg_axis_x(struct loom__text *out, const struct loom__scale *s, double y, double top);
void loom__svg_axis_y(struct loom__text *out, const struct loom__scale *s, double x, double right);
/* Draws the title of an axis, such as "tasks_per_s (Mtasks/s), more is better". */
void loom__svg_metric(struct loom__text *out, const struct loom__view *view, size_t metric, const char *unit, double x,
		      double y, char anchor);
size_t loom__svg_fits(double pixels); /* returns how many characters of a label fit */

/* The plots. Each function appends one svg element and returns its height, or returns 0 if there is nothing to draw. */
double loom__plot_forest(struct loom__text *out, const struct loom__view *view, double width);
double loom__plot_runs(struct loom__text *out, const struct loom__view *view, size_t metric, double width);
double loom__plot_distribution(struct loom__text *out, const struct loom__view *view, size_t metric, double width);
/* Draws the Pareto front of the metrics settings->x and settings->y. If the settings ask for ratios or geometric means,
 * draws the front of these instead. */
double loom__plot_pareto(struct loom__text *out, const struct loom__view *view,
			 const struct loom__report_settings *settings, double width);
double loom__plot_lines(struct loom__text *out, const struct loom__view *view,
			const struct loom__report_settings *settings, size_t metric, double width);
/* loom__plot_bars() draws groups of bars: a group per x, a bar per line. loom__plot_heat() draws a matrix of x and
 * lines. */
double loom__plot_bars(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings, size_t metric, double width);
double loom__plot_heat(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings, size_t metric, double width);
double loom__plot_workers(struct loom__text *out, const struct loom__view *view, const struct loom__variant *v,
			  double width);
/* Draws one of the plots above. A plot that needs no metric, variant or settings ignores them. */
double loom__plot_draw(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings, enum loom__plot_kind plot, size_t metric,
		       const struct loom__variant *v, double width);

/* CSS class and symbol of each verdict, indexed by enum loom__verdict. */
extern const char *const loom__verdict_style[], *const loom__verdict_sign[];
/* style.c: the style sheet of the plots. */
extern const char loom__plot_style[];
/* Appends the style sheet for pictures in papers. It has the colours of light pages, and no CSS variables, because few
 * SVG renderers support them. */
void loom__plot_style_plain(struct loom__text *out);

#endif
