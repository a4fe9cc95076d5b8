/* SPDX-License-Identifier: Apache-2.0 */
/* Driver calls that CUDA and HIP share, except for their names. The calls.c of a vendor includes this header after it
 * has defined these macros:
 *
 *   VENDOR           the vendor's struct, with members gpu (a struct gpu), api, number, device, work and copy
 *   API(Name)        the name of a function in `api`: cuName
 *   HOST(Name)       the name of a function for host memory: cuMemHostName
 *   API_POINTER, API_MODULE, API_FUNCTION, API_HANDLE   types
 *   API_STREAM_CREATE, API_HOST_ALLOC, API_HOST_FREE, API_LAUNCH, API_LAUNCH_STEP   functions with other names
 *   API_STREAM_FLAGS, API_ALLOC_FLAGS, API_REGISTER_FLAGS, API_ORDINAL, API_REGISTERS, API_SHARED, API_NOT_READY,
 *   API_REGISTERED, API_HANDLE_FLAGS, API_RANGE_START, API_RANGE_SIZE, API_NO_CAPTURE   constants
 *   API_CAPTURE      the type of API_NO_CAPTURE
 *   API_AT_LEAST     the last arguments of StreamWaitValue64
 *
 * It also defines choose(), find_name(), find_limits(), is_host_memory(), stream_is_ours(), await_copy() and
 * reserve_stack(). */
#ifndef GPULOOM_GPU_CALLS_H
#define GPULOOM_GPU_CALLS_H

#include <stdio.h>
#include <string.h>

#include "gpu.h"

#define CALL(c, function, ...) GPU_CALL(&(c)->gpu, &(c)->api, function, __VA_ARGS__)
#define COUNT(array)           (sizeof(array) / sizeof((array)[0]))

static VENDOR *of(const struct gpu *d)
{
	return (VENDOR *)d;
}

static API_POINTER pointer(uint64_t at)
{
	return (API_POINTER)(uintptr_t)at;
}

/* ---- the GPU ---- */

static int choose(VENDOR *c);
static int find_name(VENDOR *c);
static int find_limits(VENDOR *c, struct loom_error *err);

static int is_host_memory(VENDOR *c, uint64_t at);
static int stream_is_ours(struct gpu *d, void *stream, int *is);

static int find(struct gpu *d, int number, struct loom_error *err)
{
	VENDOR *c = of(d);
	size_t bytes = 0;
	c->number = number;
	int rc = choose(c);
	if (rc == 0)
		rc = CALL(c, API(DeviceGetName), d->model, sizeof(d->model), c->device);
	if (rc == 0)
		rc = CALL(c, API(DeviceTotalMem), &bytes, c->device);
	if (rc == 0)
		rc = find_name(c);
	if (rc != 0)
		return gpu_fail(d, err, rc, NULL);
	d->memory = bytes;
	if (c->api.API(DeviceGetPCIBusId)(d->bus, sizeof(d->bus), c->device) != 0)
		*d->bus = 0;
	return find_limits(c, err);
}

static int create_streams(VENDOR *c)
{
	int rc = CALL(c, API_STREAM_CREATE, &c->work, API_STREAM_FLAGS);
	return rc == 0 ? CALL(c, API_STREAM_CREATE, &c->copy, API_STREAM_FLAGS) : rc;
}

static void destroy_streams(VENDOR *c)
{
	if (c->copy)
		c->api.API(StreamDestroy)(c->copy);
	if (c->work)
		c->api.API(StreamDestroy)(c->work);
}

/* ---- memory ---- */

static int view_of(VENDOR *c, void *host, uint64_t *view)
{
	API_POINTER p = 0;
	int rc = CALL(c, HOST(GetDevicePointer), &p, host, 0);
	*view = (uint64_t)(uintptr_t)p;
	return rc;
}

static void host_free(struct gpu *d, void *host)
{
	of(d)->api.API_HOST_FREE(host);
}

static int host_alloc(struct gpu *d, uint64_t bytes, void **host, uint64_t *view)
{
	int rc = CALL(of(d), API_HOST_ALLOC, host, bytes, API_ALLOC_FLAGS);
	if (rc != 0)
		return rc;
	rc = view_of(of(d), *host, view);
	if (rc != 0)
		host_free(d, *host);
	return rc;
}

static void host_unmap(struct gpu *d, void *host)
{
	of(d)->api.HOST(Unregister)(host);
}

/* The flags make a registration portable, so one registration serves all GPUs. Host memory from host_alloc() of a GPU
 * needs no registration. With HIP, registered memory is fine-grained. */
static int host_map(struct gpu *d, void *host, uint64_t bytes, uint64_t *view, int *ours)
{
	int rc = CALL(of(d), HOST(Register), host, bytes, API_REGISTER_FLAGS);
	*ours = rc == 0;
	if (rc != 0 && rc != (int)API_REGISTERED)
		return rc;
	rc = view_of(of(d), host, view);
	if (rc != 0 && *ours)
		host_unmap(d, host);
	return rc;
}

static int lend(struct gpu *d, uint64_t at, void *handle)
{
	API_HANDLE h;
	int rc = CALL(of(d), API(IpcGetMemHandle), &h, pointer(at));
	_Static_assert(sizeof(h) == GPU_HANDLE, "of the size that travels");
	memcpy(handle, &h, sizeof(h));
	return rc;
}

static int borrow(struct gpu *d, const void *handle, uint64_t *at)
{
	API_HANDLE h;
	API_POINTER p = 0;
	memcpy(&h, handle, sizeof(h));
	int rc = CALL(of(d), API(IpcOpenMemHandle), &p, h, API_HANDLE_FLAGS);
	*at = (uint64_t)(uintptr_t)p;
	return rc;
}

static void give_back(struct gpu *d, uint64_t at)
{
	of(d)->api.API(IpcCloseMemHandle)(pointer(at));
}

static int locate(struct gpu *d, const char *bus, int *number)
{
	return CALL(of(d), API(DeviceGetByPCIBusId), number, bus);
}

static int owner(struct gpu *d, uint64_t at, int *number)
{
	return CALL(of(d), API(PointerGetAttribute), number, API_ORDINAL, pointer(at));
}

/* Host memory, and memory that the driver does not know, belongs to no GPU. For such memory *number stays -1. */
static int range(struct gpu *d, uint64_t at, int *number, uint64_t *begin, uint64_t *bytes)
{
	VENDOR *c = of(d);
	API_POINTER from = 0;
	size_t size = 0;
	int gpu = -1;
	*number = -1;
	if ((int)c->api.API(PointerGetAttribute)(&gpu, API_ORDINAL, pointer(at)) != 0 || is_host_memory(c, at))
		return 0;
	int rc = CALL(c, API(PointerGetAttribute), &from, API_RANGE_START, pointer(at));
	if (rc == 0)
		rc = CALL(c, API(PointerGetAttribute), &size, API_RANGE_SIZE, pointer(at));
	*number = gpu;
	*begin = (uint64_t)(uintptr_t)from;
	*bytes = size;
	return rc;
}

/* Waits for a copy in the copy stream. rc: the code of the call that started the copy. The copy stream does not wait
 * for the persistent kernel. */
static int await_copy(VENDOR *c, int rc);

static int write_gpu(struct gpu *d, uint64_t to, const void *from, uint64_t bytes)
{
	VENDOR *c = of(d);
	return await_copy(c, CALL(c, API(MemcpyHtoDAsync), pointer(to), (void *)from, bytes, c->copy));
}

static int read_gpu(struct gpu *d, void *to, uint64_t from, uint64_t bytes)
{
	VENDOR *c = of(d);
	return await_copy(c, CALL(c, API(MemcpyDtoHAsync), to, pointer(from), bytes, c->copy));
}

/* ---- programs ---- */

static void unload(struct gpu *d, struct gpu_kernel *k)
{
	of(d)->api.API(ModuleUnload)(k->module);
}

/* Reserves stack for nested tasks. */
static int reserve_stack(VENDOR *c, const struct gpu_kernel *k);

static int load(struct gpu *d, const struct cached *code, struct gpu_kernel *k)
{
	VENDOR *c = of(d);
	API_MODULE module = NULL;
	API_FUNCTION function = NULL;
	API_POINTER launch = 0;
	int rc = CALL(c, API(ModuleLoadData), &module, code->code);
	if (rc != 0)
		return rc;
	k->module = module;
	/* Loads the code at this point instead of during a sample, even if the driver loads lazily. */
	rc = CALL(c, API(ModuleGetFunction), &function, module, k->is_collective ? COMPOSE_COLLECTIVE : COMPOSE_KERNEL);
	if (rc == 0 && !k->is_collective)
		rc = CALL(c, API(ModuleGetGlobal), &launch, &k->launch_bytes, module, COMPOSE_LAUNCH);
	if (rc == 0)
		rc = CALL(c, API(FuncGetAttribute), &k->registers, API_REGISTERS, function);
	if (rc == 0)
		rc = CALL(c, API(FuncGetAttribute), &k->shared, API_SHARED, function);
	k->function = function;
	k->launch = (uint64_t)(uintptr_t)launch;
	return rc == 0 ? reserve_stack(c, k) : rc;
}

static int launch(struct gpu *d, const struct gpu_kernel *k, uint32_t blocks, uint32_t threads, uint32_t shared,
		  const void *parameter)
{
	void *arguments[] = {(void *)(uintptr_t)parameter}; /* the driver reads it during the call */
	if (k->stepped)
		return CALL(of(d), API_LAUNCH_STEP, k->function, blocks, 1, 1, threads, 1, 1, shared, of(d)->work,
			    arguments, NULL);
	return CALL(of(d), API_LAUNCH, k->function, blocks, 1, 1, threads, 1, 1, shared, of(d)->work, arguments);
}

static int enqueue(struct gpu *d, void *stream, const struct gpu_kernel *k, uint32_t blocks, uint32_t threads,
		   uint32_t shared, const void *parameter)
{
	void *arguments[] = {(void *)(uintptr_t)parameter}; /* the driver copies it during the call */
	if (k->stepped)
		return CALL(of(d), API_LAUNCH_STEP, k->function, blocks, 1, 1, threads, 1, 1, shared, stream, arguments,
			    NULL);
	return CALL(of(d), API_LAUNCH, k->function, blocks, 1, 1, threads, 1, 1, shared, stream, arguments);
}

static int captures(struct gpu *d, void *stream, int *is)
{
	API_CAPTURE status = API_NO_CAPTURE;
	int rc = CALL(of(d), API(StreamIsCapturing), stream, &status);
	*is = status != API_NO_CAPTURE;
	return rc;
}

static int set_word(struct gpu *d, uint64_t at, uint64_t value)
{
	return CALL(of(d), API(StreamWriteValue64), of(d)->work, pointer(at), value, 0);
}

static int await_word(struct gpu *d, uint64_t at, uint64_t value)
{
	return CALL(of(d), API(StreamWaitValue64), of(d)->work, pointer(at), value, API_AT_LEAST);
}

static int running(struct gpu *d, int *still)
{
	int rc = CALL(of(d), API(StreamQuery), of(d)->work);
	*still = rc == (int)API_NOT_READY;
	return *still ? 0 : rc;
}

#endif
