/* SPDX-License-Identifier: Apache-2.0 */
/* The initial set: workers claim blocks of it. The claimed tasks are run in place, or with claim = queues pass through
 * the queues. Device code, collective.
 *
 * Each non-coherent device, and each rank that others reach by RMA, has a range of the set in one word: the upper half
 * is the end, the lower half is the next task. A claim is one fetch-and-add, which returns the end that holds for it.
 * One worker at a time installs a new range, when the old one is used up.
 *
 * Several devices that change the same words (cfg.spread) have a range each, too, in a word of their own memory, which does
 * not grow. If it is used up, a worker claims from the ranges of other devices, by one addition over the link. Each device
 * remembers which ranges it has seen used up. A claim fails only if all are used up. */
#ifndef SCHED_MGWS_CLAIM_DEV_H
#define SCHED_MGWS_CLAIM_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "publish.dev.h"
#endif

LOOM_FN uint64_t mgws_range_left(uint64_t range)
{
	uint32_t next = (uint32_t)range, end = (uint32_t)(range >> 32);
	return next < end ? end - next : 0;
}

#define MGWS_RANGE_MAX (1ull << 31) /* The most initial tasks: claims past the end must not wrap the word. */

LOOM_FN int mgws_ranged(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent) || SCHED_CFG(c, rma) || SCHED_CFG(c, spread);
}

/* cfg.spread: the range of a device. */
LOOM_FN uint64_t *mgws_range_of(const struct loom_ctx *c, uint32_t first_worker)
{
	return &((struct mgws_queue *)loom_public(c, LOOM_SCHED, first_worker))->range;
}

/* The range that this worker claims from. */
LOOM_FN uint64_t *mgws_range_word(const struct loom_ctx *c)
{
	return SCHED_CFG(c, spread) ? mgws_range_of(c, c->first) : &mgws_global(c)->range;
}

/* Other devices change the word with cfg.spread. */
LOOM_FN uint64_t mgws_range_load(const struct loom_ctx *c)
{
	return SCHED_CFG(c, spread) ? loom_load_relaxed_sys(mgws_range_word(c)) : loom_load_relaxed_dev(mgws_range_word(c));
}

/* Called by lane 0. Returns whether initial tasks are left that this worker may claim. */
LOOM_FN int mgws_initial_left(const struct loom_ctx *c)
{
	return mgws_ranged(c) ? mgws_range_left(mgws_range_load(c)) != 0
			      : loom_load_relaxed_sys(&mgws_job(c)->next) < c->ctl->initial_tasks;
}

/* Returns the position up to which the set is claimed, as struct mgws_block stores it. */
LOOM_FN uint64_t mgws_claimed_upto(const struct loom_ctx *c, uint64_t next)
{
	return next < c->ctl->initial_tasks ? next : MGWS_ALL;
}

/* Returns n / of, or slightly less: a GPU needs a hundred instructions for a 64-bit division. */
LOOM_FN uint64_t mgws_fraction(uint64_t n, uint32_t of)
{
	uint64_t part = 0xffffffffu / of; /* 1 / of, as a fraction of 2^32 */
	return (n >> 32) * part + ((n & 0xffffffffu) * part >> 32);
}

/* Called by lane 0. Returns how many of `left` tasks to claim among `workers` workers: the claim size, the room of
 * the queues, or a part of a worker's share. Blocks are long at first, which saves claims, and short at the end, which
 * balances the load. */
LOOM_FN uint64_t mgws_claim_of(const struct loom_ctx *c, uint64_t left, uint32_t workers)
{
	uint32_t parts =
	    SCHED_GRANULARITY(c) == SCHED_LANE ? 2 : 8; /* with several lanes a claim takes as long as many tasks */
	uint64_t n = SCHED_CFG(c, claim) == MGWS_GUIDED  ? mgws_fraction(left, parts * workers)
		     : SCHED_CFG(c, claim) == MGWS_FIXED ? SCHED_CFG(c, claim_size)
							 : SCHED_CFG(c, public_queue) + SCHED_CFG(c, local_queue) / 2;
	n = n ? n : 1;
	if (SCHED_GRANULARITY(c) == SCHED_LANE) /* a multiple of the lanes, so that no lane idles */
		n = (n + c->lanes - 1) / c->lanes * c->lanes;
	return n;
}

/* Called by lane 0. Claims from the range: returns the number of tasks, the first in *from. *seen: the range as
 * loaded last. */
#define MGWS_CLAIM_MAX 65536u /* the lower half of the word must not wrap into the upper */
LOOM_FN uint64_t mgws_claim_range(struct loom_ctx *c, uint64_t *seen, uint64_t *from, int was_idle)
{
	uint64_t *word = mgws_range_word(c), range = *seen, left, n;
	if (!mgws_range_left(range))
		range = mgws_range_load(c);
	left = mgws_range_left(range);
	if (!left)
		return 0;
	n = mgws_claim_of(c, left, SCHED_CFG(c, rma) ? c->workers : c->count);
	n = n < MGWS_CLAIM_MAX ? n : MGWS_CLAIM_MAX;
	n = n < left ? n : left;
	/* Release, if the worker was idle and has called busy(): pairs with the acquire of the worker that finds the
	 * range used up. Otherwise the add orders nothing. */
	range = SCHED_CFG(c, spread) ? loom_fetch_add_relaxed_sys(word, n) :
		was_idle	     ? loom_fetch_add_acq_rel_dev(word, n) :
				       loom_fetch_add_relaxed_dev(word, n);
	left = mgws_range_left(range);
	*seen = range + n;
	*from = (uint32_t)range;
	return n < left ? n : left;
}

/* Lane 0, of a device whose range is used up: claims from those of the next devices. A larger part than of the own range,
 * since the round trip is longer. */
LOOM_FN uint64_t mgws_claim_elsewhere(struct loom_ctx *c, uint64_t *from)
{
	struct mgws_site *site = (struct mgws_site *)c->on_device[LOOM_SCHED];
	uint64_t used_up = loom_load_relaxed_dev(&site->used_up);
	for (uint32_t i = 1; i < c->devices; i++) {
		uint32_t d = c->device + i < c->devices ? c->device + i : c->device + i - c->devices;
		if (used_up >> d & 1)
			continue;
		uint64_t *word = mgws_range_of(c, site->first[d]), range = loom_load_relaxed_sys(word);
		uint64_t left = mgws_range_left(range), n = mgws_fraction(left, 2 * c->count);
		if (left) {
			n = n < 1 ? 1 : n < MGWS_CLAIM_MAX ? n : MGWS_CLAIM_MAX;
			if (SCHED_GRANULARITY(c) == SCHED_LANE)
				n = (n + c->lanes - 1) / c->lanes * c->lanes;
			/* Relaxed: the set is constant, and each device has a copy. */
			range = loom_fetch_add_relaxed_sys(word, n);
			left = mgws_range_left(range);
		}
		if (left) {
			*from = (uint32_t)range;
			return n < left ? n : left;
		}
		loom_fetch_or_relaxed_dev(&site->used_up, 1ull << d);
	}
	return 0;
}

/* Called by lane 0. Claims from the whole set unless b->claimed says it is used up. Returns the number, the first in
 * *from. */
LOOM_FN uint64_t mgws_claim_set(struct loom_ctx *c, struct mgws_block *b, uint64_t *from)
{
	uint64_t *word = &mgws_job(c)->next, all = c->ctl->initial_tasks;
#ifdef GPULOOM_DEV_CPU_H
	uint64_t next = loom_load_relaxed_sys(word);
#else
	uint64_t next = b->claimed; /* an old value suffices, and saves a round trip */
#endif
	if (next >= all) {
		b->claimed = MGWS_ALL;
		return 0;
	}
	uint64_t n = mgws_claim_of(c, all - next, c->workers + mgws_remote_count(c));
	/* Relaxed: the set is constant, and the counter orders nothing else. */
	next = loom_fetch_add_relaxed_sys(word, n);
	b->claimed = mgws_claimed_upto(c, next + n);
	*from = next < all ? next : all;
	return all - *from < n ? all - *from : n;
}

/* Tasks of the block into the empty local queue, up to half of it, for they may spawn. */
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

/* claim = queues: the block into the empty local queue, and what is left of it into the public queue. A task without
 * room there stays in the block: thieves still copy, or a co-owner has the trylock or has filled the queue. */
LOOM_FN void mgws_fill_queues(struct loom_ctx *c, struct mgws_block *b)
{
	mgws_push_claimed(c, b);
	if (b->next < b->end)
		b->next += mgws_publish(c, c->initial, b->next, ~0ull, b->end - b->next);
	if (c->lane == 0)
		b->word = mgws_word_now(c);
}

/* Claims a block. Returns 0 when the set is used up. was_idle: this worker had reported idle. */
LOOM_FN int mgws_claim(struct loom_ctx *c, int was_idle)
{
	struct mgws_block *b = &mgws_lane(c)->block;
	uint64_t from = c->ctl->initial_tasks, n = 0;
	if (c->lane == 0) {
		if (mgws_ranged(c)) {
#ifdef GPULOOM_DEV_CPU_H
			uint64_t unseen = 0, *seen = &unseen;
#else
			uint64_t *seen = &b->claimed;
#endif
			n = mgws_claim_range(c, seen, &from, was_idle);
			if (!n && SCHED_CFG(c, spread))
				n = mgws_claim_elsewhere(c, &from);
		} else {
			n = mgws_claim_set(c, b, &from);
		}
		sched_local(c)->counters.claimed += n;
	}
	b->next = loom_from_lane0(c, from);
	b->end = b->next + loom_from_lane0(c, n);
	if (b->next == b->end)
		return 0;
	if (SCHED_CFG(c, claim) == MGWS_QUEUES)
		mgws_fill_queues(c, b);
	return 1;
}

/* granularity = lane: claims the next block at once, because mgws_find_work() takes a GPU as long as several small
 * tasks. Public and listed tasks then wait until the set is used up. So it claims nothing where CPUs and GPUs share the
 * lists, since only this kind of device may be able to run a listed task, or where claimed tasks are public. */
LOOM_FN int mgws_claim_next(struct loom_ctx *c)
{
	return (!SCHED_CFG(c, mixed) || SCHED_CFG(c, noncoherent)) && SCHED_CFG(c, claim) != MGWS_QUEUES &&
	       mgws_claim(c, 0);
}

/* A worker without tasks claims from the range. If it has reported idle, it calls busy() first; if it then finds
 * nothing, it reports idle again. */
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

#endif
