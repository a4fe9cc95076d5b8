/* SPDX-License-Identifier: Apache-2.0 */
/* workload_experts: one layer of routed experts. Device code.
 *
 * Each token chooses `top` experts. Each choice is a slot. Slots are sorted by expert. An expert computes, for each
 * of its slots, hidden = silu(first * x) and result = second * hidden. A token's output is the weighted sum of its
 * results. A task is a tile of rows of one of the two products, for a block of slots of one expert. The task that
 * ends the first product of a block goes on with the second: it spawns tasks for halves of the rows, which spawn
 * further ones. The task that ends the second product counts down the tokens of the block, and sums those that are
 * complete.
 *
 * The weights of a tile are read once. Where warps multiply matrices, the lanes of a warp share rows and slots. Elsewhere a
 * lane has whole rows. */
#ifndef WORKLOAD_EXPERTS_DEV_H
#define WORKLOAD_EXPERTS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "pieces.dev.h"
#include "task.dev.h"
#include "tile.dev.h"
#endif

#define EXPERTS_BLOCK_MAX 32u

/* The start of the stack's block. The locks of non-coherent devices follow. Then come the arrays, at these byte
 * offsets. */
struct experts {
	uint32_t experts, tokens, top;
	uint32_t dim, hidden;  /* numbers of a token; numbers of a vector between the two products */
	uint32_t rows, block;  /* upper limits on the rows and the slots of a task */
	uint32_t rows2;	       /* `rows` of a task of the second product, in which rows are longer */
	uint32_t bfloat, noncoherent;
	uint32_t group, unused; /* group: see experts_at() */
	uint64_t first_slot_at; /* [experts + 1] uint32_t: index in `order` of an expert's first slot (pieces.dev.h) */
	uint64_t order_at;	/* [tokens * top] uint32_t: slots by expert; slot / top is the token */
	uint64_t weight_at;	/* [tokens * top] float: weight of each slot */
	uint64_t pending_at;	/* [blocks][2] uint64_t: number of tiles of each product that have not ended */
	uint64_t open_at;	/* [tokens] uint64_t: number of slots without a result */
	uint64_t x_at;		/* [tokens][dim] float */
	uint64_t first_at;	/* [experts] matrices of hidden x dim uint16_t: weights of the first product; see experts_at() */
	uint64_t second_at;	/* [experts] matrices of dim x hidden uint16_t: weights of the second product */
	uint64_t hidden_at;	/* [slots by expert][hidden] float */
	uint64_t result_at;	/* [slots by expert][dim] float */
	uint64_t place_at;	/* [tokens * top] uint32_t: index in `order` of each slot */
	uint64_t out_at;	/* [tokens][dim] float */
	uint64_t sums_at;	/* [tokens * top] uint32_t, slots by expert: 1 if the block of this slot sums its token */
	uint64_t pad[5];
};

#define EXPERTS_AT(r, type, what) ((type *)((char *)(r) + (r)->what##_at))

LOOM_FN struct experts *experts_of(const struct loom_ctx *c)
{
	return (struct experts *)c->global[LOOM_WORKLOAD];
}

/* Weights are stored in blocks of 16 rows and 64 numbers. In a block, 32 numbers of 8 rows follow each other; then those 32 numbers
 * further, and then both 8 rows below. The 32 numbers of a row are 4 pieces of 8, in an order that depends on the row, so that
 * tile_matrices() finds the same piece of 8 rows in different banks. Blocks with the same 64 numbers of `group` rows follow each other,
 * so that the tile of a worker is contiguous. A CPU reads row by row, and has groups of 16. A matrix has whole groups. */
#define EXPERTS_WHOLE(n, of) (((n) + (of) - 1) / (of) * (of))
#define EXPERTS_GROUP 128u /* where warps multiply matrices */

LOOM_FN uint64_t experts_matrix(uint32_t group, uint32_t outer, uint32_t inner)
{
	return (uint64_t)EXPERTS_WHOLE(outer, group) * EXPERTS_WHOLE(inner, 64);
}

/* Returns the index of a weight in its matrix. It and the next 7 are contiguous, if k is a multiple of 8. */
LOOM_FN uint64_t experts_at(uint32_t group, uint32_t inner, uint32_t row, uint32_t k)
{
	uint64_t block = ((uint64_t)(row / group) * (EXPERTS_WHOLE(inner, 64) / 64) + k / 64) * (group / 16) + row % group / 16;
	return block * 1024 + row % 16 / 8 * 512 + k % 64 / 32 * 256 + row % 8 * 32 + (k % 32 / 8 ^ row % 8 / 2) * 8 + k % 8;
}

LOOM_FN uint32_t experts_tiles(const struct experts *r, uint32_t second)
{
	const uint32_t outer = second ? r->dim : r->hidden, rows = second ? r->rows2 : r->rows;
	return (outer + rows - 1) / rows;
}

/* The parameters of a task, decoded. If `slots` is 0, the task has nothing to do. */
struct experts_task {
	const uint16_t *weights; /* weights of the task's first row, which is the first of a block */
	const float *from;	 /* vectors of tokens in the first product, of places in the second */
	float *to;
	uint32_t expert, second; /* second: 1 in the second product, else 0 */
	uint32_t row, rows;
	uint32_t place, slots; /* range of places in `order` */
	uint32_t block;
	uint32_t inner, outer; /* inner: numbers of a vector; outer: numbers of a result */
	uint32_t pad;
};

LOOM_FN struct experts_task experts_task_of(struct experts *r, const struct loom_task *t)
{
	struct experts_task w;
	w.expert = (uint32_t)t->param[0];
	w.second = (uint32_t)(t->param[0] >> 32);
	w.row = (uint32_t)t->param[1];
	w.rows = (uint32_t)(t->param[1] >> 32);
	w.place = (uint32_t)t->param[2];
	w.slots = (uint32_t)(t->param[2] >> 32);
	w.block = (uint32_t)t->param[3];
	if (!w.slots) { /* the host did not know the routing, and has only numbered the blocks */
		const uint32_t *start = EXPERTS_AT(r, const uint32_t, first_slot);
		w.expert = pieces_row(start, r->experts, r->block, w.block);
		w.place = start[w.expert] + (w.block - pieces_first(start, w.expert, r->block)) * r->block;
		w.slots = w.place < start[w.expert + 1] ? start[w.expert + 1] - w.place : 0;
		w.slots = w.slots < r->block ? w.slots : r->block;
	}
	w.inner = w.second ? r->hidden : r->dim;
	w.outer = w.second ? r->dim : r->hidden;
	w.weights = (w.second ? EXPERTS_AT(r, const uint16_t, second) : EXPERTS_AT(r, const uint16_t, first)) +
		    w.expert * experts_matrix(r->group, w.outer, w.inner) + experts_at(r->group, w.inner, w.row, 0);
	w.from = w.second ? EXPERTS_AT(r, const float, hidden) : EXPERTS_AT(r, const float, x);
	w.to = w.second ? EXPERTS_AT(r, float, result) : EXPERTS_AT(r, float, hidden);
	return w;
}

LOOM_FN void experts_fill(uint32_t expert, uint32_t second, uint32_t row, uint32_t rows, uint32_t place, uint32_t slots, uint32_t block,
			  struct loom_task *t)
{
	workload_task(t, 0);
	t->param[0] = expert | (uint64_t)second << 32;
	t->param[1] = row | (uint64_t)rows << 32;
	t->param[2] = place | (uint64_t)slots << 32;
	t->param[3] = block;
}

/* The same for a tile, by its number. */
LOOM_FN void experts_fill_tile(const struct experts *r, uint32_t expert, uint32_t second, uint32_t tile, uint32_t place, uint32_t slots,
			       uint32_t block, struct loom_task *t)
{
	const uint32_t outer = second ? r->dim : r->hidden, rows = second ? r->rows2 : r->rows, row = tile * rows;
	experts_fill(expert, second, row, outer - row < rows ? outer - row : rows, place, slots, block, t);
}

/* Returns the cost of a task. The unit is the time to multiply a row of weights by one slot. Each row is also read
 * once, which takes as long as 8 slots. */
LOOM_FN uint64_t workload_experts_cost(struct loom_ctx *c, const struct loom_task *t)
{
	struct experts_task w = experts_task_of(experts_of(c), t);
	return w.slots ? (uint64_t)w.rows * (8 + w.slots) : 0;
}

/* Returns the vector of the slot at a place in `order`. */
LOOM_FN const float *experts_vector(const struct experts *r, const struct experts_task *w, uint32_t place)
{
	uint64_t at = w->second ? place : EXPERTS_AT(r, const uint32_t, order)[place] / r->top;
	return w->from + at * w->inner;
}

/* Returns x * sigmoid(x). */
LOOM_FN float experts_silu(float x)
{
	float e = tile_exp2((x < 0 ? x : -x) * 1.44269504f);
	return x < 0 ? x * e / (1.0f + e) : x / (1.0f + e);
}

LOOM_FN void experts_store(const struct experts_task *w, uint32_t slot, uint32_t row, float sum)
{
	w->to[(uint64_t)(w->place + slot) * w->outer + w->row + row] = w->second ? sum : experts_silu(sum);
}

/* ---- a tile ---------------------------------------------------------------------------------------- */

#define EXPERTS_ROWS_MOST 128u		   /* upper limit on the rows of a tile; a task may have several tiles */

/* Returns the number of rows of a tile: a lane keeps at most 64 sums in registers. */
LOOM_FN uint32_t experts_tile_rows(uint32_t rows, uint32_t block)
{
	uint32_t most = block > 16 ? EXPERTS_ROWS_MOST / 2 : EXPERTS_ROWS_MOST;
	return rows < most ? rows : most;
}

/* 1: warps multiply matrices (tile.dev.h). The host defines it, because scratchpad memory then has other parts. */
#ifndef EXPERTS_PRODUCTS
#define EXPERTS_PRODUCTS 0
#endif
#define EXPERTS_EIGHTS_OF(block) (((block) + 7u) / 8)
#define EXPERTS_BANDS_OF(rows)	 (((rows) + 15u) / 16)
/* Number of bands of 16 rows that a warp has in flight: 24 of a worker, but not more than a tile has, because the next vectors have
 * one place only. */
#define EXPERTS_AHEAD_OF(rows, warps) (EXPERTS_BANDS_OF(rows) * (warps) < 24 ? EXPERTS_BANDS_OF(rows) : (23u + (warps)) / (warps))
/* Scratchpad memory of a warp, in bytes: a ring of bands and vectors, or at the end the sums. Distance of the sums of two slots, in
 * floats: 4 more, for different banks. */
#define EXPERTS_COLUMN(rows)	   ((rows) + 4u)
#define EXPERTS_VECTOR		   288u /* from a slot's numbers to the next slot's: 64 floats, and 8 more, for different banks */
#define EXPERTS_RING(ahead, block) ((ahead) * 4 * TILE_WARP * 16 + EXPERTS_EIGHTS_OF(block) * 8 * EXPERTS_VECTOR)
#define EXPERTS_SUMS(rows, block)  (EXPERTS_EIGHTS_OF(block) * 8 * EXPERTS_COLUMN(rows) * 4)
#define EXPERTS_LOCAL(rows, block, ahead)                                                                              \
	(EXPERTS_RING(ahead, block) > EXPERTS_SUMS(rows, block) ? EXPERTS_RING(ahead, block) : EXPERTS_SUMS(rows, block))

#if EXPERTS_PRODUCTS
/* ---- a tile whose warps multiply matrices ------------------------------------------------------- */

/* A warp has some of the numbers of all rows and all slots of the tile: 64 of each `warps` times 64. Rows of the product
 * are rows of weights, columns are slots. The lanes of a warp copy weights and vectors for each other into a ring in scratchpad memory,
 * and wait for each other before they read. The copies of the next EXPERTS_AHEAD bands of 16 rows, and of the next vectors, are in
 * flight while a warp multiplies. At the end, the warps add up their sums in the same memory. */
#define EXPERTS_STEP 64u
#ifdef EXPERTS_ROWS
#define EXPERTS_BFLOAT_OF(r) ((void)(r), (uint32_t)EXPERTS_BFLOAT)
#else /* a test runs tasks of any size */
#define EXPERTS_BFLOAT_OF(r) ((r)->bfloat)
#define EXPERTS_ROWS   (EXPERTS_ROWS_MOST / 2) /* as with blocks of more than 16 */
#define EXPERTS_BLOCK  EXPERTS_BLOCK_MAX
#define EXPERTS_AHEAD  EXPERTS_AHEAD_OF(EXPERTS_ROWS, 4u)
#endif
#define EXPERTS_BANDS  EXPERTS_BANDS_OF(EXPERTS_ROWS)
#define EXPERTS_EIGHTS EXPERTS_EIGHTS_OF(EXPERTS_BLOCK)
/* Vectors are multiplied by this factor if their terms are float16, which then has enough of their digits. */
#define EXPERTS_LIFT 128.0f

/* What a lane holds. */
struct experts_hold {
	tile_near ring;	   /* of this warp: EXPERTS_AHEAD bands of 2,048 bytes */
	tile_near rows[2]; /* of the ring: a row of the matrices of numbers 0 to 15, and of 16 to 31; see experts_hold_multiply() */
	tile_near vectors; /* of this warp; see experts_near_vector() */
	uint32_t with[EXPERTS_EIGHTS][8][TILE_TERMS_MOST]; /* the terms of pairs of numbers of a vector */
	float sum[EXPERTS_BANDS][EXPERTS_EIGHTS][4];
	uint32_t warp, warps, lane;
	uint32_t row, column; /* lane / 4, lane % 4 */
};
#define EXPERTS_BAND (4u * TILE_WARP * 16)

/* Copies this lane's part of a block of weights to a band of the ring, `to` bytes from its start. */
LOOM_FN void experts_hold_load(const struct experts_hold *h, const uint16_t *part, uint32_t to)
{
	TILE_UNROLL
	for (uint32_t i = 0; i < 4; i++)
		tile_copy(h->ring + to + (i * TILE_WARP + h->lane) * 16, part + i * 256, 1);
}

/* Returns the place of numbers of the vector of slot 8 e + `row`, in the ring of this warp. */
LOOM_FN tile_near experts_near_vector(const struct experts_hold *h, uint32_t e, uint32_t number)
{
	return h->vectors + (8 * e + h->row) * EXPERTS_VECTOR + number * 4;
}

/* Copies 64 numbers of the vectors of all slots. The four lanes of a slot copy contiguous memory, so they copy for each other. */
LOOM_FN void experts_hold_load_vectors(const struct experts_task *w, const float *const *vector, uint32_t from,
				       const struct experts_hold *h)
{
	TILE_UNROLL
	for (uint32_t i = 0; i < 4 * EXPERTS_EIGHTS; i++) {
		const uint32_t e = i / 4, four = i % 4 * 4 + h->column, k = from + 4 * four;
		if (!e || 8 * e < w->slots)
			tile_copy(experts_near_vector(h, e, 4 * four), vector[e] + k, 8 * e + h->row < w->slots && k < w->inner);
	}
}

/* Splits the numbers of the vectors into terms. */
LOOM_FN void experts_hold_vectors(const struct experts *r, const struct experts_task *w, struct experts_hold *h)
{
	const uint32_t bfloat = EXPERTS_BFLOAT_OF(r);
	TILE_UNROLL
	for (uint32_t i = 0; i < 8 * EXPERTS_EIGHTS; i++) {
		const uint32_t e = i / 8;
		union tile_bits low, high;
		uint32_t two[2];
		if (e && 8 * e >= w->slots)
			continue;
		tile_read(experts_near_vector(h, e, i % 8 * 8 + 2 * h->column), two);
		low.bits = two[0];
		high.bits = two[1];
		low.number *= bfloat ? 1.0f : EXPERTS_LIFT;
		high.number *= bfloat ? 1.0f : EXPERTS_LIFT;
		tile_split(low.number, high.number, bfloat, h->with[e][i % 8]);
	}
}

/* Multiplies 16 rows, `at` bytes from the start of the ring, by the vectors. The products start from 0 for each 64 numbers. Their
 * additions truncate, and in a long sum such errors would add up. Each term has a sum, so that fewer products wait for each other. */
LOOM_FN void experts_hold_multiply(const struct experts *r, const struct experts_task *w, uint32_t band, uint32_t at,
				   struct experts_hold *h)
{
	const uint32_t bfloat = EXPERTS_BFLOAT_OF(r);
	uint32_t a[4][4]; /* [16 numbers each]: the matrices of rows from 0 and from 8 on, and of those 8 numbers further */
	TILE_UNROLL
	for (uint32_t i = 0; i < 4; i++)
		tile_matrices(h->rows[i % 2] + at + i / 2 * 512, a[i]);
	TILE_UNROLL
	for (uint32_t e = 0; e < EXPERTS_EIGHTS; e++) {
		float product[TILE_TERMS_MOST][4] = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 0}};
		if (e && 8 * e >= w->slots)
			continue;
		TILE_UNROLL
		for (uint32_t i = 0; i < 4; i++) {
			const uint32_t *first = h->with[e][2 * i], *second = h->with[e][2 * i + 1];
			TILE_UNROLL
			for (uint32_t t = 0; t < TILE_TERMS(bfloat); t++)
				tile_multiply(product[t], a[i][0], a[i][1], a[i][2], a[i][3], first[t], second[t], bfloat);
		}
		TILE_UNROLL
		for (uint32_t n = 0; n < 4; n++)
			h->sum[band][e][n] += product[0][n] + (product[1][n] + product[2][n]);
	}
}

/* Multiplies the numbers of this warp. For each band there is a group of copies: those of the band EXPERTS_AHEAD further, and with
 * the first band also those of the next vectors. The first groups are one. */
LOOM_FN void experts_hold_run(const struct experts *r, const struct experts_task *w, struct experts_hold *h)
{
	const uint32_t every = h->warps * EXPERTS_STEP;
	const float *vector[EXPERTS_EIGHTS];
	uint32_t from = h->warp * EXPERTS_STEP, at = 0;
	const uint16_t *part = w->weights + experts_at(EXPERTS_GROUP, w->inner, 0, from) + h->lane * 8; /* of band 0 */
	if (from >= w->inner)
		return;
	TILE_UNROLL
	for (uint32_t band = 0; band < EXPERTS_AHEAD; band++)
		if (16 * band < w->rows)
			experts_hold_load(h, part + band * 1024, band * EXPERTS_BAND);
	TILE_UNROLL
	for (uint32_t e = 0; e < EXPERTS_EIGHTS; e++) {
		uint32_t slot = 8 * e + h->row;
		vector[e] = experts_vector(r, w, w->place + (slot < w->slots ? slot : 0));
	}
	experts_hold_load_vectors(w, vector, from, h);
	TILE_UNROLL
	for (uint32_t band = 0; band < EXPERTS_AHEAD; band++)
		TILE_COPY_GROUP();
	LOOM_NO_UNROLL
	for (; from < w->inner; from += every) {
		TILE_UNROLL
		for (uint32_t band = 0; band < EXPERTS_BANDS; band++) {
			const uint32_t next = (band + EXPERTS_AHEAD) % EXPERTS_BANDS, turns = band + EXPERTS_AHEAD >= EXPERTS_BANDS;
			TILE_COPY_WAIT(EXPERTS_AHEAD - 1);
			TILE_WARP_BARRIER(); /* the other lanes' copies are complete, too */
			if (!band)
				experts_hold_vectors(r, w, h);
			if (16 * band < w->rows)
				experts_hold_multiply(r, w, band, at, h);
			TILE_WARP_BARRIER(); /* the next copies overwrite what was read */
			if (!band && from + every < w->inner)
				experts_hold_load_vectors(w, vector, from + every, h);
			if (turns && band + EXPERTS_AHEAD == EXPERTS_BANDS)
				part += experts_at(EXPERTS_GROUP, w->inner, 0, every);
			if ((!turns || from + every < w->inner) && 16 * next < w->rows)
				experts_hold_load(h, part + next * 1024, at);
			TILE_COPY_GROUP();
			at = at + EXPERTS_BAND < EXPERTS_AHEAD * EXPERTS_BAND ? at + EXPERTS_BAND : 0;
		}
	}
}

/* Computes a tile of at most EXPERTS_ROWS rows. */
LOOM_FN void experts_multiply_tile(struct loom_ctx *c, const struct experts *r, const struct experts_task *w)
{
	struct experts_hold h;
	const uint32_t rows = EXPERTS_ROWS, each = EXPERTS_LOCAL(rows, EXPERTS_BLOCK, EXPERTS_AHEAD);
	h.warp = c->lane / TILE_WARP;
	h.warps = c->lanes / TILE_WARP;
	h.lane = c->lane % TILE_WARP;
	h.row = h.lane / 4;
	h.column = h.lane % 4;
	char *local = (char *)c->local[LOOM_WORKLOAD];
	float *mine = (float *)(local + h.warp * each);
	h.ring = tile_near_of((char *)mine);
	TILE_UNROLL
	for (uint32_t i = 0; i < 2; i++)
		h.rows[i] = h.ring + h.lane / 8 % 2 * 1024 + h.lane % 8 * 64 + ((2 * i + h.lane / 16) ^ h.lane % 8 / 2) * 16;
	h.vectors = tile_near_of((char *)mine + EXPERTS_RING(EXPERTS_AHEAD, 0u));
	TILE_UNROLL
	for (uint32_t i = 0; i < EXPERTS_BANDS * EXPERTS_EIGHTS; i++) {
		TILE_UNROLL
		for (uint32_t n = 0; n < 4; n++)
			h.sum[i / EXPERTS_EIGHTS][i % EXPERTS_EIGHTS][n] = 0;
	}
	experts_hold_run(r, w, &h);
	TILE_WARP_BARRIER(); /* the sums overwrite the rings of the other lanes */
	TILE_UNROLL
	for (uint32_t i = 0; i < EXPERTS_BANDS * EXPERTS_EIGHTS * 4; i++) {
		const uint32_t band = i / 4 / EXPERTS_EIGHTS, e = i / 4 % EXPERTS_EIGHTS, n = i % 4;
		uint32_t slot = 8 * e + 2 * h.column + n % 2, row = 16 * band + h.row + n / 2 * 8;
		if (slot < w->slots && row < w->rows)
			mine[slot * EXPERTS_COLUMN(rows) + row] = h.sum[band][e][n];
	}
	loom_barrier_lanes(c);
	LOOM_NO_UNROLL
	for (uint32_t i = c->lane; i < w->slots * rows; i += c->lanes) {
		uint32_t slot = i / rows, row = i % rows;
		float sum = 0;
		LOOM_NO_UNROLL
		for (uint32_t n = 0; n < h.warps; n++)
			sum += ((const float *)(local + n * each))[slot * EXPERTS_COLUMN(rows) + row];
		if (row < w->rows)
			experts_store(w, slot, row, EXPERTS_BFLOAT_OF(r) ? sum : sum * (1 / EXPERTS_LIFT));
	}
	loom_barrier_lanes(c); /* the next tile uses the same scratchpad memory */
}

/* Not inlined into the worker's loop, whose values would take registers from it. Returns 0. */
LOOM_FN int experts_multiply_task(struct loom_ctx *c, const struct loom_task *t)
{
	struct experts *r = experts_of(c);
	struct experts_task w = experts_task_of(r, t);
	const uint32_t most = EXPERTS_ROWS, end = w.row + w.rows;
	const uint16_t *matrix = w.weights - experts_at(EXPERTS_GROUP, w.inner, w.row, 0);
	LOOM_NO_UNROLL
	for (; w.row < end; w.row += most) {
		w.rows = end - w.row < most ? end - w.row : most;
		w.weights = matrix + experts_at(EXPERTS_GROUP, w.inner, w.row, 0);
		experts_multiply_tile(c, r, &w);
	}
	return 0;
}
#else
LOOM_FN void experts_multiply(struct loom_ctx *c, const struct experts *r, const struct experts_task *w)
{
	const float *vector[EXPERTS_BLOCK_MAX];
	for (uint32_t i = 0; i < w->slots; i++)
		vector[i] = experts_vector(r, w, w->place + i);
	for (uint32_t row = c->lane; row < w->rows; row += c->lanes) {
		float sum[EXPERTS_BLOCK_MAX], eight[8];
		for (uint32_t i = 0; i < w->slots; i++)
			sum[i] = 0;
		for (uint32_t k = 0; k < w->inner; k += 8) {
			tile_numbers(w->weights + experts_at(r->group, w->inner, row, k), r->bfloat, eight);
			for (uint32_t i = 0; i < w->slots; i++)
				sum[i] += tile_dot8(eight, vector[i] + k);
		}
		for (uint32_t i = 0; i < w->slots; i++)
			experts_store(w, i, row, sum[i]);
	}
}
#endif

/* ---- tasks -------------------------------------------------------------------------------------- */

LOOM_FN int experts_last(struct loom_ctx *c, struct experts *r, uint64_t *pending)
{
	return r->noncoherent ? loom_last_noncoherent(c, (struct loom_onebit_lock *)(r + 1), pending)
			      : loom_last(c, pending);
}

/* Counts down the tokens of a block whose results are complete, and marks those that have all of their results now. */
LOOM_FN void experts_count(struct loom_ctx *c, struct experts *r, const struct experts_task *w)
{
	const uint32_t *order = EXPERTS_AT(r, const uint32_t, order) + w->place;
	uint32_t *sums = EXPERTS_AT(r, uint32_t, sums) + w->place;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; r->noncoherent && i < w->slots; i++) {
		int last = experts_last(c, r, EXPERTS_AT(r, uint64_t, open) + order[i] / r->top);
		if (c->lane == 0)
			sums[i] = (uint32_t)last;
	}
	/* Acquire and release, as in loom_last(). The barrier there orders what the other lanes have written. */
	LOOM_NO_UNROLL
	for (uint32_t i = c->lane; !r->noncoherent && i < w->slots; i += c->lanes)
		sums[i] = LOOM_JOB(loom_fetch_add_acq_rel)(EXPERTS_AT(r, uint64_t, open) + order[i] / r->top, ~(uint64_t)0) == 1;
	loom_barrier_lanes(c);
}

#define EXPERTS_AT_ONCE 8u /* numbers of a lane whose loads do not wait for each other */

/* Computes the output of the token whose first slot is `slot`. No load of a result is behind a condition, because a compiler would put a
 * branch around it, and each load would wait for the one before. */
LOOM_FN void experts_sum(const struct loom_ctx *c, struct experts *r, uint32_t slot)
{
	const uint32_t *place = EXPERTS_AT(r, const uint32_t, place) + slot, dim = r->dim, top = r->top;
	const float *weight = EXPERTS_AT(r, const float, weight) + slot, *result = EXPERTS_AT(r, const float, result);
	float *out = EXPERTS_AT(r, float, out) + (uint64_t)(slot / top) * dim;
	LOOM_NO_UNROLL
	for (uint32_t first = c->lane; first < dim; first += EXPERTS_AT_ONCE * c->lanes) {
		uint32_t d[EXPERTS_AT_ONCE];
		float sum[EXPERTS_AT_ONCE];
		TILE_UNROLL
		for (uint32_t n = 0; n < EXPERTS_AT_ONCE; n++) {
			d[n] = first + n * c->lanes < dim ? first + n * c->lanes : first; /* beyond the end, the first number again */
			sum[n] = 0;
		}
		LOOM_NO_UNROLL
		for (uint32_t k = 0; k < top; k++) {
			const float by = weight[k], *of = result + (uint64_t)place[k] * dim;
			TILE_UNROLL
			for (uint32_t n = 0; n < EXPERTS_AT_ONCE; n++)
				sum[n] += by * of[d[n]];
		}
		TILE_UNROLL
		for (uint32_t n = 0; n < EXPERTS_AT_ONCE; n++)
			out[d[n]] = sum[n];
	}
}

/* 1: the worker that ends the first product of a block also begins the second. A program whose list has the tasks of the second
 * defines it as 0. */
#ifndef EXPERTS_FOLLOWS
#define EXPERTS_FOLLOWS 1
#endif

/* Shortens a task of the second product to its first tile, and spawns tasks for the rest: halves, which are divided again by the workers
 * that run them. So no worker spawns all tiles of a block, one after the other. Returns 0, or the error of a spawn. */
LOOM_FN int experts_divide(struct loom_ctx *c, const struct experts *r, struct loom_task *t)
{
	const struct experts_task w = experts_task_of((struct experts *)r, t);
	struct loom_task rest;
	uint32_t tiles = (w.rows + r->rows2 - 1) / r->rows2, rows = w.rows;
	LOOM_NO_UNROLL
	for (; tiles > 1; tiles /= 2) {
		const uint32_t keep = tiles / 2 * r->rows2;
		experts_fill(w.expert, 1, w.row + keep, rows - keep, w.place, w.slots, w.block, &rest);
		int rc = LOOM_CALL(sched, spawn, c, &rest);
		if (rc)
			return rc;
		rows = keep;
	}
	t->param[1] = w.row | (uint64_t)rows << 32;
	return 0;
}

/* Computes the rows of a task. Returns 1 if they were the last ones of a product of a block. */
LOOM_FN int experts_product(struct loom_ctx *c, struct experts *r, const struct loom_task *t)
{
	const struct experts_task w = experts_task_of(r, t);
#if EXPERTS_PRODUCTS
	LOOM_OUTLINED_COLLECTIVE(experts_multiply_task, c, t);
#else
	experts_multiply(c, r, &w);
#endif
	loom_stream(c, (uint64_t)w.rows * w.inner * 2);
	return experts_last(c, r, EXPERTS_AT(r, uint64_t, pending) + 2ull * w.block + w.second);
}

/* Computes rows of a product. Parameters 0 to 2 have two values each, in the lower and the upper half. param[0]: the expert; 1
 * in the second product. param[1]: the first row; the number of rows. param[2]: the first place; the number of slots.
 * param[3]: the block. If there are 0 slots, the task finds its expert and places by the block. */
LOOM_FN void workload_experts_tile(struct loom_ctx *c, const struct loom_task *task)
{
	struct experts *r = experts_of(c);
	struct loom_task t = *task;
	struct experts_task w = experts_task_of(r, &t);
	if (!w.slots)
		return;
	LOOM_NO_UNROLL
	for (;;) {
		if (t.param[0] >> 32 && experts_divide(c, r, &t))
			return;
		if (!experts_product(c, r, &t))
			return;
		if (t.param[0] >> 32)
			break;
		if (!EXPERTS_FOLLOWS)
			return;
		experts_fill(w.expert, 1, 0, r->dim, w.place, w.slots, w.block, &t);
	}
	experts_count(c, r, &w);
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < w.slots; i++)
		if (EXPERTS_AT(r, const uint32_t, sums)[w.place + i])
			experts_sum(c, r, EXPERTS_AT(r, const uint32_t, order)[w.place + i] / r->top * r->top);
}

#endif
