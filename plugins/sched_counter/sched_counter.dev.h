/* SPDX-License-Identifier: Apache-2.0 */
/* One counter over the initial set: each worker takes the next task, or the next few, by one addition, as persistent
 * kernels do. Device code. */
#ifndef SCHED_COUNTER_DEV_H
#define SCHED_COUNTER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sched/pool.dev.h"
#endif

/* Called by lane 0. The caller does not call again after no task was left, so each worker adds once beyond the end. */
LOOM_FN uint64_t counter_claim(struct loom_ctx *c)
{
	struct sched_local *l = sched_local(c);
	if (l->at == l->end) {
		uint64_t all = c->ctl->initial_tasks, n = SCHED_CFG(c, claim_size);
		/* Relaxed: the set is constant, the counter orders nothing else. */
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

LOOM_FN int sched_counter_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	return sched_pool_spawn(c, task);
}

LOOM_FN int sched_counter_wanted(struct loom_ctx *c)
{
	return sched_pool_wanted(c);
}

LOOM_FN void sched_counter_run(struct loom_ctx *c)
{
	sched_own_start(c);
	sched_pool_run(c, counter_claim, (uint32_t *)NULL);
}

#endif
