/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA's driver behind the table of driver calls that the devices for GPUs share. */
#include <stdio.h>
#include <string.h>

#include "driver.h"
#include "jitlink.h"
#include "ptxas.h"

#define CALL(c, function, ...) GPU_CALL(&(c)->gpu, &(c)->cu, function, __VA_ARGS__)
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct cuda *of(const struct gpu *d)
{
	return (struct cuda *)d;
}

/* ---- the GPU ---- */

static int open_driver(struct gpu *d, struct loom_error *err)
{
	struct driver *cu = &of(d)->cu;
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
	return driver_text(&of(d)->cu, (CUresult)rc);
}

static int find_limits(struct cuda *c, struct loom_error *err)
{
	struct gpu *d = &c->gpu;
	struct gpu_limits *l = &d->limits;
	int cooperative = 0, major = 0, minor = 0;
	l->wave = 32;
	l->parts = 4; /* of every model so far */
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
		{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &cooperative},
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
	return 0;
}

static int find(struct gpu *d, int number, struct loom_error *err)
{
	struct cuda *c = of(d);
	size_t bytes = 0;
	c->number = number;
	int rc = CALL(c, cuDeviceGet, &c->device, number);
	if (rc == 0)
		rc = CALL(c, cuDeviceGetName, d->model, sizeof(d->model), c->device);
	if (rc == 0)
		rc = CALL(c, cuDeviceTotalMem, &bytes, c->device);
	if (rc != 0)
		return gpu_fail(d, err, rc, NULL);
	d->memory = bytes;
	if (c->cu.cuDeviceGetPCIBusId(d->bus, sizeof(d->bus), c->device) != CUDA_SUCCESS)
		*d->bus = 0;
	return find_limits(c, err);
}

static void host_atomics(const struct gpu *d, struct gpu_atomics *out)
{
	driver_host_atomics(&of(d)->cu, of(d)->device, out);
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
	const struct driver *cu = &of(d)->cu;
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
	of(d)->cu.cuCtxPopCurrent(&ignored);
}

static void detach(struct gpu *d)
{
	struct cuda *c = of(d);
	if (!c->context)
		return;
	if (enter(d) == 0) {
		if (c->copy)
			c->cu.cuStreamDestroy(c->copy);
		if (c->work)
			c->cu.cuStreamDestroy(c->work);
		leave(d);
	}
	c->cu.cuDevicePrimaryCtxRelease(c->device);
	c->context = NULL;
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
	rc = CALL(c, cuStreamCreate, &c->work, CU_STREAM_NON_BLOCKING);
	if (rc == 0)
		rc = CALL(c, cuStreamCreate, &c->copy, CU_STREAM_NON_BLOCKING);
	leave(d);
	return rc;
}

/* ---- memory ---- */

static int allocate(struct gpu *d, uint64_t bytes, uint64_t *at)
{
	CUdeviceptr p = 0;
	int rc = CALL(of(d), cuMemAlloc, &p, bytes);
	*at = p;
	return rc;
}

static void release(struct gpu *d, uint64_t at)
{
	of(d)->cu.cuMemFree(at);
}

static int view_of(struct cuda *c, void *host, uint64_t *view)
{
	CUdeviceptr p = 0;
	int rc = CALL(c, cuMemHostGetDevicePointer, &p, host, 0);
	*view = p;
	return rc;
}

static int host_alloc(struct gpu *d, uint64_t bytes, void **host, uint64_t *view)
{
	struct cuda *c = of(d);
	int rc = CALL(c, cuMemHostAlloc, host, bytes,
		      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	if (rc != 0)
		return rc;
	rc = view_of(c, *host, view);
	if (rc != 0)
		c->cu.cuMemFreeHost(*host);
	return rc;
}

static void host_free(struct gpu *d, void *host)
{
	of(d)->cu.cuMemFreeHost(host);
}

/* Portable: one registration serves all GPUs; a GPU's own host memory needs none. */
static int host_map(struct gpu *d, void *host, int fd, uint64_t bytes, uint64_t *view, int *ours)
{
	(void)fd; /* it is mapped here already */
	struct cuda *c = of(d);
	int rc = CALL(c, cuMemHostRegister, host, bytes,
		      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
	*ours = rc == 0;
	if (rc != 0 && rc != CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
		return rc;
	rc = view_of(c, host, view);
	if (rc != 0 && *ours)
		c->cu.cuMemHostUnregister(host);
	return rc;
}

static void host_unmap(struct gpu *d, void *host)
{
	of(d)->cu.cuMemHostUnregister(host);
}

static int owner(struct gpu *d, uint64_t at, int *number)
{
	return CALL(of(d), cuPointerGetAttribute, number, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
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

/* On a stream that does not wait for the persistent kernel. */
static int await_copy(struct cuda *c, int rc)
{
	return rc == 0 ? CALL(c, cuStreamSynchronize, c->copy) : rc;
}

static int write(struct gpu *d, uint64_t to, const void *from, uint64_t bytes)
{
	return await_copy(of(d), CALL(of(d), cuMemcpyHtoDAsync, to, from, bytes, of(d)->copy));
}

static int read(struct gpu *d, void *to, uint64_t from, uint64_t bytes)
{
	return await_copy(of(d), CALL(of(d), cuMemcpyDtoHAsync, to, from, bytes, of(d)->copy));
}

static int clear(struct gpu *d, uint64_t at, uint64_t bytes)
{
	return await_copy(of(d), CALL(of(d), cuMemsetD8Async, at, 0, bytes, of(d)->copy));
}

/* ---- programs ---- */

/* Newest first. 12 is the first that takes C++20, which designated initialisers need. */
static const char *const compiler_names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so", NULL};
static const char *const compiler_folders[] = {"/usr/local/cuda/lib64", "/opt/cuda/lib64", NULL};
static const char *const compiler_homes[] = {"CUDA_HOME", "CUDA_PATH", NULL};

const struct rtc_kind cuda_compiler = {
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

/* The assembler's report is what resources_read() reads. */
static const char *const flags[] = {"-std=c++20", "--ptxas-options=-v"};
static const char *const linked_flags[] = {"-dlto", "-rdc=true"};
/* Functions are optimised and assembled at the same time, by as many threads as there are cores. */
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

static void identify(const struct gpu *d, struct text *key)
{
	text_add(key, " -arch=%s", d->arch);
	for (size_t i = 0; i < COUNT(flags); i++)
		text_add(key, " %s", flags[i]);
	if (d->options->lineinfo)
		text_add(key, " -lineinfo");
}

/* Per thread, with as many blocks resident as were promised: the hardware gives them in eights. */
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
	const char *option[CUDA_OPTIONS_MOST + 2] = {arch};
	int n = 1 + cuda_compiler_options(&d->compiler, program->irs != 0, option + 1);
	if (d->options->lineinfo)
		option[n++] = "-lineinfo";
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
	if (!resources_read(compiled.log, COMPOSE_KERNEL, &out->resources))
		out->resources.nested = 2048; /* no report: more than was ever seen */
	compiled_free(d->host, &compiled);
	return 0;
}

static void unload(struct gpu *d, struct gpu_kernel *k)
{
	of(d)->cu.cuModuleUnload(k->module);
}

/* The default of 1 KiB would do until tasks run inside each other. */
static int reserve_stack(struct cuda *c, const struct gpu_kernel *k)
{
	size_t have = 0, want = k->resources.stack + 512u +
				(size_t)k->resources.nested * (c->gpu.options->nesting + 1u);
	int rc = CALL(c, cuCtxGetLimit, &have, CU_LIMIT_STACK_SIZE);
	if (rc != 0 || have >= want)
		return rc;
	rc = CALL(c, cuCtxSetLimit, CU_LIMIT_STACK_SIZE, want);
	if (rc != 0)
		snprintf(c->gpu.call, sizeof(c->gpu.call), "a stack of %zu bytes per thread (lower nesting)",
			 want);
	return rc;
}

static int load(struct gpu *d, const struct cached *code, struct gpu_kernel *k)
{
	struct cuda *c = of(d);
	CUmodule module = NULL;
	CUfunction function = NULL;
	CUdeviceptr launch = 0;
	int rc = CALL(c, cuModuleLoadData, &module, code->code);
	if (rc != 0)
		return rc;
	k->module = module;
	/* Loads the code now, where the driver is set to load lazily: no such wait in a sample. */
	rc = CALL(c, cuModuleGetFunction, &function, module, COMPOSE_KERNEL);
	if (rc == 0)
		rc = CALL(c, cuModuleGetGlobal, &launch, &k->launch_bytes, module, COMPOSE_LAUNCH);
	if (rc == 0)
		rc = CALL(c, cuFuncGetAttribute, &k->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);
	if (rc == 0)
		rc = CALL(c, cuFuncGetAttribute, &k->shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function);
	k->function = function;
	k->launch = launch;
	return rc == 0 ? reserve_stack(c, k) : rc;
}

static int occupancy(struct gpu *d, const struct gpu_kernel *k, int threads, uint64_t shared, int *blocks)
{
	struct cuda *c = of(d);
	int rc = CALL(c, cuFuncSetAttribute, k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
		      (int)shared);
	if (rc == 0)
		rc = CALL(c, cuFuncSetAttribute, k->function,
			  CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
			  CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
	if (rc == 0)
		rc = CALL(c, cuOccupancyMaxActiveBlocksPerMultiprocessor, blocks, k->function, threads,
			  shared);
	return rc;
}

static int launch(struct gpu *d, const struct gpu_kernel *k, uint32_t blocks, uint32_t threads,
		  uint32_t shared)
{
	return CALL(of(d), cuLaunchCooperativeKernel, k->function, blocks, 1, 1, threads, 1, 1, shared,
		    of(d)->work, NULL);
}

static int running(struct gpu *d, int *still)
{
	int rc = CALL(of(d), cuStreamQuery, of(d)->work);
	*still = rc == CUDA_ERROR_NOT_READY;
	return *still ? 0 : rc;
}

const struct gpu_driver cuda_driver = {
	.name = "cuda",
	.vendor = "NVIDIA",
	.library = "driver",
	.atomics_mend = "a driver for CUDA 13 tells; mixed stacks are probed before use",
	.mend = "make one visible (nvidia-smi lists them, CUDA_VISIBLE_DEVICES and the container's settings "
		"hide them)",
	.dialect = &compose_cuda,
	.compiler = &cuda_compiler,
	.out_of_memory = CUDA_ERROR_OUT_OF_MEMORY,
	.most_registers = 255,
	.watches = 1,
	.ir = COMPOSE_PTX | COMPOSE_LTO,
	.ir_text = "PTX or LTO-IR",
	.lanes_shared = 16, /* struct loom_lanes, static */
	.peer_atomics = peer_atomics,
	.share = cuda_share,
	.import = cuda_import,
	.unshare = cuda_unshare,
	GPU_DRIVER_CALLS,
};
