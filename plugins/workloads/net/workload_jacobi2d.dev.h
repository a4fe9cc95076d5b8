/* SPDX-License-Identifier: Apache-2.0 */
/* jacobi2d: relaxation on a grid that is cut in two dimensions. Triggered puts exchange the edges of the parts at the
 * granularity of the kernel (GPU-TN, 4.2.2 and 5.3): every worker at an edge fires. The threshold is the number of
 * these workers. Device code.
 *
 * The edges are in memory that the network can access. If there is only one device, the grid is in its memory.
 * Exchange e follows sweep e and uses the buffers of parity e & 1. Two sets of buffers suffice. A neighbour fires
 * exchange e + 1 only after it has copied the data of exchange e. So exchange e + 2 may overwrite these data. */
#ifndef WORKLOAD_JACOBI2D_DEV_H
#define WORKLOAD_JACOBI2D_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>

#include "../collective/net.dev.h"
#endif

enum { JACOBI_NORTH, JACOBI_SOUTH, JACOBI_WEST, JACOBI_EAST, JACOBI_SIDES };
#define JACOBI_TAG(side) (1u + (side))
#define JACOBI_ARRIVAL(side) (1u + (side)) /* index of arrivals from a side of the receiver */

/* Head of the global block. All ranks have edges at the same offsets. */
struct jacobi {
	uint64_t rows, cols;  /* size of this rank's part of the grid */
	uint64_t sweeps;
	uint64_t edge;        /* size of an edge's buffer in doubles, enough for all ranks */
	uint64_t edges_at;    /* byte offset of double [parity][out, in][side][edge] */
	uint64_t grid_at;     /* byte offset of double [2][rows + 2][cols + 2]; 0: the grid is in the device's block */
	int32_t neighbour[4]; /* neighbouring rank on each side; -1: the edge of the whole grid */
	uint64_t pad[5];
};

/* Returns the grid of a parity. `all` is the block for the stack, and *j its head or a copy. `on_device` is the
 * device's block. */
LOOM_FN double *jacobi_grid(const struct jacobi *j, void *all, void *on_device, uint64_t parity)
{
	char *grid = j->grid_at ? (char *)all + j->grid_at : (char *)on_device;
	return (double *)grid + parity * (j->rows + 2) * (j->cols + 2);
}

/* Returns whether rows `from` to `to` (exclusive) of a worker touch edge `side`, and a neighbour is there. */
LOOM_FN int jacobi_is_at(const struct jacobi *j, uint32_t side, uint64_t from, uint64_t to)
{
	if (j->neighbour[side] < 0 || from >= to)
		return 0;
	return side == JACOBI_NORTH ? from == 1 : side == JACOBI_SOUTH ? to == j->rows + 1 : 1;
}

LOOM_FN uint64_t jacobi_from(const struct jacobi *j, uint32_t worker, uint32_t workers)
{
	return 1 + j->rows * worker / workers;
}

LOOM_FN double *jacobi_edge(const struct jacobi *j, void *all, uint64_t parity, uint32_t in, uint32_t side)
{
	return (double *)((char *)all + j->edges_at) + ((parity * 2 + in) * JACOBI_SIDES + side) * j->edge;
}

/* Computes rows `from` to `to` (exclusive; the first row is 1) of the next grid. */
LOOM_FN void jacobi_sweep(struct loom_ctx *c, const struct jacobi *j, uint64_t sweep, uint64_t from, uint64_t to)
{
	void *all = c->global[LOOM_WORKLOAD], *on_device = c->on_device[LOOM_WORKLOAD];
	const double *old = jacobi_grid(j, all, on_device, sweep & 1);
	double *next = jacobi_grid(j, all, on_device, (sweep & 1) ^ 1);
	uint64_t width = j->cols + 2;
	loom_stream(c, 2 * sizeof(double) * (to - from) * j->cols);
	for (uint64_t r = from; r < to; r++)
		for (uint64_t k = 1 + c->lane; k <= j->cols; k += c->lanes) {
			uint64_t i = r * width + k;
			next[i] = 0.25 * ((old[i - width] + old[i + width]) + (old[i - 1] + old[i + 1]));
		}
	loom_barrier_lanes(c);
}

/* in = 0: copies this worker's part of the edges of the next grid to the buffers. in = 1: copies the neighbours'
 * edges from the buffers into the next grid. */
LOOM_FN void jacobi_edges(struct loom_ctx *c, const struct jacobi *j, uint64_t sweep, uint64_t from,
			  uint64_t to, uint32_t in)
{
	void *all = c->global[LOOM_WORKLOAD];
	double *next = jacobi_grid(j, all, c->on_device[LOOM_WORKLOAD], (sweep & 1) ^ 1);
	uint64_t width = j->cols + 2, parity = sweep & 1;
	for (uint32_t side = JACOBI_NORTH; side <= JACOBI_SOUTH; side++) {
		double *edge = jacobi_edge(j, all, parity, in, side);
		uint64_t row = side == JACOBI_NORTH ? 1 : j->rows, halo = side == JACOBI_NORTH ? 0 : j->rows + 1;
		if (!jacobi_is_at(j, side, from, to))
			continue;
		for (uint64_t k = c->lane; k < j->cols; k += c->lanes)
			if (in)
				next[halo * width + 1 + k] = edge[k];
			else
				edge[k] = next[row * width + 1 + k];
	}
	for (uint32_t side = JACOBI_WEST; side <= JACOBI_EAST; side++) {
		double *edge = jacobi_edge(j, all, parity, in, side);
		uint64_t col = side == JACOBI_WEST ? 1 : j->cols, halo = side == JACOBI_WEST ? 0 : j->cols + 1;
		if (!jacobi_is_at(j, side, from, to))
			continue;
		for (uint64_t r = from + c->lane; r < to; r += c->lanes)
			if (in)
				next[r * width + halo] = edge[r - 1];
			else
				edge[r - 1] = next[r * width + col];
	}
	loom_barrier_lanes(c);
}

/* Copies in the edges that the neighbours sent after sweep n - 1, computes sweep n, and sends its edges. Returns 1,
 * or 0 when the run is over. */
LOOM_FN int jacobi_step(struct loom_ctx *c, const struct jacobi *j, uint64_t n, uint64_t from, uint64_t to)
{
	if (n > 0)
		jacobi_edges(c, j, n - 1, from, to, 1);
	if (n == j->sweeps)
		return 1;
	jacobi_sweep(c, j, n, from, to);
	jacobi_edges(c, j, n, from, to, 0);
	for (uint32_t side = 0; side < JACOBI_SIDES; side++)
		if (jacobi_is_at(j, side, from, to) && !loom_net_fire(c, JACOBI_TAG(side)))
			return 0;
	return 1;
}

LOOM_FN void workload_jacobi2d_kernel(struct loom_ctx *c)
{
	struct jacobi copy = LOOM_NET_HEAD(c, struct jacobi), *j = &copy;
	uint64_t from = jacobi_from(j, c->worker, c->workers), to = jacobi_from(j, c->worker + 1, c->workers);
	for (uint64_t n = 0; jacobi_step(c, j, n, from, to) && n < j->sweeps; n++) {
		if (!loom_net_deliver(c))
			return;
		for (uint32_t side = 0; side < JACOBI_SIDES; side++)
			if (jacobi_is_at(j, side, from, to) && !loom_net_await(c, JACOBI_ARRIVAL(side), n + 1))
				return;
		if (LOOM_CALL(barrier, wait, c, LOOM_SCOPE_STACK))
			return;
	}
}

LOOM_FN void workload_jacobi2d_step(struct loom_ctx *c, uint64_t n)
{
	struct jacobi copy = LOOM_NET_HEAD(c, struct jacobi), *j = &copy;
	jacobi_step(c, j, n, jacobi_from(j, c->worker, c->workers), jacobi_from(j, c->worker + 1, c->workers));
}

#endif
