/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU back end's host code and its persistent kernel tell each other. Compiled into both. */
#ifndef GPULOOM_COMPOSE_GPU_H
#define GPULOOM_COMPOSE_GPU_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/ctx.h>
#include <gpuloom/device.h>
#endif

struct loom_probe;

/* What a worker does: one word each, for the message about those that hang. */
enum {
	LOOM_GPU_STARTING = 0,
	LOOM_GPU_PARKED,
	LOOM_GPU_READY,
	LOOM_GPU_FINISHED,
	LOOM_GPU_WORKING, /* and, added to it, enum loom_worker_state */
};

/* In the device's memory: where its workers meet. */
struct loom_gpu_gate {
	/* The host's words as worker 0 last saw them (phase, initial_tasks, sample), and the stop word
	 * as the host's thread or a failing worker last wrote it. */
	struct loom_ctl ctl;
	uint32_t arrived; /* workers awake for the sample to come */
	uint32_t pad0[15];
	uint32_t finished; /* workers done with it */
	uint32_t pad1[15];
};

/* In host memory: what the host watches. */
struct loom_gpu_words {
	uint32_t ready; /* the READY phase that all workers have reached */
	uint32_t pad0[15];
	uint32_t done; /* the GO phase that all workers have finished */
	uint32_t pad1;
	uint64_t began_ns, ended_ns; /* of that sample, on the device's clock */
	uint64_t pad2[5];
};

/* In constant memory: one launch. Pointers are the device's. */
struct loom_gpu_launch {
	struct loom_ctl *ctl; /* the host's words */
	struct loom_gpu_gate *gate;
	struct loom_gpu_words *words;
	uint32_t *stage; /* [count]: LOOM_GPU_* */
	struct loom_counters *counters; /* [workers]; NULL: none */
	const struct loom_task *initial;
	struct loom_probe *probe;
	void *global[LOOM_KINDS];
	void *on_device[LOOM_KINDS];
	const loom_ref *registry[LOOM_KINDS];
	uint32_t local_at[LOOM_KINDS]; /* in a worker's part of the shared memory; LOOM_GPU_NONE */
	uint32_t local_bytes;          /* of that part, a multiple of 16 */
	uint32_t device, devices;
	uint32_t workers;      /* of the stack */
	uint32_t first, count; /* of this launch */
	uint32_t tasks;
	uint32_t unused;
	uint64_t seed;
	uint64_t steps; /* with kernels = launched: of a sample */
	char *trace;          /* struct loom_trace, one per worker of the stack; NULL: nobody asks */
	uint64_t trace_bytes; /* from one worker's to the next */
	char *segment[LOOM_MAX_SEGMENTS];
};
#define LOOM_GPU_NONE 0xffffffffu

/* In front of the dynamic shared memory of a block on HIP, when a worker has several wavefronts. */
#define LOOM_HIP_LANES_BYTES 64

#endif
