/* SPDX-License-Identifier: Apache-2.0 */
/* Samples in streams of the program that embeds gpuloom. A sample may become a part of a graph of the program. */
#include <stddef.h>

#include "gpu.h"

int enqueued_left(const struct gpu *d, const struct launch *l)
{
	/* Acquire: pairs with the release in loom_gpu_conclude(). The worker that finishes last
	 * has already acquired the results of the other workers, so this thread sees all results. */
	return l->enqueued != __atomic_load_n(&d->words->ended, __ATOMIC_ACQUIRE);
}

static uint64_t permit_at(const struct gpu *d, int upper)
{
	uint32_t half = upper ? sizeof(uint32_t) : 0;
	return d->gate + offsetof(struct loom_gpu_gate, permit) + half;
}

int enqueue_permit(struct gpu *d, uint32_t launch)
{
	return d->driver->write(d, permit_at(d, 1), &launch, sizeof(launch));
}

int enqueue_inside(struct gpu *d, uint32_t *inside)
{
	return d->driver->read(d, inside, permit_at(d, 0), sizeof(*inside));
}

static int have_ended(const struct gpu *d, const struct launch *l)
{
	return !enqueued_left(d, l);
}

int enqueue_check(struct gpu *d, void *stream, int *captures, struct loom_error *err)
{
	int ours = 0;
	int rc = d->driver->stream_is_ours(d, stream, &ours);
	if (rc == 0 && !ours)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: the stream belongs to another GPU, or to a context that is not the primary one",
				 d->name);
	if (rc == 0)
		rc = d->driver->captures(d, stream, captures);
	return rc == 0 ? 0 : gpu_fail(d, err, rc, NULL);
}

int gpu_captures(void *self, void *stream, int *is, struct loom_error *err)
{
	struct gpu *d = self;
	if (!d->driver->enqueue)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP, "%s: its driver has no streams for runs", d->name);
	int code = gpu_enter(d, err);
	if (code)
		return code;
	code = enqueue_check(d, stream, is, err);
	gpu_leave(d);
	return code;
}

static int enqueue(struct gpu *d, struct launch *l, void *stream, loom_ref tasks, uint64_t initial_tasks,
		   struct loom_error *err)
{
	int captures = 0, code = enqueue_check(d, stream, &captures, err);
	uint64_t view = 0;
	if (!code && !captures && stream != l->stream && enqueued_left(d, l))
		code =
		    LOOM_FAIL(d->host, err, LOOM_EBUSY,
			      "%s: runs in another stream have not ended: wait for them, or use one stream", d->name);
	if (!code && tasks)
		code = memory_view(d, &l->what->segment[LOOM_REF_SEGMENT(tasks)], &view, err);
	if (code)
		return code;
	const struct loom_gpu_order order = {.phase = LOOM_PHASE_GO((uint32_t)(l->enqueued + l->captured)),
					     .kept = captures ? LOOM_GPU_CAPTURED : LOOM_GPU_ENQUEUED,
					     .launch = l->number,
					     .initial_tasks = initial_tasks,
					     .tasks = tasks ? (const void *)(uintptr_t)(view + LOOM_REF_OFFSET(tasks))
							    : NULL};
	int rc = d->driver->enqueue(d, stream, &d->kernel[LOOM_ENTRY_WORK], l->blocks, l->threads, l->shared, &order);
	if (rc != 0)
		return gpu_fail(d, err, rc, NULL);
	if (captures) {
		l->captured++;
		return 0;
	}
	l->enqueued++;
	l->stream = stream;
	return 0;
}

int gpu_enqueue(void *self, void *stream, loom_ref tasks, uint64_t initial_tasks, struct loom_error *err)
{
	struct gpu *d = self;
	if (!d->launch || !d->launch->kept)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	if (d->launch->resident)
		return LOOM_FAIL(
		    d->host, err, LOOM_ENOTSUP,
		    "%s: its workers stay between runs, and a stream would wait for them: set resident = no in "
		    "[device.gpu]",
		    d->name);
	int code = gpu_enter(d, err);
	if (code)
		return code;
	code = enqueue(d, d->launch, stream, tasks, initial_tasks, err);
	gpu_leave(d);
	return code;
}

int gpu_drain(void *self, uint64_t timeout_ns, struct loom_enqueued *out, struct loom_error *err)
{
	struct gpu *d = self;
	struct launch *l = d->launch;
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	int code = gpu_enter(d, err);
	if (code)
		return code;
	code =
	    watch_until(d, l, have_ended, 0, d->host->now_ns(d->host), watch_deadline(d, timeout_ns), &d->nudged, err);
	*out = (struct loom_enqueued){.ended = __atomic_load_n(&d->words->ended, __ATOMIC_ACQUIRE),
				      .replayed = __atomic_load_n(&d->words->replayed, __ATOMIC_ACQUIRE),
				      .wrong = __atomic_load_n(&d->words->wrong, __ATOMIC_RELAXED)};
	if (!code) { /* if a launch has not ended, a worker may be about to write these words */
		out->initial_tasks = d->words->initial_tasks;
		out->ns = d->words->ended_ns - d->words->began_ns;
	}
	gpu_leave(d);
	return code;
}
