/* SPDX-License-Identifier: Apache-2.0 */
/* Priorities: a ring for tasks of high priority and one for those of low. Device code, collective. */
#ifndef SCHED_MGWS_LEVELS_DEV_H
#define SCHED_MGWS_LEVELS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "spawn.dev.h"
#endif

/* The newest task of a level, copied for this lane, after a barrier since it was put there. */
LOOM_FN void sched_mgws_pop_level(struct loom_ctx *c, uint32_t which, struct loom_task *task)
{
	struct sched_mgws_level *l = &sched_mgws_levels(c)->level[which];
	l->count--;
	sched_copy_task(task, &sched_mgws_level_ring(c, which)[(l->head + l->count) &
							       sched_mask(c)]);
	loom_barrier_lanes(c);
}

SCHED_SLOW void sched_mgws_share_level(struct loom_ctx *c, uint32_t which)
{
	struct sched_mgws_level *l = &sched_mgws_levels(c)->level[which];
	if (!MGWS_HELD(c, l))
		return;
	uint32_t n = sched_mgws_give(c, sched_mgws_level_ring(c, which), l->head,
				     sched_mask(c), l->count / 2);
	l->head += n;
	l->count -= n;
}

/* Nothing else to do: one task of low priority into the empty local queue, where whatever it spawns goes
 * on top of it; half of the rest is for others. */
LOOM_FN int sched_mgws_low(struct loom_ctx *c)
{
	struct sched_mgws_level *l = &sched_mgws_levels(c)->level[MGWS_LOW];
	struct loom_task t;
	if (!MGWS_HELD(c, l))
		return 0;
	loom_barrier_lanes(c);
	sched_mgws_pop_level(c, MGWS_LOW, &t);
	sched_push(c, &t);
	if (l->count > 1)
		sched_mgws_share_level(c, MGWS_LOW);
	return 1;
}

#endif
