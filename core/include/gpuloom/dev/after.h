/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that wait for others: a directed acyclic graph by counters. Device code, included by dev.h.
 *
 * A task that n others come before has a word `pending`, which holds n before the first of them can end. Each of the n calls
 * loom_after() for it when it has written its results. The last of them spawns the task, where it runs itself: what
 * they wrote is seen by the task. No worker waits, and a scheduler sees spawned tasks like any others.
 *
 *   loom_after(c, turns, pending, task)   inside a task function, collective: 0, or what spawn() answers when the run
 *                       was stopped. `turns` is NULL, unless devices are non-coherent (loom_layout.noncoherent)
 *
 * Where devices are non-coherent no two of them can lower the same word by atomic operations. They take turns then, by loads
 * and stores alone. The workload needs a struct loom_onebit_lock per device and for the words `pending` in its block for the
 * stack, in host memory; and for LOOM_ONEBIT_LOCAL_BYTES bytes per device, in the device's memory. All are 0 before a sample, but `pending`. */
#ifndef GPULOOM_DEV_AFTER_H
#define GPULOOM_DEV_AFTER_H

#include "dev.h" /* which ends with this file and trace.h */

/* 1 for the last of those that call it, to all lanes. */
LOOM_FN int loom_last(struct loom_ctx *c, uint64_t *pending)
{
	uint64_t last = 0;
	loom_barrier_lanes(c); /* what the other lanes wrote */
	/* Release: this task's results; acquire: those of the others, for what follows. A worker that finds 1 is the
	 * last one, so the word is not read again and need not be lowered. */
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

#define LOOM_ONEBIT_LOCAL_BYTES 64u /* bytes: a lock among the workers of the device begins the workload's block for it */

/* Lane 0, one worker of a device at a time: waits for the device's turn. 0 when the run was stopped instead. This is the
 * one-bit algorithm of Burns and of Lamport: of two devices that want it the lower number goes first. Every store of 0
 * releases: its reader sees all that was done in earlier turns. */
LOOM_FN int loom_onebit_lock_acquire(struct loom_ctx *c, struct loom_onebit_lock *turn)
{
	uint32_t *mine = &turn[c->device].wants, d;
	LOOM_NO_UNROLL
	for (d = 0; d < c->devices; d++) {
		if (d == 0) {
			loom_store_relaxed_sys(mine, 1u);
			/* Of two devices that do this one at least sees the other's store. */
			loom_fence_seq_cst_sys();
		}
		if (d == c->device || !loom_load_acquire_sys(&turn[d].wants))
			continue;
		if (d < c->device)
			loom_store_release_sys(mine, 0u); /* gives way and starts again */
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
	/* The holder gives the lock back inside the loop: where lanes run tasks of their own in step, none leaves the
	 * loop before the others do. */
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
