/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: a view of result documents in one of several formats. Nothing but the documents is
 * needed, neither plug-ins nor devices. */
#ifndef LOOM_REPORT_H
#define LOOM_REPORT_H

#include "report/view.h"

enum loom__report_format {
	LOOM__AS_HTML,
	LOOM__AS_MARKDOWN,
	LOOM__AS_CSV,
	LOOM__AS_SVG,
	LOOM__AS_GNUPLOT,
	LOOM__AS_JSON,
	LOOM__AS_PNG,
	LOOM__AS_PDF,
	LOOM__REPORT_FORMATS,
};
/* By the end of a file's name or by name; LOOM__REPORT_FORMATS: none. */
enum loom__report_format loom__report_format_of(const char *path);
enum loom__report_format loom__report_format_named(const char *name);
extern const char *const loom__report_format_name[LOOM__REPORT_FORMATS + 1]; /* NULL-terminated */

#define LOOM__REPORT_METRICS 6

enum loom__plot_kind {
	LOOM__PLOT_FOREST,
	LOOM__PLOT_RUNS,
	LOOM__PLOT_DISTRIBUTION,
	LOOM__PLOT_EFFECTS,
	LOOM__PLOT_PARETO,
	LOOM__PLOT_WORKERS,
	LOOM__PLOT_LINES,
	LOOM__PLOTS,
};
extern const char *const loom__plot_name[LOOM__PLOTS + 1]; /* NULL-terminated */

/* "forest,pareto" as bits; a name that is none is worded in err. */
int loom__report_plots(const char *list, unsigned *plots, struct loom_error *err);

/* What a line plot shows: figures, or what is gained over the first level of x, by itself or per level. */
enum loom__show { LOOM__SHOW_VALUE, LOOM__SHOW_SPEEDUP, LOOM__SHOW_EFFICIENCY };
extern const char *const loom__show_name[]; /* NULL-terminated, as loom__axes_name */
enum { LOOM__LOG_X = 1, LOOM__LOG_Y = 2 };
extern const char *const loom__axes_name[];

struct loom__report_wish {
	size_t metric[LOOM__REPORT_METRICS]; /* to be plotted, the leading one first */
	size_t metrics;
	size_t x, y; /* of the Pareto front; LOOM__NO_NAME: none */
	size_t x_factor, lines, facet; /* of the line plot; LOOM__NO_NAME: none */
	enum loom__show show;
	unsigned log; /* LOOM__LOG_* */
	unsigned
	    plots; /* bits of enum loom__plot_kind, for SVG; 0: all that have something to show */
};
/* Metrics "a,b" (NULL: chosen) and a front "x,y" (NULL: chosen) for a view; names that it does not
 * have are worded in err. */
int loom__report_wish(const struct loom__view *view, const char *metrics, const char *pareto,
		      struct loom__report_wish *wish, struct loom_error *err);

/* The factors of the line plot: NULL or "" are chosen, the x first among those with numbers for levels. Without `x`
 * and with no such factor there is no line plot, nor after a mistake. */
int loom__report_lines(const struct loom__view *view, const char *x, const char *lines, const char *facet,
		       struct loom__report_wish *wish, struct loom_error *err);

void loom__report_html(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_wish *wish);
void loom__report_markdown(struct loom__text *out, const struct loom__view *view,
			   const struct loom__report_wish *wish);
/* Long form: one row per sample; what was varied first, then metrics with units in their names. */
void loom__report_csv(struct loom__text *out, const struct loom__view *view);
void loom__report_svg(struct loom__text *out, const struct loom__view *view,
		      const struct loom__report_wish *wish);
/* An SVG file's text as one of the formats PNG and PDF, drawn by rsvg-convert. */
int loom__report_draw(const struct loom__text *svg, enum loom__report_format format, struct loom__text *out,
		      struct loom_error *err);
/* A script that holds the medians, intervals, quartiles and ratios that it draws. */
void loom__report_gnuplot(struct loom__text *out, const struct loom__view *view,
			  const struct loom__report_wish *wish);
/* gpuloom.report/1 (docs/report.md). */
void loom__report_summary(struct loom__text *out, const struct loom__view *view,
			  const struct loom__report_wish *wish);

#endif
