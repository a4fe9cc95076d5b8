/* SPDX-License-Identifier: Apache-2.0 */
/* Copies beside workers, which the host starts and does not wait for. Each enum loom_copy has a stream. After each copy the
 * stream stores the copy's number in host memory, where the host polls it. */
#include "gpu.h"

/* Called before workers exist, because a driver may wait for kernels when it allocates. */
static int open_queue(struct gpu *d, struct gpu_queue *q)
{
	void *at = NULL;
	int rc = d->driver->notify_open(d, &q->channel);
	if (rc != 0) {
		q->channel = NULL;
		return rc;
	}
	rc = d->driver->host_alloc(d, sizeof(*q->ended), &at, &q->view);
	if (rc == 0) {
		q->ended = at;
		*q->ended = 0;
	}
	return rc;
}

static int start(struct gpu *d, struct gpu_queue *q, uint64_t here, uint64_t other, uint64_t bytes, uint32_t how)
{
	if (!bytes)
		return q->ended ? 0 : open_queue(d, q);
	int in = how == LOOM_COPY_IN;
	return d->driver->queue_copy(d, q->channel, in ? here : other, in ? other : here, bytes, q->view, q->started + 1);
}

static int gpu_copy_start(void *self, const struct loom_memory *memory, uint64_t offset, uint64_t other, uint64_t bytes,
		   uint32_t how, uint64_t *number, struct loom_error *err)
{
	struct gpu *d = self;
	struct gpu_queue *q = &d->queue[how];
	if (!d->driver->queue_copy || !d->limits.words)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP, "%s: this driver's streams cannot report the end of a copy",
				 d->name);
	/* Within a GPU the driver may copy by a kernel, which would wait until workers leave. */
	if (!bytes && how == LOOM_COPY_TO && !memory_is_remote(d, other))
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP, "%s: a copy within the GPU could wait for the workers", d->name);
	int code = gpu_enter(d, err);
	if (code)
		return code;
	int rc = start(d, q, memory->handle + offset, other, bytes, how);
	if (rc != 0)
		code = gpu_fail(d, err, rc, NULL);
	else if (bytes)
		*number = ++q->started;
	gpu_leave(d);
	return code;
}

static int gpu_copy_ended(void *self, uint32_t how, uint64_t number)
{
	const struct gpu *d = self;
	/* Acquire: pairs with the store of the stream, which follows the copy. */
	return __atomic_load_n(d->queue[how].ended, __ATOMIC_ACQUIRE) >= number ? 1 : d->lost ? LOOM_EDIED : 0;
}

const struct loom_device_copies gpu_copies = {
    .size = sizeof(gpu_copies), .copy_start = gpu_copy_start, .copy_ended = gpu_copy_ended};

void copies_close(struct gpu *d)
{
	for (int i = 0; i < LOOM_COPIES; i++) {
		struct gpu_queue *q = &d->queue[i];
		if (q->channel)
			d->driver->notify_close(d, q->channel);
		if (q->ended)
			d->driver->host_free(d, q->ended);
	}
}
