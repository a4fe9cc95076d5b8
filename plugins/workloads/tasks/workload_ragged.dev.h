/* SPDX-License-Identifier: Apache-2.0 */
/* workload_ragged: one decode step of attention over pages of keys and values. Device code.
 *
 * A task is a chunk of the tokens of one sequence, for one head of keys and values. `group` heads of queries share
 * this head. The task processes the chunk in tiles, with the exact online softmax: `peak` is the largest score so
 * far, in units of log 2, and sums are relative to it. The worker that ends the last chunk of a sequence and head
 * combines the partial results.
 *
 * Lanes share a tile in three steps. For the scores, a lane has a token, or a part of its numbers. For the weights,
 * some lanes have a head together. For the values, a lane has eight numbers of some tokens, and keeps their sums for
 * all heads. On a GPU the next tile is copied into shared memory meanwhile. */
#ifndef WORKLOAD_RAGGED_DEV_H
#define WORKLOAD_RAGGED_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "task.dev.h"
#include "tile.dev.h"
#endif

/* Tags. */
enum { RAGGED_CHUNK, RAGGED_OPEN };

#define RAGGED_GROUP_MAX 16u

/* The start of the stack's block. The locks of non-coherent devices follow. Then come the arrays, at these byte
 * offsets. */
struct ragged {
	uint32_t sequences, heads, kv; /* kv: number of heads of keys and values */
	uint32_t group, dim, tile;     /* group: heads / kv; dim: numbers of a head; tile: tokens of a tile */
	uint32_t page_log2, chunk;     /* chunk: tokens of a task, in whole pages */
	uint32_t bfloat, noncoherent;
	float scale; /* factor of scores: 1 / (log 2 * root of dim) */
	uint32_t unused;
	uint64_t length_at;	/* [sequences] uint32_t: tokens of each sequence */
	uint64_t first_page_at; /* [sequences] uint32_t: index in the table of a sequence's first page */
	uint64_t table_at;	/* [pages] uint32_t: page of each part of a sequence */
	uint64_t pages_at;	/* [pages][kv][2]: keys and values of a page of tokens */
	uint64_t queries_at;	/* [sequences][heads][dim] */
	uint64_t pending_at;	/* [sequences][kv] uint64_t: number of chunks that have not ended */
	uint64_t first_part_at; /* [sequences] uint64_t: index of a sequence's first partial result */
	uint64_t parts_at;	/* partial results, see ragged_part() */
	uint64_t out_at;	/* [sequences][heads][dim] float */
	uint64_t pad;
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
#define ragged_tile(r)  RAGGED_OF(r, tile, TILE)
#define ragged_bfloat(r) RAGGED_OF(r, bfloat, BFLOAT)

/* If there are enough lanes for all numbers of a head, a lane keeps its sums in registers. */
#if defined(LOOM_DEVICE_COMPILE) && LOOM_LANES * 8 >= RAGGED_DIM
#define RAGGED_IN_REGISTERS 1
#else
#define RAGGED_IN_REGISTERS 0
#endif

/* How the lanes of a worker share a tile. */
struct ragged_split {
	uint32_t parts;	 /* lanes per token in the first step */
	uint32_t each;	 /* lanes per head in the second step */
	uint32_t blocks; /* blocks of eight numbers in the third step */
	uint32_t sets;	 /* lanes that have the same block in the third step */
};

LOOM_FN struct ragged_split ragged_split(uint32_t lanes, uint32_t dim, uint32_t group, uint32_t tile)
{
	struct ragged_split s;
	s.parts = lanes / tile >= 4 && dim % 32 == 0 ? 4 : lanes / tile >= 2 && dim % 16 == 0 ? 2 : 1;
	s.each = lanes / group ? lanes / group : 1;
	s.blocks = dim / 8;
	s.sets = lanes / s.blocks ? lanes / s.blocks : 1;
	return s;
}

/* Byte offsets of the parts of private memory. Each part begins at a multiple of 16. */
struct ragged_scratch {
	uint32_t queries, scores, most, sum, peak, scale, result, sums, stage; /* offsets */
	uint32_t bytes;
};

/* Distance of two tokens in the stage, in numbers: 8 more than dim, so that tokens are in different banks. */
#define RAGGED_ROW(dim) ((dim) + 8u)

LOOM_FN struct ragged_scratch ragged_scratch(uint32_t lanes, uint32_t dim, uint32_t group, uint32_t tile, int staged,
					     int registers)
{
	struct ragged_split s = ragged_split(lanes, dim, group, tile);
	struct ragged_scratch at;
	uint32_t units = ((s.each * group + 3) & ~3u) * 4, heads = ((group + 3) & ~3u) * 4;
	at.queries = 0;
	at.scores = at.queries + group * dim * 4;
	at.most = at.scores + s.parts * ((group * tile + 3) & ~3u) * 4;
	at.sum = at.most + units;
	at.peak = at.sum + units;
	at.scale = at.peak + 2 * heads;
	at.result = at.scale + heads;
	at.sums = at.result + group * dim * 4;
	at.stage = at.sums + (registers ? 0 : s.blocks * s.sets * group * 8 * 4);
	at.bytes = at.stage + (staged ? 4 * tile * RAGGED_ROW(dim) * 2 : 0);
	return at;
}

/* ---- where things are ------------------------------------------------------------------------- */

#define RAGGED_AT(r, type, what) ((type *)((char *)(r) + (r)->what##_at))

LOOM_FN struct ragged *ragged_of(const struct loom_ctx *c)
{
	return (struct ragged *)c->global[LOOM_WORKLOAD];
}

LOOM_FN uint32_t ragged_chunks(const struct ragged *r, uint32_t length)
{
	return (length + r->chunk - 1) / r->chunk;
}

/* Returns a partial result for `group` heads. For each head it has dim sums, the peak, and the sum of weights. */
LOOM_FN float *ragged_part(struct ragged *r, uint32_t sequence, uint32_t kv, uint32_t chunks, uint32_t chunk)
{
	uint64_t n = RAGGED_AT(r, uint64_t, first_part)[sequence] + (uint64_t)kv * chunks + chunk;
	return RAGGED_AT(r, float, parts) + n * ragged_group(r) * (ragged_dim(r) + 2);
}

/* Returns the keys of a token of a sequence. The values of the token are one page of tokens further. */
LOOM_FN const uint16_t *ragged_keys(const struct ragged *r, const uint32_t *table, uint32_t kv, uint32_t token)
{
	uint64_t page = table[token >> r->page_log2], dim = ragged_dim(r);
	return RAGGED_AT(r, const uint16_t, pages) + (((page * r->kv + kv) * 2) << r->page_log2) * dim +
	       (token & ((1u << r->page_log2) - 1)) * dim;
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
	w.table = RAGGED_AT(r, const uint32_t, table) + RAGGED_AT(r, const uint32_t, first_page)[w.sequence];
	return w;
}

/* Fills in the task for chunk i of a sequence with `length` tokens. */
LOOM_FN void ragged_fill(const struct ragged *r, uint32_t sequence, uint32_t kv, uint32_t length, uint32_t i,
			 struct loom_task *t)
{
	uint32_t from = i * r->chunk, tokens = length - from < r->chunk ? length - from : r->chunk;
	workload_task(t, RAGGED_CHUNK);
	t->param[0] = sequence | (uint64_t)kv << 32;
	t->param[1] = from | (uint64_t)tokens << 32;
	t->param[2] = i | (uint64_t)ragged_chunks(r, length) << 32;
}

/* ---- a tile ------------------------------------------------------------------------------------- */

/* A worker's state while it runs a task. */
struct ragged_run {
	char *local;
	struct ragged_scratch at;
	struct ragged_split split;
	uint32_t turn; /* the half of `peak` that is valid */
	uint32_t pad;
};

#define RAGGED_LOCAL(run, what) ((float *)((run)->local + (run)->at.what))
#define RAGGED_PEAK(run, turn, group) (RAGGED_LOCAL(run, peak) + ((turn) ? ((group) + 3u) & ~3u : 0u))

/* A tile. `keys` and `values` are those of its first token. `row` is the distance of two tokens, in numbers. */
struct ragged_tile {
	const uint16_t *keys, *values;
	uint32_t row, tokens;
};

LOOM_FN void ragged_score(const struct loom_ctx *c, const struct ragged *r, const struct ragged_run *run,
			  const struct ragged_tile *t)
{
	const uint32_t dim = ragged_dim(r), group = ragged_group(r), tile = ragged_tile(r);
	const uint32_t part = dim / run->split.parts, pitch = (group * tile + 3) & ~3u;
	const float *q = RAGGED_LOCAL(run, queries);
	float *scores = RAGGED_LOCAL(run, scores);
	for (uint32_t u = c->lane; u < tile * run->split.parts; u += c->lanes) {
		uint32_t token = u % tile, first = u / tile * part;
		float sum[RAGGED_GROUPS], key[8];
		if (token >= t->tokens)
			continue;
		TILE_UNROLL
		for (uint32_t g = 0; g < group; g++)
			sum[g] = 0;
		for (uint32_t d = first; d < first + part; d += 8) {
			tile_numbers(t->keys + token * t->row + d, ragged_bfloat(r), key);
			TILE_UNROLL
			for (uint32_t g = 0; g < group; g++) {
				const float *with = q + g * dim + d;
				sum[g] += (with[0] * key[0] + with[1] * key[1]) + (with[2] * key[2] + with[3] * key[3]) +
					  ((with[4] * key[4] + with[5] * key[5]) + (with[6] * key[6] + with[7] * key[7]));
			}
		}
		TILE_UNROLL
		for (uint32_t g = 0; g < group; g++)
			scores[u / tile * pitch + g * tile + token] = sum[g];
	}
}

/* Replaces scores by weights. Several lanes share a head, and each keeps the sum of its weights. */
LOOM_FN void ragged_weigh(struct loom_ctx *c, const struct ragged *r, struct ragged_run *run, uint32_t tokens)
{
	const uint32_t group = ragged_group(r), tile = ragged_tile(r), each = run->split.each, units = each * group;
	const uint32_t pitch = (group * tile + 3) & ~3u;
	float *scores = RAGGED_LOCAL(run, scores), *most = RAGGED_LOCAL(run, most), *sum = RAGGED_LOCAL(run, sum);
	float *before = RAGGED_PEAK(run, run->turn, group), *after = RAGGED_PEAK(run, run->turn ^ 1, group);
	for (uint32_t u = c->lane; u < units; u += c->lanes) {
		float *of = scores + u / each * tile, highest = -1e30f;
		for (uint32_t t = u % each; t < tokens; t += each) {
			float s = of[t];
			for (uint32_t p = 1; p < run->split.parts; p++)
				s += of[p * pitch + t];
			of[t] = s;
			highest = s > highest ? s : highest;
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
LOOM_FN void ragged_add_values(const struct ragged *r, const struct ragged_run *run, const struct ragged_tile *t,
			       uint32_t u, float *sums)
{
	const uint32_t group = ragged_group(r), tile = ragged_tile(r);
	const float *scores = RAGGED_LOCAL(run, scores), *scale = RAGGED_LOCAL(run, scale);
	uint32_t block = u % run->split.blocks, set = u / run->split.blocks;
	TILE_UNROLL
	for (uint32_t g = 0; g < group; g++) {
		float by = scale[g];
		TILE_UNROLL
		for (uint32_t i = 0; i < 8; i++)
			sums[g * 8 + i] *= by;
	}
	for (uint32_t token = set; token < t->tokens; token += run->split.sets) {
		float value[8];
		tile_numbers(t->values + token * t->row + block * 8, ragged_bfloat(r), value);
		TILE_UNROLL
		for (uint32_t g = 0; g < group; g++) {
			float weight = scores[g * tile + token];
			TILE_UNROLL
			for (uint32_t i = 0; i < 8; i++)
				sums[g * 8 + i] += weight * value[i];
		}
	}
}

/* Starts the copy of a tile into a half of the stage. */
LOOM_FN void ragged_stage(const struct loom_ctx *c, const struct ragged *r, const struct ragged_run *run,
			  const struct ragged_task *w, uint32_t from, uint32_t tokens, uint32_t half)
{
	const uint32_t dim = ragged_dim(r), units = dim / 8, row = RAGGED_ROW(dim), tile = ragged_tile(r);
	uint16_t *keys = (uint16_t *)(run->local + run->at.stage) + half * 2 * tile * row, *values = keys + tile * row;
	for (uint32_t u = c->lane; u < tokens * units; u += c->lanes) {
		uint32_t token = u / units, d = u % units * 8;
		const uint16_t *k = ragged_keys(r, w->table, w->kv, from + token) + d;
		tile_copy(keys + token * row + d, k);
		tile_copy(values + token * row + d, k + ((uint64_t)dim << r->page_log2));
	}
	tile_copies_close();
}

/* Returns the tile that begins at token `at` of the chunk. On a GPU, first starts the copy of the next tile, and
 * waits for the copy of this tile. */
LOOM_FN struct ragged_tile ragged_tile_at(struct loom_ctx *c, const struct ragged *r, const struct ragged_run *run,
					  const struct ragged_task *w, uint32_t at, uint32_t n)
{
	const uint32_t dim = ragged_dim(r), tile = ragged_tile(r);
	struct ragged_tile t;
	(void)c, (void)run, (void)n;
	t.tokens = w->tokens - at < tile ? w->tokens - at : tile;
#if TILE_STAGED
	uint32_t next = at + t.tokens, left = w->tokens - next;
	if (left)
		ragged_stage(c, r, run, w, w->from + next, left < tile ? left : tile, (n + 1) % 2);
	tile_copies_wait(left != 0);
	loom_barrier_lanes(c);
	t.row = RAGGED_ROW(dim);
	t.keys = (const uint16_t *)(run->local + run->at.stage) + n % 2 * 2 * tile * t.row;
	t.values = t.keys + tile * t.row;
#else
	uint32_t page = 1u << r->page_log2, left = page - ((w->from + at) & (page - 1));
	t.tokens = t.tokens < left ? t.tokens : left;
	t.row = dim;
	t.keys = ragged_keys(r, w->table, w->kv, w->from + at);
	t.values = t.keys + ((uint64_t)dim << r->page_log2);
#endif
	return t;
}

/* ---- a task ------------------------------------------------------------------------------------- */

LOOM_FN void ragged_begin(struct loom_ctx *c, const struct ragged *r, const struct ragged_task *w, struct ragged_run *run)
{
	const uint32_t dim = ragged_dim(r), group = ragged_group(r), tile = ragged_tile(r), n = group * dim;
	const uint16_t *q = RAGGED_AT(r, const uint16_t, queries) +
			    ((uint64_t)w->sequence * r->heads + (uint64_t)w->kv * group) * dim;
	run->local = (char *)c->local[LOOM_WORKLOAD];
	run->split = ragged_split(c->lanes, dim, group, tile);
	run->at = ragged_scratch(c->lanes, dim, group, tile, TILE_STAGED, RAGGED_IN_REGISTERS);
	run->turn = 0;
#if TILE_STAGED
	ragged_stage(c, r, run, w, w->from, w->tokens < tile ? w->tokens : tile, 0);
#endif
	for (uint32_t i = c->lane; i < n; i += c->lanes)
		RAGGED_LOCAL(run, queries)[i] = tile_number(q[i], ragged_bfloat(r)) * r->scale;
	for (uint32_t i = c->lane; i < run->split.each * group; i += c->lanes)
		RAGGED_LOCAL(run, sum)[i] = 0;
	for (uint32_t i = c->lane; i < group; i += c->lanes)
		RAGGED_PEAK(run, 0, group)[i] = -1e30f;
#if !RAGGED_IN_REGISTERS
	for (uint32_t i = c->lane; i < run->split.blocks * run->split.sets * group * 8; i += c->lanes)
		RAGGED_LOCAL(run, sums)[i] = 0;
#endif
	loom_barrier_lanes(c);
}

/* Adds the sums of all sets into `result`, [group][dim], one set after the other. */
LOOM_FN void ragged_gather(struct loom_ctx *c, const struct ragged *r, const struct ragged_run *run, const float *kept)
{
	const uint32_t dim = ragged_dim(r), group = ragged_group(r), all = run->split.blocks * run->split.sets;
	float *result = RAGGED_LOCAL(run, result);
	for (uint32_t set = 0; set < run->split.sets; set++) {
		for (uint32_t u = c->lane; u < all; u += c->lanes) {
			if (u / run->split.blocks != set)
				continue;
#if RAGGED_IN_REGISTERS
			const float *sums = kept;
#else
			const float *sums = RAGGED_LOCAL(run, sums) + u * group * 8;
			(void)kept;
#endif
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
		for (uint32_t k = 0; k < w->chunks; k++)
			peak = at[k * group * (dim + 2) + dim] > peak ? at[k * group * (dim + 2) + dim] : peak;
		for (uint32_t k = 0; k < w->chunks; k++) {
			const float *of = at + k * group * (dim + 2);
			float scale = tile_exp2(of[dim] - peak);
			above += scale * of[i % dim];
			below += scale * of[dim + 1];
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
		loom_barrier_lanes(c); /* the next task of this worker uses the same private memory */
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

/* Each parameter has two values, in its lower and upper half. param[0]: the sequence; the head of keys and values.
 * param[1]: the first token; the number of tokens. param[2]: the index of the chunk; the number of chunks of the
 * sequence. */
LOOM_FN void workload_ragged_chunk(struct loom_ctx *c, const struct loom_task *task)
{
	struct ragged *r = ragged_of(c);
	struct ragged_task w = ragged_task_of(r, task);
	struct ragged_run run;
#if RAGGED_IN_REGISTERS
	float sums[RAGGED_GROUPS * 8];
	TILE_UNROLL
	for (uint32_t i = 0; i < RAGGED_GROUPS * 8; i++)
		sums[i] = 0;
#else
	float *sums = (float *)NULL;
#endif
	ragged_begin(c, r, &w, &run);
	for (uint32_t at = 0, n = 0; at < w.tokens; n++) {
		struct ragged_tile t = ragged_tile_at(c, r, &run, &w, at, n);
		ragged_score(c, r, &run, &t);
		loom_barrier_lanes(c);
		ragged_weigh(c, r, &run, t.tokens);
		loom_barrier_lanes(c);
#if RAGGED_IN_REGISTERS
		if (c->lane < run.split.blocks * run.split.sets)
			ragged_add_values(r, &run, &t, c->lane, sums);
#else
		for (uint32_t u = c->lane; u < run.split.blocks * run.split.sets; u += c->lanes)
			ragged_add_values(r, &run, &t, u, RAGGED_LOCAL(&run, sums) + u * ragged_group(r) * 8);
#endif
		at += t.tokens;
		loom_barrier_lanes(c); /* the next tile overwrites the stage and the scores */
	}
	loom_stream(c, (uint64_t)w.tokens * ragged_dim(r) * 4);
	ragged_gather(c, r, &run, sums);
	ragged_end(c, r, &w, &run);
}

/* Task for lengths that the host does not know. There is one per sequence and head of keys and values. It reads the
 * length, and spawns the chunks. */
LOOM_FN void workload_ragged_open(struct loom_ctx *c, const struct loom_task *task)
{
	struct ragged *r = ragged_of(c);
	uint32_t sequence = (uint32_t)task->param[0], kv = (uint32_t)(task->param[0] >> 32);
	uint32_t length = RAGGED_AT(r, const uint32_t, length)[sequence], chunks = ragged_chunks(r, length);
	struct loom_task chunk;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < chunks; i++) {
		ragged_fill(r, sequence, kv, length, i, &chunk);
		if (LOOM_CALL(sched, spawn, c, &chunk))
			return;
	}
}

#endif
