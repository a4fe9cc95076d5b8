/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads: input, task functions, verification. */
#ifndef GPULOOM_WORKLOAD_H
#define GPULOOM_WORKLOAD_H

#include "plugin.h"
#include "qos.h"
#include "sync.h"
#include "task.h"
#include "trigger.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In loom_plugin.caps: ranks may share the tasks. tasks() then writes the same set on every rank. Tasks hold no address
 * and no join, and do the same on every rank. verify() checks the answer of all ranks together: it may allgather. */
enum { LOOM_CAP_WORKLOAD_IS_SHARED = 1 };

/* One thread of the core calls all ops; all but interrupt never while workers run. Input is read in create or need.
 * Mandatory: create, destroy, need, init, tasks, verify. */
struct loom_workload_ops {
	LOOM_POLICY_OPS
	/* Returns the size of the initial set, after need(). NULL: 0 (a kernel workload). */
	uint64_t (*task_count)(void *self, const struct loom_layout *layout);
	/* Writes exactly that many tasks, once per stack. Tag i is the workload's task function i. `global` is the
	 * reference of view->global, for data descriptors. */
	int (*tasks)(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     loom_ref global, struct loom_task *tasks, struct loom_error *err);
	/* Checks the answer of a sample, and adds the workload's own metrics. Returns 0, or LOOM_EWRONG with the
	 * expected and found values. A workload with a kernel may add "seconds", which replaces the time that the core
	 * measured, for programs that time themselves. */
	int (*verify)(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      struct loom_report *report, struct loom_error *err);
	/* Returns the channels that the workers use, for the selected sync plug-in; called once, after need(). The
	 * workload owns the list. NULL: none. Not NULL: the conf must select a sync. */
	int (*channels)(void *self, const struct loom_layout *layout, const struct loom_channel **channel,
			uint32_t *n, struct loom_error *err);
	/* Returns the workers that request services, for the selected qos plug-ins; called once, after need(). The
	 * workload owns the list. NULL: none. Not NULL: the conf must select a qos. */
	int (*tenants)(void *self, const struct loom_layout *layout, const struct loom_tenant **tenant,
		       uint32_t *n, struct loom_error *err);
	/* Returns the grants of the tenants, before every launch, memory in place. NULL: none. */
	int (*grants)(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      loom_ref global, const struct loom_grant **grant, uint32_t *n, struct loom_error *err);
	/* While workers run and `stop` is set: wakes workers that sleep in the workload's own code. May be called more
	 * than once. NULL: they poll `stop`. */
	void (*interrupt)(void *self);
	/* Kinds that workers call beyond those implied by these ops and by tasks, as in 1u << LOOM_BARRIER. The core
	 * rejects a conf that lacks one of them before the run. */
	uint32_t needs;
	/* The unit of work, as a plural that names a metric: "nodes". The core divides that metric of verify() by the
	 * seconds: nodes_per_s leads the results, unless verify() adds it itself. "tasks": the executed tasks, which
	 * the core counts. NULL: no rate. */
	const char *work;
	/* Returns the barrier scopes that workers use (barrier.h), owned by the workload. Called after need(), and
	 * before device code is composed, when only `drops` is read. Not NULL: `needs` has LOOM_BARRIER. */
	const struct loom_barrier_scopes *(*barrier_scopes)(void *self, const struct loom_layout *layout);
	/* For devices that launch each step (struct loom_workload_dev) as a kernel: the steps of a sample, and what
	 * must arrive before step n begins, at most LOOM_AWAITS_MOST conditions. Both NULL: no steps. */
	uint64_t (*steps)(void *self, const struct loom_layout *layout);
	uint32_t (*awaits)(void *self, const struct loom_layout *layout, uint64_t n, struct loom_await *out);
	/* For an embedding program: the next sample sums the vectors of all ranks, or with root >= 0 gives all ranks
	 * that of `root`. init() reads the vector, verify() writes the result there. With one rank there is no sample.
	 * A NULL vector of 0 floats cancels the request and cannot fail. NULL: another kind of workload. */
	int (*collective)(void *self, const struct loom_layout *layout, float *vector, uint64_t floats, int64_t root,
			  struct loom_error *err);
	/* Checks that the input files for these options exist, for commands that run many confs. Returns 0, or the
	 * error that create() would return. NULL: no input files. */
	int (*inputs)(const struct loom_host *host, const void *opts, struct loom_error *err);
	/* For schedulers that plan: what an initial task costs, as far as the workload knows, in a unit of its own. Called for each
	 * task after tasks(). NULL: it does not know. */
	uint64_t (*cost)(void *self, const struct loom_layout *layout, const struct loom_task *task);
	/* Private memory per worker that task functions use, of what need() asks for as `local`: a GPU's shared memory. Asked before
	 * device code is composed, because the number of resident workers depends on it. NULL: 0. */
	uint64_t (*scratch)(void *self, const struct loom_layout *layout);
};

struct loom_task_entry {
	const char *name; /* the function's name in the .dev.h, by which GPU back ends call it */
	loom_task_fn *fn; /* the function, compiled for the CPU */
};

struct loom_workload_dev {
	size_t size;
	uint32_t count;
	uint32_t reserved;
	const struct loom_task_entry *task; /* [count]: tag i runs entry i */
	/* For a workload without tasks: each worker runs this once per sample. Collective over lanes. NULL: tasks. */
	void (*kernel)(struct loom_ctx *c);
	/* The kernel in steps, between which a device may end the kernel. What a step leaves for the next is in memory.
	 * All workers finish step n before any begins step n + 1. A step calls neither boundary() nor deliver(), and
	 * waits for no arrival. NULL: the kernel is in one piece. */
	void (*step)(struct loom_ctx *c, uint64_t n);
};

#ifdef __cplusplus
}
#endif
#endif
