/* SPDX-License-Identifier: Apache-2.0 */
/* Schedulers, which distribute tasks to workers. */
#ifndef GPULOOM_SCHED_H
#define GPULOOM_SCHED_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

struct loom_sched_ops {
	LOOM_POLICY_OPS
	/* After a sample that did not end in time: writes to `text`, at most `size` bytes with the NUL, where memory
	 * shows its tasks. Workers may still run. NULL: no text. */
	void (*stuck)(void *self, const struct loom_layout *layout, const struct loom_view *view, char *text,
		      size_t size);
};

/* Device half. Every op is collective over the lanes of a worker and runs on that worker. */
struct loom_sched_dev {
	size_t size;
	/* The loop of a worker: runs tasks until the termination detector says done or the run is stopped. Workers run
	 * each task of the initial set and each spawned task exactly once. */
	void (*run)(struct loom_ctx *c);
	/* Inside a task function: creates a task from a copy of the record, and may run it in place. Returns 0, or
	 * LOOM_EFULL after failing the run. */
	int (*spawn)(struct loom_ctx *c, const struct loom_task *task);
	/* Lazy task creation: a task function with divisible work calls this now and then to learn whether other
	 * workers need tasks. The scheduler may first give away tasks of this worker. 1: spawn some, the largest
	 * pieces, and call again. 0: continue. Negative: the run was stopped, return. NULL: spawn all tasks at once. */
	int (*wanted)(struct loom_ctx *c);
};

#ifdef __cplusplus
}
#endif
#endif
