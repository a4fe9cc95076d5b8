/* SPDX-License-Identifier: Apache-2.0 */
#include "gem.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("160", 16, 4096, "Rows and columns of the matrices. Iterations follow from it: one per panel "
		"of 16.", "1"),
	{.name = NULL},
};

struct gem {
	double *want;
	uint64_t n;
};

static int reference(struct ex *x, struct gem *s, uint64_t seed)
{
	uint64_t n = s->n;
	double *b = ex_alloc(x, n * n, 8);
	s->want = ex_alloc(x, n * n, 8);
	if (!b || !s->want)
		return EX_NO_MEMORY;
	for (uint64_t i = 0; i < n * n; i++)
		b[i] = gem_element(seed, 1, i / n, i % n);
	for (uint64_t i = 0; i < n; i++)
		for (uint64_t k = 0; k < n; k++) {
			double a = gem_element(seed, 0, i, k);
			for (uint64_t j = 0; j < n; j++)
				s->want[i * n + j] += a * b[k * n + j];
		}
	return 0;
}

static int plan(struct ex *x)
{
	struct gem *s = x->own;
	uint64_t n = s->n = x->o->size > x->layout->workers ? x->o->size : x->layout->workers;
	if (reference(x, s, x->seed))
		return EX_NO_MEMORY;
	for (uint32_t d = 0; d < x->layout->devices; d++)
		ex_channel(x, LOOM_ANY_DEVICE, d, GEM_SLOTS, x->layout->device[d].workers, 8 * GEM_K * n);
	ex_array(x, GEM_C, 8 * n * n, EX_ZERO);
	ex_array(x, GEM_A, 8 * n * GEM_K, EX_KEEP);
	ex_array(x, GEM_B, 8 * x->layout->workers * n * GEM_K, EX_KEEP);
	x->head.param[GEM_N] = n;
	x->head.param[GEM_SEED] = x->seed;
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct gem *s = x->own;
	return ex_compare(x, ex_ptr(h, GEM_C), s->want, s->n * s->n, "element", err);
}

EX_PLUGIN(gem, struct gem, rows, "iterations", "G_GEM: matrix multiplication in panels (multiple, streaming)", "")
