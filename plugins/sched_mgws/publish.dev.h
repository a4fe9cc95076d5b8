/* SPDX-License-Identifier: Apache-2.0 */
/* The operations of an owner on its public queue: publish and acquire (MGWS thesis, 5.1). The thesis calls publish
 * "release". Device code, collective. */
#ifndef SCHED_MGWS_PUBLISH_DEV_H
#define SCHED_MGWS_PUBLISH_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "ids.dev.h"
#endif

/* Bytes of a queue with its ring and, if transfer = id, its pool. In a worker's block the backlog follows. */
#define MGWS_QUEUE_BYTES(public_queue, transfer)                                                                       \
	(sizeof(struct mgws_queue) + ((transfer) == MGWS_BODY                                                          \
					  ? (uint64_t)(public_queue)*64                                                \
					  : MGWS_IDS_BYTES(public_queue) + MGWS_POOL_BYTES(public_queue)))

LOOM_FN struct loom_task *mgws_backlog(const struct loom_ctx *c)
{
	return (struct loom_task *)((char *)c->own[LOOM_SCHED] +
				    MGWS_QUEUE_BYTES(SCHED_CFG(c, public_queue), SCHED_CFG(c, transfer)));
}

LOOM_FN struct loom_task *mgws_tasks(struct mgws_queue *q)
{
	return (struct loom_task *)(q + 1);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Copies n tasks into the ring of a public queue, from position `head` on. */
LOOM_FN void mgws_copy_in(const struct loom_ctx *c, struct mgws_queue *q, uint64_t head, uint32_t ring_mask,
			  const struct loom_task *from, uint64_t at, uint64_t mask, uint32_t n)
{
	if (SCHED_CFG(c, transfer) == MGWS_BODY)
		sched_copy_ring(c, mgws_tasks(q), head, ring_mask, from, at, mask, n);
	else
		mgws_copy_ids_in(c, q, head, ring_mask, from, at, mask, n);
}

/* Copies n tasks from the ring of a public queue, from position `at` on, into the local queue. */
LOOM_FN void mgws_copy_out(struct loom_ctx *c, struct mgws_queue *q, uint64_t at, uint32_t ring_mask, uint32_t n)
{
	if (SCHED_CFG(c, transfer) == MGWS_BODY)
		sched_copy_ring(c, sched_ring(c), sched_lane(c)->head, sched_mask(c), mgws_tasks(q), at, ring_mask, n);
	else
		mgws_copy_ids_out(c, q, at, ring_mask, n);
}

/* Copies n tasks from one public queue to another. */
LOOM_FN void mgws_copy_across(const struct loom_ctx *c, struct mgws_queue *to, uint64_t to_at, struct mgws_queue *from,
			      uint64_t at, uint32_t mask, uint32_t n)
{
	if (SCHED_CFG(c, transfer) == MGWS_BODY)
		sched_copy_ring(c, mgws_tasks(to), to_at, mask, mgws_tasks(from), at, mask, n);
	else
		mgws_copy_ids_across(c, to, to_at, from, at, mask, n);
}

/* ---- publish and acquire ---------------------------------------------------------------------- */

/* Called by lane 0 before it makes tasks available to other workers. In a small sample, calls the workers that take no part
 * or have left. They must claim no initial tasks, because each of these belongs to a worker. This worker will not leave the
 * small sample, so the sample does not end without the workers that it calls. */
#define MGWS_CALLED (1ull << 62)
LOOM_FN void mgws_call_all(struct loom_ctx *c)
{
	uint32_t go = MGWS_SMALL(c);
	if (!go)
		return;
	mgws_worker(c)->small = 0;
	loom_store_relaxed_sys(&mgws_job(c)->next, MGWS_CALLED);
	/* In a launched kernel, this worker may be here before the first worker has stored the word at the start of the
	 * sample, which must not overwrite the call. Resident workers have their order from this word. */
	uint64_t call;
	while ((uint32_t)((call = loom_load_relaxed_dev(&c->ctl->call)) >> 32) != go)
		loom_pause(c);
	/* Release: pairs with the acquire of the other workers, which then load `next`. */
	loom_store_release_dev(&c->ctl->call, call | LOOM_ORDER_CALLED);
}

/* Called by lane 0 with the trylock. Starts an epoch if the queue has tasks to offer, and unlocks the queue. */
LOOM_FN void mgws_reopen(struct loom_ctx *c, struct mgws_meta *meta, struct mgws_queue *q)
{
	if (!meta->open && meta->head != meta->tail) {
		mgws_call_all(c);
		mgws_open_epoch(meta, q);
		sched_wake(c, mgws_event(c), 1u);
	}
	mgws_unlock_queue(c, meta, q);
}

LOOM_FN uint32_t mgws_publish_range(struct loom_ctx *c, struct loom_task *from, uint64_t at, uint64_t mask,
				    uint64_t want)
{
	const struct mgws_meta *own = mgws_own_meta(c);
	struct mgws_meta *meta = mgws_meta(c);
	struct mgws_queue *q = mgws_queue(c);
	uint32_t n = 0;
	int locked = 0;
	if (c->lane == 0) {
		/* The queue is full if the epoch has offered a task in every slot and no thief has changed the word. */
		int full = own->open > own->mask && loom_load_relaxed_sys(&q->word) == own->word;
		locked = !full && mgws_try_lock_queue(c, q);
	}
	if (locked) {
		mgws_close_epoch(meta, q);
		n = mgws_room(meta, q);
		n = n < want ? n : (uint32_t)want;
		if (SCHED_CFG(c, transfer) == MGWS_ID && from != c->initial)
			n = mgws_reserve(c, q, meta->head, meta->mask, n);
	}
	n = (uint32_t)loom_from_lane0(c, n);
	if (n)
		mgws_copy_in(c, q, meta->head, meta->mask, from, at, mask, n);
	loom_barrier_lanes(c);
	if (locked) {
		meta->head += n;
		meta->published += n;
		sched_local(c)->counters.published += n;
		mgws_reopen(c, meta, q);
	}
	return n;
}

/* Copies up to `want` tasks of the ring `from`, from index `at` on, into the public queue. Returns the number of copied
 * tasks, which is limited by the room of the queue. */
LOOM_FN uint32_t mgws_publish(struct loom_ctx *c, const struct loom_task *from, uint64_t at, uint64_t mask,
			      uint64_t want)
{
	return (uint32_t)LOOM_OUTLINED_COLLECTIVE(mgws_publish_range, c, (struct loom_task *)from, at, mask, want);
}

/* Called by lane 0. Returns the queue's word after this worker has changed it. */
LOOM_FN uint64_t mgws_word_now(struct loom_ctx *c)
{
	return SCHED_CFG(c, owners) == 1 ? mgws_own_meta(c)->word : loom_load_relaxed_sys(&mgws_queue(c)->word);
}

/* Publishes up to `want` of the oldest tasks of a ring of this worker, and subtracts them from the ring's count. */
LOOM_FN uint32_t mgws_publish_ring(struct loom_ctx *c, const struct loom_task *ring, uint32_t mask, uint32_t *head,
				   uint32_t *count, uint32_t want)
{
	uint32_t n = mgws_publish(c, ring, *head, mask, want);
	*head += n;
	*count -= n;
	return n;
}

LOOM_FN uint32_t mgws_publish_local(struct loom_ctx *c, uint32_t want)
{
	struct sched_lane *mine = sched_lane(c);
	return mgws_publish_ring(c, sched_ring(c), sched_mask(c), &mine->head, &mine->count, want);
}

/* Moves the newest half of the public tasks into the empty local queue, and fills at most half of it. Returns the number of
 * tasks. idle: 1: this worker has reported idle, which happens only with several owners. */
LOOM_FN uint32_t mgws_acquire(struct loom_ctx *c, int idle)
{
	struct mgws_meta *meta = mgws_meta(c);
	struct mgws_queue *q = mgws_queue(c);
	uint32_t n = 0, mask = sched_mask(c);
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0;
	int locked = c->lane == 0 && !mgws_empty(mgws_own_meta(c), q) && mgws_try_lock_queue(c, q);
	if (locked) {
		mgws_close_epoch(meta, q);
		uint64_t left = meta->head - meta->tail, most = (mask + 1) / 2;
		n = (uint32_t)(left - left / 2 < most ? left - left / 2 : most);
		meta->head -= n;
		meta->acquired += n;
		sched_local(c)->counters.acquired += n;
		/* A single owner opens the next epoch before it copies, because thieves do not read from the new head on. */
		if (mgws_sole_owner(c))
			mgws_reopen(c, meta, q);
	}
	n = (uint32_t)loom_from_lane0(c, n);
	if (n)
		mgws_copy_out(c, q, meta->head, meta->mask, n);
	sched_lane(c)->count = n;
	if (c->lane == 0 && n)
		loom_trace_add(c, LOOM_TRACE_ACQUIRE, begin, c->worker, n);
	if (mgws_sole_owner(c))
		return n;
	loom_barrier_lanes(c);
	/* busy() comes before another owner can find the queue empty and report idle. */
	if (n && idle)
		LOOM_CALL(term, busy, c);
	if (locked)
		mgws_reopen(c, meta, q);
	return n;
}

#endif
