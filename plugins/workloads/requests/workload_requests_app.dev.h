/* SPDX-License-Identifier: Apache-2.0 */
/* The five jobs of workload_requests_app. Graphs and matrices are in compressed rows: `first` has the index at which
 * each row starts (n + 1 words), `second` has the columns, `third` has the weights or values. Device code.
 *
 * Each lane takes every lanes-th row, vertex or look-up. Lanes of a worker read together. So all of them run a loop
 * as often as the lane with most work. */
#ifndef WORKLOAD_REQUESTS_APP_DEV_H
#define WORKLOAD_REQUESTS_APP_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "pages.dev.h"
#endif

enum request_app { REQUEST_BFS, REQUEST_SPMV, REQUEST_SSSP, REQUEST_BPT, REQUEST_XSBENCH };

#define REQUEST_UNREACHED 0xffffffffu

/* A loop over `n` items. If `mine` is not 0, this lane has an item, and `i` is its index. */
#define REQUEST_FOR_EACH(x, n, i, mine)                                                                \
	LOOM_NO_UNROLL                                                                             \
	for (uint64_t turn_ = 0, i = (x)->lane; turn_ * (x)->lanes < (n) && !(x)->failed; turn_++, i += (x)->lanes) \
		for (int mine = i < (n), once_ = 1; once_; once_ = 0)

/* Called before the first step. Vertex 0 gets distance 0, and all others REQUEST_UNREACHED. Also sets the second word
 * of each vertex in `scratch` to 0. Returns 0 if the job is over. */
LOOM_FN int request_reset_distances(struct request_reader *x)
{
	for (uint64_t v = x->lane; v < x->in.n; v += x->lanes) {
		loom_store_relaxed_dev(&x->scratch[v], v ? REQUEST_UNREACHED : 0u);
		loom_store_relaxed_dev(&x->scratch[x->in.n + v], 0u);
	}
	return request_barrier(x);
}

/* Collective. Called after step `step`, which counts from 1. Returns whether a lane of the device has changed a
 * distance in this step. All lanes store the number of the step, so the word need not be cleared. */
LOOM_FN int request_again(struct request_reader *x, uint32_t step, int changed)
{
	if (changed)
		loom_store_relaxed_dev(&x->team->changed, step);
	if (!request_barrier(x))
		return 0;
	int again = x->c->lane == 0 && loom_load_relaxed_dev(&x->team->changed) >= step;
	return loom_flag_from_lane0(x->c, (uint32_t)again);
}

LOOM_FN uint64_t request_distances(const struct request_reader *x)
{
	uint64_t sum = 0;
	for (uint64_t v = x->lane; v < x->in.n; v += x->lanes)
		sum += request_mix(v, loom_load_relaxed_dev(&x->scratch[v]));
	return sum;
}

/* Searches level by level. Most requests come at the start, because the first levels reach all parts of the graph. */
LOOM_FN uint64_t request_bfs(struct request_reader *x)
{
	const struct request_input *in = &x->in;
	uint32_t *distance = x->scratch, level = 0;
	int changed = request_reset_distances(x);
	while (changed) {
		changed = 0;
		REQUEST_FOR_EACH(x, in->n, v, mine)
		{
			mine = mine && loom_load_relaxed_dev(&distance[v]) == level;
			if (!request_any(x, mine))
				continue;
			uint64_t e = request_u32(x, mine, in->first, v), end = request_u32(x, mine, in->first, v + 1);
			for (; request_any(x, e < end) && !x->failed; e++) {
				uint32_t to = request_u32(x, e < end, in->second, e);
				if (e >= end || loom_load_relaxed_dev(&distance[to]) != REQUEST_UNREACHED)
					continue;
				/* every lane that reaches this vertex stores the same value */
				loom_store_relaxed_dev(&distance[to], level + 1);
				changed = 1;
			}
		}
		changed = request_again(x, ++level, changed);
	}
	return request_distances(x);
}

/* Finds shortest paths. Each step follows the edges of the vertices whose distance the previous step has reduced. */
LOOM_FN uint64_t request_sssp(struct request_reader *x)
{
	const struct request_input *in = &x->in;
	uint32_t *distance = x->scratch, *nearer = distance + in->n, step = 0;
	int changed = request_reset_distances(x);
	while (changed) {
		changed = 0;
		REQUEST_FOR_EACH(x, in->n, v, mine)
		{
			mine = mine && loom_load_relaxed_dev(&nearer[v]) == step && (step || v == 0);
			if (!request_any(x, mine))
				continue;
			uint64_t e = request_u32(x, mine, in->first, v), end = request_u32(x, mine, in->first, v + 1);
			for (; request_any(x, e < end) && !x->failed; e++) {
				uint32_t to = request_u32(x, e < end, in->second, e),
					 weight = request_u32(x, e < end, in->third, e);
				if (e >= end)
					continue;
				uint32_t length = loom_load_relaxed_dev(&distance[v]) + weight;
				uint32_t seen = loom_load_relaxed_dev(&distance[to]);
				while (length < seen && !loom_cas_acq_rel_dev(&distance[to], &seen, length))
					;
				if (length >= seen)
					continue;
				loom_store_relaxed_dev(&nearer[to], step + 1);
				changed = 1;
			}
		}
		changed = request_again(x, ++step, changed);
	}
	return request_distances(x);
}

/* Computes y = A x, modulo 2^32. Requests are spread over the whole run. */
LOOM_FN uint64_t request_spmv(struct request_reader *x)
{
	const struct request_input *in = &x->in;
	uint64_t sum = 0;
	REQUEST_FOR_EACH(x, in->n, row, mine)
	{
		uint64_t e = request_u32(x, mine, in->first, row), end = request_u32(x, mine, in->first, row + 1);
		uint32_t y = 0;
		for (; request_any(x, e < end) && !x->failed; e++) {
			uint32_t value = request_u32(x, e < end, in->third, e),
				 column = request_u32(x, e < end, in->second, e);
			y += e < end ? value * (2 * column + 1) : 0;
		}
		if (mine)
			sum += request_mix(row, y);
	}
	return sum;
}

/* Looks up keys in a B+ tree. Nodes have 16 keys, and are stored level by level from the root. A key of an inner node
 * is the smallest key of its child. `second` has the values of the last level. */
#define REQUEST_FANOUT 16u
LOOM_FN uint64_t request_bpt(struct request_reader *x)
{
	const struct request_input *in = &x->in;
	uint64_t sum = 0;
	REQUEST_FOR_EACH(x, in->lookups, i, mine)
	{
		uint64_t want = request_query(i), node = 0, begin = 0, keys = REQUEST_FANOUT, at = 0;
		for (uint64_t level = 0; level < in->levels && !x->failed; level++) {
			uint64_t from = node * REQUEST_FANOUT;
			at = from;
			LOOM_NO_UNROLL
			for (uint64_t j = 1; j < REQUEST_FANOUT; j++)
				if (request_u64(x, mine, in->first, begin + from + j) <= want)
					at = from + j;
			node = at;
			begin += keys;
			keys *= REQUEST_FANOUT;
		}
		uint64_t value = request_u64(x, mine, in->second, at);
		if (mine)
			sum += request_mix(i, value);
	}
	return sum;
}

/* Looks up cross sections: a binary search in the grid of energies, then a sum over `m` nuclides at the point that
 * was found. */
LOOM_FN uint64_t request_xsbench(struct request_reader *x)
{
	const struct request_input *in = &x->in;
	uint64_t sum = 0;
	REQUEST_FOR_EACH(x, in->lookups, i, mine)
	{
		uint64_t want = request_query(i), low = 0, high = in->n, section = 0;
		while (request_any(x, mine && high - low > 1) && !x->failed) {
			uint64_t middle = (low + high) / 2;
			int half = mine && high - low > 1;
			uint64_t energy = request_u64(x, half, in->first, middle);
			if (half && energy <= want)
				low = middle;
			else if (half)
				high = middle;
		}
		LOOM_NO_UNROLL
		for (uint64_t k = 0; k < in->m; k++)
			section += request_u64(x, mine, in->second, low * in->m + k);
		if (mine)
			sum += request_mix(i, section);
	}
	return sum;
}

/* ---- the kernel ---- */

/* The application. In a program for GPUs it is a constant, which app_constants() defines. */
#ifdef REQUEST_APP
#define REQUEST_APP_OF(x) REQUEST_APP
#else
#define REQUEST_APP_OF(x) ((x)->in.app)
#endif

/* Returns this lane's part of a round's answer. */
LOOM_FN uint64_t request_app_round(struct request_reader *x)
{
	switch (REQUEST_APP_OF(x)) {
	case REQUEST_BFS:
		return request_bfs(x);
	case REQUEST_SPMV:
		return request_spmv(x);
	case REQUEST_SSSP:
		return request_sssp(x);
	case REQUEST_BPT:
		return request_bpt(x);
	default:
		return request_xsbench(x);
	}
}

LOOM_FN void workload_requests_app_kernel(struct loom_ctx *c)
{
	struct request_reader x = request_reader(c);
	uint64_t cpu = request_cpu_clock();
	x.claim[c->lane].page = REQUEST_NO_PAGE;
	if (c->lane == 0)
		request_start(x.counters);
	while (request_begin_round(&x) && request_end_round(&x, request_app_round(&x)))
		;
	if (c->lane)
		return;
	x.counters->posted = x.own->posted;
	x.counters->sum = x.last;
	x.counters->rounds = x.rounds;
	x.counters->cpu_ns = request_cpu_clock() - cpu;
}

#endif
