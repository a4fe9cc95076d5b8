/* SPDX-License-Identifier: Apache-2.0 */
/* Counts Collatz steps. This file is the source of a task function for CPUs and GPUs. */
#define COLLATZ_FEW 512u /* a task with at most this many numbers does not split */

/* param[0]: the first number; param[1]: how many numbers. data: an array with one counter of steps per device, each on
 * its own cache line. Each device has a counter, because some devices cannot add to memory of another device. A task
 * with a larger range splits it in halves. */
LOOM_FN void collatz_range(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t first = t->param[0], n = t->param[1], steps = 0;
	if (n > COLLATZ_FEW) {
		struct loom_task half = *t;
		half.tag = LOOM_TAG_collatz_range;
		half.param[1] = n / 2;
		if (LOOM_CALL(sched, spawn, c, &half))
			return; /* the run has failed, and the host reports the error */
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
