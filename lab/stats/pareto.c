/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"
#include "facts/must.h"

#include <math.h>
#include <stdlib.h>

#include <gpuloom/error.h>

/* The worst corner of a point's intervals. The signs are changed where needed, so that more is better in both
 * metrics. */
struct corner {
	double x, y;
};

static int falling_x(const void *a, const void *b)
{
	double x = ((const struct corner *)a)->x, y = ((const struct corner *)b)->x;
	return (x < y) - (x > y);
}

/* Returns the largest y among the corners with x above `bound`; if `at` is 1, also among the corners with x equal to
 * `bound`. Returns NAN if there is no such corner. Corners are sorted by falling x, and corner[i].y is the largest y of
 * corners 0..i. */
static double best_y(const struct corner *corner, size_t n, double bound, int at)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (corner[middle].x > bound || (at && corner[middle].x == bound))
			low = middle + 1;
		else
			high = middle;
	}
	return low ? corner[low - 1].y : NAN;
}

int loom__stats_pareto(const struct loom__stats_point *points, size_t n, enum loom__stats_better x_better,
		       enum loom__stats_better y_better, unsigned char *front)
{
	for (size_t i = 0; i < n; i++) /* this form of the condition also rejects NaN */
		if (!(points[i].x_low <= points[i].x_high && points[i].y_low <= points[i].y_high))
			return LOOM_EINVAL;
	struct corner *corner = n ? loom__must(calloc(n, sizeof(*corner))) : NULL;
	if (!corner)
		return n ? LOOM_ENOMEM : LOOM_EINVAL;
	int x_more = x_better == LOOM__STATS_MORE, y_more = y_better == LOOM__STATS_MORE;
	for (size_t i = 0; i < n; i++) {
		corner[i].x = x_more ? points[i].x_low : -points[i].x_high;
		corner[i].y = y_more ? points[i].y_low : -points[i].y_high;
	}
	qsort(corner, n, sizeof(*corner), falling_x);
	for (size_t i = 1; i < n; i++)
		corner[i].y = fmax(corner[i].y, corner[i - 1].y);
	for (size_t i = 0; i < n; i++) {
		double x = x_more ? points[i].x_high : -points[i].x_low;
		double y = y_more ? points[i].y_high : -points[i].y_low;
		front[i] = !(best_y(corner, n, x, 0) >= y || best_y(corner, n, x, 1) > y);
	}
	free(corner);
	return 0;
}
