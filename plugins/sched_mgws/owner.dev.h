/* SPDX-License-Identifier: Apache-2.0 */
/* What an owner does with its public queue: give and acquire (MGWS thesis, 5.1: release and acquire).
 * Device code, collective. */
#ifndef SCHED_MGWS_OWNER_DEV_H
#define SCHED_MGWS_OWNER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "transfer.dev.h"
#endif

/* Lane 0: ends the owner's turn. */
LOOM_FN void sched_mgws_settle(struct loom_ctx *c, struct sched_mgws_own *own,
			       struct sched_mgws_queue *q)
{
	if (!own->open && own->head != own->tail) {
		sched_mgws_publish(own, q);
		sched_wake(c, &sched_mgws_global(c)->common.bell, 1u);
	} else if (!own->open && own == &q->books && SCHED_CFG(c, owners) > 1) {
		loom_store_relaxed_sys(&q->word, (uint64_t)0); /* co-owners judge by the word alone */
	}
	sched_mgws_drop(c, own, q);
}

LOOM_FN uint32_t sched_mgws_offer(struct loom_ctx *c, struct loom_task *from, uint64_t at, uint64_t mask,
				  uint64_t want)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	const struct sched_mgws_own *hint = &mine->own;
	struct sched_mgws_own *own = sched_mgws_books(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	uint32_t n = 0;
	int held = 0;
	if (c->lane == 0) {
		/* Full, and nobody came: leave it alone. */
		int full = hint->open > hint->mask && loom_load_relaxed_sys(&q->word) == hint->word;
		held = !full && sched_mgws_hold(c, q);
	}
	if (held) {
		sched_mgws_close(own, q);
		n = sched_mgws_room(own, q);
		n = n < want ? n : (uint32_t)want;
		if (SCHED_CFG(c, transfer) == MGWS_ID && from != c->initial)
			n = sched_mgws_reserve(c, q, own->head, own->mask, n);
	}
	n = (uint32_t)loom_from_lane0(c, n);
	if (n)
		sched_mgws_store(c, q, own->head, own->mask, from, at, mask, n);
	loom_barrier_lanes(c);
	if (held) {
		own->head += n;
		own->given += n;
		sched_local(c)->tally.released += n;
		sched_mgws_settle(c, own, q);
	}
	return n;
}

/* Makes up to `want` tasks public, as far as there is room; how many. */
LOOM_FN uint32_t sched_mgws_give(struct loom_ctx *c, const struct loom_task *from, uint64_t at,
				 uint64_t mask, uint64_t want)
{
	return (uint32_t)LOOM_FAR_TOGETHER(sched_mgws_offer, c, (struct loom_task *)from, at, mask, want);
}

/* Moves the newest min(half, half a local queue) of the public tasks into the empty local queue; how
 * many. `idle`: the worker has reported idle, and lives on what its co-owners left. */
LOOM_FN uint32_t sched_mgws_acquire(struct loom_ctx *c, int idle)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	struct sched_mgws_own *own = sched_mgws_books(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	uint32_t n = 0, mask = sched_mask(c);
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0;
	int held = c->lane == 0 && !sched_mgws_empty(&mine->own, q) && sched_mgws_hold(c, q);
	if (held) {
		sched_mgws_close(own, q);
		uint64_t left = own->head - own->tail, most = (mask + 1) / 2;
		n = (uint32_t)(left - left / 2 < most ? left - left / 2 : most);
		own->head -= n;
		own->acquired += n;
		sched_local(c)->tally.acquired += n;
		/* A single owner may publish already: thieves cannot reach behind the new head. */
		if (own == &mine->own)
			sched_mgws_settle(c, own, q);
	}
	n = (uint32_t)loom_from_lane0(c, n);
	if (n)
		sched_mgws_load(c, q, own->head, own->mask, n);
	sched_lane(c)->count = n;
	if (c->lane == 0 && n)
		loom_trace_add(c, LOOM_TRACE_ACQUIRE, begin, c->worker, n);
	if (own == &mine->own)
		return n;
	loom_barrier_lanes(c);
	/* Before a co-owner can find the queue empty, and report idle. */
	if (n && idle)
		LOOM_CALL(term, busy, c);
	if (held)
		sched_mgws_settle(c, own, q);
	return n;
}

#endif
