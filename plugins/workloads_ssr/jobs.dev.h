/* SPDX-License-Identifier: Apache-2.0 */
/* The five jobs. Graphs and matrices are compressed rows: `first` is where each row begins (n + 1 words),
 * `second` the columns, `third` weights or values. Device code. */
#ifndef WORKLOAD_SSR_JOBS_DEV_H
#define WORKLOAD_SSR_JOBS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "app.dev.h"
#endif

#define SSR_FAR 0xffffffffu

/* Requests cluster at the start: the first levels reach all over the graph. Scratch: distance, queue. */
LOOM_FN uint64_t ssr_bfs(struct ssr_reader *x)
{
	const struct ssr_input *in = x->in;
	uint32_t *distance = x->scratch, *queue = x->scratch + in->n;
	uint64_t head = 0, tail = 0, sum = 0;
	for (uint64_t v = 0; v < in->n; v++)
		distance[v] = SSR_FAR;
	queue[tail++] = (uint32_t)(x->c->worker % in->n);
	distance[queue[0]] = 0;
	while (head < tail && !x->failed) {
		uint32_t v = queue[head++];
		uint64_t end = ssr_u32(x, in->first, v + 1ull);
		for (uint64_t e = ssr_u32(x, in->first, v); e < end && !x->failed; e++) {
			uint32_t to = ssr_u32(x, in->second, e);
			if (distance[to] != SSR_FAR)
				continue;
			distance[to] = distance[v] + 1;
			queue[tail++] = to;
		}
	}
	for (uint64_t v = 0; v < in->n; v++)
		sum = ssr_mix(sum, distance[v]);
	return sum;
}

/* Shortest paths by a queue of what got shorter. Scratch: distance, queue (a ring), whether queued. */
LOOM_FN uint64_t ssr_sssp(struct ssr_reader *x)
{
	const struct ssr_input *in = x->in;
	uint32_t *distance = x->scratch, *queue = distance + in->n, *queued = queue + in->n;
	uint64_t head = 0, tail = 0, sum = 0;
	for (uint64_t v = 0; v < in->n; v++) {
		distance[v] = SSR_FAR;
		queued[v] = 0;
	}
	uint32_t root = (uint32_t)(x->c->worker % in->n);
	distance[root] = 0;
	queued[root] = 1;
	queue[tail++] = root;
	while (head < tail && !x->failed) {
		uint32_t v = queue[head++ % in->n];
		queued[v] = 0;
		uint64_t end = ssr_u32(x, in->first, v + 1ull);
		for (uint64_t e = ssr_u32(x, in->first, v); e < end && !x->failed; e++) {
			uint32_t to = ssr_u32(x, in->second, e);
			uint32_t far = distance[v] + ssr_u32(x, in->third, e);
			if (far >= distance[to])
				continue;
			distance[to] = far;
			if (!queued[to])
				queue[tail++ % in->n] = to;
			queued[to] = 1;
		}
	}
	for (uint64_t v = 0; v < in->n; v++)
		sum = ssr_mix(sum, distance[v]);
	return sum;
}

/* y = A x, modulo 2^32: requests are spread over the whole run. No scratch. */
LOOM_FN uint64_t ssr_spmv(struct ssr_reader *x)
{
	const struct ssr_input *in = x->in;
	uint64_t sum = 0, e = 0;
	for (uint64_t row = 0; row < in->n && !x->failed; row++) {
		uint64_t end = ssr_u32(x, in->first, row + 1);
		uint32_t y = 0;
		for (; e < end && !x->failed; e++)
			y += ssr_u32(x, in->third, e) * (2 * ssr_u32(x, in->second, e) + 1);
		sum = ssr_mix(sum, y);
	}
	return sum;
}

/* B+ tree: nodes of 16 keys, level after level from the root, the last level's values in `second`. A key
 * of an inner node is the least of its child. */
#define SSR_FANOUT 16u
LOOM_FN uint64_t ssr_bpt(struct ssr_reader *x)
{
	const struct ssr_input *in = x->in;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < in->lookups && !x->failed; i++) {
		uint64_t want = ssr_query(x->c->worker, i), node = 0, begin = 0, keys = SSR_FANOUT, at = 0;
		for (uint64_t level = 0; level < in->levels && !x->failed; level++) {
			uint64_t from = node * SSR_FANOUT;
			at = from;
			for (uint64_t j = 1; j < SSR_FANOUT; j++)
				if (ssr_u64(x, in->first, begin + from + j) <= want)
					at = from + j;
			node = at;
			begin += keys;
			keys *= SSR_FANOUT;
		}
		sum = ssr_mix(sum, ssr_u64(x, in->second, at));
	}
	return sum;
}

/* Cross sections: the grid of energies is searched, then `m` nuclides are gathered at that point. */
LOOM_FN uint64_t ssr_xsbench(struct ssr_reader *x)
{
	const struct ssr_input *in = x->in;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < in->lookups && !x->failed; i++) {
		uint64_t want = ssr_query(x->c->worker, i), low = 0, high = in->n, section = 0;
		while (high - low > 1 && !x->failed) {
			uint64_t middle = (low + high) / 2;
			if (ssr_u64(x, in->first, middle) <= want)
				low = middle;
			else
				high = middle;
		}
		for (uint64_t k = 0; k < in->m; k++)
			section += ssr_u64(x, in->second, low * in->m + k);
		sum = ssr_mix(sum, section);
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
