/* SPDX-License-Identifier: Apache-2.0 */
#include "bs.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

static const struct loom_opt rows[] = {
	EX_ROWS("1000", 1, 1 << 20, "Keys per worker. The number of stages follows from the number of workers; "
		"`iterations` is not used.", "1"),
	{.name = NULL},
};

struct bs {
	uint32_t *want;
	uint64_t all;
};

static int ascending(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static int plan(struct ex *x)
{
	struct bs *s = x->own;
	uint64_t m = x->o->size, seed = x->seed;
	uint32_t ranks = 1;
	while (2 * ranks <= x->layout->workers)
		ranks *= 2;
	s->all = ranks * m;
	uint32_t *input = ex_alloc(x, s->all, 4);
	s->want = ex_alloc(x, s->all, 4);
	if (!input || !s->want)
		return EX_NO_MEMORY;
	for (uint64_t i = 0; i < s->all; i++)
		input[i] = (uint32_t)(ex_random(&seed) >> 32);
	memcpy(s->want, input, 4 * s->all);
	qsort(s->want, s->all, 4, ascending);
	for (uint32_t d = 0; d < x->layout->devices; d++)
		ex_channel(x, LOOM_ANY_DEVICE, d, 2 * x->layout->device[d].workers, 1, 4 * m);
	ex_copy(x, BS_KEYS, input, 4 * s->all);
	ex_array(x, BS_MERGED, 4 * s->all, EX_KEEP);
	x->head.param[BS_M] = m;
	x->head.param[BS_RANKS] = ranks;
	return ex_places(x, BS_PLACES);
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct bs *s = x->own;
	const uint32_t *got = ex_ptr(h, BS_KEYS);
	for (uint64_t i = 0; i < s->all; i++)
		if (got[i] != s->want[i])
			return EX_WRONG(x, err, "key %llu: expected %u, found %u", (unsigned long long)i,
					s->want[i], got[i]);
	x->host->metric(x->host, x->report, "keys", "", LOOM_BETTER_NONE, (double)s->all);
	return 0;
}

EX_PLUGIN(bs, struct bs, rows, "keys", "G_BS: bitonic sort (multiple, scatter-gather)", "")
