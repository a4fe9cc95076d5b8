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

/* loom_plugin.caps: ranks may share its tasks. tasks() writes the same set on every rank. A task holds no address and no
 * join, and does the same on every rank; so do those that it spawns. verify() tells whether all ranks together have the
 * answer: it may allgather. */
enum { LOOM_CAP_WORKLOAD_IS_SHARED = 1 };

/* All ops are called by one thread of the core, all but interrupt never while workers run. Input is read in create or
 * need. Mandatory: create, destroy, need, init, tasks, verify. */
struct loom_workload_ops {
	LOOM_POLICY_OPS
	/* How many tasks the initial set has: asked after need(). NULL: none (a kernel workload). */
	uint64_t (*task_count)(void *self, const struct loom_layout *layout);
	/* Writes exactly that many tasks, once per stack. The tag of the workload's task function i
	 * is i. `global` is the reference of view->global, for data descriptors. */
	int (*tasks)(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     loom_ref global, struct loom_task *tasks, struct loom_error *err);
	/* Checks the answer of a sample: 0, or LOOM_EWRONG with what was expected and found. Adds the
	 * workload's own metrics. A workload with a kernel may add "seconds": that replaces the time
	 * that the core measured, for programs that time themselves. */
	int (*verify)(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      struct loom_report *report, struct loom_error *err);
	/* Which channels the workers use, for the selected sync plug-in; asked once, after need(). The
	 * list belongs to the workload. NULL: none. Not NULL: the conf must select a sync. */
	int (*channels)(void *self, const struct loom_layout *layout, const struct loom_channel **channel,
			uint32_t *n, struct loom_error *err);
	/* Which workers request services of the host, for the selected qos plug-ins; once, after need(). The
	 * list belongs to the workload. NULL: none. Not NULL: the conf must select a qos. */
	int (*tenants)(void *self, const struct loom_layout *layout, const struct loom_tenant **tenant,
		       uint32_t *n, struct loom_error *err);
	/* What their requests may name: before every launch, memory in place. NULL: nothing. */
	int (*grants)(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      loom_ref global, const struct loom_grant **grant, uint32_t *n, struct loom_error *err);
	/* While workers run, `stop` is set: wakes those that the workload itself let fall asleep. May be
	 * called more than once. NULL: they poll `stop`. */
	void (*interrupt)(void *self);
	/* Kinds that the workers call beyond those that the ops above and tasks imply, as in
	 * 1u << LOOM_BARRIER: a conf that selects none of a kind is rejected before the run. */
	uint32_t needs;
	/* The unit of work, as the plural that is the name of a metric: "nodes". The core divides what verify() reports
	 * under that name by the seconds: nodes_per_s leads the results, unless verify() reports that itself. "tasks":
	 * the tasks that were run, which the core counts. NULL: no rate. */
	const char *work;
	/* The scopes of the barriers that workers use (barrier.h): called before device code is composed, when only `drops` matters and not all
	 * workers are known, and after need(). It belongs to the workload. Not NULL: `needs` has LOOM_BARRIER. */
	const struct loom_barrier_scopes *(*barrier_scopes)(void *self, const struct loom_layout *layout);
	/* For devices that launch each step (struct loom_workload_dev) as a kernel of its own: how many steps a sample has,
	 * and what must have arrived before step n begins: how much, at most LOOM_AWAITS_MOST. Both NULL: it has none. */
	uint64_t (*steps)(void *self, const struct loom_layout *layout);
	uint32_t (*awaits)(void *self, const struct loom_layout *layout, uint64_t n, struct loom_await *out);
	/* For an embedding program: the next sample sums the vectors of all ranks, or with root >= 0
	 * gives all that of rank `root`. init() reads the vector, verify() writes the result there. Of one rank nothing
	 * follows. No vector and 0 floats: nothing any more, which never fails. NULL: a workload of another kind. */
	int (*collective)(void *self, const struct loom_layout *layout, float *vector, uint64_t floats, int64_t root,
			  struct loom_error *err);
	/* Whether the files are there that it reads, with these options: 0, or what create() would fail with, soon. For commands
	 * that run many confs, before the first. NULL: it reads none. */
	int (*inputs)(const struct loom_host *host, const void *opts, struct loom_error *err);
};

struct loom_task_entry {
	const char *name; /* of the function in the .dev.h: GPU back ends call it by this name */
	loom_task_fn *fn; /* the same, compiled for the CPU */
};

struct loom_workload_dev {
	size_t size;
	uint32_t count;
	uint32_t reserved;
	const struct loom_task_entry *task; /* [count]: tag i runs entry i */
	/* A workload without tasks: each worker runs this once per sample instead of a scheduler.
	 * Collective over lanes. NULL: tasks. */
	void (*kernel)(struct loom_ctx *c);
	/* The same in steps, between which the kernel may end: all that a step leaves for the next is in memory, and all
	 * workers have done step n before one begins step n + 1. Calls neither boundary() nor deliver(), and waits for
	 * no arrival. NULL: the kernel is in one piece. */
	void (*step)(struct loom_ctx *c, uint64_t n);
};

#ifdef __cplusplus
}
#endif
#endif
