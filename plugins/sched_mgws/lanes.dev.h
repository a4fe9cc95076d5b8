/* SPDX-License-Identifier: Apache-2.0 */
/* grain = lane: each lane of a worker runs a task of its own. Device code.
 *
 * The worker's loop hands out up to one task per lane, and its lanes meet again when all have ended. In
 * between a lane is alone (loom_ctx.alone): it sees itself as the only lane, and its spawns go to the
 * worker's local queue at places that lanes draw from a counter in the private block. No lane takes a
 * task while others spawn, so a queue that is found full stays full until the lanes meet. What it has no
 * room for goes to the backlog, a larger ring in the worker's public block that is read by nobody else: the
 * lanes of a worker walk as many paths of a task tree at a time, and hold what branches off all of them. */
#ifndef SCHED_MGWS_LANES_DEV_H
#define SCHED_MGWS_LANES_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "steal.dev.h"
#endif

/* A place behind the newest task of the local queue or, when that is full, in the backlog; 0: in neither. */
LOOM_FN int sched_alone_push(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_local *l = sched_local(c);
	uint32_t mask = sched_mask(c);
	uint32_t at = loom_fetch_add_relaxed_dev(&l->drawn, 1u);
	if (at <= mask) {
		sched_copy_task(&sched_ring_of(l)[(l->head + at) & mask], task);
		return 1;
	}
	mask = SCHED_CFG(c, backlog) - 1;
	at = loom_fetch_add_relaxed_dev(&l->backlog, 1u);
	if (at > mask)
		return 0;
	sched_copy_task(&sched_mgws_backlog(c)[(l->low + at) & mask], task);
	return 1;
}

/* A lane's own sched_mgws_put(). Lanes of a worker may want the lock at the same time: none waits for it in
 * a loop that the holder would have to leave first. */
SCHED_SLOW int sched_alone_put(struct loom_ctx *c, uint32_t which, const struct loom_task *task)
{
	struct sched_mgws_list *s = &sched_mgws_global(c)->list[which];
	int done = 0, put = 0;
	while (!done && !loom_stopped(c)) {
		uint32_t open = 0;
		/* Acquire: pairs with the release in unlock. */
		if (loom_cas_acq_rel_sys(&s->lock, &open, 1u)) {
			uint64_t at = loom_load_relaxed_sys(&s->count);
			put = at < SCHED_CFG(c, spill);
			if (put) {
				sched_copy_task(&sched_mgws_slots(c, which)[at], task);
				/* As in sched_mgws_put(). */
				loom_store_release_sys(&s->count, at + 1);
			}
			sched_mgws_unlock(s);
			done = 1;
		} else {
			loom_pause(c);
		}
	}
	if (put) {
		sched_wake(c, &sched_mgws_global(c)->common.bell, which == LOOM_ON_ANY ? 1u : ~0u);
		loom_fetch_add_relaxed_dev(&sched_local(c)->tally.spilled, (uint64_t)1);
	}
	return put;
}

SCHED_SLOW int sched_alone_send(struct loom_ctx *c, const struct loom_task *task)
{
	int mixed = SCHED_CFG(c, mixed) != 0;
	if (mixed && sched_alone_put(c, task->affinity, task))
		return 0;
	if (!loom_stopped(c))
		loom_worker_fail(c, mixed ? LOOM_EFULL : LOOM_ENOTSUP, SCHED_CFG(c, spill));
	return LOOM_EFULL;
}

/* The ladder, without the public queue: the worker's lanes would have to meet for that. */
SCHED_SLOW int sched_alone_overflow(struct loom_ctx *c, const struct loom_task *task)
{
	struct loom_task next;
	for (;;) {
		if (loom_stopped(c))
			return LOOM_EFULL;
		if (task->affinity == sched_mgws_other(c))
			return sched_alone_send(c, task);
		if (sched_alone_push(c, task))
			return 0;
		enum sched_ran ran = sched_in_place(c, task, &next);
		if (ran == SCHED_RAN)
			return 0;
		if (ran == SCHED_TOO_DEEP)
			break;
		task = &next;
	}
	if (sched_alone_put(c, LOOM_ON_ANY, task))
		return 0;
	if (!loom_stopped(c))
		loom_worker_fail(c, LOOM_EFULL, SCHED_CFG(c, spill));
	return LOOM_EFULL;
}

/* A task that is already counted as spawned. */
LOOM_FN int sched_alone_place(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == sched_mgws_other(c) || !sched_alone_push(c, task))
		return LOOM_FAR(sched_alone_overflow, c, task);
	return 0;
}

LOOM_FN int sched_alone_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	sched_own_lane(c)->spawned++;
	return sched_alone_place(c, task);
}

#ifdef GPULOOM_DEV_CPU_H
static const struct loom_sched_dev sched_alone_cpu; /* with sched_alone_spawn */
#endif

/* This lane runs `t`, and makes a task of what follows it. */
LOOM_FN void sched_alone_run(struct loom_ctx *c, const struct loom_task *t)
{
	struct loom_ctx alone = *c;
	struct loom_task next;
	alone.alone = c->lane + 1;
	alone.lane = 0;
	alone.lanes = 1;
#ifdef GPULOOM_DEV_CPU_H
	alone.sched = &sched_alone_cpu;
#endif
	if (t->affinity == sched_mgws_other(c)) {
		LOOM_FAR(sched_alone_send, &alone, t);
	} else {
		loom_task_run(&alone, t);
		if (t->join && sched_joined(&alone, t->join, &next))
			sched_alone_place(&alone, &next);
	}
	c->random = alone.random;
	c->stop_seen = alone.stop_seen;
	sched_lane(c)->spawned = sched_own_lane(&alone)->spawned; /* on a GPU its context's */
}

#endif
