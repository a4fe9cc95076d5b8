/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the persistent kernel, and ends it. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "gpu.h"

void gpu_wake(void *self)
{
	struct gpu *d = self;
	/* Release: pairs with the acquires of this word in watch_until() and watch_chain(), which poll it between
	 * naps. */
	__atomic_store_n(&d->nudged, 1, __ATOMIC_RELEASE);
}

/* Returns 1 if all workers of a small sample have left it. Acquire: pairs with the release in loom_gpu_leave_small().
 */
static int have_left(const struct gpu *d, const struct launch *l)
{
	uint32_t i = 0;
	while (i < l->ends && (uint32_t)__atomic_load_n(&d->words->end[i].done, __ATOMIC_ACQUIRE) == l->phase)
		i++;
	return l->ends && i == l->ends;
}

/* Acquire: pairs with the release in loom_gpu_finish(), loom_gpu_conclude() or loom_gpu_tell_end(). The last worker has
 * acquired the results of all workers before. */
static int is_done(const struct gpu *d, const struct launch *l)
{
	if (!l->quick)
		return __atomic_load_n(&d->words->done, __ATOMIC_ACQUIRE) == l->phase;
	return have_left(d, l) || (uint32_t)__atomic_load_n(&d->words->quick_done, __ATOMIC_ACQUIRE) == l->phase;
}

static int gpu_muster(void *self, struct loom_error *err)
{
	struct gpu *d = self;
	struct launch *l = d->launch;
	if (!l || !l->kept)
		return 0;
	int code = gpu_enter(d, err);
	if (code)
		return code;
	l->phase = __atomic_load_n(&l->ctl->phase, __ATOMIC_RELAXED); /* relaxed, because this thread stored the word */
	code = l->resident ? resident_ready(d, l, l->phase, err) : launch_sample(d, l, err);
	l->mustered = !code;
	gpu_leave(d);
	return code;
}

int gpu_ready(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct gpu *d = self;
	struct launch *l = d->launch;
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	if (l->chain.what && !d->flush)
		return 0; /* no kernel runs before go() */
	int code = gpu_enter(d, err);
	if (code)
		return code;
	if (l->chain.what) {
		int rc = d->driver->clear(d, d->flush, gpu_flush_bytes(d));
		gpu_leave(d);
		return rc == 0 ? 0 : gpu_fail(d, err, rc, NULL);
	}
	l->phase = __atomic_load_n(&l->ctl->phase, __ATOMIC_RELAXED); /* relaxed, because this thread stored the word */
	code = watch_until(d, l, watch_is_ready, !l->resident, d->host->now_ns(d->host), watch_deadline(d, timeout_ns),
			   NULL, err);
	if (code == LOOM_EAGAIN)
		code = watch_not_ready(d, l, timeout_ns, err);
	gpu_leave(d);
	return code;
}

int gpu_go(void *self, struct loom_error *err)
{
	struct gpu *d = self;
	struct launch *l = d->launch;
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	/* A kernel that runs already needs no wake-up, because its first worker polls the phase. */
	l->phase = __atomic_load_n(&l->ctl->phase, __ATOMIC_RELAXED);
	l->began_ns = l->chain.moved_ns = d->host->now_ns(d->host);
	l->chain.launched = l->chain.ended = 0;
	int code = 0, begins = (l->resident && !resident_go_on(d, l)) || (!l->resident && l->kept && !l->mustered);
	l->mustered = 0;
	if (begins && (code = gpu_enter(d, err)) == 0) {
		code = l->resident ? resident_go(d, l, err) : launch_sample(d, l, err);
		gpu_leave(d);
	}
	return code;
}

static uint64_t gpu_tally(void *self)
{
	const struct gpu *d = self;
	const struct launch *l = d->launch;
	uint64_t sum = 0;
	/* Acquired by is_done(). */
	if (!have_left(d, l))
		return l->quick ? d->words->quick_tally : d->words->tally;
	for (uint32_t i = 0; i < l->ends; i++)
		sum += d->words->end[i].tally;
	return sum;
}

const struct loom_device_kept gpu_kept = {sizeof(gpu_kept), .muster = gpu_muster, .rest = gpu_rest, .tally = gpu_tally};

/* Returns the end time of the sample. If this thread has waited for the sample, the end is the current time. If the
 * host has waited for another device, the end is the start plus the duration by the GPU's clock. */
static uint64_t end_of(const struct gpu *d, const struct launch *l, int watched)
{
	uint64_t now = d->host->now_ns(d->host), span = d->words->ended_ns - d->words->began_ns;
	return watched || l->quick || span > now - l->began_ns ? now : l->began_ns + span;
}

/* With kernels = launched or graph: waits for the last step. Returns the same as watch_until(). */
static int watch_chain(struct gpu *d, struct launch *l, uint64_t until, struct loom_error *err)
{
	int code;
	while ((code = chain_go_on(d, l, err)) == 0) {
		watch_pass_stop(d, l);
		if (__atomic_load_n(&l->ctl->stop, __ATOMIC_RELAXED))
			chain_release(l);
		if (d->host->now_ns(d->host) >= until || __atomic_exchange_n(&d->nudged, 0, __ATOMIC_ACQUIRE))
			return LOOM_EAGAIN;
		watch_nap(d, l->chain.moved_ns);
	}
	return code > 0 ? 0 : code;
}

/* In a program, most ends come soon. Waits for a short time without a system call. Returns 1 at the end. */
#define SOON_NS    50000ull
#define SOON_LOOKS 64
static int is_done_soon(const struct gpu *d, const struct launch *l, uint64_t timeout_ns)
{
	uint64_t until = watch_deadline(d, timeout_ns < SOON_NS ? timeout_ns : SOON_NS);
	do {
		for (int i = 0; i < SOON_LOOKS; i++)
			if (is_done(d, l))
				return 1;
	} while (d->host->now_ns(d->host) < until);
	return 0;
}

int gpu_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err)
{
	struct gpu *d = self;
	struct launch *l = d->launch;
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	int watched = l->chain.what || !is_done(d, l);
	if (l->kept && !l->chain.what && !d->lost && is_done_soon(d, l, timeout_ns)) {
		*end_ns = end_of(d, l, watched);
		return 0;
	}
	int code = gpu_enter(d, err);
	if (code)
		return code;
	code = l->chain.what
		   ? watch_chain(d, l, watch_deadline(d, timeout_ns), err)
		   : watch_until(d, l, is_done, 1, l->began_ns, watch_deadline(d, timeout_ns), &d->nudged, err);
	if (!code)
		*end_ns = end_of(d, l, watched);
	gpu_leave(d);
	return code;
}

int gpu_states(void *self, uint32_t *out, uint32_t workers)
{
	struct gpu *d = self;
	uint32_t *at = NULL;
	if (!d->launch || workers != d->launch->count || gpu_enter(d, NULL) != 0)
		return LOOM_EIO;
	at = watch_stages(d, d->launch);
	for (uint32_t i = 0; at && i < workers; i++)
		out[i] = at[i] >= LOOM_GPU_WORKING    ? at[i] - LOOM_GPU_WORKING
			 : at[i] == LOOM_GPU_FINISHED ? (uint32_t)LOOM_STATE_DONE
						      : (uint32_t)LOOM_STATE_PARKED;
	d->host->free(d->host, at);
	gpu_leave(d);
	return at ? 0 : LOOM_EIO;
}

static int still_runs(struct gpu *d, const struct launch *l, int *running)
{
	uint32_t inside = 0;
	int rc = d->driver->running(d, running);
	if (rc == 0 && l->captured)
		rc = enqueue_inside(d, &inside);
	*running |= enqueued_left(d, l) || inside;
	return rc;
}

/* Waits until no kernel is in the device's own stream, and all samples in streams of the program and in its graphs have
 * ended. Kernels of graphs that begin later leave at once. */
static int await_exit(struct gpu *d, struct launch *l, uint64_t until, int *running)
{
	int rc;
	uint64_t begin = d->host->now_ns(d->host);
	while ((rc = still_runs(d, l, running)) == 0 && *running && d->host->now_ns(d->host) < until) {
		chain_release(l);
		watch_nap(d, begin);
	}
	return rc;
}

/* Reports a kernel that hangs. Only the end of this process ends the kernel, so its memory must stay. */
static int hung(struct gpu *d, const struct launch *l, uint64_t timeout_ns, struct loom_error *err)
{
	char late[160];
	watch_late(d, l, l->chain.what || l->kept ? LOOM_GPU_FINISHED : LOOM_GPU_PARKED, late, sizeof(late));
	/* The text is also logged, because the error of the run is the time-out, which came first. */
	if (!d->lost)
		LOOM_LOG(d->host, LOOM_LOG_WARN, d->name, "%s", late);
	d->lost = LOST_HUNG;
	return LOOM_FAIL(d->host, err, LOOM_ETIMEDOUT,
			 "%s: its kernel did not leave within %" PRIu64 " ms: %s; a kernel cannot be "
			 "killed: end this process to free the GPU",
			 d->name, timeout_ns / 1000000, late);
}

int gpu_retire(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct gpu *d = self;
	struct launch *l = d->launch;
	if (!l)
		return 0;
	int code = 0, running = 0;
	if (d->lost == LOST_DEAD || d->driver->enter(d) != 0) {
		/* The error was reported when the device was lost, and no kernel runs any more. */
		d->launch = NULL;
		d->host->free(d->host, l);
		return 0;
	}
	/* The first worker passes RETIRE on to the other workers. The host also passes it on, in case the first worker
	 * hangs, but not in a kept launch. In a kept launch, a kernel for one sample ends by itself, and the next
	 * kernel in the stream would take RETIRE for its own phase. */
	watch_pass_stop(d, l);
	resident_retire(d, l);
	if (!l->kept)
		watch_pass_on(d, offsetof(struct loom_ctl, phase), LOOM_PHASE_RETIRE);
	int rc = 0;
	if (l->captured)
		rc = enqueue_permit(d, 0);
	if (rc == 0)
		rc = await_exit(d, l, watch_deadline(d, timeout_ns), &running);
	if (rc == 0 && running) {
		code = hung(d, l, timeout_ns, err);
	} else {
		d->lost = 0;
		if (rc != 0)
			code = gpu_dead(d, rc, err);
	}
	if (d->lost != LOST_HUNG) {
		chain_forget(d, l);
		d->launch = NULL;
		d->host->free(d->host, l);
	}
	gpu_leave(d);
	return code;
}
