/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"
#include "facts/must.h"

#include <math.h>
#include <stdlib.h>

#include <gpuloom/error.h>

/* Writes ln b[i] to a new array, or ln(b[i] / a[i]) if a is not NULL. */
static int logs(const double *b, const double *a, size_t n, double **out)
{
	for (size_t i = 0; i < n; i++)
		if (!(b[i] > 0 && isfinite(b[i])) || (a && !(a[i] > 0 && isfinite(a[i]))))
			return LOOM_EINVAL;
	double *d = n ? loom__must(calloc(n, sizeof(*d))) : NULL;
	if (!d)
		return n ? LOOM_ENOMEM : LOOM_EINVAL;
	for (size_t i = 0; i < n; i++)
		d[i] = a ? log(b[i] / a[i]) : log(b[i]);
	*out = d;
	return 0;
}

static void to_ratio(struct loom__stats_interval *i)
{
	i->at = exp(i->at);
	i->low = exp(i->low); /* -INFINITY becomes 0 */
	i->high = exp(i->high);
}

/* Returns the standard deviation, estimated from the MAD so that outliers do not matter. If more than half of the
 * values are equal, the MAD is 0, and the function returns the plain standard deviation. */
static double spread_of(const double *sorted, size_t n)
{
	double mad = loom__stats_mad(sorted, n), mean = 0, squares = 0;
	if (mad > 0 || n < 2)
		return 1.4826 * mad;
	for (size_t i = 0; i < n; i++)
		mean += sorted[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += (sorted[i] - mean) * (sorted[i] - mean);
	return sqrt(squares / (double)(n - 1));
}

int loom__stats_compare(const double *a, const double *b, size_t n, double level, struct loom__stats_comparison *out)
{
	struct loom__stats_comparison c = {.n = n, .m = n, .paired = 1};
	double *d;
	int rc = logs(b, a, n, &d);
	if (rc)
		return rc;
	rc = loom__stats_signed_rank(d, n, &c.test);
	loom__stats_sort(d, n);
	if (!rc)
		rc = loom__stats_quantile_ci(d, n, 0.5, level, &c.ratio);
	if (!rc) {
		c.spread = spread_of(d, n);
		to_ratio(&c.ratio);
		*out = c;
	}
	free(d);
	return rc;
}

int loom__stats_compare_unpaired(const double *a, size_t n, const double *b, size_t m, double level,
				 struct loom__stats_comparison *out)
{
	struct loom__stats_comparison c = {.n = n, .m = m};
	double *log_a, *log_b;
	int rc = logs(a, NULL, n, &log_a);
	if (rc)
		return rc;
	rc = logs(b, NULL, m, &log_b);
	if (rc) {
		free(log_a);
		return rc;
	}
	rc = loom__stats_ranksum(log_a, n, log_b, m, &c.test);
	if (!rc)
		rc = loom__stats_shift(log_a, n, log_b, m, level, &c.ratio);
	if (!rc) {
		to_ratio(&c.ratio);
		*out = c;
	}
	free(log_a);
	free(log_b);
	return rc;
}

enum loom__stats_verdict loom__stats_judge(const struct loom__stats_comparison *c, double p,
					   enum loom__stats_better better, double margin, double alpha)
{
	double m = log1p(margin), low = log(c->ratio.low), high = log(c->ratio.high);
	if (low >= -m && high <= m)
		return LOOM__STATS_EQUIVALENT;
	if (!(low > 0 || high < 0) || !(p < alpha))
		return LOOM__STATS_INCONCLUSIVE;
	if (!(low > m || high < -m))
		return fmax(high, -low) <= 2 * m ? LOOM__STATS_TRIVIAL : LOOM__STATS_INCONCLUSIVE;
	return (low > 0) == (better == LOOM__STATS_MORE) ? LOOM__STATS_FASTER : LOOM__STATS_SLOWER;
}

const char *loom__stats_verdict_name(enum loom__stats_verdict verdict)
{
	static const char *const names[] = {
	    [LOOM__STATS_INCONCLUSIVE] = "INCONCLUSIVE",
	    [LOOM__STATS_FASTER] = "FASTER",
	    [LOOM__STATS_SLOWER] = "SLOWER",
	    [LOOM__STATS_EQUIVALENT] = "EQUIVALENT",
	    [LOOM__STATS_TRIVIAL] = "TRIVIAL",
	};
	return names[verdict];
}

/* Returns the smallest |d| that a comparison of one block detects. With n blocks, it is smaller by a factor of
 * sqrt(n). */
static double reach(double spread, double alpha)
{
	double power = loom__stats_normal_z(0.2);
	return (loom__stats_normal_z(alpha / 2) + power) * sqrt(M_PI_2) * spread;
}

size_t loom__stats_more_blocks(const struct loom__stats_comparison *c, double margin, double alpha, size_t tests)
{
	if (!c->paired)
		return 0;
	double d = fabs(log(c->ratio.at)), m = log1p(margin), gap = d > m ? d - m : fmax(d, m - d);
	double share = alpha / (double)tests, ratio = reach(c->spread, share) / gap;
	/* With fewer blocks than the second term, no interval is finite and no p is below alpha. */
	double need = fmax(ceil(ratio * ratio), 1 + ceil(-log2(share)));
	if (need > 1e6)
		return LOOM__STATS_MANY;
	size_t total = (size_t)need, least = (c->n + 3) / 4;
	return total > c->n + least ? total - c->n : least;
}

double loom__stats_detectable(const struct loom__stats_comparison *c, double alpha)
{
	return c->paired ? expm1(reach(c->spread, alpha) / sqrt((double)c->n)) : 0;
}
