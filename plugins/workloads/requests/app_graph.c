/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed rows: a random graph of 8 edges per vertex, or a matrix of as many entries per row. The
 * answers are computed edge by edge until nothing changes, which needs no queue. */
#include <stdlib.h>

#include "app.h"

#define EDGES 8u

static const uint32_t *words(const struct app *x, uint64_t array)
{
	return (const uint32_t *)(const void *)(x->content + array);
}

static int build(struct app *x)
{
	struct ssr_input *in = &x->in;
	uint64_t state = 0x9e3779b97f4a7c15ull;
	in->n = x->opts->size;
	in->m = in->n * EDGES;
	in->second = (in->n + 1) * sizeof(uint32_t);
	in->third = in->second + in->m * sizeof(uint32_t);
	if (app_room(x, in->third + in->m * sizeof(uint32_t)))
		return LOOM_ENOMEM;
	uint32_t *row = (uint32_t *)(void *)x->content;
	uint32_t *column = (uint32_t *)(void *)(x->content + in->second);
	uint32_t *weight = (uint32_t *)(void *)(x->content + in->third);
	for (uint64_t v = 0; v <= in->n; v++)
		row[v] = (uint32_t)(v * EDGES);
	for (uint64_t e = 0; e < in->m; e++) {
		column[e] = (uint32_t)(app_random(&state) % in->n);
		weight[e] = (uint32_t)(app_random(&state) % 100 + 1);
	}
	return 0;
}

/* Distances by relaxing every edge until none gets shorter. */
static int relax(const struct app *x, int weighted, uint64_t *answer)
{
	const struct ssr_input *in = &x->in;
	const uint32_t *row = words(x, in->first), *column = words(x, in->second);
	const uint32_t *weight = words(x, in->third);
	uint32_t *distance = malloc(in->n * sizeof(*distance));
	uint64_t sum = 0;
	if (!distance)
		return LOOM_ENOMEM;
	for (uint64_t v = 0; v < in->n; v++)
		distance[v] = SSR_FAR;
	distance[0] = 0;
	for (int changed = 1; changed;) {
		changed = 0;
		for (uint64_t v = 0; v < in->n; v++)
			for (uint32_t e = row[v]; distance[v] != SSR_FAR && e < row[v + 1]; e++) {
				uint32_t far = distance[v] + (weighted ? weight[e] : 1);
				if (far < distance[column[e]]) {
					distance[column[e]] = far;
					changed = 1;
				}
			}
	}
	for (uint64_t v = 0; v < in->n; v++)
		sum += ssr_mix(v, distance[v]);
	free(distance);
	*answer = sum;
	return 0;
}

static int hops(const struct app *x, uint64_t *answer)
{
	return relax(x, 0, answer);
}

static int lengths(const struct app *x, uint64_t *answer)
{
	return relax(x, 1, answer);
}

/* Column by column would need another layout: row by row, from the last entry to the first. */
static int product(const struct app *x, uint64_t *answer)
{
	const struct ssr_input *in = &x->in;
	const uint32_t *row = words(x, in->first), *column = words(x, in->second);
	const uint32_t *value = words(x, in->third);
	uint64_t sum = 0;
	for (uint64_t r = 0; r < in->n; r++) {
		uint32_t y = 0;
		for (uint32_t e = row[r + 1]; e-- > row[r];)
			y += value[e] + 2 * column[e] * value[e];
		sum += ssr_mix(r, y);
	}
	*answer = sum;
	return 0;
}

const struct app_kind app_bfs = {"ssr_bfs", 2, build, hops};
const struct app_kind app_sssp = {"ssr_sssp", 2, build, lengths};
const struct app_kind app_spmv = {"ssr_spmv", 0, build, product};
