/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts, by which a running kernel wakes a host thread. Each interrupt has a stream, which waits for a word of
 * memory and then records an event. The thread sleeps until that event. The stream also copies data, without waiting
 * for kernels. */
#include <gpuloom/interrupt.h>

#include "gpu.h"

struct interrupt {
	struct loom_interrupt is;
	struct gpu *gpu;
	void *channel; /* the driver's handle of the stream and event */
	uint64_t at;
	int over; /* 1: wake() was called; accessed atomically */
};

static int wait_for(struct loom_interrupt *interrupt, uint64_t least, struct loom_error *err)
{
	struct interrupt *i = (struct interrupt *)interrupt;
	struct gpu *d = i->gpu;
	int rc = d->driver->notify_await(d, i->channel, i->at, least);
	/* The core's thread, not this thread, checks whether the device has failed. */
	return rc != 0 ? LOOM_FAIL(d->host, err, LOOM_EDIED, "%s: interrupts are unavailable: "
		"%s", d->name, d->driver->text(d, rc))
	       : __atomic_load_n(&i->over, __ATOMIC_ACQUIRE) ? LOOM_EINTR
							     : 0;
}

#define HIGHEST (1ull << 62) /* larger than any awaited value, for streams that compare signed numbers */

static void wake(struct loom_interrupt *interrupt)
{
	struct interrupt *i = (struct interrupt *)interrupt;
	uint64_t highest = HIGHEST;
	__atomic_store_n(&i->over, 1, __ATOMIC_RELEASE);
	if (i->gpu->driver->enter(i->gpu) != 0)
		return; /* wait_for() fails for the same reason */
	i->gpu->driver->write(i->gpu, i->at, &highest, sizeof(highest));
	gpu_leave(i->gpu);
}

static int failed_copy(const struct gpu *d, int rc, struct loom_error *err)
{
	return rc != 0 ? LOOM_FAIL(d->host, err, LOOM_EDIED, "%s: copies beside its workers are unavailable: "
		"%s", d->name,
				   d->driver->text(d, rc))
		       : 0;
}

static int copy(struct loom_interrupt *interrupt, uint64_t offset, void *to, const void *from, uint64_t bytes,
		struct loom_error *err)
{
	struct interrupt *i = (struct interrupt *)interrupt;
	return failed_copy(i->gpu, i->gpu->driver->notify_copy(i->gpu, i->channel, i->at + offset, to, from, bytes),
			   err);
}

static int flush(struct loom_interrupt *interrupt, struct loom_error *err)
{
	struct interrupt *i = (struct interrupt *)interrupt;
	return failed_copy(i->gpu, i->gpu->driver->notify_flush(i->gpu, i->channel), err);
}

static void close_interrupt(struct loom_interrupt *interrupt)
{
	struct interrupt *i = (struct interrupt *)interrupt;
	if (!i)
		return;
	if (i->gpu->driver->enter(i->gpu) == 0) {
		i->gpu->driver->notify_close(i->gpu, i->channel);
		gpu_leave(i->gpu);
	}
	i->gpu->host->free(i->gpu->host, i);
}

static int gpu_interrupt(void *self, const struct loom_segment *segment, uint64_t offset, struct loom_interrupt **interrupt,
		  struct loom_error *err)
{
	struct gpu *d = self;
	uint64_t view = 0;
	if (!d->driver->notify_open || !d->limits.words)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP, "%s: this driver's streams cannot await words of memory",
				 d->name);
	struct interrupt *i = d->host->alloc(d->host, sizeof(*i));
	if (!i)
		return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	i->is = (struct loom_interrupt){.size = sizeof(i->is),
					.wait = wait_for,
					.wake = wake,
					.close = close_interrupt,
					.copy = copy,
					.flush = flush};
	i->gpu = d;
	int code = gpu_enter(d, err);
	if (!code) {
		code = memory_view(d, segment, &view, err);
		i->at = view + offset;
		int rc = code ? 0 : d->driver->notify_open(d, &i->channel);
		if (rc != 0)
			code = gpu_fail(d, err, rc, NULL);
		gpu_leave(d);
	}
	if (code)
		d->host->free(d->host, i);
	else
		*interrupt = &i->is;
	return code;
}

const struct loom_device_interrupts gpu_interrupts = {.size = sizeof(gpu_interrupts), .interrupt = gpu_interrupt};
