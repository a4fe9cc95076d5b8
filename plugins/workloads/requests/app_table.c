/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: a B+ tree, and XSBench's grid of energies. The expected answers come from a binary search in the sorted
 * keys. */
#include <stdlib.h>

#include "lib/random.h"
#include "app.h"

static void sorted_keys(uint64_t *key, uint64_t n, uint64_t *state)
{
	for (uint64_t i = 0; i < n; i++)
		key[i] = loom__random(state);
	key[0] = 0; /* every query finds a key */
	qsort(key, n, sizeof(*key), workload_ascending);
}

/* Returns the index of the last key that is not above `want`. */
static uint64_t search(const uint64_t *key, uint64_t n, uint64_t want)
{
	uint64_t at = 0;
	for (uint64_t step = 1ull << 40; step; step /= 2)
		if (at + step < n && key[at + step] <= want)
			at += step;
	return at;
}

/* ---- the tree: levels of 16, 256, ... keys, then the values of the last level --------------------- */

static int build_tree(struct app *x)
{
	struct request_input *in = &x->in;
	uint64_t state = 0x2545f4914f6cdd1dull, leaves = REQUEST_FANOUT, all = REQUEST_FANOUT;
	for (in->levels = 1; leaves < x->opts->size; in->levels++) {
		leaves *= REQUEST_FANOUT;
		all += leaves;
	}
	in->n = leaves;
	in->second = all * sizeof(uint64_t);
	if (app_room(x, in->second + leaves * sizeof(uint64_t)))
		return LOOM_ENOMEM;
	uint64_t *key = (uint64_t *)(void *)x->content, *last = key + all - leaves;
	sorted_keys(last, leaves, &state);
	uint64_t *level = key;
	for (uint64_t keys = REQUEST_FANOUT; keys < leaves; level += keys, keys *= REQUEST_FANOUT)
		for (uint64_t i = 0; i < keys; i++)
			level[i] = last[i * (leaves / keys)];
	for (uint64_t i = 0; i < leaves; i++)
		((uint64_t *)(void *)(x->content + in->second))[i] = loom__random(&state);
	return 0;
}

static int look_up(const struct app *x, uint64_t *answer)
{
	const struct request_input *in = &x->in;
	const uint64_t *value = (const uint64_t *)(const void *)(x->content + in->second);
	uint64_t sum = 0;
	for (uint64_t i = 0; i < in->lookups; i++)
		sum += request_mix(i, value[search(value - in->n, in->n, request_query(i))]);
	*answer = sum;
	return 0;
}

/* ---- the grid ------------------------------------------------------------------------------------- */

#define NUCLIDES 12u

static int build_grid(struct app *x)
{
	struct request_input *in = &x->in;
	uint64_t state = 0xd1342543de82ef95ull;
	in->n = x->opts->size;
	in->m = NUCLIDES;
	in->second = in->n * sizeof(uint64_t);
	if (app_room(x, in->second + in->n * in->m * sizeof(uint64_t)))
		return LOOM_ENOMEM;
	sorted_keys((uint64_t *)(void *)x->content, in->n, &state);
	for (uint64_t i = 0; i < in->n * in->m; i++)
		((uint64_t *)(void *)(x->content + in->second))[i] = loom__random(&state);
	return 0;
}

static int gather(const struct app *x, uint64_t *answer)
{
	const struct request_input *in = &x->in;
	const uint64_t *energy = (const uint64_t *)(const void *)x->content;
	const uint64_t *section = energy + in->n;
	uint64_t sum = 0;
	for (uint64_t i = 0; i < in->lookups; i++) {
		uint64_t at = search(energy, in->n, request_query(i)), total = 0;
		for (uint64_t k = in->m; k-- > 0;)
			total += section[at * in->m + k];
		sum += request_mix(i, total);
	}
	*answer = sum;
	return 0;
}

const struct app_kind app_bpt = {0, build_tree, look_up};
const struct app_kind app_xsbench = {0, build_grid, gather};
