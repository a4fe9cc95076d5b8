/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce: sums one vector, once or in several rounds. Device code. */
#ifndef WORKLOAD_ALLREDUCE_DEV_H
#define WORKLOAD_ALLREDUCE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../collective/allreduce.dev.h"
#endif

/* Head of the global block. A struct loom_net_late for each worker follows. */
struct allreduce_job {
	struct loom_allreduce vector;
	uint64_t rounds;
	uint64_t pad[7];
};

/* A worker's own block. */
struct allreduce_times {
	uint64_t ns; /* time of all rounds */
	uint64_t pad[7];
};

LOOM_FN void workload_allreduce_kernel(struct loom_ctx *c)
{
	struct allreduce_job copy = LOOM_NET_HEAD(c, struct allreduce_job);
	struct loom_allreduce *a = &copy.vector;
	struct loom_allreduce_at at = {0, 0, 0};
	int going = 1;
	if (!loom_allreduce_posts(a)) { /* all ranks start together, so that no late start counts as time of a round */
		loom_allreduce_signal(c, a, 1, 1);
		going = loom_allreduce_await_signals(c, a, 1, 1, 1);
	}
	uint64_t begin = loom_clock_ns(c);
	for (; going && copy.rounds > at.round; at.round++, at.step = 0)
		going = loom_allreduce_finish(c, a, &at, 1);
	loom_barrier_lanes(c);
	if (going && c->lane == 0)
		((struct allreduce_times *)c->own[LOOM_WORKLOAD])->ns = loom_clock_ns(c) - begin;
}

#endif
