/* SPDX-License-Identifier: Apache-2.0 */
#include "stn.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("192", 4, 8192, "Rows and columns of the grid; at least one row per worker.", "20"),
	{.name = NULL},
};

struct stn {
	double *want;
	uint64_t n;
};

static int plan(struct ex *x)
{
	struct stn *s = x->own;
	uint32_t workers = x->layout->workers;
	uint64_t n = s->n = x->o->size > workers ? x->o->size : workers, seed = x->seed;
	struct ex_message *message = ex_alloc(x, 2 * workers, sizeof(*message));
	double *grid = ex_alloc(x, n * n, 8);
	if (!message || !grid)
		return EX_NO_MEMORY;
	for (uint64_t i = 0; i < n * n; i++)
		grid[i] = (double)(ex_random(&seed) >> 40) / 65536.0;
	s->want = ex_sweep(x, 1, n, grid, stn_row);
	if (!s->want)
		return EX_NO_MEMORY;
	for (uint32_t w = 0; w < workers; w++) {
		message[2 * w] = (struct ex_message){.from = w, .to = w ? w - 1 : w};
		message[2 * w + 1] = (struct ex_message){.from = w, .to = w + 1 < workers ? w + 1 : w};
	}
	ex_message_channels(x, message, 2 * workers, 2, 8 * n);
	ex_copy(x, STN_GRID, grid, 8 * n * n);
	ex_copy(x, STN_NEXT, grid, 8 * n * n);
	ex_copy(x, STN_MESSAGES, message, 2 * workers * sizeof(*message));
	x->head.param[STN_N] = n;
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct stn *s = x->own;
	return ex_compare(x, ex_ptr(h, x->o->iterations % 2 ? STN_NEXT : STN_GRID), s->want, s->n * s->n,
			  "grid point", err);
}

EX_PLUGIN(stn, struct stn, rows, "iterations", "G_STN: Jacobi stencil on strips (multiple, adjacent)", "")
