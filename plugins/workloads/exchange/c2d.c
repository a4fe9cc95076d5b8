/* SPDX-License-Identifier: Apache-2.0 */
#include "c2d.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("64", 4, 4096, "Rows and columns of the image that two workers share.", "20"),
	{.name = NULL},
};

struct c2d {
	double *want;
	uint32_t pairs;
	uint64_t n;
};

static int plan(struct ex *x)
{
	struct c2d *s = x->own;
	struct ex_pair *pair;
	uint32_t workers = x->layout->workers;
	uint64_t n = s->n = x->o->size & ~1u, seed = x->seed;
	s->pairs = ex_pairs(x, &pair);
	uint64_t all = s->pairs * n * n;
	double *image = ex_alloc(x, all + 1, 8);
	struct ex_message *message = ex_alloc(x, 2 * s->pairs + 1, sizeof(*message));
	struct c2d_role *role = ex_alloc(x, workers, sizeof(*role));
	if (!pair || !image || !message || !role)
		return EX_NO_MEMORY;
	for (uint64_t i = 0; i < all; i++)
		image[i] = (double)(ex_random(&seed) >> 48);
	for (uint32_t w = 0; w < workers; w++)
		role[w].image = C2D_NONE;
	for (uint32_t p = 0; p < s->pairs; p++)
		for (uint32_t half = 0; half < 2; half++) {
			uint32_t from = half ? pair[p].b : pair[p].a, to = half ? pair[p].a : pair[p].b;
			message[2 * p + half] = (struct ex_message){.from = from, .to = to};
			role[from] = (struct c2d_role){p, half};
		}
	s->want = ex_sweep(x, s->pairs, n, image, c2d_row);
	if (!s->want)
		return EX_NO_MEMORY;
	ex_message_channels(x, message, 2 * s->pairs, 2, 8 * n);
	ex_copy(x, C2D_IMAGE, image, 8 * all);
	ex_copy(x, C2D_NEXT, image, 8 * all);
	ex_copy(x, C2D_MESSAGES, message, 2 * s->pairs * sizeof(*message));
	ex_copy(x, C2D_ROLE, role, workers * sizeof(*role));
	x->head.param[C2D_N] = n;
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct c2d *s = x->own;
	return ex_compare(x, ex_ptr(h, x->o->iterations % 2 ? C2D_NEXT : C2D_IMAGE), s->want,
			  s->pairs * s->n * s->n, "pixel", err);
}

EX_PLUGIN(c2d, struct c2d, rows, "iterations", "G_C2D: 2D convolution on two halves (alternating, adjacent)", "")
