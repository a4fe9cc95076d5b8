/* SPDX-License-Identifier: Apache-2.0 */
/* Polls words that a kernel writes. Also finds out whether the kernel is alive, and what its workers do. */
#include <inttypes.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpu.h"

#define CHECK_NS      1000000ull  /* interval of the checks that the kernel is alive; each check is a driver call */
#define SPIN_NS       10000000ull /* time for which the end of a sample is polled without sleep */
#define SLEEP_PART    512         /* after SPIN_NS, each nap takes 1/512 of the time waited so far */
#define SLEEP_MOST_NS 4000000ull

static uint64_t now_ns(const struct gpu *d)
{
	return d->host->now_ns(d->host);
}

uint64_t watch_deadline(const struct gpu *d, uint64_t timeout_ns)
{
	uint64_t now = now_ns(d);
	return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

void watch_nap(const struct gpu *d, uint64_t since_ns)
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
uint32_t *watch_stages(struct gpu *d, const struct launch *l)
{
	size_t bytes = l->count * sizeof(uint32_t);
	uint32_t *at = d->host->alloc(d->host, bytes);
	if (at && d->driver->read(d, at, d->gate + sizeof(struct loom_gpu_gate), bytes) == 0)
		return at;
	d->host->free(d->host, at);
	return NULL;
}

/* Describes how many workers are not at `stage`, and what the first of these workers does. A worker that has left still
 * has the stage that it had when it parked last. */
void watch_late(struct gpu *d, const struct launch *l, uint32_t stage, char *out, size_t room)
{
	uint32_t late = 0, first = 0, *at = watch_stages(d, l);
	if (!at) {
		snprintf(out, room, "which workers hang cannot be read");
		return;
	}
	for (uint32_t i = l->count; i-- > 0;)
		/* Workers that take no part in a small sample are still ready. */
		if (at[i] != stage && !(l->ends && at[i] == LOOM_GPU_READY)) {
			late++;
			first = i;
		}
	snprintf(out, room, "%u of %u workers are late, worker %u %s", late, l->count,
		 l->what->layout->device[l->what->device].first_worker + first, stage_text(at[first]));
	d->host->free(d->host, at);
}

/* Returns 0 while the kernel runs, and LOOM_EDIED if it has failed. ends: 1 if the end of the kernel counts as a
 * failure. */
static int check_alive(struct gpu *d, int ends, struct loom_error *err)
{
	int running = 0, rc = d->driver->running(d, &running);
	if (rc != 0)
		return gpu_dead(d, rc, err);
	if (running || !ends)
		return 0;
	return LOOM_FAIL(d->host, err, LOOM_EDIED, "%s: its kernel has ended by itself", d->name);
}

/* ---- the host's words in the device's copy ---- */

int watch_pass_on(struct gpu *d, size_t offset, uint32_t value)
{
	return d->driver->write(d, d->gate + offsetof(struct loom_gpu_gate, ctl) + offset, &value, sizeof(value));
}

/* Copies the stop flag from host memory to the device, where running workers poll it. Does this once in a launch. */
void watch_pass_stop(struct gpu *d, struct launch *l)
{
	if (l->stop_passed || !__atomic_load_n(&l->ctl->stop, __ATOMIC_RELAXED))
		return;
	l->stop_passed = watch_pass_on(d, offsetof(struct loom_ctl, stop), 1) == 0;
}

int watch_until(struct gpu *d, struct launch *l, int (*over)(const struct gpu *d, const struct launch *l), int ends,
		uint64_t since_ns, uint64_t until, uint32_t *nudged, struct loom_error *err)
{
	uint64_t check = now_ns(d) + CHECK_NS;
	while (!over(d, l)) {
		uint64_t now = now_ns(d);
		if (now >= check) {
			int code = check_alive(d, ends, err);
			/* The kernel may have stored the word and ended after the last call of over(). */
			if (code)
				return over(d, l) ? 0 : code;
			check = now + CHECK_NS;
		}
		watch_pass_stop(d, l);
		if (now >= until || (nudged && __atomic_exchange_n(nudged, 0, __ATOMIC_ACQUIRE)))
			return LOOM_EAGAIN;
		watch_nap(d, since_ns);
	}
	return 0;
}

/* Acquire: pairs with the release in loom_gpu_arrive(). The last worker has acquired the work of all workers before. */
int watch_is_ready(const struct gpu *d, const struct launch *l)
{
	return __atomic_load_n(&d->words->ready, __ATOMIC_ACQUIRE) == l->phase;
}

int watch_not_ready(struct gpu *d, const struct launch *l, uint64_t timeout_ns, struct loom_error *err)
{
	char late[160];
	watch_late(d, l, LOOM_GPU_READY, late, sizeof(late));
	return LOOM_FAIL(d->host, err, LOOM_ETIMEDOUT, "%s: not ready after %" PRIu64 " ms: %s", d->name,
			 timeout_ns / 1000000, late);
}
