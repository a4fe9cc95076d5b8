/* SPDX-License-Identifier: Apache-2.0 */
/* The initial set: workers claim blocks of it. Device code, collective. */
#ifndef SCHED_MGWS_CLAIM_DEV_H
#define SCHED_MGWS_CLAIM_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "mail.dev.h"
#endif

/* Lane 0: initial tasks that nobody has claimed. */
LOOM_FN int sched_mgws_initial_left(const struct loom_ctx *c)
{
	const struct sched_mgws_global *g = sched_mgws_global(c);
	return SCHED_CFG(c, apart) ? sched_mgws_undrawn(loom_load_relaxed_dev(&g->range)) != 0 :
				     loom_load_relaxed_sys(&g->next) < c->ctl->initial_tasks;
}

LOOM_FN uint64_t sched_mgws_claimed(const struct loom_ctx *c, uint64_t next)
{
	return next < c->ctl->initial_tasks ? next : MGWS_ALL;
}

/* n / of, or a little less: a division of 64 bits is a hundred instructions of a GPU. */
LOOM_FN uint64_t sched_mgws_share_of(uint64_t n, uint32_t of)
{
	uint64_t part = 0xffffffffu / of; /* of 2^32 */
	return (n >> 32) * part + ((n & 0xffffffffu) * part >> 32);
}

/* Lane 0, apart: draws from the device's range: how many, and *from. `looked`: the word as it was, or 0. */
#define MGWS_CLAIM_MAX 65536u /* the range's next task must not run over */
LOOM_FN uint64_t sched_mgws_draw(struct loom_ctx *c, uint64_t *looked, uint64_t *from, int was_idle)
{
	uint64_t *word = &sched_mgws_global(c)->range, range = *looked, left, n;
	if (!sched_mgws_undrawn(range))
		range = loom_load_relaxed_dev(word);
	left = sched_mgws_undrawn(range);
	if (!left)
		return 0;
	n = SCHED_CFG(c, claim) ? SCHED_CFG(c, claim) : sched_mgws_share_of(left, 8 * c->count);
	n = n ? n : 1;
	if (SCHED_GRAIN(c) == SCHED_LANE) /* whole rounds */
		n = (n + c->lanes - 1) / c->lanes * c->lanes;
	n = n < MGWS_CLAIM_MAX ? n : MGWS_CLAIM_MAX;
	n = n < left ? n : left;
	/* Release, behind busy(): pairs with the acquire of who sees that the range is used up. Else it orders nothing. */
	range = was_idle ? loom_fetch_add_acq_rel_dev(word, n) : loom_fetch_add_relaxed_dev(word, n);
	left = sched_mgws_undrawn(range);
	*looked = range + n;
	*from = (uint32_t)range;
	n = n < left ? n : left;
	sched_local(c)->tally.claimed += n;
	return n;
}

/* Takes a block of the initial set: the claim size, or a share of what is left, so that blocks are
 * long at first (few claims) and short at the end (balance). 0 when the set is used up. Apart, `was_idle`: this worker
 * was just idle. */
LOOM_FN int sched_mgws_claim(struct loom_ctx *c, int was_idle)
{
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	struct sched_mgws_global *g = sched_mgws_global(c);
	uint64_t all = c->ctl->initial_tasks, from = all, n = 0;
	if (SCHED_CFG(c, apart)) {
#ifdef GPULOOM_DEV_CPU_H
		uint64_t look_anew = 0, *looked = &look_anew;
#else
		uint64_t *looked = &b->claimed;
#endif
		if (c->lane == 0)
			n = sched_mgws_draw(c, looked, &from, was_idle);
	} else if (c->lane == 0) {
#ifdef GPULOOM_DEV_CPU_H
		uint64_t next = loom_load_relaxed_sys(&g->next);
#else
		uint64_t next = b->claimed; /* an older look will do, and costs no second way to the word */
#endif
		if (next < all) {
			n = SCHED_CFG(c, claim) ? SCHED_CFG(c, claim) : sched_mgws_share_of(all - next, 8 * c->workers);
			n = n ? n : 1;
			if (SCHED_GRAIN(c) == SCHED_LANE) /* whole rounds */
				n = (n + c->lanes - 1) / c->lanes * c->lanes;
			/* Relaxed: the set is constant, the counter orders nothing else. */
			from = loom_fetch_add_relaxed_sys(&g->next, n);
			b->claimed = sched_mgws_claimed(c, from + n);
			from = from < all ? from : all;
			n = all - from < n ? all - from : n;
			sched_local(c)->tally.claimed += n;
		} else {
			b->claimed = MGWS_ALL;
		}
	}
	b->next = loom_from_lane0(c, from);
	b->end = b->next + loom_from_lane0(c, n);
	return b->next < b->end;
}

/* Apart: a worker without work draws from the device's range, into its block, which is empty. Where it has
 * reported idle it calls busy() first; in vain now and then, and then it reports idle again. */
LOOM_FN uint32_t sched_mgws_redraw(struct loom_ctx *c, int *idle)
{
	uint64_t some = c->lane == 0 && sched_mgws_initial_left(c);
	if (!loom_from_lane0(c, some))
		return 0;
	int was_idle = *idle;
	if (was_idle)
		LOOM_CALL(term, busy, c);
	*idle = 0;
	return (uint32_t)sched_mgws_claim(c, was_idle);
}

/* Several lanes: tasks of the block into the empty local queue, half of it, for they may spawn. */
LOOM_FN void sched_mgws_stage(struct loom_ctx *c, struct sched_mgws_block *b)
{
	struct sched_lane *mine = sched_lane(c);
	uint32_t mask = sched_mask(c), n = (mask + 1) / 2;
	if (b->end - b->next < n)
		n = (uint32_t)(b->end - b->next);
	sched_move(c, sched_ring(c), mine->head, mask, c->initial, b->next, ~0ull, n);
	mine->count = n;
	b->next += n;
	loom_barrier_lanes(c);
}

#endif
