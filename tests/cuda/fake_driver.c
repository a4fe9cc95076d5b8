/* SPDX-License-Identifier: Apache-2.0 */
/* A libcuda.so.1 without a GPU: "device memory" is the heap, and a launched kernel is a set of threads
 * that run the policies' CPU code on the launch record that device_cuda wrote. It tests the host half
 * of device_cuda, from the options to the last copy, with the real core and real policies.
 *
 * FAKE_CUDA_PLUGINS  the files of the policies that the conf selects (the core may load others, too)
 * FAKE_CUDA          what goes wrong: none, init, no-gpu, old-gpu, atomics (native with the CPU),
 *                    hang (a worker ignores the stop word), die (the kernel fails in mid-sample),
 *                    small (fewer blocks are resident than promised) */
#include <cuda.h>
#include <dlfcn.h>
#include <gpuloom/dev/probe.h>
#include <gpuloom/sched.h>
#include <gpuloom/workload.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compose/gpu.dev.h"

#define API __attribute__((visibility("default")))

static int wrong(const char *what)
{
	const char *set = getenv("FAKE_CUDA");
	return set && !strcmp(set, what);
}

/* ---- the kernel ---- */

struct module {
	struct loom_gpu_launch launch;
};

struct worker {
	pthread_t thread;
	struct loom_ctx ctx;
	struct loom_lanes together;
	void *local;
	struct loom_gpu_launch *record;
	struct stream *stream;
};

struct stream {
	struct worker *worker;
	uint32_t count;
	uint32_t left;   /* threads that have ended; atomic */
	uint32_t failed; /* atomic */
};

static const void *tables[LOOM_KINDS];
static loom_task_fn *task_functions[64];
static uint32_t task_count;

static void take_policy(const char *path)
{
	void *so = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	const struct loom_plugin *(*entry)(void) = NULL;
	if (so)
		*(void **)&entry = dlsym(so, "loom_plugin_entry");
	if (!entry) {
		fprintf(stderr, "fake driver: %s\n", dlerror());
		exit(99);
	}
	const struct loom_plugin *p = entry();
	tables[p->kind] = p->dev->cpu;
	if (p->kind != LOOM_WORKLOAD)
		return;
	const struct loom_workload_dev *w = p->dev->cpu;
	task_count = w->count;
	for (uint32_t i = 0; i < w->count; i++)
		task_functions[i] = w->task[i].fn;
}

static void load_policies(void)
{
	char *list = getenv("FAKE_CUDA_PLUGINS"), *rest = NULL;
	list = list ? strdup(list) : NULL;
	for (char *path = list ? strtok_r(list, " ", &rest) : NULL; path;
	     path = strtok_r(NULL, " ", &rest))
		take_policy(path);
	free(list);
}

static void fill(struct worker *w, uint32_t slot)
{
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	*c = (struct loom_ctx){
		.worker = l->first + slot,
		.workers = l->workers,
		.device = l->device,
		.devices = l->devices,
		.first = l->first,
		.count = l->count,
		.lanes = 1,
		.flags = LOOM_CTX_CROWDED,
		.random = l->seed + slot + 1,
		.ctl = &l->gate->ctl,
		.segment = l->segment,
		.together = &w->together,
		.initial = l->initial,
		.sched = tables[LOOM_SCHED],
		.term = tables[LOOM_TERM],
		.sync = tables[LOOM_SYNC],
		.barrier = tables[LOOM_BARRIER],
		.workload = tables[LOOM_WORKLOAD],
		.task = task_functions,
		.tasks = task_count,
	};
	c->counters = l->counters ? &l->counters[c->worker] : NULL;
	for (int kind = 0; kind < LOOM_KINDS; kind++) {
		c->global[kind] = l->global[kind];
		c->on_device[kind] = l->on_device[kind];
		c->registry[kind] = l->registry[kind];
		c->own[kind] = l->registry[kind] ? loom_at(c, l->registry[kind][c->worker]) : NULL;
		if (l->local_at[kind] != LOOM_GPU_NONE)
			c->local[kind] = (char *)w->local + l->local_at[kind];
	}
}

/* As loom_gpu_watch() in kernel.dev.h. */
static uint32_t watch(struct worker *w, uint32_t old, uint32_t mask)
{
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	uint32_t phase;
	if (c->worker == c->first) {
		while ((phase = loom_load_acquire_sys(&l->ctl->phase)) == old || !(phase & mask))
			sched_yield();
		c->ctl->initial_tasks = l->ctl->initial_tasks;
		c->ctl->sample = l->ctl->sample;
		loom_store_release_dev(&c->ctl->phase, phase);
	} else {
		while ((phase = loom_load_acquire_dev(&c->ctl->phase)) == old || !(phase & mask))
			sched_yield();
	}
	return phase;
}

static void stage(struct worker *w, uint32_t value)
{
	loom_store_relaxed_dev(&w->record->stage[w->ctx.worker - w->ctx.first], value);
}

static void run_sample(struct worker *w)
{
	const struct loom_sched_dev *sched = tables[LOOM_SCHED];
	const struct loom_workload_dev *workload = tables[LOOM_WORKLOAD];
	struct loom_ctx *c = &w->ctx;
	memset(w->local, 0, w->record->local_bytes);
	if (wrong("hang") && c->worker == c->first + 1)
		for (;;)
			sched_yield();
	if (w->record->probe)
		loom_probe_run(c, w->record->probe);
	else if (LOOM_HAS(workload, kernel))
		workload->kernel(c);
	else
		sched->run(c);
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct loom_gpu_launch *l = w->record;
	struct loom_ctx *c = &w->ctx;
	for (;;) {
		stage(w, LOOM_GPU_PARKED);
		uint32_t ready = watch(w, 0, 3);
		if (ready == LOOM_PHASE_RETIRE)
			break;
		fill(w, c->worker - l->first); /* the registries were filled after the launch */
		stage(w, LOOM_GPU_READY);
		if (loom_fetch_add_acq_rel_dev(&l->gate->arrived, 1u) + 1 == c->count) {
			loom_store_relaxed_dev(&l->gate->arrived, 0u);
			loom_store_relaxed_dev(&l->gate->finished, 0u);
			loom_store_release_sys(&l->words->ready, ready);
		}
		uint32_t go = watch(w, ready, ~0u);
		if (go == LOOM_PHASE_RETIRE)
			break;
		stage(w, LOOM_GPU_WORKING);
		if (wrong("die")) {
			__atomic_store_n(&w->stream->failed, 1, __ATOMIC_RELEASE);
			break;
		}
		run_sample(w);
		if (c->counters)
			c->counters->end_ns = loom_clock_ns(c);
		stage(w, LOOM_GPU_FINISHED);
		if (loom_fetch_add_acq_rel_dev(&l->gate->finished, 1u) + 1 == c->count)
			loom_store_release_sys(&l->words->done, go);
	}
	free(w->local);
	__atomic_fetch_add(&w->stream->left, 1, __ATOMIC_ACQ_REL);
	return NULL;
}

API CUresult cuLaunchCooperativeKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
				       unsigned by, unsigned bz, unsigned shared, CUstream stream,
				       void **parameters)
{
	(void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)parameters;
	struct module *m = (struct module *)f;
	struct stream *s = (struct stream *)stream;
	uint32_t count = m->launch.count; /* a block may hold several */
	load_policies();
	*s = (struct stream){.count = count, .worker = calloc(count, sizeof(struct worker))};
	for (uint32_t i = 0; i < count; i++) {
		s->worker[i].record = &m->launch;
		s->worker[i].stream = s;
		s->worker[i].local = calloc(1, m->launch.local_bytes + 64);
		fill(&s->worker[i], i);
	}
	for (uint32_t i = 0; i < count; i++)
		if (pthread_create(&s->worker[i].thread, NULL, worker_main, &s->worker[i]) != 0)
			return CUDA_ERROR_LAUNCH_FAILED;
	return CUDA_SUCCESS;
}

API CUresult cuStreamQuery(CUstream stream)
{
	struct stream *s = (struct stream *)stream;
	if (__atomic_load_n(&s->failed, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	if (!s->worker)
		return CUDA_SUCCESS;
	if (__atomic_load_n(&s->left, __ATOMIC_ACQUIRE) != s->count)
		return CUDA_ERROR_NOT_READY;
	for (uint32_t i = 0; i < s->count; i++)
		pthread_join(s->worker[i].thread, NULL);
	free(s->worker);
	s->worker = NULL;
	return CUDA_SUCCESS;
}

/* ---- everything else ---- */

API CUresult cuInit(unsigned flags)
{
	(void)flags;
	return wrong("init") ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

/* NVRTC loads libcuda.so.1 too, and takes this one's presence for granted. */
API CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	(void)id;
	*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

API CUresult cuDriverGetVersion(int *version)
{
	*version = 13000;
	return CUDA_SUCCESS;
}

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
	*text = "as the fake driver was told";
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetCount(int *count)
{
	*count = wrong("no-gpu") ? 0 : 1;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGet(CUdevice *device, int number)
{
	*device = number;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetName(char *name, int room, CUdevice device)
{
	(void)device;
	snprintf(name, (size_t)room, "no GPU");
	return CUDA_SUCCESS;
}

API CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
	(void)device;
	*bytes = 1u << 30;
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetPCIBusId(char *bus, int room, CUdevice device)
{
	(void)device;
	snprintf(bus, (size_t)room, "ffff:FF:1f.7");
	return CUDA_SUCCESS;
}

API CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute which, CUdevice device)
{
	(void)device;
	switch (which) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*value = wrong("old-gpu") ? 6 : 9;
		break;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*value = 0;
		break;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*value = 2;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
		*value = 4;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
		*value = 2048;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR:
		*value = 65536;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
		*value = 65536;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
		*value = 65536;
		break;
	case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
		*value = 1024;
		break;
	case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
		*value = 1024;
		break;
	case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
		*value = 1;
		break;
	default:
		*value = 0;
	}
	return CUDA_SUCCESS;
}

#if CUDA_VERSION >= 13000
API CUresult cuDeviceGetHostAtomicCapabilities(unsigned *capabilities,
					       const CUatomicOperation *operations, unsigned count,
					       CUdevice device)
{
	(void)operations, (void)device;
	for (unsigned i = 0; i < count; i++)
		capabilities[i] = wrong("atomics") ? CU_ATOMIC_CAPABILITY_SCALAR_64 : 0;
	return CUDA_SUCCESS;
}
#endif

API CUresult cuDeviceCanAccessPeer(int *can, CUdevice a, CUdevice b)
{
	(void)a, (void)b;
	*can = 1;
	return CUDA_SUCCESS;
}

static int the_context;

API CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	(void)device;
	*context = (CUcontext)&the_context;
	return CUDA_SUCCESS;
}

API CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	(void)device;
	return CUDA_SUCCESS;
}

API CUresult cuCtxPushCurrent(CUcontext context)
{
	return context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

API CUresult cuCtxPopCurrent(CUcontext *context)
{
	*context = (CUcontext)&the_context;
	return CUDA_SUCCESS;
}

API CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned flags)
{
	(void)context, (void)flags;
	return CUDA_SUCCESS;
}

static size_t stack_limit = 1024;

API CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	if (limit == CU_LIMIT_STACK_SIZE)
		stack_limit = value;
	return CUDA_SUCCESS;
}

API CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	(void)limit;
	*value = stack_limit;
	return CUDA_SUCCESS;
}

API CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	if (memcmp(image, "\177ELF", 4) != 0)
		return CUDA_ERROR_INVALID_IMAGE;
	*module = calloc(1, sizeof(struct module));
	return CUDA_SUCCESS;
}

API CUresult cuModuleUnload(CUmodule module)
{
	free(module);
	return CUDA_SUCCESS;
}

API CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
	*function = (CUfunction)module;
	return strcmp(name, "loom_gpu_work") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

API CUresult cuModuleGetGlobal(CUdeviceptr *at, size_t *bytes, CUmodule module, const char *name)
{
	struct module *m = (struct module *)module;
	*at = (CUdeviceptr)(uintptr_t)&m->launch;
	*bytes = sizeof(m->launch);
	return strcmp(name, "loom_gpu") ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

API CUresult cuFuncGetAttribute(int *value, CUfunction_attribute which, CUfunction function)
{
	(void)function;
	*value = which == CU_FUNC_ATTRIBUTE_NUM_REGS ? 64 : 0;
	return CUDA_SUCCESS;
}

API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value)
{
	(void)function, (void)which, (void)value;
	return CUDA_SUCCESS;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function, int threads,
							 size_t shared)
{
	(void)function, (void)threads, (void)shared;
	*blocks = wrong("small") ? 1 : 4;
	return CUDA_SUCCESS;
}

API CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	(void)flags;
	*stream = calloc(1, sizeof(struct stream));
	return CUDA_SUCCESS;
}

API CUresult cuStreamDestroy(CUstream stream)
{
	free(stream);
	return CUDA_SUCCESS;
}

API CUresult cuStreamSynchronize(CUstream stream)
{
	(void)stream;
	return CUDA_SUCCESS;
}

API CUresult cuMemAlloc(CUdeviceptr *at, size_t bytes)
{
	*at = (CUdeviceptr)(uintptr_t)aligned_alloc(256, (bytes + 255) & ~(size_t)255);
	memset((void *)(uintptr_t)*at, 0xa5, bytes); /* device memory is not zero either */
	return CUDA_SUCCESS;
}

API CUresult cuMemFree(CUdeviceptr at)
{
	free((void *)(uintptr_t)at);
	return CUDA_SUCCESS;
}

API CUresult cuMemHostAlloc(void **at, size_t bytes, unsigned flags)
{
	(void)flags;
	*at = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
	return CUDA_SUCCESS;
}

API CUresult cuMemFreeHost(void *at)
{
	free(at);
	return CUDA_SUCCESS;
}

static void *registered[64];

API CUresult cuMemHostRegister(void *at, size_t bytes, unsigned flags)
{
	(void)bytes, (void)flags;
	for (int i = 0; i < 64; i++)
		if (registered[i] == at)
			return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	for (int i = 0; i < 64; i++)
		if (!registered[i]) {
			registered[i] = at;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

API CUresult cuMemHostUnregister(void *at)
{
	for (int i = 0; i < 64; i++)
		if (registered[i] == at) {
			registered[i] = NULL;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

API CUresult cuMemHostGetDevicePointer(CUdeviceptr *view, void *at, unsigned flags)
{
	(void)flags;
	*view = (CUdeviceptr)(uintptr_t)at;
	return CUDA_SUCCESS;
}

API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	(void)stream;
	memcpy((void *)(uintptr_t)to, from, bytes);
	return CUDA_SUCCESS;
}

API CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)stream;
	memcpy(to, (const void *)(uintptr_t)from, bytes);
	return CUDA_SUCCESS;
}

API CUresult cuMemsetD8Async(CUdeviceptr at, unsigned char value, size_t bytes, CUstream stream)
{
	(void)stream;
	memset((void *)(uintptr_t)at, value, bytes);
	return CUDA_SUCCESS;
}

API CUresult cuPointerGetAttribute(void *value, CUpointer_attribute which, CUdeviceptr at)
{
	(void)at;
	if (which == CU_POINTER_ATTRIBUTE_CONTEXT)
		*(CUcontext *)value = (CUcontext)&the_context;
	else
		*(int *)value = 0;
	return CUDA_SUCCESS;
}
