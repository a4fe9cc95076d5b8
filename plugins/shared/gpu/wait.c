/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for the persistent kernel, and ends it. */
#include <inttypes.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpu.h"

#define CHECK_NS      1000000ull  /* interval of checks whether the kernel is alive, each of which is a driver call */
#define SPIN_NS       10000000ull /* time to poll for the end of a sample without sleep */
#define SLEEP_PART    512         /* later naps take this part of the time waited: loom_nap() */
#define SLEEP_MOST_NS 4000000ull

static uint64_t now_ns(const struct gpu *d)
{
	return d->host->now_ns(d->host);
}

static uint64_t deadline(const struct gpu *d, uint64_t timeout_ns)
{
	uint64_t now = now_ns(d);
	return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

static void nap(const struct gpu *d, uint64_t since_ns)
{
	uint64_t waited = now_ns(d) - since_ns, ns = waited / SLEEP_PART;
	if (waited < SPIN_NS)
		sched_yield();
	else
		nanosleep(&(struct timespec){.tv_nsec = (long)(ns < SLEEP_MOST_NS ? ns : SLEEP_MOST_NS)}, NULL);
}

/* ---- what is wrong, in words ---- */

static const char *stage_text(uint32_t stage)
{
	static const char *const text[] = {"has not started", "waits for a sample", "waits for the start",
					   "has finished",
#define STATE_TEXT(NAME, text) "is " text,
					   LOOM_STATE_MAP(STATE_TEXT)
#undef STATE_TEXT
	};
	return stage < sizeof(text) / sizeof(text[0]) ? text[stage] : "is in no known state";
}

/* Returns the stages of all workers, or NULL if they cannot be read. */
static uint32_t *read_stages(struct gpu *d, const struct launch *l)
{
	size_t bytes = l->count * sizeof(uint32_t);
	uint32_t *at = d->host->alloc(d->host, bytes);
	if (at && d->driver->read(d, at, d->gate + sizeof(struct loom_gpu_gate), bytes) == 0)
		return at;
	d->host->free(d->host, at);
	return NULL;
}

/* Describes how many workers are not at `stage`, and the first of them. A worker that has left keeps the stage of its
 * last park. */
static void find_late(struct gpu *d, const struct launch *l, uint32_t stage, char *out, size_t room)
{
	uint32_t late = 0, first = 0, *at = read_stages(d, l);
	if (!at) {
		snprintf(out, room, "which workers hang cannot be read");
		return;
	}
	for (uint32_t i = l->count; i-- > 0;)
		if (at[i] != stage) {
			late++;
			first = i;
		}
	snprintf(out, room, "%u of %u workers are late, worker %u %s", late, l->count,
		 l->what->layout->device[l->what->device].first_worker + first, stage_text(at[first]));
	d->host->free(d->host, at);
}

/* Returns 0 while the kernel runs, or LOOM_EDIED if it has ended or failed. */
static int check_alive(struct gpu *d, struct loom_error *err)
{
	int running = 0, rc = d->driver->running(d, &running);
	if (rc != 0)
		return gpu_dead(d, rc, err);
	if (running)
		return 0;
	return LOOM_FAIL(d->host, err, LOOM_EDIED, "%s: its kernel has ended by itself", d->name);
}

/* ---- the host's words in the device's copy ---- */

static int pass_on(struct gpu *d, size_t offset, uint32_t value)
{
	return d->driver->write(d, d->gate + offsetof(struct loom_gpu_gate, ctl) + offset, &value, sizeof(value));
}

/* Passes the stop flag on: the host sets it in host memory, but running workers poll the copy on the device. */
static void pass_stop(struct gpu *d, struct launch *l)
{
	if (l->stop_passed || !__atomic_load_n(&l->ctl->stop, __ATOMIC_RELAXED))
		return;
	l->stop_passed = pass_on(d, offsetof(struct loom_ctl, stop), 1) == 0;
}

/* ---- ops ---- */

/* Waits until *word is `value`. Returns 0, LOOM_EAGAIN at the deadline or after gpu_wake(), or LOOM_EDIED. */
static int watch(struct gpu *d, struct launch *l, const uint32_t *word, uint32_t value, uint64_t since_ns,
		 uint64_t until, uint32_t *nudged, struct loom_error *err)
{
	uint64_t check = now_ns(d) + CHECK_NS;
	/* Acquire: pairs with the last worker's release, which covers the results of all workers. */
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value) {
		uint64_t now = now_ns(d);
		if (now >= check) {
			int code = check_alive(d, err);
			/* The kernel may have stored the word and ended between the two checks. */
			if (code)
				return __atomic_load_n(word, __ATOMIC_ACQUIRE) == value ? 0 : code;
			check = now + CHECK_NS;
		}
		pass_stop(d, l);
		if (now >= until || (nudged && __atomic_exchange_n(nudged, 0, __ATOMIC_ACQUIRE)))
			return LOOM_EAGAIN;
		nap(d, since_ns);
	}
	return 0;
}

void gpu_wake(void *self)
{
	struct gpu *d = self;
	/* Release: pairs with the acquire in watch(), which polls between naps. */
	__atomic_store_n(&d->nudged, 1, __ATOMIC_RELEASE);
}

int gpu_ready(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct gpu *d = self;
	struct launch *l = d->launch;
	char late[160];
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	if (l->chain.what)
		return 0; /* no kernel runs before go() */
	int code = gpu_enter(d, err);
	if (code)
		return code;
	l->phase = __atomic_load_n(&l->ctl->phase, __ATOMIC_RELAXED); /* stored by this thread */
	code = watch(d, l, &d->words->ready, l->phase, now_ns(d), deadline(d, timeout_ns), NULL, err);
	if (code == LOOM_EAGAIN) {
		find_late(d, l, LOOM_GPU_READY, late, sizeof(late));
		code = LOOM_FAIL(d->host, err, LOOM_ETIMEDOUT, "%s: not ready after %" PRIu64 " ms: %s", d->name,
				 timeout_ns / 1000000, late);
	}
	gpu_leave(d);
	return code;
}

int gpu_go(void *self, struct loom_error *err)
{
	struct gpu *d = self;
	struct launch *l = d->launch;
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	/* No wake-up is needed, because worker 0 polls the word. */
	l->phase = __atomic_load_n(&l->ctl->phase, __ATOMIC_RELAXED);
	l->began_ns = l->chain.moved_ns = now_ns(d);
	l->chain.launched = l->chain.ended = 0;
	return 0;
}

/* Returns the end of the sample: now, if this thread waited for it. Otherwise the host waited for another device, and
 * the end is the start plus the time by the GPU's clock. */
static uint64_t end_of(const struct gpu *d, const struct launch *l, int watched)
{
	uint64_t now = now_ns(d), span = d->words->ended_ns - d->words->began_ns;
	return watched || span > now - l->began_ns ? now : l->began_ns + span;
}

/* kernels = launched: waits for the last step. Returns the same as watch(). */
static int watch_chain(struct gpu *d, struct launch *l, uint64_t until, struct loom_error *err)
{
	int code;
	while ((code = chain_go_on(d, l, err)) == 0) {
		pass_stop(d, l);
		if (__atomic_load_n(&l->ctl->stop, __ATOMIC_RELAXED))
			chain_release(l);
		if (now_ns(d) >= until || __atomic_exchange_n(&d->nudged, 0, __ATOMIC_ACQUIRE))
			return LOOM_EAGAIN;
		nap(d, l->chain.moved_ns);
	}
	return code > 0 ? 0 : code;
}

int gpu_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err)
{
	struct gpu *d = self;
	struct launch *l = d->launch;
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	int code = gpu_enter(d, err);
	if (code)
		return code;
	int watched = l->chain.what || __atomic_load_n(&d->words->done, __ATOMIC_RELAXED) != l->phase;
	code = l->chain.what
		   ? watch_chain(d, l, deadline(d, timeout_ns), err)
		   : watch(d, l, &d->words->done, l->phase, l->began_ns, deadline(d, timeout_ns), &d->nudged, err);
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
	at = read_stages(d, d->launch);
	for (uint32_t i = 0; at && i < workers; i++)
		out[i] = at[i] >= LOOM_GPU_WORKING    ? at[i] - LOOM_GPU_WORKING
			 : at[i] == LOOM_GPU_FINISHED ? (uint32_t)LOOM_STATE_DONE
						      : (uint32_t)LOOM_STATE_PARKED;
	d->host->free(d->host, at);
	gpu_leave(d);
	return at ? 0 : LOOM_EIO;
}

/* Waits until the kernel has left the stream. */
static int await_exit(struct gpu *d, struct launch *l, uint64_t until, int *running)
{
	int rc;
	uint64_t begin = now_ns(d);
	while ((rc = d->driver->running(d, running)) == 0 && *running && now_ns(d) < until) {
		chain_release(l);
		nap(d, begin);
	}
	return rc;
}

/* Only the end of this process ends a kernel that hangs, so its memory must stay. */
static int hung(struct gpu *d, const struct launch *l, uint64_t timeout_ns, struct loom_error *err)
{
	char late[160];
	find_late(d, l, l->chain.what ? LOOM_GPU_FINISHED : LOOM_GPU_PARKED, late, sizeof(late));
	/* Logged, too, because the error of the run is the time-out, which came first. */
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
		/* The error was reported when it was set, and no kernel runs any more. */
		d->launch = NULL;
		d->host->free(d->host, l);
		return 0;
	}
	/* Worker 0 passes RETIRE on. The host does so, too, in case worker 0 hangs. */
	pass_stop(d, l);
	pass_on(d, offsetof(struct loom_ctl, phase), LOOM_PHASE_RETIRE);
	int rc = await_exit(d, l, deadline(d, timeout_ns), &running);
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
