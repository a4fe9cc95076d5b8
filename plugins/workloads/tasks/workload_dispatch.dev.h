/* SPDX-License-Identifier: Apache-2.0 */
/* workload_dispatch: experts in parallel. Each rank has some of the experts and some of the tokens. Device code.
 *
 * Dispatch: the rank of a token stores the token's row into each rank that has one of its experts, once for all of them,
 * and then a note with the experts. A rank without such an expert gets an empty note, so each note is awaited, and no count
 * is exchanged beforehand. Answer: a rank multiplies the row by the vector of each of its experts that the token has
 * chosen, number by number, adds these products with the token's weights, and stores the sum into the rank of the token.
 * Combine: the rank of the token adds the answers.
 *
 * A place is a rank and the number of one of its tokens. Rows, notes and answers have their own memory for each place, at
 * equal offsets in the blocks of all ranks. So no two workers store to the same memory, and a sender needs no permission:
 * it sends the row of the next round after it has combined the answers to this row, which were stored after the row was
 * read. An answer of the next round is stored after its note has arrived, and the note is sent after the answers of this
 * round were read.
 *
 * In the rounds, all workers of all ranks meet before dispatch, and again before combine, so that each has a time of its own. Then comes the step: rows are answered by tasks as they arrive, under the scheduler. */
#ifndef WORKLOAD_DISPATCH_DEV_H
#define WORKLOAD_DISPATCH_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "task.dev.h"
#include "tile.dev.h"
#endif

#define DISPATCH_RANKS_MOST 64u
#define DISPATCH_BATCH 2u /* pieces of 16 bytes that a lane has in flight */
#define DISPATCH_GROUP 4u /* rows of a worker that one release covers */
enum { DISPATCH_BEGUN, DISPATCH_ARRIVED, DISPATCH_ANSWERS, DISPATCH_COMBINED, DISPATCH_STAMPS };

/* Head of the block for the stack, with byte offsets that are equal on all ranks. A number is a bfloat16. */
struct dispatch {
	uint32_t rank, ranks;
	uint32_t own, most; /* tokens of this rank; those of the rank that has most */
	uint32_t experts, top;
	uint32_t dim;    /* numbers of a row, a multiple of 8 */
	uint32_t rounds; /* rounds before the step */
	uint64_t base_at;   /* [ranks] uint64_t: address of each rank's block */
	uint64_t meet_at;   /* [ranks][workers] uint64_t: number of meetings at which a worker has arrived */
	uint64_t choice_at; /* [most][top] uint32_t: the experts that this rank's tokens choose */
	uint64_t x_at;	    /* [most][dim]: the rows of this rank's tokens */
	uint64_t factor_at; /* [experts][dim]: the vectors of experts */
	uint64_t note_at;   /* [ranks][most] notes */
	uint64_t note_bytes;
	uint64_t in_at;	    /* [ranks][most][dim]: rows that arrived */
	uint64_t done_at;   /* [most][ranks] uint64_t: the round whose answer has arrived */
	uint64_t back_at;   /* [most][ranks][dim]: answers that arrived */
	uint64_t out_at;    /* [2][most][dim]: outputs of the rounds, and of the step */
	uint64_t pad[1];
};

/* `n` experts of the rank that gets the note follow, each a uint32_t and the token's weight for it as a float. */
struct dispatch_note {
	uint64_t round;
	uint32_t n, pad;
};
struct dispatch_share {
	uint32_t expert;
	float weight;
};

#define DISPATCH_AT(c, d, type, what) ((type *)((char *)(c)->global[LOOM_WORKLOAD] + (d)->what##_at))

/* Ranks have contiguous ranges of experts, as for experts_routing.c: rank r has those from r * experts / ranks on. */
LOOM_FN uint32_t dispatch_home(uint32_t experts, uint32_t ranks, uint32_t expert)
{
	return ((expert + 1) * ranks - 1) / experts;
}

/* Inputs for tests: small integers, so that all sums are exact. */
LOOM_FN float dispatch_weight(uint32_t rank, uint32_t token, uint32_t k)
{
	return (float)(1 + (rank + token + k) % 2);
}

LOOM_FN char *dispatch_block(struct loom_ctx *c, const struct dispatch *d, uint32_t rank)
{
	return rank == d->rank ? (char *)c->global[LOOM_WORKLOAD] :
				 (char *)DISPATCH_AT(c, d, const uint64_t, base)[rank];
}

LOOM_FN struct dispatch_note *dispatch_note(struct loom_ctx *c, const struct dispatch *d, uint32_t rank, uint64_t place)
{
	return (struct dispatch_note *)(dispatch_block(c, d, rank) + d->note_at + place * d->note_bytes);
}

/* Returns row `row` of the rows at offset `at` of a rank. */
LOOM_FN struct tile_eight *dispatch_row(struct loom_ctx *c, const struct dispatch *d, uint32_t rank, uint64_t at, uint64_t row)
{
	return (struct tile_eight *)(dispatch_block(c, d, rank) + at + row * d->dim * 2);
}

LOOM_FN uint32_t dispatch_round(float x) /* to the nearest bfloat16 */
{
	union tile_bits v;
	v.number = x;
	return (v.bits + 0x7fffu + (v.bits >> 16 & 1)) >> 16;
}

LOOM_FN struct tile_eight dispatch_pack(const float *eight)
{
	struct tile_eight v;
	TILE_UNROLL
	for (uint32_t i = 0; i < 4; i++)
		v.w[i] = dispatch_round(eight[2 * i]) | dispatch_round(eight[2 * i + 1]) << 16;
	return v;
}

/* Loads a batch of a row's pieces: piece j, and every lanes-th behind it. */
LOOM_FN void dispatch_load(const struct loom_ctx *c, const struct tile_eight *row, uint32_t j, uint32_t end, struct tile_eight *v)
{
	TILE_UNROLL
	for (uint32_t b = 0; b < DISPATCH_BATCH; b++)
		if (j + b * c->lanes < end)
			v[b] = row[j + b * c->lanes];
}

LOOM_FN void dispatch_store(const struct loom_ctx *c, struct tile_eight *row, uint32_t j, uint32_t end, const struct tile_eight *v)
{
	TILE_UNROLL
	for (uint32_t b = 0; b < DISPATCH_BATCH; b++)
		if (j + b * c->lanes < end)
			row[j + b * c->lanes] = v[b];
}

/* Returns the ranks that have an expert of one of this rank's tokens, as bits. */
LOOM_FN uint64_t dispatch_targets(struct loom_ctx *c, const struct dispatch *d, uint32_t token)
{
	const uint32_t *choice = DISPATCH_AT(c, d, const uint32_t, choice) + (uint64_t)token * d->top;
	uint64_t targets = 0;
	LOOM_NO_UNROLL
	for (uint32_t k = 0; k < d->top && token < d->own; k++)
		targets |= 1ull << dispatch_home(d->experts, d->ranks, choice[k]);
	return targets;
}

/* Writes the note of a token for a rank, except `round`. */
LOOM_FN void dispatch_write(struct loom_ctx *c, const struct dispatch *d, uint32_t token, uint32_t rank)
{
	const uint32_t *choice = DISPATCH_AT(c, d, const uint32_t, choice) + (uint64_t)token * d->top;
	struct dispatch_note *note = dispatch_note(c, d, rank, (uint64_t)d->rank * d->most + token);
	struct dispatch_share *share = (struct dispatch_share *)(note + 1);
	uint32_t n = 0;
	LOOM_NO_UNROLL
	for (uint32_t k = 0; k < d->top && token < d->own; k++)
		if (dispatch_home(d->experts, d->ranks, choice[k]) == rank) {
			share[n].expert = choice[k];
			share[n++].weight = dispatch_weight(d->rank, token, k);
		}
	note->n = n;
}

/* Stores a token's row into the ranks of its experts, and writes all its notes. */
LOOM_FN void dispatch_store_token(struct loom_ctx *c, const struct dispatch *d, uint32_t token)
{
	const uint64_t targets = dispatch_targets(c, d, token), place = (uint64_t)d->rank * d->most + token;
	const struct tile_eight *x = dispatch_row(c, d, d->rank, d->x_at, token);
	const uint32_t end = targets ? d->dim / 8 : 0;
	LOOM_NO_UNROLL
	for (uint32_t r = c->lane; r < d->ranks; r += c->lanes)
		dispatch_write(c, d, token, r);
	LOOM_NO_UNROLL
	for (uint32_t j = c->lane; j < end; j += DISPATCH_BATCH * c->lanes) {
		struct tile_eight v[DISPATCH_BATCH] = {{{0, 0, 0, 0}}};
		dispatch_load(c, x, j, end, v);
		LOOM_NO_UNROLL
		for (uint32_t i = 1; i <= d->ranks; i++) { /* the own rank is the last, as its memory is near */
			uint32_t r = (d->rank + i) % d->ranks;
			if (targets >> r & 1)
				dispatch_store(c, dispatch_row(c, d, r, d->in_at, place), j, end, v);
		}
	}
	loom_stream(c, 2ull * d->dim * d->ranks);
}

/* Sends this worker's tokens: some rows, then their notes, as a release waits until all stores have crossed the link. If this rank
 * has fewer tokens than another one, it sends empty notes for the rest. */
LOOM_FN void dispatch_send(struct loom_ctx *c, const struct dispatch *d, uint64_t round)
{
	LOOM_NO_UNROLL
	for (uint32_t first = c->worker; first < d->most; first += DISPATCH_GROUP * c->workers) {
		uint32_t n = 0;
		LOOM_NO_UNROLL
		for (; n < DISPATCH_GROUP && first + n * c->workers < d->most; n++)
			dispatch_store_token(c, d, first + n * c->workers);
		loom_barrier_lanes(c);
		/* Release: pairs with the acquire in dispatch_arrived(). The stores of the other lanes precede the barrier. */
		for (uint32_t i = c->lane; i < n * d->ranks; i += c->lanes)
			loom_store_release_sys(&dispatch_note(c, d, i % d->ranks, (uint64_t)d->rank * d->most + first +
									  i / d->ranks * c->workers)->round, round);
	}
}

/* Collective over lanes. Waits for the note of a place. Returns 1, or 0 when the run is over. */
LOOM_FN int dispatch_arrived(struct loom_ctx *c, const struct dispatch *d, uint64_t place, uint64_t round)
{
	const struct dispatch_note *note = dispatch_note(c, d, d->rank, place);
	uint64_t going = 1;
	/* Acquire: pairs with the release in dispatch_send(). */
	while (c->lane == 0 && going && loom_load_acquire_sys(&note->round) != round) {
		going = (uint64_t)!loom_stopped(c);
		loom_pause(c);
	}
	return loom_from_lane0(c, going) != 0;
}

/* Stores the answer to the row of a place, whose note has arrived, into the rank of the token. */
LOOM_FN void dispatch_answer(struct loom_ctx *c, const struct dispatch *d, uint64_t place)
{
	const struct dispatch_note *note = dispatch_note(c, d, d->rank, place);
	const struct dispatch_share *share = (const struct dispatch_share *)(note + 1);
	const uint32_t n = note->n, end = n ? d->dim / 8 : 0, rank = (uint32_t)(place / d->most);
	const uint64_t back = place % d->most * d->ranks + d->rank;
	const struct tile_eight *in = dispatch_row(c, d, d->rank, d->in_at, place);
	struct tile_eight *to = dispatch_row(c, d, rank, d->back_at, back);
	LOOM_NO_UNROLL
	for (uint32_t j = c->lane; j < end; j += DISPATCH_BATCH * c->lanes) {
		struct tile_eight v[DISPATCH_BATCH] = {{{0, 0, 0, 0}}};
		float sum[DISPATCH_BATCH][8] = {{0}}, x[8], f[8];
		dispatch_load(c, in, j, end, v);
		for (uint32_t k = 0; k < n; k++) { /* the loads of several experts overlap, if the compiler unrolls this loop */
			const float weight = share[k].weight;
			struct tile_eight w[DISPATCH_BATCH] = {{{0, 0, 0, 0}}};
			dispatch_load(c, dispatch_row(c, d, d->rank, d->factor_at, share[k].expert), j, end, w);
			TILE_UNROLL
			for (uint32_t b = 0; b < DISPATCH_BATCH; b++) {
				tile_numbers(&v[b], 1, x);
				tile_numbers(&w[b], 1, f);
				TILE_UNROLL
				for (uint32_t i = 0; i < 8; i++)
					sum[b][i] += weight * (f[i] * x[i]);
			}
		}
		TILE_UNROLL
		for (uint32_t b = 0; b < DISPATCH_BATCH; b++)
			v[b] = dispatch_pack(sum[b]);
		dispatch_store(c, to, j, end, v);
	}
	loom_stream(c, (3ull + n) * 2 * d->dim);
}

/* Says that the row of a place was answered. Called by one lane, after all lanes have stored their parts and called a barrier. */
LOOM_FN void dispatch_answered(struct loom_ctx *c, const struct dispatch *d, uint64_t place, uint64_t round)
{
	const uint32_t rank = (uint32_t)(place / d->most);
	uint64_t *done = (uint64_t *)(dispatch_block(c, d, rank) + d->done_at);
	/* Release: pairs with the acquire in dispatch_combine(). */
	if (dispatch_note(c, d, d->rank, place)->n)
		loom_store_release_sys(done + place % d->most * d->ranks + d->rank, round);
}

/* Waits for the answers to a token, and adds them. out: 0 for the rounds, 1 for the step. Returns 1, or 0 when the run is
 * over. */
LOOM_FN int dispatch_combine(struct loom_ctx *c, const struct dispatch *d, uint32_t token, uint64_t round, uint32_t out)
{
	const uint64_t targets = dispatch_targets(c, d, token), back = (uint64_t)token * d->ranks;
	const uint32_t end = d->dim / 8;
	struct tile_eight *to = dispatch_row(c, d, d->rank, d->out_at, (uint64_t)out * d->most + token);
	for (uint32_t r = c->lane; r < d->ranks; r += c->lanes)
		/* Acquire: pairs with the release in dispatch_answer(). The barrier below makes it that of all lanes. */
		while (targets >> r & 1 && loom_load_acquire_sys(DISPATCH_AT(c, d, const uint64_t, done) + back + r) != round &&
		       !loom_stopped(c))
			loom_pause(c);
	if (!loom_from_lane0(c, (uint64_t)!loom_stopped(c)))
		return 0;
	LOOM_NO_UNROLL
	for (uint32_t j = c->lane; j < end; j += DISPATCH_BATCH * c->lanes) {
		float sum[DISPATCH_BATCH][8] = {{0}}, x[8];
		struct tile_eight v[DISPATCH_BATCH] = {{{0, 0, 0, 0}}};
		LOOM_NO_UNROLL
		for (uint32_t r = 0; r < d->ranks; r++) {
			if (!(targets >> r & 1))
				continue;
			dispatch_load(c, dispatch_row(c, d, d->rank, d->back_at, back + r), j, end, v);
			TILE_UNROLL
			for (uint32_t b = 0; b < DISPATCH_BATCH; b++) {
				tile_numbers(&v[b], 1, x);
				TILE_UNROLL
				for (uint32_t i = 0; i < 8; i++)
					sum[b][i] += x[i];
			}
		}
		TILE_UNROLL
		for (uint32_t b = 0; b < DISPATCH_BATCH; b++)
			v[b] = dispatch_pack(sum[b]);
		dispatch_store(c, to, j, end, v);
	}
	loom_stream(c, 2ull * d->dim * d->ranks);
	return 1;
}

/* All workers of all ranks meet for the n-th time. Returns 1, or 0 when the run is over. */
LOOM_FN int dispatch_meet(struct loom_ctx *c, const struct dispatch *d, uint64_t n)
{
	const uint64_t *met = DISPATCH_AT(c, d, const uint64_t, meet);
	loom_barrier_lanes(c);
	/* Release: pairs with the acquire below. */
	for (uint32_t r = c->lane; r < d->ranks; r += c->lanes)
		loom_store_release_sys((uint64_t *)(dispatch_block(c, d, r) + d->meet_at) + (uint64_t)d->rank * c->workers + c->worker, n);
	loom_set_state(c, LOOM_STATE_BARRIER);
	for (uint32_t i = c->lane; i < d->ranks * c->workers; i += c->lanes)
		while (loom_load_acquire_sys(met + i) < n && !loom_stopped(c))
			loom_pause(c);
	loom_set_state(c, LOOM_STATE_TASKS);
	return loom_from_lane0(c, (uint64_t)!loom_stopped(c)) != 0;
}

/* Returns the i-th place, beginning with those of rank `first`. */
LOOM_FN uint64_t dispatch_place(const struct dispatch *d, uint32_t first, uint64_t i)
{
	const uint64_t places = (uint64_t)d->ranks * d->most;
	i += (uint64_t)first * d->most;
	return i < places ? i : i - places;
}

/* A task: waits for the row of place param[0], and answers it. The own rows, which arrive first, are answered first. */
LOOM_FN void workload_dispatch_row(struct loom_ctx *c, const struct loom_task *t)
{
	const struct dispatch copy = *(const struct dispatch *)c->global[LOOM_WORKLOAD], *d = &copy;
	const uint64_t place = dispatch_place(d, d->rank, t->param[0]), round = d->rounds + 1ull;
	if (!dispatch_arrived(c, d, place, round))
		return;
	dispatch_answer(c, d, place);
	loom_barrier_lanes(c);
	if (c->lane == 0)
		dispatch_answered(c, d, place, round);
}

LOOM_FN void dispatch_stamp(struct loom_ctx *c, uint64_t round, uint32_t which)
{
	loom_barrier_lanes(c);
	if (c->lane == 0)
		((uint64_t *)c->own[LOOM_WORKLOAD])[round * DISPATCH_STAMPS + which] = loom_clock_ns(c);
}

/* A round. Each worker has its tokens and its places. Returns 1, or 0 when the run is over. */
LOOM_FN int dispatch_one_round(struct loom_ctx *c, const struct dispatch *d, uint64_t round)
{
	const uint64_t places = (uint64_t)d->ranks * d->most;
	if (!dispatch_meet(c, d, 2 * round - 1))
		return 0;
	dispatch_stamp(c, round - 1, DISPATCH_BEGUN);
	dispatch_send(c, d, round);
	for (uint64_t i = c->worker; i < places; i += c->workers)
		if (!dispatch_arrived(c, d, dispatch_place(d, d->rank, i), round))
			return 0;
	dispatch_stamp(c, round - 1, DISPATCH_ARRIVED);
	if (!dispatch_meet(c, d, 2 * round))
		return 0;
	dispatch_stamp(c, round - 1, DISPATCH_ANSWERS);
	for (uint64_t first = c->worker; first < places; first += DISPATCH_GROUP * c->workers) {
		uint64_t n = 0; /* the own rows are answered last, as their answers have the shortest way */
		LOOM_NO_UNROLL
		for (; n < DISPATCH_GROUP && first + n * c->workers < places; n++)
			dispatch_answer(c, d, dispatch_place(d, d->rank + 1, first + n * c->workers));
		loom_barrier_lanes(c);
		for (uint64_t i = c->lane; i < n; i += c->lanes)
			dispatch_answered(c, d, dispatch_place(d, d->rank + 1, first + i * c->workers), round);
	}
	for (uint32_t i = c->worker; i < d->own; i += c->workers)
		if (!dispatch_combine(c, d, i, round, 0))
			return 0;
	dispatch_stamp(c, round - 1, DISPATCH_COMBINED);
	return 1;
}

LOOM_FN void workload_dispatch_kernel(struct loom_ctx *c)
{
	const struct dispatch copy = *(const struct dispatch *)c->global[LOOM_WORKLOAD], *d = &copy;
	const uint64_t rounds = d->rounds;
	int going = 1;
	LOOM_NO_UNROLL
	for (uint64_t round = 1; going && round <= rounds; round++)
		going = dispatch_one_round(c, d, round);
	if (!going || !dispatch_meet(c, d, 2 * rounds + 1))
		return;
	dispatch_stamp(c, rounds, DISPATCH_BEGUN);
	dispatch_send(c, d, rounds + 1);
	LOOM_CALL(sched, run, c);
	for (uint32_t i = c->worker; i < d->own; i += c->workers)
		if (!dispatch_combine(c, d, i, rounds + 1, 1))
			return;
	dispatch_stamp(c, rounds, DISPATCH_COMBINED);
}

#endif
