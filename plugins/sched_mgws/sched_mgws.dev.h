/* SPDX-License-Identifier: Apache-2.0 */
/* Work stealing after the MGWS thesis (4.2, 5.1): a worker, from the start of a sample to its end. Device code,
 * collective.
 *
 * A worker runs tasks in this order: its local queue, its backlog, its block of the initial set; its public queue, the
 * overflow list, a new block of the initial set; stolen tasks. With
 * granularity = lane the new block comes before the public queue and the overflow list. If the public queue is empty and the
 * worker holds at least two tasks, it publishes half of these tasks. */
#ifndef SCHED_MGWS_DEV_H
#define SCHED_MGWS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "idle.dev.h"
#endif

#ifdef GPULOOM_DEV_CPU_H
LOOM_FN void mgws_clear(struct loom_ctx *c)
{
	const struct mgws_lane none = {{0, 0, 0, 0}, {0, 0}};
	struct mgws_worker fresh = {};
	*mgws_lane(c) = none;
	if (c->lane != 0)
		return;
	*mgws_worker(c) = fresh;
	for (uint32_t i = 0; i < MGWS_BITS_BYTES(c->workers + mgws_remote_count(c)) / 8; i++)
		mgws_bits(c)[i] = 0;
}
#endif

LOOM_FN int mgws_begin(struct loom_ctx *c)
{
	if (MGWS_BEGUN(c))
		return 0;
	sched_start(c);
#ifdef GPULOOM_DEV_CPU_H
	mgws_clear(c);
#endif
	if (c->lane == 0) {
		struct mgws_worker *mine = mgws_worker(c);
		mine->polled = c->device;
		struct mgws_global *g = mgws_find_global(c);
		sched_local(c)->global = g;
		sched_local(c)->job = SCHED_CFG(c, remote_workers) && g->job ? (void *)g->job : (void *)g;
		mine->q = (struct mgws_queue *)c->own[LOOM_SCHED];
		mine->meta = &mine->own;
		mine->own.mask = SCHED_CFG(c, public_queue) - 1;
		mine->own.word = MGWS_NO_WORD;
		if (SCHED_CFG(c, remote_workers))
			mine->neighbour = c->device;
		mgws_join_owners(c);
	}
	loom_barrier_lanes(c);
	return 0;
}

/* Stores metadata and counters of the worker's scratchpad memory into its queue, where sched_mgws_collect() reads them. */
LOOM_FN void mgws_leave_results(struct loom_ctx *c)
{
	struct mgws_meta *meta = mgws_meta(c);
	struct mgws_queue *q = mgws_queue(c);
	if (mgws_sole_owner(c)) {
		mgws_close_epoch(meta, q); /* an epoch is still open if the run was stopped */
		q->meta = *meta;
	}
	if (SCHED_CFG(c, remote_workers)) {
		q->remote_steals = mgws_worker(c)->remote_steals;
		q->remote_tasks = mgws_worker(c)->remote_tasks;
		q->host_steals = mgws_worker(c)->host_steals;
	}
	/* Of several owners, only the leader counts the tasks stolen from the queue. The leader waits for the trylock,
	 * because another owner may hold the trylock while that owner finds the queue empty. */
	if (q == (struct mgws_queue *)c->own[LOOM_SCHED]) {
		int locked = mgws_try_lock_queue(c, q);
		while (!locked && !loom_stopped(c))
			locked = mgws_try_lock_queue(c, q);
		if (locked) {
			sched_local(c)->counters.stolen_out += q->meta.started[0] + q->meta.started[1];
			mgws_unlock_queue(c, &q->meta, q);
		}
	}
}

LOOM_FN int mgws_end(struct loom_ctx *c, uint64_t ran)
{
	if (c->lane == 0)
		mgws_leave_results(c);
	sched_finish(c, ran);
#ifdef GPULOOM_DEV_CPU_H
	if (SCHED_CFG(c, rma) && c->lane == 0) { /* tells the NIC's thread that this worker takes no more of its steps */
		uint64_t leaves;
		(void)LOOM_CALL(trigger, rma, c, (const struct loom_rma *)NULL, &leaves);
	}
#endif
	return 0;
}

/* For a worker whose local queue and block are empty. Returns 1 if it found tasks; 0 if no task is left, or if the run was
 * stopped. */
LOOM_FN int mgws_find_work(struct loom_ctx *c)
{
#ifdef GPULOOM_DEV_CPU_H
	return mgws_acquire(c, 0) || mgws_list_refill(c, 0) || mgws_claim(c, 0) || mgws_search_for_work(c);
#else
	/* The claim does not wait for the load of the list's length. Tasks of the list then run before those of the block. A claim into
	 * the local queue comes after the list. */
	const int first = !SCHED_CFG(c, mixed) && SCHED_CFG(c, claim) != MGWS_QUEUES;
	if (mgws_acquire(c, 0))
		return 1;
	uint64_t listed = first ? mgws_glance(c) : 1;
	int some = first && mgws_claim(c, 0);
	if (loom_from_lane0(c, listed))
		some |= mgws_list_refill(c, 0) != 0;
	return some || (!first && mgws_claim(c, 0)) || mgws_search_for_work(c);
#endif
}

/* GPUs have the code for small samples only in programs that use it. */
#if !defined(LOOM_DEVICE_COMPILE) || defined(LOOM_GPU_QUICK)
LOOM_FN uint64_t sched_mgws_small(struct loom_ctx *c, uint32_t go, uint32_t all, const void *initial)
{
	LOOM_OUTLINED_COLLECTIVE(mgws_begin, c);
	struct sched_local *l = sched_local(c);
	struct mgws_block *b = &mgws_lane(c)->block; /* mgws_begin() determines its address */
	uint64_t slot = c->worker - c->first, ran = 0, n = 0;
	const struct loom_task *usual = c->initial;
	c->initial = (const struct loom_task *)initial;
	b->next = c->count == 1 ? 0 : slot < all ? slot : all;
	b->end = c->count == 1 || slot >= all ? all : slot + 1;
	if (c->lane == 0) {
		b->claimed = MGWS_ALL;
		mgws_worker(c)->small = go;
	}
	mgws_work(c, &ran);
	c->initial = usual;
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		l->counters.executed += ran;
		n = l->counters.executed - sched_lane(c)->spawned - l->counters.spawned;
		n = loom_stopped(c) ? 0 : n; /* the sample is an error, and this worker may have left spawned tasks */
		n = MGWS_SMALL(c) ? LOOM_SMALL_LEFT | (uint32_t)n : 0;
		MGWS_BEGUN(c) = 1;
	}
	return loom_from_lane0(c, n);
}
#endif

LOOM_FN void sched_mgws_run(struct loom_ctx *c)
{
	uint64_t ran = 0;
	LOOM_OUTLINED_COLLECTIVE(mgws_begin, c);
	if (mgws_is_proxy(c)) {
		LOOM_OUTLINED_COLLECTIVE(mgws_proxy, c);
	} else if (SCHED_GRANULARITY(c) == SCHED_LANE && SCHED_SEVERAL(c)) {
		while (mgws_work_lanes(c, &ran) && LOOM_OUTLINED_COLLECTIVE(mgws_find_work, c))
			;
	} else {
		while (mgws_work(c, &ran) && LOOM_OUTLINED_COLLECTIVE(mgws_find_work, c))
			;
	}
	LOOM_OUTLINED_COLLECTIVE(mgws_end, c, ran);
}

#endif
