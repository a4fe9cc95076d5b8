/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the CUDA device share. */
#ifndef GPULOOM_DEVICE_CUDA_H
#define GPULOOM_DEVICE_CUDA_H

#include <gpuloom/device.h>

#include "../compose/gpu.dev.h"
#include "cache.h"
#include "compiler.h"
#include "driver.h"

enum { WORKER_BLOCK, WORKER_WARP };
enum { COMPILE_CACHED, COMPILE_ALWAYS };

struct options {
	int64_t gpu;
	uint32_t workers, lanes, worker, warps, max_registers, nesting, compile;
	const char *arch, *cache, *nvrtc;
};

/* What the model of GPU offers. */
struct limits {
	int major, minor;
	int multiprocessors;
	int blocks, threads, registers, shared; /* per multiprocessor */
	int shared_per_block, shared_reserved;
	int threads_per_block;
};

/* A compiled program on the GPU. */
struct kernel {
	CUmodule module; /* NULL: none */
	CUfunction function;
	CUdeviceptr launch; /* struct loom_gpu_launch */
	struct resources resources;
	int registers, shared; /* as the driver tells: per thread; static, per block */
};

/* Memory of another owner as this device sees it, or its own. */
struct mapping {
	struct mapping *next;
	const struct loom_memory *memory;
	CUdeviceptr view;
	CUdeviceptr base; /* own: what cuMemAlloc gave */
	int own;          /* made by mem_alloc */
	int registered;   /* by us: to be unregistered */
};

/* A kernel did not leave, so that what would wait for it must not be called; or the context is dead. */
enum { LOST_HUNG = 1, LOST_DEAD };

struct device {
	const struct loom_host *host;
	const struct options *options;
	char name[24]; /* "cuda:0" */
	struct driver cu;
	struct compiler compiler;
	CUdevice gpu;
	CUcontext context;
	CUstream work, copy; /* non-blocking: neither waits for the other */
	struct limits limits;
	char arch[16]; /* "sm_90" */
	int node;      /* NUMA */
	uint32_t workers, lanes, per_block;
	uint32_t bound;       /* blocks per multiprocessor that the compiler must let fit ... */
	uint32_t residency;   /* ... and those that do */
	uint32_t local_bytes; /* of shared memory that a worker may have */
	struct kernel kernel[LOOM_ENTRY_PROBE + 1]; /* by enum loom_entry */
	struct mapping *mappings;
	struct loom_gpu_words *words; /* host memory */
	CUdeviceptr words_view;
	CUdeviceptr gate; /* struct loom_gpu_gate, then one stage word per worker */
	struct launch *launch; /* NULL: none */
	int lost;              /* LOST_*; 0: usable */
};

/* One launch of persistent workers. */
struct launch {
	const struct loom_launch *what;
	struct loom_ctl *ctl; /* the host's view */
	uint32_t count;       /* workers of this launch */
	uint32_t phase;       /* the last that ready() or go() saw */
	uint64_t began_ns;    /* when go() was called */
	int stop_passed;      /* the stop word is in the device's copy */
};

/* plugin.c: every op begins with enter() and ends with leave(). 0 or an error. */
int enter(struct device *d, struct loom_error *err);
void leave(struct device *d);
/* Fails with what was tried and why it did not work. */
int cuda_fail(struct device *d, struct loom_error *err, CUresult rc, const char *what);

/* shape.c */
int shape_find(struct device *d, struct loom_error *err);
/* With the program, which may leave room for more. */
int shape_again(struct device *d, const struct kernel *k, uint64_t local_bytes, struct loom_error *err);
int device_shape(void *self, struct loom_device_shape *shape, struct loom_error *err);

/* program.c */
int device_build(void *self, const struct loom_program *program, struct loom_error *err);
int program_probe(struct device *d, struct loom_error *err);
void program_finish(struct device *d);

/* memory.c. Within enter() and leave(): memory_*. */
int device_mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory,
		     struct loom_error *err);
void device_mem_free(void *self, struct loom_memory *memory);
int device_mem_map(void *self, const struct loom_memory *memory, struct loom_error *err);
void device_mem_unmap(void *self, const struct loom_memory *memory);
int device_copy_in(void *self, const struct loom_memory *memory, uint64_t offset, const void *from,
		   uint64_t bytes, struct loom_error *err);
int device_copy_out(void *self, const struct loom_memory *memory, uint64_t offset, void *to,
		    uint64_t bytes, struct loom_error *err);
int memory_view(struct device *d, const struct loom_segment *segment, CUdeviceptr *view,
		struct loom_error *err);
int memory_write(struct device *d, CUdeviceptr to, const void *from, uint64_t bytes,
		 struct loom_error *err);
int memory_read(struct device *d, void *to, CUdeviceptr from, uint64_t bytes,
		struct loom_error *err);

/* launch.c */
int device_launch(void *self, const struct loom_launch *what, struct loom_error *err);

/* wait.c */
int device_ready(void *self, uint64_t timeout_ns, struct loom_error *err);
int device_go(void *self, struct loom_error *err);
int device_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err);
int device_retire(void *self, uint64_t timeout_ns, struct loom_error *err);

/* doctor.c */
void device_doctor(const struct loom_host *host, struct loom_doctor *out);

#endif
