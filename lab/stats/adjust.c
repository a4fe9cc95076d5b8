/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"
#include "facts/must.h"

#include <math.h>
#include <stdlib.h>

#include <gpuloom/error.h>

struct entry {
	double p;
	size_t at;
};

static int by_p(const void *a, const void *b)
{
	double x = ((const struct entry *)a)->p, y = ((const struct entry *)b)->p;
	return (x > y) - (x < y);
}

/* Holm's step-down procedure: multiplies the smallest p by n, the next larger p by n - 1, and so on. A larger p never
 * gets a smaller adjusted p. */
int loom__stats_holm(const double *p, size_t n, double *out)
{
	for (size_t i = 0; i < n; i++)
		if (!(p[i] >= 0 && p[i] <= 1))
			return LOOM_EINVAL;
	struct entry *e = n ? loom__must(calloc(n, sizeof(*e))) : NULL;
	if (!e)
		return n ? LOOM_ENOMEM : LOOM_EINVAL;
	for (size_t i = 0; i < n; i++)
		e[i] = (struct entry){p[i], i};
	qsort(e, n, sizeof(*e), by_p);
	double most = 0;
	for (size_t i = 0; i < n; i++) {
		most = fmax(most, fmin(1, e[i].p * (double)(n - i)));
		out[e[i].at] = most;
	}
	free(e);
	return 0;
}
