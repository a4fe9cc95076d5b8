/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gpuloom/error.h>

/* Merge sort that counts the pairs i < j with x[i] > x[j]. */
static double inversions(double *x, double *spare, size_t n)
{
	if (n < 2)
		return 0;
	size_t half = n / 2, i = 0, j = half, k = 0;
	double count = inversions(x, spare, half) + inversions(x + half, spare, n - half);
	while (i < half && j < n) {
		if (x[j] < x[i]) {
			count += (double)(half - i);
			spare[k++] = x[j++];
		} else {
			spare[k++] = x[i++];
		}
	}
	memcpy(spare + k, x + i, (half - i) * sizeof(*x));
	/* What is left of the right half is in place. */
	memcpy(x, spare, (k + half - i) * sizeof(*x));
	return count;
}

int loom__stats_trend(const double *x, size_t n, struct loom__stats_test *out)
{
	double *work = n ? calloc(2 * n, sizeof(*work)) : NULL;
	if (!work)
		return n ? LOOM_ENOMEM : LOOM_EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(x[i])) {
			free(work);
			return LOOM_EINVAL;
		}
		work[i] = x[i];
	}
	double falls = inversions(work, work + n, n), k = (double)n;
	double pairs = k * (k - 1) / 2, tied = 0, variance = k * (k - 1) * (2 * k + 5) / 18;
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && work[end] == work[i];)
			end++;
		double t = (double)(end - i);
		tied += t * (t - 1) / 2;
		variance -= t * (t - 1) * (2 * t + 5) / 18;
	}
	free(work);
	double s = pairs - tied - 2 * falls;
	*out = (struct loom__stats_test){.n = n, .p = 1};
	out->exact = tied == 0 && n <= LOOM__STATS_KENDALL_MAX;
	if (tied < pairs)
		out->stat = s / sqrt((pairs - tied) * pairs);
	if (out->exact)
		out->p = loom__stats_kendall_p(n, (size_t)falls);
	else if (s != 0)
		out->p = loom__stats_normal_p((fabs(s) - 1) / sqrt(variance));
	return 0;
}

int loom__stats_lag1(const double *x, size_t n, double *r)
{
	double mean = 0, own = 0, next = 0;
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(x[i]))
			return LOOM_EINVAL;
		mean += x[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		own += (x[i] - mean) * (x[i] - mean);
		if (i)
			next += (x[i - 1] - mean) * (x[i] - mean);
	}
	*r = own > 0 ? next / own : 0;
	return 0;
}

int loom__stats_first(const double *x, size_t n, double *z)
{
	double *rest;
	if (n < 4 || !isfinite(x[0]))
		return LOOM_EINVAL;
	int rc = loom__stats_sorted(x + 1, n - 1, &rest);
	if (rc)
		return rc;
	double off = x[0] - loom__stats_quantile(rest, n - 1, 0.5);
	double mad = loom__stats_mad(rest, n - 1);
	free(rest);
	*z = off == 0 ? 0 : mad > 0 ? off / (1.4826 * mad) : copysign(INFINITY, off);
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
	double origin = sorted[n / 2], low = 0, high = 0; /* sums about it lose no digits */
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
