/* SPDX-License-Identifier: Apache-2.0 */
/* workload_ragged: one decode step of attention over pages of keys and values. Device code.
 *
 * A task is a chunk of the tokens of one sequence, for one head of keys and values. `group` heads of queries share
 * this head. The task processes the chunk in tiles of a page, with the exact online softmax: `peak` is the largest score so
 * far, in units of log 2, and sums are relative to it. The worker that ends the last chunk of a sequence and head
 * combines the partial results.
 *
 * Lanes share a tile in three steps. For the scores, a lane has a token. For the weights,
 * some lanes have a head together. For the values, a lane has eight numbers of some tokens, and keeps their sums for
 * all heads. Where warps multiply matrices, each warp processes tokens by itself. */
#ifndef WORKLOAD_RAGGED_DEV_H
#define WORKLOAD_RAGGED_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "pieces.dev.h"
#include "task.dev.h"
#include "tile.dev.h"
#endif

#define RAGGED_GROUP_MAX 16u

/* The start of the stack's block. The locks of non-coherent devices follow. Then come the arrays, at these byte
 * offsets. */
struct ragged {
	uint32_t sequences, heads, kv; /* kv: number of heads of keys and values */
	uint32_t group, dim;	       /* group: heads / kv; dim: numbers of a head */
	uint32_t page_log2, chunk;     /* chunk: tokens of a task, in whole pages */
	uint32_t bfloat, noncoherent;
	float scale; /* factor of scores: 1 / (log 2 * root of dim) */
	uint64_t start_at;	/* [sequences + 1] uint32_t: number of tokens before each sequence (pieces.dev.h) */
	uint64_t table_at;	/* [pages] uint32_t: page of each part of a sequence */
	uint64_t pages_at;	/* [pages][kv][2]: keys and values of a page of tokens */
	uint64_t queries_at;	/* [sequences][heads][dim] */
	uint64_t pending_at;	/* [sequences][kv] uint64_t: number of chunks that have not ended */
	uint64_t parts_at;	/* partial results, see ragged_part() */
	uint64_t out_at;	/* [sequences][heads][dim] float */
	uint64_t pad[3];
};

/* A program for GPUs has these values as constants. */
#ifdef RAGGED_DIM
#define RAGGED_OF(r, name, NAME) ((void)(r), (uint32_t)RAGGED_##NAME)
#define RAGGED_GROUPS RAGGED_GROUP
#else
#define RAGGED_OF(r, name, NAME) ((r)->name)
#define RAGGED_GROUPS RAGGED_GROUP_MAX
#endif
#define ragged_dim(r)   RAGGED_OF(r, dim, DIM)
#define ragged_group(r) RAGGED_OF(r, group, GROUP)
#define ragged_bfloat(r) RAGGED_OF(r, bfloat, BFLOAT)

/* 1: warps multiply matrices (tile.dev.h). The host defines it, because scratchpad memory then has other parts. */
#ifndef RAGGED_PRODUCTS
#define RAGGED_PRODUCTS 0
#endif

/* How the lanes of a worker share a tile. */
struct ragged_split {
	uint32_t each;	 /* lanes per head in the second step */
	uint32_t blocks; /* blocks of eight numbers in the third step */
	uint32_t sets;	 /* lanes that have the same block in the third step */
};

LOOM_FN struct ragged_split ragged_split(uint32_t lanes, uint32_t dim, uint32_t group)
{
	struct ragged_split s;
	s.each = lanes / group ? lanes / group : 1;
	s.blocks = dim / 8;
	s.sets = lanes / s.blocks ? lanes / s.blocks : 1;
	return s;
}

/* Byte offsets of the parts of scratchpad memory. Each part begins at a multiple of 16. */
struct ragged_scratch {
	uint32_t queries, scores, most, sum, peak, scale, result, sums, areas; /* offsets */
	uint32_t bytes;
};

LOOM_FN struct ragged_scratch ragged_scratch(uint32_t lanes, uint32_t dim, uint32_t group, uint32_t tile)
{
	struct ragged_split s = ragged_split(lanes, dim, group);
	struct ragged_scratch at;
	uint32_t units = ((s.each * group + 3) & ~3u) * 4, heads = ((group + 3) & ~3u) * 4;
	at.queries = 0;
	at.scores = at.queries + group * dim * 4;
	at.most = at.scores + ((group * tile + 3) & ~3u) * 4;
	at.sum = at.most + units;
	at.peak = at.sum + units;
	at.scale = at.peak + 2 * heads;
	at.result = at.scale + heads;
	at.sums = at.result + group * dim * 4;
	at.areas = 0;
	at.bytes = at.sums + s.blocks * s.sets * group * 8 * 4;
	return at;
}

/* Each warp has a ring for the keys and values of RAGGED_AHEAD times 16 tokens. All rings of a worker have at most this many bytes, so
 * two workers fit on a multiprocessor. If a worker has more warps, the others have no tokens. */
#define RAGGED_AHEAD	 2u
#define RAGGED_RING_MOST (96u << 10)
/* The ring has a row of pieces of 8 numbers for the key of each token, and then for the value of each. A row has whole groups of 8
 * pieces, see ragged_near(). */
#define RAGGED_PIECES_OF(dim) (((dim) + 63u) / 64 * 8)
#define RAGGED_RING_OF(dim)   (RAGGED_AHEAD * 2 * 16 * RAGGED_PIECES_OF(dim) * 16)

/* Returns the number of warps that have tokens. */
LOOM_FN uint32_t ragged_warps(uint32_t lanes, uint32_t dim)
{
	uint32_t warps = lanes / TILE_WARP, most = RAGGED_RING_MOST / RAGGED_RING_OF(dim);
	return warps < most ? warps : most;
}

/* The same for a worker whose warps multiply matrices. `most`: peaks of each warp. `areas`: the rings, and then the
 * areas in which warps add their sums. */
LOOM_FN struct ragged_scratch ragged_scratch_of_warps(uint32_t lanes, uint32_t dim, uint32_t group)
{
	uint32_t warps = lanes / TILE_WARP, areas = warps < TILE_AREAS ? warps : TILE_AREAS;
	uint32_t heads = ((group + 3) & ~3u) * 4, sums = areas * (group * (dim + 1) * 4);
	uint32_t rings = ragged_warps(lanes, dim) * RAGGED_RING_OF(dim);
	struct ragged_scratch at;
	at.queries = at.scores = at.scale = at.sums = 0;
	at.sum = at.queries;
	at.peak = at.sum + heads;
	at.most = at.peak + heads;
	at.result = at.most + warps * heads;
	at.areas = (at.result + group * dim * 4 + 15) & ~15u;
	at.bytes = (at.areas + (sums > rings ? sums : rings) + 15) & ~15u;
	return at;
}

/* ---- where things are ------------------------------------------------------------------------- */

#define RAGGED_AT(r, type, what) ((type *)((char *)(r) + (r)->what##_at))

LOOM_FN struct ragged *ragged_of(const struct loom_ctx *c)
{
	return (struct ragged *)c->global[LOOM_WORKLOAD];
}

LOOM_FN const uint32_t *ragged_start(const struct ragged *r)
{
	return RAGGED_AT(r, const uint32_t, start);
}

/* Returns a partial result for `group` heads. For each head it has dim sums, the peak, and the sum of weights. */
LOOM_FN float *ragged_part(struct ragged *r, uint32_t sequence, uint32_t kv, uint32_t chunks, uint32_t chunk)
{
	uint64_t n = (uint64_t)pieces_first(ragged_start(r), sequence, r->chunk) * r->kv + (uint64_t)kv * chunks + chunk;
	return RAGGED_AT(r, float, parts) + n * ragged_group(r) * (ragged_dim(r) + 2);
}

/* Return the keys of a token of a sequence. The values of the token are one page of tokens further. */
LOOM_FN const uint16_t *ragged_keys_of(const struct ragged *r, uint64_t page, uint32_t kv, uint32_t token)
{
	uint64_t dim = ragged_dim(r);
	return RAGGED_AT(r, const uint16_t, pages) + (((page * r->kv + kv) * 2) << r->page_log2) * dim +
	       (token & ((1u << r->page_log2) - 1)) * dim;
}

LOOM_FN const uint16_t *ragged_keys(const struct ragged *r, const uint32_t *table, uint32_t kv, uint32_t token)
{
	return ragged_keys_of(r, table[token >> r->page_log2], kv, token);
}

LOOM_FN const uint32_t *ragged_table(const struct ragged *r, uint32_t sequence)
{
	return RAGGED_AT(r, const uint32_t, table) + pieces_first(ragged_start(r), sequence, 1u << r->page_log2);
}

/* The parameters of a task, decoded. */
struct ragged_task {
	const uint32_t *table; /* page table of its sequence */
	uint32_t sequence, kv, from, tokens, chunk, chunks;
};

LOOM_FN struct ragged_task ragged_task_of(struct ragged *r, const struct loom_task *t)
{
	struct ragged_task w;
	w.sequence = (uint32_t)t->param[0];
	w.kv = (uint32_t)(t->param[0] >> 32);
	w.from = (uint32_t)t->param[1];
	w.tokens = (uint32_t)(t->param[1] >> 32);
	w.chunk = (uint32_t)t->param[2];
	w.chunks = (uint32_t)(t->param[2] >> 32);
	w.table = ragged_table(r, w.sequence);
	return w;
}

/* Fills in the task for chunk i of a sequence with `length` tokens. */
LOOM_FN void ragged_fill(const struct ragged *r, uint32_t sequence, uint32_t kv, uint32_t length, uint32_t i,
			 struct loom_task *t)
{
	uint32_t from = i * r->chunk, tokens = length - from < r->chunk ? length - from : r->chunk;
	workload_task(t, 0);
	t->param[0] = sequence | (uint64_t)kv << 32;
	t->param[1] = from | (uint64_t)tokens << 32;
	t->param[2] = i | (uint64_t)pieces_of(length, r->chunk) << 32;
}

/* Fills in the task for the chunk with this number among all sequences. */
LOOM_FN void ragged_fill_piece(uint32_t piece, uint32_t kv, struct loom_task *t)
{
	workload_task(t, 0);
	t->param[0] = piece | (uint64_t)kv << 32;
}

/* Makes a task whose chunk is known: a copy of t, or of a numbered task the one for its chunk. Returns 0 if it has none. */
LOOM_FN int ragged_find(const struct ragged *r, const struct loom_task *t, struct loom_task *found)
{
	*found = *t;
	if (t->param[2] >> 32)
		return 1;
	const uint32_t *start = ragged_start(r), piece = (uint32_t)t->param[0];
	uint32_t sequence = pieces_row(start, r->sequences, r->chunk, piece), length = start[sequence + 1] - start[sequence];
	uint32_t chunk = piece - pieces_first(start, sequence, r->chunk);
	if ((uint64_t)chunk * r->chunk >= length)
		return 0;
	ragged_fill(r, sequence, (uint32_t)(t->param[0] >> 32), length, chunk, found);
	return 1;
}

/* The cost of a task is the number of its tokens plus a constant, in units of the time for one token. */
LOOM_FN uint64_t workload_ragged_cost(struct loom_ctx *c, const struct loom_task *task)
{
	struct loom_task found;
	return ragged_find(ragged_of(c), task, &found) ? (found.param[1] >> 32) + 16 : 0;
}

/* ---- a tile ------------------------------------------------------------------------------------- */

/* A worker's state while it runs a task. */
struct ragged_run {
	char *local;
	struct ragged_scratch at;
	struct ragged_split split;
	uint32_t turn; /* the half of `peak` that is valid */
};

#define RAGGED_LOCAL(run, what) ((float *)((run)->local + (run)->at.what))
#define RAGGED_PEAK(run, turn, group) (RAGGED_LOCAL(run, peak) + ((turn) ? ((group) + 3u) & ~3u : 0u))

/* Computes the scores of a tile of `tokens`. */
LOOM_FN void ragged_score(const struct loom_ctx *c, const struct ragged *r, const struct ragged_run *run,
			  const uint16_t *keys, uint32_t tokens)
{
	const uint32_t dim = ragged_dim(r), group = ragged_group(r), tile = 1u << r->page_log2;
	const float *q = RAGGED_LOCAL(run, queries);
	float *scores = RAGGED_LOCAL(run, scores);
	for (uint32_t token = c->lane; token < tokens; token += c->lanes) {
		float sum[RAGGED_GROUPS], key[8];
		TILE_UNROLL
		for (uint32_t g = 0; g < group; g++)
			sum[g] = 0;
		for (uint32_t d = 0; d < dim; d += 8) {
			tile_numbers(keys + token * dim + d, ragged_bfloat(r), key);
			TILE_UNROLL
			for (uint32_t g = 0; g < group; g++)
				sum[g] += tile_dot8(q + g * dim + d, key);
		}
		TILE_UNROLL
		for (uint32_t g = 0; g < group; g++)
			scores[g * tile + token] = sum[g];
	}
}

/* Replaces scores by weights. Several lanes share a head, and each keeps the sum of its weights. */
LOOM_FN void ragged_weigh(struct loom_ctx *c, const struct ragged *r, struct ragged_run *run, uint32_t tokens)
{
	const uint32_t group = ragged_group(r), tile = 1u << r->page_log2, each = run->split.each, units = each * group;
	float *scores = RAGGED_LOCAL(run, scores), *most = RAGGED_LOCAL(run, most), *sum = RAGGED_LOCAL(run, sum);
	float *before = RAGGED_PEAK(run, run->turn, group), *after = RAGGED_PEAK(run, run->turn ^ 1, group);
	for (uint32_t u = c->lane; u < units; u += c->lanes) {
		float *of = scores + u / each * tile, highest = -1e30f;
		for (uint32_t t = u % each; t < tokens; t += each) {
			highest = of[t] > highest ? of[t] : highest;
		}
		most[u] = highest;
	}
	loom_barrier_lanes(c);
	for (uint32_t u = c->lane; u < units; u += c->lanes) {
		uint32_t g = u / each;
		float *of = scores + g * tile, peak = before[g], scale, total = 0;
		for (uint32_t i = 0; i < each; i++)
			peak = most[g * each + i] > peak ? most[g * each + i] : peak;
		scale = tile_exp2(before[g] - peak);
		for (uint32_t t = u % each; t < tokens; t += each) {
			float weight = tile_exp2(of[t] - peak);
			of[t] = weight;
			total += weight;
		}
		sum[u] = sum[u] * scale + total;
		if (u % each == 0) {
			after[g] = peak;
			RAGGED_LOCAL(run, scale)[g] = scale;
		}
	}
	run->turn ^= 1;
}

/* Adds the values of the tokens of unit u to the unit's sums, [group][8]. */
LOOM_FN void ragged_add_values(const struct ragged *r, const struct ragged_run *run, const uint16_t *values,
			       uint32_t tokens, uint32_t u, float *sums)
{
	const uint32_t group = ragged_group(r), tile = 1u << r->page_log2;
	const float *scores = RAGGED_LOCAL(run, scores), *scale = RAGGED_LOCAL(run, scale);
	uint32_t block = u % run->split.blocks, set = u / run->split.blocks;
	TILE_UNROLL
	for (uint32_t g = 0; g < group; g++) {
		float by = scale[g];
		TILE_UNROLL
		for (uint32_t i = 0; i < 8; i++)
			sums[g * 8 + i] *= by;
	}
	for (uint32_t token = set; token < tokens; token += run->split.sets) {
		float value[8];
		tile_numbers(values + token * ragged_dim(r) + block * 8, ragged_bfloat(r), value);
		TILE_UNROLL
		for (uint32_t g = 0; g < group; g++) {
			float weight = scores[g * tile + token];
			TILE_UNROLL
			for (uint32_t i = 0; i < 8; i++)
				sums[g * 8 + i] += weight * value[i];
		}
	}
}

/* ---- a task ------------------------------------------------------------------------------------- */

LOOM_FN void ragged_begin(struct loom_ctx *c, const struct ragged *r, const struct ragged_task *w, struct ragged_run *run)
{
	const uint32_t dim = ragged_dim(r), group = ragged_group(r), tile = 1u << r->page_log2, n = group * dim;
	const uint16_t *q = RAGGED_AT(r, const uint16_t, queries) +
			    ((uint64_t)w->sequence * r->heads + (uint64_t)w->kv * group) * dim;
	run->local = (char *)c->local[LOOM_WORKLOAD];
	run->split = ragged_split(c->lanes, dim, group);
	run->at = ragged_scratch(c->lanes, dim, group, tile);
	run->turn = 0;
	for (uint32_t i = c->lane; i < n; i += c->lanes)
		RAGGED_LOCAL(run, queries)[i] = tile_number(q[i], ragged_bfloat(r)) * r->scale;
	for (uint32_t i = c->lane; i < run->split.each * group; i += c->lanes)
		RAGGED_LOCAL(run, sum)[i] = 0;
	for (uint32_t i = c->lane; i < group; i += c->lanes)
		RAGGED_PEAK(run, 0, group)[i] = -1e30f;
	for (uint32_t i = c->lane; i < run->split.blocks * run->split.sets * group * 8; i += c->lanes)
		RAGGED_LOCAL(run, sums)[i] = 0;
	loom_barrier_lanes(c);
}

/* Adds the sums of all sets into `result`, [group][dim], one set after the other. */
LOOM_FN void ragged_gather(struct loom_ctx *c, const struct ragged *r, const struct ragged_run *run)
{
	const uint32_t dim = ragged_dim(r), group = ragged_group(r), all = run->split.blocks * run->split.sets;
	float *result = RAGGED_LOCAL(run, result);
	for (uint32_t set = 0; set < run->split.sets; set++) {
		for (uint32_t u = c->lane; u < all; u += c->lanes) {
			if (u / run->split.blocks != set)
				continue;
			const float *sums = RAGGED_LOCAL(run, sums) + u * group * 8;
			TILE_UNROLL
			for (uint32_t g = 0; g < group; g++) {
				TILE_UNROLL
				for (uint32_t i = 0; i < 8; i++) {
					float *to = result + g * dim + u % run->split.blocks * 8 + i;
					*to = set ? *to + sums[g * 8 + i] : sums[g * 8 + i];
				}
			}
		}
		loom_barrier_lanes(c);
	}
}

LOOM_FN float ragged_total(const struct ragged_run *run, uint32_t g)
{
	float total = 0;
	for (uint32_t i = 0; i < run->split.each; i++)
		total += RAGGED_LOCAL(run, sum)[g * run->split.each + i];
	return total;
}

LOOM_FN float *ragged_out(struct ragged *r, const struct ragged_task *w)
{
	return RAGGED_AT(r, float, out) +
	       ((uint64_t)w->sequence * r->heads + (uint64_t)w->kv * ragged_group(r)) * ragged_dim(r);
}

#define RAGGED_AT_ONCE 4u /* chunks whose loads do not wait for each other */

/* Combines the partial results of all chunks of a sequence and head. */
LOOM_FN void ragged_combine(struct loom_ctx *c, struct ragged *r, const struct ragged_task *w)
{
	const uint32_t dim = ragged_dim(r), group = ragged_group(r);
	const float *part = ragged_part(r, w->sequence, w->kv, w->chunks, 0);
	float *out = ragged_out(r, w);
	for (uint32_t i = c->lane; i < group * dim; i += c->lanes) {
		uint32_t g = i / dim;
		const float *at = part + g * (dim + 2);
		float peak = -1e30f, above = 0, below = 0;
		LOOM_NO_UNROLL
		for (uint32_t k = 0; k < w->chunks; k += RAGGED_AT_ONCE) {
			float peaks[RAGGED_AT_ONCE], sums[RAGGED_AT_ONCE], totals[RAGGED_AT_ONCE], most = peak;
			TILE_UNROLL
			for (uint32_t n = 0; n < RAGGED_AT_ONCE; n++) {
				const float *of = at + (k + n < w->chunks ? k + n : k) * group * (dim + 2);
				peaks[n] = of[dim];
				sums[n] = of[i % dim];
				totals[n] = of[dim + 1];
				peaks[n] = k + n < w->chunks ? peaks[n] : -1e30f;
			}
			TILE_UNROLL
			for (uint32_t n = 0; n < RAGGED_AT_ONCE; n++)
				most = peaks[n] > most ? peaks[n] : most;
			float scale = tile_exp2(peak - most);
			above *= scale;
			below *= scale;
			TILE_UNROLL
			for (uint32_t n = 0; n < RAGGED_AT_ONCE; n++) {
				scale = tile_exp2(peaks[n] - most);
				above += scale * sums[n];
				below += scale * totals[n];
			}
			peak = most;
		}
		out[i] = above / below;
	}
}

LOOM_FN void ragged_end(struct loom_ctx *c, struct ragged *r, const struct ragged_task *w, const struct ragged_run *run)
{
	const uint32_t dim = ragged_dim(r), group = ragged_group(r);
	const float *result = RAGGED_LOCAL(run, result);
	if (w->chunks == 1) {
		float *out = ragged_out(r, w);
		for (uint32_t i = c->lane; i < group * dim; i += c->lanes)
			out[i] = result[i] / ragged_total(run, i / dim);
		loom_barrier_lanes(c); /* the next task of this worker uses the same scratchpad memory */
		return;
	}
	float *part = ragged_part(r, w->sequence, w->kv, w->chunks, w->chunk);
	for (uint32_t i = c->lane; i < group * dim; i += c->lanes)
		part[i / dim * (dim + 2) + i % dim] = result[i];
	for (uint32_t g = c->lane; g < group; g += c->lanes) {
		part[g * (dim + 2) + dim] = RAGGED_PEAK(run, run->turn, group)[g];
		part[g * (dim + 2) + dim + 1] = ragged_total(run, g);
	}
	uint64_t *pending = RAGGED_AT(r, uint64_t, pending) + (uint64_t)w->sequence * r->kv + w->kv;
	if (r->noncoherent ? loom_last_noncoherent(c, (struct loom_onebit_lock *)(r + 1), pending)
			   : loom_last(c, pending))
		ragged_combine(c, r, w);
}

#if RAGGED_PRODUCTS
/* ---- a task whose warps multiply matrices ------------------------------------------------------- */

/* Each warp processes 16 tokens at a time, with sums and peaks of its own. Scores are the product of keys and queries, sums are
 * the product of transposed values and weights. Columns are heads. The lanes of a warp copy keys and values together into a ring in
 * scratchpad memory, so that each instruction copies whole rows, which are contiguous. While a warp works on 16 tokens, the copies
 * of the next ones are in flight. At the end, the warps add up their sums. */
#define RAGGED_STEP 16u /* pages are not smaller */
#ifdef RAGGED_DIM
#define RAGGED_SIXTEENS ((RAGGED_DIM + 15) / 16) /* a head has so many times 16 numbers */
#define RAGGED_EIGHTS	((RAGGED_GROUP + 7) / 8) /* the columns are so many times 8 heads */
#else
#define RAGGED_SIXTEENS 16
#define RAGGED_EIGHTS	2
#endif
/* Weights are multiplied by this factor, because then float16 has enough of their digits. The factor cancels out. */
#define RAGGED_LIFT 16384.0f

/* What a lane holds. */
struct ragged_hold {
	uint32_t query[RAGGED_EIGHTS][RAGGED_SIXTEENS][2];
	float sum[RAGGED_EIGHTS][RAGGED_SIXTEENS][4];
	float peak[RAGGED_EIGHTS][2], total[RAGGED_EIGHTS][2];
	uint32_t warp, warps, lane;
	uint32_t row, column; /* lane / 4, lane % 4 */
	tile_near ring;	      /* of this warp; see ragged_near() */
};

/* Returns the place of a piece of the key of a token in stage `stage` of the ring, or of its value. Pieces of the same number stand in
 * different banks for 8 tokens that follow each other, so that tile_matrices() reads without conflicts. */
LOOM_FN tile_near ragged_near(const struct ragged *r, const struct ragged_hold *h, uint32_t stage, uint32_t value, uint32_t token,
			      uint32_t piece)
{
	const uint32_t pieces = RAGGED_PIECES_OF(ragged_dim(r));
	return h->ring + ((stage * 2 + value) * RAGGED_STEP + token) * pieces * 16 + (piece ^ (token % 8)) * 16;
}

LOOM_FN void ragged_copy_some(const struct ragged *r, const struct ragged_hold *h, uint32_t stage, const uint16_t *keys, uint32_t left)
{
	const uint32_t dim = ragged_dim(r), pieces = RAGGED_PIECES_OF(dim);
	TILE_UNROLL
	for (uint32_t value = 0; value < 2; value++) {
		const uint16_t *from = keys + (value ? (uint64_t)dim << r->page_log2 : 0);
		TILE_UNROLL
		for (uint32_t i = 0; i < RAGGED_STEP * pieces / TILE_WARP; i++) {
			const uint32_t at = h->lane + TILE_WARP * i, token = at / pieces, piece = at % pieces;
			tile_copy(ragged_near(r, h, stage, value, token, piece), from + token * dim + piece * 8,
				  token < left && piece * 8 < dim);
		}
	}
}

/* Copies the keys and values of 16 tokens. Tokens from `left` on do not exist, and become zeros, as do numbers from dim on. */
LOOM_FN void ragged_copy(const struct ragged *r, const struct ragged_hold *h, uint32_t stage, const uint16_t *keys, uint32_t left)
{
	if (left >= RAGGED_STEP)
		ragged_copy_some(r, h, stage, keys, RAGGED_STEP); /* a constant, which saves the comparisons */
	else
		ragged_copy_some(r, h, stage, keys, left);
}

LOOM_FN void ragged_hold_begin(const struct loom_ctx *c, const struct ragged *r, const struct ragged_task *w,
			       const struct ragged_run *run, struct ragged_hold *h)
{
	const uint32_t dim = ragged_dim(r), group = ragged_group(r);
	const uint16_t *query = RAGGED_AT(r, const uint16_t, queries) + ((uint64_t)w->sequence * r->heads + (uint64_t)w->kv * group) * dim;
	h->warp = c->lane / TILE_WARP;
	h->warps = c->lanes / TILE_WARP;
	h->row = c->lane % TILE_WARP / 4;
	h->column = c->lane % 4;
	h->lane = c->lane % TILE_WARP;
	h->ring = tile_near_of(run->local + run->at.areas + h->warp * RAGGED_RING_OF(dim));
	TILE_UNROLL
	for (uint32_t e = 0; e < RAGGED_EIGHTS; e++) {
		const uint32_t head = 8 * e + h->row;
		TILE_UNROLL
		for (uint32_t i = 0; i < 2 * RAGGED_SIXTEENS; i++) {
			const uint32_t at = 8 * i + 2 * h->column;
			h->query[e][i / 2][i % 2] = head < group && at < dim ? ((const struct tile_two *)(query + head * dim + at))->w : 0;
		}
		TILE_UNROLL
		for (uint32_t i = 0; i < 2; i++) {
			h->peak[e][i] = -1e30f;
			h->total[e][i] = 0;
		}
		TILE_UNROLL
		for (uint32_t i = 0; i < RAGGED_SIXTEENS; i++) {
			TILE_UNROLL
			for (uint32_t k = 0; k < 4; k++)
				h->sum[e][i][k] = 0;
		}
	}
}

/* Computes the scores of 16 tokens. Two sums take turns, so that fewer products wait for each other. */
LOOM_FN void ragged_hold_score(const struct ragged *r, const struct ragged_hold *h, uint32_t stage, float (*score)[4])
{
	const uint32_t dim = ragged_dim(r), token = h->lane % 16, piece = h->lane / 16;
	float other[RAGGED_EIGHTS][4];
	TILE_UNROLL
	for (uint32_t e = 0; e < RAGGED_EIGHTS; e++) {
		TILE_UNROLL
		for (uint32_t i = 0; i < 4; i++)
			score[e][i] = other[e][i] = 0;
	}
	TILE_UNROLL
	for (uint32_t i = 0; i < RAGGED_SIXTEENS; i++) {
		if (16 * i >= dim)
			continue;
		uint32_t key[4];
		tile_matrices(ragged_near(r, h, stage, 0, token, 2 * i + piece), key);
		TILE_UNROLL
		for (uint32_t e = 0; e < RAGGED_EIGHTS; e++)
			tile_multiply(i % 2 ? other[e] : score[e], key[0], key[1], key[2], key[3], h->query[e][i][0],
				      h->query[e][i][1], ragged_bfloat(r));
	}
	TILE_UNROLL
	for (uint32_t e = 0; e < RAGGED_EIGHTS; e++) {
		TILE_UNROLL
		for (uint32_t i = 0; i < 4; i++)
			score[e][i] += other[e][i];
	}
}

/* Replaces scores by weights. `by` receives the factors by which the sums before shrink. */
LOOM_FN void ragged_hold_weigh(const struct ragged *r, struct ragged_hold *h, uint32_t e, uint32_t left, float *score,
			       float *by)
{
	TILE_UNROLL
	for (uint32_t i = 0; i < 2; i++) {
		float first = h->row < left ? score[i] * r->scale : -1e30f;
		float second = h->row + 8 < left ? score[2 + i] * r->scale : -1e30f;
		float peak = tile_highest(first > second ? first : second);
		peak = peak > h->peak[e][i] ? peak : h->peak[e][i];
		by[i] = tile_exp2(h->peak[e][i] - peak);
		h->peak[e][i] = peak;
		score[i] = h->row < left ? tile_exp2(first - peak) * RAGGED_LIFT : 0;
		score[2 + i] = h->row + 8 < left ? tile_exp2(second - peak) * RAGGED_LIFT : 0;
		h->total[e][i] = h->total[e][i] * by[i] + (score[i] + score[2 + i]);
	}
}

/* Adds the values of 16 tokens to the sums. The product starts from 0 each time. Its additions truncate, and in a long
 * sum such errors would add up. */
LOOM_FN void ragged_hold_add(const struct ragged *r, struct ragged_hold *h, uint32_t stage, float (*weight)[4], float (*by)[2])
{
	const uint32_t dim = ragged_dim(r), token = h->lane / 16 * 8 + h->lane % 8, piece = h->lane / 8 % 2;
	uint32_t with[RAGGED_EIGHTS][2][TILE_TERMS_MOST];
	TILE_UNROLL
	for (uint32_t e = 0; e < RAGGED_EIGHTS; e++) {
		TILE_UNROLL
		for (uint32_t i = 0; i < 2; i++) {
			tile_split(weight[e][2 * i], weight[e][2 * i + 1], ragged_bfloat(r), with[e][i]);
			TILE_UNROLL
			for (uint32_t t = 0; t < TILE_TERMS(ragged_bfloat(r)); t++)
				with[e][i][t] = tile_transpose(with[e][i][t]);
		}
	}
	TILE_UNROLL
	for (uint32_t i = 0; i < RAGGED_SIXTEENS; i++) {
		if (16 * i >= dim)
			continue;
		uint32_t value[4];
		tile_transposed(ragged_near(r, h, stage, 1, token, 2 * i + piece), value);
		TILE_UNROLL
		for (uint32_t e = 0; e < RAGGED_EIGHTS; e++) {
			float product[4] = {0, 0, 0, 0};
			TILE_UNROLL
			for (uint32_t t = TILE_TERMS(ragged_bfloat(r)); t > 0; t--)
				tile_multiply(product, value[0], value[1], value[2], value[3], with[e][0][t - 1],
					      with[e][1][t - 1], ragged_bfloat(r));
			TILE_UNROLL
			for (uint32_t n = 0; n < 4; n++)
				h->sum[e][i][n] = h->sum[e][i][n] * by[e][n % 2] + product[n];
		}
	}
}

/* Processes the tokens of this warp: 16 of each `warps` times 16. For each 16 tokens there is a group of copies, which may be empty. */
LOOM_FN void ragged_hold_run(const struct loom_ctx *c, const struct ragged *r, const struct ragged_task *w, struct ragged_hold *h)
{
	const uint32_t warps = ragged_warps(c->lanes, ragged_dim(r)), every = warps * RAGGED_STEP;
	uint32_t at = h->warp * RAGGED_STEP, stage, page;
	if (h->warp >= warps || at >= w->tokens)
		return;
	LOOM_NO_UNROLL
	for (stage = 0; stage < RAGGED_AHEAD; stage++) {
		const uint32_t then = at + stage * every;
		if (then < w->tokens)
			ragged_copy(r, h, stage, ragged_keys(r, w->table, w->kv, w->from + then), w->tokens - then);
		TILE_COPY_GROUP();
	}
	/* The page is loaded one step before its tokens are copied. */
	page = at + RAGGED_AHEAD * every < w->tokens ? w->table[(w->from + at + RAGGED_AHEAD * every) >> r->page_log2] : 0;
	stage = 0;
	LOOM_NO_UNROLL
	for (; at < w->tokens; at += every) {
		const uint32_t then = at + RAGGED_AHEAD * every;
		float score[RAGGED_EIGHTS][4], by[RAGGED_EIGHTS][2];
		TILE_COPY_WAIT(RAGGED_AHEAD - 1);
		TILE_WARP_BARRIER(); /* the other lanes' copies are complete, too */
		ragged_hold_score(r, h, stage, score);
		TILE_UNROLL
		for (uint32_t e = 0; e < RAGGED_EIGHTS; e++)
			ragged_hold_weigh(r, h, e, w->tokens - at, score[e], by[e]);
		ragged_hold_add(r, h, stage, score, by);
		TILE_WARP_BARRIER(); /* the next copies overwrite this stage */
		if (then < w->tokens)
			ragged_copy(r, h, stage, ragged_keys_of(r, page, w->kv, w->from + then), w->tokens - then);
		TILE_COPY_GROUP();
		if (then + every < w->tokens)
			page = w->table[(w->from + then + every) >> r->page_log2];
		stage = stage + 1 < RAGGED_AHEAD ? stage + 1 : 0;
	}
}

/* Adds up the sums of all warps, relative to the highest peak of each head. */
LOOM_FN void ragged_hold_end(struct loom_ctx *c, const struct ragged *r, struct ragged_hold *h, const struct ragged_run *run)
{
	const uint32_t dim = ragged_dim(r), group = ragged_group(r), heads = (group + 3) & ~3u, size = group * (dim + 1);
	const uint32_t areas = h->warps < TILE_AREAS ? h->warps : TILE_AREAS;
	float *peaks = RAGGED_LOCAL(run, most), *area = RAGGED_LOCAL(run, areas) + h->warp % areas * size;
	TILE_UNROLL
	for (uint32_t k = 0; k < 2 * RAGGED_EIGHTS; k++) {
		uint32_t head = k / 2 * 8 + 2 * h->column + k % 2;
		h->total[k / 2][k % 2] = tile_total(h->total[k / 2][k % 2]);
		if (h->row == 0 && head < group)
			peaks[h->warp * heads + head] = h->peak[k / 2][k % 2];
	}
	loom_barrier_lanes(c);
	for (uint32_t first = 0; first < h->warps; first += areas) {
		TILE_UNROLL
		for (uint32_t k = 0; k < 2 * RAGGED_EIGHTS; k++) {
			const uint32_t e = k / 2, head = e * 8 + 2 * h->column + k % 2;
			float peak = -1e30f, by;
			if (h->warp - first >= areas || head >= group)
				continue;
			for (uint32_t n = 0; n < h->warps; n++)
				peak = peaks[n * heads + head] > peak ? peaks[n * heads + head] : peak;
			by = tile_exp2(h->peak[e][k % 2] - peak);
			float *to = area + head * (dim + 1);
			TILE_UNROLL
			for (uint32_t i = 0; i < RAGGED_SIXTEENS * 2; i++) {
				uint32_t d = 8 * i + h->row;
				float sum = h->sum[e][i / 2][i % 2 * 2 + k % 2] * by;
				if (d < dim)
					to[d] = first ? to[d] + sum : sum;
			}
			if (h->row == 0) {
				to[dim] = (first ? to[dim] : 0) + h->total[e][k % 2] * by;
				if (h->warp == 0)
					RAGGED_PEAK(run, 0, group)[head] = peak;
			}
		}
		loom_barrier_lanes(c);
	}
	area = RAGGED_LOCAL(run, areas);
	for (uint32_t i = c->lane; i < size; i += c->lanes) {
		uint32_t head = i / (dim + 1), d = i % (dim + 1);
		float sum = 0;
		for (uint32_t n = 0; n < areas; n++)
			sum += area[n * size + i];
		if (d < dim)
			RAGGED_LOCAL(run, result)[head * dim + d] = sum;
		else
			RAGGED_LOCAL(run, sum)[head] = sum;
	}
	loom_barrier_lanes(c);
}

/* Not inlined into the worker's loop, whose values would take registers from it. Returns 0. */
LOOM_FN int ragged_multiply_chunk(struct loom_ctx *c, const struct loom_task *task)
{
	struct ragged *r = ragged_of(c);
	struct ragged_task w = ragged_task_of(r, task);
	struct ragged_hold h;
	struct ragged_run run;
	run.local = (char *)c->local[LOOM_WORKLOAD];
	run.at = ragged_scratch_of_warps(c->lanes, ragged_dim(r), ragged_group(r));
	run.split.blocks = run.split.sets = 0;
	run.split.each = 1;
	run.turn = 0;
	ragged_hold_begin(c, r, &w, &run, &h);
	ragged_hold_run(c, r, &w, &h);
	loom_stream(c, (uint64_t)w.tokens * ragged_dim(r) * 4);
	ragged_hold_end(c, r, &h, &run);
	ragged_end(c, r, &w, &run);
	return 0;
}
#endif

/* Each parameter has two values, in its lower and upper half. param[0]: the sequence; the head of keys and values.
 * param[1]: the first token; the number of tokens. param[2]: the index of the chunk; the number of chunks of the
 * sequence. If that number is 0, param[0] has the number of the chunk among all sequences in place of the sequence. */
LOOM_FN void workload_ragged_chunk(struct loom_ctx *c, const struct loom_task *task)
{
	struct ragged *r = ragged_of(c);
	struct loom_task found;
	if (!ragged_find(r, task, &found))
		return;
#if RAGGED_PRODUCTS
	LOOM_OUTLINED_COLLECTIVE(ragged_multiply_chunk, c, (const struct loom_task *)&found);
#else
	struct ragged_task w = ragged_task_of(r, &found);
	struct ragged_run run;
	ragged_begin(c, r, &w, &run);
	for (uint32_t at = 0, page = 1u << r->page_log2; at < w.tokens; at += page) {
		const uint32_t tokens = w.tokens - at < page ? w.tokens - at : page;
		const uint16_t *keys = ragged_keys(r, w.table, w.kv, w.from + at), *values = keys + ragged_dim(r) * page;
		ragged_score(c, r, &run, keys, tokens);
		loom_barrier_lanes(c);
		ragged_weigh(c, r, &run, tokens);
		loom_barrier_lanes(c);
		for (uint32_t u = c->lane; u < run.split.blocks * run.split.sets; u += c->lanes)
			ragged_add_values(r, &run, values, tokens, u, RAGGED_LOCAL(&run, sums) + u * ragged_group(r) * 8);
		loom_barrier_lanes(c); /* the next tile overwrites the scores */
	}
	loom_stream(c, (uint64_t)w.tokens * ragged_dim(r) * 4);
	ragged_gather(c, r, &run);
	ragged_end(c, r, &w, &run);
#endif
}

#endif
