/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that wait for other tasks: a directed acyclic graph by counters. This is device code, which dev.h includes.
 *
 * A task with n predecessors has a word `pending`, which must hold n before the first predecessor can end. Each predecessor
 * calls loom_after() when it has written its results. The last predecessor spawns the task on its own worker, and the task sees
 * the results of all predecessors. No worker waits, and a scheduler treats these tasks like any spawned tasks.
 *
 *   loom_after(c, turns, pending, task): called inside a task function; collective. Returns 0, or what spawn() returns
 *      if the run was stopped. If devices are coherent, `turns` is NULL
 *
 * Non-coherent devices (loom_layout.noncoherent) cannot decrement one word by atomic operations. They take turns
 * instead, by loads and stores. The workload then needs the `pending` words and a struct loom_onebit_lock per device, in
 * its block for the stack in host memory. It also needs LOOM_ONEBIT_LOCAL_BYTES bytes in the memory of each device. All
 * of this memory except `pending` must be 0 before a sample. */
#ifndef GPULOOM_DEV_AFTER_H
#define GPULOOM_DEV_AFTER_H

#include "dev.h" /* dev.h includes this file and trace.h at its end */

/* Called by each predecessor. Returns 1 to all lanes if it is the last predecessor, else 0. */
LOOM_FN int loom_last(struct loom_ctx *c, uint64_t *pending)
{
	uint64_t last = 0;
	loom_barrier_lanes(c); /* orders what the other lanes have written before the release below */
	/* Release: publishes the results of this task. Acquire: the successor sees the results of the other
	 * predecessors. A worker that loads 1 runs the last predecessor, so it need not decrement the word. */
	if (c->lane == 0)
		last = LOOM_JOB(loom_load_acquire)(pending) == 1 ||
		       LOOM_JOB(loom_fetch_add_acq_rel)(pending, ~(uint64_t)0) == 1;
	return (int)loom_from_lane0(c, last);
}

/* The lock word of a device, in a cache line of its own. Only that device writes it. */
struct loom_onebit_lock {
	uint32_t wants;
	uint32_t pad[15];
};

/* The workload's block for the device begins with this number of bytes. These bytes contain the lock among the workers
 * of the device. */
#define LOOM_ONEBIT_LOCAL_BYTES 64u

/* The one-bit algorithm of Burns and Lamport. If two devices compete, the device with the lower number goes first. Lane
 * 0 of one worker per device calls this, and waits until it is the turn of the device. Returns 1, or 0 if the run was
 * stopped. Each store of 0 releases what the device did during its turn. */
LOOM_FN int loom_onebit_lock_acquire(struct loom_ctx *c, struct loom_onebit_lock *turn)
{
	uint32_t *mine = &turn[c->device].wants, d;
	LOOM_NO_UNROLL
	for (d = 0; d < c->devices; d++) {
		if (d == 0) {
			loom_store_relaxed_sys(mine, 1u);
			/* If two devices do this at the same time, at least one sees the store of the other. */
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

/* Does what loom_last() does, if devices are non-coherent. */
LOOM_FN int loom_last_noncoherent(struct loom_ctx *c, struct loom_onebit_lock *turn, uint64_t *pending)
{
	uint32_t *lock = (uint32_t *)c->on_device[LOOM_WORKLOAD];
	uint64_t last = 0, left;
	int done = 0;
	loom_barrier_lanes(c);
	/* The lock is released inside the loop, because lanes that run tasks of their own in lockstep leave a loop
	 * together. If the release came after the loop, the lane with the lock would wait for lanes that wait for the
	 * lock. */
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
