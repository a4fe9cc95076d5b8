/* SPDX-License-Identifier: Apache-2.0 */
/* replay: the allreduces of a training job, and the job's computation before each of them. Device code. */
#ifndef WORKLOAD_REPLAY_DEV_H
#define WORKLOAD_REPLAY_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../collective/allreduce.dev.h"
#endif

#define REPLAY_TENSORS 32u

struct replay_tensor {
	struct loom_allreduce sum;
	uint64_t gap_ns;
};

/* Head of the global block. */
struct replay {
	uint64_t tensors, steps;
	struct replay_tensor tensor[REPLAY_TENSORS];
};

/* A worker's own block. */
struct replay_times {
	uint64_t ns, blocked_ns;
	uint64_t pad[6];
};

/* Returns the index of the first element of a tensor's values in a step, for loom_allreduce_element(). */
LOOM_FN uint64_t replay_first(uint64_t step, uint64_t tensor)
{
	return (step * REPLAY_TENSORS + tensor) << 32;
}

/* Fills this worker's slices of a gradient. */
LOOM_FN void replay_fill(struct loom_ctx *c, const struct loom_allreduce *a, uint64_t step, uint64_t tensor)
{
	float *to = loom_allreduce_input(c, a, step);
	for (uint32_t run = 0; run < loom_allreduce_runs(a); run++) {
		uint64_t begin, end;
		loom_allreduce_run(a, c->workers, c->worker, run, &begin, &end);
		loom_stream(c, (end - begin) * sizeof(float));
		for (uint64_t i = begin + c->lane; i < end; i += c->lanes)
			to[i] = loom_allreduce_element(replay_first(step, tensor) + i, a->rank);
	}
}

LOOM_FN void workload_replay_kernel(struct loom_ctx *c)
{
	struct replay *r = (struct replay *)c->global[LOOM_WORKLOAD];
	uint64_t steps = r->steps, tensors = r->tensors, begin = loom_clock_ns(c), blocked = 0;
	for (uint64_t n = 0; n < steps * tensors; n++) {
		struct replay_tensor copy = r->tensor[n % tensors];
		struct loom_allreduce_at at = {n / tensors, 0, 0};
		uint64_t until = loom_clock_ns(c) + copy.gap_ns;
		replay_fill(c, &copy.sum, at.round, n % tensors);
		loom_net_compute(c, until, 4096);
		uint64_t from = loom_clock_ns(c);
		if (!loom_allreduce_finish(c, &copy.sum, &at, 1))
			return;
		blocked += loom_clock_ns(c) - from;
	}
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		struct replay_times *times = (struct replay_times *)c->own[LOOM_WORKLOAD];
		times->ns = loom_clock_ns(c) - begin;
		times->blocked_ns = blocked;
	}
}

#endif
