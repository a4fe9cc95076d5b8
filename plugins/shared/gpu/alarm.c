/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts: a running kernel wakes a thread of the host. A stream of its own awaits the word, and then comes an event
 * on whose interrupt the thread sleeps. And copies in such a stream, which wait for no kernel. */
#include <gpuloom/interrupt.h>

#include "gpu.h"

struct alarm {
	struct loom_interrupt is;
	struct gpu *gpu;
	void *bell; /* the driver's */
	uint64_t at;
	int over; /* atomic */
};

static int wait_alarm(struct loom_interrupt *alarm, uint64_t least, struct loom_error *err)
{
	struct alarm *a = (struct alarm *)alarm;
	struct gpu *d = a->gpu;
	int rc = d->driver->bell_await(d, a->bell, a->at, least);
	/* What is lost the core's thread finds out. */
	return rc != 0 ? LOOM_FAIL(d->host, err, LOOM_EDIED, "%s: no interrupts: %s", d->name, d->driver->text(d, rc)) :
	       __atomic_load_n(&a->over, __ATOMIC_ACQUIRE) ? LOOM_EINTR : 0;
}

#define HIGHEST (1ull << 62) /* the stream compares signed numbers */

static void wake_alarm(struct loom_interrupt *alarm)
{
	struct alarm *a = (struct alarm *)alarm;
	uint64_t highest = HIGHEST;
	__atomic_store_n(&a->over, 1, __ATOMIC_RELEASE);
	if (a->gpu->driver->enter(a->gpu) != 0)
		return; /* then wait() fails, too */
	a->gpu->driver->write(a->gpu, a->at, &highest, sizeof(highest));
	gpu_leave(a->gpu);
}

static int failed_copy(const struct gpu *d, int rc, struct loom_error *err)
{
	return rc != 0 ? LOOM_FAIL(d->host, err, LOOM_EDIED, "%s: no copy beside its workers: %s", d->name, d->driver->text(d, rc)) :
			 0;
}

static int copy(struct loom_interrupt *alarm, uint64_t offset, void *to, const void *from, uint64_t bytes, struct loom_error *err)
{
	struct alarm *a = (struct alarm *)alarm;
	return failed_copy(a->gpu, a->gpu->driver->bell_copy(a->gpu, a->bell, a->at + offset, to, from, bytes), err);
}

static int settle(struct loom_interrupt *alarm, struct loom_error *err)
{
	struct alarm *a = (struct alarm *)alarm;
	return failed_copy(a->gpu, a->gpu->driver->bell_settle(a->gpu, a->bell), err);
}

static void close_alarm(struct loom_interrupt *alarm)
{
	struct alarm *a = (struct alarm *)alarm;
	if (!a)
		return;
	if (a->gpu->driver->enter(a->gpu) == 0) {
		a->gpu->driver->bell_close(a->gpu, a->bell);
		gpu_leave(a->gpu);
	}
	a->gpu->host->free(a->gpu->host, a);
}

int gpu_alarm(void *self, const struct loom_segment *segment, uint64_t offset, struct loom_interrupt **alarm,
	      struct loom_error *err)
{
	struct gpu *d = self;
	uint64_t view = 0;
	if (d->remote)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
				 "%s: with isolation = process neither interrupts nor copies go between it and threads of this process: say "
				 "isolation = thread",
				 d->name);
	if (!d->driver->bell_open || !d->limits.words)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP, "%s: this driver's streams cannot await words of memory", d->name);
	struct alarm *a = d->host->alloc(d->host, sizeof(*a));
	if (!a)
		return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	a->is = (struct loom_interrupt){
		.size = sizeof(a->is), .wait = wait_alarm, .wake = wake_alarm, .close = close_alarm, .copy = copy, .flush = settle};
	a->gpu = d;
	int code = gpu_enter(d, err);
	if (!code) {
		code = memory_view(d, segment, &view, err);
		a->at = view + offset;
		int rc = code ? 0 : d->driver->bell_open(d, &a->bell);
		if (rc != 0)
			code = gpu_fail(d, err, rc, NULL);
		gpu_leave(d);
	}
	if (code)
		d->host->free(d->host, a);
	else
		*alarm = &a->is;
	return code;
}
