/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers between workers, at the scope of a device or of the stack (the sync study). */
#ifndef GPULOOM_BARRIER_H
#define GPULOOM_BARRIER_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

enum loom_scope { LOOM_SCOPE_WORKER = 0, LOOM_SCOPE_DEVICE, LOOM_SCOPE_STACK };

struct loom_barrier_ops {
	LOOM_POLICY_OPS
};

struct loom_barrier_dev {
	size_t size;
	/* Returns when every worker of the scope has called it, and orders their memory at that
	 * scope. 0, or LOOM_EINTR when the run was stopped. Collective over lanes. */
	int (*wait)(struct loom_ctx *c, enum loom_scope scope);
};

#ifdef __cplusplus
}
#endif
#endif
