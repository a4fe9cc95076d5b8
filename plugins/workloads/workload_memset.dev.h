/* SPDX-License-Identifier: Apache-2.0 */
/* memset: task x writes x at slot x. Device code. */
#ifndef WORKLOAD_MEMSET_DEV_H
#define WORKLOAD_MEMSET_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif

/* param[0]: x; data: the slot. */
LOOM_FN void workload_memset_task(struct loom_ctx *c, const struct loom_task *t)
{
	if (c->lane == 0)
		*(uint64_t *)loom_at(c, t->data.ref) = t->param[0];
}

#endif
