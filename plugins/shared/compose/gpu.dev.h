/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the host code of a GPU back end and its persistent kernel. Both compile this header. */
#ifndef GPULOOM_COMPOSE_GPU_H
#define GPULOOM_COMPOSE_GPU_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/ctx.h>
#include <gpuloom/device.h>
#endif

struct loom_probe;

/* The stage of a worker, in one word each, for the message about a hang. */
enum {
	LOOM_GPU_STARTING = 0,
	LOOM_GPU_PARKED,
	LOOM_GPU_READY,
	LOOM_GPU_FINISHED,
	LOOM_GPU_WORKING, /* added to enum loom_worker_state */
};

/* Words in device memory by which workers start and end samples. */
struct loom_gpu_gate {
	/* Copies of the host's words: phase, initial_tasks and sample as worker 0 last loaded them; stop as the host or
	 * a failing worker last stored it. */
	struct loom_ctl ctl;
	uint32_t arrived; /* workers that are ready for the next sample */
	uint32_t pad0[15];
	uint32_t finished; /* workers that have finished the sample */
	uint32_t pad1[15];
};

/* Words in host memory that the host polls. */
struct loom_gpu_words {
	uint32_t ready; /* the READY phase that all workers have reached */
	uint32_t pad0[15];
	uint32_t done; /* the GO phase that all workers have finished */
	uint32_t pad1;
	uint64_t began_ns, ended_ns; /* times of that sample by the device's clock */
	uint64_t pad2[5];
};

/* The record of a launch, in constant memory. Pointers are addresses of the device. */
struct loom_gpu_launch {
	struct loom_ctl *ctl; /* the host's words */
	struct loom_gpu_gate *gate;
	struct loom_gpu_words *words;
	uint32_t *stage; /* [count]: LOOM_GPU_* */
	struct loom_counters *counters; /* [workers]; NULL if there are none */
	const struct loom_task *initial;
	struct loom_probe *probe;
	void *global[LOOM_KINDS];
	void *on_device[LOOM_KINDS];
	const loom_ref *registry[LOOM_KINDS];
	uint32_t local_at[LOOM_KINDS]; /* offset in a worker's shared memory, or LOOM_GPU_NONE */
	uint32_t local_bytes;          /* size of that memory, a multiple of 16 */
	uint32_t device, devices;
	uint32_t workers;      /* workers of the stack */
	uint32_t first, count; /* workers of this launch */
	uint32_t tasks;
	uint32_t unused;
	uint64_t seed;
	uint64_t steps; /* with kernels = launched: steps of a sample */
	char *trace;          /* [workers of the stack] struct loom_trace; NULL: no trace */
	uint64_t trace_bytes; /* distance from one worker's trace to the next */
	char *segment[LOOM_MAX_SEGMENTS];
};
#define LOOM_GPU_NONE 0xffffffffu

/* On HIP, if a worker has several wavefronts: bytes at the start of the dynamic shared memory of a block. */
#define LOOM_HIP_LANES_BYTES 64

#endif
