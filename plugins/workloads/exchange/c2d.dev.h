/* SPDX-License-Identifier: Apache-2.0 */
/* G_C2D: 3 x 3 convolutions of an image whose upper half belongs to one device and whose lower half to another
 * (model: alternating, access: adjacent). In each pass the upper worker sends its last row. The lower worker computes
 * with that row, and then sends its first row back. Device code. */
#ifndef C2D_DEV_H
#define C2D_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { C2D_IMAGE = 0, C2D_NEXT, C2D_MESSAGES, C2D_ROLE };
enum { C2D_N = 0 };
#define C2D_NONE 0xffffffffu

/* `image`: index of the worker's image, or C2D_NONE. `half`: 0 for the upper half, 1 for the lower half. */
struct c2d_role {
	uint32_t image, half;
};

LOOM_FN void c2d_row(const struct loom_ctx *c, double *to, const double *up, const double *row,
		     const double *down, uint64_t n)
{
	EX_EACH(c, j, 1, n - 1)
		to[j] = 0.05 * up[j - 1] + 0.125 * up[j] + 0.075 * up[j + 1] + 0.1 * row[j - 1] +
			0.25 * row[j] + 0.15 * row[j + 1] + 0.025 * down[j - 1] + 0.175 * down[j] +
			0.05 * down[j + 1];
}

LOOM_FN void workload_c2d_kernel(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	const struct c2d_role role = ((const struct c2d_role *)ex_at(c, C2D_ROLE))[c->worker];
	uint64_t n = h->param[C2D_N], half = n / 2;
	if (role.image == C2D_NONE)
		return;
	double *now = (double *)ex_at(c, C2D_IMAGE) + role.image * n * n;
	double *next = (double *)ex_at(c, C2D_NEXT) + role.image * n * n;
	const struct ex_message *m =
		(const struct ex_message *)ex_at(c, C2D_MESSAGES) + 2 * role.image;
	uint64_t edge = role.half ? half : half - 1; /* the row next to the other half */
	uint64_t first = role.half ? half : 1, end = role.half ? n - 1 : half;
	const struct ex_message *mine = &m[role.half], *theirs = &m[1 - role.half];
	const void *row;
	ex_begin(c);
	for (uint32_t t = 0; t < h->iterations; t++) {
		if (role.half == 0) {
			ex_work(c, h->work_p);
			if (ex_send_message(c, mine, t, now + edge * n, 8 * n))
				break;
		}
		ex_work(c, h->work_c);
		for (uint64_t i = first; i < end; i++)
			if (i != edge)
				c2d_row(c, next + i * n, now + (i - 1) * n, now + i * n, now + (i + 1) * n, n);
		if (ex_recv_message(c, theirs, t, &row))
			break;
		c2d_row(c, next + edge * n, role.half ? (const double *)row : now + (edge - 1) * n,
			now + edge * n, role.half ? now + (edge + 1) * n : (const double *)row, n);
		ex_release_message(c, theirs, t);
		if (role.half == 1) {
			ex_work(c, h->work_p);
			if (ex_send_message(c, mine, t, now + edge * n, 8 * n))
				break;
		}
		ex_swap(c, &now, &next);
	}
	ex_end(c);
}

#endif
