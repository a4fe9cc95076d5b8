/* SPDX-License-Identifier: Apache-2.0 */
/* Spawn: a new task goes into the local queue or, when that is full, where there is room. Device code. Collective,
 * except where a single lane runs a task of its own (granularity = lane: lanes.dev.h). */
#ifndef SCHED_MGWS_SPAWN_DEV_H
#define SCHED_MGWS_SPAWN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "overflow.dev.h"
#include "priorities.dev.h"
#endif

/* ---- the backlog: a third queue, private to its worker --------------------------------------- */

#define MGWS_BACKLOG_SLOTS(public_queue) (4 * (public_queue)) /* the slots with backlog = auto */

/* Moves the n oldest tasks of the local queue to the backlog, as its newest. The caller has checked that there is room;
 * it has a barrier before this call and after it. */
LOOM_FN void mgws_backlog_overflow(struct loom_ctx *c, uint32_t n)
{
	struct sched_lane *mine = sched_lane(c);
	struct mgws_level *b = &mgws_lane(c)->backlog;
	sched_copy_ring(c, mgws_backlog(c), b->head + b->count, SCHED_CFG(c, backlog) - 1, sched_ring(c), mine->head,
			sched_mask(c), n);
	mine->head += n;
	mine->count -= n;
	b->count += n;
}

/* Moves up to half of the local queue to the backlog. Returns 1 if that made room. */
SCHED_NOINLINE int mgws_backlog_overflow_half(struct loom_ctx *c)
{
	uint32_t room = SCHED_CFG(c, backlog) - mgws_lane(c)->backlog.count, n = sched_lane(c)->count / 2;
	n = n < room ? n : room;
	if (!n)
		return 0;
	loom_barrier_lanes(c); /* the tasks are written */
	mgws_backlog_overflow(c, n);
	loom_barrier_lanes(c); /* the slots may be written again */
	return 1;
}

/* Moves the newest tasks of the backlog into half of the empty local queue. Spawned tasks get the other half. */
SCHED_NOINLINE int mgws_backlog_refill(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	struct mgws_level *b = &mgws_lane(c)->backlog;
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

/* For a single lane. Pushes onto the local queue or, when that is full, the backlog. Returns 0 if neither has room. */
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

/* Pushes into a queue, for sched_place_task(). */
LOOM_FN int mgws_push_making_room(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == mgws_other_kind(c))
		return mgws_overflow_other_kind(c, task);
	if (SCHED_SINGLE_LANE(c)) /* publishing takes all lanes */
		return !mgws_lane_push(c, task);
	if (sched_push(c, task))
		return 0;
	/* Publishing fails if the public queue is full, too, or thieves still copy from the slots. */
	if (mgws_publish_local(c, sched_lane(c)->count / 2) && sched_push(c, task))
		return 0;
	return !(mgws_backlog_overflow_half(c) && sched_push(c, task));
}

SCHED_NOINLINE int mgws_push_to_full_queue(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_place_task(c, task, mgws_push_making_room, mgws_overflow_any);
}

/* Overflows the task that was popped last, which belongs to another kind of device. Reads it from its slot, so that the
 * loop need not load all of its words. Copies it first, since mgws_drain() may put another task into the slot. */
SCHED_SLOW int mgws_overflow_popped(struct loom_ctx *c)
{
	const struct sched_lane *mine = sched_lane(c);
	struct loom_task t;
	sched_copy_task(&t, &sched_ring(c)[(mine->head + mine->count) & sched_mask(c)]);
	loom_barrier_lanes(c);
	return mgws_overflow_other_kind(c, &t);
}

/* For an ended task with a join. The join's last task pushes its successor, which runs next unless queues are full. */
SCHED_SLOW int mgws_push_successor(struct loom_ctx *c, loom_ref join)
{
	struct loom_task next;
	if (!sched_decrement_join(c, join, &next))
		return 0;
	return sched_push(c, &next) ? 0
				    : (int)LOOM_OUTLINED(mgws_push_to_full_queue, c, (const struct loom_task *)&next);
}

/* Pushes a task with a priority or an affinity. The task goes to any queue if the ring of its priority is full. */
SCHED_SLOW int mgws_push_attributed(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == mgws_other_kind(c))
		return mgws_overflow_other_kind(c, task);
	return mgws_push_level(c, task) || sched_push(c, task) ? 0 : mgws_push_to_full_queue(c, task);
}

/* For a single lane, and a task that is already counted as spawned. */
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
#ifdef LOOM_DEVICE_COMPILE /* a CPU has a table for this */
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

/* While workers sleep, the running task may still take long. If nothing is public, publishes the tasks that it has
 * spawned so far, before the task ends. */
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
	/* With one lane only: several lanes would have to agree, which costs time. */
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

/* Called by lane 0. Returns whether too few tasks are public. A steal by RMA is expensive, so it should bring
 * several tasks. */
#define MGWS_RMA_TASKS 8u
LOOM_FN int mgws_lacks_public(struct loom_ctx *c)
{
	uint32_t few = mgws_own_meta(c)->mask / 2 < MGWS_RMA_TASKS ? mgws_own_meta(c)->mask / 2 : MGWS_RMA_TASKS;
	return mgws_empty(mgws_own_meta(c), mgws_queue(c)) ||
	       (SCHED_CFG(c, rma) && mgws_left(loom_load_relaxed_sys(&mgws_queue(c)->word)) < few);
}

/* For a worker in a long task that can be divided. Returns whether to spawn: at least one task should be public at any
 * time, unless initial tasks are unclaimed. The tasks that the worker holds are published first. */
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
			yes = !mgws_initial_left(c);
	}
	yes = (int64_t)loom_from_lane0(c, (uint64_t)yes);
	if (yes > 0 && sched_lane(c)->count) {
		mgws_publish_local(c, sched_lane(c)->count);
		yes = 0; /* there was no room, because thieves are copying */
	}
	return (int)yes;
}

#endif
