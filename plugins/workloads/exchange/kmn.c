/* SPDX-License-Identifier: Apache-2.0 */
#include "kmn.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("512", 8, 65536, "Points per block; there are three blocks per consumer.", "6"),
	{.name = NULL},
};

struct kmn {
	struct kmn_point *points, start[KMN_K], want[KMN_K];
	uint64_t n;
	uint32_t consumers, blocks, block;
};

static void reference(struct kmn *s, uint32_t iterations)
{
	memcpy(s->want, s->start, sizeof(s->want));
	for (uint32_t t = 0; t < iterations; t++) {
		struct kmn_sums sums = {0};
		for (uint64_t i = 0; i < s->n; i++) {
			uint32_t k = kmn_nearest(s->want, &s->points[i]);
			sums.count[k]++;
			for (uint32_t a = 0; a < KMN_DIM; a++)
				sums.x[k][a] += s->points[i].x[a];
		}
		kmn_centroids(s->want, &sums);
	}
}

static int plan(struct ex *x)
{
	struct kmn *s = x->own;
	uint64_t seed = x->seed;
	if (x->layout->devices > EX_PARAMS - 8)
		return LOOM_FAIL(x->host, x->err, LOOM_EINVAL, "workload_kmn: at most %d devices", EX_PARAMS - 8);
	s->consumers = x->layout->workers - x->layout->device[0].workers;
	s->blocks = 2 * s->consumers;
	s->block = x->o->size;
	s->n = (uint64_t)(s->blocks + s->consumers) * s->block;
	s->points = ex_alloc(x, s->n, sizeof(*s->points));
	if (!s->points)
		return EX_NO_MEMORY;
	for (uint64_t i = 0; i < s->n; i++)
		for (uint32_t a = 0; a < KMN_DIM; a++)
			s->points[i].x[a] = (int32_t)(ex_random(&seed) >> 50) +
					    (int32_t)(i % KMN_K * (a + 1) * 4000);
	for (uint32_t k = 0; k < KMN_K; k++)
		s->start[k] = s->points[k * (s->n / KMN_K) + k];
	reference(s, x->o->iterations);
	for (uint32_t d = 1; d < x->layout->devices; d++) {
		ex_channel(x, 0, d, s->blocks, 1, s->block);
		x->head.param[8 + d - 1] = x->layout->device[d].workers;
	}
	ex_channel(x, LOOM_ANY_DEVICE, 1, s->consumers, 1, sizeof(struct kmn_sums));
	for (uint32_t d = 0; d < x->layout->devices; d++)
		ex_channel(x, 1, d, 1, x->layout->device[d].workers, sizeof(s->start));
	ex_copy(x, KMN_POINTS, s->points, s->n * sizeof(*s->points));
	ex_array(x, KMN_MEMBERS, (uint64_t)x->layout->workers * s->block, EX_KEEP);
	ex_array(x, KMN_SUMS, (s->consumers + 1) * sizeof(struct kmn_sums), EX_KEEP);
	ex_copy(x, KMN_CENTROIDS, s->start, sizeof(s->start));
	x->head.param[KMN_BLOCK] = s->block;
	x->head.param[KMN_BLOCKS] = s->blocks;
	x->head.param[KMN_CONSUMERS] = s->consumers;
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct kmn *s = x->own;
	const struct kmn_point *got = ex_ptr(h, KMN_CENTROIDS);
	for (uint32_t i = 0; i < KMN_K * KMN_DIM; i++)
		if (got[i / KMN_DIM].x[i % KMN_DIM] != s->want[i / KMN_DIM].x[i % KMN_DIM])
			return EX_WRONG(x, err, "centroid %u, coordinate %u: expected %d, found %d",
					i / KMN_DIM, i % KMN_DIM, s->want[i / KMN_DIM].x[i % KMN_DIM],
					got[i / KMN_DIM].x[i % KMN_DIM]);
	return 0;
}

EX_PLUGIN(kmn, struct kmn, rows, "iterations", "G_KMN: k-means (unidirectional, streaming)", "")
