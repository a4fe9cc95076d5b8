/* SPDX-License-Identifier: Apache-2.0 */
/* The choice of victims, and steals from them (MGWS thesis, 4.3, 5.1 and 5.5). Device code. */
#ifndef SCHED_MGWS_STEAL_DEV_H
#define SCHED_MGWS_STEAL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "ranks.dev.h"
#endif

/* ---- victims: lane 0 ------------------------------------------------------------------------- */

LOOM_FN uint32_t mgws_pick_any(struct loom_ctx *c)
{
	if (c->workers < 2)
		return MGWS_NO_VICTIM;
	uint32_t v = loom_random_below(c, c->workers - 1);
	return v + (v >= c->worker);
}

LOOM_FN uint32_t mgws_pick_local(struct loom_ctx *c)
{
	if (c->count < 2)
		return MGWS_NO_VICTIM;
	uint32_t v = c->first + loom_random_below(c, c->count - 1);
	return v + (v >= c->worker);
}

LOOM_FN uint32_t mgws_pick_other_device(struct loom_ctx *c)
{
	if (c->count == c->workers)
		return MGWS_NO_VICTIM;
	uint32_t v = loom_random_below(c, c->workers - c->count);
	return v < c->first ? v : v + c->count;
}

/* In one of so many searches a worker tries a victim that takes longer to reach. */
#define MGWS_LOCAL_SEARCHES 8u

/* Returns the victim that mgws_scan_local() or mgws_scan_remote() has found, or one that the option `victim` chooses. */
LOOM_FN uint32_t mgws_victim(struct loom_ctx *c)
{
	struct mgws_worker *mine = mgws_worker(c);
	uint32_t v = mine->next, from = SCHED_CFG(c, noncoherent) ? c->first : 0;
	uint32_t n = SCHED_CFG(c, noncoherent) ? c->count : c->workers;
	if (v) {
		mine->next = 0;
		return v - 1;
	}
	switch (SCHED_CFG(c, victim)) {
	case MGWS_RANDOM:
		return mgws_pick_any(c);
	case MGWS_BIASED: /* as in listing 6 of the MGWS thesis */
		if (c->count > 1 && (c->count == c->workers || loom_random(c) >> 32 < SCHED_CFG(c, bias_of_2_32)))
			return mgws_pick_local(c);
		return mgws_pick_other_device(c);
	case MGWS_LOCAL:
		return mgws_pick_local(c);
	case MGWS_NEIGHBOUR: /* the next worker, then the one after it; a successful steal resets `distance` */
		if (n < 2)
			return MGWS_NO_VICTIM;
		mine->distance = mine->distance % (n - 1) + 1;
		return from + (c->worker - from + mine->distance) % n;
	default:
		return MGWS_NO_VICTIM;
	}
}

/* Returns the public queue that a victim uses, or NULL if this worker uses the same queue. */
LOOM_FN struct mgws_queue *mgws_victim_queue(const struct loom_ctx *c, uint32_t victim)
{
	if (mgws_is_remote(c, victim))
		return mgws_remote_queue(c, victim);
	struct mgws_queue *q = mgws_find_queue(c, victim);
	return q == mgws_queue(c) ? (struct mgws_queue *)NULL : q;
}

/* Returns whether this rank has tasks to refill, acquire or steal. Remembers a victim with tasks in mgws_worker.next. */
LOOM_FN int mgws_scan_local(struct loom_ctx *c)
{
	struct mgws_worker *mine = mgws_worker(c);
	uint32_t policy = SCHED_CFG(c, victim);
	int local = policy == MGWS_LOCAL || SCHED_CFG(c, noncoherent);
	uint32_t from = local ? c->first : 0;
	uint32_t n = policy == MGWS_NONE ? 0 : local ? c->count : c->workers;
	if (mgws_list_to_take(c) != MGWS_LISTS || !mgws_empty(mgws_own_meta(c), mgws_queue(c)))
		return 1;
	for (uint32_t i = 1; i <= n; i++) {
		uint32_t v = from + (c->worker - from + i) % n;
		struct mgws_queue *q = mgws_victim_queue(c, v);
		if (q && mgws_stealable(loom_load_relaxed_sys(&q->word))) {
			mine->next = v + 1;
			return 1;
		}
	}
	return 0;
}

/* ---- attempts: lane 0 ------------------------------------------------------------------------ */

/* If attempts = damping (MGWS thesis, 5.1), a bit for each victim records whether its queue was empty at the last attempt. Only
 * if it was empty, the thief checks the queue before the next attempt. If attempts = two_atomics, the thief checks before each
 * attempt. */
#if SCHED_MAY(SCHED_IS_attempts == 1)

LOOM_FN int mgws_checks_first(const struct loom_ctx *c, uint32_t victim)
{
	return SCHED_CFG(c, attempts) != MGWS_DAMPING || mgws_bits(c)[victim / 64] >> victim % 64 & 1;
}

LOOM_FN void mgws_note_empty(const struct loom_ctx *c, uint32_t victim, int empty)
{
	uint64_t bit = 1ull << victim % 64, *bits = &mgws_bits(c)[victim / 64];
	if (SCHED_CFG(c, attempts) == MGWS_DAMPING)
		*bits = empty ? *bits | bit : *bits & ~bit;
}

#else

#define mgws_checks_first(c, victim)      1
#define mgws_note_empty(c, victim, empty) ((void)0)

#endif

/* Makes one attempt to steal from a queue. Returns the value of the queue's word before the attempt, from which lanes compute
 * the stolen tasks, or 0 if none were stolen. An attempt on an empty queue makes the field of attempts grow, and takes
 * the cache line from the owner. So the thief first checks the word: before each attempt (attempts = two_atomics), or only if
 * its last attempt on this victim found nothing (damping). In both cases a worker adds at most one attempt to an epoch that has
 * no tasks left. */
LOOM_FN uint64_t mgws_attempt(struct loom_ctx *c, struct mgws_queue *q, uint32_t victim)
{
	sched_local(c)->counters.steal_attempts++;
	if (mgws_is_rma(c, victim))
		return mgws_rma_steal(c, victim);
	if (mgws_checks_first(c, victim) && !mgws_stealable(loom_load_relaxed_sys(&q->word)))
		return 0;
	/* Acquire: pairs with the release store in mgws_open_epoch(). */
	uint64_t word = MGWS_QUEUE_OP(loom_fetch_add_acquire)(&q->word, MGWS_ATTEMPT);
	if (!mgws_stealable(word))
		word = 0;
	mgws_note_empty(c, victim, !word);
	return word;
}

/* Tries to steal from v, if this worker's queue has room for the largest number of tasks that may come. Returns the result of
 * mgws_attempt(). If the result is not 0, this worker holds the trylock of its own queue. */
LOOM_FN uint64_t mgws_begin_steal(struct loom_ctx *c, uint32_t v)
{
	struct mgws_meta *meta = mgws_meta(c);
	struct mgws_queue *q = mgws_queue(c), *from;
	uint64_t word = 0;
	if (v == MGWS_NO_VICTIM || !(from = mgws_victim_queue(c, v)))
		return 0;
	/* If its queue has several owners, checks the victim before it locks, so that a search without success does not
	 * lock. */
	if (!mgws_sole_owner(c) && !mgws_stealable(loom_load_relaxed_sys(&from->word)))
		return 0;
	if (!mgws_try_lock_queue(c, q))
		return 0;
	/* A steal brings at most half a ring of tasks, so make an attempt only if half of this ring is free. */
	mgws_close_epoch(meta, q);
	if (mgws_room(meta, q) >= (meta->mask + 1) / 2)
		word = mgws_attempt(c, from, v);
	if (!word)
		mgws_reopen(c, meta, q);
	if (mgws_is_remote(c, v))
		mgws_worker(c)->remote_last = word ? v + 1 : 0;
	return word;
}

/* ---- steal: collective ----------------------------------------------------------------------- */

/* Makes one attempt to steal from the victim that lane 0 passes. Returns the number of stolen tasks. The newer half of the
 * stolen tasks goes to the local queue. The older half goes to the public queue, so that other thieves need not steal from the
 * same victim. idle: 1: this worker has reported idle. all: 1: all tasks go to the local queue, as far as it has room. */
LOOM_FN uint32_t mgws_steal_from(struct loom_ctx *c, uint64_t victim, int idle, int all)
{
	struct mgws_meta *meta = mgws_meta(c);
	struct mgws_queue *q = mgws_queue(c);
	uint64_t word = 0, begin = c->lane == 0 ? loom_trace_now(c) : 0;
	if (c->lane == 0)
		word = mgws_begin_steal(c, (uint32_t)victim);
	word = loom_from_lane0(c, word);
	if (!word)
		return 0;
	victim = loom_from_lane0(c, victim);

	struct mgws_queue *v = mgws_victim_queue(c, (uint32_t)victim);
	uint64_t left = mgws_left(word);
	uint64_t at = (word & MGWS_COUNT_MASK) + mgws_offered(word) - left;
	uint32_t n = (uint32_t)(left - left / 2), most = (sched_mask(c) + 1) / 2;
	/* Tasks that the lanes can run at once need not be stolen again. */
	int whole = all || (SCHED_GRANULARITY(c) == SCHED_LANE && n <= c->lanes);
	uint32_t wanted = whole ? n : n - n / 2, keep = wanted < most ? wanted : most, rest = n - keep;

	mgws_copy_across(c, q, meta->head, v, at, meta->mask, rest);
	mgws_copy_out(c, v, at + rest, meta->mask, keep);
	sched_lane(c)->count = keep;
	loom_barrier_lanes(c);
	if (idle)
		LOOM_CALL(term, busy, c);
	if (c->lane == 0) {
		meta->head += rest;
		meta->published += rest;
		mgws_reopen(c, meta, q);
		/* Release: pairs with the acquire in mgws_copied(), after which the owner may overwrite the slots and may
		 * report idle. So this add comes after the copy and after busy(). */
		uint32_t epoch = word >> MGWS_EPOCH_SHIFT & 1;
		if (mgws_is_rma(c, (uint32_t)victim))
			mgws_rma_complete(c, (uint32_t)victim, epoch, n);
		else
			MGWS_QUEUE_OP(loom_fetch_add_release)(&v->completed[epoch], (uint64_t)n);
		mgws_worker(c)->distance = 0;
		sched_local(c)->counters.steals++;
		sched_local(c)->counters.stolen_in += n;
		if (mgws_is_remote(c, (uint32_t)victim)) {
			mgws_worker(c)->remote_steals++;
			mgws_worker(c)->remote_tasks += n;
			mgws_worker(c)->host_steals += victim - c->workers < mgws_global(c)->within[MGWS_SAME_HOST];
		}
		loom_trace_add(c, LOOM_TRACE_STEAL, begin, (uint32_t)victim, n);
	}
	return n;
}

/* Makes one attempt to steal from the victim of this rank that mgws_victim() returns. */
LOOM_FN uint32_t mgws_steal(struct loom_ctx *c, int idle, int all)
{
	return mgws_steal_from(c, c->lane == 0 ? mgws_victim(c) : 0, idle, all);
}

#endif
