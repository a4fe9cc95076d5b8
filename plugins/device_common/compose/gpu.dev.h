/* SPDX-License-Identifier: Apache-2.0 */
/* The interface between the host code of a GPU back end and its persistent kernel. Both compile this header. */
#ifndef GPULOOM_COMPOSE_GPU_H
#define GPULOOM_COMPOSE_GPU_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/ctx.h>
#include <gpuloom/device.h>
#endif

struct loom_probe;

/* The stage of a worker, for the message about a hang. Each worker has one word with its stage. */
enum {
	LOOM_GPU_STARTING = 0,
	LOOM_GPU_PARKED,
	LOOM_GPU_READY,
	LOOM_GPU_FINISHED,
	LOOM_GPU_WORKING, /* plus an enum loom_worker_state */
};

/* Words in device memory by which workers start and end samples. */
struct loom_gpu_gate {
	/* The kernels of graphs need a permit, because a program may launch a graph at any time. Upper half: the launch of which
	 * graphs may run, or 0. Lower half: the number of workers between loom_gpu_enter() and loom_gpu_leave(). It is one
	 * word, so that a worker counts itself and learns whether it may stay in one step. A new launch does not clear it. Model:
	 * tests/models/permit.pml. */
	uint64_t permit;
	uint64_t pad_permit[15];
	/* Copies of the host's words. Worker 0 copies phase, initial_tasks and sample when it loads them. The host or a
	 * failing worker stores `stop`. */
	struct loom_ctl ctl;
	uint32_t arrived; /* number of workers that are ready for the next sample */
	uint32_t pad0[15];
	uint32_t finished; /* number of workers that have finished the sample */
	uint32_t left;	   /* number of resident workers that are about to end */
	uint64_t tally; /* sum of LOOM_TALLY() over the finished workers */
	uint64_t ended, replayed, wrong; /* counts as in struct loom_enqueued */
	uint32_t settled; /* the last phase that all workers have reached: READY, or the GO phase of a sample that has ended */
	uint32_t clean;	  /* 1 at the start of a kernel: memory of the policies has the values that `reset` writes */
	uint32_t met;	  /* GO phase of the last quick sample before which all workers of a kernel have met */
	uint32_t pad2[3];
};

#define LOOM_GPU_ENDS 16u

/* Words in host memory that the host polls. */
struct loom_gpu_words {
	uint32_t ready; /* the READY phase that all workers have reached */
	uint32_t pad0[15];
	uint32_t done; /* the GO phase that all workers have finished */
	uint32_t pad1;
	uint64_t began_ns, ended_ns; /* start and end of the sample `done`, by the clock of the device */
	uint64_t tally;		     /* sum of LOOM_TALLY() over all workers of the device */
	uint64_t replayed, wrong, initial_tasks, pad2;
	uint64_t ended; /* as in struct loom_enqueued; the device stores it last */
	uint64_t pad3[7];
	/* For resident workers: the host writes the phase into the upper half. With GO it writes the number of initial
	 * tasks and LOOM_ORDER_* into the lower half. */
	uint64_t order;
	uint64_t pad4[7];
	/* Written by the device: LOOM_GPU_STAYS, LOOM_GPU_ASKS or LOOM_GPU_LEFT. With LEFT the upper half has the phase
	 * of the last order. */
	uint64_t leave;
	uint64_t pad5[7];
	/* The end of a sample with LOOM_ORDER_QUICK: `tally` and `done` in one store, which must be aligned to 16 bytes. */
	uint64_t quick_tally, quick_done;
	uint64_t pad6[6];
	/* The ends of the workers of a small sample, if there are no more than LOOM_GPU_ENDS of them: the result of small(),
	 * and the GO phase. They save the host a round trip between the workers. */
	struct loom_gpu_end {
		uint64_t tally, done;
	} end[LOOM_GPU_ENDS];
};

/* A value that is no phase. In a kept launch (LOOM_LAUNCH_KEPT), the gate has this value between two kernels. */
#define LOOM_GPU_NO_PHASE 3u

/* The parameter of the persistent kernel. If all fields are 0, the kernel waits for the phases of the host, until
 * RETIRE. In a kept launch (LOOM_LAUNCH_KEPT), the kernel runs one sample, and resident workers run further samples
 * after it. If `phase` is GO, the sample begins at once. If `phase` is READY, the sample begins when the host gives
 * GO. */
struct loom_gpu_order {
	uint32_t phase, kept; /* kept: enum loom_gpu_kept, or 0 */
	uint64_t initial_tasks;
	const struct loom_task *tasks; /* tasks that the workers copy to `initial`; NULL: none */
	uint64_t launch;	       /* LOOM_GPU_CAPTURED: the launch to which the graph belongs; never 0 */
#if !defined(LOOM_DEVICE_COMPILE) || defined(LOOM_GPU_QUICK)
	uint64_t flags; /* LOOM_ORDER_*, shifted by LOOM_GPU_FLAGS */
#endif
};
#define LOOM_GPU_FLAGS 16
enum loom_gpu_kept {
	LOOM_GPU_ONE_RUN = 1,
	/* The kernel is in a stream of the program. The host learns from the count `ended` that the kernel has
	 * ended. */
	LOOM_GPU_ENQUEUED,
	LOOM_GPU_CAPTURED,
	/* The workers stay. The host begins further samples by the word `order`. */
	LOOM_GPU_RESIDENT,
};
/* Values of the word `leave`. Worker 0 of resident workers stores them: loom_gpu_leaves(). */
enum { LOOM_GPU_STAYS, LOOM_GPU_ASKS, LOOM_GPU_LEFT };

/* The record of a launch, in constant memory. Pointers are addresses of the device. */
struct loom_gpu_launch {
	struct loom_ctl *ctl; /* the host's words, in host memory */
	struct loom_gpu_gate *gate;
	struct loom_gpu_words *words;
	uint32_t *stage; /* [count]: LOOM_GPU_* of each worker */
	struct loom_counters *counters; /* [workers]; NULL: there are no counters */
	const struct loom_task *initial;
	struct loom_probe *probe;
	void *global[LOOM_KINDS_MAX];
	void *on_device[LOOM_KINDS_MAX];
	const loom_ref *registry[LOOM_KINDS_MAX];
	uint32_t local_at[LOOM_KINDS_MAX]; /* offset of each kind's block in a worker's shared memory, or LOOM_GPU_NONE */
	uint32_t local_bytes;          /* size of a worker's shared memory in bytes, a multiple of 16 */
	uint32_t device, devices;
	uint32_t workers;      /* number of workers of the stack */
	uint32_t first, count; /* first worker of this launch, and number of its workers */
	uint32_t tasks;
	uint32_t small; /* 1: the scheduler can run small samples */
	uint64_t seed;
	uint64_t steps; /* number of steps of a sample, if each step is a launch */
	const struct loom_reset *reset; /* [resets] */
	uint64_t resets;
	uint64_t *flush, flush_bytes; /* memory that is overwritten before each sample, with LOOM_GPU_FLUSH */
	uint64_t idle_ns; /* time without an order after which resident workers leave */
	char *trace;          /* struct loom_trace of each worker of the stack; NULL: no trace */
	uint64_t trace_bytes; /* distance in bytes from one worker's trace to the next */
	char *segment[LOOM_MAX_SEGMENTS];
};
#define LOOM_GPU_NONE 0xffffffffu

/* Size in bytes of the words for barriers of lanes. On HIP these words are the first part of a block's dynamic shared
 * memory, if a worker has several wavefronts. */
#define LOOM_HIP_LANES_BYTES 64

#endif
