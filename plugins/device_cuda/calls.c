/* SPDX-License-Identifier: Apache-2.0 */
/* The table of driver calls, for CUDA. */
#include "driver.h"
#include "jitlink.h"
#include "ptxas.h"

#define VENDOR             struct cuda
#define API(name)          cu##name
#define HOST(name)         cuMemHost##name
#define API_POINTER        CUdeviceptr
#define API_MODULE         CUmodule
#define API_FUNCTION       CUfunction
#define API_STREAM_CREATE  cuStreamCreate
#define API_STREAM_FLAGS   CU_STREAM_NON_BLOCKING
#define API_HOST_ALLOC     cuMemHostAlloc
#define API_HOST_FREE      cuMemFreeHost
#define API_ALLOC_FLAGS    (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP)
#define API_REGISTER_FLAGS (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP)
#define API_REGISTERED     CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
#define API_ORDINAL        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
#define API_REGISTERS      CU_FUNC_ATTRIBUTE_NUM_REGS
#define API_SHARED         CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
#define API_LAUNCH         cuLaunchCooperativeKernel
#define API_LAUNCH_STEP    cuLaunchKernel
#define API_AT_LEAST       CU_STREAM_WAIT_VALUE_GEQ
#define API_NOT_READY      CUDA_ERROR_NOT_READY
#define API_HANDLE         CUipcMemHandle
#define API_HANDLE_FLAGS   CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
#define API_RANGE_START    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
#define API_RANGE_SIZE     CU_POINTER_ATTRIBUTE_RANGE_SIZE
#define API_CAPTURE        CUstreamCaptureStatus
#define API_NO_CAPTURE     CU_STREAM_CAPTURE_STATUS_NONE
#include "../device_common/gpu/calls.h"

#define MPS_ENABLED ((CUdevice_attribute)133) /* older headers lack it */

/* ---- the GPU ---- */

static int open_driver(struct gpu *d, struct loom_error *err)
{
	struct driver *cu = &of(d)->api;
	int code = driver_open(d->host, d->name, cu, err);
	snprintf(d->version, sizeof(d->version), "CUDA %d.%d", cu->version / 1000, cu->version % 1000 / 10);
	return code;
}

static int count_gpus(struct gpu *d, int *count)
{
	return CALL(of(d), cuDeviceGetCount, count);
}

static const char *text(const struct gpu *d, int rc)
{
	return driver_text(&of(d)->api, (CUresult)rc);
}

static int find_limits(struct cuda *c, struct loom_error *err)
{
	struct gpu *d = &c->gpu;
	struct gpu_limits *l = &d->limits;
	int cooperative = 0, major = 0, minor = 0;
	l->wave = 32;
	l->parts = 4; /* partitions of a multiprocessor, in all models so far */
	const struct {
		CUdevice_attribute attribute;
		int *to;
	} wanted[] = {
	    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
	    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
	    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &l->multiprocessors},
	    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &l->blocks},
	    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &l->threads},
	    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &l->registers},
	    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &l->shared},
	    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &l->shared_per_block},
	    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &l->shared_reserved},
	    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &l->threads_per_block},
	    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l->cache},
	    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &cooperative},
	    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, &l->words},
	};
	for (size_t i = 0; i < COUNT(wanted); i++) {
		int rc = CALL(c, cuDeviceGetAttribute, wanted[i].to, wanted[i].attribute, c->device);
		if (rc != 0)
			return gpu_fail(d, err, rc, NULL);
	}
	if (major < 7 || !cooperative)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: a GPU of compute capability %d.%d%s: 7.0 or later with cooperative "
				 "launches is needed (memory orders, resident workers)",
				 d->name, major, minor, cooperative ? "" : " without cooperative launches");
	snprintf(d->arch, sizeof(d->arch), "sm_%d%d", major, minor);
	l->products = major >= 8;
	/* Older drivers do not know this attribute. */
	int mps = 1;
	l->time_slicing = c->api.cuDeviceGetAttribute(&mps, MPS_ENABLED, c->device) == CUDA_SUCCESS && !mps;
	return 0;
}

static int choose(struct cuda *c)
{
	return CALL(c, cuDeviceGet, &c->device, c->number);
}

static int find_name(struct cuda *c)
{
	(void)c; /* find_limits() sets d->arch */
	return 0;
}

static void host_atomics(const struct gpu *d, struct gpu_atomics *out)
{
	driver_host_atomics(&of(d)->api, of(d)->device, out);
}

static int peers(struct gpu *d, int from, int to, int *can)
{
	CUdevice a, b;
	int rc = CALL(of(d), cuDeviceGet, &a, from);
	if (rc == 0)
		rc = CALL(of(d), cuDeviceGet, &b, to);
	return rc == 0 ? CALL(of(d), cuDeviceCanAccessPeer, can, a, b) : rc;
}

static void peer_atomics(const struct gpu *d, int from, int to, struct gpu_atomics *out)
{
	const struct driver *cu = &of(d)->api;
	CUdevice a, b;
	*out = (struct gpu_atomics){.known = 0};
	if (cu->cuDeviceGet(&a, from) == CUDA_SUCCESS && cu->cuDeviceGet(&b, to) == CUDA_SUCCESS)
		driver_peer_atomics(cu, a, b, out);
}

static int enter(struct gpu *d)
{
	return CALL(of(d), cuCtxPushCurrent, of(d)->context);
}

static void leave(struct gpu *d)
{
	CUcontext ignored;
	of(d)->api.cuCtxPopCurrent(&ignored);
}

static void detach(struct gpu *d)
{
	struct cuda *c = of(d);
	if (!c->context)
		return;
	if (enter(d) == 0) {
		destroy_streams(c);
		leave(d);
	}
	c->api.cuDevicePrimaryCtxRelease(c->device);
	c->context = NULL;
	CUdevice next;
	if (c->next && c->api.cuDeviceGet(&next, d->next) == CUDA_SUCCESS)
		c->api.cuDevicePrimaryCtxRelease(next);
	c->next = NULL;
}

static int attach(struct gpu *d)
{
	struct cuda *c = of(d);
	int rc = CALL(c, cuDevicePrimaryCtxRetain, &c->context, c->device);
	if (rc != 0) {
		c->context = NULL;
		return rc;
	}
	rc = enter(d);
	if (rc != 0)
		return rc;
	rc = create_streams(c);
	leave(d);
	return rc;
}

/* ---- graphs ---- */

/* In capture mode `relaxed`, unrelated calls are allowed during a capture. */
static int record(struct gpu *d)
{
	return CALL(of(d), cuStreamBeginCapture, of(d)->work, CU_STREAM_CAPTURE_MODE_RELAXED);
}

static int recorded(struct gpu *d, void **graph)
{
	struct cuda *c = of(d);
	CUgraph kept = NULL;
	CUgraphExec made = NULL;
	int rc = CALL(c, cuStreamEndCapture, c->work, &kept);
	if (rc != 0)
		return rc;
	rc = CALL(c, cuGraphInstantiate, &made, kept, 0);
	c->api.cuGraphDestroy(kept);
	*graph = rc == 0 ? made : NULL;
	return rc;
}

static int replay(struct gpu *d, void *graph)
{
	return CALL(of(d), cuGraphLaunch, graph, of(d)->work);
}

static void forget(struct gpu *d, void *graph)
{
	of(d)->api.cuGraphExecDestroy(graph);
}

/* ---- the program's streams and memory ---- */

static int stream_is_ours(struct gpu *d, void *stream, int *is)
{
	CUcontext context = NULL;
	int rc = CALL(of(d), cuStreamGetCtx, stream, &context);
	*is = context == of(d)->context;
	return rc;
}

static int is_host_memory(struct cuda *c, uint64_t at)
{
	unsigned type = 0, managed = 0;
	return c->api.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at) == CUDA_SUCCESS &&
	       type == CU_MEMORYTYPE_HOST &&
	       !(c->api.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, at) == CUDA_SUCCESS && managed);
}

/* ---- memory ---- */

static int allocate(struct gpu *d, uint64_t bytes, uint64_t *at)
{
	CUdeviceptr p = 0;
	int rc = CALL(of(d), cuMemAlloc, &p, bytes);
	*at = p;
	return rc;
}

/* The context of the other GPU, to which the memory belongs, stays until detach(). */
static int allocate_next(struct gpu *d, uint64_t bytes, uint64_t *at)
{
	struct cuda *c = of(d);
	CUcontext ignored;
	CUdevice next;
	int rc = c->next ? 0 : CALL(c, cuDeviceGet, &next, d->next);
	if (rc == 0 && !c->next && (rc = CALL(c, cuDevicePrimaryCtxRetain, &c->next, next)) != 0)
		c->next = NULL;
	rc = rc == 0 ? CALL(c, cuCtxPushCurrent, c->next) : rc;
	if (rc != 0)
		return rc;
	rc = allocate(d, bytes, at);
	c->api.cuCtxPopCurrent(&ignored);
	return rc;
}

static void release(struct gpu *d, uint64_t at)
{
	of(d)->api.cuMemFree(at);
}

static int reach(struct gpu *d, uint64_t at, int number, int *can)
{
	struct cuda *c = of(d);
	CUcontext context = NULL;
	int rc = CALL(c, cuPointerGetAttribute, &context, CU_POINTER_ATTRIBUTE_CONTEXT, at);
	*can = context == c->context;
	if (rc != 0 || *can)
		return rc;
	rc = peers(d, c->number, number, can);
	if (rc != 0 || !*can)
		return rc;
	rc = CALL(c, cuCtxEnablePeerAccess, context, 0);
	return rc == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED ? 0 : rc;
}

static int await_copy(struct cuda *c, int rc)
{
	return rc == 0 ? CALL(c, cuStreamSynchronize, c->copy) : rc;
}

static int clear(struct gpu *d, uint64_t at, uint64_t bytes)
{
	return await_copy(of(d), CALL(of(d), cuMemsetD8Async, at, 0, bytes, of(d)->copy));
}

/* ---- programs ---- */

/* Newest first. NVRTC 12 is the first with C++20, which designated initialisers need. */
static const char *const compiler_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
static const char *const compiler_folders[] = {"/usr/local/cuda/lib64", "/opt/cuda/lib64", NULL};
static const char *const compiler_homes[] = {"CUDA_HOME", "CUDA_PATH", NULL};

LOOM_EMBED(layer_text, "gpuloom/dev/cuda.h");
LOOM_EMBED(dialect_text, "cuda.dev.h");
const struct compose_layer cuda_layer = {"gpuloom/dev/cuda.h", layer_text, dialect_text};

const struct rtc_kind cuda_compiler = {
    .layer = &cuda_layer,
    .title = "NVRTC",
    .prefix = "nvrtc",
    .code = "GetCUBIN",
    .assembly = "GetPTX",
    .ir = "GetLTOIR",
    .name = compiler_names,
    .folder = compiler_folders,
    .home = compiler_homes,
    .lib = "lib64",
    .needed = "the CUDA toolkit's libnvrtc 12 or later",
    .option = "nvrtc = in [device.cuda]",
    .least = 12,
};

/* The second option makes the assembler report resources, for resources_read(). */
static const char *const flags[] = {"-std=c++20", "--ptxas-options=-v"};
static const char *const linked_flags[] = {"-dlto", "-rdc=true"};
/* With these options the compiler optimises and assembles functions in parallel, on all cores. */
static const char *const parallel_flags[] = {"-split-compile=0", "--ptxas-options=--split-compile=0"};
#define PARALLEL_SINCE 13

static int add_flags(const char *const *from, size_t count, const char **to)
{
	memcpy(to, from, count * sizeof(*to));
	return (int)count;
}

int cuda_compiler_options(const struct rtc *compiler, int linked, const char **option)
{
	int n = add_flags(flags, COUNT(flags), option);
	if (linked)
		n += add_flags(linked_flags, COUNT(linked_flags), option + n);
	else if (compiler->major >= PARALLEL_SINCE)
		n += add_flags(parallel_flags, COUNT(parallel_flags), option + n);
	return n;
}

static void identify(const struct gpu *d, struct loom__text *key)
{
	loom__text_add(key, " -arch=%s", d->arch);
	for (size_t i = 0; i < COUNT(flags); i++)
		loom__text_add(key, " %s", flags[i]);
}

/* Returns the largest number of registers per thread with which d->bound blocks are resident on a multiprocessor.
 * Registers are allocated in units of eight. */
static uint32_t most_registers(const struct gpu *d)
{
	uint32_t threads = d->bound * (d->lanes * d->per_block + d->watch);
	uint32_t most = threads ? (uint32_t)d->limits.registers / threads & ~7u : 255;
	return most < 255 ? most : 255;
}

static int compile(struct gpu *d, const struct gpu_program *program, struct cached *out, struct loom_error *err)
{
	char arch[80];
	struct compiled compiled;
	const char *option[CUDA_OPTIONS_MOST + 1] = {arch};
	int n = 1 + cuda_compiler_options(&d->compiler, program->irs != 0, option + 1);
	snprintf(arch, sizeof(arch), "-arch=%s", d->arch);
	int code = rtc_run(d->host, d->name, &d->compiler, program->text.at, option, n,
			   program->irs ? RTC_IR : RTC_CODE, &compiled, err);
	if (!code && program->irs)
		code = jitlink_run(d->host, d->name, d->arch, program->ir, program->irs, most_registers(d),
				   JITLINK_CUBIN, &compiled, err);
	if (code)
		return code;
	*out = (struct cached){.code = compiled.code, .bytes = compiled.bytes};
	compiled.code = NULL;
	if (!resources_read(compiled.log, program->kernel ? program->kernel : COMPOSE_KERNEL, &out->resources))
		out->resources.nested = 2048; /* without a report: a bound above all values seen so far */
	compiled_free(d->host, &compiled);
	return 0;
}

/* Reserves stack for nested tasks. Without them, the driver's default of 1 KiB suffices. */
static int reserve_stack(struct cuda *c, const struct gpu_kernel *k)
{
	size_t have = 0,
	       want = k->resources.stack + 512u + (size_t)k->resources.nested * (c->gpu.options->nesting + 1u);
	int rc = CALL(c, cuCtxGetLimit, &have, CU_LIMIT_STACK_SIZE);
	if (rc != 0 || have >= want)
		return rc;
	char what[96];
	snprintf(what, sizeof(what), "cuCtxSetLimit: a stack of %zu bytes per thread (lower nesting)", want);
	return gpu_called(CALL(c, cuCtxSetLimit, CU_LIMIT_STACK_SIZE, want), what);
}

/* The driver rounds `percent` up to the next size that the GPU has. */
static int occupancy_at(struct cuda *c, const struct gpu_kernel *k, int threads, uint64_t shared, int percent, int *blocks)
{
	int rc = CALL(c, cuFuncSetAttribute, k->function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, percent);
	return rc ? rc : CALL(c, cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, k->function, threads, shared);
}

/* The blocks get the shared memory that they need, and the cache, which also holds loads in flight, has the rest. Resident workers get
 * all, because kernels beside them need some, too. */
static int occupancy(struct gpu *d, const struct gpu_kernel *k, int threads, uint64_t shared, int wanted, int *blocks)
{
	uint64_t all = (uint64_t)d->limits.shared;
	uint64_t need = (uint64_t)wanted * (shared + (uint64_t)(k->shared + d->limits.shared_reserved));
	int percent = need && need < all && !d->options->resident ? (int)((need * 100 + all - 1) / all) : 100;
	int rc = CALL(of(d), cuFuncSetAttribute, k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)shared);
	if (rc == 0)
		rc = occupancy_at(of(d), k, threads, shared, percent, blocks);
	if (rc == 0 && *blocks < wanted)
		rc = occupancy_at(of(d), k, threads, shared, 100, blocks);
	return rc;
}

const struct gpu_driver cuda_driver = {
    .name = "cuda",
    .vendor = "NVIDIA",
    .library = "driver",
    .time_slicing_fix = "start NVIDIA's MPS on this host (nvidia-cuda-mps-control -d)",
    .atomics_fix = "a driver for CUDA 13 reports them; mixed stacks are probed before use",
    .fix = "make one visible (nvidia-smi lists them, CUDA_VISIBLE_DEVICES and the container's settings "
	   "hide them)",
    .compiler = &cuda_compiler,
    .out_of_memory = CUDA_ERROR_OUT_OF_MEMORY,
    .most_registers = 255,
    .watches = 1,
    .ir = COMPOSE_PTX | COMPOSE_LTO,
    .ir_text = "PTX or LTO-IR",
    .lanes_shared = 16, /* bytes of struct loom_lanes, which is static */
    .peer_atomics = peer_atomics,
    .record = record,
    .recorded = recorded,
    .replay = replay,
    .forget = forget,
    .alloc_next = allocate_next,
    .lend = lend,
    .borrow = borrow,
    .give_back = give_back,
    .locate = locate,
    .notify_open = cuda_notify_open,
    .notify_close = cuda_notify_close,
    .notify_await = cuda_notify_await,
    .notify_copy = cuda_notify_copy,
    .notify_flush = cuda_notify_flush,
    .queue_copy = cuda_queue_copy,
    .identify = identify,
    .facts = cuda_facts,
    .throttled = cuda_throttled,
    GPU_DRIVER_CALLS,
};
