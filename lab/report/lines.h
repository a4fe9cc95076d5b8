/* SPDX-License-Identifier: Apache-2.0 */
/* A metric over the levels of a factor: a line per level of a second factor, a panel per level of a third. */
#ifndef LOOM_LINES_H
#define LOOM_LINES_H

#include "report/report.h"

#define LOOM__LINES_LEVELS 64 /* limit on the levels of a factor */

struct loom__lines_point {
	size_t facet, line, at; /* indices of levels; 0 without such a factor */
	double x;               /* the level as a number, or else its index */
	/* Over the samples of all configurations at this point, as ratios if the line's first x is the base. */
	double median, low, high, least, most;
	int open; /* 1: too few samples for an interval, so low and high are least and most */
	size_t n, configs;
	double paper_low, paper_high; /* NAN: the paper gives no value of this point; infinite: a bound */
};

struct loom__lines {
	struct loom__pool pool;
	size_t metric;
	const char **x, **line, **facet; /* levels; {""} without such a factor */
	size_t xs, lines, facets;
	int numbers; /* every x is a number */
	int mean_x;  /* the last x is the geometric mean over the others */
	struct loom__lines_point *point;
	size_t points; /* sorted by facet, line and x */
	double lo, hi; /* the range of all least and most */
	size_t pooled; /* the most configurations merged into one point, because other factors vary */
};

/* Computes the lines. Without points there is nothing to draw. */
void loom__lines_create(const struct loom__view *view, const struct loom__report_settings *settings, size_t metric,
			struct loom__lines *out);
void loom__lines_free(struct loom__lines *l);
/* Appends "speed-up of seconds over 1", the title of axes and captions. */
void loom__lines_name(const struct loom__view *view, const struct loom__report_settings *settings,
		      const struct loom__lines *l, struct loom__text *out);

#endif
