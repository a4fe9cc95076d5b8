/* SPDX-License-Identifier: Apache-2.0 */
/* memset: task x writes x at slot x. Device code. */
#ifndef WORKLOAD_MEMSET_DEV_H
#define WORKLOAD_MEMSET_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "memset_slot.dev.h"
#endif

LOOM_FN void workload_memset_task(struct loom_ctx *c, const struct loom_task *t)
{
	if (c->lane == 0)
		*memset_slot(c, t) = t->param[0];
}

#endif
