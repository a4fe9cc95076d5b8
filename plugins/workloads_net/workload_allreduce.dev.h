/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce, by one of four algorithms. Device code.
 *
 * The ring (GPU-TN, 5.4.1): each worker sends a slice of its own to the next rank, in pieces. The vector is cut into one
 * chunk per rank, a chunk into one slice per worker, a slice into pieces. In step s
 * of the first half a rank sends its running sum of chunk (rank - s) to the next rank, into a buffer of that
 * step, and adds what it got to chunk (rank - s - 1); in the second half finished chunks go round, to their
 * place. Each piece of each step of each worker has a tag, a post and an arrival word of its own, so nothing
 * is reused; a piece goes on as soon as it is summed, where the trigger can send from within a kernel.
 *
 * With chain = yes the workers fire the first step alone: the network adds, and each arrival triggers the
 * step after it.
 *
 * Where workers reach the memory of the other ranks they store there, without posts. All sums are made in the order of
 * the ranks, so that they are the same bits everywhere. A round's input begins some places further than that of the one before.
 *
 * oneshot: each rank stores its vector into a slot of each other rank, in words of 8 bytes: 4 of data, 4 that say of
 * which round. Such a word is seen whole or not at all, so whoever polls the data needs no flag beside them, and no fence.
 * Rounds take two sets of slots in turn. That is enough: element i of a round is read by the lane that sends element i of
 * the next one; who has that has been told that the slot of the round before may be written again. The lane's store does
 * not pass the load on which its branch depended.
 *
 * twoshot: reduce-scatter and gather. Worker w of a rank stores slice w of chunk r to rank r, for all r, and raises a
 * word there; sums its slice of its rank's own chunk, stores the sums to all ranks, and raises another. One set of
 * buffers is enough: who has the sums of all ranks knows that each worker w there has read what it was sent.
 *
 * pull: each rank reads the vectors of all others where they are, and keeps the sums to itself. Worker w of a rank raises a
 * word in all others when its slices of its rank's input are there, and another when it has read theirs. Between two GPUs
 * that is as much over the link as twoshot, in one pass instead of two. */
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
	uint32_t late; /* posts come late: the host is told of fires */
	uint64_t vector_at, inbox_at; /* inbox: ranks - 1 chunks; or slots; or a chunk of each rank */
	/* Of all but the ring. The block lies at base_at[rank] for the workers here. */
	uint64_t base_at, sum_at, met_at;
	uint64_t rounds;
	uint32_t algorithm;
	uint32_t reserved;
};
enum { ALLREDUCE_AUTO, ALLREDUCE_RING, ALLREDUCE_ONESHOT, ALLREDUCE_TWOSHOT, ALLREDUCE_PULL };

/* Floats that a lane moves by one access, where slices are multiples of it; and accesses that it has on their way at once. */
#define ALLREDUCE_WIDE 4u
#define ALLREDUCE_BATCH 4u
struct allreduce_wide {
	float x, y, z, w;
} __attribute__((aligned(16)));

/* Input that differs from round to round: where in the vector it begins, of which there are so many floats more. */
#define ALLREDUCE_TURNED (64u * ALLREDUCE_WIDE)
LOOM_FN uint64_t allreduce_turned(uint64_t round)
{
	return round * ALLREDUCE_WIDE % ALLREDUCE_TURNED;
}

/* A worker's own block. */
struct allreduce_took {
	uint64_t ns; /* all rounds */
	uint64_t pad[7];
};

/* A worker's word of how many rounds another rank's worker of that number has come to, on a line of its own. */
struct allreduce_met {
	uint64_t round;
	uint64_t pad[7];
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
LOOM_FN void allreduce_add(struct loom_ctx *c, const struct allreduce *a, uint32_t step, uint32_t piece)
{
	char *all = (char *)c->global[LOOM_WORKLOAD];
	uint32_t chunk = a->rank + 2 * a->ranks - step - 1;
	float *sum = (float *)(all + a->vector_at) + allreduce_slice(a, c->workers, chunk, c->worker);
	const float *got =
		(const float *)(all + a->inbox_at) + ((uint64_t)step * c->workers + c->worker) * a->slice;
	uint64_t end = allreduce_piece_end(a, piece);
	loom_stream(c, 3 * sizeof(float) * (end - piece * a->piece));
	for (uint64_t i = piece * a->piece + c->lane; i < end; i += c->lanes)
		sum[i] = got[i] + sum[i];
}

/* ---- without posts ------------------------------------------------------------------------------------- */

LOOM_FN char *allreduce_there(struct loom_ctx *c, const struct allreduce *a, uint32_t rank)
{
	char *all = (char *)c->global[LOOM_WORKLOAD];
	return rank == a->rank ? all : (char *)((const uint64_t *)(all + a->base_at))[rank];
}

/* This rank's input of a round. */
LOOM_FN const float *allreduce_input(struct loom_ctx *c, const struct allreduce *a, uint64_t round)
{
	return (const float *)((char *)c->global[LOOM_WORKLOAD] + a->vector_at) + allreduce_turned(round);
}

/* Which of `n` elements are a lane's: those of a GPU's lanes lie side by side, threads have a part each. */
struct allreduce_share {
	uint64_t begin, end, step;
};

LOOM_FN struct allreduce_share allreduce_share(const struct loom_ctx *c, uint64_t n)
{
#ifdef LOOM_DEVICE_COMPILE
	struct allreduce_share s = {c->lane, n, c->lanes};
#else
	struct allreduce_share s = {n * c->lane / c->lanes, n * (c->lane + 1) / c->lanes, 1};
#endif
	return s;
}

/* The slots for what rank `from` sends to `rank`. */
LOOM_FN uint64_t *allreduce_slots(struct loom_ctx *c, const struct allreduce *a, uint32_t rank, uint32_t from,
				  uint64_t round)
{
	return (uint64_t *)(allreduce_there(c, a, rank) + a->inbox_at) + ((round & 1) * a->ranks + from) * a->floats;
}

union allreduce_bits {
	float is;
	uint32_t bits;
};

/* Up to ALLREDUCE_BATCH words of a slot, of elements i, i + step ..., once all have the mark of their round: 1; 0 when
 * the run is over. */
LOOM_FN int allreduce_await_words(struct loom_ctx *c, const uint64_t *slot, uint64_t i, const struct allreduce_share *s,
				  uint64_t mark, uint64_t *word)
{
	for (;;) {
		uint64_t other = 0;
		for (uint32_t b = 0; b < ALLREDUCE_BATCH; b++)
			if (i + b * s->step < s->end) {
				word[b] = loom_load_relaxed_sys(slot + i + b * s->step);
				other |= word[b] ^ mark;
			}
		if (!(other >> 32))
			return 1;
		if (loom_stopped(c))
			return 0;
		loom_pause(c);
	}
}

LOOM_FN int allreduce_oneshot(struct loom_ctx *c, const struct allreduce *a, uint64_t round)
{
	uint64_t part = a->floats / c->workers, from = c->worker * part, mark = (round + 1) << 32;
	const struct allreduce_share s = allreduce_share(c, part);
	const float *input = allreduce_input(c, a, round) + from;
	float *sums = (float *)((char *)c->global[LOOM_WORKLOAD] + a->sum_at) + from;
	for (uint32_t r = 0; r < a->ranks; r++) {
		uint64_t *slots = allreduce_slots(c, a, r, a->rank, round) + from;
		for (uint64_t i = s.begin; i < s.end && r != a->rank; i += s.step) {
			union allreduce_bits mine;
			mine.is = input[i];
			loom_store_relaxed_sys(slots + i, mark | mine.bits);
		}
	}
	for (uint64_t i = s.begin; i < s.end; i += ALLREDUCE_BATCH * s.step) {
		float sum[ALLREDUCE_BATCH] = {0};
		uint64_t word[ALLREDUCE_BATCH] = {0};
		for (uint32_t r = 0; r < a->ranks; r++) {
			const uint64_t *slot = allreduce_slots(c, a, a->rank, r, round) + from;
			if (r != a->rank && !allreduce_await_words(c, slot, i, &s, mark, word))
				return 0;
			for (uint32_t b = 0; b < ALLREDUCE_BATCH; b++)
				if (i + b * s.step < s.end) {
					union allreduce_bits got;
					got.bits = (uint32_t)word[b];
					got.is = r == a->rank ? input[i + b * s.step] : got.is;
					sum[b] = r ? sum[b] + got.is : got.is;
				}
		}
		for (uint32_t b = 0; b < ALLREDUCE_BATCH; b++)
			if (i + b * s.step < s.end)
				sums[i + b * s.step] = sum[b];
	}
	return 1;
}

LOOM_FN struct allreduce_met *allreduce_met(struct loom_ctx *c, const struct allreduce *a, uint32_t rank, uint32_t from,
					    uint32_t half)
{
	struct allreduce_met *met = (struct allreduce_met *)(allreduce_there(c, a, rank) + a->met_at);
	return met + ((uint64_t)half * a->ranks + from) * c->workers + c->worker;
}

/* Tells this worker's number in all other ranks that it has come to that half for the n-th time, and waits for theirs. 1,
 * or 0 when the run is over. Collective. */
LOOM_FN int allreduce_meet(struct loom_ctx *c, const struct allreduce *a, uint32_t half, uint64_t n)
{
	uint64_t over = 0;
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		/* Release: pairs with the acquire below, in the other rank. What all lanes wrote and read is before the barrier. */
		for (uint32_t r = 0; r < a->ranks; r++)
			if (r != a->rank)
				loom_store_release_sys(&allreduce_met(c, a, r, a->rank, half)->round, n);
		for (uint32_t r = 0; r < a->ranks && !over; r++)
			while (r != a->rank && !over &&
			       loom_load_acquire_sys(&allreduce_met(c, a, a->rank, r, half)->round) < n) {
				over = (uint64_t)loom_stopped(c);
				loom_pause(c);
			}
	}
	return loom_from_lane0(c, over) == 0;
}

LOOM_FN void allreduce_wide_add(struct allreduce_wide *to, const struct allreduce_wide *from)
{
	to->x = to->x + from->x;
	to->y = to->y + from->y;
	to->z = to->z + from->z;
	to->w = to->w + from->w;
}

/* to = from, or to = to + from, by all lanes, each with the same elements in every call. */
LOOM_FN void allreduce_pass(struct loom_ctx *c, float *to_, const float *from_, uint64_t n, int add)
{
	struct allreduce_wide *__restrict__ to = (struct allreduce_wide *)to_;
	const struct allreduce_wide *__restrict__ from = (const struct allreduce_wide *)from_;
	const struct allreduce_share s = allreduce_share(c, n / ALLREDUCE_WIDE);
	if (add)
		for (uint64_t i = s.begin; i < s.end; i += s.step)
			allreduce_wide_add(&to[i], &from[i]);
	else
		for (uint64_t i = s.begin; i < s.end; i += s.step)
			to[i] = from[i];
}

LOOM_FN int allreduce_twoshot(struct loom_ctx *c, const struct allreduce *a, uint64_t round)
{
	uint64_t chunk = a->slice * c->workers, own = (uint64_t)c->worker * a->slice;
	const float *input = allreduce_input(c, a, round);
	for (uint32_t r = 0; r < a->ranks; r++) {
		float *to = (float *)(allreduce_there(c, a, r) + a->inbox_at) + a->rank * chunk + own;
		if (r != a->rank)
			allreduce_pass(c, to, input + allreduce_slice(a, c->workers, r, c->worker), a->slice, 0);
	}
	if (!allreduce_meet(c, a, 0, round + 1))
		return 0;
	const float *got = (const float *)((char *)c->global[LOOM_WORKLOAD] + a->inbox_at) + own;
	uint64_t at = a->sum_at + allreduce_slice(a, c->workers, a->rank, c->worker) * sizeof(float);
	float *sums = (float *)(allreduce_there(c, a, a->rank) + at);
	for (uint32_t r = 0; r < a->ranks; r++)
		allreduce_pass(c, sums, (r == a->rank ? input + own : got) + r * chunk, a->slice, r > 0);
	for (uint32_t r = 0; r < a->ranks; r++)
		if (r != a->rank)
			allreduce_pass(c, (float *)(allreduce_there(c, a, r) + at), sums, a->slice, 0);
	return allreduce_meet(c, a, 1, round + 2);
}

/* The elements of a batch that begin at i, of what is at `from`. */
LOOM_FN void allreduce_fetch(const char *from, uint64_t i, const struct allreduce_share *s, struct allreduce_wide *to)
{
	for (uint32_t b = 0; b < ALLREDUCE_BATCH; b++)
		if (i + b * s->step < s->end)
			to[b] = ((const struct allreduce_wide *)from)[i + b * s->step];
}

LOOM_FN int allreduce_pull(struct loom_ctx *c, const struct allreduce *a, uint64_t round)
{
	uint64_t part = a->floats / c->workers, own = c->worker * part;
	uint64_t at = a->vector_at + (own + allreduce_turned(round)) * sizeof(float);
	const struct allreduce_share s = allreduce_share(c, part / ALLREDUCE_WIDE);
	struct allreduce_wide *sums = (struct allreduce_wide *)((char *)c->global[LOOM_WORKLOAD] + a->sum_at) + own / ALLREDUCE_WIDE;
	if (!allreduce_meet(c, a, 0, round + 1))
		return 0;
	for (uint64_t i = s.begin; i < s.end; i += ALLREDUCE_BATCH * s.step) {
		struct allreduce_wide sum[ALLREDUCE_BATCH] = {{0}}, more[ALLREDUCE_BATCH] = {{0}};
		allreduce_fetch(allreduce_there(c, a, 0) + at, i, &s, sum);
		for (uint32_t r = 1; r < a->ranks; r++) { /* nothing needs the first before the next is asked for */
			allreduce_fetch(allreduce_there(c, a, r) + at, i, &s, more);
			for (uint32_t b = 0; b < ALLREDUCE_BATCH; b++)
				allreduce_wide_add(&sum[b], &more[b]);
		}
		for (uint32_t b = 0; b < ALLREDUCE_BATCH; b++)
			if (i + b * s.step < s.end)
				sums[i + b * s.step] = sum[b];
	}
	return allreduce_meet(c, a, 1, round + 2);
}

/* 1, or 0 when the run is over. */
LOOM_FN int allreduce_round(struct loom_ctx *c, const struct allreduce *a, uint64_t round)
{
	return a->algorithm == ALLREDUCE_ONESHOT ? allreduce_oneshot(c, a, round) :
	       a->algorithm == ALLREDUCE_TWOSHOT ? allreduce_twoshot(c, a, round) :
						   allreduce_pull(c, a, round);
}

LOOM_FN void allreduce_direct(struct loom_ctx *c, const struct allreduce *a)
{
	loom_doing(c, LOOM_DOING_MESSAGE);
	/* A rank that begins late is not what a round costs. */
	int going = allreduce_meet(c, a, 1, 1);
	uint64_t begin = loom_clock_ns(c);
	for (uint64_t round = 0; round < a->rounds && going; round++)
		going = allreduce_round(c, a, round);
	loom_doing(c, LOOM_DOING_TASKS);
	loom_barrier_lanes(c);
	if (going && c->lane == 0)
		((struct allreduce_took *)c->own[LOOM_WORKLOAD])->ns = loom_clock_ns(c) - begin;
}

/* ---- the ring ------------------------------------------------------------------------------------------ */

LOOM_FN void workload_allreduce_kernel(struct loom_ctx *c)
{
	struct allreduce *all = (struct allreduce *)c->global[LOOM_WORKLOAD];
	struct allreduce copy = NET_HEAD(c, struct allreduce), *a = &copy;
	if (a->algorithm != ALLREDUCE_RING) {
		allreduce_direct(c, a);
		return;
	}
	struct net_turn *turn = a->late ? allreduce_turn(all, c->worker) : (struct net_turn *)0;
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
