/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 without a GPU; tests/gpu/fake_kernel.h describes it. */
#include <cuda.h>

#define FAKE_ERROR CUDA_ERROR_UNKNOWN
#define FAKE_RESULT CUresult
#define FAKE_OK CUDA_SUCCESS
#include "fake_kernel.h"

/* clang-format off: a function has one or two lines */

/* The number of blocks for which a multiprocessor has shared memory. The percentage is rounded up to a size that the GPU has,
 * in KiB, but with `less-shared` a driver has other reasons for a small one. */
static int carveout = 100;

static int fake_resident(size_t shared)
{
	static const int sizes[] = {0, 8, 16, 32, 64, 128};
	int i = 0;
	while (sizes[i] * 100 < carveout * 128)
		i++;
	size_t has = (size_t)sizes[wrong("less-shared") && carveout < 100 ? 0 : i] << 10;
	int blocks = (int)(has / (shared + 1024));
	return wrong("small") ? 1 : blocks < FAKE_BLOCKS ? blocks : FAKE_BLOCKS;
}

FAKE(cuLaunchCooperativeKernel, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
     unsigned by, unsigned bz, unsigned shared, CUstream stream, void **parameters),
	if (wrong("carveout") || wrong("less-shared"))
		fprintf(stderr, "fake: %u blocks of %u bytes, carveout %d\n", gx, shared, carveout);
	if (gx > (unsigned)(FAKE_MULTIPROCESSORS * fake_resident(shared)))
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
	return fake_launch((struct module *)f, fake_stream(stream), gx, bx, parameters[0]) ? CUDA_SUCCESS :
												CUDA_ERROR_LAUNCH_FAILED;)

FAKE(cuLaunchKernel, (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
     unsigned shared, CUstream stream, void **parameters, void **extra),
	return fake_launch((struct module *)f, fake_stream(stream), gx, bx, parameters[0]) ? CUDA_SUCCESS :
												CUDA_ERROR_LAUNCH_FAILED;)
FAKE(cuStreamWriteValue64, (CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags),
	fake_call((struct stream *)stream, &(struct call){.word = (uint64_t *)(uintptr_t)at, .value = value});)
FAKE(cuStreamWaitValue64, (CUstream stream, CUdeviceptr at, cuuint64_t value, unsigned flags),
	if (flags != CU_STREAM_WAIT_VALUE_GEQ)
		return CUDA_ERROR_INVALID_VALUE;
	fake_call((struct stream *)stream,
		  &(struct call){.word = (uint64_t *)(uintptr_t)at, .value = value, .awaits = 1});)

/* The graph and its executable form are the same object. */
FAKE(cuStreamBeginCapture, (CUstream stream, CUstreamCaptureMode mode),
	((struct stream *)stream)->kept = calloc(1, sizeof(struct graph));)
FAKE(cuStreamEndCapture, (CUstream stream, CUgraph *graph),
	*graph = (CUgraph)((struct stream *)stream)->kept;
	((struct stream *)stream)->kept = NULL;)
FAKE(cuGraphInstantiate, (CUgraphExec *made, CUgraph graph, unsigned long long flags),
	*made = (CUgraphExec)memcpy(malloc(sizeof(struct graph)), graph, sizeof(struct graph));)
FAKE(cuGraphDestroy, (CUgraph graph), free(graph);)
FAKE(cuGraphExecDestroy, (CUgraphExec made), free(made);)
FAKE(cuGraphLaunch, (CUgraphExec made, CUstream stream),
	const struct graph *g = (const struct graph *)made;
	for (uint32_t i = 0; i < g->calls; i++)
		fake_call((struct stream *)stream, &g->call[i]);)

FAKE(cuStreamIsCapturing, (CUstream stream, CUstreamCaptureStatus *status),
	*status = fake_stream(stream)->kept ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;)

API CUresult cuStreamQuery(CUstream stream)
{
	if (fake_fails("cuStreamQuery")) {
		fake_kill((struct stream *)stream);
		return FAKE_ERROR;
	}
	int state = fake_state((struct stream *)stream);
	return state < 0 ? CUDA_ERROR_ILLEGAL_ADDRESS : state ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* ---- everything else ---- */

/* The first process that used the driver. A child that this process forks cannot use the driver. */
static pid_t user;

FAKE(cuInit, (unsigned flags),
	user = user ? user : getpid();
	return wrong("init") ? CUDA_ERROR_NO_DEVICE : user != getpid() ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;)

/* NVRTC also loads libcuda.so.1 and calls this function when it compiles, so the function must exist. */
API CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	(void)id;
	user = user ? user : getpid();
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

FAKE(cuDriverGetVersion, (int *version), *version = 13000;)

API CUresult cuGetErrorName(CUresult rc, const char **name)
{
	*name = rc == CUDA_ERROR_NO_DEVICE	 ? "CUDA_ERROR_NO_DEVICE" :
		rc == CUDA_ERROR_ILLEGAL_ADDRESS ? "CUDA_ERROR_ILLEGAL_ADDRESS" :
						   "CUDA_ERROR_OTHER";
	return CUDA_SUCCESS;
}

API CUresult cuGetErrorString(CUresult rc, const char **text)
{
	(void)rc;
	*text = "requested of the fake driver";
	return CUDA_SUCCESS;
}

FAKE(cuDeviceGetCount, (int *count), *count = wrong("no-gpu") ? 0 : wrong("two-gpus") || fake_has_ranks() ? 2 : 1;)
FAKE(cuDeviceGet, (CUdevice *device, int number), *device = number;)
FAKE(cuDeviceGetName, (char *name, int room, CUdevice device),
	snprintf(name, (size_t)room, "%s", getenv("FAKE_GPU_MODEL") ? getenv("FAKE_GPU_MODEL") : "no GPU");)
FAKE(cuDeviceTotalMem, (size_t *bytes, CUdevice device), *bytes = 1u << 30;)
FAKE(cuDeviceGetPCIBusId, (char *bus, int room, CUdevice device),
	snprintf(bus, (size_t)room, "ffff:FF:1f.%d", 7 - device);)
FAKE(cuDeviceGetByPCIBusId, (CUdevice *device, const char *bus),
	*device = '7' - bus[strlen(bus) - 1];
	return strncmp(bus, "ffff:ff:1f.", 11) ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;)
FAKE(cuDeviceGetAttribute, (int *value, CUdevice_attribute which, CUdevice device),
	const struct fake_attribute rows[] = {
		/* Below 8.0, because the CPU's task functions need the scratchpad memory that tasks have without
		 * LOOM_SHAPE_PRODUCTS. */
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, wrong("old-gpu") ? 6 : wrong("hopper") ? 9 : 7},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, wrong("old-gpu") || wrong("hopper") ? 0 : 5},
		{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, FAKE_MULTIPROCESSORS},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, FAKE_BLOCKS},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
		{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 131072},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 65536},
		{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
		{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
		{CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, FAKE_CACHE},
		{CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, !wrong("no-words")},
		{133, wrong("mps")}, /* CU_DEVICE_ATTRIBUTE_MPS_ENABLED, which older headers do not declare */
	};
	*value = fake_attribute(rows, sizeof(rows) / sizeof(*rows), which);)

#if CUDA_VERSION >= 13000
FAKE(cuDeviceGetHostAtomicCapabilities, (unsigned *capabilities, const CUatomicOperation
     *operations, unsigned count, CUdevice device),
	for (unsigned i = 0; i < count; i++)
		capabilities[i] = wrong("atomics") ? CU_ATOMIC_CAPABILITY_SCALAR_64 : 0;)
#endif

/* Only one direction of a pair of GPUs has native atomics, so `gpuloom doctor` reports both cases. */
FAKE(cuDeviceGetP2PAttribute, (int *value, CUdevice_P2PAttribute which, CUdevice a, CUdevice b),
	*value = which == CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED && (a < b || wrong("ranks"));)

#if CUDA_VERSION >= 13000
FAKE(cuDeviceGetP2PAtomicCapabilities, (unsigned *capabilities, const CUatomicOperation *operations,
     unsigned count, CUdevice a, CUdevice b),
	for (unsigned i = 0; i < count; i++)
		capabilities[i] = wrong("atomics") ? CU_ATOMIC_CAPABILITY_SCALAR_64 : 0;)
#endif

FAKE(cuDeviceCanAccessPeer, (int *can, CUdevice a, CUdevice b), *can = !wrong("no-peer");)

static int the_context;

FAKE(cuDevicePrimaryCtxRetain, (CUcontext *context, CUdevice device),
	*context = (CUcontext)&the_context;)
FAKE(cuDevicePrimaryCtxRelease, (CUdevice device))
FAKE(cuCtxPushCurrent, (CUcontext context),
	return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;)

API CUresult cuCtxPopCurrent(CUcontext *context)
{
	*context = (CUcontext)&the_context;
	return CUDA_SUCCESS;
}

FAKE(cuStreamGetCtx, (CUstream stream, CUcontext *context), *context = (CUcontext)&the_context;)
FAKE(cuCtxEnablePeerAccess, (CUcontext context, unsigned flags))

static size_t stack_limit = 1024;

FAKE(cuCtxSetLimit, (CUlimit limit, size_t value),
	if (limit == CU_LIMIT_STACK_SIZE)
		stack_limit = value;)
FAKE(cuCtxGetLimit, (size_t *value, CUlimit limit), *value = stack_limit;)
FAKE(cuModuleLoadData, (CUmodule *module, const void *image),
	*module = (CUmodule)fake_load(image);
	return *module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;)
FAKE(cuModuleUnload, (CUmodule module), fake_unload((struct module *)module);)
FAKE(cuModuleGetFunction, (CUfunction *function, CUmodule module, const char *name),
	*function = (CUfunction)module;
	return fake_has_kernel((struct module *)module, name) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;)
FAKE(cuModuleGetGlobal, (CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name),
	*at = (CUdeviceptr)(uintptr_t)fake_record((struct module *)module, bytes);
	return strcmp(name, "loom_gpu") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;)
FAKE(cuFuncGetAttribute, (int *value, CUfunction_attribute which, CUfunction function),
	*value = which == CU_FUNC_ATTRIBUTE_NUM_REGS ? 64 : 0;)
FAKE(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute which, int value),
	if (which == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)
		carveout = value;)
FAKE(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, CUfunction function, int threads,
     size_t shared),
	*blocks = fake_resident(shared);)
FAKE(cuStreamCreate, (CUstream *stream, unsigned flags),
	*stream = calloc(1, sizeof(struct stream));)
FAKE(cuStreamDestroy, (CUstream stream), fake_destroy((struct stream *)stream);)
FAKE(cuStreamSynchronize, (CUstream stream),
	fake_await(fake_stream(stream));)
FAKE(cuEventCreate, (CUevent *event, unsigned flags),
	if (!(flags & CU_EVENT_BLOCKING_SYNC))
		return CUDA_ERROR_INVALID_VALUE;
	struct fake_event *e = calloc(1, sizeof(*e));
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->happens, NULL);
	*event = (CUevent)e;)
FAKE(cuEventDestroy, (CUevent event), free(event);)
FAKE(cuEventRecord, (CUevent event, CUstream stream),
	struct fake_event *e = (struct fake_event *)event;
	pthread_mutex_lock(&e->lock);
	e->asked++;
	pthread_mutex_unlock(&e->lock);
	fake_call((struct stream *)stream, &(struct call){.event = e});)
FAKE(cuEventSynchronize, (CUevent event),
	struct fake_event *e = (struct fake_event *)event;
	pthread_mutex_lock(&e->lock);
	while (e->happened < e->asked)
		pthread_cond_wait(&e->happens, &e->lock);
	pthread_mutex_unlock(&e->lock);)
FAKE(cuMemAlloc, (CUdeviceptr *at, size_t bytes),
	*at = (CUdeviceptr)(uintptr_t)fake_device_memory(bytes);)
FAKE(cuMemFree, (CUdeviceptr at), fake_device_free((void *)(uintptr_t)at);)

/* ---- memory of several processes: a memfd ---- */

FAKE(cuIpcGetMemHandle, (CUipcMemHandle *handle, CUdeviceptr at),
	return fake_lend((void *)(uintptr_t)at, (struct fake_handle *)handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;)
FAKE(cuIpcOpenMemHandle, (CUdeviceptr *at, CUipcMemHandle handle, unsigned flags),
	*at = (CUdeviceptr)(uintptr_t)fake_borrow((struct fake_handle *)&handle);
	return *at && flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ? CUDA_SUCCESS : CUDA_ERROR_MAP_FAILED;)
FAKE(cuIpcCloseMemHandle, (CUdeviceptr at),
	return fake_give_back((void *)(uintptr_t)at) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;)

/* ---- memory of the host ---- */

FAKE(cuMemHostAlloc, (void **at, size_t bytes, unsigned flags), *at = fake_memory(4096, bytes);)
FAKE(cuMemFreeHost, (void *at), free(at);)
FAKE(cuMemHostRegister, (void *at, size_t bytes, unsigned flags),
	int state = fake_register(at);
	return state < 0 ? CUDA_ERROR_OUT_OF_MEMORY :
	       state	 ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED :
			   CUDA_SUCCESS;)
FAKE(cuMemHostUnregister, (void *at),
	return fake_unregister(at) == 0 ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;)
FAKE(cuMemHostGetDevicePointer, (CUdeviceptr *view, void *at, unsigned flags),
	*view = (CUdeviceptr)(uintptr_t)at;)
FAKE(cuMemcpyHtoDAsync, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream),
	fake_copy((void *)(uintptr_t)to, from, bytes);)
FAKE(cuMemcpyDtoHAsync, (void *to, CUdeviceptr from, size_t bytes, CUstream stream),
	fake_copy(to, (const void *)(uintptr_t)from, bytes);)
/* Copies later, in the order of the stream. Copies within host memory are not expected here. */
FAKE(cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream),
	fake_call((struct stream *)stream, &(struct call){.to = (void *)(uintptr_t)to, .from = (void *)(uintptr_t)from,
							 .bytes = bytes});)
FAKE(cuMemsetD8Async, (CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream),
	memset((void *)(uintptr_t)at, value, bytes);)
FAKE(cuPointerGetAttribute, (void *value, CUpointer_attribute which, CUdeviceptr at),
	if (!fake_is_ours((void *)(uintptr_t)at))
		return CUDA_ERROR_INVALID_VALUE;
	if (which == CU_POINTER_ATTRIBUTE_CONTEXT)
		*(CUcontext *)value = (CUcontext)&the_context;
	else if (which == CU_POINTER_ATTRIBUTE_MEMORY_TYPE)
		*(unsigned *)value = CU_MEMORYTYPE_DEVICE;
	else if (which == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR)
		*(CUdeviceptr *)value = (CUdeviceptr)(uintptr_t)fake_range((void *)(uintptr_t)at, NULL);
	else if (which == CU_POINTER_ATTRIBUTE_RANGE_SIZE)
		(void)fake_range((void *)(uintptr_t)at, value);
	else
		*(int *)value = 0;)

/* ---- NVRTC ---- */

#define FAKE_RTC(name) nvrtc##name
#define FAKE_RTC_LAYER "<gpuloom/dev/cuda.h>"
#include "fake_rtc.h"
FAKE_RTC_OUTPUT(GetCUBIN, code)
FAKE_RTC_OUTPUT(GetPTX, log) /* nothing uses the text */
FAKE_RTC_OUTPUT(GetLTOIR, log)
