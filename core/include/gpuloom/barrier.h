/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers. No worker leaves a round of a scope before all workers of the scope have arrived. What these workers wrote
 * before the round is visible after it. Rounds of one scope follow each other. Different scopes are independent. */
#ifndef GPULOOM_BARRIER_H
#define GPULOOM_BARRIER_H

#include "plugin.h"
#include "task.h"
#include "trigger.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, value, name in messages). A scope is a set of workers that synchronise. */
#define LOOM_SCOPE_MAP(X)                                                                          \
	X(WORKER, 0, "worker")  /* the lanes of a worker */                                        \
	X(DEVICE, 1, "device")  /* the workers of a device */                                      \
	X(STACK, 2, "stack")    /* all workers of this process */                               \
	X(JOB, 3, "job")        /* all workers of all ranks */                                                 \
	X(GROUP, 4, "group")    /* GROUP + k: the caller's group in grouping k of struct loom_barrier_scopes */
enum loom_scope {
#define LOOM_SCOPE_ENUM(NAME, value, text) LOOM_SCOPE_##NAME = value,
	LOOM_SCOPE_MAP(LOOM_SCOPE_ENUM)
#undef LOOM_SCOPE_ENUM
	LOOM_SCOPES
};

/* The scopes that a workload uses. The op barrier_scopes() of the workload returns this struct; the barrier plug-in
 * finds it in loom_layout. */
struct loom_barrier_scopes {
	uint32_t scopes;       /* bits, such as 1u << LOOM_SCOPE_STACK */
	uint32_t drops;        /* 1: workers may leave a scope by drop() */
	uint32_t groupings;    /* number of groupings, up to LOOM_GROUPINGS */
	/* [grouping][worker]: number of the worker's group, below `workers`; LOOM_NO_GROUP: in no group */
	const uint32_t *group;
};
#define LOOM_GROUPINGS 4
#define LOOM_NO_GROUP (~0u)

/* The bits in `caps` of a barrier's descriptor are the scopes that it supports; 0 means worker, device and stack. The
 * core rejects a workload that uses another scope. It also rejects a workload that uses drop() if LOOM_CAP_BARRIER_DROP
 * is not set. */
#define LOOM_CAP_BARRIER(scope) (1ull << (scope))
#define LOOM_CAP_BARRIER_DROP (1ull << 32)
#define LOOM_CAP_BARRIER_DEFAULT 7ull

struct loom_barrier_ops {
	LOOM_POLICY_OPS
};

/* Device half. All ops are collective over the lanes of a worker, and return the same value to all lanes. If devices
 * are non-coherent (loom_layout), a word that several devices poll must have one writer. The ops return 0, or
 * LOOM_EINTR if the run was stopped. They return LOOM_EDIED if the run was stopped because a device of the scope died,
 * and LOOM_ENOTSUP if the plug-in lacks the scope. After an error, the scope must not be used again in this sample. */
struct loom_barrier_dev {
	size_t size;
	int (*wait)(struct loom_ctx *c, enum loom_scope scope); /* Arrives, and waits until all have arrived. */
	/* Arrives without waiting. Before the scope's next round, the worker must end this round by test() or
	 * await(). */
	int (*arrive)(struct loom_ctx *c, enum loom_scope scope);
	/* Called after arrive(). Returns 0 if all workers have arrived, which ends the round, else LOOM_EAGAIN. */
	int (*test)(struct loom_ctx *c, enum loom_scope scope);
	/* Called after arrive(). Waits until all workers have arrived, but at most `timeout_ns`; 0 means as long as the
	 * run lasts. After LOOM_ETIMEDOUT, test() and await() may be called again for the same round. */
	int (*await)(struct loom_ctx *c, enum loom_scope scope, uint64_t timeout_ns);
	/* For messages: returns the number of workers of the scope that have not arrived at the caller's last round. If
	 * the number is not 0, sets *worker to the first of these workers. The answer may be out of date. */
	uint32_t (*missing)(struct loom_ctx *c, enum loom_scope scope, uint32_t *worker);
	/* Arrives for the last time, between rounds and without waiting. From the next round on, the scope (device,
	 * stack or group) has one worker less. Returns LOOM_ENOTSUP if `drops` of struct loom_barrier_scopes is 0. NULL
	 * if LOOM_CAP_BARRIER_DROP is not set. */
	int (*drop)(struct loom_ctx *c, enum loom_scope scope);
};

#ifdef __cplusplus
}
#endif
#endif
