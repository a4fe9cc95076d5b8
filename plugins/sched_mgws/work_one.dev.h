/* SPDX-License-Identifier: Apache-2.0 */
/* The loop of a worker of one lane, on a CPU: tasks are run from where they lie, and what follows a join at once. */
#ifndef SCHED_MGWS_WORK_ONE_DEV_H
#define SCHED_MGWS_WORK_ONE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "news.dev.h"
#endif

#ifdef GPULOOM_DEV_CPU_H

/* *guess = value, but where the guess is right, or two too low, what comes next need not wait for the value
 * to come back from the store buffer: the processor predicts the branch. */
LOOM_FN void sched_guess(uint32_t *guess, uint32_t value)
{
	uint32_t g = *guess;
	if (value == g + 2) {
		g += 2;
		SCHED_ONE_WORD(g);
	} else if (value != g) {
		g = value;
		SCHED_ONE_WORD(g);
	}
	*guess = g;
}

/* Tasks that no other worker lacks: there is less than two, some are public, or initial ones unclaimed. */
LOOM_FN int sched_mgws_keeps(struct loom_ctx *c, struct sched_mgws_block *b, const struct sched_mgws_own *own,
			     struct sched_mgws_queue *q, uint64_t held)
{
	return held < 2 || !sched_mgws_empty(own, q) || sched_mgws_unclaimed(c, b);
}

/* As long as nothing but local and claimed tasks needs a look: here a worker spends its time when tasks are small.
 * Runs up to `most` tasks; how many. *follows: *t is to be run next. */
static __attribute__((noinline)) uint64_t sched_mgws_sprint(struct loom_ctx *c, struct sched_mgws_block *b,
							     struct loom_task *t, uint64_t most, int *follows)
{
	struct sched_local *l = sched_local(c);
	struct sched_lane *mine = sched_lane(c);
	const struct sched_mgws_levels *levels = sched_mgws_levels(c);
	const struct sched_mgws_level *older = &sched_mgws_keep(c)->backlog;
	const struct loom_task *ring = sched_ring(c), *p;
	const struct sched_mgws_own *own = sched_mgws_hint(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	uint32_t count = mine->count;
	uint64_t n = 0;
	while (n < most && !loom_stopped(c) && !levels->level[MGWS_HIGH].count) {
		if (count) {
			p = &ring[(mine->head + count - 1) & l->mask];
			if (SCHED_ODD(p) || !sched_mgws_keeps(c, b, own, q, count))
				break;
			sched_copy_task(t, p);
			p = t;
			mine->count = --count;
		} else {
			p = &c->initial[b->next];
			if (b->next == b->end || older->count || SCHED_ODD(p) ||
			    !sched_mgws_keeps(c, b, own, q, b->end - b->next))
				break;
			b->next++;
		}
		loom_task_run(c, p);
		n++;
		sched_guess(&count, mine->count);
		if (p->join && sched_joined(c, p->join, t)) {
			*follows = 1;
			break;
		}
	}
	return n;
}

/* Runs the local queue and the block until both are empty. 0 when the run was stopped. */
LOOM_FN int sched_mgws_work_one(struct loom_ctx *c, uint64_t *ran)
{
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	struct sched_lane *mine = sched_lane(c);
	const struct sched_mgws_level *high = &sched_mgws_levels(c)->level[MGWS_HIGH];
	const struct sched_mgws_level *older = &sched_mgws_keep(c)->backlog;
	const struct loom_task *ring = sched_ring(c);
	const struct sched_mgws_own *own = sched_mgws_hint(c);
	struct sched_mgws_queue *q = sched_mgws_used(c);
	uint32_t mask = sched_mask(c), other = sched_mgws_other(c);
	uint64_t n = 0, sample = loom_trace_next(c, *ran);
	int on = 1, follows = 0;
	struct loom_task t;
	for (;;) {
		const struct loom_task *p = &t;
		if (!follows)
			n += sched_mgws_sprint(c, b, &t,
					       SCHED_CFG(c, apart) && sample - n > MGWS_MAIL_TASKS ?
						       MGWS_MAIL_TASKS :
						       sample - n,
					       &follows);
		int can_share = mine->count + high->count >= 2 || (uint32_t)(b->end - b->next) >= 2;
		uint32_t news = sched_mgws_news(c, b, own, q, can_share);
		if (news & MGWS_STOP) {
			on = 0;
			break;
		}
		if (news & MGWS_SHARE)
			sched_mgws_share(c);
		if (MGWS_IS_ASKED(news))
			sched_mgws_answer(c);
		if (!follows) {
			if (high->count)
				sched_mgws_pop_level(c, MGWS_HIGH, &t);
			else if (mine->count || (older->count && sched_mgws_bring_back(c)))
				sched_pop(c, mine, ring, mask, &t);
			else if (b->next != b->end)
				p = &c->initial[b->next++];
			else
				break;
		}
		follows = 0;
		if (p->affinity == other) {
			sched_mgws_send(c, p);
			continue;
		}
		if (n == sample && LOOM_TRACE_OF(c))
			sample = loom_trace_task(c, n, p);
		else
			loom_task_run(c, p);
		n++;
		if (p->join)
			follows = sched_joined(c, p->join, &t);
	}
	*ran += n;
	return on;
}

#endif
#endif
