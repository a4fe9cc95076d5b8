/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel that executes a collective in a stream of the program, and its parameter. */
#ifndef GPULOOM_COMPOSE_COLLECTIVE_H
#define GPULOOM_COMPOSE_COLLECTIVE_H

#ifdef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/collective.h>
#else
#include <gpuloom/comm.h>
#endif

struct loom_gpu_collective_order {
	struct loom_comm_view view;
	struct loom_comm_call call;
	uint64_t each; /* bytes of a block, a multiple of 16; computed on the host, because a division takes a GPU long */
};

#ifdef LOOM_DEVICE_COMPILE
/* The headers declare these functions, which a program with tasks defines. */
LOOM_FN void loom_task_run(struct loom_ctx *c, const struct loom_task *t) {}
LOOM_FN void loom_task_run_nested(struct loom_ctx *c, const struct loom_task *t) {}

/* The attribute lets the kernel index the parameter without a copy of it in local memory. */
#ifndef LOOM_GPU_CONSTANT
#define LOOM_GPU_CONSTANT
#endif

#undef LOOM_THREADS_LEAST
#define LOOM_THREADS_LEAST 64 /* divide() in gpu/collective.c */
LOOM_KERNEL loom_gpu_collective(const LOOM_GPU_CONSTANT struct loom_gpu_collective_order o)
{
	loom_comm_divided(&o.view, &o.call, LOOM_BLOCK_INDEX, o.each, LOOM_THREAD_INDEX, blockDim.x);
}
#endif

#endif
