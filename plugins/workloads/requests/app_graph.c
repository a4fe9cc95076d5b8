/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs with 8 random edges per vertex, and matrices with 8 random entries per row, in compressed rows. The expected
 * answers of bfs and sssp come from relaxing every edge until no distance changes. */
#include <stdlib.h>

#include "lib/random.h"
#include "app.h"

#define EDGES 8u

static const uint32_t *words(const struct app *x, uint64_t array)
{
	return (const uint32_t *)(const void *)(x->content + array);
}

static int build(struct app *x)
{
	struct request_input *in = &x->in;
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
		column[e] = (uint32_t)(loom__random(&state) % in->n);
		weight[e] = (uint32_t)(loom__random(&state) % 100 + 1);
	}
	return 0;
}

static int relax(const struct app *x, int weighted, uint64_t *answer)
{
	const struct request_input *in = &x->in;
	const uint32_t *row = words(x, in->first), *column = words(x, in->second);
	const uint32_t *weight = words(x, in->third);
	uint32_t *distance = malloc(in->n * sizeof(*distance));
	uint64_t sum = 0;
	if (!distance)
		return LOOM_ENOMEM;
	for (uint64_t v = 0; v < in->n; v++)
		distance[v] = REQUEST_UNREACHED;
	distance[0] = 0;
	for (int changed = 1; changed;) {
		changed = 0;
		for (uint64_t v = 0; v < in->n; v++)
			for (uint32_t e = row[v]; distance[v] != REQUEST_UNREACHED && e < row[v + 1]; e++) {
				uint32_t length = distance[v] + (weighted ? weight[e] : 1);
				if (length < distance[column[e]]) {
					distance[column[e]] = length;
					changed = 1;
				}
			}
	}
	for (uint64_t v = 0; v < in->n; v++)
		sum += request_mix(v, distance[v]);
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

/* Computes the answer of spmv. Unlike the workers, it adds the entries of a row from the last to the first. */
static int product(const struct app *x, uint64_t *answer)
{
	const struct request_input *in = &x->in;
	const uint32_t *row = words(x, in->first), *column = words(x, in->second);
	const uint32_t *value = words(x, in->third);
	uint64_t sum = 0;
	for (uint64_t r = 0; r < in->n; r++) {
		uint32_t y = 0;
		for (uint32_t e = row[r + 1]; e-- > row[r];)
			y += value[e] + 2 * column[e] * value[e];
		sum += request_mix(r, y);
	}
	*answer = sum;
	return 0;
}

const struct app_kind app_bfs = {2, build, hops};
const struct app_kind app_sssp = {2, build, lengths};
const struct app_kind app_spmv = {0, build, product};
