/* SPDX-License-Identifier: Apache-2.0 */
/* workload_stn: host half. */
#include "stn.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("192", 4, 8192, "Rows and columns of the grid; at least one row per worker.", "20"),
	{.name = NULL},
};

struct stn {
	struct ex_message *message;
	double *want;
	uint64_t n;
};

static void input(double *grid, uint64_t count, uint64_t seed)
{
	for (uint64_t i = 0; i < count; i++)
		grid[i] = (double)(ex_random(&seed) >> 40) / 65536.0;
}

static int plan(struct ex *x)
{
	struct stn *s = x->own;
	uint32_t workers = x->layout->workers;
	uint64_t n = s->n = x->o->size > workers ? x->o->size : workers;
	s->message = ex_room(x, 2 * workers, sizeof(*s->message));
	s->want = ex_sweep(x, 1, n, input, stn_row);
	if (!s->message || !s->want)
		return EX_NO_ROOM;
	for (uint32_t w = 0; w < workers; w++) {
		s->message[2 * w] = (struct ex_message){.from = w, .to = w ? w - 1 : w};
		s->message[2 * w + 1] = (struct ex_message){.from = w, .to = w + 1 < workers ? w + 1 : w};
	}
	ex_message_channels(x, s->message, 2 * workers, 2, 8 * n);
	ex_array(x, STN_GRID, 8 * n * n);
	ex_array(x, STN_NEXT, 8 * n * n);
	ex_array(x, STN_MESSAGES, 2 * workers * sizeof(*s->message));
	x->head.param[STN_N] = n;
	return 0;
}

static void fill(struct ex *x, struct ex_head *h)
{
	const struct stn *s = x->own;
	input(ex_of(h, STN_GRID), s->n * s->n, x->seed);
	memcpy(ex_of(h, STN_NEXT), ex_of(h, STN_GRID), 8 * s->n * s->n);
	memcpy(ex_of(h, STN_MESSAGES), s->message, 2 * x->layout->workers * sizeof(*s->message));
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct stn *s = x->own;
	return ex_compare(x, ex_of(h, x->o->iterations % 2 ? STN_NEXT : STN_GRID), s->want, s->n * s->n,
			  "grid point", err);
}

static const struct ex_app app = {.name = "stn", .bytes = sizeof(struct stn), .plan = plan, .fill = fill,
				  .check = check};

EX_PLUGIN(stn, app, rows, "iterations", "G_STN: Jacobi stencil on strips (multiple, adjacent)", "")
