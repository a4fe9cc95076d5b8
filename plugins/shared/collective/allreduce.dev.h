/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of all ranks' float vectors, for workloads: a library of posts (allreduce.h) and of what workers do. Device code.
 *
 * A workload has one struct loom_allreduce for each vector, and its workers a struct loom_allreduce_at: how far they have come. So a
 * worker can go on with something else while sums are under way (loom_allreduce_go), and with several of them at once. A vector
 * is cut into slices; those of a worker (loom_allreduce_run) are the same in every round, from the input to the sum. A worker
 * that makes the input of its own slices, and uses the sums of these alone, needs no barrier in between.
 *
 * The ring (GPU-TN, 5.4.1): each worker sends a slice of its own to the next rank, in pieces. The vector is cut into one
 * chunk per rank, a chunk into one slice per worker, a slice into pieces. In step s
 * of the first half a rank sends its running sum of chunk (rank - s) to the next rank, into a buffer of that
 * step, and adds what it got to chunk (rank - s - 1); in the second half finished chunks go round, to their
 * place. Each piece of each step of each worker has a tag, a post and an arrival word of its own; a piece goes on as soon
 * as it is summed, where the trigger can send from within a kernel.
 *
 * A ring that goes round again takes two vectors in turn: a rank that has all sums of a round does not know that its own last
 * pieces are sent. It knows that of the round before, as the next rank has taken part in this one. One set of buffers is
 * enough for steps: whoever has all sums of a round knows that each rank has taken in what it got in the first half.
 *
 * With chain = yes the workers fire the first step alone: the network adds, and each arrival triggers the
 * step after it.
 *
 * Halving and doubling takes 2 log2(ranks) steps instead of 2 (ranks - 1). In step k ranks whose numbers differ in bit k send
 * each other half of what they hold, and add the half that they keep; then the finished parts go back, over the same pairs in
 * reverse. The largest parts go to neighbours. Ranks beyond a power of two give their vectors to one within it first, and get
 * the sums from it last. Two levels: rings within groups of ranks, of which each rank gets one chunk; halving and doubling of
 * that chunk between the groups; rings again. So the ring is one group of all ranks, and halving groups of one. What is said
 * above of buffers holds for all: who has all sums of a round knows that each rank has taken in what it got, and whoever sent
 * it something has taken part in the round before. Each element is summed on one rank, so all get the same bits.
 *
 * Where workers reach the memory of the other ranks they store there, without posts. All sums are made in the order of
 * the ranks, so that they are the same bits everywhere.
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
#ifndef LOOM_COLLECTIVE_ALLREDUCE_DEV_H
#define LOOM_COLLECTIVE_ALLREDUCE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "net.dev.h"
#endif

/* Where its memory is, in bytes from the start of the workload's block for the stack, which is alike on all ranks, and what it
 * uses of tags and arrival words. */
struct loom_allreduce {
	uint64_t floats; /* of the vector: a multiple of ranks * workers */
	uint64_t slice;  /* floats of a slice: the vector has group * workers */
	uint64_t piece;  /* floats of a piece; the last one may have less */
	uint32_t pieces;
	uint32_t rank, ranks;
	uint32_t group; /* chunks of the vector, one for each rank that a ring goes round; else 1 */
	uint32_t power; /* of two, at most the number of groups: those that halve */
	uint32_t between; /* steps of groups */
	uint32_t steps; /* posts of a worker for a piece: between + 2 * (group - 1) */
	uint32_t chain;
	uint32_t algorithm;
	uint32_t first;	  /* its tags and arrival words are this and the `tags` next ones */
	uint32_t tags;
	uint32_t unused;
	uint64_t turn_at; /* turns of workers with a host that posts late; 0: none */
	/* Input of round n begins n * stride % cycle bytes further. inbox: what is to be added; or slots; or a chunk of each rank. */
	uint64_t input_at, stride, cycle, inbox_at;
	/* Of those without posts. The block lies at base_at[rank] for the workers here. */
	uint64_t base_at, sum_at, met_at;
};
/* How far a worker has come: `step` and `piece` are what it takes next. All lanes have the same. */
struct loom_allreduce_at {
	uint64_t round;
	uint32_t step, piece;
};
enum {
	LOOM_ALLREDUCE_AUTO,
	LOOM_ALLREDUCE_RING,
	LOOM_ALLREDUCE_HALVING,
	LOOM_ALLREDUCE_LEVELS,
	LOOM_ALLREDUCE_ONESHOT,
	LOOM_ALLREDUCE_TWOSHOT,
	LOOM_ALLREDUCE_PULL
};

/* Floats that a lane moves by one access, where slices are multiples of it; and accesses that it has on their way at once. */
#define LOOM_ALLREDUCE_WIDE 4u
#define LOOM_ALLREDUCE_BATCH 4u
struct loom_allreduce_wide {
	float x, y, z, w;
} __attribute__((aligned(16)));

/* A worker's word of how many rounds another rank's worker of that number has come to, on a line of its own. */
struct loom_allreduce_met {
	uint64_t round;
	uint64_t pad[7];
};

/* By posted operations. */
LOOM_FN int loom_allreduce_posts(const struct loom_allreduce *a)
{
	return a->algorithm <= LOOM_ALLREDUCE_LEVELS;
}

/* Tag and arrival word. */
LOOM_FN uint32_t loom_allreduce_tag(const struct loom_allreduce *a, uint32_t worker, uint32_t step, uint32_t piece)
{
	return a->first + (worker * a->steps + step) * a->pieces + piece;
}

/* Floats from the start of the vector to the slice of `chunk` (modulo the group) that is `worker`'s. */
LOOM_FN uint64_t loom_allreduce_slice(const struct loom_allreduce *a, uint32_t workers, uint32_t chunk, uint32_t worker)
{
	return ((uint64_t)(chunk % a->group) * workers + worker) * a->slice;
}

LOOM_FN uint64_t loom_allreduce_piece_end(const struct loom_allreduce *a, uint32_t piece)
{
	return piece + 1 == a->pieces ? a->slice : (piece + 1) * a->piece;
}

/* The `i`-th part of the vector that a worker deals with: how many there are, and floats from `*begin` to `*end`. */
LOOM_FN uint32_t loom_allreduce_runs(const struct loom_allreduce *a)
{
	return a->group;
}

LOOM_FN void loom_allreduce_run(const struct loom_allreduce *a, uint32_t workers, uint32_t worker, uint32_t i, uint64_t *begin,
			   uint64_t *end)
{
	*begin = loom_allreduce_slice(a, workers, i, worker);
	*end = *begin + a->slice;
}

/* This rank's input of a round, and where its sums come to be. */
LOOM_FN float *loom_allreduce_input(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round)
{
	return (float *)((char *)c->global[LOOM_WORKLOAD] + a->input_at + round * a->stride % a->cycle);
}
LOOM_FN float *loom_allreduce_sums(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round)
{
	return loom_allreduce_posts(a) ? loom_allreduce_input(c, a, round) :
					 (float *)((char *)c->global[LOOM_WORKLOAD] + a->sum_at);
}

/* For a broadcast, in front of the round: the input of all ranks but `root` becomes -0 in this worker's slices. Added to a number
 * that changes no bit, so the sum is what root has; of a NaN the payload may change. */
LOOM_FN void loom_allreduce_from(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round, uint32_t root)
{
	float *input = loom_allreduce_input(c, a, round);
	for (uint32_t run = 0; run < loom_allreduce_runs(a) && a->rank != root; run++) {
		uint64_t begin, end;
		loom_allreduce_run(a, c->workers, c->worker, run, &begin, &end);
		for (uint64_t i = begin + c->lane; i < end; i += c->lanes)
			input[i] = -0.0f;
	}
}

/* A value to sum: all bits of the mantissa count, so that the order of a sum shows. */
LOOM_FN float loom_allreduce_element(uint64_t i, uint32_t rank)
{
	uint64_t x = (i * 0x9e3779b97f4a7c15ull) ^ ((rank + 1) * 0xbf58476d1ce4e5b9ull);
	x ^= x >> 29;
	x *= 0x94d049bb133111ebull;
	return (float)(int32_t)(x >> 32) / 65536.0f;
}

/* ---- by posts ------------------------------------------------------------------------------------------ */

#define LOOM_ALLREDUCE_NOBODY 0xffffffffu

/* Whom `rank` sends to in a step, or with `from` gets from. */
LOOM_FN uint32_t loom_allreduce_peer(const struct loom_allreduce *a, uint32_t rank, uint32_t step, int from)
{
	uint32_t in = rank % a->group, g = rank / a->group, rest = a->ranks / a->group - a->power, half = a->between / 2;
	uint32_t level = step - (a->group - 1);
	if (level >= a->between) /* also in front of it */
		return g * a->group + (in + (from ? a->group - 1 : 1)) % a->group;
	if (rest && (level == 0 || level + 1 == a->between)) {
		if ((level == 0) != from)
			return g >= a->power ? rank - a->power * a->group : LOOM_ALLREDUCE_NOBODY;
		return g < rest ? rank + a->power * a->group : LOOM_ALLREDUCE_NOBODY;
	}
	level = level < half ? level - (rest > 0) : a->between - 1 - level - (rest > 0);
	return g < a->power ? (g ^ (1u << level)) * a->group + in : LOOM_ALLREDUCE_NOBODY;
}

/* What a rank sends of a piece. */
struct loom_allreduce_part {
	uint64_t begin, floats; /* of the vector */
	uint64_t inbox;		/* where it lands, in floats, to be added */
	uint32_t adds;		/* 0: it is finished, and lands where it belongs */
	uint32_t unused;
};

LOOM_FN struct loom_allreduce_part loom_allreduce_part(const struct loom_allreduce *a, uint32_t workers, uint32_t rank, uint32_t worker,
						       uint32_t step, uint32_t piece)
{
	uint32_t in = rank % a->group, g = rank / a->group, ring = a->group - 1, level = step - ring, half = a->between / 2;
	uint32_t rest = a->ranks / a->group > a->power, chunk = in + 1, slot = step;
	uint64_t begin = (uint64_t)piece * a->piece, floats = loom_allreduce_piece_end(a, piece) - begin, skip = 0, part = 0;
	if (level >= a->between) {
		uint32_t turn = step < ring ? step : step - a->between;
		chunk = in + 2 * a->group - turn;
	} else if (!rest || (level && level + 1 < a->between)) {
		/* Halved down to this level: those that the other keeps, or those that are finished here. */
		uint32_t down = (level < half ? level : a->between - 1 - level) - rest, keeps = level < half ? g ^ (1u << down) : g;
		uint64_t unit = floats / a->power;
		for (uint32_t k = 0; k <= down; k++)
			skip += (keeps >> k & 1) * (a->power >> (k + 1)) * unit;
		part = (a->power - (a->power >> down)) * unit; /* behind what the steps before brought */
		floats = (a->power >> (down + 1)) * unit;
		slot = ring + rest;
	}
	struct loom_allreduce_part p = {loom_allreduce_slice(a, workers, chunk, worker) + begin + skip, floats,
					((uint64_t)slot * workers + worker) * a->slice + begin + part, step < ring || level < half, 0};
	return p;
}

/* What arrived in a step is added to its place. */
LOOM_FN void loom_allreduce_add(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round, uint32_t step, uint32_t piece)
{
	const struct loom_allreduce_part p =
		loom_allreduce_part(a, c->workers, loom_allreduce_peer(a, a->rank, step, 1), c->worker, step, piece);
	float *sum = loom_allreduce_input(c, a, round) + p.begin;
	const float *got = (const float *)((char *)c->global[LOOM_WORKLOAD] + a->inbox_at) + p.inbox;
	if (!p.adds)
		return;
	loom_stream(c, 3 * sizeof(float) * p.floats);
	for (uint64_t i = c->lane; i < p.floats; i += c->lanes)
		sum[i] = got[i] + sum[i];
}

LOOM_FN uint32_t loom_allreduce_fired(const struct loom_allreduce *a)
{
	return a->chain && a->steps ? 1 : a->steps;
}

/* As allreduce_go. */
LOOM_FN int loom_allreduce_posted(struct loom_ctx *c, const struct loom_allreduce *a, struct loom_allreduce_at *at, uint32_t until, int wait)
{
	struct loom_net_turn *turn = (struct loom_net_turn *)((char *)c->global[LOOM_WORKLOAD] + a->turn_at) + c->worker;
	turn = a->turn_at ? turn : (struct loom_net_turn *)0;
	while (at->step < until) {
		uint32_t step = at->step, piece = at->piece, came = loom_allreduce_tag(a, c->worker, step - 1, piece);
		int gets = step > 0 && loom_allreduce_peer(a, a->rank, step - 1, 1) != LOOM_ALLREDUCE_NOBODY;
		if (gets && !(wait ? loom_net_await_turn(c, turn, came, at->round + 1) : loom_net_has(c, came, at->round + 1)))
			return 0;
		if (gets && !a->chain)
			loom_allreduce_add(c, a, at->round, step - 1, piece);
		if (step < loom_allreduce_fired(a) && loom_allreduce_peer(a, a->rank, step, 0) != LOOM_ALLREDUCE_NOBODY &&
		    !loom_net_fire_turn(c, turn, loom_allreduce_tag(a, c->worker, step, piece)))
			return 0;
		at->piece = piece + 1 == a->pieces ? 0 : piece + 1;
		at->step += at->piece == 0;
	}
	return 1;
}

/* ---- without posts ------------------------------------------------------------------------------------- */

LOOM_FN char *loom_allreduce_there(struct loom_ctx *c, const struct loom_allreduce *a, uint32_t rank)
{
	char *all = (char *)c->global[LOOM_WORKLOAD];
	return rank == a->rank ? all : (char *)((const uint64_t *)(all + a->base_at))[rank];
}

/* Which of `n` elements are a lane's: those of a GPU's lanes lie side by side, threads have a part each. */
struct loom_allreduce_share {
	uint64_t begin, end, step;
};

LOOM_FN struct loom_allreduce_share loom_allreduce_share(const struct loom_ctx *c, uint64_t n)
{
#ifdef LOOM_DEVICE_COMPILE
	struct loom_allreduce_share s = {c->lane, n, c->lanes};
#else
	struct loom_allreduce_share s = {n * c->lane / c->lanes, n * (c->lane + 1) / c->lanes, 1};
#endif
	return s;
}

/* The slots for what rank `from` sends to `rank`. */
LOOM_FN uint64_t *loom_allreduce_slots(struct loom_ctx *c, const struct loom_allreduce *a, uint32_t rank, uint32_t from,
				  uint64_t round)
{
	return (uint64_t *)(loom_allreduce_there(c, a, rank) + a->inbox_at) + ((round & 1) * a->ranks + from) * a->floats;
}

union loom_allreduce_bits {
	float is;
	uint32_t bits;
};

/* Up to LOOM_ALLREDUCE_BATCH words of a slot, of elements i, i + step ..., once all have the mark of their round: 1; 0 when
 * the run is over. */
LOOM_FN int loom_allreduce_await_words(struct loom_ctx *c, const uint64_t *slot, uint64_t i, const struct loom_allreduce_share *s,
				  uint64_t mark, uint64_t *word)
{
	for (;;) {
		uint64_t other = 0;
		for (uint32_t b = 0; b < LOOM_ALLREDUCE_BATCH; b++)
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

LOOM_FN void loom_allreduce_oneshot_send(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round)
{
	uint64_t part = a->floats / c->workers, from = c->worker * part, mark = (round + 1) << 32;
	const struct loom_allreduce_share s = loom_allreduce_share(c, part);
	const float *input = loom_allreduce_input(c, a, round) + from;
	for (uint32_t r = 0; r < a->ranks; r++) {
		uint64_t *slots = loom_allreduce_slots(c, a, r, a->rank, round) + from;
		for (uint64_t i = s.begin; i < s.end && r != a->rank; i += s.step) {
			union loom_allreduce_bits mine;
			mine.is = input[i];
			loom_store_relaxed_sys(slots + i, mark | mine.bits);
		}
	}
}

/* 1; 0 when the run is over. */
LOOM_FN int loom_allreduce_oneshot_sum(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round)
{
	uint64_t part = a->floats / c->workers, from = c->worker * part, mark = (round + 1) << 32;
	const struct loom_allreduce_share s = loom_allreduce_share(c, part);
	const float *input = loom_allreduce_input(c, a, round) + from;
	float *sums = loom_allreduce_sums(c, a, round) + from;
	for (uint64_t i = s.begin; i < s.end; i += LOOM_ALLREDUCE_BATCH * s.step) {
		float sum[LOOM_ALLREDUCE_BATCH] = {0};
		uint64_t word[LOOM_ALLREDUCE_BATCH] = {0};
		for (uint32_t r = 0; r < a->ranks; r++) {
			const uint64_t *slot = loom_allreduce_slots(c, a, a->rank, r, round) + from;
			if (r != a->rank && !loom_allreduce_await_words(c, slot, i, &s, mark, word))
				return 0;
			for (uint32_t b = 0; b < LOOM_ALLREDUCE_BATCH; b++)
				if (i + b * s.step < s.end) {
					union loom_allreduce_bits got;
					got.bits = (uint32_t)word[b];
					got.is = r == a->rank ? input[i + b * s.step] : got.is;
					sum[b] = r ? sum[b] + got.is : got.is;
				}
		}
		for (uint32_t b = 0; b < LOOM_ALLREDUCE_BATCH; b++)
			if (i + b * s.step < s.end)
				sums[i + b * s.step] = sum[b];
	}
	return 1;
}

LOOM_FN struct loom_allreduce_met *loom_allreduce_met(struct loom_ctx *c, const struct loom_allreduce *a, uint32_t rank, uint32_t from,
					    uint32_t half)
{
	struct loom_allreduce_met *met = (struct loom_allreduce_met *)(loom_allreduce_there(c, a, rank) + a->met_at);
	return met + ((uint64_t)half * a->ranks + from) * c->workers + c->worker;
}

/* Tells this worker's number in all other ranks that it has come to that half for the n-th time. */
LOOM_FN void loom_allreduce_tell(struct loom_ctx *c, const struct loom_allreduce *a, uint32_t half, uint64_t n)
{
	loom_barrier_lanes(c);
	/* Release: pairs with the acquire below, in the other rank. What all lanes wrote and read is before the barrier. */
	for (uint32_t r = 0; r < a->ranks && c->lane == 0; r++)
		if (r != a->rank)
			loom_store_release_sys(&loom_allreduce_met(c, a, r, a->rank, half)->round, n);
}

/* 1: all of them have told. 0: not yet; with `wait`, the run is over. Collective. */
LOOM_FN int loom_allreduce_told(struct loom_ctx *c, const struct loom_allreduce *a, uint32_t half, uint64_t n, int wait)
{
	uint64_t missing = 0;
	for (uint32_t r = 0; r < a->ranks && c->lane == 0 && !missing; r++)
		while (r != a->rank && !missing &&
		       loom_load_acquire_sys(&loom_allreduce_met(c, a, a->rank, r, half)->round) < n) {
			missing = (uint64_t)(!wait || loom_stopped(c));
			loom_pause(c);
		}
	return loom_from_lane0(c, missing) == 0;
}

LOOM_FN void loom_allreduce_wide_add(struct loom_allreduce_wide *to, const struct loom_allreduce_wide *from)
{
	to->x = to->x + from->x;
	to->y = to->y + from->y;
	to->z = to->z + from->z;
	to->w = to->w + from->w;
}

/* to = from, or to = to + from, by all lanes, each with the same elements in every call. */
LOOM_FN void loom_allreduce_pass(struct loom_ctx *c, float *to_, const float *from_, uint64_t n, int add)
{
	struct loom_allreduce_wide *__restrict__ to = (struct loom_allreduce_wide *)to_;
	const struct loom_allreduce_wide *__restrict__ from = (const struct loom_allreduce_wide *)from_;
	const struct loom_allreduce_share s = loom_allreduce_share(c, n / LOOM_ALLREDUCE_WIDE);
	if (add)
		for (uint64_t i = s.begin; i < s.end; i += s.step)
			loom_allreduce_wide_add(&to[i], &from[i]);
	else
		for (uint64_t i = s.begin; i < s.end; i += s.step)
			to[i] = from[i];
}

LOOM_FN void loom_allreduce_scatter(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round)
{
	uint64_t chunk = a->slice * c->workers, own = (uint64_t)c->worker * a->slice;
	const float *input = loom_allreduce_input(c, a, round);
	for (uint32_t r = 0; r < a->ranks; r++) {
		float *to = (float *)(loom_allreduce_there(c, a, r) + a->inbox_at) + a->rank * chunk + own;
		if (r != a->rank)
			loom_allreduce_pass(c, to, input + loom_allreduce_slice(a, c->workers, r, c->worker), a->slice, 0);
	}
}

LOOM_FN void loom_allreduce_gather(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round)
{
	uint64_t chunk = a->slice * c->workers, own = (uint64_t)c->worker * a->slice;
	const float *input = loom_allreduce_input(c, a, round);
	const float *got = (const float *)((char *)c->global[LOOM_WORKLOAD] + a->inbox_at) + own;
	uint64_t at = a->sum_at + loom_allreduce_slice(a, c->workers, a->rank, c->worker) * sizeof(float);
	float *sums = (float *)(loom_allreduce_there(c, a, a->rank) + at);
	for (uint32_t r = 0; r < a->ranks; r++)
		loom_allreduce_pass(c, sums, (r == a->rank ? input + own : got) + r * chunk, a->slice, r > 0);
	for (uint32_t r = 0; r < a->ranks; r++)
		if (r != a->rank)
			loom_allreduce_pass(c, (float *)(loom_allreduce_there(c, a, r) + at), sums, a->slice, 0);
}

/* The elements of a batch that begin at i, of what is at `from`. */
LOOM_FN void loom_allreduce_fetch(const char *from, uint64_t i, const struct loom_allreduce_share *s, struct loom_allreduce_wide *to)
{
	for (uint32_t b = 0; b < LOOM_ALLREDUCE_BATCH; b++)
		if (i + b * s->step < s->end)
			to[b] = ((const struct loom_allreduce_wide *)from)[i + b * s->step];
}

LOOM_FN void loom_allreduce_pull(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round)
{
	uint64_t part = a->floats / c->workers, own = c->worker * part;
	uint64_t at = a->input_at + round * a->stride % a->cycle + own * sizeof(float);
	const struct loom_allreduce_share s = loom_allreduce_share(c, part / LOOM_ALLREDUCE_WIDE);
	struct loom_allreduce_wide *sums = (struct loom_allreduce_wide *)(loom_allreduce_sums(c, a, round) + own);
	for (uint64_t i = s.begin; i < s.end; i += LOOM_ALLREDUCE_BATCH * s.step) {
		struct loom_allreduce_wide sum[LOOM_ALLREDUCE_BATCH] = {{0}}, more[LOOM_ALLREDUCE_BATCH] = {{0}};
		loom_allreduce_fetch(loom_allreduce_there(c, a, 0) + at, i, &s, sum);
		for (uint32_t r = 1; r < a->ranks; r++) { /* nothing needs the first before the next is asked for */
			loom_allreduce_fetch(loom_allreduce_there(c, a, r) + at, i, &s, more);
			for (uint32_t b = 0; b < LOOM_ALLREDUCE_BATCH; b++)
				loom_allreduce_wide_add(&sum[b], &more[b]);
		}
		for (uint32_t b = 0; b < LOOM_ALLREDUCE_BATCH; b++)
			if (i + b * s.step < s.end)
				sums[i + b * s.step] = sum[b];
	}
}

/* Step 0 gives, the next ones take what has come of the others. As allreduce_go. */
LOOM_FN int loom_allreduce_direct(struct loom_ctx *c, const struct loom_allreduce *a, struct loom_allreduce_at *at, uint32_t until, int wait)
{
	int marked = a->algorithm == LOOM_ALLREDUCE_ONESHOT; /* each word by itself */
	for (; at->step < until; at->step++) {
		uint32_t step = at->step;
		if (step == 0)
			loom_barrier_lanes(c); /* the input of a lane may be another's work */
		if (marked && step == 0)
			loom_allreduce_oneshot_send(c, a, at->round);
		else if (marked && !(wait && loom_allreduce_oneshot_sum(c, a, at->round)))
			return 0;
		if (marked)
			continue;
		if (step > 0 && !loom_allreduce_told(c, a, step - 1, at->round + step, wait))
			return 0;
		if (a->algorithm == LOOM_ALLREDUCE_TWOSHOT && step == 0)
			loom_allreduce_scatter(c, a, at->round);
		else if (a->algorithm == LOOM_ALLREDUCE_TWOSHOT && step == 1)
			loom_allreduce_gather(c, a, at->round);
		else if (step == 1)
			loom_allreduce_pull(c, a, at->round);
		if (step < 2)
			loom_allreduce_tell(c, a, step, at->round + step + 1);
	}
	return 1;
}

/* ---- what a workload calls ------------------------------------------------------------------------------- */

/* Steps of a round. The first waits for nobody. */
LOOM_FN uint32_t loom_allreduce_last(const struct loom_allreduce *a)
{
	return loom_allreduce_posts(a) ? a->steps + 1 : a->algorithm == LOOM_ALLREDUCE_ONESHOT ? 2 : 3;
}

/* Goes on with a round, whose input in this worker's slices is there: 1 when all steps before `until` are done. 0: not yet,
 * and a call with `wait` comes back only when they are, or with 0 when the run is over. Collective over lanes. */
LOOM_FN int loom_allreduce_go(struct loom_ctx *c, const struct loom_allreduce *a, struct loom_allreduce_at *at, uint32_t until, int wait)
{
	if (until > loom_allreduce_last(a))
		until = loom_allreduce_last(a);
	return loom_allreduce_posts(a) ? loom_allreduce_posted(c, a, at, until, wait) : loom_allreduce_direct(c, a, at, until, wait);
}

/* Brings the rounds of `n` of them to their ends. Where nothing is sent before the end of a kernel, kernels end between the
 * steps, so all workers call this alike. 1, or 0 when the run is over. */
LOOM_FN int loom_allreduce_finish(struct loom_ctx *c, const struct loom_allreduce *a, struct loom_allreduce_at *at, uint32_t n)
{
	uint32_t fired = 0, last;
	for (uint32_t i = 0; i < n; i++) /* some may halve, others go round */
		fired = loom_allreduce_fired(&a[i]) > fired ? loom_allreduce_fired(&a[i]) : fired;
	last = fired + 1 > 3 ? fired + 1 : 3;
	loom_set_state(c, LOOM_STATE_MESSAGE);
	for (uint32_t until = 1; until <= last; until++) {
		for (uint32_t i = 0; i < n; i++)
			if (!loom_allreduce_go(c, &a[i], &at[i], until < last ? until : loom_allreduce_last(&a[i]), 1))
				return 0;
		if (until <= fired && !loom_net_deliver(c))
			return 0;
	}
	loom_barrier_lanes(c); /* as may the sums be that it reads now */
	loom_set_state(c, LOOM_STATE_TASKS);
	return 1;
}

#endif
