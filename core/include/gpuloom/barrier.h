/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers. No worker leaves a round of a scope before all workers of the scope have arrived, and what they wrote before is
 * visible after. A scope's rounds follow each other; rounds of different scopes are independent. */
#ifndef GPULOOM_BARRIER_H
#define GPULOOM_BARRIER_H

#include "plugin.h"
#include "task.h"
#include "trigger.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, value, name in messages): which workers synchronise */
#define LOOM_SCOPE_MAP(X)                                                                          \
	X(WORKER, 0, "worker")  /* the lanes of a worker */                                        \
	X(DEVICE, 1, "device")  /* the workers of a device */                                      \
	X(STACK, 2, "stack")    /* of all devices of this process */                               \
	X(JOB, 3, "job")        /* of all ranks */                                                 \
	X(GROUP, 4, "group")    /* GROUP + k: of the caller's group in grouping k of struct loom_barrier_scopes */
enum loom_scope {
#define LOOM_SCOPE_ENUM(NAME, value, text) LOOM_SCOPE_##NAME = value,
	LOOM_SCOPE_MAP(LOOM_SCOPE_ENUM)
#undef LOOM_SCOPE_ENUM
	LOOM_SCOPES
};

/* The scopes that a workload uses (struct loom_workload_ops, `barrier_scopes`): its barrier finds them in loom_layout. */
struct loom_barrier_scopes {
	uint32_t scopes;       /* as 1u << LOOM_SCOPE_STACK */
	uint32_t drops;        /* 1: workers may leave a scope for good */
	uint32_t groupings;    /* 0 to LOOM_GROUPINGS */
	const uint32_t *group; /* [grouping][worker]: number of its group, below `workers`; LOOM_NO_GROUP: of none */
};
#define LOOM_GROUPINGS 4
#define LOOM_NO_GROUP (~0u)

/* Which scopes a plug-in has: `caps` of its descriptor. 0: worker, device and stack. The core rejects a workload that
 * uses another one, and one that drops where LOOM_CAP_BARRIER_DROP is not set. */
#define LOOM_CAP_BARRIER(scope) (1ull << (scope))
#define LOOM_CAP_BARRIER_DROP (1ull << 32)
#define LOOM_CAP_BARRIER_DEFAULT 7ull

struct loom_barrier_ops {
	LOOM_POLICY_OPS
};

/* Device half. All ops are collective over the lanes of a worker, and give all lanes the same. Where devices are non-coherent
 * (loom_layout), a word that several devices poll has one writer.
 *
 * Errors: LOOM_EINTR when the run was stopped; LOOM_EDIED when it was stopped because a device of the scope has died;
 * LOOM_ENOTSUP for a scope that the plug-in does not have. After one of them the scope is of no use in this sample. */
struct loom_barrier_dev {
	size_t size;
	/* Arrives, and waits until all have arrived. 0 or an error. */
	int (*wait)(struct loom_ctx *c, enum loom_scope scope);
	/* Arrives and does not wait. test() or await() must end the round before the worker arrives at the next one of this
	 * scope. 0 or an error. */
	int (*arrive)(struct loom_ctx *c, enum loom_scope scope);
	/* After arrive(): 0 when all have arrived, LOOM_EAGAIN when not yet, or an error. After 0 the round is over. */
	int (*test)(struct loom_ctx *c, enum loom_scope scope);
	/* After arrive(): waits until all have arrived, at most `timeout_ns`; 0: as long as the run lasts. 0, an error, or
	 * LOOM_ETIMEDOUT, after which test() and await() may be called again for the same round. */
	int (*await)(struct loom_ctx *c, enum loom_scope scope, uint64_t timeout_ns);
	/* How many workers of the scope have not arrived at the caller's last round, and the first of them: *worker,
	 * unchanged when there is none. For messages: the answer may be out of date. */
	uint32_t (*missing)(struct loom_ctx *c, enum loom_scope scope, uint32_t *worker);
	/* Arrives for the last time and does not wait: from the next round on the scope, device, stack or group, has one
	 * worker less. Between rounds. 0 or an error; LOOM_ENOTSUP without `drops`. NULL: no LOOM_CAP_BARRIER_DROP. */
	int (*drop)(struct loom_ctx *c, enum loom_scope scope);
};

#ifdef __cplusplus
}
#endif
#endif
