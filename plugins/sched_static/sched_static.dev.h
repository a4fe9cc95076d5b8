/* SPDX-License-Identifier: Apache-2.0 */
/* sched_static: each worker runs an equal share of the initial set and all tasks that the tasks of the share spawn. Work
 * stealing is compared with this static split as the lower bound. Device code. */
#ifndef SCHED_STATIC_DEV_H
#define SCHED_STATIC_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../sched_common/own.dev.h"
#endif

LOOM_FN int sched_static_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	sched_lane(c)->spawned++;
	if (SCHED_HAS_ATTRIBUTES(task) && !sched_own_allows(c, task))
		return LOOM_EFULL;
	return sched_own_keep(c, task);
}

LOOM_FN int sched_static_wanted(struct loom_ctx *c)
{
	return sched_own_wanted(c);
}

/* Runs the tasks that the last initial task spawned, and the task that follows its join, if any. Returns how many tasks
 * ran. */
SCHED_NOINLINE uint64_t sched_static_drain(struct loom_ctx *c, loom_ref join)
{
	struct sched_lane *q = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	uint32_t mask = sched_mask(c);
	uint64_t ran = 0;
	struct loom_task t;
	int follows = join && sched_decrement_join(c, join, &t);
	while (follows || q->count || sched_own_refill(c)) {
		/* This poll of the stop word is also the barrier of lanes that sched_pop() needs. */
		if (loom_from_lane0(c, (uint64_t)loom_stopped(c)))
			break;
		if (!follows)
			sched_pop(c, q, ring, mask, &t);
		else if (SCHED_HAS_ATTRIBUTES(&t) && !sched_own_allows(c, &t))
			break;
		loom_task_run(c, &t);
		ran++;
		follows = t.join && sched_decrement_join(c, t.join, &t);
	}
	return ran;
}

/* A GPU's worker runs its share from a window in its private block, which holds the next tasks. While it runs these, each lane has
 * a pair of words of the tasks after them on the way, because a load takes longer than a small task. */
#define SCHED_STATIC_WINDOW 8u /* number of tasks */
#if defined(LOOM_DEVICE_COMPILE) && LOOM_LANES >= SCHED_STATIC_WINDOW * SCHED_PAIRS
#define SCHED_STATIC_AHEAD
#endif
#define SCHED_STATIC_STRIDE 64u /* a worker with several lanes polls the stop word once per this number of initial tasks */

/* Runs this worker's share, and returns how many tasks ran. The share is a range of the initial set. */
LOOM_FN uint64_t sched_static_run_initial(struct loom_ctx *c)
{
	uint64_t all = c->ctl->initial_tasks, each = all / c->workers, rest = all % c->workers;
	uint64_t from = c->worker * each + (c->worker < rest ? c->worker : rest);
	uint64_t share = each + (c->worker < rest), drained = 0, sample = loom_trace_next(c, 0);
	const struct loom_task *task = &c->initial[from];
	const struct sched_lane *q = sched_lane(c);
	const int one = c->lanes == 1;
#ifdef SCHED_STATIC_AHEAD
	const struct sched_words *from_memory = (const struct sched_words *)task + c->lane;
	struct loom_task *window = (struct loom_task *)sched_private(c);
	struct sched_words ahead = {0, 0};
	/* this lane's task of the window; a lane behind the window has none */
	uint64_t mine = c->lane / SCHED_PAIRS < SCHED_STATIC_WINDOW ? c->lane / SCHED_PAIRS : share;
	if (mine < share)
		ahead = *from_memory;
#endif

	for (uint64_t n = 0; n < share; n++, task++) {
#ifdef SCHED_STATIC_AHEAD
		if (n % SCHED_STATIC_WINDOW == 0) {
			loom_barrier_lanes(c); /* all lanes have run the tasks of the window */
			if (mine < share)
				((struct sched_words *)window)[c->lane] = ahead;
			loom_barrier_lanes(c);
			mine += SCHED_STATIC_WINDOW;
			from_memory += SCHED_STATIC_WINDOW * SCHED_PAIRS;
			if (mine < share)
				ahead = *from_memory;
		}
		task = &window[n % SCHED_STATIC_WINDOW];
#endif
		if (one ? loom_stopped(c)
			: n % SCHED_STATIC_STRIDE == 0 && loom_from_lane0(c, (uint64_t)loom_stopped(c)))
			return n + drained;
		if (task->affinity && !sched_own_allows(c, task))
			return n + drained;
		if (n == sample && LOOM_TRACE_OF(c))
			sample = loom_trace_task(c, sample, task);
		else
			loom_task_run(c, task);
		if (q->count || task->join)
			drained += sched_static_drain(c, task->join);
	}
	if (c->lane == 0)
		sched_local(c)->counters.claimed = share;
	return share + drained;
}

LOOM_FN void sched_static_run(struct loom_ctx *c)
{
	sched_own_start(c);
	uint64_t ran = sched_static_run_initial(c);
	if (c->lane == 0)
		sched_local(c)->counters.last_task_ns = loom_clock_ns(c);
	sched_own_end(c);
	sched_leave(c, ran);
}

#endif
