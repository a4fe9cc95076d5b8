/* SPDX-License-Identifier: Apache-2.0 */
#include "h3d.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("10", 2, 128, "Cells along an edge of a worker's cube.", "8"),
	{.name = NULL},
};

struct h3d {
	double *want; /* expected cells of the whole torus */
	uint32_t grid[3];
	uint64_t n;
};

/* Divides the number of workers into three factors that are as equal as possible. */
static void factor(uint32_t workers, uint32_t grid[3])
{
	grid[0] = grid[1] = 1;
	grid[2] = workers;
	for (uint32_t a = 1; a * a * a <= workers; a++)
		for (uint32_t b = a; workers % a == 0 && a * b * b <= workers; b++)
			if (workers / a % b == 0) {
				grid[0] = a;
				grid[1] = b;
				grid[2] = workers / a / b;
			}
}

static uint32_t at(const uint32_t grid[3], const uint32_t p[3])
{
	return (p[2] * grid[1] + p[1]) * grid[0] + p[0];
}

static uint32_t neighbour(const uint32_t grid[3], uint32_t worker, uint32_t side)
{
	uint32_t p[3] = {worker % grid[0], worker / grid[0] % grid[1], worker / grid[0] / grid[1]};
	int32_t d[3];
	h3d_direction(side, d);
	for (uint32_t a = 0; a < 3; a++)
		p[a] = (p[a] + grid[a] + (uint32_t)d[a]) % grid[a];
	return at(grid, p);
}

static double start(uint64_t seed, uint64_t i)
{
	uint64_t state = (seed + i * 0x9e3779b97f4a7c15ull) | 1;
	return (double)(ex_random(&state) >> 44);
}

/* Computes the whole torus in coordinates of the torus, without messages and ghost cells. */
static int reference(struct ex *o, struct h3d *s, uint32_t iterations, uint64_t seed)
{
	uint64_t n = s->n, X = s->grid[0] * n, Y = s->grid[1] * n, Z = s->grid[2] * n, all = X * Y * Z;
	double *now = ex_alloc(o, all, 8), *next = ex_alloc(o, all, 8);
	if (!now || !next)
		return EX_NO_MEMORY;
	for (uint64_t i = 0; i < all; i++)
		now[i] = start(seed, i);
	for (uint32_t t = 0; t < iterations; t++) {
		for (uint64_t z = 0; z < Z; z++)
			for (uint64_t y = 0; y < Y; y++)
				for (uint64_t x = 0; x < X; x++) {
					double sum = 0;
					for (uint64_t c = 0; c < 27; c++)
						sum += now[(((z + Z + c / 9 - 1) % Z) * Y +
							    (y + Y + c / 3 % 3 - 1) % Y) * X +
							   (x + X + c % 3 - 1) % X];
					next[(z * Y + y) * X + x] = sum / 27;
				}
		double *swap = now;
		now = next;
		next = swap;
	}
	s->want = now;
	return 0;
}

/* Returns the index in the torus of cell (i, j, k) of a worker's cube. i, j and k count from 0. */
static uint64_t global(const struct h3d *s, uint32_t worker, uint64_t i, uint64_t j, uint64_t k)
{
	uint64_t n = s->n, px = worker % s->grid[0], py = worker / s->grid[0] % s->grid[1];
	uint64_t pz = worker / s->grid[0] / s->grid[1];
	return ((pz * n + k) * s->grid[1] * n + py * n + j) * s->grid[0] * n + px * n + i;
}

static int plan(struct ex *x)
{
	struct h3d *s = x->own;
	uint32_t workers = x->layout->workers, count = H3D_SIDES * workers;
	uint64_t n = s->n = x->o->size, block = (n + 2) * (n + 2) * (n + 2);
	factor(workers, s->grid);
	struct ex_message *message = ex_alloc(x, count, sizeof(*message));
	uint32_t *next_to = ex_alloc(x, count, sizeof(*next_to));
	double *cells = ex_alloc(x, workers * block, 8);
	if (!message || !next_to || !cells || reference(x, s, x->o->iterations, x->seed))
		return EX_NO_MEMORY;
	for (uint32_t i = 0; i < count; i++) {
		next_to[i] = neighbour(s->grid, i / H3D_SIDES, i % H3D_SIDES);
		message[i] = (struct ex_message){.from = i / H3D_SIDES, .to = next_to[i]};
	}
	for (uint32_t w = 0; w < workers; w++)
		for (uint64_t i = 0; i < n * n * n; i++) {
			uint64_t a = i % n, b = i / n % n, c = i / n / n;
			cells[w * block + h3d_cell(n, a + 1, b + 1, c + 1)] = start(x->seed, global(s, w, a, b, c));
		}
	ex_message_channels(x, message, count, 2, 8 * n * n);
	ex_copy(x, H3D_CELLS, cells, 8 * workers * block);
	ex_array(x, H3D_NEXT, 8 * workers * block, EX_ZERO);
	ex_copy(x, H3D_MESSAGES, message, count * sizeof(*message));
	ex_array(x, H3D_PACKED, 8 * workers * n * n, EX_KEEP);
	ex_copy(x, H3D_NEIGHBOUR, next_to, 4 * count);
	x->head.param[H3D_N] = n;
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct h3d *s = x->own;
	uint64_t n = s->n, block = (n + 2) * (n + 2) * (n + 2);
	const double *cells = ex_ptr(h, x->o->iterations % 2 ? H3D_NEXT : H3D_CELLS);
	for (uint32_t w = 0; w < x->layout->workers; w++)
		for (uint64_t i = 0; i < n * n * n; i++) {
			uint64_t a = i % n, b = i / n % n, c = i / n / n;
			double got = cells[w * block + h3d_cell(n, a + 1, b + 1, c + 1)];
			double want = s->want[global(s, w, a, b, c)];
			if (!ex_close(got, want))
				return EX_WRONG(x, err, "cell %llu of worker %u: expected %.17g, found %.17g",
						(unsigned long long)i, w, want, got);
		}
	return 0;
}

EX_PLUGIN(h3d, struct h3d, rows, "iterations", "C_H3D: halo exchange with 26 neighbours in 3D (multiple, adjacent)", "")
