/* SPDX-License-Identifier: Apache-2.0 */
/* sched_counter: one counter over the initial set. By one addition to the counter a worker takes the next task or tasks, as
 * persistent kernels do. Device code. */
#ifndef SCHED_COUNTER_DEV_H
#define SCHED_COUNTER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../sched_common/pool.dev.h"
#endif

/* Called by lane 0. Returns the index of the next task. After SCHED_NO_TASK the worker makes no further call, so at most one
 * addition per worker finds no task. */
LOOM_FN uint64_t counter_claim(struct loom_ctx *c)
{
	struct sched_local *l = sched_local(c);
	if (l->at == l->end) {
		uint64_t all = c->ctl->initial_tasks, n = SCHED_CFG(c, claim_size);
		/* Relaxed: the set is constant, so the counter need not order other accesses. */
		uint64_t at = loom_fetch_add_relaxed_sys(&sched_pool(c)->next, n);
		if (at >= all)
			return SCHED_NO_TASK;
		n = n < all - at ? n : all - at;
		l->at = at;
		l->end = at + n;
		l->counters.claimed += n;
	}
	return l->at++;
}

#define sched_counter_spawn  sched_pool_spawn
#define sched_counter_wanted sched_pool_wanted

LOOM_FN void sched_counter_run(struct loom_ctx *c)
{
	sched_own_start(c);
	sched_pool_run(c, counter_claim, (sched_times *)NULL);
}

#endif
