/* SPDX-License-Identifier: Apache-2.0 */
/* The statistics of compare, sweep and report: order statistics, rank tests, verdicts.
 *
 * Every function is deterministic, has no state and may be called from any thread. Samples are finite doubles in any
 * unit; a function may require more (sorted, positive). Functions that return int return 0, LOOM_EINVAL (empty, not
 * finite, out of range) or LOOM_ENOMEM, and write their output on success only. No sample is dropped as an outlier.
 *
 * Why comparisons are valid: the order inside each block is random. With a random order, if two variants are equal,
 * swapping their names changes the sign of the block's log ratio with probability 1/2. This holds for any noise (drift,
 * autocorrelation, spikes) as long as one sample does not disturb the next. So tests on signs and signed ranks over
 * blocks are exact (R. A. Fisher, The Design of Experiments, 1935). Samples in the order A..A B..B have no such
 * protection. */
#ifndef LOOM_STATS_H
#define LOOM_STATS_H

#include <stddef.h>
#include <stdint.h>

/* ---- order statistics (order.c) ---------------------------------------------------------------*/

/* Sorts x[n] in ascending order, in place. */
void loom__stats_sort(double *x, size_t n);
/* Makes a sorted copy of x[n], n >= 1, which the caller frees. Values that are not finite are an error. */
int loom__stats_sorted(const double *x, size_t n, double **sorted);

/* Returns quantile q in [0, 1] of sorted[n], n >= 1. Let h = (n - 1) q and count values from 0. The result is
 * interpolated linearly between the values at floor(h) and floor(h) + 1 (Hyndman and Fan 1996, type 7; the default of R
 * and NumPy). q = 0.5 gives the usual median. */
double loom__stats_quantile(const double *sorted, size_t n, double q);
/* Returns the MAD: the median absolute deviation from the median. Times 1.4826 it estimates the standard deviation of
 * normal data. */
double loom__stats_mad(const double *sorted, size_t n);
/* Returns the mean absolute deviation from the median, unscaled. Times 1.2533 it estimates the standard deviation of
 * normal data. It is 0 only if all values are equal, whereas the MAD is 0 if half of them are. */
double loom__stats_mean_deviation(const double *sorted, size_t n);
/* Returns how many values of sorted[n] are more than 3 interquartile ranges outside the quartiles (Tukey 1977, outer
 * fences). Reports show this number; no value is removed. If the quartiles are equal, the mean deviation replaces the
 * interquartile range. */
size_t loom__stats_far_out(const double *sorted, size_t n);

enum { LOOM__STATS_OPEN_LOW = 1, LOOM__STATS_OPEN_HIGH = 2 };

struct loom__stats_interval {
	double at;        /* the estimate */
	double low, high; /* an open end is -INFINITY or INFINITY */
	/* probability that the interval covers the true value: the exact probability if it is known, else the requested
	 * level
	 * */
	double coverage;
	unsigned open; /* LOOM__STATS_OPEN_* of each end for which there are too few samples */
};

/* Computes the confidence interval of quantile q in (0, 1), for any continuous distribution and 0 < level < 1. Its ends
 * are two values of sorted[n]. The rank of the lower end is the largest l with P(Bin(n, q) < l) <= (1 - level) / 2. The
 * upper end follows by symmetry (Conover 1999, section 3.2). For the median at 95 %, both ends are open if n < 6. n =
 * 20 gives ranks 6 and 15 with coverage 95.9 %. */
int loom__stats_quantile_ci(const double *sorted, size_t n, double q, double level, struct loom__stats_interval *out);

/* ---- null distributions (dist.c) --------------------------------------------------------------*/

/* normal_p() returns P(|Z| >= |z|) of a standard normal Z. normal_z() returns the z with P(Z > z) = tail, 0 < tail <=
 * 0.5. */
double loom__stats_normal_p(double z);
double loom__stats_normal_z(double tail);
/* Returns P(X = k), where X is the number of successes in n trials of probability q. */
double loom__stats_binomial(size_t n, size_t k, double q);
/* Returns the two-sided p of a signed-rank sum. rank2[n] are twice the (mid)ranks. w2 is twice the rank sum of the
 * positive differences. The function counts all 2^n sign assignments, in integers, so n <= LOOM__STATS_SIGNED_MAX. */
enum { LOOM__STATS_SIGNED_MAX = 60 };
double loom__stats_signed_p(const unsigned *rank2, size_t n, unsigned w2);
/* For Mann-Whitney's U without ties: the two-sided p of u, and the largest k with P(U < k) <= tail, which *below gets.
 * Both use coefficients of the Gaussian binomial in 128-bit integers (Mann and Whitney 1947), so n, m <=
 * LOOM__STATS_RANKSUM_MAX. */
enum { LOOM__STATS_RANKSUM_MAX = 50 };
double loom__stats_ranksum_p(size_t n, size_t m, size_t u);
size_t loom__stats_ranksum_rank_of(size_t n, size_t m, double tail, double *below);
/* ---- rank tests (rank.c) ----------------------------------------------------------------------*/

struct loom__stats_test {
	double stat;
	double p;  /* two-sided, 0..1 */
	size_t n;  /* the number of values used */
	int exact; /* 1: p is exact; 0: normal approximation with tie and continuity correction */
};

/* Wilcoxon's signed-rank test of the hypothesis that d[n] is symmetric about 0. Zeros are dropped (Wilcoxon 1945, as R
 * does; this is not Pratt's rule), and ties share mid-ranks. If at most 60 values remain, p is exact for the given
 * ties. If none remains, p = 1. stat is the rank sum of the positive values. */
int loom__stats_signed_rank(const double *d, size_t n, struct loom__stats_test *out);
/* Mann-Whitney's test. stat is U: the number of pairs in which b is above a, where a tie counts half. p is exact if n,
 * m <= 50 and there are no ties. */
int loom__stats_ranksum(const double *a, size_t n, const double *b, size_t m, struct loom__stats_test *out);

/* ---- Hodges-Lehmann shifts (shift.c) ----------------------------------------------------------*/

/* Computes the median of the n m differences b_j - a_i. The interval comes from inverting Mann-Whitney's test (Bauer
 * 1972). It is exact if n, m <= 50, and conservative if there are ties; above 50 it uses the normal approximation. */
int loom__stats_shift(const double *a, size_t n, const double *b, size_t m, double level,
		      struct loom__stats_interval *out);

/* ---- many comparisons (adjust.c) --------------------------------------------------------------*/

/* Writes the adjusted p of p[i] to out[i]; `out` may be p. Holm's method (1979) bounds the probability of any false
 * claim. */
int loom__stats_holm(const double *p, size_t n, double *out);

/* ---- comparison and verdict (compare.c) -------------------------------------------------------*/

enum loom__stats_better { LOOM__STATS_MORE, LOOM__STATS_LESS };

enum loom__stats_verdict {
	LOOM__STATS_INCONCLUSIVE,
	LOOM__STATS_FASTER,     /* B is better than A by more than the margin */
	LOOM__STATS_SLOWER,     /* B is worse than A by more than the margin */
	LOOM__STATS_EQUIVALENT, /* the difference is within the margin, which is a result and not a failure */
	LOOM__STATS_TRIVIAL,    /* there is a difference, which is within twice the margin */
};

struct loom__stats_comparison {
	size_t n, m; /* blocks (n = m), or the numbers of samples of A and of B */
	int paired;
	struct loom__stats_interval ratio; /* B / A; an open end is 0 or INFINITY */
	struct loom__stats_test test;
	double spread; /* robust standard deviation of ln(B_i / A_i); 0: not paired */
};

/* Compares two variants by blocks. a[i] and b[i], both > 0, are their values in block i, and d_i = ln(b_i / a_i). ratio
 * is exp(median d) with the interval of loom__stats_quantile_ci(). p comes from the signed-rank test. */
int loom__stats_compare(const double *a, const double *b, size_t n, double level, struct loom__stats_comparison *out);
/* Compares two independent sets of values > 0, for example of two files. ratio is exp(Hodges-Lehmann shift of the
 * logs). p comes from Mann-Whitney's test. The result may include drift between the two sets. */
int loom__stats_compare_unpaired(const double *a, size_t n, const double *b, size_t m, double level,
				 struct loom__stats_comparison *out);

/* Returns the verdict on c. margin >= 0; with 0.01, ratios from 1/1.01 to 1.01 do not matter. p is the p of c, adjusted
 * for all comparisons that are made together. The first verdict that applies is returned:
 *   EQUIVALENT       the interval is within the margin
 *   INCONCLUSIVE     the interval contains 1, or p >= alpha
 *   FASTER, SLOWER   the interval is entirely beyond the margin
 *   TRIVIAL          the interval is within twice the margin
 *   INCONCLUSIVE     there is a difference, which may be within the margin or more than twice as large
 * So alpha bounds the probability that any claimed difference is false. */
enum loom__stats_verdict loom__stats_judge(const struct loom__stats_comparison *c, double p,
					   enum loom__stats_better better, double margin, double alpha);
const char *loom__stats_verdict_name(enum loom__stats_verdict verdict); /* returns "FASTER", for example */

/* Estimates how many more blocks lead to a verdict other than INCONCLUSIVE, with a probability of 80 %. The median and
 * spread of d are assumed to stay the same. The estimate is the normal sample size for a median, ((z_alpha + z_0.2)
 * sqrt(pi/2) spread / gap)^2. gap is the distance of |d| from the margin or, if |d| is within the margin and larger
 * than this distance, |d|. `tests` >= 1 comparisons share alpha. The result is at least a quarter of the present number
 * of blocks. It is 0 if c is not paired, and LOOM__STATS_MANY above a million. */
#define LOOM__STATS_MANY SIZE_MAX
size_t loom__stats_more_blocks(const struct loom__stats_comparison *c, double margin, double alpha, size_t tests);
/* Returns the smallest relative difference that this number of blocks with this spread detects with a probability of 80
 * %, by the same formula. 0.008 means 0.8 %. For an A/A comparison, this is the noise floor. Returns 0 if c is not
 * paired. */
double loom__stats_detectable(const struct loom__stats_comparison *c, double alpha);

/* ---- blocks (block.c) -------------------------------------------------------------------------*/

/* The generator of lib/random.h. Any seed is good. */
struct loom__stats_rng {
	uint64_t state;
};
uint64_t loom__stats_random(struct loom__stats_rng *rng);
/* loom__stats_below() returns an unbiased uniform number in 0..n-1, with n >= 1. loom__stats_unit() returns a uniform
 * number in [0, 1). */
uint64_t loom__stats_below(struct loom__stats_rng *rng, uint64_t n);
double loom__stats_unit(struct loom__stats_rng *rng);

enum loom__stats_order {
	LOOM__STATS_RANDOM, /* each variant once, shuffled */
	LOOM__STATS_ABBA,   /* each variant twice: shuffled, then in reverse order, which cancels linear drift */
};
/* Writes the variants 0..variants-1 to slots in the order in which block number `block` runs them. Returns the number
 * of slots: `variants`, or twice that for ABBA. The order depends only on the arguments, so that an interrupted run can
 * continue. With a noise of 3 %, 20 blocks show a difference of 3 % only with ABBA (tests/test_compare.c measures
 * this). */
size_t loom__stats_block_order(uint64_t seed, uint64_t block, enum loom__stats_order order, unsigned variants,
			       unsigned *slots);

/* ---- the series in run order (series.c) -------------------------------------------------------*/

/* Compares the first value with the median of the other values. *z is the signed distance. Its unit is 1.4826 times the
 * MAD of the other values (Iglewicz and Hoaglin 1993). If that MAD is 0 (clock ticks, counts), a first value within the
 * range of the other values has *z = 0, and outside of this range the unit is 1.2533 times the mean deviation of the
 * other values. *z is infinite if all other values are equal and the first one differs. If |*z| is above
 * LOOM__STATS_FIRST_UNUSUAL, the warm-up was probably too short. n >= 4. */
#define LOOM__STATS_FIRST_UNUSUAL 5.0
int loom__stats_first(const double *x, size_t n, double *z);

struct loom__stats_modes {
	double d;     /* Ashman's D = sqrt(2) |m1 - m2| / sqrt(s1^2 + s2^2); may be INFINITY */
	double split; /* values <= split form the lower group */
	size_t lower; /* the number of values in the lower group */
	int two;      /* 1: d exceeds the threshold for n */
};
/* Tests whether the values form two groups. The sorted values are cut where the variance between the groups is largest
 * (Otsu 1979). Each group has at least 3 values, and at least a tenth of all values. D (Ashman, Bird and Zepf 1994) is
 * the distance of the groups. Cutting normal data gives D near 2.7, cutting uniform data 3.5, so the threshold is 4 +
 * 30 / n. If the values come from one group, D of 20 values exceeds the threshold in 1 % (normal data) to 7 %
 * (exponential data) of cases. With 100 values, this happens in under 1 % of cases. So the result is only a hint. If n
 * < 10, `two` is 0. */
int loom__stats_modes(const double *x, size_t n, struct loom__stats_modes *out);

/* ---- Pareto front (pareto.c) ------------------------------------------------------------------*/

/* Sets front[i] to 1 if no other point dominates point i, else to 0. A point dominates another if it is at least as
 * good in both metrics and better in one. The worst end of the first point is compared with the best end of the second
 * point, so a point never dominates if the intervals overlap. x_low <= x_high and y_low <= y_high; an open end is
 * infinite. Takes O(n log n) time (after Kung, Luccio and Preparata 1975). */
struct loom__stats_point {
	double x_low, x_high, y_low, y_high;
};
int loom__stats_pareto(const struct loom__stats_point *points, size_t n, enum loom__stats_better x_better,
		       enum loom__stats_better y_better, unsigned char *front);

#endif
