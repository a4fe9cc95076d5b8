/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the statistics with tables from R (tests/tables/stats.h) and with brute force. test_compare.c tests the
 * rates of false and correct claims. */
#include "stats/stats.h"
#include "support.h"

#include <gpuloom/error.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables/stats.h"

/* Returns 1 if two numbers differ by at most one part in 10^9, or are the same infinity. Otherwise prints them. */
static int is_near(double got, double want, const char *what, size_t row)
{
	int same = got == want || fabs(got - want) <= 1e-9 * fmax(fabs(want), 1e-6);
	if (!same)
		printf("%s, row %zu: %.17g, want %.17g\n", what, row, got, want);
	return same;
}
#define NEAR(got, want, row) CU_ASSERT(is_near((got), (want), #got, (row)))

/* ---- against R --------------------------------------------------------------------------------*/

TEST(order_statistics)
{
	for (size_t i = 0; i < COUNT(order_rows); i++) {
		const double *x = order_x + order_rows[i].at;
		size_t n = order_rows[i].n;
		double *s;
		CU_ASSERT_FATAL(loom__stats_sorted(x, n, &s) == 0);
		NEAR(loom__stats_quantile(s, n, 0.25), order_rows[i].q25, i);
		NEAR(loom__stats_quantile(s, n, 0.5), order_rows[i].q50, i);
		NEAR(loom__stats_quantile(s, n, 0.9), order_rows[i].q90, i);
		NEAR(loom__stats_quantile(s, n, 0.99), order_rows[i].q99, i);
		NEAR(loom__stats_quantile(s, n, 0), s[0], i);
		NEAR(loom__stats_quantile(s, n, 1), s[n - 1], i);
		NEAR(loom__stats_mad(s, n), order_rows[i].mad, i);
		free(s);
	}
	const double far[] = {-40, 1, 2, 3, 4, 5, 6, 7, 90};
	CU_ASSERT_EQUAL(loom__stats_far_out(far, COUNT(far)), 2);
}

TEST(quantile_intervals)
{
	static double x[2000];
	for (size_t i = 0; i < COUNT(x); i++)
		x[i] = (double)(i + 1); /* the value equals its rank */
	for (size_t i = 0; i < COUNT(ci_rows); i++) {
		struct loom__stats_interval ci;
		size_t n = ci_rows[i].n, low = ci_rows[i].low, high = ci_rows[i].high;
		CU_ASSERT(loom__stats_quantile_ci(x, n, ci_rows[i].q, ci_rows[i].level, &ci) == 0);
		NEAR(ci.low, low ? (double)low : -INFINITY, i);
		NEAR(ci.high, high <= n ? (double)high : INFINITY, i);
		NEAR(ci.coverage, ci_rows[i].coverage, i);
		CU_ASSERT(ci.coverage >= ci_rows[i].level - 1e-9);
		CU_ASSERT_EQUAL(ci.open, (low ? 0u : LOOM__STATS_OPEN_LOW) | (high <= n ? 0u : LOOM__STATS_OPEN_HIGH));
	}
}

TEST(signed_rank)
{
	for (size_t i = 0; i < COUNT(signed_rows); i++) {
		struct loom__stats_test t;
		const double *d = signed_x + signed_rows[i].at;
		CU_ASSERT_FATAL(loom__stats_signed_rank(d, signed_rows[i].n, &t) == 0);
		NEAR(t.stat, signed_rows[i].w, i);
		NEAR(t.p, signed_rows[i].p, i);
		CU_ASSERT_EQUAL(t.exact, signed_rows[i].exact);
	}
	for (size_t i = 0; i < COUNT(psignrank_rows); i++) {
		unsigned rank2[60];
		for (unsigned k = 0; k < psignrank_rows[i].n; k++)
			rank2[k] = 2 * (k + 1);
		NEAR(loom__stats_signed_p(rank2, psignrank_rows[i].n, 2 * psignrank_rows[i].w), psignrank_rows[i].p, i);
	}
}

TEST(rank_sum)
{
	for (size_t i = 0; i < COUNT(ranksum_rows); i++) {
		struct loom__stats_test t;
		struct loom__stats_interval s;
		const double *a = ranksum_x + ranksum_rows[i].a, *b = ranksum_x + ranksum_rows[i].b;
		size_t n = ranksum_rows[i].n, m = ranksum_rows[i].m;
		double level = ranksum_rows[i].level;
		CU_ASSERT_FATAL(loom__stats_ranksum(a, n, b, m, &t) == 0);
		NEAR(t.stat, ranksum_rows[i].u, i);
		NEAR(t.p, ranksum_rows[i].p, i);
		CU_ASSERT_EQUAL(t.exact, ranksum_rows[i].exact);
		CU_ASSERT_FATAL(loom__stats_shift(a, n, b, m, level, &s) == 0);
		NEAR(s.at, ranksum_rows[i].shift, i);
		CU_ASSERT(s.low <= s.at && s.at <= s.high && s.coverage >= level - 1e-9);
		if (ranksum_rows[i].coverage > 0) {
			NEAR(s.low, ranksum_rows[i].low, i);
			NEAR(s.high, ranksum_rows[i].high, i);
			NEAR(s.coverage, ranksum_rows[i].coverage, i);
		}
	}
	for (size_t i = 0; i < COUNT(pwilcox_rows); i++)
		NEAR(loom__stats_ranksum_p(pwilcox_rows[i].n, pwilcox_rows[i].m, pwilcox_rows[i].u), pwilcox_rows[i].p,
		     i);
}

TEST(adjustment)
{
	for (size_t i = 0; i < COUNT(adjust_rows); i++) {
		size_t n = adjust_rows[i].n;
		const double *p = adjust_x + adjust_rows[i].at;
		double out[64];
		CU_ASSERT_FATAL(loom__stats_holm(p, n, out) == 0);
		for (size_t k = 0; k < n; k++)
			NEAR(out[k], p[n + k], i);
	}
}

/* ---- the smaller parts ------------------------------------------------------------------------*/

TEST(refusals)
{
	const double bad[] = {1, NAN, 3, 4}, good[] = {1, 2, 3, 4}, negative[] = {1, -2, 3, 4};
	struct loom__stats_test t;
	struct loom__stats_interval s;
	struct loom__stats_comparison c;
	struct loom__stats_modes modes;
	double x, out[4];
	CU_ASSERT_EQUAL(loom__stats_signed_rank(bad, 4, &t), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_signed_rank(good, 0, &t), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_ranksum(good, 4, bad, 4, &t), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_shift(good, 4, bad, 4, 0.95, &s), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_shift(good, 4, good, 4, 1, &s), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_shift(bad, 4, good, 4, 0.95, &s), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_quantile_ci(good, 4, 1, 0.95, &s), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_holm(negative, 4, out), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_compare(good, negative, 4, 0.95, &c), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_compare_unpaired(good, 4, negative, 4, 0.95, &c), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_first(bad, 4, &x), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_modes(bad, 4, &modes), LOOM_EINVAL);
}

static struct loom__stats_comparison interval(double low, double high)
{
	return (struct loom__stats_comparison){
	    .n = 20, .m = 20, .paired = 1, .ratio = {.at = sqrt(low * high), .low = low, .high = high}};
}

TEST(verdicts)
{
	static const struct {
		double low, high, p;
		enum loom__stats_better better;
		enum loom__stats_verdict verdict;
	} rows[] = {
	    {1.02, 1.05, 0.001, LOOM__STATS_MORE, LOOM__STATS_FASTER},
	    {1.02, 1.05, 0.001, LOOM__STATS_LESS, LOOM__STATS_SLOWER},
	    {0.95, 0.98, 0.001, LOOM__STATS_MORE, LOOM__STATS_SLOWER},
	    {0.95, 0.98, 0.001, LOOM__STATS_LESS, LOOM__STATS_FASTER},
	    {1.02, 1.05, 0.05, LOOM__STATS_MORE, LOOM__STATS_INCONCLUSIVE},
	    {1.005, 1.02, 0.001, LOOM__STATS_MORE, LOOM__STATS_TRIVIAL},
	    {0.981, 0.995, 0.001, LOOM__STATS_MORE, LOOM__STATS_TRIVIAL},
	    {0.811, 0.9943, 0.001, LOOM__STATS_LESS, LOOM__STATS_INCONCLUSIVE}, /* 18.9 % is not trivial */
	    {1.005, 1.05, 0.2, LOOM__STATS_MORE, LOOM__STATS_INCONCLUSIVE},
	    {0.995, 1.005, 0.7, LOOM__STATS_MORE, LOOM__STATS_EQUIVALENT},
	    {1.002, 1.008, 0.001, LOOM__STATS_MORE, LOOM__STATS_EQUIVALENT},
	    {0.95, 1.05, 0.6, LOOM__STATS_MORE, LOOM__STATS_INCONCLUSIVE},
	    {0, INFINITY, 0.03, LOOM__STATS_MORE, LOOM__STATS_INCONCLUSIVE},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct loom__stats_comparison c = interval(rows[i].low, rows[i].high);
		CU_ASSERT_EQUAL(loom__stats_judge(&c, rows[i].p, rows[i].better, 0.01, 0.05), rows[i].verdict);
	}
	CU_ASSERT_STRING_EQUAL(loom__stats_verdict_name(LOOM__STATS_TRIVIAL), "TRIVIAL");

	/* Five blocks give no interval. If their samples are identical, two more blocks are advised. */
	const double a[] = {7, 7, 7, 7, 7, 7}, b[] = {8, 9, 8, 9, 8, 9};
	struct loom__stats_comparison c;
	CU_ASSERT(loom__stats_compare(a, a, 5, 0.95, &c) == 0);
	CU_ASSERT_EQUAL(c.ratio.open, LOOM__STATS_OPEN_LOW | LOOM__STATS_OPEN_HIGH);
	CU_ASSERT(c.ratio.low == 0 && c.ratio.high == INFINITY && c.test.p == 1);
	CU_ASSERT_EQUAL(loom__stats_more_blocks(&c, 0.01, 0.05, 1), 2);
	CU_ASSERT(loom__stats_compare(a, a, 6, 0.95, &c) == 0);
	CU_ASSERT_EQUAL(loom__stats_judge(&c, c.test.p, LOOM__STATS_MORE, 0, 0.05), LOOM__STATS_EQUIVALENT);
	/* The comparison of A with B mirrors that of B with A. */
	struct loom__stats_comparison back;
	CU_ASSERT(loom__stats_compare(a, b, 6, 0.95, &c) == 0);
	CU_ASSERT(loom__stats_compare(b, a, 6, 0.95, &back) == 0);
	NEAR(c.ratio.at * back.ratio.at, 1, 0);
	NEAR(c.ratio.low * back.ratio.high, 1, 0);
	NEAR(c.test.p, 2.0 / 64, 0);
	CU_ASSERT(c.test.p == back.test.p);
	/* The ratio of an unpaired comparison is computed from the logarithms of the data. */
	CU_ASSERT(loom__stats_compare_unpaired(a, 6, b, 6, 0.95, &c) == 0);
	CU_ASSERT(!c.paired && loom__stats_more_blocks(&c, 0.01, 0.05, 1) == 0);
	NEAR(c.ratio.at, sqrt(8.0 / 7 * 9 / 7), 0);
}

TEST(generator_and_blocks)
{
	/* The expected values are the first outputs of splitmix64, published with the seeds 0 and 1234567. */
	struct loom__stats_rng zero = {0}, other = {1234567};
	CU_ASSERT_EQUAL(loom__stats_random(&zero), UINT64_C(0xe220a8397b1dcdaf));
	CU_ASSERT_EQUAL(loom__stats_random(&zero), UINT64_C(0x6e789e6aa1b965f4));
	CU_ASSERT_EQUAL(loom__stats_random(&other), UINT64_C(6457827717110365317));
	CU_ASSERT_EQUAL(loom__stats_random(&other), UINT64_C(3203168211198807973));

	/* All 6 orders of 3 variants occur about equally often. The test is chi-squared with 5 degrees of freedom. */
	unsigned slots[6], again[6], seen[27] = {0};
	for (uint64_t block = 0; block < 6000; block++) {
		size_t n = loom__stats_block_order(42, block, LOOM__STATS_RANDOM, 3, slots);
		CU_ASSERT_EQUAL(n, 3);
		seen[slots[0] * 9 + slots[1] * 3 + slots[2]]++;
		CU_ASSERT_EQUAL(loom__stats_block_order(42, block, LOOM__STATS_ABBA, 3, again), 6);
		CU_ASSERT(!memcmp(slots, again, 3 * sizeof(*slots)));
		CU_ASSERT(again[0] == again[5] && again[1] == again[4] && again[2] == again[3]);
	}
	double chi = 0;
	const int orders[] = {0 + 3 + 2, 0 + 6 + 1, 9 + 0 + 2, 9 + 6 + 0, 18 + 0 + 1, 18 + 3 + 0};
	for (size_t i = 0; i < COUNT(orders); i++)
		chi += pow(seen[orders[i]] - 1000.0, 2) / 1000;
	CU_ASSERT(chi < 20.5); /* the distribution exceeds 20.5 with a probability of 0.1 % */
	loom__stats_block_order(43, 0, LOOM__STATS_RANDOM, 3, slots);
	int differ = 0;
	for (uint64_t block = 0; block < 20; block++) {
		loom__stats_block_order(42, block, LOOM__STATS_RANDOM, 3, slots);
		loom__stats_block_order(43, block, LOOM__STATS_RANDOM, 3, again);
		differ |= !!memcmp(slots, again, 3 * sizeof(*slots));
	}
	CU_ASSERT(differ);
}

static double gauss(struct loom__stats_rng *rng)
{
	double radius = sqrt(-2 * log(1 - loom__stats_unit(rng)));
	return radius * cos(2 * M_PI * loom__stats_unit(rng));
}

TEST(first_and_modes)
{
	const double cold[] = {20, 10, 11, 10.5, 9.5, 10}, flat[] = {3, 2, 2, 2};
	double z;
	CU_ASSERT(loom__stats_first(cold, 6, &z) == 0 && z > LOOM__STATS_FIRST_UNUSUAL);
	CU_ASSERT(loom__stats_first(cold + 1, 5, &z) == 0 && fabs(z) < 1);
	CU_ASSERT(loom__stats_first(flat, 4, &z) == 0 && z == INFINITY);

	struct loom__stats_rng rng = {5};
	double one[200], two[200];
	for (size_t i = 0; i < 200; i++) {
		one[i] = 10 + gauss(&rng);
		two[i] = 10 + gauss(&rng) + (i % 4 ? 0 : 8);
	}
	struct loom__stats_modes m;
	CU_ASSERT(loom__stats_modes(one, 200, &m) == 0 && !m.two);
	CU_ASSERT(loom__stats_modes(two, 200, &m) == 0 && m.two && m.lower == 150);
	CU_ASSERT(m.split > 12 && m.split < 15);
	CU_ASSERT(loom__stats_modes(flat, 4, &m) == 0 && !m.two && m.lower == 4);
	const double grid[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2};
	CU_ASSERT(loom__stats_modes(grid, 12, &m) == 0 && m.two && m.d == INFINITY && m.lower == 6);
}

/* If half of the values are equal, the median of the deviations is 0, whatever the other values are. The scale must
 * then be found in another way. */
TEST(ticks_F21)
{
	double z, ticks[20], one[160];
	for (size_t i = 0; i < COUNT(ticks); i++)
		ticks[i] = i % 2 ? 1.1 : 1.0;
	CU_ASSERT(loom__stats_first(ticks, 20, &z) == 0 && fabs(z) < 1);
	const double counts[] = {6, 5, 5, 5, 5, 5, 6, 5, 5, 5, 4}, near[] = {1.15, 1, 1, 1, 1, 1, 1.1, 1.1, 1, 1, 1.1},
		     cold[] = {9, 5, 5, 5, 5, 5, 6, 5, 5, 5, 4}, flat[] = {2.5, 2, 2, 2};
	CU_ASSERT(loom__stats_first(counts, COUNT(counts), &z) == 0 && z == 0);
	CU_ASSERT(loom__stats_first(near, COUNT(near), &z) == 0 && fabs(z) < LOOM__STATS_FIRST_UNUSUAL);
	CU_ASSERT(loom__stats_first(cold, COUNT(cold), &z) == 0 && z > LOOM__STATS_FIRST_UNUSUAL);
	CU_ASSERT(loom__stats_first(flat, 4, &z) == 0 && z == INFINITY);
	/* If 36 of 160 values differ from the rest, they belong to the distribution. If only one differs, it is an
	 * outlier. */
	for (size_t i = 0; i < COUNT(one); i++)
		one[i] = i < 124 ? 1 : 1.1;
	CU_ASSERT_EQUAL(loom__stats_far_out(one, COUNT(one)), 0);
	for (size_t i = 0; i < COUNT(one); i++)
		one[i] = i < 159 ? 1 : 1.1;
	CU_ASSERT_EQUAL(loom__stats_far_out(one, COUNT(one)), 1);
}

static int beats(const struct loom__stats_point *j, const struct loom__stats_point *i)
{
	/* for x, more is better, and for y, less is better */
	return j->x_low >= i->x_high && j->y_high <= i->y_low && (j->x_low > i->x_high || j->y_high < i->y_low);
}

TEST(pareto)
{
	struct loom__stats_point points[40];
	unsigned char front[40];
	struct loom__stats_rng rng = {3};
	for (unsigned trial = 0; trial < 2000; trial++) {
		size_t n = 1 + trial % 40, on_front = 0;
		double width = trial % 3;
		for (size_t i = 0; i < n; i++) { /* the values are coarse, so that ties and equal points occur */
			struct loom__stats_point *p = &points[i];
			p->x_low = (double)loom__stats_below(&rng, 12);
			p->y_low = (double)loom__stats_below(&rng, 12);
			p->x_high = p->x_low + floor(width * loom__stats_unit(&rng) * 2);
			p->y_high = p->y_low + floor(width * loom__stats_unit(&rng) * 2);
			if (width > 1 && i % 9 == 8)
				p->x_low = -INFINITY, p->x_high = INFINITY;
		}
		CU_ASSERT_FATAL(loom__stats_pareto(points, n, LOOM__STATS_MORE, LOOM__STATS_LESS, front) == 0);
		for (size_t i = 0; i < n; i++) {
			int dominated = 0;
			for (size_t j = 0; j < n; j++)
				dominated |= beats(&points[j], &points[i]);
			CU_ASSERT_EQUAL_FATAL(front[i], !dominated);
			on_front += front[i];
		}
		CU_ASSERT(on_front >= 1);
	}
	points[0].x_low = points[0].x_high + 1;
	CU_ASSERT_EQUAL(loom__stats_pareto(points, 1, LOOM__STATS_MORE, LOOM__STATS_LESS, front), LOOM_EINVAL);
}

/* ---- the advised number of further blocks ---------------------------------------------------------------------*/

/* Simulates samples of A and B with 3 % of noise. The logarithm of B is larger by `effect`. */
static void simulate(struct loom__stats_rng *rng, double effect, size_t blocks, struct loom__stats_comparison *c)
{
	double a[400], b[400];
	for (size_t i = 0; i < blocks; i++) {
		a[i] = exp(0.03 * gauss(rng));
		b[i] = exp(0.03 * gauss(rng) + effect);
	}
	CU_ASSERT_FATAL(loom__stats_compare(a, b, blocks, 0.95, c) == 0);
}

/* Most undecided comparisons have a verdict after the advised number of further blocks. */
TEST(advice)
{
	struct loom__stats_rng rng = {8};
	struct loom__stats_comparison c;
	unsigned undecided = 0, decided = 0;
	for (int i = 0; i < 1000; i++) {
		simulate(&rng, log(1.03), 12, &c);
		if (loom__stats_judge(&c, c.test.p, LOOM__STATS_LESS, 0.01, 0.05))
			continue;
		size_t more = loom__stats_more_blocks(&c, 0.01, 0.05, 1);
		CU_ASSERT(more >= 3);
		if (more > 388)
			continue;
		undecided++;
		simulate(&rng, log(1.03), 12 + more, &c);
		decided += loom__stats_judge(&c, c.test.p, LOOM__STATS_LESS, 0.01, 0.05) != LOOM__STATS_INCONCLUSIVE;
	}
	printf("advice: %u of %u decided\n", decided, undecided);
	CU_ASSERT(undecided > 100 && decided > undecided * 6 / 10);
	simulate(&rng, 0, 200, &c);
	double found = loom__stats_detectable(&c, 0.05);
	CU_ASSERT(found > 0.007 && found < 0.014); /* theory gives 2.8 * 1.25 * 0.03 * sqrt(2 / 200) = 0.0105 */
}

TEST_MAIN("stats", 60)
