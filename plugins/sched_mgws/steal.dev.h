/* SPDX-License-Identifier: Apache-2.0 */
/* Whom to steal from, and stealing (MGWS thesis, 4.3, 5.1 and 5.5). Device code. */
#ifndef SCHED_MGWS_STEAL_DEV_H
#define SCHED_MGWS_STEAL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "keep.dev.h"
#endif

enum mgws_victim { MGWS_RANDOM, MGWS_BIASED, MGWS_LOCAL, MGWS_NEIGHBOUR, MGWS_NONE };
enum mgws_overflow { MGWS_TWO_ATOMICS, MGWS_DAMPING };

#define MGWS_NOBODY 0xffffffffu

/* ---- victims: lane 0 ----------------------------------------------------------------------- */

LOOM_FN uint32_t sched_mgws_anyone(struct loom_ctx *c)
{
	if (c->workers < 2)
		return MGWS_NOBODY;
	uint32_t v = loom_random_below(c, c->workers - 1);
	return v + (v >= c->worker);
}

LOOM_FN uint32_t sched_mgws_local(struct loom_ctx *c)
{
	if (c->count < 2)
		return MGWS_NOBODY;
	uint32_t v = c->first + loom_random_below(c, c->count - 1);
	return v + (v >= c->worker);
}

/* A worker of another device. */
LOOM_FN uint32_t sched_mgws_remote(struct loom_ctx *c)
{
	if (c->count == c->workers)
		return MGWS_NOBODY;
	uint32_t v = loom_random_below(c, c->workers - c->count);
	return v < c->first ? v : v + c->count;
}

LOOM_FN uint32_t sched_mgws_victim(struct loom_ctx *c)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	uint32_t v = mine->next, from = SCHED_CFG(c, apart) ? c->first : 0;
	uint32_t n = SCHED_CFG(c, apart) ? c->count : c->workers;
	if (v) {
		mine->next = 0;
		return v - 1;
	}
	switch (SCHED_CFG(c, victim)) {
	case MGWS_RANDOM:
		return sched_mgws_anyone(c);
	case MGWS_BIASED: /* thesis, listing 6 */
		if (c->count > 1 && (c->count == c->workers || loom_random(c) >> 32 < SCHED_CFG(c, bias)))
			return sched_mgws_local(c);
		return sched_mgws_remote(c);
	case MGWS_LOCAL:
		return sched_mgws_local(c);
	case MGWS_NEIGHBOUR: /* the next, then the one after that; anew after a success */
		if (n < 2)
			return MGWS_NOBODY;
		mine->turn = mine->turn % (n - 1) + 1;
		return from + (c->worker - from + mine->turn) % n;
	default:
		return MGWS_NOBODY;
	}
}

/* The queue that a worker uses; NULL when it is this worker's as well. */
LOOM_FN struct sched_mgws_queue *sched_mgws_queue_of(const struct loom_ctx *c, uint32_t worker)
{
	struct sched_mgws_queue *q =
		(struct sched_mgws_queue *)loom_public(c, LOOM_SCHED, worker);
	if (SCHED_CFG(c, owners) > 1 && q->leader != worker)
		q = (struct sched_mgws_queue *)loom_public(c, LOOM_SCHED, q->leader);
	return q == sched_mgws_used(c) ? (struct sched_mgws_queue *)NULL : q;
}

/* Lane 0: is there anything to be had anywhere? Remembers where. */
LOOM_FN int sched_mgws_look(struct loom_ctx *c)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	uint32_t policy = SCHED_CFG(c, victim);
	int local = policy == MGWS_LOCAL || SCHED_CFG(c, apart);
	uint32_t from = local ? c->first : 0;
	uint32_t n = policy == MGWS_NONE ? 0 : local ? c->count : c->workers;
	if (sched_mgws_listed(c) || !sched_mgws_empty(&mine->own, sched_mgws_used(c)))
		return 1;
	for (uint32_t i = 1; i <= n; i++) {
		uint32_t v = from + (c->worker - from + i) % n;
		struct sched_mgws_queue *q = sched_mgws_queue_of(c, v);
		if (q && sched_mgws_offers(loom_load_relaxed_sys(&q->word))) {
			mine->next = v + 1;
			return 1;
		}
	}
	return 0;
}

/* ---- claims: lane 0 ------------------------------------------------------------------------ */

/* Claims half of what a queue has left. The word as it was before the claim, of which lanes can compute
 * the rest; 0: nothing.
 *
 * A look goes in front of the claim (two_atomics), or does so when this worker found the queue empty last
 * time (damping): otherwise attempts on empty queues would wrap their field, and take the line from its
 * owner. After the epoch's last task is gone a worker adds at most one attempt, in either case. */
LOOM_FN uint64_t sched_mgws_rob(struct loom_ctx *c, struct sched_mgws_queue *q, uint32_t victim)
{
	uint64_t *bits = SCHED_CFG(c, overflow) == MGWS_DAMPING
				 ? &sched_mgws_bits(c)[victim / 64]
				 : (uint64_t *)NULL;
	uint64_t bit = 1ull << victim % 64;
	sched_local(c)->tally.steal_attempts++;
	if ((!bits || *bits & bit) && !sched_mgws_offers(loom_load_relaxed_sys(&q->word)))
		return 0;
	/* Acquire: pairs with the owner's publication of the tasks. */
	uint64_t word = loom_fetch_add_acquire_sys(&q->word, MGWS_ATTEMPT);
	if (!sched_mgws_offers(word))
		word = 0;
	if (bits)
		*bits = word ? *bits & ~bit : *bits | bit;
	return word;
}

/* Chooses a victim and claims some of its tasks, with room for them at hand. The own queue is held when
 * the answer is not 0. */
LOOM_FN uint64_t sched_mgws_attempt(struct loom_ctx *c, uint64_t *victim)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	struct sched_mgws_own *own = sched_mgws_books(c);
	struct sched_mgws_queue *q = sched_mgws_used(c), *from;
	uint32_t v = sched_mgws_victim(c);
	uint64_t word = 0;
	if (v == MGWS_NOBODY || !(from = sched_mgws_queue_of(c, v)))
		return 0;
	/* Several owners: not worth their queue if there is nothing. */
	if (own != &mine->own && !sched_mgws_offers(loom_load_relaxed_sys(&from->word)))
		return 0;
	if (!sched_mgws_hold(c, q))
		return 0;
	/* Half a ring is the most that can come: wait until that fits. */
	sched_mgws_close(own, q);
	if (sched_mgws_room(own, q) >= (own->mask + 1) / 2)
		word = sched_mgws_rob(c, from, v);
	if (!word)
		sched_mgws_settle(c, own, q);
	*victim = v;
	return word;
}

/* ---- steal: collective --------------------------------------------------------------------- */

/* One attempt at one victim; how many tasks came. The newer half goes to the local queue, the older
 * one becomes public here, so that others need not queue up at the same victim. `all`: all to the local queue, as far
 * as there is room. */
LOOM_FN uint32_t sched_mgws_steal(struct loom_ctx *c, int idle, int all)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	struct sched_mgws_own *own = sched_mgws_books(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	uint64_t victim = 0, word = 0, begin = c->lane == 0 ? loom_trace_now(c) : 0;
	if (c->lane == 0)
		word = sched_mgws_attempt(c, &victim);
	word = loom_from_lane0(c, word);
	if (!word)
		return 0;
	victim = loom_from_lane0(c, victim);

	struct sched_mgws_queue *v = sched_mgws_queue_of(c, (uint32_t)victim);
	uint64_t left = sched_mgws_left(word);
	uint64_t at = (word & MGWS_COUNT_MASK) + sched_mgws_initial(word) - left;
	uint32_t n = (uint32_t)(left - left / 2), most = (sched_mask(c) + 1) / 2;
	uint32_t wanted = all ? n : n - n / 2, keep = wanted < most ? wanted : most, rest = n - keep;

	sched_mgws_pass(c, q, own->head, v, at, own->mask, rest);
	sched_mgws_load(c, v, at + rest, own->mask, keep);
	sched_lane(c)->count = keep;
	loom_barrier_lanes(c);
	if (idle)
		LOOM_CALL(term, busy, c);
	if (c->lane == 0) {
		own->head += rest;
		own->given += rest;
		sched_mgws_settle(c, own, q);
		/* Release: pairs with the owner's acquire of the count. It comes after the copy and
		 * after busy(): the victim may overwrite the slots, and report idle. */
		loom_fetch_add_release_sys(&v->completed[word >> MGWS_EPOCH_SHIFT & 1],
					   (uint64_t)n);
		mine->turn = 0;
		sched_local(c)->tally.steals++;
		sched_local(c)->tally.stolen_in += n;
		loom_trace_add(c, LOOM_TRACE_STEAL, begin, (uint32_t)victim, n);
	}
	return n;
}

#endif
