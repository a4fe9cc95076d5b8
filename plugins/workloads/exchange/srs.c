/* SPDX-License-Identifier: Apache-2.0 */
#include "srs.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("128", 8, 1024, "Rows and columns of a tile of 16-bit pixels.", "4"),
	{.name = NULL},
};

struct srs {
	uint32_t consumers, tiles;
	uint32_t *want;
};

static int plan(struct ex *x)
{
	struct srs *s = x->own;
	struct loom_ctx one = {.lanes = 1};
	uint64_t n = x->o->size;
	if (x->layout->devices > 2 * (EX_PARAMS - 4))
		return LOOM_FAIL(x->host, x->err, LOOM_EINVAL, "workload_srs: at most %d devices",
				 2 * (EX_PARAMS - 4));
	s->consumers = x->layout->workers - x->layout->device[0].workers;
	s->tiles = x->o->iterations * s->consumers;
	s->want = ex_alloc(x, (uint64_t)s->tiles * SRS_BINS, sizeof(*s->want));
	uint16_t *tile = ex_alloc(x, n * n, sizeof(*tile));
	if (!s->want || !tile)
		return EX_NO_MEMORY;
	for (uint32_t k = 0; k < s->tiles; k++) {
		srs_make(&one, tile, x->seed, k, n);
		srs_consume(&one, s->want + (size_t)k * SRS_BINS, tile, n);
	}
	memset(&x->head.param[SRS_FIRST], 0, (x->layout->devices + 1) / 2 * sizeof(uint64_t));
	for (uint32_t d = 1, at = 0; d < x->layout->devices; d++) {
		ex_channel(x, 0, d, 2 * x->layout->device[d].workers, 1, 2 * n * n);
		at += x->layout->device[d].workers;
		x->head.param[SRS_FIRST + d / 2] |= (uint64_t)at << 32 * (d % 2);
	}
	ex_array(x, SRS_HISTOGRAMS, (uint64_t)s->tiles * SRS_BINS * 4, EX_ZERO);
	x->head.param[SRS_N] = n;
	x->head.param[SRS_SEED] = x->seed;
	x->head.param[2] = s->consumers;
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct srs *s = x->own;
	const uint32_t *got = ex_ptr(h, SRS_HISTOGRAMS);
	for (uint32_t i = 0; i < s->tiles * SRS_BINS; i++)
		if (got[i] != s->want[i])
			return EX_WRONG(x, err, "tile %u, bin %u: expected %u pixels, found %u", i / SRS_BINS,
					i % SRS_BINS, s->want[i], got[i]);
	return 0;
}

EX_PLUGIN(srs, struct srs, rows, "iterations", "C_SRS: satellite image pipeline (unidirectional, streaming)", "")
