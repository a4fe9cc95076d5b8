/* SPDX-License-Identifier: Apache-2.0 */
/* Workers that stay on the GPU between runs of a program that embeds gpuloom, and leave after a time without a run.
 * Host and workers must agree whether the workers have left. The models tests/models/resident.pml and, for quick =
 * yes, resident_quick.pml show how. */
#include <inttypes.h>

#include "gpu.h"

/* Limit on the time until workers are ready. It is long, because other kernels may use the GPU. */
#define READY_NS 60000000000ull
/* A kernel that does not decide within this time has died, and the next wait reports it. */
#define DECIDES_NS 1000000000ull

/* Gives the workers an order. Returns 1 if the workers have left without the order. Returns 0 if they have got it, even
 * if they have left afterwards. Workers that are about to leave decide soon, after a few accesses to host memory. */
static int post(struct gpu *d, struct launch *l, uint32_t phase, uint32_t order)
{
	uint64_t leave, until = watch_deadline(d, DECIDES_NS);
	l->posted = phase;
	/* The store pairs with the acquires in loom_gpu_await_order() or, with quick = yes, in loom_gpu_take_order(),
	 * because all data of the sample precede it. The store and the load after it are sequentially consistent, and
	 * pair with the fence in loom_gpu_leaves(). */
	__atomic_store_n(&d->words->order, (uint64_t)phase << 32 | order, __ATOMIC_SEQ_CST);
	while ((leave = __atomic_load_n(&d->words->leave, __ATOMIC_SEQ_CST)) == LOOM_GPU_ASKS &&
	       d->host->now_ns(d->host) < until)
		;
	/* After a quick order, workers may have got ready for the next sample before they left. */
	uint32_t last = (uint32_t)(leave >> 32);
	return (uint32_t)leave == LOOM_GPU_LEFT && (l->may_be_quick ? (int32_t)(last - phase) < 0 : last != phase);
}

static int start(struct gpu *d, struct launch *l, uint32_t ready, struct loom_error *err)
{
	const struct loom_gpu_order order = {.phase = ready, .kept = LOOM_GPU_RESIDENT};
	/* No worker uses these words at this time. In stream order, new workers begin after the last old worker has
	 * left. */
	__atomic_store_n(&d->words->order, (uint64_t)ready << 32, __ATOMIC_RELAXED);
	/* The old workers may have set `ready` for the same sample before they left. */
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
	uint32_t flags = launch_flags(l);
	if (tasks > (d->options->quick ? LOOM_ORDER_TASKS : UINT32_MAX))
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: %" PRIu64 " initial tasks: resident = yes takes fewer than 2^%d", d->name, tasks,
				 d->options->quick ? 28 : 32);
	for (;;) {
		int code = resident_ready(d, l, ready, err);
		l->phase = ready;
		if (!code)
			code = watch_until(d, l, watch_is_ready, 0, d->host->now_ns(d->host), until, NULL, err);
		if (code == LOOM_EAGAIN)
			code = watch_not_ready(d, l, READY_NS, err);
		l->phase = go;
		if (code || !post(d, l, go, (uint32_t)tasks | flags))
			return code;
		l->resides = 0; /* the workers left after they were ready */
	}
}

int resident_go_on(struct gpu *d, struct launch *l)
{
	uint64_t tasks = l->ctl->initial_tasks;
	if (d->lost || !l->quick || !l->resides || l->posted != l->phase - 2 || tasks > LOOM_ORDER_TASKS)
		return 0;
	l->resides = !post(d, l, l->phase, (uint32_t)tasks | launch_flags(l));
	return l->resides;
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
	/* After a quick sample the workers get ready without an order. */
	if (l && l->quick) {
		l->posted = ready;
		return 0;
	}
	/* If the workers have left, they are not launched here, because the next run may come much later. */
	if (l && l->resident && l->resides && post(d, l, ready, 0))
		l->resides = 0;
	(void)err;
	return 0;
}
