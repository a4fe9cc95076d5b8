/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"
#include "facts/must.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gpuloom/error.h>

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void loom__stats_sort(double *x, size_t n)
{
	if (n > 1)
		qsort(x, n, sizeof(*x), ascending);
}

int loom__stats_sorted(const double *x, size_t n, double **sorted)
{
	if (!n)
		return LOOM_EINVAL;
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return LOOM_EINVAL;
	double *copy = loom__must(calloc(n, sizeof(*copy)));
	if (!copy)
		return LOOM_ENOMEM;
	memcpy(copy, x, n * sizeof(*copy));
	loom__stats_sort(copy, n);
	*sorted = copy;
	return 0;
}

double loom__stats_quantile(const double *sorted, size_t n, double q)
{
	double h = (double)(n - 1) * q;
	size_t i = (size_t)h;
	if (i + 1 >= n)
		return sorted[n - 1];
	return sorted[i] + (h - (double)i) * (sorted[i + 1] - sorted[i]);
}

/* The deviations from the median form two ascending sequences: one of the values below the median, and one of the
 * values above it. The loop merges both sequences, from the middle outwards, and stops at the median deviation. */
double loom__stats_mad(const double *sorted, size_t n)
{
	double centre = loom__stats_quantile(sorted, n, 0.5), last = 0, before = 0;
	size_t below = n / 2, above = n / 2;
	for (size_t taken = 0; taken <= n / 2; taken++) {
		before = last;
		if (above == n || (below && centre - sorted[below - 1] < sorted[above] - centre))
			last = centre - sorted[--below];
		else
			last = sorted[above++] - centre;
	}
	return n % 2 ? last : (before + last) / 2;
}

double loom__stats_mean_deviation(const double *sorted, size_t n)
{
	double centre = loom__stats_quantile(sorted, n, 0.5), sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += fabs(sorted[i] - centre);
	return sum / (double)n;
}

size_t loom__stats_far_out(const double *sorted, size_t n)
{
	double q1 = loom__stats_quantile(sorted, n, 0.25);
	double q3 = loom__stats_quantile(sorted, n, 0.75);
	/* For normal data, the interquartile range is 1.349 standard deviations, and the standard deviation is 1.2533
	 * mean deviations. */
	double reach = 3 * (q3 > q1 ? q3 - q1 : 1.349 * 1.2533 * loom__stats_mean_deviation(sorted, n));
	size_t far = 0;
	for (size_t i = 0; i < n; i++)
		far += sorted[i] < q1 - reach || sorted[i] > q3 + reach;
	return far;
}

int loom__stats_quantile_ci(const double *sorted, size_t n, double q, double level, struct loom__stats_interval *out)
{
	if (!n || !(q > 0 && q < 1) || !(level > 0 && level < 1))
		return LOOM_EINVAL;
	/* The factor allows for rounding: a tail that equals the bound in exact arithmetic must count as within it. */
	double tail = (1 - level) / 2 * (1 + 1e-11), left = 0, right = 0, p;
	size_t low = 0, high = n + 1; /* ranks from 1 */
	while (low < n && left + (p = loom__stats_binomial(n, low, q)) <= tail)
		left += p, low++;
	while (high > 1 && right + (p = loom__stats_binomial(n, high - 1, q)) <= tail)
		right += p, high--;
	*out = (struct loom__stats_interval){
	    .at = loom__stats_quantile(sorted, n, q),
	    .low = low ? sorted[low - 1] : -INFINITY,
	    .high = high <= n ? sorted[high - 1] : INFINITY,
	    .coverage = 1 - left - right,
	    .open = (low ? 0 : LOOM__STATS_OPEN_LOW) | (high <= n ? 0 : LOOM__STATS_OPEN_HIGH),
	};
	return 0;
}
