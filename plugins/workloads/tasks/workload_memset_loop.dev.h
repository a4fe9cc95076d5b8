/* SPDX-License-Identifier: Apache-2.0 */
/* memset without a scheduler: each worker walks its equal, contiguous share of the same array of tasks,
 * in a plain loop. The floor for what schedulers cost. Device code. */
#ifndef WORKLOAD_MEMSET_LOOP_DEV_H
#define WORKLOAD_MEMSET_LOOP_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "memset_slot.dev.h"
#endif

/* Lanes take every so-manieth task of their worker. */
LOOM_FN void workload_memset_loop_kernel(struct loom_ctx *c)
{
	uint64_t n = c->ctl->initial_tasks, each = n / c->workers, rest = n % c->workers;
	uint64_t from = each * c->worker + (c->worker < rest ? c->worker : rest);
	uint64_t to = from + each + (c->worker < rest);
	for (uint64_t x = from + c->lane; x < to; x += c->lanes) {
		const struct loom_task *t = &c->initial[x];
		*memset_slot(c, t) = t->param[0];
	}
}

#endif
