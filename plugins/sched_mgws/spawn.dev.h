/* SPDX-License-Identifier: Apache-2.0 */
/* Spawn: a new task goes into the local queue. If that is full, the worker makes room or puts the task into another queue.
 * Device code. Collective, except for single lanes (granularity = lane: lanes.dev.h). */
#ifndef SCHED_MGWS_SPAWN_DEV_H
#define SCHED_MGWS_SPAWN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "overflow.dev.h"
#endif

/* ---- the backlog: a third queue, private to its worker --------------------------------------- */

#define MGWS_BACKLOG_SLOTS(public_queue) (4 * (public_queue)) /* number of slots if backlog = auto */

/* Moves the n oldest tasks of the local queue to the backlog, where they become the newest tasks. The caller has checked that
 * the backlog has room, and passes a barrier before this call and another barrier after it. */
LOOM_FN void mgws_backlog_overflow(struct loom_ctx *c, uint32_t n)
{
	struct sched_lane *mine = sched_lane(c);
	struct mgws_backlog *b = &mgws_lane(c)->backlog;
	sched_copy_ring(c, mgws_backlog(c), b->head + b->count, SCHED_CFG(c, backlog) - 1, sched_ring(c), mine->head,
			sched_mask(c), n);
	mine->head += n;
	mine->count -= n;
	b->count += n;
}

/* Moves up to half of the local queue to the backlog. Returns 1 if it has moved any task. */
SCHED_NOINLINE int mgws_backlog_overflow_half(struct loom_ctx *c)
{
	uint32_t room = SCHED_CFG(c, backlog) - mgws_lane(c)->backlog.count, n = sched_lane(c)->count / 2;
	n = n < room ? n : room;
	if (!n)
		return 0;
	loom_barrier_lanes(c); /* all lanes have written their parts of the tasks */
	mgws_backlog_overflow(c, n);
	loom_barrier_lanes(c); /* all lanes have read the slots, so they may be written again */
	return 1;
}

/* Moves the newest tasks of the backlog into the empty local queue. Fills at most half of it, to leave room for spawns. */
SCHED_NOINLINE int mgws_backlog_refill(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	struct mgws_backlog *b = &mgws_lane(c)->backlog;
	uint32_t mask = sched_mask(c), n = (mask + 1) / 2;
	n = n < b->count ? n : b->count;
	b->count -= n;
	sched_copy_ring(c, sched_ring(c), mine->head, mask, mgws_backlog(c), b->head + b->count,
			SCHED_CFG(c, backlog) - 1, n);
	mine->count = n;
	loom_barrier_lanes(c);
	return 1;
}

/* ---- push ------------------------------------------------------------------------------------ */

/* For a single lane. Pushes the task to the local queue or, if this is full, to the backlog. Returns 0 if neither has room,
 * else 1. */
LOOM_FN int mgws_lane_push(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_local *l = sched_local(c);
	uint32_t mask = sched_mask(c);
	uint32_t at = loom_fetch_add_relaxed_dev(&l->count, 1u);
	if (at <= mask) {
		sched_copy_task(&sched_ring_behind(l)[(l->head + at) & mask], task);
		return 1;
	}
	mask = SCHED_CFG(c, backlog) - 1;
	at = loom_fetch_add_relaxed_dev(&l->backlog_count, 1u);
	if (at > mask)
		return 0;
	sched_copy_task(&mgws_backlog(c)[(l->backlog_head + at) & mask], task);
	return 1;
}

/* Puts the task into a queue, and makes room for it if necessary. Returns 0 on success. sched_place_task() calls it. */
LOOM_FN int mgws_push_making_room(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == mgws_other_kind(c))
		return mgws_overflow_other_kind(c, task);
	if (SCHED_SINGLE_LANE(c)) /* a single lane cannot publish to make room, because all lanes publish together */
		return !mgws_lane_push(c, task);
	if (sched_push(c, task))
		return 0;
	/* mgws_publish_local() publishes nothing if the public queue is also full, or if thieves still copy from its slots. */
	if (mgws_publish_local(c, sched_lane(c)->count / 2) && sched_push(c, task))
		return 0;
	return !(mgws_backlog_overflow_half(c) && sched_push(c, task));
}

SCHED_NOINLINE int mgws_push_to_full_queue(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_place_task(c, task, mgws_push_making_room, mgws_overflow_any);
}

/* Overflows the task that was popped last, which is for another kind of device. Reads the task from its slot, so that the
 * caller need not load all of its words. Copies the task first, because mgws_drain() may put another task into the slot. */
SCHED_SLOW int mgws_overflow_popped(struct loom_ctx *c)
{
	const struct sched_lane *mine = sched_lane(c);
	struct loom_task t;
	sched_copy_task(&t, &sched_ring(c)[(mine->head + mine->count) & sched_mask(c)]);
	loom_barrier_lanes(c);
	return mgws_overflow_other_kind(c, &t);
}

/* Called after a task with a join has ended. If it was the join's last task, pushes the task that waits for the join. This
 * task runs next if the local queue has room for it. */
SCHED_SLOW int mgws_push_successor(struct loom_ctx *c, loom_ref join)
{
	struct loom_task next;
	if (!sched_decrement_join(c, join, &next))
		return 0;
	return sched_push(c, &next) ? 0
				    : (int)LOOM_OUTLINED(mgws_push_to_full_queue, c, (const struct loom_task *)&next);
}

/* Pushes a task that has an affinity. */
SCHED_SLOW int mgws_push_attributed(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == mgws_other_kind(c))
		return mgws_overflow_other_kind(c, task);
	return sched_push(c, task) ? 0 : mgws_push_to_full_queue(c, task);
}

/* For a single lane. Pushes a task that is already counted as spawned, or overflows it. */
LOOM_FN int mgws_lane_push_or_overflow(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == mgws_other_kind(c) || !mgws_lane_push(c, task))
		return LOOM_OUTLINED(mgws_push_to_full_queue, c, task);
	return 0;
}

/* ---- what tasks call ------------------------------------------------------------------------- */

LOOM_FN int mgws_lane_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	sched_single_lane(c)->spawned++;
	return mgws_lane_push_or_overflow(c, task);
}

LOOM_FN int mgws_spawn_general(struct loom_ctx *c, const struct loom_task *task)
{
#ifdef LOOM_DEVICE_COMPILE /* on a CPU, single lanes call mgws_lane_spawn() through mgws_lane_cpu */
	if (SCHED_SINGLE_LANE(c))
		return mgws_lane_spawn(c, task);
#endif
	sched_lane(c)->spawned++;
	if (SCHED_HAS_ATTRIBUTES(task))
		return LOOM_OUTLINED(mgws_push_attributed, c, task);
	return sched_push(c, task) ? 0 : LOOM_OUTLINED(mgws_push_to_full_queue, c, task);
}

#ifdef GPULOOM_DEV_CPU_H
SCHED_NOINLINE int mgws_spawn_slow(struct loom_ctx *c, const struct loom_task *task)
{
	return mgws_spawn_general(c, task);
}

/* Called inside a task when other workers sleep. If no task of this worker is public, publishes half of the tasks that it
 * holds, because the running task may still take long. */
SCHED_SLOW void mgws_publish_early(struct loom_ctx *c)
{
	if (mgws_empty(mgws_own_meta(c), mgws_queue(c)))
		mgws_publish_local(c, sched_lane(c)->count - sched_lane(c)->count / 2);
}

LOOM_FN int sched_mgws_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_local *l = sched_local(c);
	if (c->lanes != 1 || SCHED_HAS_ATTRIBUTES(task) || !sched_push_one_lane(l, task))
		return mgws_spawn_slow(c, task);
	((struct sched_lane *)(l + 1))->spawned++;
	/* Only a worker of one lane checks this, because several lanes would have to agree, which takes time. */
	if (sched_sleepers(mgws_event(c)))
		mgws_publish_early(c);
	return 0;
}
#else
LOOM_FN int sched_mgws_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	return mgws_spawn_general(c, task);
}
#endif

/* Called by lane 0. Returns whether this worker has too few public tasks. If ranks steal by RMA, several tasks should be
 * public, because such a steal takes long and should bring several tasks. */
#define MGWS_RMA_TASKS 8u
LOOM_FN int mgws_lacks_public(struct loom_ctx *c)
{
	uint32_t few = mgws_own_meta(c)->mask / 2 < MGWS_RMA_TASKS ? mgws_own_meta(c)->mask / 2 : MGWS_RMA_TASKS;
	return mgws_empty(mgws_own_meta(c), mgws_queue(c)) ||
	       (SCHED_CFG(c, rma) && mgws_left(loom_load_relaxed_sys(&mgws_queue(c)->word)) < few);
}

/* Called inside a long task that can be divided. Returns whether the task should spawn. The task should spawn if this worker
 * has too few public tasks, all initial tasks are claimed, and the worker holds no tasks that it could publish instead. */
LOOM_FN int sched_mgws_wanted(struct loom_ctx *c)
{
	int64_t yes = 0;
#ifdef GPULOOM_DEV_CPU_H
	if (SCHED_CFG(c, noncoherent) && mgws_grant_inside_task(c))
		return 1;
	if (SCHED_CFG(c, rma) && c->lane == 0 && ++mgws_worker(c)->wanted % MGWS_PROGRESS_CALLS == 0)
		(void)mgws_rma_progress(c);
#endif
	if (c->lane == 0) {
		if (loom_stopped(c))
			yes = LOOM_EINTR;
		else if (mgws_lacks_public(c))
			/* In a small sample each initial task has its worker, or the only worker has all. */
			yes = MGWS_SMALL(c) ? c->count > 1 : !mgws_initial_left(c);
	}
	yes = (int64_t)loom_from_lane0(c, (uint64_t)yes);
	if (yes > 0 && sched_lane(c)->count) {
		mgws_publish_local(c, sched_lane(c)->count);
		yes = 0; /* tasks are public, or the queue has no room for any because thieves are copying */
	}
	return (int)yes;
}

#endif
