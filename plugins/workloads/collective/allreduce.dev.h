/* SPDX-License-Identifier: Apache-2.0 */
/* Allreduce for workloads: the sum of all ranks' float vectors. This file has the part of the workers, and allreduce.h
 * has the posts. Device code.
 *
 * A workload has one struct loom_allreduce for each vector. Each worker has a struct loom_allreduce_at with its
 * progress for each vector. So a worker can continue other work while sums are in flight (loom_allreduce_go). A vector
 * is cut into slices. A worker has the same slices (loom_allreduce_run) in every round, for the input and for the sum.
 * If a worker computes the input of its own slices, and uses only the sums of these slices, it needs no barrier in
 * between.
 *
 * Ring (GPU-TN, 5.4.1): the vector is cut into one chunk per rank, a chunk into one slice per worker, a slice into
 * pieces. In step s of the first half, a rank sends its running sum for chunk (rank - s) to the next rank. Each step
 * has its own buffer on the next rank. The rank adds the data that it has received to chunk (rank - s - 1). In the
 * second half, finished chunks travel round the ring to their final places. Each piece of each step of each worker has
 * a tag, a post and an arrival word. If the trigger can send from within a kernel, a worker sends a piece on as soon as
 * the piece is summed.
 *
 * Rounds of a ring alternate between two vectors. A rank that has all sums of a round does not know whether its own
 * last pieces of this round have been sent. It knows that its pieces of the previous round have been sent, because the
 * next rank has taken part in this round. One set of buffers suffices for the steps. A rank that has all sums of a
 * round knows that every rank has added the data that it received in the first half.
 *
 * If the slices of workers are small, `share` adjacent workers of a rank have one message: they fire the same tag, whose
 * threshold is their number, and wait for the same arrival word. Each adds the data of its own slices. Their slices of a
 * chunk are adjacent. Halving sends parts of slices, so there equal parts of these slices are adjacent instead.
 *
 * With chain = yes the workers fire only the first step. The network adds, and each arrival triggers the next step.
 *
 * Halving and doubling takes 2 log2(ranks) steps instead of 2 (ranks - 1). In step k, ranks whose numbers differ in bit
 * k send each other half of their data, and add the half that they keep. Then the finished parts return between the
 * same pairs, in reverse order of the steps. The largest parts go to neighbours. If the number of ranks is not a power
 * of two, the ranks beyond the power first send their vectors to a rank below it. In the last step, the rank below the
 * power sends the sums back.
 *
 * The algorithm `levels` has three parts. First, a ring in each group of ranks leaves one summed chunk on each rank.
 * Second, ranks of different groups sum their chunks by halving and doubling. Third, a ring in each group distributes
 * the chunks. So the ring algorithm has one group of all ranks, and halving has groups of one rank. The rules for
 * buffers hold for all three. Each element is summed on one rank, so all ranks get the same bits.
 *
 * If workers can access the memory of the other ranks, they store into it, without posts. Workers add in the order of
 * ranks, so that all ranks get the same bits.
 *
 * oneshot: each rank stores its vector into a slot of each other rank, in words of 8 bytes. A word has 4 bytes of data
 * and 4 bytes with the round. A load gets either the whole new word or the whole old word, so a reader needs no flag
 * and no fence. Rounds alternate between two sets of slots. Two sets suffice, because the lane that reads element i of
 * a round also sends element i of the next round. So this lane knows that the slot of the previous round may be
 * overwritten. The lane's store cannot pass its load, because the branch before the store depends on the load.
 *
 * twoshot: reduce-scatter and gather. Worker w of a rank stores slice w of chunk r to rank r, for all r, and raises a
 * flag there. Then worker w sums its slice of its own rank's chunk, stores the sums to all ranks, and raises another
 * flag. One set of buffers suffices. A rank that has the sums of all ranks knows that the workers of those ranks have
 * read what it sent to them.
 *
 * pull: each rank reads the vectors of all others in place, and stores the sums locally. When its slices of the input
 * are ready, worker w of a rank raises a flag in all other ranks. When it has read the slices of the other ranks, it
 * raises another flag. Between two GPUs the link carries as many bytes as with twoshot, in one pass instead of two. */
#ifndef LOOM_COLLECTIVE_ALLREDUCE_DEV_H
#define LOOM_COLLECTIVE_ALLREDUCE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "net.dev.h"
#endif

/* The parameters of a vector. Fields *_at are offsets in the workload's block for the stack, and are equal on all
 * ranks. */
struct loom_allreduce {
	uint64_t floats; /* floats of the vector, a multiple of ranks * workers */
	uint64_t slice;  /* floats of a slice; the vector has group * workers slices */
	uint64_t piece;  /* floats of a piece; the last piece may have fewer */
	uint32_t pieces;
	uint32_t rank, ranks;
	uint32_t group; /* number of chunks: one for each rank of a ring; 1 without a ring */
	/* a power of two, at most the number of groups; this number of groups take part in halving and doubling */
	uint32_t power;
	uint32_t between; /* number of steps between groups */
	uint32_t steps; /* number of posts of a worker for each piece: between + 2 * (group - 1) */
	uint16_t chain, two_sided; /* two_sided: 1 if messages are sent and received, not put */
	uint32_t algorithm;
	uint32_t first;	  /* number of the first of `tags` tags and arrival words */
	uint32_t tags;
	uint32_t share; /* number of adjacent workers with one message */
	uint64_t late_at; /* offset of an array of struct loom_net_late, one per worker; 0: no posts are late */
	/* The input of round n begins at input_at + n * stride % cycle. inbox_at: where data of other ranks arrive.
	 * If the ranks use posts, these are data to add. Without posts, these are the words of the slots (oneshot), or
	 * one chunk from each rank (twoshot). */
	uint64_t input_at, stride, cycle, inbox_at;
	/* Used without posts. base_at: offset of an array with the address of each rank's block, as these workers
	 * access it. sum_at: offset of the sums. flag_at: offset of the flags. */
	uint64_t base_at, sum_at, flag_at;
};
/* Progress of a worker in a round: the next step, and the next piece of that step. All lanes have equal copies. */
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

/* LOOM_ALLREDUCE_WIDE: number of floats that a lane moves by one access; slices are multiples of it.
 * LOOM_ALLREDUCE_BATCH: number of accesses that a lane has in flight. */
#define LOOM_ALLREDUCE_WIDE 4u
#define LOOM_ALLREDUCE_BATCH 4u
struct loom_allreduce_wide {
	float x, y, z, w;
} __attribute__((aligned(16)));

/* A flag in the memory of a rank. A worker of another rank stores its progress in the flag, as a number that grows with
 * every round. Each flag has a cache line of its own. */
struct loom_allreduce_flag {
	uint64_t round;
	uint64_t pad[7];
};

/* Returns 1 if posted operations move the data, 0 if loads and stores do. */
LOOM_FN int loom_allreduce_posts(const struct loom_allreduce *a)
{
	return a->algorithm <= LOOM_ALLREDUCE_LEVELS;
}

/* Returns the tag of a piece in a step, which is also the number of its arrival word. */
LOOM_FN uint32_t loom_allreduce_tag(const struct loom_allreduce *a, uint32_t worker, uint32_t step, uint32_t piece)
{
	return a->first + (worker / a->share * a->steps + step) * a->pieces + piece;
}

/* Returns the number of floats before the slice of `worker` in `chunk`. The chunk is taken modulo the group. */
LOOM_FN uint64_t loom_allreduce_slice(const struct loom_allreduce *a, uint32_t workers, uint32_t chunk, uint32_t worker)
{
	return ((uint64_t)(chunk % a->group) * workers + worker) * a->slice;
}

LOOM_FN uint64_t loom_allreduce_piece_end(const struct loom_allreduce *a, uint32_t piece)
{
	return piece + 1 == a->pieces ? a->slice : (piece + 1) * a->piece;
}

/* The workers with whose messages those of a worker are sent: `first` is the number of the first, and `count` is the
 * number of them. */
struct loom_allreduce_team {
	uint32_t first, count;
};

LOOM_FN struct loom_allreduce_team loom_allreduce_team(const struct loom_allreduce *a, uint32_t workers,
						       uint32_t worker)
{
	struct loom_allreduce_team t = {worker - worker % a->share, a->share};
	t.count = workers - t.first < t.count ? workers - t.first : t.count;
	return t;
}

/* Returns the number of parts of a slice that are not adjacent. */
LOOM_FN uint32_t loom_allreduce_units(const struct loom_allreduce *a)
{
	return a->share > 1 ? a->power : 1;
}

/* A worker's part of the vector consists of several runs. loom_allreduce_runs() returns their number.
 * loom_allreduce_run() returns the first float of run `i` in *begin, and the first float after it in *end. */
LOOM_FN uint32_t loom_allreduce_runs(const struct loom_allreduce *a)
{
	return a->group * loom_allreduce_units(a);
}

LOOM_FN void loom_allreduce_run(const struct loom_allreduce *a, uint32_t workers, uint32_t worker, uint32_t i,
				uint64_t *begin, uint64_t *end)
{
	const struct loom_allreduce_team t = loom_allreduce_team(a, workers, worker);
	uint32_t units = loom_allreduce_units(a);
	uint64_t unit = a->slice / units;
	*begin = loom_allreduce_slice(a, workers, i / units, t.first) + (i % units * t.count + worker - t.first) * unit;
	*end = *begin + unit;
}

/* Returns the number of the run to compute as number `i`, so that step p of a ring can be fired as soon as the runs of
 * p + 1 chunks are ready: it sends the chunk p places before the rank's own. */
LOOM_FN uint32_t loom_allreduce_order(const struct loom_allreduce *a, uint32_t i)
{
	uint32_t units = loom_allreduce_units(a);
	return (a->rank + a->group - i / units) % a->group * units + i % units;
}

/* Return the addresses of this rank's input in a round, and of its sums. */
LOOM_FN float *loom_allreduce_input(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round)
{
	return (float *)((char *)c->global[LOOM_WORKLOAD] + a->input_at + round * a->stride % a->cycle);
}
LOOM_FN float *loom_allreduce_sums(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round)
{
	return loom_allreduce_posts(a) ? loom_allreduce_input(c, a, round) :
					 (float *)((char *)c->global[LOOM_WORKLOAD] + a->sum_at);
}

/* Returns element i of a rank's input for tests. All bits of its mantissa are used, so that sums in another order
 * differ. */
LOOM_FN float loom_allreduce_element(uint64_t i, uint32_t rank)
{
	uint64_t x = (i * 0x9e3779b97f4a7c15ull) ^ ((rank + 1) * 0xbf58476d1ce4e5b9ull);
	x ^= x >> 29;
	x *= 0x94d049bb133111ebull;
	return (float)(int32_t)(x >> 32) / 65536.0f;
}

/* ---- by posts ------------------------------------------------------------------------------------------ */

#define LOOM_ALLREDUCE_NONE 0xffffffffu

/* Returns the rank to which `rank` sends in a step. If `from` is 1, returns the rank from which `rank` receives.
 * LOOM_ALLREDUCE_NONE: there is no such rank in this step. */
LOOM_FN uint32_t loom_allreduce_peer(const struct loom_allreduce *a, uint32_t rank, uint32_t step, int from)
{
	uint32_t in = rank % a->group, g = rank / a->group, rest = a->ranks / a->group - a->power,
		 half = a->between / 2;
	uint32_t level = step - (a->group - 1);
	if (level >= a->between) /* also true for steps of the first ring, because level has wrapped around */
		return g * a->group + (in + (from ? a->group - 1 : 1)) % a->group;
	if (rest && (level == 0 || level + 1 == a->between)) {
		if ((level == 0) != from)
			return g >= a->power ? rank - a->power * a->group : LOOM_ALLREDUCE_NONE;
		return g < rest ? rank + a->power * a->group : LOOM_ALLREDUCE_NONE;
	}
	level = level < half ? level - (rest > 0) : a->between - 1 - level - (rest > 0);
	return g < a->power ? (g ^ (1u << level)) * a->group + in : LOOM_ALLREDUCE_NONE;
}

/* The part of a piece that the team of a worker sends in a step. */
struct loom_allreduce_part {
	uint64_t begin, floats; /* first float in the vector, and number of floats */
	uint64_t inbox;		/* if `adds` is 1: where the part arrives, in floats from inbox_at */
	uint32_t adds;		/* 1: the target adds the part; 0: the part is finished, and arrives at its final place */
	uint32_t unused;
};

LOOM_FN struct loom_allreduce_part loom_allreduce_part(const struct loom_allreduce *a, uint32_t workers, uint32_t rank,
						       uint32_t worker, uint32_t step, uint32_t piece)
{
	uint32_t in = rank % a->group, g = rank / a->group, ring = a->group - 1, level = step - ring,
		 half = a->between / 2;
	uint32_t rest = a->ranks / a->group > a->power, chunk = in + 1, slot = step;
	uint64_t begin = (uint64_t)piece * a->piece, floats = loom_allreduce_piece_end(a, piece) - begin, skip = 0,
		 part = 0; /* of one worker */
	const struct loom_allreduce_team t = loom_allreduce_team(a, workers, worker);
	if (level >= a->between) {
		uint32_t late = step < ring ? step : step - a->between;
		chunk = in + 2 * a->group - late;
	} else if (!rest || (level && level + 1 < a->between)) {
		/* Each level halves the piece. In the first half of the steps, the rank sends the half that its peer
		 * keeps. On the way back, it sends the part that it has finished. */
		uint32_t down = (level < half ? level : a->between - 1 - level) - rest,
			 keeps = level < half ? g ^ (1u << down) : g;
		uint64_t unit = floats / a->power;
		for (uint32_t k = 0; k <= down; k++)
			skip += (keeps >> k & 1) * (a->power >> (k + 1)) * unit;
		part = (a->power - (a->power >> down)) * unit; /* offset in the inbox, after the data of earlier steps */
		floats = (a->power >> (down + 1)) * unit;
		slot = ring + rest;
	}
	struct loom_allreduce_part p = {loom_allreduce_slice(a, workers, chunk, t.first) + begin + t.count * skip,
					t.count * floats,
					((uint64_t)slot * workers + t.first) * a->slice + begin + t.count * part,
					step < ring || level < half, 0};
	return p;
}

/* Adds the data that arrived in a step for this worker's slices to this rank's sums. Finished data needs no addition. */
LOOM_FN void loom_allreduce_add(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round, uint32_t step,
				uint32_t piece)
{
	const struct loom_allreduce_part p =
		loom_allreduce_part(a, c->workers, loom_allreduce_peer(a, a->rank, step, 1), c->worker, step, piece);
	float *sum = loom_allreduce_input(c, a, round) + p.begin;
	const float *got = (const float *)((char *)c->global[LOOM_WORKLOAD] + a->inbox_at) + p.inbox;
	const struct loom_allreduce_team t = loom_allreduce_team(a, c->workers, c->worker);
	uint64_t own = p.floats / t.count, unit = t.count > 1 ? a->slice / a->power : own;
	if (!p.adds)
		return;
	loom_stream(c, 3 * sizeof(float) * own);
	for (uint64_t at = (c->worker - t.first) * unit; at < p.floats; at += t.count * unit)
		for (uint64_t i = at + c->lane; i < at + unit; i += c->lanes)
			sum[i] = got[i] + sum[i];
}

/* Returns 1 if this rank fires in a step: it sends or, with two_sided, receives. */
LOOM_FN int loom_allreduce_fires(const struct loom_allreduce *a, uint32_t step)
{
	return loom_allreduce_peer(a, a->rank, step, 0) != LOOM_ALLREDUCE_NONE ||
	       (a->two_sided && loom_allreduce_peer(a, a->rank, step, 1) != LOOM_ALLREDUCE_NONE);
}

LOOM_FN uint32_t loom_allreduce_fired(const struct loom_allreduce *a)
{
	return a->chain && a->steps ? 1 : a->steps;
}

/* Implements loom_allreduce_go() for algorithms with posts. */
LOOM_FN int loom_allreduce_posted(struct loom_ctx *c, const struct loom_allreduce *a, struct loom_allreduce_at *at,
				  uint32_t until, int wait)
{
	struct loom_net_late *late =
	    (struct loom_net_late *)((char *)c->global[LOOM_WORKLOAD] + a->late_at) + c->worker;
	late = a->late_at ? late : (struct loom_net_late *)0;
	while (at->step < until) {
		uint32_t step = at->step, piece = at->piece,
			 arrival = loom_allreduce_tag(a, c->worker, step - 1, piece);
		int gets = step > 0 && loom_allreduce_peer(a, a->rank, step - 1, 1) != LOOM_ALLREDUCE_NONE;
		if (gets && !(wait ? loom_net_await_late(c, late, arrival, at->round + 1)
				   : loom_net_arrived(c, arrival, at->round + 1)))
			return 0;
		if (gets && !a->chain)
			loom_allreduce_add(c, a, at->round, step - 1, piece);
		if (step < loom_allreduce_fired(a) && loom_allreduce_fires(a, step) &&
		    !loom_net_fire_late(c, late, loom_allreduce_tag(a, c->worker, step, piece)))
			return 0;
		at->piece = piece + 1 == a->pieces ? 0 : piece + 1;
		at->step += at->piece == 0;
	}
	return 1;
}

/* ---- without posts ------------------------------------------------------------------------------------- */

LOOM_FN char *loom_allreduce_block(struct loom_ctx *c, const struct loom_allreduce *a, uint32_t rank)
{
	char *all = (char *)c->global[LOOM_WORKLOAD];
	return rank == a->rank ? all : (char *)((const uint64_t *)(all + a->base_at))[rank];
}

/* A lane's share of `n` elements, in steps of `step`. Adjacent lanes of a GPU take adjacent elements. Threads of a CPU
 * take consecutive ranges. */
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

/* Returns the slots in the memory of rank `rank` that rank `from` fills in this round. */
LOOM_FN uint64_t *loom_allreduce_slots(struct loom_ctx *c, const struct loom_allreduce *a, uint32_t rank, uint32_t from,
				  uint64_t round)
{
	return (uint64_t *)(loom_allreduce_block(c, a, rank) + a->inbox_at) +
	       ((round & 1) * a->ranks + from) * a->floats;
}

union loom_allreduce_bits {
	float is;
	uint32_t bits;
};

/* Waits until several words of a slot have the mark of their round, and stores them in `word`. The words belong to the
 * elements i, i + step and so on. There are at most LOOM_ALLREDUCE_BATCH words. Returns 1, or 0 when the run is
 * over. */
LOOM_FN int loom_allreduce_await_words(struct loom_ctx *c, const uint64_t *slot, uint64_t i,
				       const struct loom_allreduce_share *s, uint64_t mark, uint64_t *word)
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

/* Adds the words that arrive from all ranks. Returns 1, or 0 when the run is over. */
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

LOOM_FN struct loom_allreduce_flag *loom_allreduce_flag(struct loom_ctx *c, const struct loom_allreduce *a,
							uint32_t rank, uint32_t from, uint32_t half)
{
	struct loom_allreduce_flag *flags =
	    (struct loom_allreduce_flag *)(loom_allreduce_block(c, a, rank) + a->flag_at);
	return flags + ((uint64_t)half * a->ranks + from) * c->workers + c->worker;
}

/* Stores n in flag `half` (0 or 1) of this worker in all other ranks. */
LOOM_FN void loom_allreduce_signal(struct loom_ctx *c, const struct loom_allreduce *a, uint32_t half, uint64_t n)
{
	loom_barrier_lanes(c);
	/* Release: pairs with the acquire in loom_allreduce_await_signals() of the other rank. The barrier above comes
	 * first, so the release covers the accesses of all lanes. */
	for (uint32_t r = 0; r < a->ranks && c->lane == 0; r++)
		if (r != a->rank)
			loom_store_release_sys(&loom_allreduce_flag(c, a, r, a->rank, half)->round, n);
}

/* Collective over lanes. Returns 1 when flag `half` of every other rank is at least n. Returns 0 if a flag is still
 * lower or, with `wait`, if the run is over. */
LOOM_FN int loom_allreduce_await_signals(struct loom_ctx *c, const struct loom_allreduce *a, uint32_t half, uint64_t n,
					 int wait)
{
	uint64_t missing = 0;
	for (uint32_t r = 0; r < a->ranks && c->lane == 0 && !missing; r++)
		while (r != a->rank && !missing &&
		       loom_load_acquire_sys(&loom_allreduce_flag(c, a, a->rank, r, half)->round) < n) {
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

/* Computes to += from if `add` is 1, else to = from. All lanes take part. A lane has the same elements in every call,
 * so calls need no barrier in between. */
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
		float *to = (float *)(loom_allreduce_block(c, a, r) + a->inbox_at) + a->rank * chunk + own;
		if (r != a->rank)
			loom_allreduce_pass(c, to, input + loom_allreduce_slice(a, c->workers, r, c->worker), a->slice,
					    0);
	}
}

LOOM_FN void loom_allreduce_gather(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t round)
{
	uint64_t chunk = a->slice * c->workers, own = (uint64_t)c->worker * a->slice;
	const float *input = loom_allreduce_input(c, a, round);
	const float *got = (const float *)((char *)c->global[LOOM_WORKLOAD] + a->inbox_at) + own;
	uint64_t at = a->sum_at + loom_allreduce_slice(a, c->workers, a->rank, c->worker) * sizeof(float);
	float *sums = (float *)(loom_allreduce_block(c, a, a->rank) + at);
	for (uint32_t r = 0; r < a->ranks; r++)
		loom_allreduce_pass(c, sums, (r == a->rank ? input + own : got) + r * chunk, a->slice, r > 0);
	for (uint32_t r = 0; r < a->ranks; r++)
		if (r != a->rank)
			loom_allreduce_pass(c, (float *)(loom_allreduce_block(c, a, r) + at), sums, a->slice, 0);
}

/* Loads this lane's elements of the batch that begins at element i. */
LOOM_FN void loom_allreduce_fetch(const char *from, uint64_t i, const struct loom_allreduce_share *s,
				  struct loom_allreduce_wide *to)
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
		loom_allreduce_fetch(loom_allreduce_block(c, a, 0) + at, i, &s, sum);
		for (uint32_t r = 1; r < a->ranks; r++) { /* no load depends on the sums, so the loads from all ranks overlap */
			loom_allreduce_fetch(loom_allreduce_block(c, a, r) + at, i, &s, more);
			for (uint32_t b = 0; b < LOOM_ALLREDUCE_BATCH; b++)
				loom_allreduce_wide_add(&sum[b], &more[b]);
		}
		for (uint32_t b = 0; b < LOOM_ALLREDUCE_BATCH; b++)
			if (i + b * s.step < s.end)
				sums[i + b * s.step] = sum[b];
	}
}

/* Implements loom_allreduce_go() without posts. Step 0 sends. Later steps use the data that arrived. */
LOOM_FN int loom_allreduce_direct(struct loom_ctx *c, const struct loom_allreduce *a, struct loom_allreduce_at *at,
				  uint32_t until, int wait)
{
	int marked = a->algorithm == LOOM_ALLREDUCE_ONESHOT; /* each word has its round, so there are no flags */
	for (; at->step < until; at->step++) {
		uint32_t step = at->step;
		if (step == 0)
			loom_barrier_lanes(c); /* a lane may read input that another lane has written */
		if (marked && step == 0)
			loom_allreduce_oneshot_send(c, a, at->round);
		else if (marked && !(wait && loom_allreduce_oneshot_sum(c, a, at->round)))
			return 0;
		if (marked)
			continue;
		if (step > 0 && !loom_allreduce_await_signals(c, a, step - 1, at->round + step, wait))
			return 0;
		if (a->algorithm == LOOM_ALLREDUCE_TWOSHOT && step == 0)
			loom_allreduce_scatter(c, a, at->round);
		else if (a->algorithm == LOOM_ALLREDUCE_TWOSHOT && step == 1)
			loom_allreduce_gather(c, a, at->round);
		else if (step == 1)
			loom_allreduce_pull(c, a, at->round);
		if (step < 2)
			loom_allreduce_signal(c, a, step, at->round + step + 1);
	}
	return 1;
}

/* ---- what a workload calls ------------------------------------------------------------------------------- */

/* Returns the number of steps of a round. The first step does not wait for data. */
LOOM_FN uint32_t loom_allreduce_last(const struct loom_allreduce *a)
{
	return loom_allreduce_posts(a) ? a->steps + 1 : a->algorithm == LOOM_ALLREDUCE_ONESHOT ? 2 : 3;
}

/* Collective over lanes. Continues a round. The input in this worker's slices must be ready. Returns 1 when all steps
 * before `until` are done. If `wait` is 1, the call waits for this, and returns 0 only if the run is over. If `wait` is
 * 0, it returns 0 at once if a step is not done. */
LOOM_FN int loom_allreduce_go(struct loom_ctx *c, const struct loom_allreduce *a, struct loom_allreduce_at *at,
			      uint32_t until, int wait)
{
	if (until > loom_allreduce_last(a))
		until = loom_allreduce_last(a);
	return loom_allreduce_posts(a) ? loom_allreduce_posted(c, a, at, until, wait)
				       : loom_allreduce_direct(c, a, at, until, wait);
}

/* Completes a round of each of `n` vectors. Some triggers send operations only at the end of a kernel. With such a
 * trigger a kernel ends after each step, so all workers must make the same call. Returns 1, or 0 when the run is
 * over. */
LOOM_FN int loom_allreduce_finish(struct loom_ctx *c, const struct loom_allreduce *a, struct loom_allreduce_at *at,
				  uint32_t n)
{
	uint32_t fired = 0, last;
	for (uint32_t i = 0; i < n; i++) /* each vector may have its own algorithm */
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
	loom_barrier_lanes(c); /* a lane may read sums that another lane has stored */
	loom_set_state(c, LOOM_STATE_TASKS);
	return 1;
}

#endif
