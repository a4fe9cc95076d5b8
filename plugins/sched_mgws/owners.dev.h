/* SPDX-License-Identifier: Apache-2.0 */
/* owners > 1: a public queue with several owners. Device code; lane 0 only.
 *
 * If a queue has several owners, its metadata is in the queue, protected by a trylock that an owner holds until its tasks are
 * copied. In public.dev.h "the owner" is the holder of this lock. An owner that cannot lock the queue continues without it, so
 * owners do not wait for each other. With one owner the trylock always succeeds. */
#ifndef SCHED_MGWS_OWNERS_DEV_H
#define SCHED_MGWS_OWNERS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "public.dev.h"
#endif

/* Returns metadata that this worker may read without the trylock. If the queue has a single owner, the metadata describe it. If
 * it has several owners, only the member `open` is used, which is MGWS_OPEN_UNKNOWN, so that mgws_empty() relies on the queue's
 * word. */
LOOM_FN struct mgws_meta *mgws_own_meta(const struct loom_ctx *c)
{
	return &mgws_worker(c)->own;
}

#if SCHED_MAY(SCHED_IS_owners > 1)

/* mgws_queue() returns the public queue that this worker uses, and mgws_meta() returns the metadata of this queue. */
LOOM_FN struct mgws_queue *mgws_queue(const struct loom_ctx *c)
{
	return mgws_worker(c)->q;
}

LOOM_FN struct mgws_meta *mgws_meta(const struct loom_ctx *c)
{
	return mgws_worker(c)->meta;
}

LOOM_FN int mgws_sole_owner(const struct loom_ctx *c)
{
	return mgws_meta(c) == mgws_own_meta(c);
}

#define MGWS_LOCK_TRIES 32u
LOOM_FN int mgws_try_lock_queue(struct loom_ctx *c, struct mgws_queue *q)
{
	uint32_t unlocked = 0;
	if (SCHED_CFG(c, owners) == 1)
		return 1;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < MGWS_LOCK_TRIES; i++) {
		/* Acquire: pairs with the release in mgws_unlock_queue(). The trylock protects metadata and slots. */
		if (!loom_load_relaxed_sys(&q->lock) && loom_cas_acq_rel_sys(&q->lock, &unlocked, 1u))
			return 1;
		unlocked = 0;
		loom_pause(c);
	}
	return 0;
}

LOOM_FN void mgws_unlock_queue(struct loom_ctx *c, const struct mgws_meta *meta, struct mgws_queue *q)
{
	if (SCHED_CFG(c, owners) == 1)
		return;
	if (!meta->open) /* an empty queue: its word alone shows this to the other owners */
		loom_store_relaxed_sys(&q->word, (uint64_t)0);
	loom_store_relaxed_sys(&q->moved, meta->started[0] + meta->started[1] + meta->acquired);
	loom_store_release_sys(&q->lock, 0u);
}

/* Called at the start of a sample. From then on, this worker uses its leader's queue, and the metadata in that queue, which the
 * host has initialised. */
LOOM_FN void mgws_join_owners(struct loom_ctx *c)
{
	struct mgws_worker *mine = mgws_worker(c);
	if (SCHED_CFG(c, owners) == 1)
		return;
	mine->q = (struct mgws_queue *)loom_public(c, LOOM_SCHED, mine->q->leader);
	mine->meta = &mine->q->meta;
	mine->own.open = MGWS_OPEN_UNKNOWN;
}

/* Returns the public queue that `worker` uses. */
LOOM_FN struct mgws_queue *mgws_find_queue(const struct loom_ctx *c, uint32_t worker)
{
	struct mgws_queue *q = (struct mgws_queue *)loom_public(c, LOOM_SCHED, worker);
	if (SCHED_CFG(c, owners) > 1 && q->leader != worker)
		q = (struct mgws_queue *)loom_public(c, LOOM_SCHED, q->leader);
	return q;
}

#else

#define mgws_queue(c)                 ((struct mgws_queue *)(c)->own[LOOM_SCHED])
#define mgws_meta(c)                  mgws_own_meta(c)
#define mgws_sole_owner(c)            1
#define mgws_try_lock_queue(c, q)     1
#define mgws_unlock_queue(c, meta, q) ((void)0)
#define mgws_join_owners(c)           ((void)0)
#define mgws_find_queue(c, worker)    ((struct mgws_queue *)loom_public(c, LOOM_SCHED, worker))

#endif
#endif
