/* SPDX-License-Identifier: Apache-2.0 */
/* The data of a line plot: a metric over the levels of a factor x. There may be a line per level of a second factor,
 * and a panel per level of a third. */
#ifndef LOOM_LINES_H
#define LOOM_LINES_H

#include "report/report.h"

#define LOOM__LINES_LEVELS 64 /* limit on the levels of a factor */

struct loom__lines_point {
	size_t facet, line, at; /* indices of the levels; 0 if there is no such factor */
	double x;               /* the level as a number; if the level is no number, its index */
	/* Median, interval and extremes of the samples of all configurations at this point, or ratios of these values
	 * if the settings ask for ratios. */
	double median, low, high, least, most;
	int open; /* 1: too few samples for an interval, so low and high are least and most */
	size_t n, configs;
	/* range of the paper's value; NAN: there is no value; infinite: the range has no bound on this side */
	double paper_low, paper_high;
};

struct loom__lines {
	struct loom__arena arena;
	size_t metric;
	const char **x, **line, **facet; /* the levels; {""} if there is no such factor */
	size_t xs, lines, facets;
	int numbers; /* 1: every x is a number */
	int mean_x;  /* 1: the last x stands for the geometric mean over all x */
	struct loom__lines_point *point;
	size_t points; /* number of points, which are sorted by facet, line and x */
	double lo, hi; /* the range of all least and most */
	size_t pooled; /* largest number of configurations merged into one point, because other factors vary */
};

/* Computes the points. If there are none, there is nothing to draw. */
void loom__lines_create(const struct loom__view *view, const struct loom__report_settings *settings, size_t metric,
			struct loom__lines *out);
void loom__lines_free(struct loom__lines *l);
/* Appends the title for axes and captions, such as "speed-up of seconds over 1". */
void loom__lines_name(const struct loom__view *view, const struct loom__report_settings *settings,
		      const struct loom__lines *l, struct loom__text *out);

#endif
