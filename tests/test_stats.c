/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics against tables from R (tests/tables/make_stats.R), against brute force, and in
 * simulation: how often equal variants are told apart, and how often different ones are. */
#include "stats/stats.h"
#include "support.h"

#include <gpuloom/error.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tables/stats_adjust.h"
#include "tables/stats_boot.h"
#include "tables/stats_order.h"
#include "tables/stats_quantile_ci.h"
#include "tables/stats_ranksum.h"
#include "tables/stats_signed.h"
#include "tables/stats_trend.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* Equal to a part in 10^9, infinities included; says what differs. */
static int near(double got, double want, const char *what, size_t row)
{
	int same = got == want || fabs(got - want) <= 1e-9 * fmax(fabs(want), 1e-6);
	if (!same)
		printf("%s, row %zu: %.17g, want %.17g\n", what, row, got, want);
	return same;
}
#define NEAR(got, want, row) CU_ASSERT(near((got), (want), #got, (row)))

/* ---- against R --------------------------------------------------------------------------------*/

static void order_statistics(void)
{
	for (size_t i = 0; i < COUNT(order_rows); i++) {
		const double *x = order_x + order_rows[i].at;
		size_t n = order_rows[i].n;
		double *s, r;
		CU_ASSERT_FATAL(loom__stats_sorted(x, n, &s) == 0);
		NEAR(loom__stats_quantile(s, n, 0.25), order_rows[i].q25, i);
		NEAR(loom__stats_quantile(s, n, 0.5), order_rows[i].q50, i);
		NEAR(loom__stats_quantile(s, n, 0.9), order_rows[i].q90, i);
		NEAR(loom__stats_quantile(s, n, 0.99), order_rows[i].q99, i);
		NEAR(loom__stats_quantile(s, n, 0), s[0], i);
		NEAR(loom__stats_quantile(s, n, 1), s[n - 1], i);
		NEAR(loom__stats_mad(s, n), order_rows[i].mad, i);
		CU_ASSERT(loom__stats_lag1(x, n, &r) == 0);
		NEAR(r, order_rows[i].lag1, i);
		free(s);
	}
	const double far[] = {-40, 1, 2, 3, 4, 5, 6, 7, 90};
	CU_ASSERT_EQUAL(loom__stats_far_out(far, COUNT(far)), 2);
}

static void quantile_intervals(void)
{
	static double x[2000];
	for (size_t i = 0; i < COUNT(x); i++)
		x[i] = (double)(i + 1); /* the value is its own rank */
	for (size_t i = 0; i < COUNT(ci_rows); i++) {
		struct loom__stats_interval ci;
		size_t n = ci_rows[i].n, low = ci_rows[i].low, high = ci_rows[i].high;
		CU_ASSERT(loom__stats_quantile_ci(x, n, ci_rows[i].q, ci_rows[i].level, &ci) == 0);
		NEAR(ci.low, low ? (double)low : -INFINITY, i);
		NEAR(ci.high, high <= n ? (double)high : INFINITY, i);
		NEAR(ci.coverage, ci_rows[i].coverage, i);
		CU_ASSERT(ci.coverage >= ci_rows[i].level - 1e-9);
		CU_ASSERT_EQUAL(ci.open, (low ? 0u : LOOM__STATS_OPEN_LOW) |
						 (high <= n ? 0u : LOOM__STATS_OPEN_HIGH));
	}
}

static void signed_rank(void)
{
	for (size_t i = 0; i < COUNT(signed_rows); i++) {
		struct loom__stats_test t;
		struct loom__stats_interval s;
		const double *d = signed_x + signed_rows[i].at;
		CU_ASSERT_FATAL(loom__stats_signed_rank(d, signed_rows[i].n, &t) == 0);
		NEAR(t.stat, signed_rows[i].w, i);
		NEAR(t.p, signed_rows[i].p, i);
		CU_ASSERT_EQUAL(t.exact, signed_rows[i].exact);
		CU_ASSERT_FATAL(loom__stats_shift_paired(d, signed_rows[i].n, 0.95, &s) == 0);
		NEAR(s.at, signed_rows[i].shift, i);
		CU_ASSERT(s.low <= s.at && s.at <= s.high && s.coverage >= 0.95 - 1e-9);
		if (signed_rows[i].coverage > 0) {
			NEAR(s.low, signed_rows[i].low, i);
			NEAR(s.high, signed_rows[i].high, i);
			NEAR(s.coverage, signed_rows[i].coverage, i);
		}
	}
	for (size_t i = 0; i < COUNT(psignrank_rows); i++) {
		unsigned rank2[60];
		for (unsigned k = 0; k < psignrank_rows[i].n; k++)
			rank2[k] = 2 * (k + 1);
		NEAR(loom__stats_signed_p(rank2, psignrank_rows[i].n, 2 * psignrank_rows[i].w),
		     psignrank_rows[i].p, i);
	}
}

static void rank_sum(void)
{
	for (size_t i = 0; i < COUNT(ranksum_rows); i++) {
		struct loom__stats_test t;
		struct loom__stats_interval s;
		const double *a = ranksum_x + ranksum_rows[i].a, *b = ranksum_x + ranksum_rows[i].b;
		size_t n = ranksum_rows[i].n, m = ranksum_rows[i].m;
		double cliff, level = ranksum_rows[i].level;
		CU_ASSERT_FATAL(loom__stats_ranksum(a, n, b, m, &t, &cliff) == 0);
		NEAR(t.stat, ranksum_rows[i].u, i);
		NEAR(t.p, ranksum_rows[i].p, i);
		NEAR(cliff, ranksum_rows[i].cliff, i);
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
		NEAR(loom__stats_ranksum_p(pwilcox_rows[i].n, pwilcox_rows[i].m, pwilcox_rows[i].u),
		     pwilcox_rows[i].p, i);
}

static void adjustment(void)
{
	for (size_t i = 0; i < COUNT(adjust_rows); i++) {
		size_t n = adjust_rows[i].n;
		const double *p = adjust_x + adjust_rows[i].at;
		double out[64];
		CU_ASSERT_FATAL(loom__stats_holm(p, n, out) == 0);
		for (size_t k = 0; k < n; k++)
			NEAR(out[k], p[n + k], i);
		memcpy(out, p, n * sizeof(*p));
		CU_ASSERT_FATAL(loom__stats_bh(out, n, out) == 0);
		for (size_t k = 0; k < n; k++)
			NEAR(out[k], p[2 * n + k], i);
	}
}

static void trend(void)
{
	for (size_t i = 0; i < COUNT(trend_rows); i++) {
		struct loom__stats_test t;
		const double *x = trend_x + trend_rows[i].at;
		CU_ASSERT_FATAL(loom__stats_trend(x, trend_rows[i].n, &t) == 0);
		NEAR(t.stat, trend_rows[i].tau, i);
		NEAR(t.p, trend_rows[i].p, i);
		CU_ASSERT_EQUAL(t.exact, trend_rows[i].exact);
	}
	const double flat[] = {2, 2, 2, 2};
	struct loom__stats_test t;
	CU_ASSERT(loom__stats_trend(flat, 4, &t) == 0 && t.p == 1 && t.stat == 0);
}

/* ---- the smaller parts ------------------------------------------------------------------------*/

static void refusals(void)
{
	const double bad[] = {1, NAN, 3, 4}, good[] = {1, 2, 3, 4}, negative[] = {1, -2, 3, 4};
	struct loom__stats_test t;
	struct loom__stats_interval s;
	struct loom__stats_comparison c;
	struct loom__stats_modes modes;
	double x, out[4];
	CU_ASSERT_EQUAL(loom__stats_signed_rank(bad, 4, &t), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_signed_rank(good, 0, &t), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_ranksum(good, 4, bad, 4, &t, NULL), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_trend(bad, 4, &t), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_shift(good, 4, bad, 4, 0.95, &s), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_shift(good, 4, good, 4, 1, &s), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_shift_paired(bad, 4, 0.95, &s), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_quantile_ci(good, 4, 1, 0.95, &s), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_holm(negative, 4, out), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_compare(good, negative, 4, 0.95, &c), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_compare_unpaired(good, 4, negative, 4, 0.95, &c), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_lag1(bad, 4, &x), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_first(bad, 4, &x), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_modes(bad, 4, &modes), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_boot_quantile(good, 4, 0.5, 99, 0.95, 1, &s), LOOM_EINVAL);
	int rc = loom__stats_boot_throughput(good, good, good, negative, 4, 200, 0.95, 1, &s);
	CU_ASSERT_EQUAL(rc, LOOM_EINVAL);
}

static struct loom__stats_comparison interval(double low, double high)
{
	return (struct loom__stats_comparison){.n = 20, .m = 20, .paired = 1,
					       .ratio = {.at = sqrt(low * high), .low = low,
							 .high = high}};
}

static void verdicts(void)
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
		{1.005, 1.05, 0.001, LOOM__STATS_MORE, LOOM__STATS_TRIVIAL},
		{0.96, 0.995, 0.001, LOOM__STATS_MORE, LOOM__STATS_TRIVIAL},
		{1.005, 1.05, 0.2, LOOM__STATS_MORE, LOOM__STATS_INCONCLUSIVE},
		{0.995, 1.005, 0.7, LOOM__STATS_MORE, LOOM__STATS_EQUIVALENT},
		{1.002, 1.008, 0.001, LOOM__STATS_MORE, LOOM__STATS_EQUIVALENT},
		{0.95, 1.05, 0.6, LOOM__STATS_MORE, LOOM__STATS_INCONCLUSIVE},
		{0, INFINITY, 0.03, LOOM__STATS_MORE, LOOM__STATS_INCONCLUSIVE},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct loom__stats_comparison c = interval(rows[i].low, rows[i].high);
		CU_ASSERT_EQUAL(loom__stats_judge(&c, rows[i].p, rows[i].better, 0.01, 0.05),
				rows[i].verdict);
	}
	CU_ASSERT_STRING_EQUAL(loom__stats_verdict_name(LOOM__STATS_TRIVIAL), "TRIVIAL");

	/* Five blocks cannot have an interval; identical ones need the sixth, and one more. */
	const double a[] = {7, 7, 7, 7, 7, 7}, b[] = {8, 9, 8, 9, 8, 9};
	struct loom__stats_comparison c;
	CU_ASSERT(loom__stats_compare(a, a, 5, 0.95, &c) == 0);
	CU_ASSERT_EQUAL(c.ratio.open, LOOM__STATS_OPEN_LOW | LOOM__STATS_OPEN_HIGH);
	CU_ASSERT(c.ratio.low == 0 && c.ratio.high == INFINITY && c.test.p == 1);
	CU_ASSERT_EQUAL(loom__stats_more_blocks(&c, 0.01, 0.05, 1), 2);
	CU_ASSERT(loom__stats_compare(a, a, 6, 0.95, &c) == 0);
	CU_ASSERT_EQUAL(loom__stats_judge(&c, c.test.p, LOOM__STATS_MORE, 0, 0.05),
			LOOM__STATS_EQUIVALENT);
	/* A against B mirrors B against A. */
	struct loom__stats_comparison back;
	CU_ASSERT(loom__stats_compare(a, b, 6, 0.95, &c) == 0);
	CU_ASSERT(loom__stats_compare(b, a, 6, 0.95, &back) == 0);
	NEAR(c.ratio.at * back.ratio.at, 1, 0);
	NEAR(c.ratio.low * back.ratio.high, 1, 0);
	NEAR(c.shift.at * back.shift.at, 1, 0);
	NEAR(c.shift.low * back.shift.high, 1, 0);
	NEAR(c.test.p, 2.0 / 64, 0);
	CU_ASSERT(c.cliff == 1 && back.cliff == -1 && c.test.p == back.test.p);
	/* Unpaired, the logs of the same data. */
	CU_ASSERT(loom__stats_compare_unpaired(a, 6, b, 6, 0.95, &c) == 0);
	CU_ASSERT(!c.paired && c.cliff == 1 && loom__stats_more_blocks(&c, 0.01, 0.05, 1) == 0);
	NEAR(c.ratio.at, sqrt(8.0 / 7 * 9 / 7), 0);
}

static void generator_and_blocks(void)
{
	/* The first outputs of splitmix64, published with the seeds 0 and 1234567. */
	struct loom__stats_rng zero = {0}, other = {1234567};
	CU_ASSERT_EQUAL(loom__stats_random(&zero), UINT64_C(0xe220a8397b1dcdaf));
	CU_ASSERT_EQUAL(loom__stats_random(&zero), UINT64_C(0x6e789e6aa1b965f4));
	CU_ASSERT_EQUAL(loom__stats_random(&other), UINT64_C(6457827717110365317));
	CU_ASSERT_EQUAL(loom__stats_random(&other), UINT64_C(3203168211198807973));

	/* All 6 orders of 3 variants about equally often: chi-squared with 5 degrees of freedom. */
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
	CU_ASSERT(chi < 20.5); /* 0.1 % */
	loom__stats_block_order(43, 0, LOOM__STATS_RANDOM, 3, slots);
	int differ = 0;
	for (uint64_t block = 0; block < 20; block++) {
		loom__stats_block_order(42, block, LOOM__STATS_RANDOM, 3, slots);
		loom__stats_block_order(43, block, LOOM__STATS_RANDOM, 3, again);
		differ |= !!memcmp(slots, again, 3 * sizeof(*slots));
	}
	CU_ASSERT(differ);

	const double value[] = {2, 3, 12, 8};
	const unsigned abba[] = {0, 1, 1, 0};
	double mean[3];
	CU_ASSERT(loom__stats_fold(value, abba, 4, 2, mean) == 0);
	NEAR(mean[0], 4, 0);
	NEAR(mean[1], 6, 0);
	CU_ASSERT_EQUAL(loom__stats_fold(value, abba, 4, 3, mean), LOOM_EINVAL);
	CU_ASSERT_EQUAL(loom__stats_fold(value, abba, 4, 1, mean), LOOM_EINVAL);
}

static double gauss(struct loom__stats_rng *rng)
{
	double radius = sqrt(-2 * log(1 - loom__stats_unit(rng)));
	return radius * cos(2 * M_PI * loom__stats_unit(rng));
}

static void first_and_modes(void)
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

static void bootstrap(void)
{
	double x[201];
	struct loom__stats_interval a, b;
	for (size_t i = 0; i < 201; i++)
		x[i] = (double)(i + 1);
	for (size_t i = 0; i < COUNT(boot_rows); i++) {
		size_t n = boot_rows[i].n, k = boot_rows[i].k;
		double q = (double)(k - 1) / (double)(n - 1);
		CU_ASSERT(loom__stats_boot_quantile(x, n, q, 20000, 0.95, 9, &a) == 0);
		NEAR(a.at, (double)k, i);
		CU_ASSERT(fabs(a.low - boot_rows[i].low) <= 1); /* chance moves it by one rank */
		CU_ASSERT(fabs(a.high - boot_rows[i].high) <= 1);
	}
	CU_ASSERT(loom__stats_boot_quantile(x, 201, 0.9913, 500, 0.9, 1, &a) == 0);
	CU_ASSERT(loom__stats_boot_quantile(x, 201, 0.9913, 500, 0.9, 1, &b) == 0);
	CU_ASSERT(!memcmp(&a, &b, sizeof(a))); /* the same seed */
	NEAR(a.at, 1 + 200 * 0.9913, 0);
	CU_ASSERT(loom__stats_boot_quantile(x, 201, 0.9913, 500, 0.9, 2, &b) == 0);
	CU_ASSERT(a.low != b.low);

	/* B does 30 % more work per time, with noise in the times. */
	double work_a[40], time_a[40], work_b[40], time_b[40];
	struct loom__stats_rng rng = {11};
	for (size_t i = 0; i < 40; i++) {
		work_a[i] = work_b[i] = 100 + (double)(i % 7);
		time_a[i] = work_a[i] * exp(0.05 * gauss(&rng));
		time_b[i] = work_b[i] / 1.3 * exp(0.05 * gauss(&rng));
	}
	CU_ASSERT(loom__stats_boot_throughput(work_a, time_a, work_b, time_b, 40, 2000, 0.95, 1,
					      &a) == 0);
	CU_ASSERT(a.low < a.at && a.at < a.high && a.low > 1.25 && a.high < 1.35);
	CU_ASSERT(a.high - a.low > 0.03 && a.low < 1.3 && a.high > 1.3);
}

static int beats(const struct loom__stats_point *j, const struct loom__stats_point *i)
{
	/* x: more is better, y: less */
	return j->x_low >= i->x_high && j->y_high <= i->y_low &&
	       (j->x_low > i->x_high || j->y_high < i->y_low);
}

static void pareto(void)
{
	struct loom__stats_point points[40];
	unsigned char front[40];
	struct loom__stats_rng rng = {3};
	for (unsigned trial = 0; trial < 2000; trial++) {
		size_t n = 1 + trial % 40, on_front = 0;
		double width = trial % 3;
		for (size_t i = 0; i < n; i++) { /* coarse, so that ties and equal points occur */
			struct loom__stats_point *p = &points[i];
			p->x_low = (double)loom__stats_below(&rng, 12);
			p->y_low = (double)loom__stats_below(&rng, 12);
			p->x_high = p->x_low + floor(width * loom__stats_unit(&rng) * 2);
			p->y_high = p->y_low + floor(width * loom__stats_unit(&rng) * 2);
			if (width > 1 && i % 9 == 8)
				p->x_low = -INFINITY, p->x_high = INFINITY;
		}
		CU_ASSERT_FATAL(loom__stats_pareto(points, n, LOOM__STATS_MORE, LOOM__STATS_LESS,
						   front) == 0);
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
	CU_ASSERT_EQUAL(loom__stats_pareto(points, 1, LOOM__STATS_MORE, LOOM__STATS_LESS, front),
			LOOM_EINVAL);
}

/* ---- simulated machines -----------------------------------------------------------------------*/

enum kind { IID, AR1, WALK, BURSTS, KINDS };
static const char *const kind_names[] = {"iid", "AR(1) 0.8", "random walk", "bursts"};

struct machine {
	struct loom__stats_rng rng;
	enum kind kind;
	double sigma, state;
};

/* The log of the next sample of a variant whose true value is 1. */
static double next(struct machine *m)
{
	double own = m->sigma * gauss(&m->rng);
	switch (m->kind) {
	case AR1: /* standard deviation sigma in the long run */
		m->state = 0.8 * m->state + 0.6 * own;
		return m->state;
	case WALK: /* drifts about 3 sigma over 80 samples, on top of iid noise */
		m->state += 0.3 * m->sigma * gauss(&m->rng);
		return m->state + own;
	case BURSTS: /* a neighbour that takes 15 % away for some 10 samples at a time */
		if (loom__stats_unit(&m->rng) < (m->state > 0 ? 0.1 : 0.03))
			m->state = 0.15 - m->state;
		return m->state + own;
	default:
		return own;
	}
}

enum { BLOCKS = 20, TRIALS = 2000 };

/* One comparison of A with a B whose log is larger by `effect`; a block is `times` the order. */
static void simulate(struct machine *m, enum loom__stats_order order, size_t times, double effect,
		     size_t blocks, struct loom__stats_comparison *c)
{
	double a[400], b[400], value[8], mean[2];
	unsigned slots[8];
	uint64_t seed = loom__stats_random(&m->rng);
	m->state = 0;
	for (size_t i = 0; i < blocks; i++) {
		size_t one = loom__stats_block_order(seed, i, order, 2, slots), n = one * times;
		for (size_t k = one; k < n; k++)
			slots[k] = slots[k - one];
		for (size_t k = 0; k < n; k++)
			value[k] = exp(next(m) + (slots[k] ? effect : 0));
		CU_ASSERT_FATAL(loom__stats_fold(value, slots, n, 2, mean) == 0);
		a[i] = mean[0], b[i] = mean[1];
	}
	CU_ASSERT_FATAL(loom__stats_compare(a, b, blocks, 0.95, c) == 0);
}

struct rates {
	double claim;   /* SLOWER, which a positive effect is; without an effect also FASTER */
	double found;   /* those or TRIVIAL */
	double covered; /* the interval contains the truth */
};

static struct rates rates(enum kind kind, double sigma, enum loom__stats_order order, size_t times,
			  double effect, double margin)
{
	struct machine m = {.rng = {2026 + kind}, .kind = kind, .sigma = sigma};
	struct rates r = {0, 0, 0};
	for (int i = 0; i < TRIALS; i++) {
		struct loom__stats_comparison c;
		simulate(&m, order, times, effect, BLOCKS, &c);
		enum loom__stats_verdict v =
			loom__stats_judge(&c, c.test.p, LOOM__STATS_LESS, margin, 0.05);
		int claim = v == LOOM__STATS_SLOWER || (!effect && v == LOOM__STATS_FASTER);
		r.claim += claim;
		r.found += claim || v == LOOM__STATS_TRIVIAL;
		r.covered += log(c.ratio.low) <= effect && effect <= log(c.ratio.high);
	}
	r.claim /= TRIALS, r.found /= TRIALS, r.covered /= TRIALS;
	printf("%-11s sigma %.0f %%, %s x %zu, B %+.0f %%, margin %.0f %%: "
	       "%.1f %% claimed, %.1f %% found, %.1f %% covered\n",
	       kind_names[kind], 100 * sigma, order == LOOM__STATS_ABBA ? "ABBA" : "random", times,
	       100 * effect, 100 * margin, 100 * r.claim, 100 * r.found, 100 * r.covered);
	return r;
}

/* Equal variants: at most 5 % of comparisons may end in a claim, whatever the noise. */
static void false_alarms(void)
{
	for (int kind = 0; kind < KINDS; kind++)
		for (int order = 0; order < 2; order++) {
			struct rates any = rates(kind, 0.02, order, 1, 0, 0);
			CU_ASSERT(any.claim <= 0.05);
			CU_ASSERT(any.covered >= 0.94); /* 95.9 %, less three standard errors */
			CU_ASSERT(rates(kind, 0.02, order, 1, 0, 0.01).claim <= 0.05);
		}
	/* The rule must bite: without interleaving the same noise alarms often. */
	struct machine m = {.rng = {1}, .kind = WALK, .sigma = 0.02};
	unsigned claims = 0;
	for (int i = 0; i < 500; i++) {
		struct loom__stats_comparison c;
		double x[2 * BLOCKS];
		m.state = 0;
		for (int k = 0; k < 2 * BLOCKS; k++)
			x[k] = exp(next(&m));
		CU_ASSERT_FATAL(loom__stats_compare(x, x + BLOCKS, BLOCKS, 0.95, &c) == 0);
		claims += loom__stats_judge(&c, c.test.p, LOOM__STATS_LESS, 0, 0.05) !=
			  LOOM__STATS_INCONCLUSIVE;
	}
	CU_ASSERT(claims > 125);
}

/* Ten equal metrics at once: at most 5 % of families contain a claim after Holm. */
static void family_alarms(void)
{
	struct machine m = {.rng = {77}, .kind = AR1, .sigma = 0.02};
	unsigned alarms = 0, naive = 0;
	for (int i = 0; i < 600; i++) {
		struct loom__stats_comparison c[10];
		double p[10];
		int claim = 0, single = 0;
		for (int k = 0; k < 10; k++) {
			simulate(&m, LOOM__STATS_ABBA, 1, 0, BLOCKS, &c[k]);
			p[k] = c[k].test.p;
			single |= p[k] < 0.05;
		}
		CU_ASSERT_FATAL(loom__stats_holm(p, 10, p) == 0);
		for (int k = 0; k < 10; k++)
			claim |= loom__stats_judge(&c[k], p[k], LOOM__STATS_MORE, 0, 0.05) !=
				 LOOM__STATS_INCONCLUSIVE;
		alarms += claim;
		naive += single;
	}
	CU_ASSERT(alarms <= 30);
	CU_ASSERT(naive > 120);
}

/* A planted 3 % with 20 blocks and a margin of 1 %: claimed at 2 % noise with ABBA blocks, and
 * at 3 % with two ABBA in a block; at 3 % with one it is at least seen to be there. Bursts add a
 * standard deviation of 6 % of their own, and are held to less. */
static void power(void)
{
	double effect = log(1.03);
	for (int kind = 0; kind < KINDS; kind++) {
		struct rates two = rates(kind, 0.02, LOOM__STATS_ABBA, 1, effect, 0.01);
		struct rates three = rates(kind, 0.03, LOOM__STATS_ABBA, 1, effect, 0.01);
		struct rates twice = rates(kind, 0.03, LOOM__STATS_ABBA, 2, effect, 0.01);
		CU_ASSERT(two.claim >= 0.8 && two.covered >= 0.94);
		CU_ASSERT(three.found >= 0.8 && three.covered >= 0.94);
		CU_ASSERT((kind == BURSTS ? twice.found : twice.claim) >= 0.8);
		CU_ASSERT(twice.covered >= 0.94);
	}
}

/* Following the advice decides most of the undecided comparisons. */
static void advice(void)
{
	struct machine m = {.rng = {8}, .kind = IID, .sigma = 0.03};
	unsigned undecided = 0, decided = 0;
	for (int i = 0; i < 1000; i++) {
		struct loom__stats_comparison c;
		simulate(&m, LOOM__STATS_RANDOM, 1, log(1.03), 12, &c);
		if (loom__stats_judge(&c, c.test.p, LOOM__STATS_LESS, 0.01, 0.05))
			continue;
		size_t more = loom__stats_more_blocks(&c, 0.01, 0.05, 1);
		CU_ASSERT(more >= 3);
		if (more > 388)
			continue;
		undecided++;
		simulate(&m, LOOM__STATS_RANDOM, 1, log(1.03), 12 + more, &c);
		decided += loom__stats_judge(&c, c.test.p, LOOM__STATS_LESS, 0.01, 0.05) !=
			   LOOM__STATS_INCONCLUSIVE;
	}
	printf("advice: %u of %u decided\n", decided, undecided);
	CU_ASSERT(undecided > 100 && decided > undecided * 6 / 10);
	struct loom__stats_comparison c;
	simulate(&m, LOOM__STATS_ABBA, 1, 0, 200, &c);
	double floor3 = loom__stats_detectable(&c, 0.05);
	CU_ASSERT(floor3 > 0.005 && floor3 < 0.01); /* 2.8 * 1.25 * 0.03 / sqrt(200) = 0.0074 */
}

static const struct test tests[] = {
	{"order_statistics", order_statistics},
	{"quantile_intervals", quantile_intervals},
	{"signed_rank", signed_rank},
	{"rank_sum", rank_sum},
	{"adjustment", adjustment},
	{"trend", trend},
	{"refusals", refusals},
	{"verdicts", verdicts},
	{"generator_and_blocks", generator_and_blocks},
	{"first_and_modes", first_and_modes},
	{"bootstrap", bootstrap},
	{"pareto", pareto},
	{"false_alarms", false_alarms},
	{"family_alarms", family_alarms},
	{"power", power},
	{"advice", advice},
};

TEST_MAIN("stats", 60, tests)
