/* SPDX-License-Identifier: Apache-2.0 */
/* workload_h3d: host half. */
#include "h3d.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("10", 2, 128, "Cells along an edge of a worker's cube.", "8"),
	{.name = NULL},
};

struct h3d {
	struct ex_message *message;
	double *want; /* [workers][n^3] */
	uint32_t grid[3];
	uint64_t n;
};

/* Three factors of the number of workers, as equal as they come. */
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

/* The whole torus at once, by coordinates: nothing of messages and ghosts. */
static int reference(struct ex *o, struct h3d *s, uint32_t iterations, uint64_t seed)
{
	uint64_t n = s->n, X = s->grid[0] * n, Y = s->grid[1] * n, Z = s->grid[2] * n, all = X * Y * Z;
	double *now = ex_room(o, all, 8), *next = ex_room(o, all, 8);
	if (!now || !next)
		return EX_NO_ROOM;
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

/* Where cell (i, j, k), from 0, of a worker's cube is in the torus. */
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
	s->message = ex_room(x, count, sizeof(*s->message));
	if (!s->message || reference(x, s, x->o->iterations, x->seed))
		return EX_NO_ROOM;
	for (uint32_t i = 0; i < count; i++)
		s->message[i] = (struct ex_message){.from = i / H3D_SIDES,
						    .to = neighbour(s->grid, i / H3D_SIDES, i % H3D_SIDES)};
	ex_message_channels(x, s->message, count, 2, 8 * n * n);
	ex_array(x, H3D_CELLS, 8 * workers * block);
	ex_array(x, H3D_NEXT, 8 * workers * block);
	ex_array(x, H3D_MESSAGES, count * sizeof(*s->message));
	ex_array(x, H3D_PACKED, 8 * workers * n * n);
	ex_array(x, H3D_NEIGHBOUR, 4 * count);
	x->head.param[H3D_N] = n;
	return 0;
}

static void fill(struct ex *x, struct ex_head *h)
{
	const struct h3d *s = x->own;
	uint64_t n = s->n, block = (n + 2) * (n + 2) * (n + 2);
	uint32_t *beside = ex_of(h, H3D_NEIGHBOUR), count = H3D_SIDES * x->layout->workers;
	double *cells = ex_of(h, H3D_CELLS);
	memcpy(ex_of(h, H3D_MESSAGES), s->message, count * sizeof(*s->message));
	for (uint32_t i = 0; i < count; i++)
		beside[i] = s->message[i].to;
	memset(cells, 0, 8 * x->layout->workers * block);
	memset(ex_of(h, H3D_NEXT), 0, 8 * x->layout->workers * block);
	for (uint32_t w = 0; w < x->layout->workers; w++)
		for (uint64_t i = 0; i < n * n * n; i++) {
			uint64_t a = i % n, b = i / n % n, c = i / n / n;
			cells[w * block + h3d_cell(n, a + 1, b + 1, c + 1)] =
				start(x->seed, global(s, w, a, b, c));
		}
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct h3d *s = x->own;
	uint64_t n = s->n, block = (n + 2) * (n + 2) * (n + 2);
	const double *cells = ex_of(h, x->o->iterations % 2 ? H3D_NEXT : H3D_CELLS);
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

static const struct ex_app app = {.name = "h3d", .bytes = sizeof(struct h3d), .plan = plan, .fill = fill,
				  .check = check};

EX_PLUGIN(h3d, app, rows, "iterations", "C_H3D: halo exchange with 26 neighbours in 3D (multiple, adjacent)", "")
