/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"
#include "facts/must.h"

#include <math.h>
#include <stdlib.h>

#include <gpuloom/error.h>

struct item {
	double value;
	size_t rank2; /* twice the mid-rank, which is an integer */
	int chosen;   /* 1: the rank of this value is part of the rank sum */
};

static int by_value(const void *a, const void *b)
{
	double x = ((const struct item *)a)->value, y = ((const struct item *)b)->value;
	return (x > y) - (x < y);
}

/* Sorts the items and sets their ranks. Sets *sum2 to the sum of rank2 of the chosen items. Returns the tie correction:
 * the sum of t^3 - t over the groups of t equal values. */
static double rank_items(struct item *items, size_t n, size_t *sum2)
{
	double ties = 0;
	*sum2 = 0;
	qsort(items, n, sizeof(*items), by_value);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i + 1; end < n && items[end].value == items[i].value;)
			end++;
		double t = (double)(end - i);
		ties += t * (t * t - 1);
		for (size_t k = i; k < end; k++) {
			items[k].rank2 = i + end + 1;
			*sum2 += items[k].chosen ? items[k].rank2 : 0;
		}
	}
	return ties;
}

/* Returns the two-sided p of a statistic that deviates from its mean by `deviation`. The continuity correction is
 * 0.5. */
static double corrected_p(double deviation, double variance)
{
	if (!(variance > 0) || deviation == 0)
		return 1;
	return loom__stats_normal_p((fabs(deviation) - 0.5) / sqrt(variance));
}

int loom__stats_signed_rank(const double *d, size_t n, struct loom__stats_test *out)
{
	struct item *items = n ? loom__must(calloc(n, sizeof(*items))) : NULL;
	size_t used = 0, sum2;
	if (!items)
		return n ? LOOM_ENOMEM : LOOM_EINVAL;
	for (size_t i = 0; i < n; i++) {
		if (!isfinite(d[i])) {
			free(items);
			return LOOM_EINVAL;
		}
		if (d[i] != 0)
			items[used++] = (struct item){.value = fabs(d[i]), .chosen = d[i] > 0};
	}
	double ties = rank_items(items, used, &sum2), k = (double)used;
	*out = (struct loom__stats_test){.stat = (double)sum2 / 2, .n = used};
	out->exact = used <= LOOM__STATS_SIGNED_MAX;
	if (out->exact) {
		unsigned rank2[LOOM__STATS_SIGNED_MAX];
		for (size_t i = 0; i < used; i++)
			rank2[i] = (unsigned)items[i].rank2;
		out->p = loom__stats_signed_p(rank2, used, (unsigned)sum2);
	} else {
		out->p = corrected_p(out->stat - k * (k + 1) / 4, k * (k + 1) * (2 * k + 1) / 24 - ties / 48);
	}
	free(items);
	return 0;
}

int loom__stats_ranksum(const double *a, size_t n, const double *b, size_t m, struct loom__stats_test *out)
{
	if (!n || !m)
		return LOOM_EINVAL;
	struct item *items = loom__must(calloc(n + m, sizeof(*items)));
	size_t sum2;
	if (!items)
		return LOOM_ENOMEM;
	for (size_t i = 0; i < n + m; i++) {
		items[i] = (struct item){.value = i < n ? a[i] : b[i - n], .chosen = i >= n};
		if (!isfinite(items[i].value)) {
			free(items);
			return LOOM_EINVAL;
		}
	}
	double ties = rank_items(items, n + m, &sum2);
	free(items);
	double nm = (double)n * (double)m, all = (double)(n + m);
	double u = (double)(sum2 - m * (m + 1)) / 2;
	*out = (struct loom__stats_test){.stat = u, .n = n + m};
	out->exact = ties == 0 && n <= LOOM__STATS_RANKSUM_MAX && m <= LOOM__STATS_RANKSUM_MAX;
	if (out->exact)
		out->p = loom__stats_ranksum_p(n, m, (size_t)u);
	else
		out->p = corrected_p(u - nm / 2, nm / 12 * (all + 1 - ties / (all * (all - 1))));
	return 0;
}
