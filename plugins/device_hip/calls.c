/* SPDX-License-Identifier: Apache-2.0 */
/* The table of driver calls, for HIP. */
#include <sched.h>

#include "runtime.h"

#define VENDOR             struct hip
#define API(name)          hip##name
#define HOST(name)         hipHost##name
#define API_POINTER        hipDeviceptr_t
#define API_MODULE         hipModule_t
#define API_FUNCTION       hipFunction_t
#define API_STREAM_CREATE  hipStreamCreateWithFlags
#define API_STREAM_FLAGS   hipStreamNonBlocking
#define API_HOST_ALLOC     hipHostMalloc
#define API_HOST_FREE      hipHostFree
#define API_ALLOC_FLAGS    (hipHostMallocPortable | hipHostMallocMapped | hipHostMallocCoherent)
#define API_REGISTER_FLAGS (hipHostRegisterPortable | hipHostRegisterMapped)
#define API_REGISTERED     hipErrorHostMemoryAlreadyRegistered
#define API_ORDINAL        HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL
#define API_REGISTERS      HIP_FUNC_ATTRIBUTE_NUM_REGS
#define API_SHARED         HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
#define API_LAUNCH         hipModuleLaunchCooperativeKernel
#define API_LAUNCH_STEP    hipModuleLaunchKernel
#define API_AT_LEAST       hipStreamWaitValueGte, ~0ull
#define API_NOT_READY      hipErrorNotReady
#define API_HANDLE         hipIpcMemHandle_t
#define API_HANDLE_FLAGS   hipIpcMemLazyEnablePeerAccess
#define API_RANGE_START    HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR
#define API_RANGE_SIZE     HIP_POINTER_ATTRIBUTE_RANGE_SIZE
#define API_CAPTURE        hipStreamCaptureStatus
#define API_NO_CAPTURE     hipStreamCaptureStatusNone
#include "../device_common/gpu/calls.h"

#define COPY_NS 10000000000ull /* time limit of a copy, in ns */

/* ---- the GPU ---- */

static int open_driver(struct gpu *d, struct loom_error *err)
{
	struct runtime *hip = &of(d)->api;
	int code = runtime_open(d->host, d->name, hip, err);
	snprintf(d->version, sizeof(d->version), "HIP %d.%d", hip->version / 10000000, hip->version / 100000 % 100);
	return code;
}

static int count_gpus(struct gpu *d, int *count)
{
	int rc = CALL(of(d), hipGetDeviceCount, count);
	if (rc == (int)hipErrorNoDevice)
		*count = rc = 0;
	return rc;
}

static const char *text(const struct gpu *d, int rc)
{
	return runtime_text(&of(d)->api, rc);
}

/* HIP does not report the GPU of a stream, so every stream is accepted. */
static int stream_is_ours(struct gpu *d, void *stream, int *is)
{
	(void)d, (void)stream;
	*is = 1;
	return 0;
}

static int is_host_memory(struct hip *c, uint64_t at)
{
	void *host = NULL;
	unsigned managed = 0;
	return c->api.hipPointerGetAttribute(&host, HIP_POINTER_ATTRIBUTE_HOST_POINTER, pointer(at)) == hipSuccess && host &&
	       !(c->api.hipPointerGetAttribute(&managed, HIP_POINTER_ATTRIBUTE_IS_MANAGED, pointer(at)) == hipSuccess &&
		 managed);
}

/* Returns an attribute of the GPU. Returns `otherwise` if this release does not know the attribute, or reports it as
 * 0. */
static int attribute(struct hip *c, int which, int otherwise)
{
	int value = 0;
	return c->api.hipDeviceGetAttribute(&value, (hipDeviceAttribute_t)which, c->number) == hipSuccess && value > 0
		   ? value
		   : otherwise;
}

/* Finds the architecture for the compiler, such as "gfx90a:sramecc+:xnack-". The layout of the record differs between
 * releases, so this function searches the record. Only the architecture starts with gfx there, except if the GPU is
 * named after its architecture. */
static int find_name(struct hip *c)
{
	char properties[8192] = {0};
	struct gpu *d = &c->gpu;
	int rc = CALL(c, hipGetDevicePropertiesR0600, properties, c->number);
	for (size_t i = 0; rc == 0 && i + sizeof(d->arch) < sizeof(properties); i++)
		if (!memcmp(properties + i, "gfx", 3) && (i == 0 || !properties[i - 1]))
			snprintf(d->arch, sizeof(d->arch), "%.*s", (int)sizeof(d->arch) - 1, properties + i);
	return rc;
}

static int find_limits(struct hip *c, struct loom_error *err)
{
	enum { WALL_CLOCK_RATE = 10017 }; /* value of hipDeviceAttribute_t that older headers lack */
	struct gpu *d = &c->gpu;
	struct gpu_limits *l = &d->limits;
	int cooperative = 0;
	const struct {
		hipDeviceAttribute_t attribute;
		int *to;
	} wanted[] = {
	    {hipDeviceAttributeWarpSize, &l->wave},
	    {hipDeviceAttributeMultiprocessorCount, &l->multiprocessors},
	    {hipDeviceAttributeMaxThreadsPerBlock, &l->threads_per_block},
	    {hipDeviceAttributeMaxThreadsPerMultiProcessor, &l->threads},
	    {hipDeviceAttributeMaxSharedMemoryPerBlock, &l->shared_per_block},
	    {hipDeviceAttributeCooperativeLaunch, &cooperative},
	};
	for (size_t i = 0; i < COUNT(wanted); i++) {
		int rc = CALL(c, hipDeviceGetAttribute, wanted[i].to, wanted[i].attribute, c->number);
		if (rc != 0)
			return gpu_fail(d, err, rc, NULL);
	}
	if ((l->wave != 32 && l->wave != 64) || !*d->arch || !cooperative)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: GPU %d (%s) has wavefronts of %d%s: a GPU of a known architecture with "
				 "wavefronts of 32 or 64 and cooperative launches is needed",
				 d->name, c->number, *d->arch ? d->arch : "of no known architecture", l->wave,
				 cooperative ? "" : " and no cooperative launches");
	l->shared = attribute(c, hipDeviceAttributeMaxSharedMemoryPerMultiprocessor, l->shared_per_block);
	l->registers = attribute(c, hipDeviceAttributeMaxRegistersPerMultiprocessor,
				 attribute(c, hipDeviceAttributeMaxRegistersPerBlock, 65536));
	l->parts = 1;
	l->cache = attribute(c, hipDeviceAttributeL2CacheSize, 0);
	l->words = attribute(c, hipDeviceAttributeCanUseStreamWaitValue, 0);
	l->blocks = attribute(c, hipDeviceAttributeMaxBlocksPerMultiProcessor, l->threads / l->wave);
	snprintf(d->defines, sizeof(d->defines), "#define LOOM_HIP_WAVEFRONT %d\n#define LOOM_HIP_CLOCK_KHZ %uu\n",
		 l->wave, (unsigned)attribute(c, WALL_CLOCK_RATE, 100000));
	return 0;
}

static int choose(struct hip *c)
{
	c->device = c->number;
	return 0;
}

static void host_atomics(const struct gpu *d, struct gpu_atomics *out)
{
	int native = attribute(of(d), hipDeviceAttributeHostNativeAtomicSupported, 0);
	*out =
	    (struct gpu_atomics){.known = native, .native = native, .add = native, .cas = native, .exchange = native};
}

static int peers(struct gpu *d, int from, int to, int *can)
{
	return CALL(of(d), hipDeviceCanAccessPeer, can, from, to);
}

static int enter(struct gpu *d)
{
	struct hip *c = of(d);
	int rc = CALL(c, hipGetDevice, &c->previous);
	return rc == 0 ? CALL(c, hipSetDevice, c->number) : rc;
}

static void leave(struct gpu *d)
{
	of(d)->api.hipSetDevice(of(d)->previous);
}

static void detach(struct gpu *d)
{
	struct hip *c = of(d);
	if (enter(d) != 0)
		return;
	destroy_streams(c);
	leave(d);
}

static int attach(struct gpu *d)
{
	struct hip *c = of(d);
	int rc = enter(d);
	if (rc != 0)
		return rc;
	rc = create_streams(c);
	leave(d);
	return rc;
}

/* ---- memory ---- */

/* Allocates fine-grained memory, which is coherent with the host and other GPUs while a kernel runs. The default kind
 * of memory is coherent only at the ends of kernels. */
static int allocate(struct gpu *d, uint64_t bytes, uint64_t *at)
{
	void *p = NULL;
	int rc = CALL(of(d), hipExtMallocWithFlags, &p, bytes, hipDeviceMallocFinegrained);
	*at = (uint64_t)(uintptr_t)p;
	return rc;
}

static void release(struct gpu *d, uint64_t at)
{
	of(d)->api.hipFree(pointer(at));
}

static int reach(struct gpu *d, uint64_t at, int number, int *can)
{
	struct hip *c = of(d);
	(void)at;
	*can = number == c->number;
	if (*can)
		return 0;
	int rc = peers(d, c->number, number, can);
	if (rc != 0 || !*can)
		return rc;
	rc = CALL(c, hipDeviceEnablePeerAccess, number, 0);
	return rc == (int)hipErrorPeerAccessAlreadyEnabled ? 0 : rc;
}

/* Waits for a copy, with a time limit. On some system a copy may be a kernel, which finds no room beside the persistent
 * kernel. */
static int await_copy(struct hip *c, int rc)
{
	const struct loom_host *host = c->gpu.host;
	uint64_t begin = host->now_ns(host);
	if (rc != 0)
		return rc;
	while ((rc = CALL(c, hipStreamQuery, c->copy)) == (int)hipErrorNotReady) {
		if (host->now_ns(host) - begin > COPY_NS)
			return gpu_called(hipErrorLaunchTimeOut, "a copy beside the running kernel");
		sched_yield();
	}
	return rc;
}

/* Zeroes memory by copies of zeros. A fill is a kernel, which may find no room beside the persistent kernel. */
static int clear(struct gpu *d, uint64_t at, uint64_t bytes)
{
	static const char zeros[65536];
	struct hip *c = of(d);
	int rc = 0;
	if (bytes > 16 * sizeof(zeros)) /* memory of this size is a segment, which is made before a kernel runs */
		return await_copy(c, CALL(c, hipMemsetD8Async, pointer(at), 0, bytes, c->copy));
	for (uint64_t done = 0, n; done < bytes && rc == 0; done += n) {
		n = bytes - done < sizeof(zeros) ? bytes - done : sizeof(zeros);
		rc = write_gpu(d, at + done, zeros, n);
	}
	return rc;
}

/* ---- programs ---- */

/* Up to ROCm 5 the compiler is in the library of the runtime. */
static const char *const compiler_names[] = {"libhiprtc.so.7", "libhiprtc.so.6",   "libhiprtc.so.5",
					     "libhiprtc.so",   "libamdhip64.so.5", NULL};
static const char *const compiler_folders[] = {"/opt/rocm/lib", NULL};
static const char *const compiler_homes[] = {"ROCM_PATH", "HIP_PATH", NULL};

LOOM_EMBED(layer_text, "gpuloom/dev/hip.h");
LOOM_EMBED(dialect_text, "hip.dev.h");
const struct compose_layer hip_layer = {"gpuloom/dev/hip.h", layer_text, dialect_text};

const struct rtc_kind hip_compiler = {
    .layer = &hip_layer,
    .title = "hipRTC",
    .prefix = "hiprtc",
    .code = "GetCode",
    .name = compiler_names,
    .folder = compiler_folders,
    .home = compiler_homes,
    .lib = "lib",
    .needed = "ROCm 6 or later",
    .option = "hiprtc = in [device.hip]",
};

static const char *const flags[] = {HIP_COMPILER_FLAGS};

static void identify(const struct gpu *d, struct loom__text *key)
{
	loom__text_add(key, " --offload-arch=%s", d->arch);
	for (size_t i = 0; i < COUNT(flags); i++)
		loom__text_add(key, " %s", flags[i]);
}

static int compile(struct gpu *d, const struct gpu_program *program, struct cached *out, struct loom_error *err)
{
	char arch[96];
	struct compiled compiled;
	const char *const options[] = {arch, HIP_COMPILER_FLAGS};
	snprintf(arch, sizeof(arch), "--offload-arch=%s", d->arch);
	int code = rtc_run(d->host, d->name, &d->compiler, program->text.at, options, COUNT(options), RTC_CODE,
			   &compiled, err);
	if (code)
		return code;
	*out = (struct cached){.code = compiled.code, .bytes = compiled.bytes};
	compiled.code = NULL;
	code_resources(out->code, out->bytes, &out->resources);
	if (!d->options->nesting)
		out->resources.nested = 0;
	compiled_free(d->host, &compiled);
	return 0;
}

/* Reserves stack for nested tasks in addition to the stack that the compiler counted, because nested tasks are a
 * recursion. */
static int reserve_stack(struct hip *c, const struct gpu_kernel *k)
{
	enum { LIMIT_STACK_SIZE = 0 }; /* value of hipLimit_t that older headers lack */
	size_t want = (size_t)k->resources.nested * (c->gpu.options->nesting + 1u);
	if (c->stack >= want)
		return 0;
	char what[96];
	snprintf(what, sizeof(what), "hipDeviceSetLimit: a stack of %zu bytes per thread (lower nesting)", want);
	int rc = gpu_called(CALL(c, hipDeviceSetLimit, LIMIT_STACK_SIZE, want), what);
	if (rc == 0)
		c->stack = want;
	return rc;
}

static int occupancy(struct gpu *d, const struct gpu_kernel *k, int threads, uint64_t shared, int wanted, int *blocks)
{
	(void)wanted; /* shared memory and cache do not share storage */
	return CALL(of(d), hipModuleOccupancyMaxActiveBlocksPerMultiprocessor, blocks, k->function, threads, shared);
}

const struct gpu_driver hip_driver = {
    .name = "hip",
    .vendor = "AMD",
    .library = "runtime",
    .atomics_fix = "mixed stacks are probed before use",
    .call = "hipExtMallocWithFlags",
    .call_fix =
	"a GPU without fine-grained memory of its own may give it with HSA_FORCE_FINE_GRAIN_PCIE=1 in the environment",
    .fix = "make one visible (rocminfo lists them, HIP_VISIBLE_DEVICES and the container's settings hide "
	   "them; /dev/kfd and /dev/dri must be open to this user)",
    .compiler = &hip_compiler,
    .out_of_memory = hipErrorOutOfMemory,
    .most_registers = 256,
    .lanes_shared = LOOM_HIP_LANES_BYTES,
    .lanes_dynamic = LOOM_HIP_LANES_BYTES,
    .lend = lend,
    .borrow = borrow,
    .give_back = give_back,
    .locate = locate,
    .identify = identify,
    .facts = hip_facts,
    GPU_DRIVER_CALLS,
};
