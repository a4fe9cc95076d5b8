/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that all workers share, and what else they share. Bounded stacks behind a lock: they are not meant to be fast,
 * only to keep a run alive. Device code; collective.
 *
 *   LOOM_ON_ANY             tasks for which their spawner found no room, and which are nested too deep to be run in place
 *   LOOM_ON_CPU, _GPU       tasks whose affinity forbids them to the worker that came by them
 *
 * Termination stays right. A worker spills only while it runs a task. It takes back from LOOM_ON_ANY before it reports
 * idle, and nobody reports idle while a list that he may not take from holds tasks. An idle worker that takes tasks
 * calls busy() before it lowers `count`. So a worker that finds the lists empty and reports idle does so after busy()
 * of the worker that emptied them. */
#ifndef SCHED_MGWS_SPILL_DEV_H
#define SCHED_MGWS_SPILL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sched/queue.dev.h"
#endif

struct mgws_list {
	uint32_t lock;
	uint32_t pad0[15];
	uint64_t count; /* written under the lock, looked at without */
	uint64_t taken; /* tasks ever taken: raises everybody's `stolen_out` */
	uint64_t pad1[6];
};

#define MGWS_LISTS 3u /* by LOOM_ON_* */

/* How far away another rank is: on the same host and NUMA node, on the same host, on another host. */
enum { MGWS_SAME_NODE, MGWS_SAME_HOST, MGWS_OTHER_HOST };

/* A worker of another rank: its queue and its rank's block, as addresses or, where one asks, as references. */
struct mgws_far {
	uint64_t queue, global;
	uint32_t rank;
	uint32_t first;	  /* of its rank's workers, as a victim ... */
	uint32_t used_up; /* ... whose entry says that nothing is left of the rank's range */
	uint32_t pad;
};

/* What workers share: the scheduler's global block. The slots of the lists follow, cfg.spill for each; the last two
 * lists have slots only in a stack with several kinds of device. Where devices are non-coherent each has one in its own block,
 * and the global one serves for the options and for the mail behind it. Where ranks share tasks the bell and `next` of
 * rank 0 are everybody's, unless one must ask for other ranks' memory: then each rank has a bell and a range of its own.
 * Behind the lists stands where the other ranks' workers are: cfg.far times struct mgws_far, the nearest first. */
struct mgws_global {
	struct sched_common common;
	uint64_t next;  /* of the initial set */
	uint64_t range;  /* apart: the device's part of it: see mail.dev.h. Ranks that ask: the rank's */
	uint64_t ranges; /* how many have come by mail */
	uint64_t job;	 /* rank 0's block, as this rank reaches it; 0: this one */
	uint32_t within[MGWS_OTHER_HOST]; /* so many workers of other ranks are at that distance or nearer */
	uint64_t pad[3];
	struct mgws_list list[MGWS_LISTS];
};

/* Begins the device's block: constant. */
struct mgws_site {
	uint32_t kind;  /* LOOM_ON_CPU or LOOM_ON_GPU */
	uint32_t other; /* an affinity that excludes this device */
	uint32_t pad[14];
};

LOOM_FN const struct mgws_site *mgws_site(const struct loom_ctx *c)
{
	return (const struct mgws_site *)c->on_device[LOOM_SCHED];
}

/* LOOM_ON_*: this device's kind, and an affinity that excludes it. */
LOOM_FN uint32_t mgws_kind(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)c;
	return LOOM_ON_GPU;
#else
	return mgws_site(c)->kind;
#endif
}

LOOM_FN uint32_t mgws_other_kind(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)c;
	return LOOM_ON_CPU;
#else
	return mgws_site(c)->other;
#endif
}

LOOM_FN struct mgws_global *mgws_find_global(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent) ? (struct mgws_global *)((char *)c->on_device[LOOM_SCHED] +
								   sizeof(struct mgws_site)) :
				     (struct mgws_global *)c->global[LOOM_SCHED];
}

#ifdef SCHED_CONSTANTS
#define mgws_global(c) mgws_find_global(c)
#else
LOOM_FN struct mgws_global *mgws_global(const struct loom_ctx *c)
{
	return (struct mgws_global *)sched_local(c)->shared;
}
#endif

/* Workers of other ranks. */
LOOM_FN uint32_t mgws_far_count(const struct loom_ctx *c)
{
	return SCHED_CFG(c, far) ? sched_common(c)->cfg.far : 0;
}

/* What the workers of all ranks share that run the same tasks. */
#if defined(SCHED_CONSTANTS) && !(SCHED_IS_far && !SCHED_IS_rma)
#define mgws_job(c) mgws_find_global(c)
#elif defined(SCHED_CONSTANTS)
LOOM_FN struct mgws_global *mgws_job(const struct loom_ctx *c)
{
	struct mgws_global *own = mgws_find_global(c);
	return own->job ? (struct mgws_global *)(uintptr_t)own->job : own;
}
#else
LOOM_FN struct mgws_global *mgws_job(const struct loom_ctx *c)
{
	return (struct mgws_global *)sched_local(c)->job;
}
#endif
#define mgws_bell(c) (&mgws_job(c)->common.bell)

LOOM_FN struct loom_task *mgws_list_slots(const struct loom_ctx *c, uint32_t which)
{
	return (struct loom_task *)(mgws_global(c) + 1) + which * SCHED_CFG(c, spill);
}

LOOM_FN void mgws_unlock_list(struct mgws_list *s)
{
	loom_store_release_sys(&s->lock, 0u);
}

LOOM_FN int mgws_try_lock_list(struct mgws_list *s)
{
	uint32_t open = 0;
	/* Acquire: pairs with the release in unlock. */
	return loom_cas_acq_rel_sys(&s->lock, &open, 1u);
}

/* Lane 0. 0 when the run was stopped instead. */
LOOM_FN int mgws_lock_list(struct loom_ctx *c, struct mgws_list *s)
{
	uint32_t pauses = 1;
	while (!mgws_try_lock_list(s)) {
		if (loom_stopped(c))
			return 0;
		sched_pause(c, &pauses);
	}
	return 1;
}

/* A list was lengthened. */
LOOM_FN void mgws_note_spilled(struct loom_ctx *c, uint32_t which)
{
	/* One of another rank could do nothing about it. */
	sched_wake(c, mgws_bell(c), which == LOOM_ON_ANY && !SCHED_CFG(c, far) ? 1u : ~0u);
	loom_own_add(c, &sched_local(c)->tally.spilled, 1);
}

/* A full list of tasks for others, as one who waits for room has seen it. */
struct mgws_jam {
	uint64_t taken, since;
};
#define MGWS_PATIENCE_NS 10000000000ull

/* The list is full. Those whose tasks it holds come when they have nothing else: 0, unless there is none to wait for, or
 * they have not come for long. */
LOOM_FN int mgws_is_hopeless(struct loom_ctx *c, const struct mgws_list *s, uint32_t which, struct mgws_jam *jam)
{
	uint64_t taken = loom_load_relaxed_sys(&s->taken), now = loom_clock_ns(c);
	if (which == LOOM_ON_ANY || !SCHED_CFG(c, spill))
		return 1;
	if (!jam->since || taken != jam->taken) {
		jam->taken = taken;
		jam->since = now;
	}
	return now - jam->since > MGWS_PATIENCE_NS;
}

LOOM_FN void mgws_relieve(struct loom_ctx *c);

/* 1, or 0 when the list is full or the run was stopped. */
LOOM_FN int mgws_try_spill(struct loom_ctx *c, uint32_t which, const struct loom_task *task)
{
	enum { FULL, HELD, JAMMED, OPEN };
	struct mgws_list *s = &mgws_global(c)->list[which];
	struct mgws_jam jam = {0, 0};
	uint32_t pauses = 1, found = HELD;
	LOOM_NO_UNROLL
	while (found == HELD) {
		uint64_t at = 0;
		if (c->lane == 0 && mgws_try_lock_list(s)) {
			at = loom_load_relaxed_sys(&s->count);
			found = at < SCHED_CFG(c, spill)		? OPEN :
				mgws_is_hopeless(c, s, which, &jam) ? FULL :
									JAMMED;
			if (found != OPEN)
				mgws_unlock_list(s);
		}
		if (c->lane == 0 && found != OPEN && found != FULL) {
			if (loom_stopped(c))
				found = FULL;
			else
				sched_pause(c, &pauses);
		}
		found = loom_word_from_lane0(c, found);
		if (found == JAMMED) {
			mgws_relieve(c);
			found = HELD;
		}
		if (found != OPEN)
			continue;
		at = loom_from_lane0(c, at);
		sched_copy_one(c, &mgws_list_slots(c, which)[at], task);
		loom_barrier_lanes(c);
		if (c->lane == 0) {
			/* Release: pairs with the acquire of who looks before it reports idle. */
			loom_store_release_sys(&s->count, at + 1);
			mgws_unlock_list(s);
			mgws_note_spilled(c, which);
		}
	}
	return found == OPEN;
}

/* The same by lanes that are alone, of which several may want the lock at the same time. The holder gives it back inside
 * the loop: where lanes run in step, it could not leave the loop before the others do. */
LOOM_FN int mgws_alone_try_spill(struct loom_ctx *c, uint32_t which, const struct loom_task *task)
{
	struct mgws_list *s = &mgws_global(c)->list[which];
	struct mgws_jam jam = {0, 0};
	int done = 0, there = 0;
	while (!done && !loom_stopped(c)) {
		if (mgws_try_lock_list(s)) {
			uint64_t at = loom_load_relaxed_sys(&s->count);
			there = at < SCHED_CFG(c, spill);
			if (there) {
				sched_copy_task(&mgws_list_slots(c, which)[at], task);
				/* As above. */
				loom_store_release_sys(&s->count, at + 1);
			}
			done = there || mgws_is_hopeless(c, s, which, &jam);
			mgws_unlock_list(s);
		}
		if (!done)
			loom_pause(c);
	}
	if (there)
		mgws_note_spilled(c, which);
	return there;
}

/* 0, or LOOM_EFULL after the run was failed. */
LOOM_FN int mgws_spill(struct loom_ctx *c, uint32_t which, const struct loom_task *task)
{
	int there = which == LOOM_ON_ANY || SCHED_CFG(c, mixed);
	if (there && (SCHED_SINGLE_LANE(c) ? mgws_alone_try_spill(c, which, task) : mgws_try_spill(c, which, task)))
		return 0;
	if (c->lane == 0 && !loom_stopped(c))
		loom_worker_fail(c, there ? LOOM_EFULL : LOOM_ENOTSUP, SCHED_CFG(c, spill));
	return LOOM_EFULL;
}

/* A task that this worker has no place for. */
SCHED_SLOW int mgws_spill_any(struct loom_ctx *c, const struct loom_task *task)
{
	return mgws_spill(c, LOOM_ON_ANY, task);
}

/* A task that this worker may not run. */
SCHED_SLOW int mgws_spill_other(struct loom_ctx *c, const struct loom_task *task)
{
	return mgws_spill(c, mgws_other_kind(c), task);
}

/* Lane 0: the list holds tasks. Acquire: pairs with the release of the lowered count in close_list(). An empty list so
 * tells that busy() was called for its last tasks. */
LOOM_FN int mgws_list_filled(const struct mgws_list *s)
{
	return loom_load_acquire_sys(&s->count) != 0;
}

/* Collective: locks the list if it holds tasks; how many. 0: it is not locked. */
LOOM_FN uint64_t mgws_open_list(struct loom_ctx *c, struct mgws_list *s)
{
	uint64_t count = 0;
	if (c->lane == 0 && mgws_list_filled(s) && mgws_lock_list(c, s)) {
		count = loom_load_relaxed_sys(&s->count);
		if (!count)
			mgws_unlock_list(s);
	}
	return loom_from_lane0(c, count);
}

/* `n` tasks of the open list were copied, and a barrier has been passed since. */
LOOM_FN void mgws_close_list(struct loom_ctx *c, struct mgws_list *s, uint64_t count, uint64_t n)
{
	if (c->lane == 0) {
		loom_fetch_add_relaxed_sys(&s->taken, n);
		loom_store_release_sys(&s->count, count - n);
		mgws_unlock_list(s);
		sched_local(c)->tally.unspilled += n;
	}
}

/* Lane 0: the lists that this worker may take from hold something. Where devices are non-coherent, tasks for a kind of device
 * come by mail instead. */
LOOM_FN uint32_t mgws_filled_for_us(const struct loom_ctx *c)
{
	const struct mgws_list *list = mgws_global(c)->list;
	uint32_t kind = mgws_kind(c);
	if (mgws_list_filled(&list[LOOM_ON_ANY]))
		return LOOM_ON_ANY;
	return SCHED_CFG(c, mixed) && !SCHED_CFG(c, noncoherent) && mgws_list_filled(&list[kind]) ? kind : MGWS_LISTS;
}

/* Lane 0: a list that this worker may not take from holds something. It must not report idle. */
LOOM_FN int mgws_filled_for_others(const struct loom_ctx *c)
{
	return SCHED_CFG(c, mixed) && mgws_list_filled(&mgws_global(c)->list[mgws_other_kind(c)]);
}

/* While this worker waits for room in the others' list it takes a task from its own kind's, if it has room: so two kinds
 * cannot wait for each other. Where devices are non-coherent, a CPU's workers also carry the mail that empties the list. */
#ifdef GPULOOM_DEV_CPU_H
LOOM_FN int mgws_mail_inside(struct loom_ctx *c);
#endif
LOOM_FN void mgws_relieve(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	struct mgws_list *s = &mgws_global(c)->list[mgws_kind(c)];
	uint64_t count = 0;
	if (SCHED_CFG(c, noncoherent)) {
#ifdef GPULOOM_DEV_CPU_H
		mgws_mail_inside(c);
#endif
		return;
	}
	if (mine->count <= sched_mask(c))
		count = mgws_open_list(c, s);
	if (!count)
		return;
	sched_copy_ring(c, sched_ring(c), mine->head + mine->count, sched_mask(c), mgws_list_slots(c, mgws_kind(c)), count - 1,
			~0ull, 1);
	mine->count++;
	loom_barrier_lanes(c);
	mgws_close_list(c, s, count, 1);
}

/* Takes from a list that this worker may take from, up to half a local queue, into the empty local queue; how many. */
LOOM_FN uint32_t mgws_unspill(struct loom_ctx *c, int idle)
{
	struct sched_lane *mine = sched_lane(c);
	uint32_t mask = sched_mask(c), which;
	which = loom_word_from_lane0(c, c->lane == 0 ? mgws_filled_for_us(c) : MGWS_LISTS);
	if (which == MGWS_LISTS)
		return 0;
	struct mgws_list *s = &mgws_global(c)->list[which];
	uint64_t count = mgws_open_list(c, s), n = (mask + 1) / 2;
	if (!count)
		return 0;
	n = n < count ? n : count;
	sched_copy_ring(c, sched_ring(c), mine->head, mask, mgws_list_slots(c, which), count - n, ~0ull, (uint32_t)n);
	mine->count = (uint32_t)n;
	loom_barrier_lanes(c);
	if (idle)
		LOOM_CALL(term, busy, c);
	mgws_close_list(c, s, count, n);
	return (uint32_t)n;
}

#endif
