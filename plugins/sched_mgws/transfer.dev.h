/* SPDX-License-Identifier: Apache-2.0 */
/* What the slots of a public queue carry, and how it gets there and away. Device code, collective.
 *
 * transfer = body: a slot is a task of 64 bytes.
 * transfer = id: a slot is 4 bytes that name a task: one of the initial set, or one in the pool of the
 * worker that made it public first. A task's body is then written once and read once, however often it
 * is stolen: what pays where queues lie behind a slow link. Only its worker takes slots of a pool; who
 * loads a body gives the slot back with one store. */
#ifndef SCHED_MGWS_TRANSFER_DEV_H
#define SCHED_MGWS_TRANSFER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "public.dev.h"
#endif

enum mgws_transfer { MGWS_BODY, MGWS_ID };

#define MGWS_ID_INITIAL (1u << 31) /* an index of the initial set; else worker * slots + slot */
/* A pool outlasts its own queue: stolen ids wait in the queues of others. A test may make it smaller. */
#ifndef MGWS_POOL_SLOTS
#define MGWS_POOL_SLOTS(public_queue) (4 * (public_queue))
#endif

/* Behind the header: the ring; then the pool's
 * marks (1: taken) and its bodies. */
#define MGWS_IDS_BYTES(public_queue) (((uint64_t)(public_queue) * 4 + 63) & ~63ull)
#define MGWS_QUEUE_BYTES(public_queue, transfer)                                                   \
	(sizeof(struct sched_mgws_queue) +                                                         \
	 ((transfer) == MGWS_BODY ? (uint64_t)(public_queue) * 64                                  \
				  : MGWS_IDS_BYTES(public_queue) + MGWS_POOL_BYTES(public_queue)))
#define MGWS_POOL_MARKS(public_queue)                                                              \
	(((uint64_t)MGWS_POOL_SLOTS(public_queue) * 4 + 63) & ~63ull)
#define MGWS_POOL_BYTES(public_queue)                                                              \
	(MGWS_POOL_MARKS(public_queue) + (uint64_t)MGWS_POOL_SLOTS(public_queue) * 64)

/* Behind that, if there is one: the worker's own backlog, a ring. */
#define MGWS_BACKLOG_SLOTS(public_queue) (4 * (public_queue))

LOOM_FN struct loom_task *sched_mgws_backlog(const struct loom_ctx *c)
{
	return (struct loom_task *)((char *)c->own[LOOM_SCHED] +
				    MGWS_QUEUE_BYTES(SCHED_CFG(c, public_queue), SCHED_CFG(c, transfer)));
}

LOOM_FN struct loom_task *sched_mgws_tasks(struct sched_mgws_queue *q)
{
	return (struct loom_task *)(q + 1);
}

LOOM_FN uint32_t *sched_mgws_ids(struct sched_mgws_queue *q)
{
	return (uint32_t *)(q + 1);
}

/* ---- the pool ---------------------------------------------------------------------------- */

LOOM_FN uint32_t *sched_mgws_marks(const struct loom_ctx *c, uint32_t worker)
{
	char *q = (char *)loom_public(c, LOOM_SCHED, worker);
	uint32_t ring = SCHED_CFG(c, public_queue);
	return (uint32_t *)(q + sizeof(struct sched_mgws_queue) + MGWS_IDS_BYTES(ring));
}

/* The task that an id names. */
LOOM_FN struct loom_task *sched_mgws_body(const struct loom_ctx *c, uint32_t id)
{
	uint32_t ring = SCHED_CFG(c, public_queue), slots = MGWS_POOL_SLOTS(ring);
	if (id & MGWS_ID_INITIAL)
		return (struct loom_task *)c->initial + (id & ~MGWS_ID_INITIAL);
	char *taken = (char *)sched_mgws_marks(c, id / slots);
	return (struct loom_task *)(taken + MGWS_POOL_MARKS(ring)) + id % slots;
}

/* Lane 0: names up to n free slots of this worker's pool in its queue's ring; how many. */
LOOM_FN uint32_t sched_mgws_reserve(struct loom_ctx *c, struct sched_mgws_queue *q, uint64_t at,
				    uint32_t mask, uint32_t n)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	uint32_t slots = MGWS_POOL_SLOTS(SCHED_CFG(c, public_queue)), found = 0;
	uint32_t *taken = sched_mgws_marks(c, c->worker), *ids = sched_mgws_ids(q);
	for (uint32_t i = 0; i < slots && found < n; i++) {
		uint32_t slot = mine->pool++ % slots;
		/* Acquire: pairs with the release of who loaded the body. */
		if (loom_load_acquire_sys(&taken[slot]))
			continue;
		loom_store_relaxed_sys(&taken[slot], 1u); /* ours to see until it is loaded */
		ids[(at + found++) & mask] = c->worker * slots + slot;
	}
	return found;
}

/* Lane 0: the body is loaded; its slot may be written again. */
LOOM_FN void sched_mgws_unmark(const struct loom_ctx *c, uint32_t id)
{
	uint32_t slots = MGWS_POOL_SLOTS(SCHED_CFG(c, public_queue));
	if (!(id & MGWS_ID_INITIAL))
		loom_store_release_sys(&sched_mgws_marks(c, id / slots)[id % slots], 0u);
}

/* ---- copies ------------------------------------------------------------------------------- */

/* Into the ring behind `head`. Ids of a pool's slots are there already: see reserve. */
LOOM_FN void sched_mgws_store(const struct loom_ctx *c, struct sched_mgws_queue *q, uint64_t head,
			      uint32_t ring_mask, const struct loom_task *from, uint64_t at,
			      uint64_t mask, uint32_t n)
{
	uint32_t *ids = sched_mgws_ids(q);
	if (SCHED_CFG(c, transfer) == MGWS_BODY) {
		sched_move(c, sched_mgws_tasks(q), head, ring_mask, from, at, mask, n);
	} else if (from == c->initial) {
		for (uint32_t i = c->lane; i < n; i += c->lanes)
			ids[(head + i) & ring_mask] = (uint32_t)(at + i) | MGWS_ID_INITIAL;
	} else {
		for (uint32_t i = 0; i < n; i++)
			sched_copy(c, sched_mgws_body(c, ids[(head + i) & ring_mask]),
				   &from[(at + i) & mask]);
	}
}

/* From the ring into the local queue. */
LOOM_FN void sched_mgws_load(struct loom_ctx *c, struct sched_mgws_queue *q, uint64_t at,
			     uint32_t ring_mask, uint32_t n)
{
	struct sched_lane *mine = sched_lane(c);
	struct loom_task *ring = sched_ring(c);
	uint32_t mask = sched_mask(c), *ids = sched_mgws_ids(q);
	if (SCHED_CFG(c, transfer) == MGWS_BODY) {
		sched_move(c, ring, mine->head, mask, sched_mgws_tasks(q), at, ring_mask, n);
		return;
	}
	for (uint32_t i = 0; i < n; i++) {
		LOOM_YIELD(); /* tests stall thieves here */
		sched_copy(c, &ring[(mine->head + i) & mask],
			   sched_mgws_body(c, ids[(at + i) & ring_mask]));
	}
	loom_barrier_lanes(c);
	for (uint32_t i = 0; c->lane == 0 && i < n; i++)
		sched_mgws_unmark(c, ids[(at + i) & ring_mask]);
}

/* From ring to ring. */
LOOM_FN void sched_mgws_pass(const struct loom_ctx *c, struct sched_mgws_queue *to, uint64_t to_at,
			     struct sched_mgws_queue *from, uint64_t at, uint32_t mask, uint32_t n)
{
	if (SCHED_CFG(c, transfer) == MGWS_BODY) {
		sched_move(c, sched_mgws_tasks(to), to_at, mask, sched_mgws_tasks(from), at, mask, n);
		return;
	}
	for (uint32_t i = c->lane; i < n; i += c->lanes) {
		LOOM_YIELD();
		sched_mgws_ids(to)[(to_at + i) & mask] = sched_mgws_ids(from)[(at + i) & mask];
	}
}

#endif
