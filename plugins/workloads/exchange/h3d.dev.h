/* SPDX-License-Identifier: Apache-2.0 */
/* C_H3D: a cube of cells per worker, on a torus (model: multiple, access: adjacent). In each cycle a worker sends to
 * its 26 neighbours the cells next to them (6 faces, 12 edges, 8 corners). It computes its inner cells, and then its
 * shell with the received cells. Device code. */
#ifndef H3D_DEV_H
#define H3D_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { H3D_CELLS = 0, H3D_NEXT, H3D_MESSAGES, H3D_PACKED, H3D_NEIGHBOUR };
enum { H3D_N = 0 };
enum { H3D_SIDES = 26 };

/* Computes the direction of a side: -1, 0 or 1 in x, y and z. The middle (0, 0, 0) is not a side. Sides s and 25 - s
 * are opposite. */
LOOM_FN void h3d_direction(uint32_t side, int32_t d[3])
{
	uint32_t i = side < 13 ? side : side + 1;
	d[0] = (int32_t)(i % 3) - 1;
	d[1] = (int32_t)(i / 3 % 3) - 1;
	d[2] = (int32_t)(i / 9) - 1;
}

LOOM_FN uint64_t h3d_cell(uint64_t n, uint64_t i, uint64_t j, uint64_t k)
{
	return (k * (n + 2) + j) * (n + 2) + i;
}

/* Computes the box of cells on a side: the worker's own cells if `ghost` is 0, the copies of the neighbour's cells if
 * it is 1. Returns the number of cells. */
LOOM_FN uint64_t h3d_box(uint32_t side, uint64_t n, int ghost, uint64_t from[3], uint64_t size[3])
{
	int32_t d[3];
	h3d_direction(side, d);
	for (uint32_t a = 0; a < 3; a++) {
		size[a] = d[a] ? 1 : n;
		from[a] = d[a] > 0 ? n + (uint64_t)ghost : d[a] < 0 ? 1 - (uint64_t)ghost : 1;
	}
	return size[0] * size[1] * size[2];
}

LOOM_FN void h3d_pack(const struct loom_ctx *c, double *to, const double *cells, uint32_t side, uint64_t n)
{
	uint64_t f[3], s[3], count = h3d_box(side, n, 0, f, s);
	EX_EACH(c, i, 0, count)
		to[i] = cells[h3d_cell(n, f[0] + i % s[0], f[1] + i / s[0] % s[1], f[2] + i / s[0] / s[1])];
}

LOOM_FN void h3d_unpack(const struct loom_ctx *c, double *cells, const double *from, uint32_t side,
			uint64_t n)
{
	uint64_t f[3], s[3], count = h3d_box(side, n, 1, f, s);
	EX_EACH(c, i, 0, count)
		cells[h3d_cell(n, f[0] + i % s[0], f[1] + i / s[0] % s[1], f[2] + i / s[0] / s[1])] = from[i];
}

LOOM_FN double h3d_average(const double *cells, uint64_t n, uint64_t i, uint64_t j, uint64_t k)
{
	double sum = 0;
	for (uint64_t z = k - 1; z <= k + 1; z++)
		for (uint64_t y = j - 1; y <= j + 1; y++)
			for (uint64_t x = i - 1; x <= i + 1; x++)
				sum += cells[h3d_cell(n, x, y, z)];
	return sum / 27;
}

/* shell = 0: computes the cells that need no neighbour. shell = 1: computes the other cells. */
LOOM_FN void h3d_step(const struct loom_ctx *c, double *next, const double *now, uint64_t n, int shell)
{
	EX_EACH(c, k, 1, n + 1)
		for (uint64_t j = 1; j <= n; j++)
			for (uint64_t i = 1; i <= n; i++) {
				int outer = i == 1 || i == n || j == 1 || j == n || k == 1 || k == n;
				if (outer == shell)
					next[h3d_cell(n, i, j, k)] = h3d_average(now, n, i, j, k);
			}
}

LOOM_FN void workload_h3d_kernel(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	uint64_t n = h->param[H3D_N], block = (n + 2) * (n + 2) * (n + 2);
	double *now = (double *)ex_at(c, H3D_CELLS) + c->worker * block;
	double *next = (double *)ex_at(c, H3D_NEXT) + c->worker * block;
	double *packed = (double *)ex_at(c, H3D_PACKED) + c->worker * n * n;
	const struct ex_message *all = (const struct ex_message *)ex_at(c, H3D_MESSAGES);
	const uint32_t *neighbour = (const uint32_t *)ex_at(c, H3D_NEIGHBOUR) + H3D_SIDES * c->worker;
	int rc = 0;
	ex_begin(c);
	for (uint32_t t = 0; t < h->iterations && !rc; t++) {
		ex_work(c, h->work_p);
		for (uint32_t s = 0; s < H3D_SIDES && !rc; s++) {
			uint64_t f[3], size[3], count = h3d_box(s, n, 0, f, size);
			h3d_pack(c, packed, now, s, n);
			rc = ex_send_message(c, &all[H3D_SIDES * c->worker + s], t, packed, 8 * count);
		}
		ex_work(c, h->work_c);
		h3d_step(c, next, now, n, 0);
		for (uint32_t s = 0; s < H3D_SIDES && !rc; s++) {
			/* The neighbour on side s sent this message to its own side 25 - s, which faces this worker. */
			const struct ex_message *m = &all[H3D_SIDES * neighbour[s] + 25 - s];
			const void *data;
			rc = ex_recv_message(c, m, t, &data);
			if (rc)
				break;
			h3d_unpack(c, now, (const double *)data, s, n);
			ex_release_message(c, m, t);
		}
		loom_barrier_lanes(c);
		h3d_step(c, next, now, n, 1);
		ex_swap(c, &now, &next);
	}
	ex_end(c);
}

#endif
