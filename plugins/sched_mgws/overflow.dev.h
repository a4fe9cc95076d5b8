/* SPDX-License-Identifier: Apache-2.0 */
/* Overflow: puts a task on a list that all workers share (list.dev.h). Device code. Collective, except for single lanes. */
#ifndef SCHED_MGWS_OVERFLOW_DEV_H
#define SCHED_MGWS_OVERFLOW_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "mailbox.dev.h"
#endif

/* Called after an overflow to list `which`. Wakes sleepers and counts the overflow. */
LOOM_FN void mgws_note_overflow(struct loom_ctx *c, uint32_t which)
{
	/* Wake one sleeper if any sleeper could take the task. If some sleepers could not, because they belong to another rank
	 * or kind of device, wake all. */
	sched_wake(c, mgws_event(c), which == LOOM_ON_ANY && !SCHED_CFG(c, remote_workers) ? 1u : ~0u);
	loom_own_add(c, &sched_local(c)->counters.overflowed, 1);
}

/* A worker's wait for room in a full list for the other kind of device. */
struct mgws_full_wait {
	uint64_t taken, since; /* last value of mgws_list.taken; when the worker first saw it, in ns; 0: not seen yet */
};
#define MGWS_DEADLOCK_NS 10000000000ull

/* Returns whether to stop waiting for room in a full list. A worker never waits for the list LOOM_ON_ANY, or if lists have no
 * slots. For a list of one kind of device it waits until no task was taken from it for MGWS_DEADLOCK_NS. */
LOOM_FN int mgws_is_deadlocked(struct loom_ctx *c, const struct mgws_list *s, uint32_t which,
			       struct mgws_full_wait *jam)
{
	uint64_t taken = loom_load_relaxed_sys(&s->taken), now = loom_clock_ns(c);
	if (which == LOOM_ON_ANY || !SCHED_CFG(c, overflow_list))
		return 1;
	if (!jam->since || taken != jam->taken) {
		jam->taken = taken;
		jam->since = now;
	}
	return now - jam->since > MGWS_DEADLOCK_NS;
}

/* Called while this worker waits for room in the list for the other kind of device. Takes a task from the list for its own
 * kind, if the local queue has room. So two kinds of device cannot wait for each other. If devices are non-coherent, a CPU's
 * worker instead grants tasks of the full list to the other device. */
LOOM_FN void mgws_drain(struct loom_ctx *c)
{
	struct sched_lane *mine = sched_lane(c);
	struct mgws_list *s = &mgws_global(c)->list[mgws_kind(c)];
	uint64_t count = 0;
	if (SCHED_CFG(c, noncoherent)) {
#ifdef GPULOOM_DEV_CPU_H
		mgws_grant_inside_task(c);
#endif
		return;
	}
	if (mine->count <= sched_mask(c))
		count = mgws_lock_filled_list(c, s);
	if (!count)
		return;
	sched_copy_ring(c, sched_ring(c), mine->head + mine->count, sched_mask(c), mgws_list_slots(c, mgws_kind(c)),
			count - 1, ~0ull, 1);
	mine->count++;
	loom_barrier_lanes(c);
	mgws_shrink_list(c, s, count, 1);
}

/* Puts the task on list `which`. Returns 1, or 0 if the worker has stopped waiting for room or the run was stopped. */
LOOM_FN int mgws_try_overflow(struct loom_ctx *c, uint32_t which, const struct loom_task *task)
{
	enum { FAILED, LOCKED, FULL, ROOM };
	struct mgws_list *s = &mgws_global(c)->list[which];
	struct mgws_full_wait wait = {0, 0};
	uint32_t pauses = 1, found = LOCKED;
	LOOM_NO_UNROLL
	while (found == LOCKED) {
		uint64_t at = 0;
		if (c->lane == 0 && mgws_try_lock_list(s)) {
			at = loom_load_relaxed_sys(&s->count);
			if (at < SCHED_CFG(c, overflow_list))
				found = ROOM;
			else
				found = mgws_is_deadlocked(c, s, which, &wait) ? FAILED : FULL;
			if (found != ROOM)
				mgws_unlock_list(s);
		}
		if (c->lane == 0 && found != ROOM && found != FAILED) {
			if (loom_stopped(c))
				found = FAILED;
			else
				sched_pause(c, &pauses);
		}
		found = loom_word_from_lane0(c, found);
		if (found == FULL) {
			mgws_drain(c);
			found = LOCKED;
		}
		if (found != ROOM)
			continue;
		at = loom_from_lane0(c, at);
		sched_copy_one(c, &mgws_list_slots(c, which)[at], task);
		loom_barrier_lanes(c);
		if (c->lane == 0) {
			mgws_call_all(c);
			/* Release: pairs with the acquire in mgws_list_filled(), which precedes a report of idle. */
			loom_store_release_sys(&s->count, at + 1);
			mgws_unlock_list(s);
			mgws_note_overflow(c, which);
		}
	}
	return found == ROOM;
}

/* Does the same as mgws_try_overflow(), for a single lane. Several lanes of a wave may try to lock the list at the same time.
 * The lane that holds the lock unlocks it inside the loop, because lanes that execute in lock-step leave the loop together. */
LOOM_FN int mgws_lane_try_overflow(struct loom_ctx *c, uint32_t which, const struct loom_task *task)
{
	struct mgws_list *s = &mgws_global(c)->list[which];
	struct mgws_full_wait wait = {0, 0};
	int done = 0, there = 0;
	while (!done && !loom_stopped(c)) {
		if (mgws_try_lock_list(s)) {
			uint64_t at = loom_load_relaxed_sys(&s->count);
			there = at < SCHED_CFG(c, overflow_list);
			if (there) {
				sched_copy_task(&mgws_list_slots(c, which)[at], task);
				/* Release: pairs with the acquire in mgws_list_filled(). */
				loom_store_release_sys(&s->count, at + 1);
			}
			done = there || mgws_is_deadlocked(c, s, which, &wait);
			mgws_unlock_list(s);
		}
		if (!done)
			loom_pause(c);
	}
	if (there)
		mgws_note_overflow(c, which);
	return there;
}

/* Puts the task on list `which`. Returns 0, or LOOM_EFULL after it has made the run fail. */
LOOM_FN int mgws_overflow(struct loom_ctx *c, uint32_t which, const struct loom_task *task)
{
	int there = which == LOOM_ON_ANY || SCHED_CFG(c, mixed);
	if (there &&
	    (SCHED_SINGLE_LANE(c) ? mgws_lane_try_overflow(c, which, task) : mgws_try_overflow(c, which, task)))
		return 0;
	if (c->lane == 0 && !loom_stopped(c))
		loom_worker_fail(c, there ? LOOM_EFULL : LOOM_ENOTSUP, SCHED_CFG(c, overflow_list));
	return LOOM_EFULL;
}

/* Overflows a task for which no queue has room. */
SCHED_SLOW int mgws_overflow_any(struct loom_ctx *c, const struct loom_task *task)
{
	return mgws_overflow(c, LOOM_ON_ANY, task);
}

/* Overflows a task that this worker may not run. */
SCHED_SLOW int mgws_overflow_other_kind(struct loom_ctx *c, const struct loom_task *task)
{
	return mgws_overflow(c, mgws_other_kind(c), task);
}

#endif
