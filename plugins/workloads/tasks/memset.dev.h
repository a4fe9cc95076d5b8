/* SPDX-License-Identifier: Apache-2.0 */
/* memset: task x writes x to slot x. In workload_memset a scheduler runs the tasks. In workload_memset_loop a plain
 * loop runs over the same array of tasks, as a floor for the overhead of schedulers. Device code. */
#ifndef WORKLOAD_MEMSET_DEV_H
#define WORKLOAD_MEMSET_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif

/* Writes x to slot x. param[0]: x. data: the slot, or none if each device has slots of its own, as non-coherent
 * devices do. */
LOOM_FN void memset_write(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t *slot = t->data.ref ? (uint64_t *)loom_at(c, t->data.ref) :
				       (uint64_t *)c->on_device[LOOM_WORKLOAD] + t->param[0];
	*slot = t->param[0];
}

LOOM_FN void workload_memset_task(struct loom_ctx *c, const struct loom_task *t)
{
	if (c->lane == 0)
		memset_write(c, t);
}

/* Each worker has an equal, contiguous share of the tasks. Lane l runs every lanes-th task of the share, from task l
 * on. */
LOOM_FN void workload_memset_loop_kernel(struct loom_ctx *c)
{
	uint64_t n = c->ctl->initial_tasks, each = n / c->workers, rest = n % c->workers;
	uint64_t from = each * c->worker + (c->worker < rest ? c->worker : rest);
	uint64_t to = from + each + (c->worker < rest);
	for (uint64_t x = from + c->lane; x < to; x += c->lanes)
		memset_write(c, &c->initial[x]);
}

#endif
