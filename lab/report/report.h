/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: result documents in one of several formats. They need the documents only, neither plug-ins nor devices. */
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
/* By the suffix of a file name, or by name; LOOM__REPORT_FORMATS if unknown. */
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
	LOOM__PLOT_BARS,
	LOOM__PLOT_HEAT,
	LOOM__PLOTS,
};
extern const char *const loom__plot_name[LOOM__PLOTS + 1]; /* NULL-terminated */

/* Parses "forest,pareto" into bits; LOOM_EINVAL for an unknown name. */
int loom__report_plots(const char *list, unsigned *plots, struct loom_error *err);

/* Plots that are drawn only if they are named. */
enum { LOOM__PLOT_NAMED = 1 << LOOM__PLOT_BARS | 1 << LOOM__PLOT_HEAT };

/* What lines, bars and heat maps show: values, the ratio to the base, the speed-up over the base, or the speed-up divided
 * by x. The base is the level `base` of the lines or of x; without one, the first x. */
enum loom__show { LOOM__SHOW_VALUE, LOOM__SHOW_RATIO, LOOM__SHOW_SPEEDUP, LOOM__SHOW_EFFICIENCY };
extern const char *const loom__show_name[]; /* NULL-terminated, like loom__axes_name */
enum { LOOM__LOG_X = 1, LOOM__LOG_Y = 2 };
extern const char *const loom__axes_name[];

/* Widths of plots. */
enum loom__width { LOOM__WIDTH_PAGE, LOOM__WIDTH_COLUMN /* 84 mm */ };
extern const char *const loom__width_name[];

/* A value of a paper, which has a mark of its own in lines, bars and heat maps: that of the configurations in `of`, or of
 * their ratio to those in `over`. */
struct loom__paper_mark {
	const unsigned char *of, *over; /* [variants]; over NULL: no ratio */
	size_t metric;
	double low, high; /* infinite: a bound */
};

struct loom__report_settings {
	size_t metric[LOOM__REPORT_METRICS]; /* metrics to plot, the leading one first */
	size_t metrics, asked; /* asked: those that were named; 0: the others are a default */
	size_t x, y; /* metrics of the Pareto front; LOOM__NO_NAME if none */
	size_t x_factor, lines, facet; /* factors of the line plot; LOOM__NO_NAME if none */
	size_t mean;		       /* the factor over which geometric means are taken; LOOM__NO_NAME if none */
	enum loom__show show;
	const char *base; /* the level to which ratios refer; "" or NULL: the first x */
	enum loom__width width;
	const struct loom__paper_mark *mark;
	size_t marks;
	unsigned log; /* LOOM__LOG_* */
	unsigned
	    plots; /* bits of enum loom__plot_kind, for SVG; 0: all plots that have content */
};
/* Metrics "a,b" and a front "x,y" of a view; NULL selects defaults. LOOM_EINVAL for an unknown name. */
int loom__report_settings(const struct loom__view *view, const char *metrics, const char *pareto,
		      struct loom__report_settings *settings, struct loom_error *err);

/* The factors of the line plot. NULL or "" selects a default; for x, a factor whose levels are numbers, or after that, for
 * bars and heat maps (settings->plots), any. There is no line plot without an x, or after an error. */
int loom__report_lines(const struct loom__view *view, const char *x, const char *lines, const char *facet,
		       struct loom__report_settings *settings, struct loom_error *err);
/* The factor of geometric means, before the other factors are chosen: it becomes neither lines nor panels by default. */
int loom__report_mean(const struct loom__view *view, const char *mean, struct loom__report_settings *settings,
		      struct loom_error *err);
/* The factor of which the base is a level: that of the lines, of x, or another one. LOOM__NO_NAME: there is no base. */
size_t loom__report_base_factor(const struct loom__view *view, const struct loom__report_settings *settings);
/* The base of ratios, once the factors of the line plot are known. */
int loom__report_base(const struct loom__view *view, const char *base, struct loom__report_settings *settings,
		      struct loom_error *err);

/* A view of the ratios and geometric means that the settings ask for, of the metrics x and y alone. Returns 0 if they ask
 * for none, or if there are too many variants; else free the view, which needs `view`. */
int loom__view_relative(const struct loom__view *view, const struct loom__report_settings *settings,
			struct loom__view *out);

void loom__report_html(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings);
void loom__report_markdown(struct loom__text *out, const struct loom__view *view,
			   const struct loom__report_settings *settings);
/* Long format: one row per sample; first the levels of the factors, then the metrics with units in their names. */
void loom__report_csv(struct loom__text *out, const struct loom__view *view);
void loom__report_svg(struct loom__text *out, const struct loom__view *view,
		      const struct loom__report_settings *settings);
/* Converts an SVG file to PNG or PDF by rsvg-convert. */
int loom__report_draw(const struct loom__text *svg, enum loom__report_format format, struct loom__text *out,
		      struct loom_error *err);
/* A script that contains the medians, intervals, quartiles and ratios that it plots. */
void loom__report_gnuplot(struct loom__text *out, const struct loom__view *view,
			  const struct loom__report_settings *settings);
/* gpuloom.report/1 (docs/report.md). */
void loom__report_summary(struct loom__text *out, const struct loom__view *view,
			  const struct loom__report_settings *settings);

#endif
