/* SPDX-License-Identifier: Apache-2.0 */
/* Plots of a view as SVG. Colours come from style classes (style.c), so that one drawing suits light and dark pages and
 * print; each series also has its own shape. Every plot is drawn for a width in pixels. Pages contain a wide and a
 * narrow drawing, because scaled text is hard to read. */
#ifndef LOOM_PLOT_H
#define LOOM_PLOT_H

#include "report/markup.h"
#include "report/report.h"
#include "report/view.h"

#define LOOM__WIDE   960
#define LOOM__NARROW 344
#define LOOM__SERIES 8 /* distinct colours and shapes; further variants share one */

/* A linear or logarithmic axis that maps lo..hi to the pixels a..b. */
struct loom__scale {
	double lo, hi, a, b;
	double step, factor; /* ticks at multiples of step; labels are multiplied by factor */
	int decimals, log;
	char unit[40]; /* unit of the ticks: "ms", "Mtasks/s" */
};
/* Fits the axis to lo..hi with a margin, and about one tick per `spacing` pixels. */
void loom__scale_fit(struct loom__scale *s, double lo, double hi, const char *unit, double a,
		     double b, double spacing);
/* Makes the axis logarithmic, with ticks at 1, 2 and 5 times powers of ten, unless lo <= 0. */
void loom__scale_log(struct loom__scale *s, double lo, double hi);
double loom__scale_at(const struct loom__scale *s, double v);
/* Tick number i; returns 0 after the last one. */
int loom__scale_tick(const struct loom__scale *s, int i, double *v, char label[32]);

/* ---- svg.c ----------------------------------------------------------------------------------- */
void loom__svg_begin(struct loom__text *out, double width, double height, const char *label);
void loom__svg_end(struct loom__text *out);
void loom__svg_line(struct loom__text *out, const char *style, double x1, double y1, double x2,
		    double y2);
void loom__svg_box(struct loom__text *out, const char *style, double x, double y, double width,
		   double height, double round);
/* anchor: 's'tart, 'm'iddle, 'e'nd. `text` is untrusted and cut to `most` characters. */
void loom__svg_text(struct loom__text *out, const char *style, double x, double y, char anchor,
		    const char *text, size_t most);
/* The mark of a series, with `tip` (may be NULL) as its tooltip. */
void loom__svg_mark(struct loom__text *out, size_t series, const char *style, double x, double y,
		    double size, const char *tip);
void loom__svg_tip(struct loom__text *out, const char *tip);
/* The ticks of a horizontal axis at y, with grid lines up to `top`; of a vertical axis. */
void loom__svg_axis_x(struct loom__text *out, const struct loom__scale *s, double y, double top);
void loom__svg_axis_y(struct loom__text *out, const struct loom__scale *s, double x, double right);
/* The title of an axis: "tasks_per_s (Mtasks/s), more is better". */
void loom__svg_metric(struct loom__text *out, const struct loom__view *view, size_t metric,
		      const char *unit, double x, double y, char anchor);
size_t loom__svg_fits(double pixels); /* how many characters of a label fit */

/* The plots. Each appends one svg element and returns its height, or returns 0 if the view has nothing to draw. */
double loom__plot_forest(struct loom__text *out, const struct loom__view *view, double width);
double loom__plot_runs(struct loom__text *out, const struct loom__view *view, size_t metric,
		       double width);
double loom__plot_distribution(struct loom__text *out, const struct loom__view *view, size_t metric,
			       double width);
double loom__plot_effects(struct loom__text *out, const struct loom__view *view, size_t metric,
			  double width);
/* Draws the Pareto front of the metrics x and y of the settings, and of their ratios and geometric means if the
 * settings ask for these. */
double loom__plot_pareto(struct loom__text *out, const struct loom__view *view,
			 const struct loom__report_settings *settings, double width);
double loom__plot_lines(struct loom__text *out, const struct loom__view *view,
			const struct loom__report_settings *settings, size_t metric, double width);
/* Bars grouped by x, one for each line; a matrix of x and lines. */
double loom__plot_bars(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings, size_t metric, double width);
double loom__plot_heat(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings, size_t metric, double width);
double loom__plot_workers(struct loom__text *out, const struct loom__view *view,
			  const struct loom__variant *v, double width);

/* Level `level` of factor `factor` against level `base`: the median of the ratios of configurations that differ in
 * nothing else, with its 95 % interval. Returns the number of such pairs. */
size_t loom__effect(const struct loom__view *view, size_t metric, size_t factor, const char *base,
		    const char *level, struct loom__stats_interval *ratio);
/* The levels of a factor in order of appearance, at most `most`. */
size_t loom__effect_levels(const struct loom__view *view, size_t factor, const char **level,
			   size_t most);

/* Indexed by enum loom__verdict: CSS class and symbol. */
extern const char *const loom__verdict_style[], *const loom__verdict_sign[];
/* style.c: the style sheet of the plots. */
extern const char loom__plot_style[];
/* Appends the style sheet with the colours of light pages and without CSS variables, which few SVG renderers
 * support: a picture for a paper is the same in each of them. */
void loom__plot_style_plain(struct loom__text *out);

#endif
