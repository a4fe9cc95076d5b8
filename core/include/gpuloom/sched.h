/* SPDX-License-Identifier: Apache-2.0 */
/* Schedulers: how tasks reach workers. */
#ifndef GPULOOM_SCHED_H
#define GPULOOM_SCHED_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

struct loom_sched_ops {
	LOOM_POLICY_OPS
	/* Says in *err what a worker's failure (loom_worker_fail: code, info) means and what to do;
	 * returns `code`, or 0 when it is none of this scheduler's. NULL: the core words it. */
	int (*explain)(void *self, uint32_t worker, int code, uint64_t info,
		       struct loom_error *err);
	/* Writes what is constant under the options as #define lines, NUL-terminated. They stand in front of the
	 * device code of a program for GPUs. Asked once, before the programs are composed. 0, or an error.
	 * NULL: nothing is constant. */
	int (*constants)(void *self, const struct loom_layout *layout, char *text, size_t room,
			 struct loom_error *err);
	/* A sample did not end in time: writes to `text` (at most `size` bytes, 0 included) where its tasks
	 * are, as far as memory tells. Workers may still run. NULL: nothing is said. */
	void (*stuck)(void *self, const struct loom_layout *layout, const struct loom_view *view, char *text,
		      size_t size);
	/* Ranks share tasks (loom_layout.ranks), and all have the same initial set, which they run once together:
	 * remote[r] are this scheduler's blocks in rank r; that of this rank is empty. Once, after start() and before
	 * workers are launched, on all ranks: it may allgather. `remote` is valid until destroy(). NULL: this scheduler
	 * keeps tasks in their rank, and a conf that shares them is refused. */
	int (*connect)(void *self, const struct loom_layout *layout, const struct loom_remote_blocks *remote,
		    struct loom_error *err);
};

/* Device half. Every op is collective over the lanes of a worker and runs on that worker. */
struct loom_sched_dev {
	size_t size;
	/* The worker's loop: runs tasks until the termination detector says done or the run is
	 * stopped. Each task of the initial set and each spawned task is run exactly once. */
	void (*run)(struct loom_ctx *c);
	/* Called inside a task function: makes a task. May run it in place. 0, or LOOM_EFULL after
	 * the run was failed. The record is copied: it need not outlive the call. */
	int (*spawn)(struct loom_ctx *c, const struct loom_task *task);
	/* Lazy task creation: a task function that could be divided keeps its work to itself, and asks now and then
	 * whether other workers need tasks. The scheduler may first give away tasks that this worker holds.
	 * 1: spawn some, the largest pieces, and ask again. 0: go on. Negative: the run was stopped, return.
	 * NULL: this scheduler never says; make all tasks at once. */
	int (*wanted)(struct loom_ctx *c);
};

#ifdef __cplusplus
}
#endif
#endif
