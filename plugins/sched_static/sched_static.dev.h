/* SPDX-License-Identifier: Apache-2.0 */
/* The static split: each worker runs an equal, contiguous share of the initial set and all that its tasks spawn. The
 * static split is the lower bound for work stealing. Device code. */
#ifndef SCHED_STATIC_DEV_H
#define SCHED_STATIC_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sched/queue.dev.h"
#endif

/* The worker's block: its overflow list, a stack that no other worker accesses. `slots` tasks follow. */
struct sched_static_list {
	uint64_t slots;
	uint64_t count; /* left for collect() */
	uint64_t pad[6];
};

/* The block of a device; constant. */
struct sched_static_site {
	uint32_t other; /* the affinity that excludes this device */
	uint32_t pad[15];
};

/* State of a lane, after the ring in the private block; equal in all lanes, like sched_lane. */
struct sched_static_lane {
	uint64_t listed;
};
#define SCHED_STATIC_REGISTER_WORDS 3 /* words of loom_ctx.regs */
#define SCHED_STATIC_EXTRA(lanes)   ((uint64_t)(lanes) * sizeof(struct sched_static_lane))

LOOM_FN struct sched_static_lane *sched_static_lane(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	return (struct sched_static_lane *)&c->regs[SCHED_REGS_OWN];
#else
	return (struct sched_static_lane *)sched_private(c) + c->lane;
#endif
}

LOOM_FN struct sched_static_list *sched_static_list(const struct loom_ctx *c)
{
	return (struct sched_static_list *)c->own[LOOM_SCHED];
}

LOOM_FN int sched_static_push(struct loom_ctx *c, const struct loom_task *task)
{
	return !sched_push(c, task);
}

LOOM_FN int sched_static_overflow(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_static_list *s = sched_static_list(c);
	struct sched_static_lane *mine = sched_static_lane(c);
	if (mine->listed == s->slots) {
		if (c->lane == 0)
			loom_worker_fail(c, LOOM_EFULL, s->slots);
		return LOOM_EFULL;
	}
	sched_copy_one(c, &((struct loom_task *)(s + 1))[mine->listed], task);
	mine->listed++;
	if (c->lane == 0)
		sched_local(c)->counters.overflowed++;
	return 0;
}

SCHED_SLOW int sched_static_push_to_full_queue(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_place_task(c, task, sched_static_push, sched_static_overflow);
}

/* Returns 1 if this device may run the task. Otherwise the run fails, since tasks do not move between workers. */
LOOM_FN int sched_static_allows(struct loom_ctx *c, const struct loom_task *task)
{
	const struct sched_static_site *site = (const struct sched_static_site *)c->on_device[LOOM_SCHED];
	if (task->affinity != site->other)
		return 1;
	if (c->lane == 0)
		loom_worker_fail(c, LOOM_ENOTSUP, task->affinity);
	return 0;
}

LOOM_FN int sched_static_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	sched_lane(c)->spawned++;
	if (SCHED_HAS_ATTRIBUTES(task) && !sched_static_allows(c, task))
		return LOOM_EFULL;
	return sched_push(c, task) ? 0 : LOOM_OUTLINED(sched_static_push_to_full_queue, c, task);
}

/* Tasks do not move between workers, so spawning helps none. */
LOOM_FN int sched_static_wanted(struct loom_ctx *c)
{
	uint64_t stopped = c->lane == 0 ? (uint64_t)loom_stopped(c) : 0;
	return loom_from_lane0(c, stopped) ? LOOM_EINTR : 0;
}

/* Moves tasks of the list into half of the empty queue. Spawned tasks get the other half. */
LOOM_FN uint32_t sched_static_refill(struct loom_ctx *c)
{
	struct sched_lane *q = sched_lane(c);
	struct sched_static_lane *mine = sched_static_lane(c);
	uint32_t mask = sched_mask(c), n = (mask + 1) / 2;
	if (n > mine->listed)
		n = (uint32_t)mine->listed;
	if (!n)
		return 0;
	loom_barrier_lanes(c); /* other lanes have copied to the list */
	mine->listed -= n;
	sched_copy_ring(c, sched_ring(c), q->head, mask, (struct loom_task *)(sched_static_list(c) + 1), mine->listed,
			~0ull, n);
	q->count = n;
	if (c->lane == 0)
		sched_local(c)->counters.refilled += n;
	return n;
}

/* Runs the tasks that the last initial task spawned, and what follows its join. Returns how many. */
SCHED_NOINLINE uint64_t sched_static_drain(struct loom_ctx *c, loom_ref join)
{
	struct sched_lane *q = sched_lane(c);
	const struct loom_task *ring = sched_ring(c);
	uint32_t mask = sched_mask(c);
	uint64_t ran = 0;
	struct loom_task t;
	int follows = join && sched_decrement_join(c, join, &t);
	while (follows || q->count || sched_static_refill(c)) {
		/* The poll is also the barrier before sched_pop(). */
		if (loom_from_lane0(c, (uint64_t)loom_stopped(c)))
			break;
		if (!follows)
			sched_pop(c, q, ring, mask, &t);
		else if (SCHED_HAS_ATTRIBUTES(&t) && !sched_static_allows(c, &t))
			break;
		loom_task_run(c, &t);
		ran++;
		follows = t.join && sched_decrement_join(c, t.join, &t);
	}
	return ran;
}

#define SCHED_STATIC_STRIDE 64u /* with several lanes: initial tasks between two polls of the stop word */

LOOM_FN uint64_t sched_static_run_initial(struct loom_ctx *c)
{
	uint64_t all = c->ctl->initial_tasks, each = all / c->workers, rest = all % c->workers;
	uint64_t from = c->worker * each + (c->worker < rest ? c->worker : rest);
	uint64_t share = each + (c->worker < rest), drained = 0, sample = loom_trace_next(c, 0);
	const struct loom_task *const first = &c->initial[from];
	const struct sched_lane *q = sched_lane(c);
	const int one = c->lanes == 1;

	for (uint64_t n = 0; n < share; n++) {
		const struct loom_task *task = &first[n];
		if (one ? loom_stopped(c)
			: n % SCHED_STATIC_STRIDE == 0 && loom_from_lane0(c, (uint64_t)loom_stopped(c)))
			return n + drained;
		if (task->affinity && !sched_static_allows(c, task))
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
	sched_start(c);
	sched_static_lane(c)->listed = 0;
	uint64_t ran = sched_static_run_initial(c);
	if (c->lane == 0) {
		sched_local(c)->counters.last_task_ns = loom_clock_ns(c);
		sched_static_list(c)->count = sched_static_lane(c)->listed;
	}
	sched_leave(c, ran);
}

#endif
