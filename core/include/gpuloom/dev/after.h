/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that wait for others: a directed acyclic graph by counters. Device code, included by dev.h.
 *
 * A task with n predecessors has a word `pending`, which holds n before the first of them can end. Each predecessor
 * calls loom_after() when it has written its results. The last one spawns the task on its own worker, and the task sees
 * all their results. No worker waits, and a scheduler handles these tasks like any spawned ones.
 *
 *   loom_after(c, turns, pending, task): inside a task function, collective: returns 0, or what spawn() returns when
 *      the run was stopped. `turns` is NULL, unless devices are non-coherent (loom_layout.noncoherent)
 *
 * Non-coherent devices cannot decrement one word by atomic operations. They take turns by loads and stores instead. The
 * workload then needs, in its block for the stack in host memory, the `pending` words and a struct loom_onebit_lock per
 * device. It also needs LOOM_ONEBIT_LOCAL_BYTES bytes in the memory of each device. All but `pending` must be 0 before
 * a sample. */
#ifndef GPULOOM_DEV_AFTER_H
#define GPULOOM_DEV_AFTER_H

#include "dev.h" /* dev.h ends with this file and trace.h */

/* Returns 1, to all lanes, in the last of the predecessors that call it. */
LOOM_FN int loom_last(struct loom_ctx *c, uint64_t *pending)
{
	uint64_t last = 0;
	loom_barrier_lanes(c); /* orders what the other lanes wrote */
	/* Release: the results of this task. Acquire: those of the other predecessors, for the successor. A worker that
	 * loads 1 is the last one, so the word needs no decrement. */
	if (c->lane == 0)
		last = loom_load_acquire_sys(pending) == 1 ||
		       loom_fetch_add_acq_rel_sys(pending, ~(uint64_t)0) == 1;
	return (int)loom_from_lane0(c, last);
}

/* One line per device; only that device writes it. */
struct loom_onebit_lock {
	uint32_t wants;
	uint32_t pad[15];
};

/* The workload's block for the device begins with so many bytes, a lock among the workers of the device. */
#define LOOM_ONEBIT_LOCAL_BYTES 64u

/* The one-bit algorithm of Burns and Lamport: of two devices that compete, the lower number goes first. Lane 0 of one
 * worker per device calls this, and waits for the turn of the device. Returns 0 when the run was stopped. Each store of
 * 0 releases what was done in earlier turns. */
LOOM_FN int loom_onebit_lock_acquire(struct loom_ctx *c, struct loom_onebit_lock *turn)
{
	uint32_t *mine = &turn[c->device].wants, d;
	LOOM_NO_UNROLL
	for (d = 0; d < c->devices; d++) {
		if (d == 0) {
			loom_store_relaxed_sys(mine, 1u);
			/* Of two devices that do this, at least one sees the store of the other. */
			loom_fence_seq_cst_sys();
		}
		if (d == c->device || !loom_load_acquire_sys(&turn[d].wants))
			continue;
		if (d < c->device)
			loom_store_release_sys(mine, 0u); /* gives way and tries again */
		while (loom_load_acquire_sys(&turn[d].wants)) {
			if (loom_stopped(c)) {
				loom_store_release_sys(mine, 0u);
				return 0;
			}
			loom_pause(c);
		}
		if (d < c->device)
			d = ~0u;
	}
	return 1;
}

/* loom_last() where devices are non-coherent. */
LOOM_FN int loom_last_noncoherent(struct loom_ctx *c, struct loom_onebit_lock *turn, uint64_t *pending)
{
	uint32_t *lock = (uint32_t *)c->on_device[LOOM_WORKLOAD];
	uint64_t last = 0, left;
	int done = 0;
	loom_barrier_lanes(c);
	/* Holders release the lock inside the loop, which lanes that run tasks of their own in lockstep leave
	 * together. */
	while (c->lane == 0 && !done && !loom_stopped(c)) {
		uint32_t open = 0;
		done = loom_cas_acq_rel_dev(lock, &open, 1u);
		if (!done) {
			loom_pause(c);
			continue;
		}
		if (loom_onebit_lock_acquire(c, turn)) {
			left = loom_load_relaxed_sys(pending) - 1;
			loom_store_relaxed_sys(pending, left);
			last = !left;
			loom_store_release_sys(&turn[c->device].wants, 0u);
		}
		loom_store_release_dev(lock, 0u);
	}
	return (int)loom_from_lane0(c, last);
}

#define loom_after(c, turns, pending, task)                                                        \
	(((turns) ? loom_last_noncoherent(c, turns, pending) : loom_last(c, pending)) ?                  \
		 LOOM_CALL(sched, spawn, c, task) :                                                \
		 0)

#endif
