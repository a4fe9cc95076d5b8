/* SPDX-License-Identifier: Apache-2.0 */
/* workload_makespan: tasks that only take the time that a trace of costs gives them, and that wait for each other.
 * Device code. */
#ifndef WORKLOAD_MAKESPAN_DEV_H
#define WORKLOAD_MAKESPAN_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/sched.h>

#include "task.dev.h"
#endif

/* The start of the stack's block. The locks of non-coherent devices follow. Then come the arrays, at these byte
 * offsets. */
struct makespan {
	uint64_t tasks;
	uint64_t noncoherent;
	uint64_t cost_at;	/* [tasks] uint64_t: cost of each task in ns */
	uint64_t first_after_at; /* [tasks + 1] uint64_t: for each task, the start of its list in `after` */
	uint64_t after_at;	/* uint32_t: lists of the tasks that follow each task */
	uint64_t pending_at;	/* [tasks] uint64_t: for each task, tasks before it that have not ended */
	uint64_t ran_at;	/* [tasks] uint64_t: number of times that each task was run; written only by the task */
	uint64_t pad;
};

#define MAKESPAN_AT(m, type, what) ((type *)((char *)(m) + (m)->what##_at))

/* The worker's block. */
struct makespan_times {
	uint64_t first_ns, last_ns; /* start of the worker's first task and end of its last one; 0: it ran none */
	uint64_t pad[6];
};

/* Takes `ns` of the device's time, from time `begin` on. A simulated device advances its clock. */
LOOM_FN void makespan_work(struct loom_ctx *c, uint64_t begin, uint64_t ns)
{
#ifdef LOOM_SIM
	(void)c, (void)begin;
	loom_sim_compute(ns);
#else
	while (loom_clock_ns(c) - begin < ns && !loom_stopped(c))
		loom_pause(c);
#endif
}

LOOM_FN void makespan_task(uint64_t id, struct loom_task *t)
{
	workload_task(t, 0);
	t->param[0] = id;
}

/* A task of 0 ns runs, too. */
LOOM_FN uint64_t workload_makespan_cost(struct loom_ctx *c, const struct loom_task *t)
{
	struct makespan *m = (struct makespan *)c->global[LOOM_WORKLOAD];
	return MAKESPAN_AT(m, const uint64_t, cost)[t->param[0]] + 1;
}

/* param[0]: id of the task. */
LOOM_FN void workload_makespan_task(struct loom_ctx *c, const struct loom_task *t)
{
	struct makespan *m = (struct makespan *)c->global[LOOM_WORKLOAD];
	struct makespan_times *times = (struct makespan_times *)c->own[LOOM_WORKLOAD];
	uint64_t id = t->param[0];
	if (c->lane == 0) {
		uint64_t begin = loom_clock_ns(c);
		if (!times->first_ns)
			times->first_ns = begin;
		makespan_work(c, begin, MAKESPAN_AT(m, const uint64_t, cost)[id]);
		times->last_ns = loom_clock_ns(c);
		MAKESPAN_AT(m, uint64_t, ran)[id]++;
	}
	const uint64_t *first = MAKESPAN_AT(m, const uint64_t, first_after) + id;
	LOOM_NO_UNROLL
	for (uint64_t e = first[0]; e < first[1]; e++) {
		uint32_t after = MAKESPAN_AT(m, const uint32_t, after)[e];
		struct loom_task next;
		makespan_task(after, &next);
		if (loom_after(c, m->noncoherent ? (struct loom_onebit_lock *)(m + 1) : (struct loom_onebit_lock *)NULL,
			       MAKESPAN_AT(m, uint64_t, pending) + after, &next))
			return;
	}
}

#endif
