/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the k-th smallest of all pairwise sums of two sorted arrays by bisection over the representable doubles. At
 * most 64 steps give the exact result. Each step counts sums in linear time, without a table of them. */
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gpuloom/error.h>

struct sums {
	const double *a, *b; /* both sorted in ascending order */
	size_t n, m;
};

/* Maps a double to an integer that sorts in the same order. from_key() is the inverse. */
static uint64_t to_key(double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof(bits));
	return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

static double from_key(uint64_t key)
{
	uint64_t bits = key >> 63 ? key & ~(UINT64_C(1) << 63) : ~key;
	double v;
	memcpy(&v, &bits, sizeof(v));
	return v;
}

static size_t count_to(const struct sums *s, double v)
{
	size_t count = 0;
	for (size_t i = 0, j = s->m; i < s->n; i++) {
		while (j && s->a[i] + s->b[j - 1] > v)
			j--;
		count += j;
	}
	return count;
}

/* Returns the k-th smallest sum; k = 1 is the smallest. */
static double kth(const struct sums *s, size_t k)
{
	uint64_t low = to_key(s->a[0] + s->b[0]), high = to_key(s->a[s->n - 1] + s->b[s->m - 1]);
	while (low < high) {
		uint64_t middle = low + (high - low) / 2;
		if (count_to(s, from_key(middle)) >= k)
			high = middle;
		else
			low = middle + 1;
	}
	return from_key(low) + 0.0; /* adding 0.0 turns a negative zero into zero */
}

static double median_sum(const struct sums *s, size_t count)
{
	double upper = kth(s, count / 2 + 1);
	return count % 2 ? upper : (kth(s, count / 2) + upper) / 2;
}

/* Fills in the median of all sums, and as ends of the interval the k-th smallest and the k-th largest sum. If k is 0,
 * both ends are open. `below` is the probability of each tail. */
static void fill(const struct sums *s, size_t count, size_t k, double below, struct loom__stats_interval *out)
{
	*out = (struct loom__stats_interval){
	    .at = median_sum(s, count),
	    .low = k ? kth(s, k) : -INFINITY,
	    .high = k ? kth(s, count + 1 - k) : INFINITY,
	    .coverage = 1 - 2 * below,
	    .open = k ? 0 : LOOM__STATS_OPEN_LOW | LOOM__STATS_OPEN_HIGH,
	};
}

/* Returns the rank k of the lower end by normal approximation, for a statistic with this mean and variance. */
static size_t normal_rank(double mean, double variance, double tail, double *below)
{
	double half = loom__stats_normal_z(tail) * sqrt(variance);
	*below = half < mean ? tail : 0;
	return half < mean ? (size_t)(mean - half) : 0;
}

/* Returns the probability of each tail. The factor allows for rounding: a tail that equals the bound in exact
 * arithmetic must count as within it. */
static double tail_of(double level)
{
	return (1 - level) / 2 * (1 + 1e-11);
}

int loom__stats_shift(const double *a, size_t n, const double *b, size_t m, double level,
		      struct loom__stats_interval *out)
{
	double *minus, *plus, below, nm = (double)n * (double)m;
	if (!(level > 0 && level < 1))
		return LOOM_EINVAL;
	int rc = loom__stats_sorted(a, n, &minus);
	if (rc)
		return rc;
	rc = loom__stats_sorted(b, m, &plus);
	if (rc) {
		free(minus);
		return rc;
	}
	for (size_t i = 0; i < n; i++)
		minus[i] = -minus[i];
	loom__stats_sort(minus, n);
	size_t k = n <= LOOM__STATS_RANKSUM_MAX && m <= LOOM__STATS_RANKSUM_MAX
		       ? loom__stats_ranksum_rank_of(n, m, tail_of(level), &below)
		       : normal_rank(nm / 2, nm * (double)(n + m + 1) / 12, tail_of(level), &below);
	fill(&(struct sums){plus, minus, m, n}, n * m, k, below, out);
	free(minus);
	free(plus);
	return 0;
}
