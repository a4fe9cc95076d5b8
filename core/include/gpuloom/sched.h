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
	/* A sample did not end in time: writes to `text` (at most `size` bytes, 0 included) where its tasks
	 * are, as far as memory tells. Workers may still run. NULL: no text. */
	void (*stuck)(void *self, const struct loom_layout *layout, const struct loom_view *view, char *text,
		      size_t size);
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
	/* Lazy task creation: a task function that could be divided keeps its work to itself, and calls this now and then
	 * to find out whether other workers need tasks. The scheduler may first give away tasks that this worker holds.
	 * 1: spawn some, the largest pieces, and call again. 0: go on. Negative: the run was stopped, return.
	 * NULL: not supported; spawn all tasks at once. */
	int (*wanted)(struct loom_ctx *c);
};

#ifdef __cplusplus
}
#endif
#endif
