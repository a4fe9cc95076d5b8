/* SPDX-License-Identifier: Apache-2.0 */
/* Where a task of memset writes. Device code. */
#ifndef MEMSET_SLOT_DEV_H
#define MEMSET_SLOT_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif

/* param[0]: x; data: the slot, or nothing where devices are non-coherent: each has slots of its own. */
LOOM_FN uint64_t *memset_slot(struct loom_ctx *c, const struct loom_task *t)
{
	return t->data.ref ? (uint64_t *)loom_at(c, t->data.ref) :
			     (uint64_t *)c->on_device[LOOM_WORKLOAD] + t->param[0];
}

#endif
