/* SPDX-License-Identifier: Apache-2.0 */
/* The overflow lists, which all workers share. A list is a stack of bounded size with a lock, and is rarely used. Device
 * code; collective.
 *
 *   LOOM_ON_ANY             tasks for which no queue has room, and which are nested too deep to be run in place
 *   LOOM_ON_CPU, _GPU       tasks that the worker must not run, because they are for the other kind of device
 *
 * Three rules keep termination detection correct. A worker puts tasks on a list only while it runs a task. Before a worker
 * reports idle, it refills from LOOM_ON_ANY; it does not report idle while the list for the other kind of device holds tasks.
 * An idle worker that takes tasks calls busy() before it lowers `count`. So if a worker finds the lists empty, the worker that
 * emptied them has already called busy(). overflow.dev.h adds tasks. Model: tests/models/lists.pml. */
#ifndef SCHED_MGWS_LIST_DEV_H
#define SCHED_MGWS_LIST_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "state.dev.h"
#endif

LOOM_FN void mgws_unlock_list(struct mgws_list *s)
{
	loom_store_release_sys(&s->lock, 0u);
}

LOOM_FN int mgws_try_lock_list(struct mgws_list *s)
{
	uint32_t open = 0;
	/* Acquire: pairs with the release in mgws_unlock_list(). */
	return loom_cas_acq_rel_sys(&s->lock, &open, 1u);
}

/* Called by lane 0. Locks the list and returns 1, or returns 0 if the run was stopped. */
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

/* Called by lane 0. Returns whether the list holds tasks. Acquire: pairs with the release of the lowered count in
 * mgws_shrink_list(). So if the list is empty, the worker that took its last tasks has called busy(). */
LOOM_FN int mgws_list_filled(const struct mgws_list *s)
{
	return loom_load_acquire_sys(&s->count) != 0;
}

/* Locks the list if it holds tasks. Returns the number of its tasks; 0: the list is empty and not locked. */
LOOM_FN uint64_t mgws_lock_filled_list(struct loom_ctx *c, struct mgws_list *s)
{
	uint64_t count = 0;
	if (c->lane == 0 && mgws_list_filled(s) && mgws_lock_list(c, s)) {
		count = loom_load_relaxed_sys(&s->count);
		if (!count)
			mgws_unlock_list(s);
	}
	return loom_from_lane0(c, count);
}

/* Removes the last `n` of `count` tasks and unlocks the list. The caller has copied these tasks, then passed a barrier. */
LOOM_FN void mgws_shrink_list(struct loom_ctx *c, struct mgws_list *s, uint64_t count, uint64_t n)
{
	if (c->lane == 0) {
		loom_fetch_add_relaxed_sys(&s->taken, n);
		loom_store_release_sys(&s->count, count - n);
		mgws_unlock_list(s);
		sched_local(c)->counters.refilled += n;
	}
}

/* Called by lane 0. Returns the index of a list that holds tasks for this worker, or MGWS_LISTS. Non-coherent devices have
 * no tasks on the list for their own kind, because such tasks come through mailboxes. */
LOOM_FN uint32_t mgws_list_to_take(const struct loom_ctx *c)
{
	const struct mgws_list *list = mgws_global(c)->list;
	uint32_t kind = mgws_kind(c);
	if (mgws_list_filled(&list[LOOM_ON_ANY]))
		return LOOM_ON_ANY;
	return SCHED_CFG(c, mixed) && !SCHED_CFG(c, noncoherent) && mgws_list_filled(&list[kind]) ? kind : MGWS_LISTS;
}

/* Returns to lane 0, and waits for no memory before the value is used, whether the list for all kinds probably holds tasks. */
LOOM_FN uint64_t mgws_glance(const struct loom_ctx *c)
{
	return c->lane == 0 ? loom_load_relaxed_sys(&mgws_global(c)->list[LOOM_ON_ANY].count) : 0;
}

/* Called by lane 0. Returns whether the list for the other kind of device holds tasks. While that list holds tasks, this worker
 * must not report idle. */
LOOM_FN int mgws_others_listed(const struct loom_ctx *c)
{
	return SCHED_CFG(c, mixed) && mgws_list_filled(&mgws_global(c)->list[mgws_other_kind(c)]);
}

/* Moves tasks from a list into the empty local queue, and fills at most half of it. Returns the number of tasks. idle: 1:
 * this worker has reported idle. */
LOOM_FN uint32_t mgws_list_refill(struct loom_ctx *c, int idle)
{
	struct sched_lane *mine = sched_lane(c);
	uint32_t mask = sched_mask(c), which;
	which = loom_word_from_lane0(c, c->lane == 0 ? mgws_list_to_take(c) : MGWS_LISTS);
	if (which == MGWS_LISTS)
		return 0;
	struct mgws_list *s = &mgws_global(c)->list[which];
	uint64_t count = mgws_lock_filled_list(c, s), n = (mask + 1) / 2;
	if (!count)
		return 0;
	n = n < count ? n : count;
	sched_copy_ring(c, sched_ring(c), mine->head, mask, mgws_list_slots(c, which), count - n, ~0ull, (uint32_t)n);
	mine->count = (uint32_t)n;
	loom_barrier_lanes(c);
	if (idle)
		LOOM_CALL(term, busy, c);
	mgws_shrink_list(c, s, count, n);
	return (uint32_t)n;
}

#endif
