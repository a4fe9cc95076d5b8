/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers: workers of a scope meet (the sync study). Nobody leaves a round of a scope before all of its workers have
 * come to it, and what was written before is seen after. A scope's rounds follow each other; the rounds of different
 * scopes have nothing to do with each other. */
#ifndef GPULOOM_BARRIER_H
#define GPULOOM_BARRIER_H

#include "plugin.h"
#include "task.h"
#include "trigger.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, value, who meets) */
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

/* Where a workload's workers meet (struct loom_workload_ops, `barrier_scopes`): its barrier finds it in loom_layout. */
struct loom_barrier_scopes {
	uint32_t scopes;       /* as 1u << LOOM_SCOPE_STACK */
	uint32_t drops;        /* 1: workers may leave a scope for good */
	uint32_t groupings;    /* 0 to LOOM_GROUPINGS */
	const uint32_t *group; /* [grouping][worker]: number of its group, below `workers`; LOOM_NO_GROUP: of none */
};
#define LOOM_GROUPINGS 4
#define LOOM_NO_GROUP (~0u)

/* Which scopes a plug-in has: `caps` of its descriptor. 0: worker, device and stack. The core refuses a workload that
 * meets at another, and one that drops where LOOM_CAP_BARRIER_DROP is not set. */
#define LOOM_CAP_BARRIER(scope) (1ull << (scope))
#define LOOM_CAP_BARRIER_DROP (1ull << 32)
#define LOOM_CAP_BARRIER_DEFAULT 7ull

struct loom_barrier_ops {
	LOOM_POLICY_OPS
	/* As in struct loom_sched_ops: what is constant in this stack's device code. NULL: nothing. */
	int (*constants)(void *self, const struct loom_layout *layout, char *text, size_t room,
			 struct loom_error *err);
	/* As the workload's, before it, where several ranks meet at the scope of the job: posts what tells them. The core
	 * refuses that where no trigger is selected. NULL: nothing. */
	int (*wire)(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		    const struct loom_trigger *trigger, struct loom_error *err);
};

/* Device half. All ops are collective over the lanes of a worker, and give all lanes the same. Where devices are non-coherent
 * (loom_layout), a word that several devices look at has one writer.
 *
 * Errors: LOOM_EINTR when the run was stopped; LOOM_EDIED when it was stopped because a device of the scope has died;
 * LOOM_ENOTSUP for a scope that the plug-in does not have. After one of them the scope is of no use in this sample. */
struct loom_barrier_dev {
	size_t size;
	/* Comes, and waits until all have come. 0 or an error. */
	int (*wait)(struct loom_ctx *c, enum loom_scope scope);
	/* Comes and does not wait: what was written before is on its way. test() or await() must end the round before
	 * the worker comes to the next one of this scope. 0 or an error. */
	int (*arrive)(struct loom_ctx *c, enum loom_scope scope);
	/* After arrive(): 0 when all have come, LOOM_EAGAIN when not yet, or an error. After 0 the round is over. */
	int (*test)(struct loom_ctx *c, enum loom_scope scope);
	/* After arrive(): waits until all have come, at most `timeout_ns`; 0: as long as the run lasts. 0, an error, or
	 * LOOM_ETIMEDOUT, after which test() and await() may be called again for the same round. */
	int (*await)(struct loom_ctx *c, enum loom_scope scope, uint64_t timeout_ns);
	/* How many workers of the scope have not come to the caller's last round, and the first of them: *worker, left
	 * alone when there is none. For messages: the answer may be old when it is given. */
	uint32_t (*missing)(struct loom_ctx *c, enum loom_scope scope, uint32_t *worker);
	/* Comes, does not wait, and never comes again: from the next round on the scope, device, stack or group, has one
	 * worker less. Between rounds. 0 or an error; LOOM_ENOTSUP without `drops`. NULL: no LOOM_CAP_BARRIER_DROP. */
	int (*drop)(struct loom_ctx *c, enum loom_scope scope);
};

#ifdef __cplusplus
}
#endif
#endif
