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
	/* Called after a sample that did not end in time. Writes to `text`, of `size` bytes with the NUL, where the
	 * tasks are, as the policy's blocks say. Workers may still run. NULL: no text. */
	void (*stuck)(void *self, const struct loom_layout *layout, const struct loom_view *view, char *text,
		      size_t size);
};

/* Device half. Every op is collective over the lanes of a worker, and runs on that worker. */
struct loom_sched_dev {
	size_t size;
	/* The loop of a worker. It runs tasks until the termination detector says that all work is done, or the run is
	 * stopped. Together, the workers run each initial task and each spawned task exactly once. When a task with a
	 * `join` has ended, the scheduler decrements `pending` of the record (loom_last() of dev/after.h). If `pending`
	 * is now 0, the scheduler runs a copy of `next`, which counts as a spawned task of this worker. The same holds
	 * for tasks that run inside spawn(). A task runs only on devices that its `affinity` allows. If no such device
	 * can get the task, the scheduler ends the run with LOOM_ENOTSUP. */
	void (*run)(struct loom_ctx *c);
	/* Called inside a task function. Creates a task from a copy of the record, and may run it at once. Returns 0,
	 * or ends the run with an error and returns LOOM_EFULL. */
	int (*spawn)(struct loom_ctx *c, const struct loom_task *task);
	/* Lazy task creation: a task function with divisible work calls this from time to time. The result says whether
	 * other workers need tasks. The scheduler may first give away tasks of this worker. 1: spawn some tasks of the
	 * largest pieces, and call this again. 0: continue. Negative: the run was stopped, so return. NULL: spawn all
	 * tasks at once. */
	int (*wanted)(struct loom_ctx *c);
	/* Experimental. Only on GPUs, and only if need() set LOOM_NEED_SMALL: the part of this worker in a small
	 * sample (dev/ctx.h) with `tasks` initial tasks, which are at `initial` and not at c->initial. go: the GO phase. Runs the initial task of
	 * this worker, or all tasks if it is the only worker, until it holds no task. If no other worker knows of any of
	 * its tasks, returns LOOM_SMALL_LEFT + ran - spawned: the tasks that it ran, and those that they spawned.
	 * Otherwise it has called all workers. Then it returns 0, and run() follows, which must not start again from the
	 * beginning. NULL: all samples are run by run(). */
	uint64_t (*small)(struct loom_ctx *c, uint32_t go, uint32_t tasks, const void *initial);
};
#define LOOM_SMALL_LEFT (1ull << 63)

#ifdef __cplusplus
}
#endif
#endif
