/* SPDX-License-Identifier: Apache-2.0 */
/* An NVIDIA GPU as a device: options, instance, descriptor. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "device_cuda.h"

static const char *const worker_choices[] = {"block", "warp", NULL};
static const char *const compile_choices[] = {"cached", "always", NULL};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct options, gpu, LOOM_OPT_I64, "-1",
		 "Which GPU, by the driver's number. -1: that of the instance, so cuda:1 is GPU 1.",
		 .min = -1, .max = 1023),
	LOOM_OPT(struct options, workers, LOOM_OPT_U32, "0",
		 "How many workers this device has. 0: as many as the GPU keeps resident at once. More "
		 "make the compiler spill registers until they fit."),
	LOOM_OPT(struct options, lanes, LOOM_OPT_U32, "32",
		 "Threads per worker, a multiple of 32. One warp meets without a barrier of the block, "
		 "so the scheduler's steps cost least; more lanes suit tasks that use them.",
		 .min = 32, .max = 1024),
	LOOM_OPT(struct options, worker, LOOM_OPT_ENUM, "block",
		 "block: a worker is a thread block. warp: it is a warp, and several share a block, "
		 "which lifts the limit of resident blocks.",
		 .choices = worker_choices),
	LOOM_OPT(struct options, warps, LOOM_OPT_U32, "4",
		 "With worker = warp: workers per thread block.", .min = 1, .max = 32),
	LOOM_OPT(struct options, max_registers, LOOM_OPT_U32, "0",
		 "With workers = 0: registers per thread that the program may use. 0: as many as it "
		 "wants. A bound below that lets more workers be resident, and makes the compiler spill "
		 "(--log info shows both).",
		 .max = 255),
	LOOM_OPT(struct options, nesting, LOOM_OPT_U32, "2",
		 "How deep tasks may run inside each other when queues are full. Each level takes "
		 "stack in every thread.",
		 .max = 64),
	LOOM_OPT(struct options, arch, LOOM_OPT_STR, "",
		 "What to compile for, as in sm_90. Empty: this GPU."),
	LOOM_OPT(struct options, cache, LOOM_OPT_PATH, "",
		 "Folder for compiled programs. Empty: $XDG_CACHE_HOME/gpuloom or ~/.cache/gpuloom."),
	LOOM_OPT(struct options, compile, LOOM_OPT_ENUM, "cached",
		 "cached: a program that was compiled before is taken from the cache. always: compile "
		 "anew.",
		 .choices = compile_choices),
	LOOM_OPT(struct options, nvrtc, LOOM_OPT_PATH, "",
		 "The run-time compiler's file, libnvrtc.so. Empty: where toolkits put it."),
	{.name = NULL},
};

int cuda_fail(struct device *d, struct loom_error *err, CUresult rc, const char *what)
{
	int code = rc == CUDA_ERROR_OUT_OF_MEMORY ? LOOM_ENOMEM : LOOM_EIO;
	return LOOM_FAIL(d->host, err, code, "%s: %s: %s", d->name, what, driver_text(&d->cu, rc));
}

int enter(struct device *d, struct loom_error *err)
{
	if (d->lost)
		return LOOM_FAIL(d->host, err, LOOM_EDIED,
				 "%s: unusable since %s", d->name,
				 d->lost == LOST_HUNG ? "a kernel hangs" : "a kernel failed");
	CUresult rc = d->cu.cuCtxPushCurrent(d->context);
	return rc == CUDA_SUCCESS ? 0 : cuda_fail(d, err, rc, "cuCtxPushCurrent");
}

void leave(struct device *d)
{
	CUcontext ignored;
	d->cu.cuCtxPopCurrent(&ignored);
}

static int choose_gpu(struct device *d, uint32_t instance, struct loom_error *err)
{
	int count = 0, number = d->options->gpu < 0 ? (int)instance : (int)d->options->gpu;
	CUresult rc = d->cu.cuDeviceGetCount(&count);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(d, err, rc, "cuDeviceGetCount");
	if (!count)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: the driver sees no GPU: make one visible (nvidia-smi lists them, "
				 "CUDA_VISIBLE_DEVICES and the container's settings hide them)",
				 d->name);
	if (number >= count)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: there is no GPU %d, the driver sees %d: name fewer in [run] "
				 "devices, or say gpu = 0 in [device.cuda.%u] to share one",
				 d->name, number, count, instance);
	rc = d->cu.cuDeviceGet(&d->gpu, number);
	return rc == CUDA_SUCCESS ? 0 : cuda_fail(d, err, rc, "cuDeviceGet");
}

static int open_context(struct device *d, uint32_t instances, struct loom_error *err)
{
	CUresult rc = d->cu.cuDevicePrimaryCtxRetain(&d->context, d->gpu);
	if (rc != CUDA_SUCCESS) {
		d->context = NULL;
		return cuda_fail(d, err, rc, "cuDevicePrimaryCtxRetain");
	}
	int code = enter(d, err);
	if (code)
		return code;
	rc = d->cu.cuStreamCreate(&d->work, CU_STREAM_NON_BLOCKING);
	if (rc == CUDA_SUCCESS)
		rc = d->cu.cuStreamCreate(&d->copy, CU_STREAM_NON_BLOCKING);
	if (rc != CUDA_SUCCESS)
		code = cuda_fail(d, err, rc, "cuStreamCreate");
	void *words = NULL;
	if (!code) {
		rc = d->cu.cuMemHostAlloc(&words, sizeof(*d->words), CU_MEMHOSTALLOC_PORTABLE |
									     CU_MEMHOSTALLOC_DEVICEMAP);
		if (rc == CUDA_SUCCESS)
			rc = d->cu.cuMemHostGetDevicePointer(&d->words_view, words, 0);
		if (rc != CUDA_SUCCESS)
			code = cuda_fail(d, err, rc, "cuMemHostAlloc");
		d->words = words;
	}
	/* Once for all launches: while a kernel of another instance runs on the same GPU, to free memory
	 * would wait for it. */
	uint64_t most = (uint64_t)d->limits.multiprocessors * (uint64_t)(d->limits.threads / 32);
	if (!code) {
		rc = d->cu.cuMemAlloc(&d->gate, sizeof(struct loom_gpu_gate) + most * sizeof(uint32_t));
		if (rc != CUDA_SUCCESS) {
			d->gate = 0;
			code = cuda_fail(d, err, rc, "cuMemAlloc");
		}
	}
	/* And nothing is loaded then: it might wait, too. */
	if (!code && instances > 1)
		code = program_probe(d, err);
	leave(d);
	return code;
}

static void destroy(void *self)
{
	struct device *d = self;
	if (!d)
		return;
	if (d->launch)
		device_retire(d, 0, NULL);
	if (d->lost)
		return; /* a kernel may still write to all of it: only the end of the process frees it */
	const struct loom_host *host = d->host;
	if (d->context && enter(d, NULL) == 0) {
		program_finish(d);
		if (d->gate)
			d->cu.cuMemFree(d->gate);
		if (d->words)
			d->cu.cuMemFreeHost(d->words);
		if (d->copy)
			d->cu.cuStreamDestroy(d->copy);
		if (d->work)
			d->cu.cuStreamDestroy(d->work);
		leave(d);
	}
	if (d->context)
		d->cu.cuDevicePrimaryCtxRelease(d->gpu);
	host->free(host, d);
}

static int create(const struct loom_host *host, const void *opts, uint32_t instance,
		  uint32_t instances, void **self, struct loom_error *err)
{
	struct device *d = host->alloc(host, sizeof(*d));
	if (!d)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "cuda:%u: out of memory", instance);
	d->host = host;
	d->options = opts;
	snprintf(d->name, sizeof(d->name), "cuda:%u", instance);
	int code = driver_open(host, d->name, &d->cu, err);
	if (!code)
		code = compiler_open(host, d->name, d->options->nvrtc, &d->compiler, err);
	if (!code)
		code = choose_gpu(d, instance, err);
	if (!code)
		code = shape_find(d, err);
	if (!code)
		code = open_context(d, instances, err);
	if (code) {
		destroy(d);
		return code;
	}
	LOOM_LOG(host, LOOM_LOG_INFO, d->name,
		 "%s, %d multiprocessors, workers of %u lanes; NVRTC %d.%d (%s)", d->arch,
		 d->limits.multiprocessors, d->lanes, d->compiler.major, d->compiler.minor, d->compiler.path);
	*self = d;
	return 0;
}

static const struct loom_device_ops ops = {
	.size = sizeof(ops),
	.create = create,
	.destroy = destroy,
	.shape = device_shape,
	.mem_alloc = device_mem_alloc,
	.mem_free = device_mem_free,
	.mem_map = device_mem_map,
	.mem_unmap = device_mem_unmap,
	.build = device_build,
	.launch = device_launch,
	.ready = device_ready,
	.go = device_go,
	.wait = device_wait,
	.retire = device_retire,
	.copy_in = device_copy_in,
	.copy_out = device_copy_out,
	.doctor = device_doctor,
};

LOOM_PLUGIN_DEFINE(DEVICE, "device_cuda", "0.1.0", "Apache-2.0",
		   "NVIDIA GPUs: workers are thread blocks or warps of one persistent kernel",
		   .opts = rows, .opts_size = sizeof(struct options), .ops = &ops)
