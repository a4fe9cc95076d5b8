/* SPDX-License-Identifier: Apache-2.0 */
/* A metric over the levels of one factor: a line for each level of a second, a panel for each level of a third. */
#ifndef LOOM_LINES_H
#define LOOM_LINES_H

#include "report/report.h"

#define LOOM__LINES_LEVELS 64 /* of a factor */

struct loom__lines_point {
	size_t facet, line, at; /* numbers of levels; 0 where there is no such factor */
	double x;               /* the level as a number, else its place */
	/* Of all samples of the cells there; as ratios where the first x of the line is the base. */
	double median, low, high, least, most;
	int open; /* too few samples for the interval: low and high are least and most */
	size_t n, cells;
};

struct loom__lines {
	struct loom__pool pool;
	size_t metric;
	const char **x, **line, **facet; /* levels; "" alone where there is no such factor */
	size_t xs, lines, facets;
	int numbers; /* every x is one */
	struct loom__lines_point *point;
	size_t points; /* by facet, line and x */
	double lo, hi; /* of least and most */
	size_t pooled; /* the most cells of one point: other factors vary, too */
};

/* No points: there is nothing to draw. */
void loom__lines_create(const struct loom__view *view, const struct loom__report_wish *wish, size_t metric,
			struct loom__lines *out);
void loom__lines_free(struct loom__lines *l);
/* "speed-up of seconds over 1", in words for axes and captions. */
void loom__lines_name(const struct loom__view *view, const struct loom__report_wish *wish, const struct loom__lines *l,
		      struct loom__text *out);

#endif
