/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that stay on the GPU between runs of a program that embeds gpuloom, and leave after a time without one.
 * tests/models/resident.pml: how host and workers agree whether these are still there. */
#include <inttypes.h>

#include "gpu.h"

#define READY_NS   60000000000ull /* until workers are ready: other kernels may have the GPU */
#define DECIDES_NS 1000000000ull  /* a kernel that does not decide within that time has died, as the next wait finds */

/* 1 when the workers have left without this order: they may also have carried it out and left since. They decide within
 * a few accesses to host memory. */
static int post(struct gpu *d, struct launch *l, uint32_t phase, uint64_t initial_tasks)
{
	uint64_t leave, until = watch_deadline(d, DECIDES_NS);
	l->posted = phase;
	/* Pairs with the acquire of worker 0; all that the sample needs is before it. Sequentially consistent, as the
	 * load behind it: these two pair with the fence in loom_gpu_leaves(). */
	__atomic_store_n(&d->words->order, (uint64_t)phase << 32 | initial_tasks, __ATOMIC_SEQ_CST);
	while ((leave = __atomic_load_n(&d->words->leave, __ATOMIC_SEQ_CST)) == LOOM_GPU_ASKS &&
	       d->host->now_ns(d->host) < until)
		;
	return (uint32_t)leave == LOOM_GPU_LEFT && (uint32_t)(leave >> 32) != phase;
}

static int start(struct gpu *d, struct launch *l, uint32_t ready, struct loom_error *err)
{
	const struct loom_gpu_order order = {.phase = ready, .kept = LOOM_GPU_RESIDENT};
	/* No worker uses these now. In stream order the new ones begin after the last of the old ones has left. */
	__atomic_store_n(&d->words->order, (uint64_t)ready << 32, __ATOMIC_RELAXED);
	/* Those that left may have been ready for this sample. */
	__atomic_store_n(&d->words->ready, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&d->words->leave, LOOM_GPU_STAYS, __ATOMIC_RELEASE);
	l->posted = ready;
	int rc = d->driver->launch(d, &d->kernel[LOOM_ENTRY_WORK], l->blocks, l->threads, l->shared, &order);
	l->resides = rc == 0;
	return rc == 0 ? 0 : gpu_fail(d, err, rc, NULL);
}

int resident_ready(struct gpu *d, struct launch *l, uint32_t ready, struct loom_error *err)
{
	if (l->resides && l->posted == ready)
		return 0;
	if (l->resides && !post(d, l, ready, 0))
		return 0;
	return start(d, l, ready, err);
}

int resident_go(struct gpu *d, struct launch *l, struct loom_error *err)
{
	uint64_t until = watch_deadline(d, READY_NS), tasks = l->ctl->initial_tasks;
	uint32_t go = l->phase, ready = go - 2;
	if (tasks > UINT32_MAX)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: %" PRIu64 " initial tasks: resident = yes takes fewer than 2^32", d->name, tasks);
	for (;;) {
		int code = resident_ready(d, l, ready, err);
		l->phase = ready;
		if (!code)
			code = watch_until(d, l, watch_is_ready, 0, d->host->now_ns(d->host), until, NULL, err);
		if (code == LOOM_EAGAIN)
			code = watch_not_ready(d, l, READY_NS, err);
		l->phase = go;
		if (code || !post(d, l, go, tasks))
			return code;
		l->resides = 0; /* they left while they were ready */
	}
}

void resident_retire(struct gpu *d, struct launch *l)
{
	if (l->resides)
		(void)post(d, l, LOOM_PHASE_RETIRE, 0);
	l->resides = 0;
}

int gpu_rest(void *self, uint32_t ready, struct loom_error *err)
{
	struct gpu *d = self;
	struct launch *l = d->launch;
	/* Not worth a launch: the next run may be far away. */
	if (l && l->resident && l->resides && post(d, l, ready, 0))
		l->resides = 0;
	(void)err;
	return 0;
}
