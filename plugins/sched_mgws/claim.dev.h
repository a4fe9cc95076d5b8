/* SPDX-License-Identifier: Apache-2.0 */
/* The initial set: workers claim blocks of it, one after the other. A block is the worker's own, and its tasks are run
 * from where they lie. Device code, collective. */
#ifndef SCHED_MGWS_CLAIM_DEV_H
#define SCHED_MGWS_CLAIM_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "mail.dev.h"
#endif

/* Devices that are non-coherent and ranks that ask have a range each. */
LOOM_FN int mgws_ranged(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent) || SCHED_CFG(c, rma);
}

/* Lane 0: initial tasks that nobody has claimed, as far as this worker claims them. */
LOOM_FN int mgws_initial_left(const struct loom_ctx *c)
{
	return mgws_ranged(c) ? mgws_range_left(loom_load_relaxed_dev(&mgws_global(c)->range)) != 0 :
				     loom_load_relaxed_sys(&mgws_job(c)->next) < c->ctl->initial_tasks;
}

/* Up to where the set is claimed, as blocks keep it. */
LOOM_FN uint64_t mgws_claimed_upto(const struct loom_ctx *c, uint64_t next)
{
	return next < c->ctl->initial_tasks ? next : MGWS_ALL;
}

/* n / of, or a little less: a division of 64 bits is a hundred instructions of a GPU. */
LOOM_FN uint64_t mgws_fraction(uint64_t n, uint32_t of)
{
	uint64_t part = 0xffffffffu / of; /* of 2^32 */
	return (n >> 32) * part + ((n & 0xffffffffu) * part >> 32);
}

/* Lane 0: how many tasks to claim where `left` are left for so many workers: the claim size, or a part of a worker's
 * share, so that blocks are long at first (few claims) and short at the end (balance). */
LOOM_FN uint64_t mgws_claim_of(const struct loom_ctx *c, uint64_t left, uint32_t workers)
{
	uint32_t parts = SCHED_GRANULARITY(c) == SCHED_LANE ? 2 : 8; /* by lanes a claim costs as much as many tasks */
	uint64_t n = SCHED_CFG(c, claim) ? SCHED_CFG(c, claim_size) : mgws_fraction(left, parts * workers);
	n = n ? n : 1;
	if (SCHED_GRANULARITY(c) == SCHED_LANE) /* whole rounds */
		n = (n + c->lanes - 1) / c->lanes * c->lanes;
	return n;
}

/* Lane 0: claims from the device's or the rank's range; how many, and *from. *looked: the range as last seen. */
#define MGWS_CLAIM_MAX 65536u /* the lower half of the word must not wrap into the upper */
LOOM_FN uint64_t mgws_claim_range(struct loom_ctx *c, uint64_t *looked, uint64_t *from, int was_idle)
{
	uint64_t *word = &mgws_global(c)->range, range = *looked, left, n;
	if (!mgws_range_left(range))
		range = loom_load_relaxed_dev(word);
	left = mgws_range_left(range);
	if (!left)
		return 0;
	n = mgws_claim_of(c, left, SCHED_CFG(c, noncoherent) ? c->count : c->workers);
	n = n < MGWS_CLAIM_MAX ? n : MGWS_CLAIM_MAX;
	n = n < left ? n : left;
	/* Release where the worker was idle, behind its busy(): pairs with the acquire of who sees the range used up.
	 * Otherwise it orders nothing. */
	range = was_idle ? loom_fetch_add_acq_rel_dev(word, n) : loom_fetch_add_relaxed_dev(word, n);
	left = mgws_range_left(range);
	*looked = range + n;
	*from = (uint32_t)range;
	return n < left ? n : left;
}

/* Lane 0: claims from the set, as far as b->claimed tells that there is something left; how many, and *from. */
LOOM_FN uint64_t mgws_claim_set(struct loom_ctx *c, struct mgws_block *b, uint64_t *from)
{
	uint64_t *word = &mgws_job(c)->next, all = c->ctl->initial_tasks;
#ifdef GPULOOM_DEV_CPU_H
	uint64_t next = loom_load_relaxed_sys(word);
#else
	uint64_t next = b->claimed; /* an older look will do, and costs no second way to the word */
#endif
	if (next >= all) {
		b->claimed = MGWS_ALL;
		return 0;
	}
	uint64_t n = mgws_claim_of(c, all - next, c->workers + mgws_far_count(c));
	/* Relaxed: the set is constant, the counter orders nothing else. */
	next = loom_fetch_add_relaxed_sys(word, n);
	b->claimed = mgws_claimed_upto(c, next + n);
	*from = next < all ? next : all;
	return all - *from < n ? all - *from : n;
}

/* Claims a block; 0 when the set is used up. `was_idle`: this worker had reported idle. */
LOOM_FN int mgws_claim(struct loom_ctx *c, int was_idle)
{
	struct mgws_block *b = &mgws_keep(c)->block;
	uint64_t from = c->ctl->initial_tasks, n = 0;
	if (c->lane == 0) {
		if (mgws_ranged(c)) {
#ifdef GPULOOM_DEV_CPU_H
			uint64_t look_anew = 0, *looked = &look_anew;
#else
			uint64_t *looked = &b->claimed;
#endif
			n = mgws_claim_range(c, looked, &from, was_idle);
		} else {
			n = mgws_claim_set(c, b, &from);
		}
		sched_local(c)->tally.claimed += n;
	}
	b->next = loom_from_lane0(c, from);
	b->end = b->next + loom_from_lane0(c, n);
	return b->next < b->end;
}

/* For lanes that run a task each: claims the next block at once. The way over mgws_refill() takes a GPU as long as several small
 * tasks. Public and spilled tasks then wait until the set is used up. This must not be where CPUs and GPUs share the lists, as a
 * spilled task there may be one that only this kind of device runs. */
LOOM_FN int mgws_claim_on(struct loom_ctx *c)
{
	return (!SCHED_CFG(c, mixed) || SCHED_CFG(c, noncoherent)) && mgws_claim(c, 0);
}

/* A worker without work claims from the device's range. If it has reported idle it calls busy() first, now and
 * then in vain; then it reports idle again. */
LOOM_FN uint32_t mgws_claim_again(struct loom_ctx *c, int *idle)
{
	uint64_t some = c->lane == 0 && mgws_initial_left(c);
	if (!loom_from_lane0(c, some))
		return 0;
	int was_idle = *idle;
	if (was_idle)
		LOOM_CALL(term, busy, c);
	*idle = 0;
	return (uint32_t)mgws_claim(c, was_idle);
}

#ifdef LOOM_RANKS_RMA
LOOM_FN uint64_t mgws_far_range(const struct loom_ctx *c, uint32_t victim)
{
	return mgws_far(c, victim)->global + offsetof(struct mgws_global, range);
}

/* The same from the range of a victim's rank, by asking: a look, and the claim. A range that is used up stays so. */
LOOM_FN uint32_t mgws_claim_far(struct loom_ctx *c, uint32_t victim, int *idle)
{
	struct mgws_block *b = &mgws_keep(c)->block;
	uint64_t range = 0, left = 0, n = 0;
	if (c->lane == 0 && victim != MGWS_NOBODY) {
		uint32_t *used_up = &mgws_far(c, mgws_far(c, victim)->first)->used_up;
		if (!loom_load_relaxed_dev(used_up)) {
			left = mgws_range_left(mgws_ask_word(c, mgws_far(c, victim), mgws_far_range(c, victim), 0));
			if (!left)
				loom_store_relaxed_dev(used_up, 1u);
		}
	}
	left = loom_from_lane0(c, left);
	if (!left)
		return 0;
	/* Before the claim: who sees the range used up may then report idle. */
	if (*idle)
		LOOM_CALL(term, busy, c);
	*idle = 0;
	if (c->lane == 0) {
		/* A larger part than at home: the way is longer. */
		n = mgws_fraction(left, 2 * (c->workers + mgws_far_count(c)));
		n = n < 1 ? 1 : n < MGWS_CLAIM_MAX ? n : MGWS_CLAIM_MAX;
		range = mgws_ask_word(c, mgws_far(c, victim), mgws_far_range(c, victim), n);
		left = mgws_range_left(range);
		n = n < left ? n : left;
		sched_local(c)->tally.claimed += n;
	}
	b->next = loom_from_lane0(c, (uint64_t)(uint32_t)range);
	b->end = b->next + loom_from_lane0(c, n);
	return b->next < b->end;
}
#endif

/* Several lanes: tasks of the block into the empty local queue, up to half of it, for they may spawn. */
LOOM_FN void mgws_push_claimed(struct loom_ctx *c, struct mgws_block *b)
{
	struct sched_lane *mine = sched_lane(c);
	uint32_t mask = sched_mask(c), n = (mask + 1) / 2;
	if (b->end - b->next < n)
		n = (uint32_t)(b->end - b->next);
	sched_copy_ring(c, sched_ring(c), mine->head, mask, c->initial, b->next, ~0ull, n);
	mine->count = n;
	b->next += n;
	loom_barrier_lanes(c);
}

#endif
