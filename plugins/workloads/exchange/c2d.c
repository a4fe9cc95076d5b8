/* SPDX-License-Identifier: Apache-2.0 */
/* workload_c2d: host half. */
#include "c2d.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("64", 4, 4096, "Rows and columns of the image that two workers share.", "20"),
	{.name = NULL},
};

struct c2d {
	struct ex_pair *pair;
	struct ex_message *message;
	double *want;
	uint32_t pairs;
	uint64_t n;
};

static void input(double *image, uint64_t count, uint64_t seed)
{
	for (uint64_t i = 0; i < count; i++)
		image[i] = (double)(ex_random(&seed) >> 48);
}

static int plan(struct ex *x)
{
	struct c2d *s = x->own;
	uint64_t n = s->n = x->o->size & ~1u;
	s->pairs = ex_pairs(x, &s->pair);
	s->message = ex_room(x, 2 * s->pairs + 1, sizeof(*s->message));
	s->want = ex_sweep(x, s->pairs, n, input, c2d_row);
	if (!s->pair || !s->message || !s->want)
		return EX_NO_ROOM;
	for (uint32_t p = 0; p < s->pairs; p++) {
		s->message[2 * p] = (struct ex_message){.from = s->pair[p].a, .to = s->pair[p].b};
		s->message[2 * p + 1] = (struct ex_message){.from = s->pair[p].b, .to = s->pair[p].a};
	}
	ex_message_channels(x, s->message, 2 * s->pairs, 2, 8 * n);
	ex_array(x, C2D_IMAGE, 8 * s->pairs * n * n);
	ex_array(x, C2D_NEXT, 8 * s->pairs * n * n);
	ex_array(x, C2D_MESSAGES, 2 * s->pairs * sizeof(*s->message));
	ex_array(x, C2D_ROLE, x->layout->workers * sizeof(struct c2d_role));
	x->head.param[C2D_N] = n;
	return 0;
}

static void fill(struct ex *x, struct ex_head *h)
{
	const struct c2d *s = x->own;
	struct c2d_role *role = ex_of(h, C2D_ROLE);
	uint64_t all = s->pairs * s->n * s->n;
	input(ex_of(h, C2D_IMAGE), all, x->seed);
	memcpy(ex_of(h, C2D_NEXT), ex_of(h, C2D_IMAGE), 8 * all);
	memcpy(ex_of(h, C2D_MESSAGES), s->message, 2 * s->pairs * sizeof(*s->message));
	for (uint32_t w = 0; w < x->layout->workers; w++)
		role[w].image = C2D_NONE;
	for (uint32_t p = 0; p < s->pairs; p++) {
		role[s->pair[p].a] = (struct c2d_role){p, 0};
		role[s->pair[p].b] = (struct c2d_role){p, 1};
	}
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct c2d *s = x->own;
	return ex_compare(x, ex_of(h, x->o->iterations % 2 ? C2D_NEXT : C2D_IMAGE), s->want,
			  s->pairs * s->n * s->n, "pixel", err);
}

static const struct ex_app app = {.name = "c2d", .bytes = sizeof(struct c2d), .plan = plan, .fill = fill,
				  .check = check};

EX_PLUGIN(c2d, app, rows, "iterations", "G_C2D: 2D convolution on two halves (alternating, adjacent)", "")
