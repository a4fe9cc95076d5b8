/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce: a ring over the ranks; each worker pipelines a slice of its own (GPU-TN, 5.4.1). Device code.
 *
 * The vector is cut into one chunk per rank, a chunk into one slice per worker. In step s of the first
 * half a rank sends its running sum of chunk (rank - s) to the next rank, into a buffer of that step, and
 * adds what it got to chunk (rank - s - 1); in the second half finished chunks go round, to their place.
 * Each step of each worker has a tag, a post and an arrival word of its own, so nothing is reused. */
#ifndef WORKLOAD_ALLREDUCE_DEV_H
#define WORKLOAD_ALLREDUCE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "net.dev.h"
#endif

/* Head of the global block. */
struct allreduce {
	uint64_t floats;      /* of the vector: a multiple of ranks * workers */
	uint64_t slice;       /* floats of a slice */
	uint32_t rank, ranks;
	uint32_t steps;       /* 2 * (ranks - 1) */
	uint32_t intra;
	uint64_t vector_at, inbox_at; /* inbox: ranks - 1 chunks */
	uint64_t pad[2];
};

LOOM_FN uint32_t allreduce_tag(const struct allreduce *a, uint32_t worker, uint32_t step)
{
	return 1 + worker * a->steps + step;
}

/* Floats from the start of the vector to the slice of `chunk` (modulo the ring) that is `worker`'s. */
LOOM_FN uint64_t allreduce_slice(const struct allreduce *a, uint32_t workers, uint32_t chunk, uint32_t worker)
{
	return ((uint64_t)(chunk % a->ranks) * workers + worker) * a->slice;
}

LOOM_FN void workload_allreduce_kernel(struct loom_ctx *c)
{
	struct allreduce *a = (struct allreduce *)c->global[LOOM_WORKLOAD];
	float *vector = (float *)((char *)a + a->vector_at);
	const float *inbox = (const float *)((char *)a + a->inbox_at);
	uint32_t half = a->ranks - 1;
	for (uint32_t step = 0; step < a->steps; step++) {
		uint32_t tag = allreduce_tag(a, c->worker, step);
		if (!net_fire(c, tag) || !net_deliver(c) || !net_await(c, tag, 1))
			return;
		if (step >= half)
			continue; /* a finished chunk, already in its place */
		uint32_t chunk = a->rank + 2 * a->ranks - step - 1;
		float *sum = vector + allreduce_slice(a, c->workers, chunk, c->worker);
		const float *got = inbox + ((uint64_t)step * c->workers + c->worker) * a->slice;
		for (uint64_t i = c->lane; i < a->slice; i += c->lanes)
			sum[i] = got[i] + sum[i];
	}
}

#endif
