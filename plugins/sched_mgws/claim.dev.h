/* SPDX-License-Identifier: Apache-2.0 */
/* The initial set, of which workers claim blocks. A worker runs the claimed tasks in place; if claim = queues, it puts them
 * into its queues instead. Device code, collective.
 *
 * Each non-coherent device, and each rank that other ranks reach by RMA, has a range of the set in one word. The upper half
 * of the word is the end of the range, and the lower half is the next task. A claim is one fetch-and-add, which also
 * returns the end of the range. If the range is used up, one worker at a time installs a new range.
 *
 * cfg.spread means that several devices change the same words. Each of these devices also has a range, in a word in its own
 * memory. The device gets no new range when this range is used up. Instead its workers claim from the ranges of other devices,
 * by one addition over the link. Each device remembers which ranges it has seen used up. A claim fails only if all ranges are
 * used up. */
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

#define MGWS_RANGE_MAX (1ull << 31) /* limit on initial tasks, so that claims past the end do not wrap the word */

LOOM_FN int mgws_ranged(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent) || SCHED_CFG(c, rma) || SCHED_CFG(c, spread);
}

/* With cfg.spread, returns the word with the range of the device that has this first worker. */
LOOM_FN uint64_t *mgws_range_of(const struct loom_ctx *c, uint32_t first_worker)
{
	return &((struct mgws_queue *)loom_public(c, LOOM_SCHED, first_worker))->range;
}

/* Returns the word with the range from which this worker claims first. */
LOOM_FN uint64_t *mgws_range_word(const struct loom_ctx *c)
{
	return SCHED_CFG(c, spread) ? mgws_range_of(c, c->first) : &mgws_global(c)->range;
}

/* Loads the range. With cfg.spread the scope is the system, because other devices also change the word. */
LOOM_FN uint64_t mgws_range_load(const struct loom_ctx *c)
{
	return SCHED_CFG(c, spread) ? loom_load_relaxed_sys(mgws_range_word(c)) : loom_load_relaxed_dev(mgws_range_word(c));
}

/* Called by lane 0. Returns whether initial tasks are unclaimed, in this worker's range if there are ranges. */
LOOM_FN int mgws_initial_left(const struct loom_ctx *c)
{
	return mgws_ranged(c) ? mgws_range_left(mgws_range_load(c)) != 0
			      : loom_load_relaxed_sys(&mgws_job(c)->next) < c->ctl->initial_tasks;
}

/* Returns the value for mgws_block.claimed if `next` is the next unclaimed task of the set. */
LOOM_FN uint64_t mgws_claimed_upto(const struct loom_ctx *c, uint64_t next)
{
	return next < c->ctl->initial_tasks ? next : MGWS_ALL;
}

/* Returns n / of, or slightly less. Does not divide 64-bit words, because a division takes a GPU a hundred
 * instructions. */
LOOM_FN uint64_t mgws_fraction(uint64_t n, uint32_t of)
{
	uint64_t part = 0xffffffffu / of; /* 1 / of, as a fraction of 2^32 */
	return (n >> 32) * part + ((n & 0xffffffffu) * part >> 32);
}

#ifdef GPULOOM_DEV_CPU_H
/* Returns how many of `n` tasks a guided claim may take: about as many as MGWS_CLAIM_NS allows, if these tasks last as long as
 * those of the last claim. While a worker runs long tasks, no other worker can take the tasks that it has claimed. The first
 * claim has one task, and each claim at most eight times as many as the one before. A time that includes spawned tasks or
 * stolen ones makes the claim smaller. */
#define MGWS_CLAIM_NS 50000u
LOOM_FN uint64_t mgws_limit_claim(struct loom_ctx *c, uint64_t n)
{
	struct mgws_worker *w = mgws_worker(c);
	uint64_t now = loom_clock_ns(c), most = 1;
	if (w->claimed) {
		uint64_t took = now - w->claim_ns;
		most = took > w->claimed * (MGWS_CLAIM_NS / 8) ? w->claimed * MGWS_CLAIM_NS / took : 8 * w->claimed;
	}
	n = most < n ? most : n;
	w->claim_ns = now;
	w->claimed = n ? n : 1;
	return w->claimed;
}
#endif

/* Called by lane 0. Returns how many of the `left` tasks to claim if `workers` workers share them. If claim = fixed, this
 * number is claim_size. If claim = queues, it is the room of the queues. If claim = guided, it is a part of a worker's share:
 * blocks are long at first, which saves claims, and short at the end, which balances the load. */
LOOM_FN uint64_t mgws_claim_of(struct loom_ctx *c, uint64_t left, uint32_t workers)
{
	uint32_t parts =
	    SCHED_GRANULARITY(c) == SCHED_LANE ? 2 : 8; /* 2: lanes wait for a claim as long as for many tasks */
	uint64_t n = SCHED_CFG(c, claim) == MGWS_GUIDED  ? mgws_fraction(left, parts * workers)
		     : SCHED_CFG(c, claim) == MGWS_FIXED ? SCHED_CFG(c, claim_size)
							 : SCHED_CFG(c, public_queue) + SCHED_CFG(c, local_queue) / 2;
	n = n ? n : 1;
#ifdef GPULOOM_DEV_CPU_H
	if (SCHED_CFG(c, claim) == MGWS_GUIDED && n > 1)
		n = mgws_limit_claim(c, n);
#endif
	if (SCHED_GRANULARITY(c) == SCHED_LANE) /* a multiple of the number of lanes, so that no lane idles */
		n = (n + c->lanes - 1) / c->lanes * c->lanes;
	return n;
}

/* Called by lane 0. Claims from this worker's range, and returns the number of tasks. *from: set to the first task. *seen:
 * the last known value of the range. was_idle: 1: the worker had reported idle. */
#define MGWS_CLAIM_MAX 65536u /* claims must not make the lower half of the word overflow into the upper half */
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
	/* If the worker was idle, it has called busy(), and the add is a release: pairs with the acquire loads of the range
	 * in mgws_range_moved() and mgws_proxy(). Else the add orders nothing. */
	range = SCHED_CFG(c, spread) ? loom_fetch_add_relaxed_sys(word, n) :
		was_idle	     ? loom_fetch_add_acq_rel_dev(word, n) :
				       loom_fetch_add_relaxed_dev(word, n);
	left = mgws_range_left(range);
	*seen = range + n;
	*from = (uint32_t)range;
	return n < left ? n : left;
}

/* Called by lane 0 if the device's range is used up. Claims from the range of one of the next devices, and returns the
 * number of tasks. Claims a larger part of this range than it would of its own range, because the round trip takes
 * longer. */
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
			/* Relaxed: the set is constant, and each device has a copy of it. */
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

/* Called by lane 0 if the set is not divided into ranges. Claims from the set, and returns the number of tasks. *from:
 * set to the first task. */
LOOM_FN uint64_t mgws_claim_set(struct loom_ctx *c, struct mgws_block *b, uint64_t *from)
{
	uint64_t *word = &mgws_job(c)->next, all = c->ctl->initial_tasks;
#ifdef GPULOOM_DEV_CPU_H
	uint64_t next = loom_load_relaxed_sys(word);
#else
	uint64_t next = b->claimed; /* an old value is enough for the size of the claim, and saves a round trip */
#endif
	if (next >= all) {
		b->claimed = MGWS_ALL;
		return 0;
	}
	uint64_t n = mgws_claim_of(c, all - next, c->workers + mgws_remote_count(c));
	/* Relaxed: the set is constant, so the counter need not order other accesses. */
	next = loom_fetch_add_relaxed_sys(word, n);
	b->claimed = mgws_claimed_upto(c, next + n);
	*from = next < all ? next : all;
	return all - *from < n ? all - *from : n;
}

/* Copies tasks of the block into the empty local queue. Fills at most half of the queue, because the tasks may spawn. */
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

/* If claim = queues, moves tasks of the block into the empty local queue until it is full, and the remaining tasks into the
 * public queue. Tasks stay in the block if the public queue has no room: thieves may still copy from its slots, and another
 * owner may have filled the queue or may hold its trylock. */
LOOM_FN void mgws_fill_queues(struct loom_ctx *c, struct mgws_block *b)
{
	mgws_push_claimed(c, b);
	if (b->next < b->end)
		b->next += mgws_publish(c, c->initial, b->next, ~0ull, b->end - b->next);
	if (c->lane == 0)
		b->word = mgws_word_now(c);
}

/* Claims a block. Returns 0 if the set is used up. was_idle: 1: this worker had reported idle. */
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

/* If granularity = lane, claims the next block directly, because mgws_find_work() takes a GPU as long as several small tasks.
 * After a direct claim, public tasks and tasks on overflow lists wait until the set is used up. So this function claims nothing
 * if CPUs and GPUs share the lists, because a task on a list may need this kind of device. It also claims nothing if claim =
 * queues, because claimed tasks then become public. */
LOOM_FN int mgws_claim_next(struct loom_ctx *c)
{
	return (!SCHED_CFG(c, mixed) || SCHED_CFG(c, noncoherent)) && SCHED_CFG(c, claim) != MGWS_QUEUES &&
	       mgws_claim(c, 0);
}

/* Claims from the range for a worker without tasks. *idle: 1 if the worker has reported idle; in this case it calls busy()
 * before the claim, and *idle becomes 0 even if the claim fails. */
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
