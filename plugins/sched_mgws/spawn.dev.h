/* SPDX-License-Identifier: Apache-2.0 */
/* A task that a task makes: into the local queue, or where it goes when that is full. Device code, collective. */
#ifndef SCHED_MGWS_SPAWN_DEV_H
#define SCHED_MGWS_SPAWN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "claim.dev.h"
#include "priorities.dev.h"
#endif

/* ---- the backlog: a third queue, which only its worker reads --------------------------------- */

#define MGWS_BACKLOG_SLOTS(public_queue) (4 * (public_queue)) /* unless an option says how many */

/* The n oldest tasks of the local queue to the backlog, where they are newer than all that lies there. The caller has
 * made sure that there is room, and has a barrier before and after it. */
LOOM_FN void mgws_stow(struct loom_ctx *c, uint32_t n)
{
	struct sched_lane *mine = sched_lane(c);
	struct mgws_level *b = &mgws_keep(c)->backlog;
	sched_copy_ring(c, mgws_backlog(c), b->head + b->count, SCHED_CFG(c, backlog) - 1, sched_ring(c), mine->head,
			sched_mask(c), n);
	mine->head += n;
	mine->count -= n;
	b->count += n;
}

/* Up to half of the local queue; 1 when that made room. */
SCHED_NOINLINE int mgws_stow_half(struct loom_ctx *c)
{
	uint32_t room = SCHED_CFG(c, backlog) - mgws_keep(c)->backlog.count, n = sched_lane(c)->count / 2;
	n = n < room ? n : room;
	if (!n)
		return 0;
	loom_barrier_lanes(c); /* tasks are written */
	mgws_stow(c, n);
	loom_barrier_lanes(c); /* and their slots may be written again */
	return 1;
}

/* The newest of the backlog into the empty local queue, up to half of it, for they may spawn. */
SCHED_NOINLINE int mgws_unstow(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	struct mgws_level *b = &mgws_keep(c)->backlog;
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

LOOM_FN int mgws_alone_push(struct loom_ctx *c, const struct loom_task *task);

/* Into a queue, for sched_ladder(). */
LOOM_FN int mgws_place(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == mgws_other_kind(c))
		return mgws_spill_other(c, task);
	if (SCHED_SINGLE_LANE(c)) /* the worker's lanes would have to meet to share */
		return !mgws_alone_push(c, task);
	if (sched_push(c, task))
		return 0;
	/* Where sharing fails the public queue is full, too, or thieves still copy where there would be room. */
	if (mgws_share_local(c, sched_lane(c)->count / 2) && sched_push(c, task))
		return 0;
	return !(mgws_stow_half(c) && sched_push(c, task));
}

SCHED_NOINLINE int mgws_push_full(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_ladder(c, task, mgws_place, mgws_spill_any);
}

/* The task that was popped last belongs to another kind of device. From its slot, so that the loop need not load what it
 * does not use; and out of it, for another one may come in exchange. */
SCHED_SLOW int mgws_spill_popped(struct loom_ctx *c)
{
	const struct sched_lane *mine = sched_lane(c);
	struct loom_task t;
	sched_copy_task(&t, &sched_ring(c)[(mine->head + mine->count) & sched_mask(c)]);
	loom_barrier_lanes(c);
	return mgws_spill_other(c, &t);
}

/* A task with a join has ended. What follows the last of them is the next to run, unless queues are full. */
SCHED_SLOW int mgws_push_next(struct loom_ctx *c, loom_ref join)
{
	struct loom_task next;
	if (!sched_lower_join(c, join, &next))
		return 0;
	return sched_push(c, &next) ? 0 : (int)LOOM_OUTLINED(mgws_push_full, c, (const struct loom_task *)&next);
}

/* A task with a priority or an affinity. Where the ring of its priority is full it is like any other. */
SCHED_SLOW int mgws_push_odd(struct loom_ctx *c, const struct loom_task *task)
{
	if (task->affinity == mgws_other_kind(c))
		return mgws_spill_other(c, task);
	return mgws_push_level(c, task) || sched_push(c, task) ? 0 : mgws_push_full(c, task);
}

/* ---- what tasks call ------------------------------------------------------------------------- */

LOOM_FN int mgws_alone_spawn(struct loom_ctx *c, const struct loom_task *task);

/* A task like most. */
LOOM_FN int mgws_spawn_any(struct loom_ctx *c, const struct loom_task *task)
{
#ifdef LOOM_DEVICE_COMPILE /* the CPU has a table for this */
	if (SCHED_SINGLE_LANE(c))
		return mgws_alone_spawn(c, task);
#endif
	sched_lane(c)->spawned++;
	if (SCHED_ODD(task))
		return LOOM_OUTLINED(mgws_push_odd, c, task);
	return sched_push(c, task) ? 0 : LOOM_OUTLINED(mgws_push_full, c, task);
}

#ifdef GPULOOM_DEV_CPU_H
SCHED_NOINLINE int mgws_spawn_rare(struct loom_ctx *c, const struct loom_task *task)
{
	return mgws_spawn_any(c, task);
}

/* Somebody sleeps, and the running task may take long yet. Where nothing is public, what it has made so far is shared at
 * once and not when it ends. */
SCHED_SLOW void mgws_share_early(struct loom_ctx *c)
{
	if (mgws_empty(mgws_known(c), mgws_queue(c)))
		mgws_share_local(c, sched_lane(c)->count - sched_lane(c)->count / 2);
}

LOOM_FN int sched_mgws_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_local *l = sched_local(c);
	if (c->lanes != 1 || SCHED_ODD(task) || !sched_push_one_lane(l, task))
		return mgws_spawn_rare(c, task);
	((struct sched_lane *)(l + 1))->spawned++;
	/* Lanes would have to agree about it, at a price. */
	if (sched_sleepers(mgws_bell(c)))
		mgws_share_early(c);
	return 0;
}
#else
LOOM_FN int sched_mgws_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	return mgws_spawn_any(c, task);
}
#endif

/* Lane 0: too few tasks are public. Ranks that ask pay much for a steal, so it is to bring several. */
#define MGWS_ASKED_TASKS 8u
LOOM_FN int mgws_lacks_public(struct loom_ctx *c)
{
	uint32_t few = mgws_known(c)->mask / 2 < MGWS_ASKED_TASKS ? mgws_known(c)->mask / 2 : MGWS_ASKED_TASKS;
	return mgws_empty(mgws_known(c), mgws_queue(c)) ||
	       (SCHED_CFG(c, rma) && mgws_left(loom_load_relaxed_sys(&mgws_queue(c)->word)) < few);
}

#ifdef GPULOOM_DEV_CPU_H
/* Lane 0, between two tasks and inside long ones: looks now and then what other ranks ask of this one, where the NIC's thread
 * would need this worker's core for that. */
#define MGWS_HELP_NS 20000u
#define MGWS_HELP_WANTED 8u /* how often it is asked inside a task before it looks at the clock */
LOOM_FN uint64_t mgws_help(struct loom_ctx *c)
{
	struct mgws_mine *mine = mgws_mine(c);
	uint64_t took = loom_clock_ns(c) - mine->helped;
	if (took >= MGWS_HELP_NS) {
		(void)LOOM_CALL(trigger, rma, c, (const struct loom_rma *)NULL, (uint64_t *)NULL);
		mine->helped = loom_clock_ns(c);
	}
	return took;
}
#endif

/* A worker in a long task that can be divided asks whether to spawn. One task or more should be public at any time, unless
 * initial ones are unclaimed. Tasks that it has spawned already are shared first. */
LOOM_FN int sched_mgws_wanted(struct loom_ctx *c)
{
	int64_t yes = 0;
#ifdef GPULOOM_DEV_CPU_H
	if (SCHED_CFG(c, noncoherent) && mgws_mail_inside(c))
		return 1;
	if (SCHED_CFG(c, rma) && c->lane == 0 && ++mgws_mine(c)->wanted % MGWS_HELP_WANTED == 0)
		(void)mgws_help(c);
#endif
	if (c->lane == 0) {
		if (loom_stopped(c))
			yes = LOOM_EINTR;
		else if (mgws_lacks_public(c))
			yes = !mgws_initial_left(c);
	}
	yes = (int64_t)loom_from_lane0(c, (uint64_t)yes);
	if (yes > 0 && sched_lane(c)->count) {
		mgws_share_local(c, sched_lane(c)->count);
		yes = 0; /* if there was no room, thieves have just been here */
	}
	return (int)yes;
}

#endif
