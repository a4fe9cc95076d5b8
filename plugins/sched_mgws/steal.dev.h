/* SPDX-License-Identifier: Apache-2.0 */
/* Whom to steal from, and stealing (MGWS thesis, 4.3, 5.1 and 5.5). Device code. */
#ifndef SCHED_MGWS_STEAL_DEV_H
#define SCHED_MGWS_STEAL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "damping.dev.h"
#endif

#define MGWS_NOBODY 0xffffffffu

/* ---- victims: lane 0 ----------------------------------------------------------------------- */

LOOM_FN uint32_t mgws_pick_any(struct loom_ctx *c)
{
	if (c->workers < 2)
		return MGWS_NOBODY;
	uint32_t v = loom_random_below(c, c->workers - 1);
	return v + (v >= c->worker);
}

LOOM_FN uint32_t mgws_pick_near(struct loom_ctx *c)
{
	if (c->count < 2)
		return MGWS_NOBODY;
	uint32_t v = c->first + loom_random_below(c, c->count - 1);
	return v + (v >= c->worker);
}

/* A worker of another device. */
LOOM_FN uint32_t mgws_pick_far(struct loom_ctx *c)
{
	if (c->count == c->workers)
		return MGWS_NOBODY;
	uint32_t v = loom_random_below(c, c->workers - c->count);
	return v < c->first ? v : v + c->count;
}

LOOM_FN uint32_t mgws_victim(struct loom_ctx *c)
{
	struct mgws_mine *mine = mgws_mine(c);
	uint32_t v = mine->next, from = SCHED_CFG(c, noncoherent) ? c->first : 0;
	uint32_t n = SCHED_CFG(c, noncoherent) ? c->count : c->workers;
	if (v) {
		mine->next = 0;
		return v - 1;
	}
	switch (SCHED_CFG(c, victim)) {
	case MGWS_RANDOM:
		return mgws_pick_any(c);
	case MGWS_BIASED: /* thesis, listing 6 */
		if (c->count > 1 && (c->count == c->workers || loom_random(c) >> 32 < SCHED_CFG(c, near_of_2_32)))
			return mgws_pick_near(c);
		return mgws_pick_far(c);
	case MGWS_LOCAL:
		return mgws_pick_near(c);
	case MGWS_NEIGHBOUR: /* the next, then the one after that; anew after a success */
		if (n < 2)
			return MGWS_NOBODY;
		mine->distance = mine->distance % (n - 1) + 1;
		return from + (c->worker - from + mine->distance) % n;
	default:
		return MGWS_NOBODY;
	}
}

/* Where the queues of other ranks are: the nearest ranks first, of those the next one. As victims their numbers follow those
 * of this rank's workers. */
LOOM_FN struct mgws_far *mgws_far(const struct loom_ctx *c, uint32_t victim)
{
	return (struct mgws_far *)mgws_list_slots(c, SCHED_CFG(c, mixed) ? MGWS_LISTS : 1) + (victim - c->workers);
}

LOOM_FN int mgws_is_far(const struct loom_ctx *c, uint32_t victim)
{
	return SCHED_CFG(c, far) && victim >= c->workers;
}

/* It takes asking to reach it. */
LOOM_FN int mgws_is_asked(const struct loom_ctx *c, uint32_t victim)
{
	return SCHED_CFG(c, rma) && mgws_is_far(c, victim);
}

/* Where tasks land that were asked for: behind the backlog, a queue like the victim's, with a ring as large. */
LOOM_FN uint64_t mgws_landing_at(const struct loom_ctx *c)
{
	return MGWS_QUEUE_BYTES(SCHED_CFG(c, public_queue), MGWS_BODY) + SCHED_CFG(c, backlog) * sizeof(struct loom_task);
}

LOOM_FN struct mgws_queue *mgws_landing(const struct loom_ctx *c)
{
	return (struct mgws_queue *)((char *)c->own[LOOM_SCHED] + mgws_landing_at(c));
}

/* The queue of a victim, or what it will look like here; NULL when it is this worker's as well. */
LOOM_FN struct mgws_queue *mgws_victim_queue(const struct loom_ctx *c, uint32_t victim)
{
	if (mgws_is_asked(c, victim))
		return mgws_landing(c);
	if (mgws_is_far(c, victim))
		return (struct mgws_queue *)(uintptr_t)mgws_far(c, victim)->queue;
	struct mgws_queue *q = mgws_find_queue(c, victim);
	return q == mgws_queue(c) ? (struct mgws_queue *)NULL : q;
}

/* Lane 0: there is something to take or to steal in this rank. Remembers where. */
LOOM_FN int mgws_scan_near(struct loom_ctx *c)
{
	struct mgws_mine *mine = mgws_mine(c);
	uint32_t policy = SCHED_CFG(c, victim);
	int local = policy == MGWS_LOCAL || SCHED_CFG(c, noncoherent);
	uint32_t from = local ? c->first : 0;
	uint32_t n = policy == MGWS_NONE ? 0 : local ? c->count : c->workers;
	if (mgws_filled_for_us(c) != MGWS_LISTS || !mgws_empty(mgws_known(c), mgws_queue(c)))
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

/* Lane 0: workers of other ranks that this one steals from. */
LOOM_FN uint32_t mgws_far_victims(const struct loom_ctx *c)
{
	uint32_t policy = SCHED_CFG(c, victim);
	return policy == MGWS_LOCAL || policy == MGWS_NONE ? 0 : mgws_far_count(c);
}

/* Lane 0: the same in any rank that takes no asking. */
LOOM_FN int mgws_scan(struct loom_ctx *c)
{
	uint32_t n = SCHED_CFG(c, rma) ? 0 : mgws_far_victims(c);
	if (mgws_scan_near(c))
		return 1;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = c->workers + (c->worker + i) % n;
		if (mgws_stealable(loom_load_relaxed_sys(&mgws_victim_queue(c, v)->word))) {
			mgws_mine(c)->next = v + 1;
			return 1;
		}
	}
	return 0;
}

/* Lane 0: one of n victims of other ranks. `neighbour`: the next one. `biased`: with the probability that the option gives
 * one of the nearest, else one that is further away, chosen in the same way. */
LOOM_FN uint32_t mgws_pick_rank(struct loom_ctx *c, uint32_t n)
{
	uint32_t from = 0;
	if (SCHED_CFG(c, victim) == MGWS_NEIGHBOUR)
		return c->workers + mgws_mine(c)->polled++ % n;
	for (uint32_t d = 0; d < MGWS_OTHER_HOST && SCHED_CFG(c, victim) == MGWS_BIASED; d++) {
		uint32_t until = mgws_global(c)->within[d];
		if (until == from)
			continue;
		if (until == n || loom_random(c) >> 32 < SCHED_CFG(c, near_of_2_32)) {
			n = until;
			break;
		}
		from = until;
	}
	return c->workers + from + loom_random_below(c, n - from);
}

/* Lane 0: a victim of another rank, where this rank has nothing: the one that had something last time, or another. A look at hundreds of queues takes a GPU longer than a steal, so there searches in vain tell
 * that the rank has nothing. */
#define MGWS_NEAR_SEARCHES 8u
LOOM_FN uint32_t mgws_far_victim(struct loom_ctx *c)
{
	uint32_t n = mgws_far_victims(c), last = mgws_mine(c)->last;
	if (!n)
		return MGWS_NOBODY;
#ifdef LOOM_RANKS_RMA
	if (mgws_scan_near(c))
		return MGWS_NOBODY;
#else
	if (!last && ++mgws_mine(c)->vain % MGWS_NEAR_SEARCHES)
		return MGWS_NOBODY;
#endif
	if (last)
		return last - 1;
	return mgws_pick_rank(c, n);
}

/* ---- asking: lane 0 ------------------------------------------------------------------------ */

#ifdef LOOM_RANKS_RMA
/* A word of another rank, before something is added to it. 0 where the run has failed or was stopped, too. */
LOOM_FN uint64_t mgws_ask_word(struct loom_ctx *c, const struct mgws_far *far, uint64_t at, uint64_t value)
{
	struct loom_rma ask = {.op = LOOM_NET_ADD, .rank = far->rank, .remote = at, .value = value};
	uint64_t was = 0;
	return LOOM_CALL(trigger, rma, c, &ask, &was) ? 0 : was;
}

/* Attempt and copy, a round trip each. Nothing is looked at before, so attempts on an empty queue add up. A thief that
 * finds a quarter of their field used looks first from then on. */
static __attribute__((noinline)) uint64_t mgws_ask_steal(struct loom_ctx *c, uint32_t victim)
{
	const struct mgws_far *far = mgws_far(c, victim);
	uint64_t at = far->queue + offsetof(struct mgws_queue, word), bit = 1ull << victim % 64, word;
	uint64_t *bits = &mgws_bits(c)[victim / 64];
	if (*bits & bit && !mgws_stealable(mgws_ask_word(c, far, at, 0)))
		return 0;
	word = mgws_ask_word(c, far, at, MGWS_ATTEMPT);
	*bits = word >> 62 ? *bits | bit : *bits & ~bit;
	if (!mgws_stealable(word))
		return 0;
	uint64_t left = mgws_left(word), slots = mgws_books(c)->mask + 1, n = left - left / 2;
	uint64_t slot = ((word & MGWS_COUNT_MASK) + mgws_offered(word) - left) & (slots - 1);
	if (slot + n > slots) { /* around the end: all of the ring, in one operation */
		slot = 0;
		n = slots;
	}
	uint64_t behind = sizeof(struct mgws_queue) + slot * sizeof(struct loom_task);
	struct loom_rma copy = {.op = LOOM_NET_GET,
				.rank = far->rank,
				.remote = far->queue + behind,
				.local = c->registry[LOOM_SCHED][c->worker] + mgws_landing_at(c) + behind,
				.bytes = n * sizeof(struct loom_task)};
	return LOOM_CALL(trigger, rma, c, &copy, (uint64_t *)NULL) ? 0 : word;
}

/* The copies of a steal are complete: posted, since nobody here waits for it. */
LOOM_FN void mgws_ask_complete(struct loom_ctx *c, uint32_t victim, uint32_t epoch, uint64_t n)
{
	const struct mgws_far *far = mgws_far(c, victim);
	struct loom_rma ask = {.op = LOOM_NET_ADD,
			       .rank = far->rank,
			       .remote = far->queue + offsetof(struct mgws_queue, completed) + epoch * sizeof(uint64_t),
			       .value = n};
	(void)LOOM_CALL(trigger, rma, c, &ask, (uint64_t *)NULL);
}
#else
#define mgws_ask_steal(c, victim) 0
#define mgws_ask_complete(c, victim, epoch, n) ((void)0)
#endif

/* ---- attempts: lane 0 ---------------------------------------------------------------------- */

/* One attempt on a queue. The word as it was before, of which lanes can compute the rest; 0: nothing.
 *
 * A thief looks first, always or where it found nothing last time (damping.dev.h). Attempts on empty queues would wrap
 * their field, and take the line from its owner. After the epoch's last task is gone a worker adds at most one attempt,
 * in either case. */
LOOM_FN uint64_t mgws_attempt(struct loom_ctx *c, struct mgws_queue *q, uint32_t victim)
{
	sched_local(c)->tally.steal_attempts++;
	if (mgws_is_asked(c, victim))
		return mgws_ask_steal(c, victim);
	if (mgws_looks_first(c, victim) && !mgws_stealable(loom_load_relaxed_sys(&q->word)))
		return 0;
	/* Acquire: pairs with the owner's publication of the tasks. */
	uint64_t word = MGWS_AMONG_THIEVES(loom_fetch_add_acquire)(&q->word, MGWS_ATTEMPT);
	if (!mgws_stealable(word))
		word = 0;
	mgws_note_empty(c, victim, !word);
	return word;
}

/* Tries to steal from v, with room for what comes at hand. When the answer is not 0, it is this worker's turn at its own
 * queue. */
LOOM_FN uint64_t mgws_begin_steal(struct loom_ctx *c, uint32_t v)
{
	struct mgws_books *books = mgws_books(c);
	struct mgws_queue *q = mgws_queue(c), *from;
	uint64_t word = 0;
	if (v == MGWS_NOBODY || !(from = mgws_victim_queue(c, v)))
		return 0;
	/* With co-owners: no turn is worth taking if there is nothing. */
	if (!mgws_sole_owner(c) && !mgws_stealable(loom_load_relaxed_sys(&from->word)))
		return 0;
	if (!mgws_try_turn(c, q))
		return 0;
	/* At most half a ring can come. No attempt before that fits. */
	mgws_close_epoch(books, q);
	if (mgws_room(books, q) >= (books->mask + 1) / 2)
		word = mgws_attempt(c, from, v);
	if (!word)
		mgws_settle(c, books, q);
	if (mgws_is_far(c, v))
		mgws_mine(c)->last = word ? v + 1 : 0;
	return word;
}

/* ---- steal: collective --------------------------------------------------------------------- */

/* One attempt at the victim that lane 0 names; how many tasks came. The newer half goes to the local queue. The older half
 * is public here, so that others need not queue up at the same victim. `all`: all go to the local queue, as far as there
 * is room. */
LOOM_FN uint32_t mgws_steal_from(struct loom_ctx *c, uint64_t victim, int idle, int all)
{
	struct mgws_books *books = mgws_books(c);
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
	uint32_t wanted = all ? n : n - n / 2, keep = wanted < most ? wanted : most, rest = n - keep;

	mgws_copy_across(c, q, books->head, v, at, books->mask, rest);
	mgws_copy_out(c, v, at + rest, books->mask, keep);
	sched_lane(c)->count = keep;
	loom_barrier_lanes(c);
	if (idle)
		LOOM_CALL(term, busy, c);
	if (c->lane == 0) {
		books->head += rest;
		books->shared += rest;
		mgws_settle(c, books, q);
		/* Release: pairs with the owner's acquire of the count, after which it may overwrite the slots and
		 * report idle. So it comes after the copy and after busy(). */
		uint32_t epoch = word >> MGWS_EPOCH_SHIFT & 1;
		if (mgws_is_asked(c, (uint32_t)victim))
			mgws_ask_complete(c, (uint32_t)victim, epoch, n);
		else
			MGWS_AMONG_THIEVES(loom_fetch_add_release)(&v->completed[epoch], (uint64_t)n);
		mgws_mine(c)->distance = 0;
		sched_local(c)->tally.steals++;
		sched_local(c)->tally.stolen_in += n;
		if (mgws_is_far(c, (uint32_t)victim)) {
			mgws_mine(c)->far_steals++;
			mgws_mine(c)->far_tasks += n;
			mgws_mine(c)->host_steals += victim - c->workers < mgws_global(c)->within[MGWS_SAME_HOST];
		}
		loom_trace_add(c, LOOM_TRACE_STEAL, begin, (uint32_t)victim, n);
	}
	return n;
}

/* The same at a victim of this rank, which the option chooses. */
LOOM_FN uint32_t mgws_steal(struct loom_ctx *c, int idle, int all)
{
	return mgws_steal_from(c, c->lane == 0 ? mgws_victim(c) : 0, idle, all);
}

#endif
