/* SPDX-License-Identifier: Apache-2.0 */
/* granularity = lane: each lane of a worker runs a task of its own. Device code.
 *
 * The worker's loop gives up to one task to each lane, and all lanes meet at a barrier when these tasks have ended.
 * Until then each lane is single (loom_ctx.single_lane): its context has one lane. A lane pushes the tasks that it
 * spawns to the worker's local queue, at a position from a counter in the private block. No lane pops before the
 * barrier, so a full queue stays full until the barrier. Tasks that find no room go to the backlog. The backlog must
 * hold many tasks, because each lane walks a path of its own in a task tree, and the backlog gets the branches of all
 * paths. */
#ifndef SCHED_MGWS_LANES_DEV_H
#define SCHED_MGWS_LANES_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "spawn.dev.h"
#endif

#ifdef GPULOOM_DEV_CPU_H
static const struct loom_sched_dev mgws_lane_cpu = {.size = sizeof(mgws_lane_cpu), .spawn = mgws_lane_spawn};
#endif

/* Overflows the task in `slot`, which this lane was given, but which is for another kind of device. The argument is the slot,
 * which no lane writes before the next barrier. If the argument were a task, all lanes would load the whole task. */
SCHED_SLOW int mgws_overflow_slot(struct loom_ctx *c, struct loom_task *slot)
{
	return mgws_overflow_other_kind(c, slot);
}

LOOM_FN void mgws_lane_pass_on(struct loom_ctx *c, const struct loom_task *slot)
{
	struct loom_ctx single = sched_begin_single(c, &mgws_lane_cpu);
	loom_fetch_add_relaxed_dev(&sched_local(c)->sent, 1u);
	LOOM_OUTLINED(mgws_overflow_slot, &single, (struct loom_task *)slot);
	c->stop_seen = single.stop_seen;
}

/* Runs `t` on this lane. If it is the last task of its join, pushes the task that waits for the join. */
LOOM_FN void mgws_lane_run(struct loom_ctx *c, const struct loom_task *t)
{
	struct loom_ctx single = sched_begin_single(c, &mgws_lane_cpu);
	struct loom_task next;
	loom_task_run(&single, t);
	if (t->join && sched_decrement_join(&single, t->join, &next))
		mgws_lane_push_or_overflow(&single, &next);
	sched_end_single(c, &single);
}

#endif
