/* SPDX-License-Identifier: Apache-2.0 */
/* Reports: result documents in one of several formats. A report needs the documents only, neither plug-ins nor
 * devices. */
#ifndef LOOM_REPORT_H
#define LOOM_REPORT_H

#include "report/view/view.h"

enum loom__report_format {
	LOOM__AS_HTML,
	LOOM__AS_MARKDOWN,
	LOOM__AS_CSV,
	LOOM__AS_SVG,
	LOOM__AS_JSON,
	LOOM__AS_PNG,
	LOOM__AS_PDF,
	LOOM__AS_JUNIT,
	LOOM__AS_LATEX,
	LOOM__REPORT_FORMATS,
};
/* All suffixes except .json, for messages. */
#define LOOM__REPORT_SUFFIXES ".html, .md, .csv, .svg, .png, .pdf, .tex, .xml (JUnit)"
/* Return the format for the suffix of a file name, or for a name. LOOM__REPORT_FORMATS means that it is not known. */
enum loom__report_format loom__report_format_of(const char *path);
enum loom__report_format loom__report_format_named(const char *name);
extern const char *const loom__report_format_name[LOOM__REPORT_FORMATS + 1]; /* ended by NULL */

#define LOOM__REPORT_METRICS 6

enum loom__plot_kind {
	LOOM__PLOT_FOREST,
	LOOM__PLOT_RUNS,
	LOOM__PLOT_DISTRIBUTION,
	LOOM__PLOT_PARETO,
	LOOM__PLOT_WORKERS,
	LOOM__PLOT_LINES,
	LOOM__PLOT_BARS,
	LOOM__PLOT_HEAT,
	LOOM__PLOTS,
};
extern const char *const loom__plot_name[LOOM__PLOTS + 1]; /* ended by NULL */

/* Parses a list of plots, such as "forest,pareto", into bits. Returns LOOM_EINVAL for an unknown name. */
int loom__report_plots(const char *list, unsigned *plots, struct loom_error *err);

/* Plots that are drawn only if the user names them. */
enum { LOOM__PLOT_NAMED = 1 << LOOM__PLOT_BARS | 1 << LOOM__PLOT_HEAT };

/* What lines, bars and heat maps show: the values, their ratios to the base, the speed-ups over the base, or the
 * speed-ups divided by x. The base is the level `base` of the factor of the lines or of x. If `base` is not given, the
 * first x is the base. */
enum loom__show { LOOM__SHOW_VALUE, LOOM__SHOW_RATIO, LOOM__SHOW_SPEEDUP, LOOM__SHOW_EFFICIENCY };
extern const char *const loom__show_name[]; /* ended by NULL, like loom__axes_name */
enum { LOOM__LOG_X = 1, LOOM__LOG_Y = 2 };
extern const char *const loom__axes_name[];

/* Widths of plots. */
enum loom__width { LOOM__WIDTH_PAGE, LOOM__WIDTH_COLUMN /* 84 mm */ };
extern const char *const loom__width_name[];

/* A value from a paper, which lines, bars and heat maps mark. It belongs to the configurations in `of`, or to the ratio
 * of the configurations in `of` to the configurations in `over`. */
struct loom__paper_mark {
	const unsigned char *of, *over; /* [variants] 1: the configuration is in the set; over: NULL without ratio */
	size_t metric;
	double low, high; /* range of the value; infinite: no bound on this side */
};

struct loom__report_settings {
	size_t metric[LOOM__REPORT_METRICS]; /* metrics to plot, the leading one first */
	/* asked: number of metrics at the start of `metric` that the user has named; 0: all are defaults */
	size_t metrics, asked;
	size_t x, y; /* metrics of the Pareto front; LOOM__NO_NAME: none */
	size_t x_factor, lines, facet; /* factors of the line plot; LOOM__NO_NAME: none */
	size_t mean;		       /* factor over which geometric means are taken; LOOM__NO_NAME: none */
	enum loom__show show;
	const char *base; /* the level to which ratios refer; "" or NULL: the first x */
	enum loom__width width;
	const struct loom__paper_mark *mark;
	size_t marks;
	unsigned log; /* LOOM__LOG_* */
	unsigned
	    plots; /* bits of enum loom__plot_kind, for SVG; 0: all plots that have content */
};
/* Sets the metrics "a,b" to plot, and the two metrics "x,y" of the Pareto front. NULL selects defaults. Returns
 * LOOM_EINVAL for an unknown name. */
int loom__report_settings(const struct loom__view *view, const char *metrics, const char *pareto,
		      struct loom__report_settings *settings, struct loom_error *err);

/* Sets the factors of the line plot. NULL or "" selects a default. For x, this is a factor whose levels are numbers or,
 * if settings->plots names bars or heat maps, any factor. Without an x, or after an error, there is no line plot. */
int loom__report_lines(const struct loom__view *view, const char *x, const char *lines, const char *facet,
		       struct loom__report_settings *settings, struct loom_error *err);
/* Sets the factor over which geometric means are taken. Call it before loom__report_lines(), whose defaults for lines
 * and panels leave this factor out. */
int loom__report_mean(const struct loom__view *view, const char *mean, struct loom__report_settings *settings,
		      struct loom_error *err);
/* Returns the factor that has the base as a level. This may be the factor of the lines, the factor of x, or another
 * factor. Returns LOOM__NO_NAME if there is no base. */
size_t loom__report_base_factor(const struct loom__view *view, const struct loom__report_settings *settings);
/* Sets the base of ratios. Call it after loom__report_lines(). */
int loom__report_base(const struct loom__view *view, const char *base, struct loom__report_settings *settings,
		      struct loom_error *err);

/* Makes a view of the ratios and geometric means that the settings ask for, with the metrics settings->x and
 * settings->y only. Returns 0 if the settings ask for neither, or if there are too many variants. Otherwise the caller
 * frees *out, which points into `view`. */
int loom__view_relative(const struct loom__view *view, const struct loom__report_settings *settings,
			struct loom__view *out);

void loom__report_html(struct loom__text *out, const struct loom__view *view,
		       const struct loom__report_settings *settings);
void loom__report_markdown(struct loom__text *out, const struct loom__view *view,
			   const struct loom__report_settings *settings);
/* Writes a tabular for LaTeX: the verdicts of a comparison, or else the medians of each configuration. */
void loom__report_latex(struct loom__text *out, const struct loom__view *view, const struct loom__report_settings *settings);
/* Writes a row per sample. The columns are the levels of the factors, then the metrics, with units in their names. */
void loom__report_csv(struct loom__text *out, const struct loom__view *view);
/* Returns the bits of the plots that it has drawn. The others have no data. */
unsigned loom__report_svg(struct loom__text *out, const struct loom__view *view,
			  const struct loom__report_settings *settings);
/* Converts an SVG to PNG or PDF, by rsvg-convert. */
int loom__report_draw(const struct loom__text *svg, enum loom__report_format format, struct loom__text *out,
		      struct loom_error *err);
/* Writes JUnit XML, in which a rule of --fail-on is a test case. */
void loom__report_junit(struct loom__text *out, const struct loom__view *view);
/* Writes a document of schema gpuloom.report/1 (docs/results.md), which has all values of the tables and plots. */
void loom__report_summary(struct loom__text *out, const struct loom__view *view,
			  const struct loom__report_settings *settings);

#endif
