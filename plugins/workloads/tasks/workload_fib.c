/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_fib: fib(n) by tiny tasks that spawn tasks.
 *
 * mode = spawn: no task waits for another task, and the leaves are summed per worker. mode = join: fork-join. Each
 * call continues when its two calls have ended, and passes its sum to its caller. */
#include <stdio.h>

#include "workload_fib.dev.h"
#include "../common/host.h"

enum { MODE_SPAWN, MODE_JOIN };
static const char *const fib_modes[] = {"spawn", "join", NULL};

struct fib_opts {
	uint32_t n, mode, frames;
};

static const struct loom_opt fib_rows[] = {
	LOOM_OPT(struct fib_opts, n, LOOM_OPT_U32, "30", "Which Fibonacci number: 2 fib(n + 1) - 1 calls.", .max = 60),
	LOOM_OPT(struct fib_opts, mode, LOOM_OPT_ENUM, "spawn",
			 "spawn: a task per call, and no task waits. join: in addition a task per sum, which follows "
			 "when both calls have ended.", .choices = fib_modes),
	LOOM_OPT(struct fib_opts, frames, LOOM_OPT_U32, "4096",
			 "mode = join: calls of one worker that may wait for others at the same time, 128 bytes each.",
			 .min = 1, .max = 1 << 24),
	{.name = NULL},
};

static const struct fib_opts *fib_opts(const void *self)
{
	return ((const struct workload *)self)->opts;
}

static uint32_t fib_n(const void *self)
{
	return fib_opts(self)->n;
}

static uint64_t fib_frames(const void *self)
{
	return fib_opts(self)->mode == MODE_JOIN ? fib_opts(self)->frames : 0;
}

static int fib_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
			 struct loom_error *err)
{
	(void)layout, (void)err;
	snprintf(text, room, "#define FIB_JOINS %u\n", fib_opts(self)->mode == MODE_JOIN);
	return 0;
}

static int fib_need(void *self, const struct loom_layout *layout, struct loom_need *need,
		    struct loom_error *err)
{
	if (fib_opts(self)->mode == MODE_JOIN && layout->noncoherent && layout->devices > 1)
		return LOOM_FAIL(
		    ((struct workload *)self)->host, err, LOOM_ENOTSUP,
		    "fib: mode = join: a call's sum may be computed on another device, and these devices cannot access "
		    "each other's frames: choose mode = spawn, or one device");
	if (fib_opts(self)->mode == MODE_JOIN && LOOM_HAS(layout, ranks) && layout->ranks > 1)
		return LOOM_FAIL(
		    ((struct workload *)self)->host, err, LOOM_ENOTSUP,
		    "fib: mode = join: the frames of calls stay in their rank, so ranks cannot share them: choose "
		    "mode = spawn, or set tasks = own in [run]");
	need->global = 64; /* mode = join: the result */
	need->worker = sizeof(struct workload_fib_sum) + fib_frames(self) * sizeof(struct loom_join);
	return 0;
}

static int fib_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		    struct loom_error *err)
{
	(void)err;
	*(uint64_t *)view->global = ~0ull;
	for (uint32_t w = 0; w < layout->workers; w++)
		*(struct workload_fib_sum *)view->worker[w] =
			(struct workload_fib_sum){.frames = fib_frames(self)};
	return 0;
}

static int fib_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     loom_ref global, struct loom_task *tasks, struct loom_error *err)
{
	(void)layout, (void)view, (void)err;
	tasks[0].tag = fib_opts(self)->mode == MODE_JOIN ? FIB_FORK : FIB_SPAWN;
	tasks[0].param[0] = fib_n(self);
	tasks[0].param[1] = global;
	return 0;
}

/* Checks the sum: the number of leaves with k = 1. The tasks need not be counted, because the core checks that each
 * task that was spawned has run. */
static int fib_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      struct loom_report *report, struct loom_error *err)
{
	const struct loom_host *host = ((struct workload *)self)->host;
	uint64_t sum = 0, expect = 0, next = 1;
	for (uint32_t i = 0; i < fib_n(self); i++) {
		uint64_t t = expect + next;
		expect = next;
		next = t;
	}
	for (uint32_t w = 0; w < layout->workers; w++)
		sum += ((const struct workload_fib_sum *)view->worker[w])->sum;
	int rc = workload_sum(host, layout, &sum, 1, err);
	if (rc)
		return rc;
	if (fib_opts(self)->mode == MODE_JOIN)
		sum = *(const uint64_t *)view->global;
	if (sum != expect)
		return LOOM_FAIL(host, err, LOOM_EWRONG, "fib(%u): expected %llu, found %llu",
				 fib_n(self), (unsigned long long)expect, (unsigned long long)sum);
	host->metric(host, report, "fib", "", LOOM_BETTER_SAME, (double)sum);
	return 0;
}

static int fib_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct loom_host *host = ((struct workload *)self)->host;
	if (code == LOOM_EINVAL)
		return LOOM_FAIL(host, err, code,
				 "fib: mode = join needs all lanes of a worker on one task: set granularity = worker "
				 "in [scheduler]");
	if (code != LOOM_ENOMEM)
		return 0;
	return LOOM_FAIL(host, err, code,
			 "fib: all %llu frames of worker %u wait for calls that have not ended: raise "
			 "[workload.fib] frames",
			 (unsigned long long)info, worker);
}

WORKLOAD_OPS(fib, .create = workload_create_plain, .destroy = workload_destroy, .task_count = workload_one_task,
	     .tasks = fib_tasks, .work = "tasks", .explain = fib_explain, .constants = fib_constants);

static const struct loom_task_entry fib_entries[] = {
	{"workload_fib_task", workload_fib_task},
	{"workload_fib_fork", workload_fib_fork},
	{"workload_fib_add", workload_fib_add},
};
WORKLOAD_CODE(workload_fib, fib_entries, LOOM_CODE_FILE("task.dev.h") LOOM_CODE_FILE("workload_fib.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_fib", "0.1.0", "Apache-2.0",
		   "fib(n) as a tree of tasks that spawn tasks, with or without joins", .opts = fib_rows,
		   .opts_size = sizeof(struct fib_opts), .caps = LOOM_CAP_WORKLOAD_IS_SHARED, .ops = &fib_ops,
		   .dev = &workload_fib_code)
