/* SPDX-License-Identifier: Apache-2.0 */
/* Work stealing after the MGWS thesis (4.2, 5.1): the worker's loop. Device code, collective.
 *
 * A worker runs, in this order: tasks of high priority, its local queue, the block it claimed of the
 * initial set, its public queue, what others set aside, a new block of the initial set, tasks of low
 * priority, and what it steals. Whenever its public queue is empty and it holds two tasks or more, it
 * makes half of them public. */
#ifndef SCHED_MGWS_DEV_H
#define SCHED_MGWS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "idle.dev.h"
#include "rounds.dev.h"
#include "work.dev.h"
#include "work_one.dev.h"
#endif

#ifdef GPULOOM_DEV_CPU_H
LOOM_FN void sched_mgws_clear(struct loom_ctx *c)
{
	struct sched_mgws_keep none = {{0, 0, 0, 0}, {0, 0}, {{{0, 0}, {0, 0}}}};
	struct sched_mgws_mine fresh = {};
	*sched_mgws_keep(c) = none;
	if (c->lane != 0)
		return;
	*sched_mgws_mine(c) = fresh;
	for (uint32_t i = 0; i < MGWS_BITS_BYTES(c->workers) / 8; i++)
		sched_mgws_bits(c)[i] = 0;
}
#endif

LOOM_FN int sched_mgws_begin(struct loom_ctx *c)
{
	sched_start(c);
#ifdef GPULOOM_DEV_CPU_H
	sched_mgws_clear(c);
#endif
	if (c->lane == 0) {
		struct sched_mgws_mine *mine = sched_mgws_mine(c);
		struct sched_mgws_queue *q = (struct sched_mgws_queue *)c->own[LOOM_SCHED];
		mine->looked = c->device;
		sched_local(c)->shared = sched_mgws_find_global(c);
		mine->q = q;
		mine->books = &mine->own;
		mine->own.mask = SCHED_CFG(c, public_queue) - 1;
		mine->own.word = MGWS_NO_WORD;
		if (SCHED_CFG(c, owners) > 1) { /* a hint that tells nothing; the host has set up the books */
			mine->q = (struct sched_mgws_queue *)loom_public(c, LOOM_SCHED, q->leader);
			mine->books = &mine->q->books;
			mine->own.open = 1;
		}
	}
	loom_barrier_lanes(c);
	return 0;
}

LOOM_FN int sched_mgws_end(struct loom_ctx *c, uint64_t ran)
{
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	if (c->lane == 0) {
		struct loom_counters *tally = &sched_local(c)->tally;
		if (sched_mgws_books(c) == &mine->own) {
			sched_mgws_close(&mine->own, q); /* of interest when the run was stopped */
			q->books = mine->own;
		}
		/* Several owners report what was stolen from them once. One may hold the queue yet, to
		 * find that it is empty. */
		if (q == (struct sched_mgws_queue *)c->own[LOOM_SCHED]) {
			int held = sched_mgws_hold(c, q);
			while (!held && !loom_stopped(c))
				held = sched_mgws_hold(c, q);
			if (held) {
				tally->stolen_out += q->books.started[0] + q->books.started[1];
				sched_mgws_drop(c, &q->books, q);
			}
		}
	}
	sched_finish(c, ran);
	return 0;
}

/* The local queue and the block are empty. 0 when there is no work any more, or the run was stopped. */
LOOM_FN int sched_mgws_more(struct loom_ctx *c)
{
	return sched_mgws_acquire(c, 0) || sched_mgws_adopt(c, 0) || sched_mgws_claim(c, 0) || sched_mgws_low(c) ||
	       sched_mgws_seek(c);
}

LOOM_FN void sched_mgws_run(struct loom_ctx *c)
{
	uint64_t ran = 0;
	LOOM_FAR_TOGETHER(sched_mgws_begin, c);
	if (sched_mgws_is_postmaster(c)) {
		LOOM_FAR_TOGETHER(sched_mgws_post, c);
		LOOM_FAR_TOGETHER(sched_mgws_end, c, ran);
		return;
	}
	if (SCHED_GRAIN(c) == SCHED_LANE && SCHED_SEVERAL(c)) {
		while (sched_mgws_rounds(c, &ran) && LOOM_FAR_TOGETHER(sched_mgws_more, c))
			;
	} else if (SCHED_SEVERAL(c)) {
		while (sched_mgws_work(c, &ran) && LOOM_FAR_TOGETHER(sched_mgws_more, c))
			;
	} else {
#ifdef GPULOOM_DEV_CPU_H
		while (sched_mgws_work_one(c, &ran) && sched_mgws_more(c))
			;
#endif
	}
	LOOM_FAR_TOGETHER(sched_mgws_end, c, ran);
}

#endif
