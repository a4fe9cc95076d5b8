/* SPDX-License-Identifier: Apache-2.0 */
/* The loop in which a worker runs its local queue and its claimed block until both are empty. Device code, collective.
 *
 *   mgws_work         all lanes run each task together. In a CPU's worker of one lane, mgws_run_fast_path() replaces the
 *                     inner loop, except for tasks that are traced
 *   mgws_work_lanes   granularity = lane: each lane runs a task of its own */
#ifndef SCHED_MGWS_WORK_DEV_H
#define SCHED_MGWS_WORK_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "poll.dev.h"
#endif

#ifdef GPULOOM_DEV_CPU_H

/* Sets *predicted to `value` by branches. An assignment would wait, because `value` was just stored, so its load waits
 * for the store buffer. If *predicted is correct, or two too low, the processor predicts the branch, and later
 * instructions do not wait for the load. SCHED_KEEP_WORD() keeps the compiler from replacing the branches by an
 * assignment. */
LOOM_FN void mgws_predict_count(uint32_t *predicted, uint32_t value)
{
	uint32_t p = *predicted;
	if (value == p + 2) {
		p += 2;
		SCHED_KEEP_WORD(p);
	} else if (value != p) {
		p = value;
		SCHED_KEEP_WORD(p);
	}
	*predicted = p;
}

/* Returns whether this worker may continue without publishing. It may if it holds fewer than two tasks, if initial tasks
 * are unclaimed, or if some of its tasks are public. In this order: a worker that runs the set in place need not load the
 * words of its queue for each task, and once the set is used up, mgws_unclaimed() takes one compare. */
LOOM_FN int mgws_may_run_on(struct loom_ctx *c, struct mgws_block *b, const struct mgws_meta *own, struct mgws_queue *q,
			    uint64_t held)
{
	return held < 2 || mgws_unclaimed(c, b) || !mgws_empty(own, q);
}

/* Claims the worker's next block, if mgws_find_work() would claim it, too: that function first takes tasks of the worker's
 * queue and of the lists. Returns 0 if there are such tasks, or if the set is used up. */
static __attribute__((noinline)) int mgws_claim_more(struct loom_ctx *c, const struct mgws_meta *own, struct mgws_queue *q)
{
	/* In a small sample the set is divided already, and `claimed` says so. */
	return mgws_lane(c)->block.claimed != MGWS_ALL && SCHED_CFG(c, claim) != MGWS_QUEUES && !SCHED_CFG(c, noncoherent) && !SCHED_CFG(c, rma) &&
	       mgws_empty(own, q) && mgws_list_to_take(c) == MGWS_LISTS && mgws_claim(c, 0);
}

/* Called after a task with a join has ended. If it was the join's last task, runs the task that waits for the join, and
 * repeats this for the join of that task. Returns how many tasks ran. */
static __attribute__((noinline)) uint64_t mgws_run_successors(struct loom_ctx *c, loom_ref join)
{
	uint64_t n = 0;
	struct loom_task t;
	for (; join && sched_decrement_join(c, join, &t) && !loom_stopped(c); join = t.join, n++) {
		if (SCHED_HAS_ATTRIBUTES(&t) && t.affinity == mgws_other_kind(c)) {
			mgws_overflow_other_kind(c, &t);
			break;
		}
		loom_task_run(c, &t);
	}
	return n;
}

/* Runs tasks of the local queue or, if this is empty, runs tasks of the block in place. A worker of one lane spends most of its
 * time here if tasks are small. Returns how many tasks ran. Claims further blocks. Returns if `most` tasks have run, if no task is left, or if
 * mgws_work() must stop, publish or refill. Tasks that wait for joins run at once. `count` is a
 * copy of mine->count in a register, which mgws_predict_count() updates after each task. */
static __attribute__((noinline)) uint64_t mgws_run_fast_path(struct loom_ctx *c, uint64_t most)
{
	struct sched_local *l = sched_local(c);
	struct sched_lane *mine = sched_lane(c);
	struct mgws_block *b = &mgws_lane(c)->block;
	const struct mgws_backlog *backlog = &mgws_lane(c)->backlog;
	const struct loom_task *ring = sched_ring(c), *task;
	const struct mgws_meta *own = mgws_own_meta(c);
	struct mgws_queue *q = mgws_queue(c);
	uint32_t count = mine->count;
	uint64_t ran = 0, held;
	struct loom_task popped;
	do {
		if (count) {
			task = &popped;
			mine->count = --count;
			sched_copy_task(&popped, &ring[(mine->head + count) & l->mask]);
		} else {
			task = &c->initial[b->next++];
		}
		if (SCHED_HAS_ATTRIBUTES(task) && task->affinity == mgws_other_kind(c)) {
			mgws_overflow_other_kind(c, task);
			count = mine->count; /* mgws_drain() may have pushed a task */
		} else {
			loom_task_run(c, task);
			ran++;
			if (task->join)
				ran += mgws_run_successors(c, task->join);
			mgws_predict_count(&count, mine->count);
		}
		if (ran >= most || loom_stopped(c))
			break;
		if (count)
			held = count;
		else if (backlog->count)
			break; /* mgws_ready() refills the local queue */
		else if (b->next == b->end && !mgws_claim_more(c, own, q))
			break;
		else
			held = b->end - b->next;
	} while (mgws_may_run_on(c, b, own, q, held));
	return ran;
}

/* Returns how many tasks the fast path may run before the next poll, at most `most`. */
LOOM_FN uint64_t mgws_batch(struct loom_ctx *c, uint64_t most)
{
	uint64_t few = SCHED_CFG(c, rma)           ? mgws_worker(c)->batch + 1u
		       : SCHED_CFG(c, noncoherent) ? MGWS_MAILBOX_TASKS
						   : most;
	return few < most ? few : most;
}

#endif

/* Polls before the worker's next task if `due` is 1: mgws_poll_collective(). The call is also a barrier. */
LOOM_FN uint32_t mgws_poll_between_tasks(struct loom_ctx *c, int due)
{
	const struct mgws_block *b = &mgws_lane(c)->block;
	return mgws_poll_collective(c, due, sched_lane(c)->count >= 2 || (uint32_t)(b->end - b->next) >= 2);
}

/* Publishes or grants, as `news`, the result of a poll, demands. The caller has passed a barrier after the last push. */
LOOM_FN void mgws_act_on(struct loom_ctx *c, uint32_t news)
{
	if (news & MGWS_PUBLISH)
		LOOM_OUTLINED_COLLECTIVE(mgws_publish_half, c);
	if (MGWS_IS_REQUESTED(news))
		mgws_grant_between_tasks(c);
}

/* Refills an empty local queue from the backlog. Returns 0 if the worker holds no task to run. */
LOOM_FN int mgws_ready(struct loom_ctx *c)
{
	const struct mgws_block *b = &mgws_lane(c)->block;
	if (sched_lane(c)->count || (mgws_lane(c)->backlog.count && LOOM_OUTLINED_COLLECTIVE(mgws_backlog_refill, c)))
		return 1;
	return b->next != b->end;
}

/* Runs tasks until the worker holds none. Adds their number to *ran. Returns 1, or 0 if the run was stopped. */
LOOM_FN int mgws_work(struct loom_ctx *c, uint64_t *ran)
{
	struct sched_lane *mine = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	uint32_t mask = sched_mask(c), other = mgws_other_kind(c), news = mgws_poll_between_tasks(c, 1);
	uint64_t n = 0, sample = loom_trace_next(c, *ran);
	while (!(news & MGWS_STOP)) {
		mgws_act_on(c, news);
		if (!mgws_ready(c))
			break;
#ifdef GPULOOM_DEV_CPU_H
		if (!SCHED_SEVERAL(c) && n < sample) {
			n += mgws_run_fast_path(c, mgws_batch(c, sample - n));
			news = mgws_poll_between_tasks(c, 1);
			continue;
		}
#endif
		if (!mine->count)
			mgws_push_claimed(c, &mgws_lane(c)->block);
		do {
			struct loom_task t;
			sched_pop(c, mine, ring, mask, &t);
			int due = loom_poll_due(c);
			if (SCHED_HAS_ATTRIBUTES(&t) && t.affinity == other) {
				LOOM_OUTLINED_COLLECTIVE(mgws_overflow_popped, c);
			} else {
				if (LOOM_TRACE_OF(c) && n >= sample)
					sample = loom_trace_task(c, n, &t);
				else
					loom_task_run(c, &t);
				n++;
				if (t.join)
					LOOM_OUTLINED_COLLECTIVE(mgws_push_successor, c, t.join);
			}
			news = mgws_poll_between_tasks(c, due); /* also separates pushes from the next pop */
		} while (!news && mine->count && SCHED_SEVERAL(c));
	}
	*ran += n;
	return !(news & MGWS_STOP);
}

/* Does the same as mgws_work(), but each lane runs a task of its own. */
LOOM_FN int mgws_work_lanes(struct loom_ctx *c, uint64_t *ran)
{
	struct mgws_block *b = &mgws_lane(c)->block;
	struct mgws_backlog *backlog = &mgws_lane(c)->backlog;
	struct sched_local *l = sched_local(c);
	struct sched_lane *mine = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	const uint32_t mask = sched_mask(c), slots = SCHED_CFG(c, backlog);
	int due = 1, tried = 0;
	for (;;) {
		uint32_t n, quarter = (mask + 1) / 4;
		const struct loom_task *slot;
		struct loom_task t;
		/* This poll is also the barrier between pushes and pops. */
		/* While thieves come, a worker with more tasks than lanes polls in each round. */
		int excess = backlog->count || mine->count > c->lanes, polls = due || (tried && excess);
		uint32_t news = mgws_poll_collective(c, polls, excess || (!mine->count && b->end - b->next > c->lanes));
		if (polls)
			tried = (news & MGWS_TRIED) != 0;
		due = loom_poll_due(c);
		if (news & MGWS_STOP)
			return 0;
		if (news & MGWS_PUBLISH && backlog->count) { /* a call of mgws_publish_half() takes more registers */
			mgws_publish_ring(c, mgws_backlog(c), slots - 1, &backlog->head, &backlog->count,
					  (backlog->count + 1) / 2);
			if (c->lane == 0)
				b->word = mgws_word_now(c);
		} else {
			mgws_act_on(c, news);
		}
		if (!mine->count && backlog->count)
			mgws_backlog_refill(c);
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
			if (!mgws_claim_next(c))
				return 1;
			continue;
		}
		int runs = c->lane < n;
		if (runs && t.affinity == mgws_other_kind(c)) {
			mgws_lane_pass_on(c, slot);
			runs = 0;
		}
		/* Moves older tasks to the backlog, to make room for the tasks that the lanes will spawn. Without this, spawned
		 * tasks would go to the backlog before older tasks, and the task tree would be walked breadth-first. */
		if (mine->count > quarter && slots - backlog->count >= mine->count)
			mgws_backlog_overflow(c, mine->count - quarter);
		if (c->lane == 0) {
			l->head = mine->head;
			l->count = mine->count;
			l->backlog_head = backlog->head;
			l->backlog_count = backlog->count;
		}
		loom_barrier_lanes(c); /* all lanes have copied their tasks, so lanes may push into the slots */
		if (runs)
			mgws_lane_run(c, &t);
		loom_barrier_lanes(c);
		mine->count = l->count <= mask ? l->count : mask + 1;
		backlog->count = l->backlog_count < slots ? l->backlog_count : slots;
		*ran += n;
	}
}

#endif
