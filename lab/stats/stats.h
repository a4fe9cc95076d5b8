/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of compare, sweep and report: order statistics, rank tests, verdicts.
 *
 * Every function is deterministic, has no state and may be called from any thread. Samples are finite doubles in any
 * unit; each function states further requirements (sorted, positive). Functions that return int return 0, LOOM_EINVAL
 * (empty, not finite, out of range) or LOOM_ENOMEM, and write their output on success only. No sample is dropped as an
 * outlier.
 *
 * Comparisons are valid for this reason. If the order inside each block is random, swapping the names of two equal
 * variants swaps the sign of that block's log ratio with probability 1/2, whatever the noise (drift, autocorrelation,
 * spikes). Signed-rank and sign-based statements over blocks are then exact, as long as one sample does not disturb the
 * next (R. A. Fisher, The Design of Experiments, 1935). Samples in the order A..A B..B lack such a protection. */
#ifndef LOOM_STATS_H
#define LOOM_STATS_H

#include <stddef.h>
#include <stdint.h>

/* ---- order statistics (order.c) ---------------------------------------------------------------*/

/* Sorts in ascending order, in place. */
void loom__stats_sort(double *x, size_t n);
/* Makes a sorted copy of x[n], n >= 1, which the caller frees. Rejects values that are not finite. */
int loom__stats_sorted(const double *x, size_t n, double **sorted);

/* Returns quantile q in [0, 1] of sorted[n], n >= 1. With h = (n - 1) q it is linear between the values at floor(h) and
 * floor(h) + 1, counted from 0 (Hyndman and Fan 1996, type 7; the default of R and NumPy). q = 0.5 is the usual
 * median. */
double loom__stats_quantile(const double *sorted, size_t n, double q);
/* Returns the median absolute deviation from the median; times 1.4826 it estimates a normal standard deviation. */
double loom__stats_mad(const double *sorted, size_t n);
/* Returns the mean absolute deviation from the median, unscaled. Times 1.2533 it estimates the standard deviation of
 * normal data. It is 0 only if all values are equal, whereas the MAD is 0 if half of them are. */
double loom__stats_mean_deviation(const double *sorted, size_t n);
/* Returns how many values of sorted[n] are more than 3 interquartile ranges outside the quartiles (Tukey 1977, outer
 * fences). They are for reports and not removed. If the quartiles are equal, the mean deviation replaces the range. */
size_t loom__stats_far_out(const double *sorted, size_t n);

enum { LOOM__STATS_OPEN_LOW = 1, LOOM__STATS_OPEN_HIGH = 2 };

struct loom__stats_interval {
	double at;        /* the estimate */
	double low, high; /* open ends are -INFINITY, INFINITY */
	double coverage;  /* achieved, at least the requested level; nominal if not exact */
	unsigned open;    /* LOOM__STATS_OPEN_*: too few samples for a bound on that side */
};

/* Computes the confidence interval of quantile q in (0, 1) from two order statistics of sorted[n], for any continuous
 * distribution. The lower rank is the largest l with P(Bin(n, q) < l) <= (1 - level) / 2, and likewise the upper one
 * (Conover 1999, section 3.2). For the median at 95 %, n < 6 is open on both sides, and n = 20 gives ranks 6 and 15
 * with coverage 95.9 %. 0 < level < 1. */
int loom__stats_quantile_ci(const double *sorted, size_t n, double q, double level,
			    struct loom__stats_interval *out);

/* ---- null distributions (dist.c) --------------------------------------------------------------*/

/* Returns P(|Z| >= |z|) of the standard normal; the z with P(Z > z) = tail, 0 < tail <= 0.5. */
double loom__stats_normal_p(double z);
double loom__stats_normal_z(double tail);
/* Returns P(Bin(n, q) = k). */
double loom__stats_binomial(size_t n, size_t k, double q);
/* Returns the two-sided p of a signed-rank sum. rank2[n] are twice the (mid)ranks, w2 is twice the rank sum of the
 * positive differences. Counts all 2^n signs in integers; n <= LOOM__STATS_SIGNED_MAX. */
enum { LOOM__STATS_SIGNED_MAX = 60 };
double loom__stats_signed_p(const unsigned *rank2, size_t n, unsigned w2);
/* Returns, without ties, the largest rank k with P(W < k) <= tail, and P(W < k) in *below. */
size_t loom__stats_signed_rank_of(size_t n, double tail, double *below);
/* Two-sided p and rank of Mann-Whitney's U without ties, as above, by coefficients of the Gaussian binomial in 128-bit
 * integers (Mann and Whitney 1947); n, m <= LOOM__STATS_RANKSUM_MAX. */
enum { LOOM__STATS_RANKSUM_MAX = 50 };
double loom__stats_ranksum_p(size_t n, size_t m, size_t u);
size_t loom__stats_ranksum_rank_of(size_t n, size_t m, double tail, double *below);
/* ---- rank tests (rank.c) ----------------------------------------------------------------------*/

struct loom__stats_test {
	double stat;
	double p;  /* two-sided, 0..1 */
	size_t n;  /* the number of values used */
	int exact; /* 0: normal approximation with tie and continuity correction */
};

/* Wilcoxon's signed-rank test that d[n] is symmetric about 0. Zeros are dropped (Wilcoxon 1945, as R does; not Pratt's
 * rule), and ties share mid-ranks. Up to 60 remaining values, p is exact given the ties; without any, p = 1. stat is
 * the rank sum of the positive values. */
int loom__stats_signed_rank(const double *d, size_t n, struct loom__stats_test *out);
/* Mann-Whitney's test: stat = U, the pairs with b above a, where ties count half. Exact for n, m <= 50 without ties. */
int loom__stats_ranksum(const double *a, size_t n, const double *b, size_t m,
			struct loom__stats_test *out);

/* ---- Hodges-Lehmann shifts (shift.c) ----------------------------------------------------------*/

/* Computes the median of the n (n + 1) / 2 averages (d_i + d_j) / 2, i <= j (Hodges and Lehmann 1963). Its interval
 * inverts the signed-rank test (Tukey 1949): exact for n <= 60 if d is symmetric about its centre, else from the normal
 * approximation. At 95 %, n < 6 is open. The interval is narrower than that of the median unless the tails are heavy.
 * O(n log n) time, O(n) memory, as for loom__stats_shift(). */
int loom__stats_shift_paired(const double *d, size_t n, double level,
			     struct loom__stats_interval *out);
/* Computes the median of the nm differences b_j - a_i. Its interval inverts Mann-Whitney's test (Bauer 1972): exact for
 * n, m <= 50 (with ties at least the level), else by normal approximation. */
int loom__stats_shift(const double *a, size_t n, const double *b, size_t m, double level,
		      struct loom__stats_interval *out);

/* ---- many comparisons (adjust.c) --------------------------------------------------------------*/

/* Writes the adjusted p of p[n] to out[n] (may be p), in p's order. Holm 1979 bounds the chance of any false claim. */
int loom__stats_holm(const double *p, size_t n, double *out);

/* ---- comparison and verdict (compare.c) -------------------------------------------------------*/

enum loom__stats_better { LOOM__STATS_MORE, LOOM__STATS_LESS };

enum loom__stats_verdict {
	LOOM__STATS_INCONCLUSIVE,
	LOOM__STATS_FASTER,     /* B is better than A by more than the margin */
	LOOM__STATS_SLOWER,     /* B is worse by more than the margin */
	LOOM__STATS_EQUIVALENT, /* within the margin: a result, not a failure */
	LOOM__STATS_TRIVIAL,    /* a difference, but perhaps within the margin */
};

struct loom__stats_comparison {
	size_t n, m; /* n, m: blocks (n = m), or samples of A and of B */
	int paired;
	struct loom__stats_interval ratio; /* B / A; open ends are 0 and INFINITY */
	struct loom__stats_test test;
	struct loom__stats_interval shift; /* Hodges-Lehmann shift as a ratio, for information only */
	double spread; /* robust standard deviation of ln(B_i / A_i); 0: not paired */
};

/* Compares by blocks: a[i] and b[i] > 0 are the two variants' values in block i, and d_i = ln(b_i / a_i). ratio is
 * exp(median d) with the order-statistic interval; p is from the signed-rank test. */
int loom__stats_compare(const double *a, const double *b, size_t n, double level,
			struct loom__stats_comparison *out);
/* Compares two independent sets, all > 0, such as two files. ratio is exp(Hodges-Lehmann shift of the logs); p is from
 * Mann-Whitney's test. Drift between the sets is not excluded. */
int loom__stats_compare_unpaired(const double *a, size_t n, const double *b, size_t m, double level,
				 struct loom__stats_comparison *out);

/* Returns the verdict on c. With `margin` 0.01, ratios from 1/1.01 to 1.01 do not matter; margin >= 0. p is
 * the adjusted p of c within its family. The first that applies counts: EQUIVALENT if the interval is within the
 * margin; INCONCLUSIVE if it contains 1 or p >= alpha; FASTER or SLOWER if it is entirely beyond the margin; TRIVIAL.
 * Every claim of a difference keeps the error rate of the family. */
enum loom__stats_verdict loom__stats_judge(const struct loom__stats_comparison *c, double p,
					   enum loom__stats_better better, double margin,
					   double alpha);
const char *loom__stats_verdict_name(enum loom__stats_verdict verdict); /* returns "FASTER", for example */

/* Returns about how many more blocks give a verdict other than INCONCLUSIVE with a probability of 80 %, if median and
 * spread of d stay. This is the normal sample size for a median, ((z_alpha + z_0.2) sqrt(pi/2) spread / gap)^2. gap is
 * the larger of |d| and margin - |d|, and `tests` >= 1 comparisons share alpha. The number is at least a quarter of the
 * present one; 0: not paired; LOOM__STATS_MANY: above a million. */
#define LOOM__STATS_MANY SIZE_MAX
size_t loom__stats_more_blocks(const struct loom__stats_comparison *c, double margin, double alpha,
			       size_t tests);
/* Returns the smallest relative difference (0.008: 0.8 %) that this number of blocks with this spread detects with a
 * probability of 80 %, by the same formula. After A/A this is the noise floor. 0: not paired. */
double loom__stats_detectable(const struct loom__stats_comparison *c, double alpha);

/* ---- blocks (block.c) -------------------------------------------------------------------------*/

/* The generator of lib/random.h. Any seed is good. */
struct loom__stats_rng {
	uint64_t state;
};
uint64_t loom__stats_random(struct loom__stats_rng *rng);
/* Returns a number in 0..n-1, uniform without bias, n >= 1; a uniform number in [0, 1). */
uint64_t loom__stats_below(struct loom__stats_rng *rng, uint64_t n);
double loom__stats_unit(struct loom__stats_rng *rng);

enum loom__stats_order {
	LOOM__STATS_RANDOM, /* each variant once, shuffled */
	LOOM__STATS_ABBA,   /* shuffled, then the same backwards, which cancels linear drift */
};
/* Writes the variants 0..variants-1, in the order of block number `block`, to slots. Returns the number of slots:
 * `variants`, or twice that for ABBA. The order depends on the arguments only, so that an interrupted run can continue.
 * With noise of 3 % a block needs ABBA twice to show 3 % in 20 blocks (power in tests/test_compare.c). */
size_t loom__stats_block_order(uint64_t seed, uint64_t block, enum loom__stats_order order,
			       unsigned variants, unsigned *slots);

/* ---- the series in run order (series.c) -------------------------------------------------------*/

/* Compares the first value with the median of the others. The signed distance *z is in units of 1.4826 of their MAD
 * (Iglewicz and Hoaglin 1993), infinite if only the first value differs. With a MAD of 0 (clock ticks, counts), a value
 * within the range of the others is 0, and the unit is 1.2533 of their mean deviation. Beyond LOOM__STATS_FIRST_UNUSUAL
 * the warm-up was probably too short. n >= 4. */
#define LOOM__STATS_FIRST_UNUSUAL 5.0
int loom__stats_first(const double *x, size_t n, double *z);

struct loom__stats_modes {
	double d;     /* Ashman's D = sqrt(2) |m1 - m2| / sqrt(s1^2 + s2^2); may be INFINITY */
	double split; /* values <= split are the lower group */
	size_t lower; /* the size of the lower group */
	int two;      /* 1: d exceeds the threshold for n */
};
/* Tests whether the values form two groups. The sorted values are cut where the between-group variance is largest (Otsu
 * 1979), with at least 3 values and a tenth of them in each group. D (Ashman, Bird and Zepf 1994) compares the groups.
 * Cutting one normal group gives D near 2.7, a uniform one 3.5, so the threshold is 4 + 30 / n. 20 values of one group
 * exceed it in 1 % (normal) to 7 % (exponential) of cases, 100 in under 1 %. The result is only a hint. Below n = 10
 * `two` is never set. */
int loom__stats_modes(const double *x, size_t n, struct loom__stats_modes *out);

/* ---- Pareto front (pareto.c) ------------------------------------------------------------------*/

/* Sets front[i] to 1 unless another point dominates i: its interval is at least as good in both metrics and better in
 * one, end against end. Overlapping intervals never dominate. x and y are low <= high, with open ends infinite. O(n log
 * n) (after Kung, Luccio and Preparata 1975). */
struct loom__stats_point {
	double x_low, x_high, y_low, y_high;
};
int loom__stats_pareto(const struct loom__stats_point *points, size_t n,
		       enum loom__stats_better x_better, enum loom__stats_better y_better,
		       unsigned char *front);

#endif
