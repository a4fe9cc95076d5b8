/* SPDX-License-Identifier: Apache-2.0 */
/* workload_cholesky: A = L L^T by tiles. A task is a step on one tile. It waits for the tasks on the tiles that it
 * reads or changes. Device code.
 *
 * Tile (i, j), i >= j, has steps 0 to j. Step k < j subtracts the contribution of columns k: tile (i, k) times tile
 * (j, k) transposed. Step j divides by tile (j, j), or factors if the tile is on the diagonal. So step k of a tile
 * waits for step k - 1 of the same tile, and for the last steps of the tiles that it reads. */
#ifndef WORKLOAD_CHOLESKY_DEV_H
#define WORKLOAD_CHOLESKY_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "cholesky_blas.h"
#include "cholesky_shape.dev.h"
#include "task.dev.h"
#define CHOLESKY_REAL float
#define CHOLESKY_NAME(name) cholesky_float_##name
#include "cholesky_real.dev.h"
#undef CHOLESKY_REAL
#undef CHOLESKY_NAME
#define CHOLESKY_REAL double
#define CHOLESKY_NAME(name) cholesky_double_##name
#include "cholesky_real.dev.h"
#endif

enum { CHOLESKY_FACTOR, CHOLESKY_SOLVE, CHOLESKY_UPDATE };

/* The start of the stack's block. The locks of non-coherent devices follow. Then come the `pending` counts of all
 * steps, and the tiles of the lower half by rows. */
struct cholesky {
	uint32_t size, tile, tiles, wide; /* wide: 1 if the numbers are double */
	uint32_t noncoherent, pad;
	uint64_t pending_at, tiles_at; /* byte offsets from this struct */
	uint64_t blas;		       /* on CPUs: const struct cholesky_blas *, or 0 */
	uint64_t pad2[2];
};

/* These functions return the index of a tile, and the index of a tile's step 0 among all steps. */
LOOM_FN uint64_t cholesky_tile_number(uint64_t i, uint64_t j)
{
	return i * (i + 1) / 2 + j;
}

LOOM_FN uint64_t cholesky_step_number(uint64_t i, uint64_t j)
{
	return i * (i + 1) * (i + 2) / 6 + j * (j + 1) / 2;
}

/* Returns the number of tasks for which step k of a tile waits. */
LOOM_FN uint64_t cholesky_before(uint32_t i, uint32_t j, uint32_t k)
{
	return (k > 0) + (k < j) + (i != j);
}

LOOM_FN uint32_t cholesky_rows(const struct cholesky *m, uint32_t i)
{
	return i + 1 < m->tiles ? m->tile : m->size - i * m->tile;
}

LOOM_FN void *cholesky_tile(const struct cholesky *m, uint32_t i, uint32_t j)
{
	uint64_t bytes = (uint64_t)m->tile * m->tile * (m->wide ? 8 : 4);
	return (char *)m + m->tiles_at + cholesky_tile_number(i, j) * bytes;
}

/* Step k of tile (i, j) waits for some steps. This function is called when one of them has ended. After the last one
 * it spawns step k. Returns 0, or an error if the run was stopped. */
LOOM_FN int cholesky_next(struct loom_ctx *c, struct cholesky *m, uint32_t i, uint32_t j, uint32_t k)
{
	uint64_t *pending = (uint64_t *)((char *)m + m->pending_at) + cholesky_step_number(i, j) + k;
	struct loom_task next;
	workload_task(&next, k < j ? CHOLESKY_UPDATE : i == j ? CHOLESKY_FACTOR : CHOLESKY_SOLVE);
	next.param[0] = i;
	next.param[1] = j;
	next.param[2] = k;
	return loom_after(c, m->noncoherent ? (struct loom_onebit_lock *)(m + 1) : NULL, pending, &next);
}

LOOM_FN struct cholesky *cholesky_of(const struct loom_ctx *c)
{
	return (struct cholesky *)c->global[LOOM_WORKLOAD];
}

LOOM_FN struct cholesky_shape cholesky_shape(const struct cholesky *m, uint32_t i, uint32_t j)
{
	struct cholesky_shape s = {cholesky_rows(m, i), cholesky_rows(m, j), m->tile, m->tile};
	return s;
}

/* CHOLESKY_DO(m, op, c, shape, tile...) calls the plain function `op` for the matrix's type. */
#ifdef LOOM_DEVICE_COMPILE
#define CHOLESKY_TILE(at) (CHOLESKY_REAL *)(at)
#define CHOLESKY_DO(m, op, ...) CHOLESKY_NAME(op)(__VA_ARGS__)
#else
#define CHOLESKY_TILE(at) (at)
#define CHOLESKY_DO(m, op, ...) ((m)->wide ? cholesky_double_##op(__VA_ARGS__) : cholesky_float_##op(__VA_ARGS__))
#endif

/* If a CPU has a BLAS library, lane 0 executes `call`. Otherwise the statement after the macro is executed. */
#ifdef GPULOOM_DEV_CPU_H
#define CHOLESKY_BLAS(c, m, call)                                                                  \
	if ((m)->blas) {                                                                           \
		const struct cholesky_blas *blas = (const struct cholesky_blas *)(uintptr_t)(m)->blas; \
		if ((c)->lane == 0)                                                                \
			call;                                                                      \
	} else
#else
#define CHOLESKY_BLAS(c, m, call)
#endif

/* Factors a tile on the diagonal. param[0], param[1]: row and column of the tile. */
LOOM_FN void workload_cholesky_factor(struct loom_ctx *c, const struct loom_task *t)
{
	struct cholesky *m = cholesky_of(c);
	uint32_t j = (uint32_t)t->param[1], wrong = 0;
	struct cholesky_shape s = cholesky_shape(m, j, j);
	void *tile = cholesky_tile(m, j, j);
	CHOLESKY_BLAS(c, m, wrong = cholesky_blas_factor(blas, m->wide, s, tile))
	wrong = CHOLESKY_DO(m, factor, c, s, CHOLESKY_TILE(tile));
	wrong = loom_word_from_lane0(c, wrong);
	if (wrong && c->lane == 0)
		loom_worker_fail(c, LOOM_EWRONG, (uint64_t)j * m->tile + wrong);
	if (wrong)
		return;
	/* The order is descending, because the task that is spawned last, on the tile below, is needed first. */
	for (uint32_t i = m->tiles - 1; i > j; i--)
		if (cholesky_next(c, m, i, j, j))
			return;
}

LOOM_FN void workload_cholesky_solve(struct loom_ctx *c, const struct loom_task *t)
{
	struct cholesky *m = cholesky_of(c);
	uint32_t i = (uint32_t)t->param[0], j = (uint32_t)t->param[1];
	struct cholesky_shape s = cholesky_shape(m, i, j);
	void *tile = cholesky_tile(m, i, j), *factor = cholesky_tile(m, j, j);
	CHOLESKY_BLAS(c, m, cholesky_blas_solve(blas, m->wide, s, tile, factor))
	CHOLESKY_DO(m, solve, c, s, CHOLESKY_TILE(tile), CHOLESKY_TILE(factor));
	for (uint32_t o = m->tiles - 1; o > j; o--)
		if (o <= i ? cholesky_next(c, m, i, o, j) : cholesky_next(c, m, o, i, j))
			return;
}

/* Subtracts the contribution of columns k. param[2]: k, the step. */
LOOM_FN void workload_cholesky_update(struct loom_ctx *c, const struct loom_task *t)
{
	struct cholesky *m = cholesky_of(c);
	uint32_t i = (uint32_t)t->param[0], j = (uint32_t)t->param[1], k = (uint32_t)t->param[2];
	struct cholesky_shape s = cholesky_shape(m, i, j);
	void *tile = cholesky_tile(m, i, j), *left = cholesky_tile(m, i, k), *right = cholesky_tile(m, j, k);
	CHOLESKY_BLAS(c, m, cholesky_blas_update(blas, m->wide, s, tile, left, right))
	CHOLESKY_DO(m, update, c, s, CHOLESKY_TILE(tile), CHOLESKY_TILE(left), CHOLESKY_TILE(right));
	cholesky_next(c, m, i, j, k + 1);
}

#endif
