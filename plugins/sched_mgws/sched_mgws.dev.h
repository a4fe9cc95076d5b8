/* SPDX-License-Identifier: Apache-2.0 */
/* Work stealing after the MGWS thesis (4.2, 5.1): a worker, from the begin of a sample to its end. Device code,
 * collective.
 *
 * A worker runs, in this order: tasks of high priority, its local queue, its backlog, the block it claimed of the initial
 * set, its public queue, what others spilled, a new block of the initial set, tasks of low priority, and what it steals.
 * With granularity = lane the new block comes before public and spilled tasks. Whenever its public queue is empty and it holds two
 * tasks or more, it shares half of them. */
#ifndef SCHED_MGWS_DEV_H
#define SCHED_MGWS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "idle.dev.h"
#endif

#ifdef GPULOOM_DEV_CPU_H
LOOM_FN void mgws_clear(struct loom_ctx *c)
{
	struct mgws_keep none = {{0, 0, 0, 0}, {0, 0}, {{0, 0}, {0, 0}}};
	struct mgws_mine fresh = {};
	*mgws_keep(c) = none;
	if (c->lane != 0)
		return;
	*mgws_mine(c) = fresh;
	for (uint32_t i = 0; i < MGWS_BITS_BYTES(c->workers + mgws_far_count(c)) / 8; i++)
		mgws_bits(c)[i] = 0;
}
#endif

LOOM_FN int mgws_begin(struct loom_ctx *c)
{
	sched_start(c);
#ifdef GPULOOM_DEV_CPU_H
	mgws_clear(c);
#endif
	if (c->lane == 0) {
		struct mgws_mine *mine = mgws_mine(c);
		mine->polled = c->device;
		struct mgws_global *g = mgws_find_global(c);
		sched_local(c)->shared = g;
		sched_local(c)->job = SCHED_CFG(c, far) && g->job ? (void *)g->job : (void *)g;
		mine->q = (struct mgws_queue *)c->own[LOOM_SCHED];
		mine->books = &mine->own;
		mine->own.mask = SCHED_CFG(c, public_queue) - 1;
		mine->own.word = MGWS_NO_WORD;
		mgws_join_owners(c);
	}
	loom_barrier_lanes(c);
	return 0;
}

LOOM_FN int mgws_end(struct loom_ctx *c, uint64_t ran)
{
	struct mgws_books *books = mgws_books(c);
	struct mgws_queue *q = mgws_queue(c);
	if (c->lane == 0) {
		if (mgws_sole_owner(c)) {
			mgws_close_epoch(books, q); /* of interest when the run was stopped */
			q->books = *books;
		}
		if (SCHED_CFG(c, far)) {
			q->far_steals = mgws_mine(c)->far_steals;
			q->far_tasks = mgws_mine(c)->far_tasks;
			q->host_steals = mgws_mine(c)->host_steals;
		}
		/* One of several owners reports what was stolen. Another may have its turn yet, to find that the queue is
		 * empty. */
		if (q == (struct mgws_queue *)c->own[LOOM_SCHED]) {
			int turn = mgws_try_turn(c, q);
			while (!turn && !loom_stopped(c))
				turn = mgws_try_turn(c, q);
			if (turn) {
				sched_local(c)->tally.stolen_out += q->books.started[0] + q->books.started[1];
				mgws_end_turn(c, &q->books, q);
			}
		}
	}
	sched_finish(c, ran);
#ifdef GPULOOM_DEV_CPU_H
	if (SCHED_CFG(c, rma) && c->lane == 0) { /* other ranks may still ask */
		uint64_t leaves;
		(void)LOOM_CALL(trigger, rma, c, (const struct loom_rma *)NULL, &leaves);
	}
#endif
	return 0;
}

/* The local queue and the block are empty. 0 when there is no work any more, or the run was stopped. */
LOOM_FN int mgws_refill(struct loom_ctx *c)
{
	return mgws_acquire(c, 0) || mgws_unspill(c, 0) || mgws_claim(c, 0) || mgws_push_low(c) ||
	       mgws_search(c);
}

LOOM_FN void sched_mgws_run(struct loom_ctx *c)
{
	uint64_t ran = 0;
	LOOM_OUTLINED_COLLECTIVE(mgws_begin, c);
	if (mgws_is_postmaster(c)) {
		LOOM_OUTLINED_COLLECTIVE(mgws_postmaster, c);
	} else if (SCHED_GRANULARITY(c) == SCHED_LANE && SCHED_SEVERAL(c)) {
		while (mgws_rounds(c, &ran) && LOOM_OUTLINED_COLLECTIVE(mgws_refill, c))
			;
	} else {
		while (mgws_work(c, &ran) && LOOM_OUTLINED_COLLECTIVE(mgws_refill, c))
			;
	}
	LOOM_OUTLINED_COLLECTIVE(mgws_end, c, ran);
}

#endif
