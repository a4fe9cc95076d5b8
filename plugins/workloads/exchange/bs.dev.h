/* SPDX-License-Identifier: Apache-2.0 */
/* G_BS: bitonic sort of blocks (model: multiple, access: scatter-gather). Each worker sorts its block. In each stage
 * of the network it then receives its partner's block, and stores the lower or the upper half of the keys of both
 * blocks. Data arrive early, as in WIC's scenario 1. Device code. */
#ifndef BS_DEV_H
#define BS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

/* BS_MERGED: the merged block of each worker; BS_PLACES: struct ex_place of each worker */
enum { BS_KEYS = 0, BS_MERGED, BS_PLACES };
enum { BS_M = 0, BS_RANKS }; /* keys per block; participating workers: a power of two */

/* Sorts n keys. Shell sort needs no recursion and no extra memory. */
LOOM_FN void bs_sort(uint32_t *key, uint64_t n)
{
	uint64_t gap = 1;
	while (gap < n / 3)
		gap = 3 * gap + 1;
	for (; gap; gap /= 3)
		for (uint64_t i = gap; i < n; i++) {
			uint32_t v = key[i];
			uint64_t j = i;
			for (; j >= gap && key[j - gap] > v; j -= gap)
				key[j] = key[j - gap];
			key[j] = v;
		}
}

/* Stores the lower or the upper m keys of two sorted blocks of m keys, sorted. */
LOOM_FN void bs_keep(uint32_t *to, const uint32_t *a, const uint32_t *b, uint64_t m, int upper)
{
	if (!upper) {
		for (uint64_t i = 0, j = 0, k = 0; k < m; k++)
			to[k] = j == m || (i < m && a[i] <= b[j]) ? a[i++] : b[j++];
	} else {
		for (uint64_t i = m, j = m, k = m; k > 0; k--)
			to[k - 1] = j == 0 || (i > 0 && a[i - 1] > b[j - 1]) ? a[--i] : b[--j];
	}
}

LOOM_FN void workload_bs_kernel(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	uint64_t m = h->param[BS_M];
	uint32_t ranks = (uint32_t)h->param[BS_RANKS], stage = 0;
	uint32_t *mine = (uint32_t *)ex_at(c, BS_KEYS) + c->worker * m;
	uint32_t *room = (uint32_t *)ex_at(c, BS_MERGED) + c->worker * m;
	const struct ex_place *place = (const struct ex_place *)ex_at(c, BS_PLACES);
	if (c->worker >= ranks)
		return;
	ex_begin(c);
	if (c->lane == 0)
		bs_sort(mine, m);
	loom_barrier_lanes(c);
	for (uint32_t k = 2; k <= ranks; k *= 2)
		for (uint32_t j = k / 2; j > 0; j /= 2, stage++) {
			uint32_t partner = c->worker ^ j;
			const struct ex_place *to = &place[partner], *me = &place[c->worker];
			int upper = ((c->worker & k) != 0) != ((c->worker & j) != 0);
			const void *theirs;
			ex_work(c, h->work_p);
			if (ex_send(c, to->device, stage * to->count + to->place, mine, 4 * m))
				goto out;
			ex_work(c, h->work_c);
			if (ex_recv(c, me->device, stage * me->count + me->place, &theirs))
				goto out;
			if (c->lane == 0)
				bs_keep(room, mine, (const uint32_t *)theirs, m, upper);
			ex_release(c, me->device, stage * me->count + me->place);
			loom_barrier_lanes(c);
			EX_EACH(c, i, 0, m)
				mine[i] = room[i];
			loom_barrier_lanes(c);
		}
out:
	ex_end(c);
}

#endif
