/* SPDX-License-Identifier: Apache-2.0 */
/* G_STN: a Jacobi stencil on strips of rows (model: multiple, access: adjacent). In each sweep a worker sends its
 * first row to the worker above, and its last row to the worker below. It computes the rows that need no neighbour,
 * and then the other two. Device code. */
#ifndef STN_DEV_H
#define STN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { STN_GRID = 0, STN_NEXT, STN_MESSAGES }; /* worker w sends message 2w up, 2w + 1 down */
enum { STN_N = 0 };

LOOM_FN void stn_row(const struct loom_ctx *c, double *to, const double *up, const double *row,
		     const double *down, uint64_t n)
{
	EX_EACH(c, j, 1, n - 1)
		to[j] = 0.2 * (row[j] + row[j - 1] + row[j + 1] + up[j] + down[j]);
}

LOOM_FN void workload_stn_kernel(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	uint64_t n = h->param[STN_N], first = ex_share(n, c->worker, c->workers);
	uint64_t end = ex_share(n, c->worker + 1, c->workers);
	double *now = (double *)ex_at(c, STN_GRID), *next = (double *)ex_at(c, STN_NEXT);
	const struct ex_message *all = (const struct ex_message *)ex_at(c, STN_MESSAGES);
	const struct ex_message *up = &all[2 * c->worker], *down = up + 1;
	const struct ex_message *from_up = up - 1, *from_down = up + 2; /* messages from the neighbours */
	int has_up = first > 0, has_down = end < n;
	const void *above = NULL, *below = NULL;
	ex_begin(c);
	for (uint32_t t = 0; t < h->iterations; t++) {
		ex_work(c, h->work_p);
		if (has_up && ex_send_message(c, up, t, now + first * n, 8 * n))
			break;
		if (has_down && ex_send_message(c, down, t, now + (end - 1) * n, 8 * n))
			break;
		ex_work(c, h->work_c);
		for (uint64_t i = first + 1; i + 1 < end; i++)
			stn_row(c, next + i * n, now + (i - 1) * n, now + i * n, now + (i + 1) * n, n);
		if (has_up && ex_recv_message(c, from_up, t, &above))
			break;
		if (has_down && ex_recv_message(c, from_down, t, &below))
			break;
		/* The first and last row of the grid do not change. */
		for (uint64_t i = first; i < end; i += end - 1 - first ? end - 1 - first : 1)
			if (i > 0 && i + 1 < n)
				stn_row(c, next + i * n,
					i == first ? (const double *)above : now + (i - 1) * n,
					now + i * n,
					i + 1 == end ? (const double *)below : now + (i + 1) * n, n);
		if (has_up)
			ex_release_message(c, from_up, t);
		if (has_down)
			ex_release_message(c, from_down, t);
		ex_swap(c, &now, &next);
	}
	ex_end(c);
}

#endif
