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
	uint32_t left;	   /* resident workers that are about to end */
	uint64_t tally; /* sum of LOOM_TALLY() of finished workers */
	uint64_t ended, replayed, wrong; /* struct loom_enqueued */
	uint32_t settled; /* the last phase that all workers have reached: READY, or the end after GO */
	uint32_t pad2[5];
};

/* Words in host memory that the host polls. */
struct loom_gpu_words {
	uint32_t ready; /* the READY phase that all workers have reached */
	uint32_t pad0[15];
	uint32_t done; /* the GO phase that all workers have finished */
	uint32_t pad1;
	uint64_t began_ns, ended_ns; /* start and end of the sample `done`, by the clock of the device */
	uint64_t tally;		     /* sum over all workers of the device */
	uint64_t replayed, wrong, initial_tasks, pad2;
	uint64_t ended; /* as in struct loom_enqueued; the device stores it last */
	uint64_t pad3[7];
	/* For resident workers. The host writes the phase into the upper half, and with GO the number of initial
	 * tasks into the lower half. */
	uint64_t order;
	uint64_t pad4[7];
	uint64_t leave; /* LOOM_GPU_STAYS ..., and in the upper half the phase of the last order; the device writes */
	uint64_t pad5[7];
};

/* In the gate between two kept samples: no phase. */
#define LOOM_GPU_NO_PHASE 3u

/* The parameter of the persistent kernel. Zeros: it waits for the phases of the host, until RETIRE. With LOOM_LAUNCH_KEPT it
 * runs one sample: for GO at once, for READY when GO has come. */
struct loom_gpu_order {
	uint32_t phase, kept; /* enum loom_gpu_kept */
	uint64_t initial_tasks;
	const struct loom_task *tasks; /* to be copied; NULL: none */
};
enum loom_gpu_kept {
	LOOM_GPU_ONE_RUN = 1,
	/* In a stream of the program: the host learns that it has ended from a count. */
	LOOM_GPU_ENQUEUED,
	LOOM_GPU_CAPTURED,
	/* The workers stay: the host begins further samples by the word `order`. */
	LOOM_GPU_RESIDENT,
};
/* What worker 0 of resident workers is about to do: loom_gpu_leaves(). */
enum { LOOM_GPU_STAYS, LOOM_GPU_ASKS, LOOM_GPU_LEFT };

/* In constant memory: the record of a launch. Pointers are addresses of the device. */
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
	uint64_t steps; /* number of steps of a sample, if kernels are launched */
	const struct loom_reset *reset; /* [resets] */
	uint64_t resets;
	uint64_t idle_ns; /* resident workers leave after this time without an order */
	char *trace;          /* [workers of the stack] struct loom_trace; NULL: no trace */
	uint64_t trace_bytes; /* distance from one worker's trace to the next */
	char *segment[LOOM_MAX_SEGMENTS];
};
#define LOOM_GPU_NONE 0xffffffffu

/* On HIP, if a worker has several wavefronts: bytes at the start of the dynamic shared memory of a block. */
#define LOOM_HIP_LANES_BYTES 64

#endif
