/* SPDX-License-Identifier: Apache-2.0 */
/* Workloads: input, task functions, and verification. */
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

/* A bit of loom_plugin.caps: ranks may share the tasks. Then tasks() writes the same set on every rank. The tasks
 * contain no address and no join, and do the same on every rank. verify() checks the answer of all ranks together, so
 * it may allgather. */
enum { LOOM_CAP_WORKLOAD_IS_SHARED = 1 };

/* One thread of the core calls all ops. Only interrupt() is called while workers run. Input is read in create or need.
 * create, destroy, need, init, tasks and verify are mandatory. */
struct loom_workload_ops {
	LOOM_POLICY_OPS
	/* Returns the size of the initial set. Called after need(). NULL: 0, as for a workload with a kernel. */
	uint64_t (*task_count)(void *self, const struct loom_layout *layout);
	/* Writes exactly that many tasks, once per stack. Tag i stands for task function i of the workload. `global` is
	 * the reference of view->global, for data descriptors. */
	int (*tasks)(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     loom_ref global, struct loom_task *tasks, struct loom_error *err);
	/* Checks the answer of a sample, and adds the workload's own metrics. Returns 0, or LOOM_EWRONG with the
	 * expected and the found values. A workload with a kernel may add "seconds", if its program measures its own
	 * time. This value replaces the time that the core has measured. */
	int (*verify)(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      struct loom_report *report, struct loom_error *err);
	/* Returns the channels that the workers use, for the sync plug-in. Called once, after need(). The workload owns
	 * the list. NULL: workers use no channels. A workload that has this op requires a sync plug-in in the conf. */
	int (*channels)(void *self, const struct loom_layout *layout, const struct loom_channel **channel,
			uint32_t *n, struct loom_error *err);
	/* Returns the workers that request services, for the qos plug-ins. Called once, after need(). The workload owns
	 * the list. NULL: workers request no services. A workload that has this op requires a qos plug-in in the
	 * conf. */
	int (*tenants)(void *self, const struct loom_layout *layout, const struct loom_tenant **tenant,
		       uint32_t *n, struct loom_error *err);
	/* Returns the grants of the tenants. Called before every launch, after memory is allocated. NULL: no grants. */
	int (*grants)(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      loom_ref global, const struct loom_grant **grant, uint32_t *n, struct loom_error *err);
	/* Called while workers run and `stop` is set. Wakes workers that sleep in the workload's own code. May be
	 * called more than once. NULL: such workers poll `stop`. */
	void (*interrupt)(void *self);
	/* Kinds of plug-in whose ops workers call, as bits such as 1u << LOOM_BARRIER. Kinds that follow from these ops
	 * or from tasks may be left out. The core rejects a conf that lacks one of the kinds before the run. */
	uint32_t needs;
	/* The unit of work: the name of a metric in the plural, such as "nodes". The core divides the metric of this
	 * name that verify() adds by the seconds. The result, nodes_per_s, is the first metric after the time. If
	 * verify() adds this rate itself, its value stays. "tasks" means the executed tasks, which the core counts.
	 * NULL: no rate. */
	const char *work;
	/* Returns the barrier scopes that workers use (barrier.h); the workload owns them. Called after need(). Also
	 * called before device code is composed, when only `drops` is read. A workload that has this op sets
	 * LOOM_BARRIER in `needs`. */
	const struct loom_barrier_scopes *(*barrier_scopes)(void *self, const struct loom_layout *layout);
	/* For devices that launch each step (struct loom_workload_dev) as a kernel. steps() returns the number of steps
	 * of a sample. awaits() returns the number of conditions that must hold before step n begins, at most
	 * LOOM_AWAITS_MOST, and stores them in `out`. If both ops are NULL, the workload has no steps. */
	uint64_t (*steps)(void *self, const struct loom_layout *layout);
	uint32_t (*awaits)(void *self, const struct loom_layout *layout, uint64_t n, struct loom_await *out);
	/* Checks that the input files for these options exist, for commands that run many confs. Returns 0, or the
	 * error that create() would return. NULL: the workload has no input files. */
	int (*inputs)(const struct loom_host *host, const void *opts, struct loom_error *err);
	/* Returns the scratchpad memory per worker that task functions use, in bytes. need() must include it in `local` of struct
	 * loom_need (plugin.h): the worker's private block, which is in shared memory on a GPU. Called before device code is
	 * composed, because the number of resident workers depends on it. NULL: 0. */
	uint64_t (*scratch)(void *self, const struct loom_layout *layout);
	/* Returns the number of registers per thread of a GPU that task functions should have. With [device.gpu]
	 * max_registers = auto, so many are allowed, and fewer workers are resident. NULL or 0: any number is allowed. */
	uint32_t (*registers)(void *self, const struct loom_layout *layout);
};

struct loom_task_entry {
	const char *name; /* name of the function in the .dev.h, by which GPU back ends call it */
	loom_task_fn *fn; /* the function as compiled for the CPU */
};

struct loom_workload_dev {
	size_t size;
	uint32_t count; /* number of task functions */
	uint32_t reserved;
	const struct loom_task_entry *task; /* [count]; a task with tag i runs function i */
	/* Each worker runs this once per sample, in place of the scheduler's loop. Collective over lanes. If the workload has
	 * task functions, too, each worker calls LOOM_CALL(sched, run, c) once in it. NULL: workers run the scheduler's loop. */
	void (*kernel)(struct loom_ctx *c);
	/* The kernel in steps. A device may end the kernel between steps, so a step must leave data for the next step
	 * in memory. All workers finish step n before any worker begins step n + 1. A step calls neither boundary() nor
	 * deliver(), and does not wait for arrivals. NULL: the kernel has no steps. */
	void (*step)(struct loom_ctx *c, uint64_t n);
	/* For schedulers that plan: returns the cost of an initial task, in a unit of the workload's choice. 0: the task has
	 * nothing to do, so it need not run. Each lane calls this alone, in each sample before the first task runs, so the cost
	 * may depend on memory that the sample begins with. NULL: costs are not known. */
	uint64_t (*cost)(struct loom_ctx *c, const struct loom_task *task);
};

#ifdef __cplusplus
}
#endif
#endif
