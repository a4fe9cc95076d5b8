/* SPDX-License-Identifier: Apache-2.0 */
/* Notification of host threads. A channel has a stream and an event. A thread sleeps on the event, and copies in the
 * stream. */
#include "driver.h"

#define CALL(c, function, ...) GPU_CALL(&(c)->gpu, &(c)->api, function, __VA_ARGS__)

struct channel {
	CUstream stream;
	CUevent event;
};

void cuda_notify_close(struct gpu *d, void *channel)
{
	struct cuda *c = (struct cuda *)d;
	struct channel *b = channel;
	if (b->stream)
		c->api.cuStreamDestroy(b->stream);
	if (b->event)
		c->api.cuEventDestroy(b->event);
	d->host->free(d->host, b);
}

int cuda_notify_open(struct gpu *d, void **channel)
{
	struct cuda *c = (struct cuda *)d;
	struct channel *b = d->host->alloc(d->host, sizeof(*b));
	if (!b)
		return CUDA_ERROR_OUT_OF_MEMORY;
	int rc = CALL(c, cuStreamCreate, &b->stream, CU_STREAM_NON_BLOCKING);
	if (rc != 0)
		b->stream = NULL;
	else
		rc = CALL(c, cuEventCreate, &b->event, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
	if (rc != 0) {
		b->event = NULL;
		cuda_notify_close(d, b);
	} else {
		*channel = b;
	}
	return rc;
}

/* The addresses are unique over the host and all GPUs, so the driver finds the direction of the copy by itself. Without
 * flags, the store of the word follows all writes of the copy. */
int cuda_queue_copy(struct gpu *d, void *channel, uint64_t to, uint64_t from, uint64_t bytes, uint64_t word,
		    uint64_t value)
{
	struct cuda *c = (struct cuda *)d;
	const struct channel *b = channel;
	int rc = CALL(c, cuMemcpyAsync, to, from, bytes, b->stream);
	return rc == 0 ? CALL(c, cuStreamWriteValue64, b->stream, word, value, 0) : rc;
}

/* The functions from here on do not use CALL(). It records the name of a failed function, which only the core's thread
 * may do. */
int cuda_notify_copy(struct gpu *d, void *channel, uint64_t at, void *to, const void *from, uint64_t bytes)
{
	const struct cuda *c = (const struct cuda *)d;
	const struct driver *cu = &c->api;
	const struct channel *b = channel;
	CUcontext ignored;
	CUresult rc = cu->cuCtxPushCurrent(c->context);
	if (rc != CUDA_SUCCESS)
		return (int)rc;
	rc = to ? cu->cuMemcpyDtoHAsync(to, at, bytes, b->stream) : cu->cuMemcpyHtoDAsync(at, from, bytes, b->stream);
	cu->cuCtxPopCurrent(&ignored);
	return (int)rc;
}

int cuda_notify_flush(struct gpu *d, void *channel)
{
	const struct cuda *c = (const struct cuda *)d;
	const struct channel *b = channel;
	CUcontext ignored;
	CUresult rc = c->api.cuCtxPushCurrent(c->context);
	if (rc != CUDA_SUCCESS)
		return (int)rc;
	rc = c->api.cuStreamSynchronize(b->stream);
	c->api.cuCtxPopCurrent(&ignored);
	return (int)rc;
}

int cuda_notify_await(struct gpu *d, void *channel, uint64_t at, uint64_t value)
{
	const struct cuda *c = (const struct cuda *)d;
	const struct driver *cu = &c->api;
	const struct channel *b = channel;
	CUcontext ignored;
	CUresult rc = cu->cuCtxPushCurrent(c->context);
	if (rc != CUDA_SUCCESS)
		return (int)rc;
	rc = cu->cuStreamWaitValue64(b->stream, at, value, CU_STREAM_WAIT_VALUE_GEQ);
	if (rc == CUDA_SUCCESS)
		rc = cu->cuEventRecord(b->event, b->stream);
	if (rc == CUDA_SUCCESS)
		rc = cu->cuEventSynchronize(b->event);
	cu->cuCtxPopCurrent(&ignored);
	return (int)rc;
}
