/* SPDX-License-Identifier: Apache-2.0 */
#include "dag.h"

#include <stdio.h>
#include <stdlib.h>

#include "../times.h"
#include "lib/align.h"

static struct cholesky_blas blas;
const struct cholesky_blas *dag_blas = &blas;

static struct cholesky *matrix(uint32_t size, uint32_t tile)
{
	struct cholesky head = {.size = size, .tile = tile, .tiles = (size + tile - 1) / tile, .wide = 1};
	head.pending_at = sizeof(head);
	head.tiles_at = loom__align(head.pending_at + 8 * cholesky_step_number(head.tiles, 0), 64);
	uint64_t bytes = head.tiles_at + cholesky_tile_number(head.tiles, 0) * tile * tile * 8;
	struct cholesky *m = aligned_alloc(64, loom__align(bytes, 64));
	if (!m)
		exit(4);
	*m = head;
	return m;
}

static double run(uint32_t size, uint32_t tile)
{
	struct cholesky *m = matrix(size, tile);
	uint32_t row = 0;
	cholesky_fill(m);
	uint64_t begin = now_ns();
	dag_run(m);
	double seconds = (double)(now_ns() - begin) / 1e9, *room = malloc(CHOLESKY_ROOM(size));
	double residual = room ? cholesky_residual(m, room, &row) : -1;
	if (!(residual >= 0 && residual <= CHOLESKY_RESIDUAL)) {
		fprintf(stderr, "residual %g in row %u\n", residual, row);
		exit(3);
	}
	free(room);
	free(m);
	return seconds;
}

int main(int argc, char **argv)
{
	uint32_t workers = 2, size = 2048, tile = 128;
	char why[300];
	for (int i = 1; i + 1 < argc; i += 2) {
		uint32_t value = (uint32_t)atoi(argv[i + 1]);
		*(argv[i][1] == 'w' ? &workers : argv[i][1] == 'n' ? &size : &tile) = value;
	}
	if (cholesky_blas_open(&blas, "auto", why, sizeof(why))) {
		fprintf(stderr, "%s\n", why);
		return 2;
	}
	dag_begin(workers);
	run(size < 4 * tile ? size : 4 * tile, tile); /* the first run warms up */
	double seconds = run(size, tile);
	dag_end();
	uint32_t tiles = (size + tile - 1) / tile;
	printf("{\"seconds\": %.9f, \"calls_per_s\": %.1f}\n", seconds,
	       (double)cholesky_step_number(tiles, 0) / seconds);
	return 0;
}
