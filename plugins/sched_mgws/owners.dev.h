/* SPDX-License-Identifier: Apache-2.0 */
/* owners > 1: a public queue with several owners. Device code; lane 0 only.
 *
 * The books then lie in the queue. The owners take turns: one sets `turn` before it reads the books and keeps it until
 * its tasks are copied, and what public.dev.h says about the owner holds for it. No one waits for a turn: an owner that
 * does not get it does without the queue. With one owner it is always its turn. */
#ifndef SCHED_MGWS_OWNERS_DEV_H
#define SCHED_MGWS_OWNERS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "public.dev.h"
#endif

/* The worker's own books. They lie with the worker if it is the only owner. With several owners they say that nothing is
 * known, so mgws_empty() judges by the word: that may be asked at any time. */
LOOM_FN struct mgws_books *mgws_known(const struct loom_ctx *c)
{
	return &mgws_mine(c)->own;
}

#if SCHED_MAY(SCHED_IS_owners > 1)

/* The queue that this worker uses, and its books. */
LOOM_FN struct mgws_queue *mgws_queue(const struct loom_ctx *c)
{
	return mgws_mine(c)->q;
}

LOOM_FN struct mgws_books *mgws_books(const struct loom_ctx *c)
{
	return mgws_mine(c)->books;
}

LOOM_FN int mgws_sole_owner(const struct loom_ctx *c)
{
	return mgws_books(c) == mgws_known(c);
}

#define MGWS_TURN_TRIES 32u
LOOM_FN int mgws_try_turn(struct loom_ctx *c, struct mgws_queue *q)
{
	uint32_t nobody = 0;
	if (SCHED_CFG(c, owners) == 1)
		return 1;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < MGWS_TURN_TRIES; i++) {
		/* Acquire: pairs with the release in end_turn; books and slots are as left there. */
		if (!loom_load_relaxed_sys(&q->turn) && loom_cas_acq_rel_sys(&q->turn, &nobody, 1u))
			return 1;
		nobody = 0;
		loom_pause(c);
	}
	return 0;
}

LOOM_FN void mgws_end_turn(struct loom_ctx *c, const struct mgws_books *books, struct mgws_queue *q)
{
	if (SCHED_CFG(c, owners) == 1)
		return;
	if (!books->open) /* co-owners judge by the word alone */
		loom_store_relaxed_sys(&q->word, (uint64_t)0);
	loom_store_relaxed_sys(&q->moved, books->started[0] + books->started[1] + books->acquired);
	loom_store_release_sys(&q->turn, 0u);
}

/* At the begin of a sample. The host has set up the queue's books. */
LOOM_FN void mgws_join_owners(struct loom_ctx *c)
{
	struct mgws_mine *mine = mgws_mine(c);
	if (SCHED_CFG(c, owners) == 1)
		return;
	mine->q = (struct mgws_queue *)loom_public(c, LOOM_SCHED, mine->q->leader);
	mine->books = &mine->q->books;
	mine->own.open = 1;
}

/* The queue that a worker uses. */
LOOM_FN struct mgws_queue *mgws_find_queue(const struct loom_ctx *c, uint32_t worker)
{
	struct mgws_queue *q = (struct mgws_queue *)loom_public(c, LOOM_SCHED, worker);
	if (SCHED_CFG(c, owners) > 1 && q->leader != worker)
		q = (struct mgws_queue *)loom_public(c, LOOM_SCHED, q->leader);
	return q;
}

#else

#define mgws_queue(c) ((struct mgws_queue *)(c)->own[LOOM_SCHED])
#define mgws_books(c) mgws_known(c)
#define mgws_sole_owner(c) 1
#define mgws_try_turn(c, q) 1
#define mgws_end_turn(c, books, q) ((void)0)
#define mgws_join_owners(c) ((void)0)
#define mgws_find_queue(c, worker) ((struct mgws_queue *)loom_public(c, LOOM_SCHED, worker))

#endif
#endif
