/* SPDX-License-Identifier: Apache-2.0 */
/* granularity = lane: each lane of a worker runs a task of its own. Device code.
 *
 * The worker's loop hands out up to one task per lane, and its lanes meet again when all have ended. In between a lane
 * is alone (loom_ctx.single_lane). It sees itself as the only lane. It pushes what it spawns to the worker's local queue, at a
 * place that it gets from a counter in the private block. No lane pops while others push, so a queue that is full stays
 * full until the lanes meet. Tasks for which there is no room go to the backlog, a larger ring that only this worker
 * reads: its lanes walk as many paths of a task tree at a time, and hold what branches off all of them. */
#ifndef SCHED_MGWS_LANES_DEV_H
#define SCHED_MGWS_LANES_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "spawn.dev.h"
#endif

/* Behind the newest task of the local queue or, when that is full, of the backlog; 0: there is room in neither. */
LOOM_FN int mgws_alone_push(struct loom_ctx *c, const struct loom_task *task)
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

/* A task that is already counted as spawned. */
LOOM_FN int mgws_alone_push_any(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == mgws_other_kind(c) || !mgws_alone_push(c, task))
		return LOOM_OUTLINED(mgws_push_full, c, task);
	return 0;
}

LOOM_FN int mgws_alone_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	sched_alone_lane(c)->spawned++;
	return mgws_alone_push_any(c, task);
}

#ifdef GPULOOM_DEV_CPU_H
static const struct loom_sched_dev mgws_alone_cpu; /* with mgws_alone_spawn */
#endif

/* As this lane sees itself while it is alone. */
LOOM_FN struct loom_ctx mgws_alone(const struct loom_ctx *c)
{
	struct loom_ctx alone = *c;
	alone.single_lane = c->lane + 1;
	alone.lane = 0;
	alone.lanes = 1;
#ifdef GPULOOM_DEV_CPU_H
	alone.sched = &mgws_alone_cpu;
#endif
	return alone;
}

/* This lane was given a task for another kind of device. From its slot, before others may write there: a task that went into
 * a call by value would have to be loaded whole, by the lanes that run theirs, too. */
SCHED_SLOW int mgws_spill_slot(struct loom_ctx *c, struct loom_task *slot)
{
	return mgws_spill_other(c, slot);
}

LOOM_FN void mgws_alone_send(struct loom_ctx *c, const struct loom_task *slot)
{
	struct loom_ctx alone = mgws_alone(c);
	loom_fetch_add_relaxed_dev(&sched_local(c)->sent, 1u);
	LOOM_OUTLINED(mgws_spill_slot, &alone, (struct loom_task *)slot);
	c->stop_seen = alone.stop_seen;
}

/* This lane runs `t`, and makes a task of what follows it. */
LOOM_FN void mgws_alone_run(struct loom_ctx *c, const struct loom_task *t)
{
	struct loom_ctx alone = mgws_alone(c);
	struct loom_task next;
	loom_task_run(&alone, t);
	if (t->join && sched_lower_join(&alone, t->join, &next))
		mgws_alone_push_any(&alone, &next);
	c->random = alone.random;
	c->stop_seen = alone.stop_seen;
	sched_lane(c)->spawned = sched_alone_lane(&alone)->spawned; /* on a GPU its context's */
}

#endif
