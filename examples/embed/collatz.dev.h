/* SPDX-License-Identifier: Apache-2.0 */
/* The number of Collatz steps: task functions as source, for CPUs and GPUs. */
#define COLLATZ_FEW 512u /* numbers that one task processes itself */

/* param[0], param[1]: the first number and the count. data: a counter of steps for each device, on its own line, since
 * not all devices can add to the same word. The task splits a larger range in halves. */
LOOM_FN void collatz_range(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t first = t->param[0], n = t->param[1], steps = 0;
	if (n > COLLATZ_FEW) {
		struct loom_task half = *t;
		half.tag = LOOM_TAG_collatz_range;
		half.param[1] = n / 2;
		if (LOOM_CALL(sched, spawn, c, &half))
			return; /* the run has failed: the host reports it */
		half.param[0] = first + n / 2;
		half.param[1] = n - n / 2;
		LOOM_CALL(sched, spawn, c, &half);
		return;
	}
	/* The lanes of a worker divide the numbers. */
	for (uint64_t i = c->lane; i < n; i += c->lanes)
		for (uint64_t x = first + i; x != 1; steps++)
			x = x % 2 ? 3 * x + 1 : x / 2;
	loom_fetch_add_relaxed_dev((uint64_t *)loom_at(c, t->data.ref) + 8 * c->device, steps);
}
