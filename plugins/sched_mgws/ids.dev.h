/* SPDX-License-Identifier: Apache-2.0 */
/* transfer = id: a slot of a public queue holds an id of 4 bytes. The id names a task of the initial set, or a task in the pool
 * of the worker that first published the task. Device code.
 *
 * So the 64 bytes of a task, its body, are written once and read once, even if thieves steal the task several times. This
 * saves time if queues are reached over a slow link. Each worker has a pool, in which only this worker reserves slots. The
 * worker that copies a body out of a pool frees the slot by one store. */
#ifndef SCHED_MGWS_IDS_DEV_H
#define SCHED_MGWS_IDS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "owners.dev.h"
#endif

#define MGWS_ID_INITIAL (1u << 31) /* bit of an id. 1: the rest is an index of the initial set. 0: worker * slots + slot */
/* The pool is larger than the queue, because stolen ids wait in the queues of other workers. Tests make it smaller. */
#ifndef MGWS_POOL_SLOTS
#define MGWS_POOL_SLOTS(public_queue) (4 * (public_queue))
#endif

/* Behind struct mgws_queue are the ring of ids, the pool's marks (one word per slot; 1: taken), and the pool's bodies. */
#define MGWS_LINES(bytes)             (((uint64_t)(bytes) + 63) & ~63ull)
#define MGWS_IDS_BYTES(public_queue)  MGWS_LINES((public_queue)*4)
#define MGWS_POOL_MARKS(public_queue) MGWS_LINES(MGWS_POOL_SLOTS(public_queue) * 4)
#define MGWS_POOL_BYTES(public_queue) (MGWS_POOL_MARKS(public_queue) + (uint64_t)MGWS_POOL_SLOTS(public_queue) * 64)

#if SCHED_MAY(SCHED_IS_transfer == 1)

LOOM_FN uint32_t *mgws_ids(struct mgws_queue *q)
{
	return (uint32_t *)(q + 1);
}

LOOM_FN uint32_t *mgws_marks(const struct loom_ctx *c, uint32_t worker)
{
	char *q = (char *)loom_public(c, LOOM_SCHED, worker);
	uint32_t ring = SCHED_CFG(c, public_queue);
	return (uint32_t *)(q + sizeof(struct mgws_queue) + MGWS_IDS_BYTES(ring));
}

/* Returns the task that an id names. */
LOOM_FN struct loom_task *mgws_body(const struct loom_ctx *c, uint32_t id)
{
	uint32_t ring = SCHED_CFG(c, public_queue), slots = MGWS_POOL_SLOTS(ring);
	if (id & MGWS_ID_INITIAL)
		return (struct loom_task *)c->initial + (id & ~MGWS_ID_INITIAL);
	char *taken = (char *)mgws_marks(c, id / slots);
	return (struct loom_task *)(taken + MGWS_POOL_MARKS(ring)) + id % slots;
}

/* Called by lane 0. Reserves up to n slots of this worker's pool, and writes their ids into the queue's ring from position
 * `at` on. Returns the number of slots. */
LOOM_FN uint32_t mgws_reserve(struct loom_ctx *c, struct mgws_queue *q, uint64_t at, uint32_t mask, uint32_t n)
{
	struct mgws_worker *mine = mgws_worker(c);
	uint32_t slots = MGWS_POOL_SLOTS(SCHED_CFG(c, public_queue)), found = 0;
	uint32_t *taken = mgws_marks(c, c->worker), *ids = mgws_ids(q);
	for (uint32_t i = 0; i < slots && found < n; i++) {
		uint32_t slot = mine->pool++ % slots;
		/* Acquire: pairs with the release in mgws_unmark(). */
		if (loom_load_acquire_sys(&taken[slot]))
			continue;
		loom_store_relaxed_sys(&taken[slot], 1u); /* the mark stays until the body is copied out */
		ids[(at + found++) & mask] = c->worker * slots + slot;
	}
	return found;
}

/* Called by lane 0 after a body was copied out. Frees the body's slot. */
LOOM_FN void mgws_unmark(const struct loom_ctx *c, uint32_t id)
{
	uint32_t slots = MGWS_POOL_SLOTS(SCHED_CFG(c, public_queue));
	if (!(id & MGWS_ID_INITIAL))
		loom_store_release_sys(&mgws_marks(c, id / slots)[id % slots], 0u);
}

/* If transfer = id, mgws_copy_in(), mgws_copy_out() and mgws_copy_across() of publish.dev.h call the next three functions,
 * which are collective. mgws_copy_ids_in(): if tasks are not from the initial set, mgws_reserve() has already written their ids
 * into the ring, so only the bodies are copied. */
LOOM_FN void mgws_copy_ids_in(const struct loom_ctx *c, struct mgws_queue *q, uint64_t head, uint32_t ring_mask,
			      const struct loom_task *from, uint64_t at, uint64_t mask, uint32_t n)
{
	uint32_t *ids = mgws_ids(q);
	if (from == c->initial) {
		for (uint32_t i = c->lane; i < n; i += c->lanes)
			ids[(head + i) & ring_mask] = (uint32_t)(at + i) | MGWS_ID_INITIAL;
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		sched_copy_one(c, mgws_body(c, ids[(head + i) & ring_mask]), &from[(at + i) & mask]);
}

LOOM_FN void mgws_copy_ids_out(struct loom_ctx *c, struct mgws_queue *q, uint64_t at, uint32_t ring_mask, uint32_t n)
{
	struct loom_task *ring = sched_ring(c);
	uint32_t head = sched_lane(c)->head, mask = sched_mask(c), *ids = mgws_ids(q);
	for (uint32_t i = 0; i < n; i++) {
		LOOM_YIELD(); /* in tests, thieves stall here */
		sched_copy_one(c, &ring[(head + i) & mask], mgws_body(c, ids[(at + i) & ring_mask]));
	}
	loom_barrier_lanes(c);
	for (uint32_t i = 0; c->lane == 0 && i < n; i++)
		mgws_unmark(c, ids[(at + i) & ring_mask]);
}

LOOM_FN void mgws_copy_ids_across(const struct loom_ctx *c, struct mgws_queue *to, uint64_t to_at,
				  struct mgws_queue *from, uint64_t at, uint32_t mask, uint32_t n)
{
	for (uint32_t i = c->lane; i < n; i += c->lanes) {
		LOOM_YIELD();
		mgws_ids(to)[(to_at + i) & mask] = mgws_ids(from)[(at + i) & mask];
	}
}

#else

#define mgws_reserve(c, q, at, mask, n) (n)
#define mgws_copy_ids_in(...)           ((void)0)
#define mgws_copy_ids_out(...)          ((void)0)
#define mgws_copy_ids_across(...)       ((void)0)

#endif
#endif
