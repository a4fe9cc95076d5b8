/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"

#include <math.h>
#include <string.h>

double loom__stats_normal_p(double z)
{
	return erfc(fabs(z) * M_SQRT1_2);
}

double loom__stats_normal_z(double tail)
{
	double low = 0, high = 40;
	for (int i = 0; i < 80; i++) {
		double middle = (low + high) / 2;
		*(loom__stats_normal_p(middle) / 2 > tail ? &low : &high) = middle;
	}
	return (low + high) / 2;
}

double loom__stats_binomial(size_t n, size_t k, double q)
{
	int sign;
	double ways = lgamma_r((double)n + 1, &sign) - lgamma_r((double)k + 1, &sign) -
		      lgamma_r((double)(n - k) + 1, &sign);
	return exp(ways + (double)k * log(q) + (double)(n - k) * log1p(-q));
}

/* Half of the largest possible sum of doubled ranks. Counting stops there, because only the smaller tail is needed. */
enum { SIGNED_HALF = LOOM__STATS_SIGNED_MAX * (LOOM__STATS_SIGNED_MAX + 1) / 2 };

/* ways[s] is the number of sign assignments with rank sum s, for s <= most. Updates the array `ways` for one more
 * rank. */
static void add_rank(uint64_t *ways, unsigned most, unsigned rank)
{
	for (unsigned s = most; s >= rank; s--)
		ways[s] += ways[s - rank];
}

double loom__stats_signed_p(const unsigned *rank2, size_t n, unsigned w2)
{
	uint64_t ways[SIGNED_HALF + 1] = {1}, sum = 0;
	unsigned total = 0;
	for (size_t i = 0; i < n; i++)
		total += rank2[i];
	if (w2 > total / 2)
		w2 = total - w2;
	for (size_t i = 0; i < n; i++)
		add_rank(ways, w2, rank2[i]);
	for (unsigned s = 0; s <= w2; s++)
		sum += ways[s];
	return fmin(1, ldexp((double)sum, 1 - (int)n));
}

/* Computes ways[u] for u <= most. These numbers are the coefficients of the product of (1 - x^(m+i)) / (1 - x^i), i =
 * 1..n. Multiplying and dividing by (1 - x^k) need no second array, and all values stay integers. Returns the sum of
 * all coefficients. */
typedef __int128 wide;
enum { HALF = LOOM__STATS_RANKSUM_MAX * LOOM__STATS_RANKSUM_MAX / 2 };

static wide gaussian(size_t n, size_t m, size_t most, wide *ways)
{
	wide all = 1;
	memset(ways, 0, (most + 1) * sizeof(*ways));
	ways[0] = 1;
	for (size_t i = 1; i <= n; i++) {
		for (size_t u = most; u >= m + i; u--)
			ways[u] -= ways[u - m - i];
		for (size_t u = i; u <= most; u++)
			ways[u] += ways[u - i];
		all = all * (wide)(m + i) / (wide)i; /* binomial(m + i, i), so the division has no remainder */
	}
	return all;
}

double loom__stats_ranksum_p(size_t n, size_t m, size_t u)
{
	wide ways[HALF + 1], sum = 0;
	if (u > n * m / 2)
		u = n * m - u;
	wide all = gaussian(n, m, u, ways);
	for (size_t i = 0; i <= u; i++)
		sum += ways[i];
	return fmin(1, 2 * (double)sum / (double)all);
}

size_t loom__stats_ranksum_rank_of(size_t n, size_t m, double tail, double *below)
{
	wide ways[HALF + 1], sum = 0;
	size_t most = n * m / 2, k = 0;
	double all = (double)gaussian(n, m, most, ways);
	while (k <= most && (double)(sum + ways[k]) / all <= tail)
		sum += ways[k++];
	*below = (double)sum / all;
	return k;
}
