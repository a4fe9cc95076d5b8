/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce: a ring over the ranks; each worker sends a slice of its own, in pieces (GPU-TN, 5.4.1). Device
 * code.
 *
 * The vector is cut into one chunk per rank, a chunk into one slice per worker, a slice into pieces. In step s
 * of the first half a rank sends its running sum of chunk (rank - s) to the next rank, into a buffer of that
 * step, and adds what it got to chunk (rank - s - 1); in the second half finished chunks go round, to their
 * place. Each piece of each step of each worker has a tag, a post and an arrival word of its own, so nothing
 * is reused; a piece goes on as soon as it is summed, where the trigger can send from within a kernel.
 *
 * With chain = yes the workers fire the first step alone: the network adds, and each arrival triggers the
 * step after it. */
#ifndef WORKLOAD_ALLREDUCE_DEV_H
#define WORKLOAD_ALLREDUCE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "net.dev.h"
#endif

/* Head of the global block; then a turn for each worker. */
struct allreduce {
	uint64_t floats; /* of the vector: a multiple of ranks * workers */
	uint64_t slice;  /* floats of a slice */
	uint64_t piece;  /* floats of a piece; the last one may have less */
	uint32_t pieces;
	uint32_t rank, ranks;
	uint32_t steps; /* 2 * (ranks - 1) */
	uint32_t chain;
	uint32_t reserved;
	uint64_t vector_at, inbox_at; /* inbox: ranks - 1 chunks */
};

LOOM_FN struct net_turn *allreduce_turn(struct allreduce *a, uint32_t worker)
{
	return (struct net_turn *)(a + 1) + worker;
}

/* Tag and arrival word. */
LOOM_FN uint32_t allreduce_tag(const struct allreduce *a, uint32_t worker, uint32_t step, uint32_t piece)
{
	return 1 + (worker * a->steps + step) * a->pieces + piece;
}

/* Floats from the start of the vector to the slice of `chunk` (modulo the ring) that is `worker`'s. */
LOOM_FN uint64_t allreduce_slice(const struct allreduce *a, uint32_t workers, uint32_t chunk, uint32_t worker)
{
	return ((uint64_t)(chunk % a->ranks) * workers + worker) * a->slice;
}

LOOM_FN uint64_t allreduce_piece_end(const struct allreduce *a, uint32_t piece)
{
	return piece + 1 == a->pieces ? a->slice : (piece + 1) * a->piece;
}

/* What arrived in `step` of the first half is added to its place. */
LOOM_FN void allreduce_add(struct loom_ctx *c, struct allreduce *a, uint32_t step, uint32_t piece)
{
	uint32_t chunk = a->rank + 2 * a->ranks - step - 1;
	float *sum = (float *)((char *)a + a->vector_at) + allreduce_slice(a, c->workers, chunk, c->worker);
	const float *got =
		(const float *)((char *)a + a->inbox_at) + ((uint64_t)step * c->workers + c->worker) * a->slice;
	uint64_t end = allreduce_piece_end(a, piece);
	for (uint64_t i = piece * a->piece + c->lane; i < end; i += c->lanes)
		sum[i] = got[i] + sum[i];
}

LOOM_FN void workload_allreduce_kernel(struct loom_ctx *c)
{
	struct allreduce *a = (struct allreduce *)c->global[LOOM_WORKLOAD];
	struct net_turn *turn = allreduce_turn(a, c->worker);
	uint32_t half = a->ranks - 1, fired = a->chain && a->steps ? 1 : a->steps;
	for (uint32_t step = 0; step < fired; step++) {
		for (uint32_t piece = 0; piece < a->pieces; piece++) {
			if (step > 0 && !net_await_turn(c, turn, allreduce_tag(a, c->worker, step - 1, piece), 1))
				return;
			if (step > 0 && step <= half)
				allreduce_add(c, a, step - 1, piece);
			if (!net_fire_turn(c, turn, allreduce_tag(a, c->worker, step, piece)))
				return;
		}
		if (!net_deliver(c))
			return;
	}
	/* The last step; a chain's finished chunks all. */
	for (uint32_t step = a->chain ? half - 1 : a->steps - 1; a->steps && step < a->steps; step++)
		for (uint32_t piece = 0; piece < a->pieces; piece++)
			if (!net_await_turn(c, turn, allreduce_tag(a, c->worker, step, piece), 1))
				return;
}

#endif
