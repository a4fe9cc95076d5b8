/* SPDX-License-Identifier: Apache-2.0 */
/* priorities = yes: a ring for tasks of high priority, and a ring for tasks of low priority. Device code, collective. */
#ifndef SCHED_MGWS_PRIORITIES_DEV_H
#define SCHED_MGWS_PRIORITIES_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "publish.dev.h"
#endif

#if SCHED_MAY(SCHED_IS_priorities)

LOOM_FN uint32_t mgws_held(const struct loom_ctx *c, uint32_t which)
{
	return mgws_lane(c)->level[which].count;
}

LOOM_FN struct loom_task *mgws_level_ring(const struct loom_ctx *c, uint32_t which)
{
	return (struct loom_task *)mgws_behind_lanes(c) + which * ((uint64_t)sched_mask(c) + 1);
}

/* Pushes the task to the ring of its priority. Returns 1, or 0 if the priority is normal or the ring is full. */
LOOM_FN int mgws_push_level(struct loom_ctx *c, const struct loom_task *task)
{
	uint32_t which = task->priority == LOOM_HIGH ? MGWS_HIGH : MGWS_LOW, mask = sched_mask(c);
	struct mgws_level *l = &mgws_lane(c)->level[which];
	if (task->priority == LOOM_NORMAL || !SCHED_CFG(c, priorities) || l->count > mask)
		return 0;
	sched_copy_one(c, &mgws_level_ring(c, which)[(l->head + l->count) & mask], task);
	l->count++;
	return 1;
}

/* Removes the newest task of a ring; each lane gets a copy of it. The caller has passed a barrier after the last push. */
LOOM_FN void mgws_pop_level(struct loom_ctx *c, uint32_t which, struct loom_task *task)
{
	struct mgws_level *l = &mgws_lane(c)->level[which];
	l->count--;
	sched_copy_task(task, &mgws_level_ring(c, which)[(l->head + l->count) & sched_mask(c)]);
	loom_barrier_lanes(c);
}

SCHED_SLOW uint32_t mgws_publish_level(struct loom_ctx *c, uint32_t which)
{
	struct mgws_level *l = &mgws_lane(c)->level[which];
	return l->count < 2
		   ? 0
		   : mgws_publish_ring(c, mgws_level_ring(c, which), sched_mask(c), &l->head, &l->count, l->count / 2);
}

/* For a worker without other tasks. Moves one task of low priority into the empty local queue, so that the tasks that it
 * spawns run before other tasks of low priority. Publishes half of the other tasks of low priority. */
LOOM_FN int mgws_push_low(struct loom_ctx *c)
{
	struct loom_task t;
	if (!mgws_held(c, MGWS_LOW))
		return 0;
	loom_barrier_lanes(c);
	mgws_pop_level(c, MGWS_LOW, &t);
	sched_push(c, &t);
	mgws_publish_level(c, MGWS_LOW);
	return 1;
}

#else

#define mgws_held(c, which)            0u
#define mgws_push_level(c, task)       0
#define mgws_pop_level(c, which, task) ((void)0)
#define mgws_publish_level(c, which)   0u
#define mgws_push_low(c)               0

#endif
#endif
