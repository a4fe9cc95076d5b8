/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a worker whose lanes run a task together. Device code, collective. */
#ifndef SCHED_MGWS_WORK_DEV_H
#define SCHED_MGWS_WORK_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "news.dev.h"
#endif

/* What the worker must know before its next task, to all lanes. Also a barrier. */
LOOM_FN uint32_t sched_mgws_look_round(struct loom_ctx *c)
{
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	uint32_t held = sched_lane(c)->count + MGWS_HELD(c, &sched_mgws_levels(c)->level[MGWS_HIGH]);
	uint32_t news = 0;
	if (c->lane == 0)
		news = sched_mgws_news(c, b, sched_mgws_hint(c), sched_mgws_used(c),
				       held >= 2 || (uint32_t)(b->end - b->next) >= 2);
	return loom_word_from_lane0(c, news);
}

/* Gives away what others want, and then fills the local queue, after a barrier since the last push. 0 when it
 * stays empty. */
LOOM_FN int sched_mgws_between(struct loom_ctx *c, uint32_t news)
{
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	struct sched_lane *mine = sched_lane(c);
	struct loom_task t;
	if (news & MGWS_SHARE)
		LOOM_FAR_TOGETHER(sched_mgws_share, c);
	if (MGWS_IS_ASKED(news))
		sched_mgws_answer(c);
	if (MGWS_HELD(c, &sched_mgws_levels(c)->level[MGWS_HIGH])) { /* on top of the others */
		sched_mgws_pop_level(c, MGWS_HIGH, &t);
		if (!sched_push(c, &t))
			LOOM_FAR(sched_mgws_overflow, c, (const struct loom_task *)&t);
		loom_barrier_lanes(c);
	}
	if (mine->count || (sched_mgws_keep(c)->backlog.count && LOOM_FAR_TOGETHER(sched_mgws_bring_back, c)))
		return 1;
	if (b->next == b->end)
		return 0;
	sched_mgws_stage(c, b);
	return 1;
}

/* Runs the local queue and the block until both are empty. 0 when the run was stopped. */
LOOM_FN int sched_mgws_work(struct loom_ctx *c, uint64_t *ran)
{
	struct sched_lane *mine = sched_lane(c);
	const struct sched_mgws_level *high = &sched_mgws_levels(c)->level[MGWS_HIGH];
	const struct loom_task *ring = sched_ring(c);
	uint32_t mask = sched_mask(c), other = sched_mgws_other(c), news = sched_mgws_look_round(c);
	uint64_t n = 0, sample = loom_trace_next(c, *ran);
	while (!(news & MGWS_STOP) && sched_mgws_between(c, news)) {
		do {
			struct loom_task t;
			sched_pop(c, mine, ring, mask, &t);
			int due = loom_look_due(c);
			if (SCHED_ODD(&t) && t.affinity == other) {
				LOOM_FAR_TOGETHER(sched_mgws_send_popped, c);
			} else {
				if (LOOM_TRACE_OF(c) && n == sample)
					sample = loom_trace_task(c, n, &t);
				else
					loom_task_run(c, &t);
				n++;
				if (t.join)
					LOOM_FAR_TOGETHER(sched_mgws_go_on, c, t.join);
			}
			news = 0;
			if (due)
				news = sched_mgws_look_round(c);
			else
				loom_barrier_lanes(c); /* between pushes and pop */
		} while (!news && mine->count && !MGWS_HELD(c, high));
	}
	*ran += n;
	return !(news & MGWS_STOP);
}

#endif
