/* SPDX-License-Identifier: Apache-2.0 */
/* The loop in which a worker runs its local queue and its claimed block until both are empty. Device code, collective.
 *
 *   mgws_work     lanes run a task together. On one lane of a CPU mgws_sprint() takes the place of the inner loop, except
 *                 for a task that is traced
 *   mgws_rounds   granularity = lane: each lane runs a task of its own */
#ifndef SCHED_MGWS_WORK_DEV_H
#define SCHED_MGWS_WORK_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "look.dev.h"
#endif

#ifdef GPULOOM_DEV_CPU_H

/* *guess = value, which comes back from the store buffer late. Where the guess is right, or two too low, the processor
 * predicts the branch and what comes next need not wait for the value. */
LOOM_FN void mgws_guess(uint32_t *guess, uint32_t value)
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

/* No other worker needs the `held` tasks: there are fewer than two, some are public, or initial ones are unclaimed. */
LOOM_FN int mgws_may_keep(struct loom_ctx *c, struct mgws_block *b, const struct mgws_books *known,
			  struct mgws_queue *q, uint64_t held)
{
	return held < 2 || !mgws_empty(known, q) || mgws_unclaimed(c, b);
}

/* A task with a join has ended: runs what follows, and what follows that; how many. */
static __attribute__((noinline)) uint64_t mgws_run_next(struct loom_ctx *c, loom_ref join)
{
	uint64_t n = 0;
	struct loom_task t;
	for (; join && sched_lower_join(c, join, &t) && !loom_stopped(c); join = t.join, n++) {
		if (SCHED_ODD(&t) && t.affinity == mgws_other_kind(c)) {
			mgws_spill_other(c, &t);
			break;
		}
		loom_task_run(c, &t);
	}
	return n;
}

/* One lane: where a worker spends its time when tasks are small. Runs a task of the local queue or the block, and goes on
 * until there is none, something else needs a look, or `most` tasks have been run; how many were. Tasks are run from
 * where they lie, and what follows a join at once. */
static __attribute__((noinline)) uint64_t mgws_sprint(struct loom_ctx *c, uint64_t most)
{
	struct sched_local *l = sched_local(c);
	struct sched_lane *mine = sched_lane(c);
	struct mgws_block *b = &mgws_keep(c)->block;
	const struct mgws_level *high = &mgws_keep(c)->level[MGWS_HIGH], *older = &mgws_keep(c)->backlog;
	const struct loom_task *ring = sched_ring(c), *p;
	const struct mgws_books *known = mgws_known(c);
	struct mgws_queue *q = mgws_queue(c);
	uint32_t count = mine->count;
	uint64_t n = 0, held;
	struct loom_task t;
	do {
		if (count) {
			p = &t;
			mine->count = --count;
			sched_copy_task(&t, &ring[(mine->head + count) & l->mask]);
		} else {
			p = &c->initial[b->next++];
		}
		if (SCHED_ODD(p) && p->affinity == mgws_other_kind(c)) {
			mgws_spill_other(c, p);
			count = mine->count; /* it may have taken another in exchange */
		} else {
			loom_task_run(c, p);
			n++;
			if (p->join)
				n += mgws_run_next(c, p->join);
			mgws_guess(&count, mine->count);
		}
		if (n >= most || loom_stopped(c) || high->count)
			break;
		held = count ? count : older->count ? 0 : b->end - b->next;
	} while (held && mgws_may_keep(c, b, known, q, held));
	return n;
}

#endif

/* What the worker must know before its next task. Also a barrier. */
LOOM_FN uint32_t mgws_look_between(struct loom_ctx *c)
{
	const struct mgws_block *b = &mgws_keep(c)->block;
	uint32_t held = sched_lane(c)->count + mgws_held(c, MGWS_HIGH);
	return mgws_look_together(c, held >= 2 || (uint32_t)(b->end - b->next) >= 2);
}

/* Shares or mails what others want, after a barrier since the last push. */
LOOM_FN void mgws_act_on(struct loom_ctx *c, uint32_t news)
{
	if (news & MGWS_SHARE)
		LOOM_OUTLINED_COLLECTIVE(mgws_share_some, c);
	if (MGWS_IS_ASKED(news))
		mgws_mail_between(c);
}

/* Then sees to it that there is a task to run. 0: there is none. */
LOOM_FN int mgws_ready(struct loom_ctx *c)
{
	const struct mgws_block *b = &mgws_keep(c)->block;
	struct loom_task t;
	if (mgws_held(c, MGWS_HIGH)) { /* on top of the others */
		mgws_pop_level(c, MGWS_HIGH, &t);
		if (!sched_push(c, &t))
			LOOM_OUTLINED(mgws_push_full, c, (const struct loom_task *)&t);
		loom_barrier_lanes(c);
	}
	if (sched_lane(c)->count || (mgws_keep(c)->backlog.count && LOOM_OUTLINED_COLLECTIVE(mgws_unstow, c)))
		return 1;
	return b->next != b->end;
}

/* 0 when the run was stopped. */
LOOM_FN int mgws_work(struct loom_ctx *c, uint64_t *ran)
{
	struct sched_lane *mine = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	uint32_t mask = sched_mask(c), other = mgws_other_kind(c), news = mgws_look_between(c);
	uint64_t n = 0, sample = loom_trace_next(c, *ran);
	while (!(news & MGWS_STOP)) {
		mgws_act_on(c, news);
		if (!mgws_ready(c))
			break;
#ifdef GPULOOM_DEV_CPU_H
		if (!SCHED_SEVERAL(c) && n < sample) {
			uint64_t most = sample - n;
			uint64_t few = SCHED_CFG(c, rma) ? mgws_mine(c)->sprint + 1u : SCHED_CFG(c, noncoherent) ? MGWS_MAIL_TASKS : most;
			n += mgws_sprint(c, few < most ? few : most);
			news = mgws_look_between(c);
			continue;
		}
#endif
		if (!mine->count)
			mgws_push_claimed(c, &mgws_keep(c)->block);
		do {
			struct loom_task t;
			sched_pop(c, mine, ring, mask, &t);
			int due = loom_poll_due(c);
			if (SCHED_ODD(&t) && t.affinity == other) {
				LOOM_OUTLINED_COLLECTIVE(mgws_spill_popped, c);
			} else {
				if (LOOM_TRACE_OF(c) && n >= sample)
					sample = loom_trace_task(c, n, &t);
				else
					loom_task_run(c, &t);
				n++;
				if (t.join)
					LOOM_OUTLINED_COLLECTIVE(mgws_push_next, c, t.join);
			}
			news = 0;
			if (due)
				news = mgws_look_between(c);
			else
				loom_barrier_lanes(c); /* between pushes and pop */
		} while (!news && mine->count && !mgws_held(c, MGWS_HIGH) && SCHED_SEVERAL(c));
	}
	*ran += n;
	return !(news & MGWS_STOP);
}

/* A task for each lane at a time. Priorities are not heeded. 0 when the run was stopped. */
LOOM_FN int mgws_rounds(struct loom_ctx *c, uint64_t *ran)
{
	struct mgws_block *b = &mgws_keep(c)->block;
	struct mgws_level *older = &mgws_keep(c)->backlog;
	struct sched_local *l = sched_local(c);
	struct sched_lane *mine = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	const uint32_t mask = sched_mask(c), slots = SCHED_CFG(c, backlog);
	int due = 1;
	for (;;) {
		uint32_t news = 0, n, quarter = (mask + 1) / 4;
		const struct loom_task *slot;
		struct loom_task t;
		/* Also the barrier between pushes and pops. */
		if (due)
			news = mgws_look_together(c, older->count || mine->count > c->lanes ||
							     (!mine->count && b->end - b->next > c->lanes));
		else
			loom_barrier_lanes(c);
		due = loom_poll_due(c);
		if (news & MGWS_STOP)
			return 0;
		if (news & MGWS_SHARE && older->count) { /* as mgws_share_some(), which takes more registers */
			mgws_share_ring(c, mgws_backlog(c), slots - 1, &older->head, &older->count,
					(older->count + 1) / 2);
			if (c->lane == 0)
				b->word = mgws_word_now(c);
		} else {
			mgws_act_on(c, news);
		}
		if (!mine->count && older->count)
			mgws_unstow(c);
		if (mine->count) {
			n = mine->count < c->lanes ? mine->count : c->lanes;
			slot = &ring[(mine->head + mine->count - 1 - c->lane) & mask];
			if (c->lane < n)
				sched_copy_task(&t, slot);
			mine->count -= n;
		} else {
			n = b->end - b->next < c->lanes ? (uint32_t)(b->end - b->next) : c->lanes;
			slot = &c->initial[b->next + c->lane];
			if (c->lane < n)
				sched_copy_task(&t, slot);
			b->next += n;
		}
		if (!n) {
			if (!mgws_claim_on(c))
				return 1;
			continue;
		}
		int runs = c->lane < n;
		if (runs && t.affinity == mgws_other_kind(c)) {
			mgws_alone_send(c, slot);
			runs = 0;
		}
		/* Older tasks make room for what these will spawn. A task that found none would go to the backlog in front
		 * of them, and the tree would be walked by breadth. */
		if (mine->count > quarter && slots - older->count >= mine->count)
			mgws_stow(c, mine->count - quarter);
		if (c->lane == 0) {
			l->head = mine->head;
			l->count = mine->count;
			l->backlog_head = older->head;
			l->backlog_count = older->count;
		}
		loom_barrier_lanes(c); /* lanes may push, and slots may be written */
		if (runs)
			mgws_alone_run(c, &t);
		loom_barrier_lanes(c);
		mine->count = l->count <= mask ? l->count : mask + 1;
		older->count = l->backlog_count < slots ? l->backlog_count : slots;
		*ran += n;
	}
}

#endif
