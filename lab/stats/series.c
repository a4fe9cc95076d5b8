/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"
#include "facts/must.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gpuloom/error.h>

int loom__stats_first(const double *x, size_t n, double *z)
{
	double *rest;
	if (n < 4 || !isfinite(x[0]))
		return LOOM_EINVAL;
	int rc = loom__stats_sorted(x + 1, n - 1, &rest);
	if (rc)
		return rc;
	double off = x[0] - loom__stats_quantile(rest, n - 1, 0.5);
	double unit = 1.4826 * loom__stats_mad(rest, n - 1);
	if (unit == 0 && x[0] >= rest[0] && x[0] <= rest[n - 2])
		off = 0;
	else if (unit == 0)
		unit = 1.2533 * loom__stats_mean_deviation(rest, n - 1);
	free(rest);
	*z = off == 0 ? 0 : unit > 0 ? off / unit : copysign(INFINITY, off);
	return 0;
}

static double variance_of(const double *x, size_t n, double mean)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += (x[i] - mean) * (x[i] - mean);
	return sum / (double)n;
}

int loom__stats_modes(const double *x, size_t n, struct loom__stats_modes *out)
{
	double *sorted, total = 0, left = 0, best = -1;
	int rc = loom__stats_sorted(x, n, &sorted);
	if (rc)
		return rc;
	size_t least = n / 10 > 3 ? n / 10 : 3;
	double origin = sorted[n / 2], low = 0, high = 0; /* differences from `origin` keep the sums precise */
	*out = (struct loom__stats_modes){.lower = n, .split = sorted[n - 1]};
	for (size_t i = 0; i < n; i++)
		total += sorted[i] - origin;
	for (size_t i = 1; i < n && n >= 2 * least; i++) {
		left += sorted[i - 1] - origin;
		if (i < least || n - i < least || sorted[i] == sorted[i - 1])
			continue;
		double a = left / (double)i, b = (total - left) / (double)(n - i);
		double between = (double)i * (double)(n - i) * (b - a) * (b - a);
		if (between > best) {
			best = between, low = a + origin, high = b + origin;
			out->lower = i, out->split = sorted[i - 1];
		}
	}
	if (best >= 0) {
		double within = variance_of(sorted, out->lower, low) +
				variance_of(sorted + out->lower, n - out->lower, high);
		out->d = within > 0 ? M_SQRT2 * (high - low) / sqrt(within) : INFINITY;
		out->two = n >= 10 && out->d > 4 + 30 / (double)n;
	}
	free(sorted);
	return 0;
}
