/* SPDX-License-Identifier: Apache-2.0 */
/* jacobi2d: relaxation on a grid that is cut in two dimensions, halos exchanged by triggered puts at the
 * granularity of the kernel: every worker fires, the NIC counts to the number of workers (GPU-TN, 4.2.2
 * and 5.3). Device code.
 *
 * Exchange e follows sweep e and uses the buffers of parity e & 1. Two are enough: a neighbour's exchange
 * e + 1 is fired after it has taken exchange e in, so what it took can be written again in e + 2. */
#ifndef WORKLOAD_JACOBI2D_DEV_H
#define WORKLOAD_JACOBI2D_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "net.dev.h"
#endif

enum { JACOBI_NORTH, JACOBI_SOUTH, JACOBI_WEST, JACOBI_EAST, JACOBI_SIDES };
#define JACOBI_TAG(side) (1u + (side))
#define JACOBI_ARRIVAL(side) (1u + (side)) /* at the receiver: the side that it came from */

/* Head of the global block. All ranks have edges at the same offsets. */
struct jacobi {
	uint64_t rows, cols;  /* of this rank's part */
	uint64_t sweeps;
	uint64_t edge;        /* doubles of the longest edge of any rank */
	uint64_t edges_at;    /* [parity][out, in][side][edge] */
	uint64_t grid_at;     /* [2][rows + 2][cols + 2] */
	uint64_t meet;        /* of this rank's workers */
	int32_t neighbour[4]; /* rank by side; -1: the rim of the grid */
	uint64_t pad[5];
};

LOOM_FN double *jacobi_grid(const struct jacobi *j, uint64_t parity)
{
	return (double *)((char *)j + j->grid_at) + parity * (j->rows + 2) * (j->cols + 2);
}

LOOM_FN double *jacobi_edge(const struct jacobi *j, uint64_t parity, uint32_t in, uint32_t side)
{
	return (double *)((char *)j + j->edges_at) + ((parity * 2 + in) * JACOBI_SIDES + side) * j->edge;
}

/* Rows `from` to `to` (exclusive, from 1) of the next grid. */
LOOM_FN void jacobi_sweep(struct loom_ctx *c, const struct jacobi *j, uint64_t sweep, uint64_t from,
			  uint64_t to)
{
	const double *old = jacobi_grid(j, sweep & 1);
	double *next = jacobi_grid(j, (sweep & 1) ^ 1);
	uint64_t width = j->cols + 2;
	for (uint64_t r = from; r < to; r++)
		for (uint64_t k = 1 + c->lane; k <= j->cols; k += c->lanes) {
			uint64_t i = r * width + k;
			next[i] = 0.25 * ((old[i - width] + old[i + width]) + (old[i - 1] + old[i + 1]));
		}
	loom_barrier_lanes(c);
}

/* This worker's part of the edges of the next grid: out, or back in from the neighbours. */
LOOM_FN void jacobi_edges(struct loom_ctx *c, const struct jacobi *j, uint64_t sweep, uint64_t from,
			  uint64_t to, uint32_t in)
{
	double *next = jacobi_grid(j, (sweep & 1) ^ 1);
	uint64_t width = j->cols + 2, parity = sweep & 1;
	for (uint32_t side = JACOBI_NORTH; side <= JACOBI_SOUTH; side++) {
		double *edge = jacobi_edge(j, parity, in, side);
		uint64_t row = side == JACOBI_NORTH ? 1 : j->rows, halo = side == JACOBI_NORTH ? 0 : j->rows + 1;
		if (j->neighbour[side] < 0 || row < from || row >= to)
			continue;
		for (uint64_t k = c->lane; k < j->cols; k += c->lanes)
			if (in)
				next[halo * width + 1 + k] = edge[k];
			else
				edge[k] = next[row * width + 1 + k];
	}
	for (uint32_t side = JACOBI_WEST; side <= JACOBI_EAST; side++) {
		double *edge = jacobi_edge(j, parity, in, side);
		uint64_t col = side == JACOBI_WEST ? 1 : j->cols, halo = side == JACOBI_WEST ? 0 : j->cols + 1;
		if (j->neighbour[side] < 0)
			continue;
		for (uint64_t r = from + c->lane; r < to; r += c->lanes)
			if (in)
				next[r * width + halo] = edge[r - 1];
			else
				edge[r - 1] = next[r * width + col];
	}
	loom_barrier_lanes(c);
}

LOOM_FN int jacobi_exchange(struct loom_ctx *c, const struct jacobi *j, uint64_t sweep)
{
	for (uint32_t side = 0; side < JACOBI_SIDES; side++)
		if (j->neighbour[side] >= 0 && !net_fire(c, JACOBI_TAG(side)))
			return 0;
	if (!net_deliver(c))
		return 0;
	for (uint32_t side = 0; side < JACOBI_SIDES; side++)
		if (j->neighbour[side] >= 0 && !net_await(c, JACOBI_ARRIVAL(side), sweep + 1))
			return 0;
	return 1;
}

LOOM_FN void workload_jacobi2d_kernel(struct loom_ctx *c)
{
	struct jacobi *j = (struct jacobi *)c->global[LOOM_WORKLOAD];
	uint64_t from = 1 + j->rows * c->worker / c->workers;
	uint64_t to = 1 + j->rows * (c->worker + 1) / c->workers;
	for (uint64_t sweep = 0; sweep < j->sweeps; sweep++) {
		jacobi_sweep(c, j, sweep, from, to);
		jacobi_edges(c, j, sweep, from, to, 0);
		if (!jacobi_exchange(c, j, sweep))
			return;
		jacobi_edges(c, j, sweep, from, to, 1);
		if (!net_meet(c, &j->meet, sweep + 1))
			return;
	}
}

#endif
