/* SPDX-License-Identifier: Apache-2.0 */
/* A task that a task makes: into the local queue, and where it goes when there is no room. Device code,
 * collective. */
#ifndef SCHED_MGWS_SPAWN_DEV_H
#define SCHED_MGWS_SPAWN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "claim.dev.h"
#include "lanes.dev.h"
#endif

LOOM_FN uint32_t sched_mgws_release(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	uint32_t n = sched_mgws_give(c, sched_ring(c), mine->head, sched_mask(c),
				     mine->count / 2);
	mine->head += n; /* the oldest: most work below them */
	mine->count -= n;
	return n;
}

/* Both queues are full: the older half of the local one goes to the worker's own backlog, where it is newer
 * than all that lies there. 1 when that made room. */
SCHED_APART int sched_mgws_set_aside(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	struct sched_mgws_level *b = &sched_mgws_keep(c)->backlog;
	uint32_t slots = SCHED_CFG(c, backlog), n = mine->count / 2;
	n = n < slots - b->count ? n : slots - b->count;
	if (!n)
		return 0;
	loom_barrier_lanes(c); /* tasks are written */
	sched_move(c, sched_mgws_backlog(c), b->head + b->count, slots - 1, sched_ring(c), mine->head,
		   sched_mask(c), n);
	loom_barrier_lanes(c); /* and their slots may be written again */
	mine->head += n;
	mine->count -= n;
	b->count += n;
	return 1;
}

/* The newest of the backlog into the empty local queue: half of it, for they may spawn. */
SCHED_APART int sched_mgws_bring_back(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	struct sched_mgws_level *b = &sched_mgws_keep(c)->backlog;
	uint32_t mask = sched_mask(c), n = (mask + 1) / 2;
	n = n < b->count ? n : b->count;
	b->count -= n;
	sched_move(c, sched_ring(c), mine->head, mask, sched_mgws_backlog(c), b->head + b->count,
		   SCHED_CFG(c, backlog) - 1, n);
	mine->count = n;
	loom_barrier_lanes(c);
	return 1;
}

/* A task that another kind of device must run. 0, or LOOM_EFULL after the run was failed. */
SCHED_SLOW int sched_mgws_send(struct loom_ctx *c, const struct loom_task *task)
{
	if (SCHED_CFG(c, mixed) && sched_mgws_put(c, task->affinity, task))
		return 0;
	if (c->lane == 0 && !loom_stopped(c))
		loom_worker_fail(c, SCHED_CFG(c, mixed) ? LOOM_EFULL : LOOM_ENOTSUP, SCHED_CFG(c, spill));
	return LOOM_EFULL;
}

/* The same for the task that was popped last: from its slot, so that the loop need not load what it does not use. */
SCHED_SLOW int sched_mgws_send_popped(struct loom_ctx *c)
{
	const struct sched_lane *mine = sched_lane(c);
	return sched_mgws_send(c, &sched_ring(c)[(mine->head + mine->count) & sched_mask(c)]);
}

/* The local queue is full: the ladder. */
SCHED_APART int sched_mgws_overflow(struct loom_ctx *c, const struct loom_task *task)
{
	struct loom_task next;
	for (;;) {
		if (loom_from_lane0(c, (uint64_t)loom_stopped(c)))
			return LOOM_EFULL;
		if (task->affinity == sched_mgws_other(c))
			return sched_mgws_send(c, task);
		if (sched_push(c, task) || (sched_mgws_release(c) && sched_push(c, task)))
			return 0;
		if (sched_mgws_set_aside(c) && sched_push(c, task))
			return 0;
		/* The public queue is full too, or thieves are still copying where there would be
		 * room. */
		enum sched_ran ran = sched_in_place(c, task, &next);
		if (ran == SCHED_RAN)
			return 0;
		if (ran == SCHED_TOO_DEEP)
			break;
		task = &next;
	}
	if (sched_mgws_put(c, LOOM_ON_ANY, task))
		return 0;
	if (c->lane == 0 && !loom_stopped(c))
		loom_worker_fail(c, LOOM_EFULL, SCHED_CFG(c, spill));
	return LOOM_EFULL;
}

/* A task has ended that had a join: what follows the last of them is the next to run, unless queues are full. */
SCHED_SLOW int sched_mgws_go_on(struct loom_ctx *c, loom_ref join)
{
	struct loom_task next;
	if (!sched_joined(c, join, &next))
		return 0;
	return sched_push(c, &next) ? 0 : (int)LOOM_FAR(sched_mgws_overflow, c, (const struct loom_task *)&next);
}

/* A task with a priority or an affinity. Where its ring is full it is like any other. */
SCHED_SLOW int sched_mgws_place(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == sched_mgws_other(c))
		return sched_mgws_send(c, task);
	if (task->priority != LOOM_NORMAL && SCHED_CFG(c, priorities)) {
		uint32_t which = task->priority == LOOM_HIGH ? MGWS_HIGH : MGWS_LOW;
		struct sched_mgws_level *l = &sched_mgws_levels(c)->level[which];
		uint32_t mask = sched_mask(c);
		if (l->count <= mask) {
			sched_copy(c, &sched_mgws_level_ring(c, which)[(l->head + l->count) & mask],
				   task);
			l->count++;
			return 0;
		}
	}
	return sched_push(c, task) ? 0 : sched_mgws_overflow(c, task);
}

/* Somebody sleeps, and this worker's task may take long yet: with nothing public, what it has made so far
 * becomes so at once and not when it ends. */
SCHED_SLOW void sched_mgws_feed(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	if (!sched_mgws_empty(sched_mgws_hint(c), sched_mgws_used(c)))
		return;
	uint32_t n = sched_mgws_give(c, sched_ring(c), mine->head, sched_local(c)->mask,
				     mine->count - mine->count / 2);
	mine->head += n;
	mine->count -= n;
}

/* A task like most. */
LOOM_FN int sched_mgws_spawn_any(struct loom_ctx *c, const struct loom_task *task)
{
#ifdef LOOM_DEVICE_COMPILE /* the CPU has a table for this */
	if (LOOM_IS_ALONE(c))
		return sched_alone_spawn(c, task);
#endif
	sched_lane(c)->spawned++;
	if (SCHED_ODD(task))
		return LOOM_FAR(sched_mgws_place, c, task);
	return sched_push(c, task) ? 0 : LOOM_FAR(sched_mgws_overflow, c, task);
}

#ifdef GPULOOM_DEV_CPU_H
SCHED_APART int sched_mgws_spawn_rare(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_mgws_spawn_any(c, task);
}

LOOM_FN int sched_mgws_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_local *l = sched_local(c);
	if (c->lanes != 1 || SCHED_ODD(task) || !sched_push_alone(l, task))
		return sched_mgws_spawn_rare(c, task);
	((struct sched_lane *)(l + 1))->spawned++;
	/* Lanes would have to agree about it, at a price. */
	if (sched_sleepers(&sched_mgws_global(c)->common.bell))
		sched_mgws_feed(c);
	return 0;
}
#else
LOOM_FN int sched_mgws_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_mgws_spawn_any(c, task);
}
#endif

/* A worker in a long task that can be divided: wants one task or more to be public at any time, unless
 * initial ones are unclaimed. Those that the task has spawned come first. */
LOOM_FN int sched_mgws_wanted(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	int64_t yes = 0;
#ifdef GPULOOM_DEV_CPU_H
	if (SCHED_CFG(c, apart) && sched_mgws_wanted_afar(c))
		return 1;
#endif
	if (c->lane == 0) {
		if (loom_stopped(c))
			yes = LOOM_EINTR;
		else if (sched_mgws_empty(sched_mgws_hint(c), sched_mgws_used(c)))
			yes = !sched_mgws_initial_left(c);
	}
	yes = (int64_t)loom_from_lane0(c, (uint64_t)yes);
	if (yes > 0 && mine->count) {
		uint32_t n = sched_mgws_give(c, sched_ring(c), mine->head, sched_mask(c), mine->count);
		mine->head += n;
		mine->count -= n;
		yes = 0; /* if there was no room, thieves have just been here */
	}
	return (int)yes;
}

#endif
