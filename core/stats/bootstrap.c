/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <gpuloom/error.h>

int loom__stats_bootstrap(size_t n, double (*stat)(const size_t *pick, size_t n, void *context),
			  void *context, unsigned rounds, double level, uint64_t seed,
			  struct loom__stats_interval *out)
{
	struct loom__stats_rng rng = {seed};
	if (!n || rounds < 100 || rounds > 1000000 || !(level > 0 && level < 1))
		return LOOM_EINVAL;
	size_t *pick = calloc(n, sizeof(*pick));
	double *results = calloc(rounds, sizeof(*results));
	int rc = pick && results ? 0 : LOOM_ENOMEM;
	double at = 0;
	if (!rc) {
		for (size_t i = 0; i < n; i++)
			pick[i] = i;
		at = stat(pick, n, context);
		rc = isfinite(at) ? 0 : LOOM_EINVAL;
	}
	for (unsigned r = 0; r < rounds && !rc; r++) {
		for (size_t i = 0; i < n; i++)
			pick[i] = (size_t)loom__stats_below(&rng, n);
		results[r] = stat(pick, n, context);
		rc = isfinite(results[r]) ? 0 : LOOM_EINVAL;
	}
	if (!rc) {
		loom__stats_sort(results, rounds);
		*out = (struct loom__stats_interval){
			.at = at,
			.low = loom__stats_quantile(results, rounds, (1 - level) / 2),
			.high = loom__stats_quantile(results, rounds, (1 + level) / 2),
			.coverage = level,
		};
	}
	free(pick);
	free(results);
	return rc;
}

struct quantile {
	const double *sorted;
	size_t *times; /* how often each value was drawn */
	double q;
};

/* The quantile of the drawn values by counting: no sort per round. */
static double drawn_quantile(const size_t *pick, size_t n, void *context)
{
	struct quantile *c = context;
	double h = (double)(n - 1) * c->q;
	size_t at = (size_t)h, i = 0, seen;
	memset(c->times, 0, n * sizeof(*c->times));
	for (size_t k = 0; k < n; k++)
		c->times[pick[k]]++;
	for (seen = c->times[0]; seen <= at;)
		seen += c->times[++i];
	double low = c->sorted[i];
	if (seen > at + 1 || at + 1 >= n)
		return low;
	while (!c->times[++i])
		;
	return low + (h - (double)at) * (c->sorted[i] - low);
}

int loom__stats_boot_quantile(const double *x, size_t n, double q, unsigned rounds, double level,
			      uint64_t seed, struct loom__stats_interval *out)
{
	double *sorted;
	if (!(q >= 0 && q <= 1))
		return LOOM_EINVAL;
	int rc = loom__stats_sorted(x, n, &sorted);
	if (rc)
		return rc;
	struct quantile c = {sorted, calloc(n, sizeof(*c.times)), q};
	rc = LOOM_ENOMEM;
	if (c.times)
		rc = loom__stats_bootstrap(n, drawn_quantile, &c, rounds, level, seed, out);
	free(c.times);
	free(sorted);
	return rc;
}

struct throughput {
	const double *work_a, *time_a, *work_b, *time_b;
};

static double drawn_ratio(const size_t *pick, size_t n, void *context)
{
	const struct throughput *c = context;
	double work_a = 0, time_a = 0, work_b = 0, time_b = 0;
	for (size_t i = 0; i < n; i++) {
		work_a += c->work_a[pick[i]];
		time_a += c->time_a[pick[i]];
		work_b += c->work_b[pick[i]];
		time_b += c->time_b[pick[i]];
	}
	return work_b / time_b / (work_a / time_a);
}

int loom__stats_boot_throughput(const double *work_a, const double *time_a, const double *work_b,
				const double *time_b, size_t n, unsigned rounds, double level,
				uint64_t seed, struct loom__stats_interval *out)
{
	struct throughput c = {work_a, time_a, work_b, time_b};
	for (size_t i = 0; i < n; i++)
		if (!(time_a[i] > 0 && time_b[i] > 0 && work_a[i] >= 0 && work_b[i] >= 0))
			return LOOM_EINVAL;
	return loom__stats_bootstrap(n, drawn_ratio, &c, rounds, level, seed, out);
}
