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

static int reference(struct c2d *s, uint32_t iterations, uint64_t seed)
{
	uint64_t n = s->n, all = s->pairs * n * n;
	struct loom_ctx one = {.lanes = 1};
	double *now = malloc(8 * all), *next = malloc(8 * all);
	if (!now || !next) {
		free(now);
		free(next);
		return LOOM_ENOMEM;
	}
	input(now, all, seed);
	memcpy(next, now, 8 * all);
	for (uint32_t t = 0; t < iterations; t++) {
		for (uint64_t i = 0; i < s->pairs * n; i++)
			if (i % n != 0 && i % n != n - 1)
				c2d_row(&one, next + i * n, now + (i - 1) * n, now + i * n,
					now + (i + 1) * n, n);
		double *swap = now;
		now = next;
		next = swap;
	}
	s->want = now;
	free(next);
	return 0;
}

static int plan(struct ex *x, const struct loom_layout *layout, struct loom_error *err)
{
	struct c2d *s = x->own;
	uint64_t n = s->n = x->o->size & ~1u;
	s->pairs = ex_pairs(layout, &s->pair);
	s->message = calloc(2 * s->pairs + 1, sizeof(*s->message));
	if (!s->pair || !s->message || reference(s, x->o->iterations, x->seed))
		return LOOM_FAIL(x->host, err, LOOM_ENOMEM, "workload_c2d: out of memory");
	for (uint32_t p = 0; p < s->pairs; p++) {
		s->message[2 * p] = (struct ex_message){.from = s->pair[p].a, .to = s->pair[p].b};
		s->message[2 * p + 1] = (struct ex_message){.from = s->pair[p].b, .to = s->pair[p].a};
	}
	ex_message_channels(x, layout, s->message, 2 * s->pairs, 2, 8 * n);
	ex_array(x, C2D_IMAGE, 8 * s->pairs * n * n);
	ex_array(x, C2D_NEXT, 8 * s->pairs * n * n);
	ex_array(x, C2D_MESSAGES, 2 * s->pairs * sizeof(*s->message));
	ex_array(x, C2D_ROLE, layout->workers * sizeof(struct c2d_role));
	x->head.param[C2D_N] = n;
	return 0;
}

static int fill(struct ex *x, struct ex_head *h, const struct loom_layout *layout)
{
	const struct c2d *s = x->own;
	struct c2d_role *role = ex_of(h, C2D_ROLE);
	uint64_t all = s->pairs * s->n * s->n;
	input(ex_of(h, C2D_IMAGE), all, x->seed);
	memcpy(ex_of(h, C2D_NEXT), ex_of(h, C2D_IMAGE), 8 * all);
	memcpy(ex_of(h, C2D_MESSAGES), s->message, 2 * s->pairs * sizeof(*s->message));
	for (uint32_t w = 0; w < layout->workers; w++)
		role[w].image = C2D_NONE;
	for (uint32_t p = 0; p < s->pairs; p++) {
		role[s->pair[p].a] = (struct c2d_role){p, 0};
		role[s->pair[p].b] = (struct c2d_role){p, 1};
	}
	return 0;
}

static int check(struct ex *x, struct ex_head *h, const struct loom_layout *layout,
		 struct loom_report *report, struct loom_error *err)
{
	const struct c2d *s = x->own;
	(void)layout, (void)report;
	return ex_compare(x, ex_of(h, x->o->iterations % 2 ? C2D_NEXT : C2D_IMAGE), s->want,
			  s->pairs * s->n * s->n, "pixel", err);
}

static void finish(struct ex *x)
{
	struct c2d *s = x->own;
	free(s->pair);
	free(s->message);
	free(s->want);
}

static const struct ex_app app = {.name = "c2d", .bytes = sizeof(struct c2d), .plan = plan, .fill = fill,
				  .check = check, .finish = finish};

EX_PLUGIN(c2d, app, rows, "G_C2D: 2D convolution on two halves (alternating, adjacent)", "")
