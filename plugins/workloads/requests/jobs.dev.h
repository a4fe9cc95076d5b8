/* SPDX-License-Identifier: Apache-2.0 */
/* The five jobs. Graphs and matrices are compressed rows: `first` is where each row begins (n + 1 words),
 * `second` the columns, `third` weights or values. Device code.
 *
 * Each lane takes every lanes-th row, vertex or look-up. All lanes of a worker go through a loop as often as the one that has
 * most to do, because they read together. */
#ifndef WORKLOAD_SSR_JOBS_DEV_H
#define WORKLOAD_SSR_JOBS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "app.dev.h"
#endif

#define SSR_FAR 0xffffffffu

/* for each of `n` items, this lane's being `i`, while `mine`. */
#define SSR_FOR_EACH(x, n, i, mine)                                                                \
	LOOM_NO_UNROLL                                                                             \
	for (uint64_t turn_ = 0, i = (x)->lane; turn_ * (x)->lanes < (n) && !(x)->failed; turn_++, i += (x)->lanes) \
		for (int mine = i < (n), once_ = 1; once_; once_ = 0)

/* Distances from vertex 0, all far but that: before the first step. Behind them scratch has a word per vertex that the job
 * may use, which becomes 0. */
LOOM_FN int ssr_all_far(struct ssr_reader *x)
{
	for (uint64_t v = x->lane; v < x->in.n; v += x->lanes) {
		loom_store_relaxed_dev(&x->scratch[v], v ? SSR_FAR : 0u);
		loom_store_relaxed_dev(&x->scratch[x->in.n + v], 0u);
	}
	return ssr_meet(x);
}

/* Collective, after step `step`, from 1: whether some lane of the device has changed a distance in it. They all store the
 * number of the step, so nobody clears the word. */
LOOM_FN int ssr_goes_on(struct ssr_reader *x, uint32_t step, int changed)
{
	if (changed)
		loom_store_relaxed_dev(&x->team->changed, step);
	if (!ssr_meet(x))
		return 0;
	int again = x->c->lane == 0 && loom_load_relaxed_dev(&x->team->changed) >= step;
	return loom_flag_from_lane0(x->c, (uint32_t)again);
}

LOOM_FN uint64_t ssr_distances(const struct ssr_reader *x)
{
	uint64_t sum = 0;
	for (uint64_t v = x->lane; v < x->in.n; v += x->lanes)
		sum += ssr_mix(v, loom_load_relaxed_dev(&x->scratch[v]));
	return sum;
}

/* Level by level. Requests cluster at the start: the first levels reach all over the graph. */
LOOM_FN uint64_t ssr_bfs(struct ssr_reader *x)
{
	const struct ssr_input *in = &x->in;
	uint32_t *distance = x->scratch, level = 0;
	int changed = ssr_all_far(x);
	while (changed) {
		changed = 0;
		SSR_FOR_EACH(x, in->n, v, mine)
		{
			mine = mine && loom_load_relaxed_dev(&distance[v]) == level;
			if (!ssr_any(x, mine))
				continue;
			uint64_t e = ssr_u32(x, mine, in->first, v), end = ssr_u32(x, mine, in->first, v + 1);
			for (; ssr_any(x, e < end) && !x->failed; e++) {
				uint32_t to = ssr_u32(x, e < end, in->second, e);
				if (e >= end || loom_load_relaxed_dev(&distance[to]) != SSR_FAR)
					continue;
				loom_store_relaxed_dev(&distance[to], level + 1); /* as all who find it */
				changed = 1;
			}
		}
		changed = ssr_goes_on(x, ++level, changed);
	}
	return ssr_distances(x);
}

/* Shortest paths: each step goes on from the vertices that got nearer in the step before. */
LOOM_FN uint64_t ssr_sssp(struct ssr_reader *x)
{
	const struct ssr_input *in = &x->in;
	uint32_t *distance = x->scratch, *nearer = distance + in->n, step = 0;
	int changed = ssr_all_far(x);
	while (changed) {
		changed = 0;
		SSR_FOR_EACH(x, in->n, v, mine)
		{
			mine = mine && loom_load_relaxed_dev(&nearer[v]) == step && (step || v == 0);
			if (!ssr_any(x, mine))
				continue;
			uint64_t e = ssr_u32(x, mine, in->first, v), end = ssr_u32(x, mine, in->first, v + 1);
			for (; ssr_any(x, e < end) && !x->failed; e++) {
				uint32_t to = ssr_u32(x, e < end, in->second, e), weight = ssr_u32(x, e < end, in->third, e);
				if (e >= end)
					continue;
				uint32_t far = loom_load_relaxed_dev(&distance[v]) + weight;
				uint32_t seen = loom_load_relaxed_dev(&distance[to]);
				while (far < seen && !loom_cas_acq_rel_dev(&distance[to], &seen, far))
					;
				if (far >= seen)
					continue;
				loom_store_relaxed_dev(&nearer[to], step + 1);
				changed = 1;
			}
		}
		changed = ssr_goes_on(x, ++step, changed);
	}
	return ssr_distances(x);
}

/* y = A x, modulo 2^32: requests are spread over the whole run. */
LOOM_FN uint64_t ssr_spmv(struct ssr_reader *x)
{
	const struct ssr_input *in = &x->in;
	uint64_t sum = 0;
	SSR_FOR_EACH(x, in->n, row, mine)
	{
		uint64_t e = ssr_u32(x, mine, in->first, row), end = ssr_u32(x, mine, in->first, row + 1);
		uint32_t y = 0;
		for (; ssr_any(x, e < end) && !x->failed; e++) {
			uint32_t value = ssr_u32(x, e < end, in->third, e), column = ssr_u32(x, e < end, in->second, e);
			y += e < end ? value * (2 * column + 1) : 0;
		}
		if (mine)
			sum += ssr_mix(row, y);
	}
	return sum;
}

/* B+ tree: nodes of 16 keys, level after level from the root, the last level's values in `second`. A key
 * of an inner node is the least of its child. */
#define SSR_FANOUT 16u
LOOM_FN uint64_t ssr_bpt(struct ssr_reader *x)
{
	const struct ssr_input *in = &x->in;
	uint64_t sum = 0;
	SSR_FOR_EACH(x, in->lookups, i, mine)
	{
		uint64_t want = ssr_query(i), node = 0, begin = 0, keys = SSR_FANOUT, at = 0;
		for (uint64_t level = 0; level < in->levels && !x->failed; level++) {
			uint64_t from = node * SSR_FANOUT;
			at = from;
			LOOM_NO_UNROLL
			for (uint64_t j = 1; j < SSR_FANOUT; j++)
				if (ssr_u64(x, mine, in->first, begin + from + j) <= want)
					at = from + j;
			node = at;
			begin += keys;
			keys *= SSR_FANOUT;
		}
		uint64_t value = ssr_u64(x, mine, in->second, at);
		if (mine)
			sum += ssr_mix(i, value);
	}
	return sum;
}

/* Cross sections: the grid of energies is searched, then `m` nuclides are gathered at that point. */
LOOM_FN uint64_t ssr_xsbench(struct ssr_reader *x)
{
	const struct ssr_input *in = &x->in;
	uint64_t sum = 0;
	SSR_FOR_EACH(x, in->lookups, i, mine)
	{
		uint64_t want = ssr_query(i), low = 0, high = in->n, section = 0;
		while (ssr_any(x, mine && high - low > 1) && !x->failed) {
			uint64_t middle = (low + high) / 2;
			int half = mine && high - low > 1;
			uint64_t energy = ssr_u64(x, half, in->first, middle);
			if (half && energy <= want)
				low = middle;
			else if (half)
				high = middle;
		}
		LOOM_NO_UNROLL
		for (uint64_t k = 0; k < in->m; k++)
			section += ssr_u64(x, mine, in->second, low * in->m + k);
		if (mine)
			sum += ssr_mix(i, section);
	}
	return sum;
}

/* LOOM_CALL finds a workload's kernel by its name. */
#define SSR_APP_HALF(app)                                                                          \
	LOOM_FN void workload_ssr_##app##_kernel(struct loom_ctx *c)                               \
	{                                                                                          \
		ssr_app_run(c, ssr_##app);                                                         \
	}

#endif
