/* SPDX-License-Identifier: Apache-2.0 */
/* Device code of the workload: each round moves every rank's vector half of the way to the average of all ranks. */
#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/collective/allreduce.dev.h>
#endif

/* The head of the memory block that the workload has in the stack. */
struct average {
	struct loom_allreduce sum;
	uint64_t rounds, mine_at; /* mine_at: offset of this rank's vector in the block, in bytes */
	uint64_t pad[6];
};

LOOM_FN void workload_average_kernel(struct loom_ctx *c)
{
	struct average copy = LOOM_NET_HEAD(c, struct average);
	const struct loom_allreduce *a = &copy.sum;
	float *mine = (float *)((char *)c->global[LOOM_WORKLOAD] + copy.mine_at);
	struct loom_allreduce_at at = {0, 0, 0};
	uint64_t begin, end;
	for (; at.round < copy.rounds; at.round++, at.step = 0) {
		float *input = loom_allreduce_input(c, a, at.round);
		for (uint32_t run = 0; run < loom_allreduce_runs(a); run++) {
			loom_allreduce_run(a, c->workers, c->worker, run, &begin, &end);
			for (uint64_t i = begin + c->lane; i < end; i += c->lanes)
				input[i] = mine[i];
		}
		if (!loom_allreduce_finish(c, a, &at, 1))
			return;
		const float *sum = loom_allreduce_sums(c, a, at.round);
		for (uint32_t run = 0; run < loom_allreduce_runs(a); run++) {
			loom_allreduce_run(a, c->workers, c->worker, run, &begin, &end);
			for (uint64_t i = begin + c->lane; i < end; i += c->lanes)
				mine[i] = (mine[i] + sum[i] / (float)a->ranks) / 2;
		}
	}
}
