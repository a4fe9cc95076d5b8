/* SPDX-License-Identifier: Apache-2.0 */
/* grain = lane: the loop of a worker whose lanes run a task each. Device code, collective. */
#ifndef SCHED_MGWS_ROUNDS_DEV_H
#define SCHED_MGWS_ROUNDS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "news.dev.h"
#endif

/* Runs the local queue and the block until both are empty, a task for each lane at a time. Priorities are not
 * heeded. 0 when the run was stopped. */
LOOM_FN int sched_mgws_rounds(struct loom_ctx *c, uint64_t *ran)
{
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	struct sched_local *l = sched_local(c);
	struct sched_lane *mine = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	const struct sched_mgws_own *own = sched_mgws_hint(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	uint32_t mask = sched_mask(c), low = 0, backlog = 0;
	int due = 1;
	const uint32_t slots = SCHED_CFG(c, backlog);
	for (;;) {
		uint64_t held = mine->count, n;
		int can_share = backlog || held > c->lanes || (!held && b->end - b->next > c->lanes);
		struct loom_task t;
		/* Also the barrier between pushes and pops. */
		uint32_t news = 0;
		if (due)
			news = loom_word_from_lane0(
				c, c->lane == 0 ? sched_mgws_news(c, b, own, q, can_share) : 0);
		else
			loom_barrier_lanes(c);
		due = loom_look_due(c);
		if (news & MGWS_STOP)
			return 0;
		if (news & MGWS_SHARE && backlog) {
			n = sched_mgws_give(c, sched_mgws_backlog(c), low, slots - 1, (backlog + 1) / 2);
			low += (uint32_t)n;
			backlog -= (uint32_t)n;
			if (c->lane == 0)
				b->word = sched_mgws_word_now(c);
		} else if (news & MGWS_SHARE) {
			LOOM_FAR_TOGETHER(sched_mgws_share, c);
			held = mine->count;
		}
		if (MGWS_IS_ASKED(news)) {
			sched_mgws_answer(c);
			held = mine->count;
		}
		if (!held && backlog) {
			held = backlog < (mask + 1) / 2 ? backlog : (mask + 1) / 2;
			backlog -= (uint32_t)held;
			sched_move(c, sched_ring(c), mine->head, mask, sched_mgws_backlog(c),
				   low + backlog, slots - 1, (uint32_t)held);
			loom_barrier_lanes(c);
		}
		if (held) {
			n = held < c->lanes ? held : c->lanes;
			if (c->lane < n)
				sched_copy_task(&t, &ring[(mine->head + held - 1 - c->lane) & mask]);
			held -= n;
		} else {
			n = b->end - b->next < c->lanes ? b->end - b->next : c->lanes;
			if (c->lane < n)
				sched_copy_task(&t, &c->initial[b->next + c->lane]);
			b->next += n;
		}
		if (!n)
			return 1;
		/* Older tasks make room for what these will spawn: a task that finds none goes to the backlog
		 * in front of them, and the tree would be walked by breadth. */
		if (held > (mask + 1) / 4 && slots - backlog >= held) {
			uint32_t old = (uint32_t)held - (mask + 1) / 4;
			sched_move(c, sched_mgws_backlog(c), low + backlog, slots - 1, ring, mine->head, mask,
				   old);
			mine->head += old;
			held -= old;
			backlog += old;
		}
		if (c->lane == 0) {
			l->head = mine->head;
			l->drawn = (uint32_t)held;
			l->low = low;
			l->backlog = backlog;
		}
		loom_barrier_lanes(c); /* places are there to be drawn, and slots to be written */
		if (c->lane < n)
			sched_alone_run(c, &t);
		loom_barrier_lanes(c);
		mine->count = l->drawn <= mask ? l->drawn : mask + 1;
		backlog = l->backlog < slots ? l->backlog : slots;
		*ran += n;
	}
}

#endif
