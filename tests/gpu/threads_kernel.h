/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of a program that runs on threads (threads.h). fake_rtc.h includes it in place of kernel.dev.h or
 * collective.dev.h, which it includes itself. It calls the driver before and after each sample. */
#define THREADS_SHARED 65536 /* shared memory of a block; the attributes of the fake GPUs say the same */

#ifdef LOOM_GPU_KINDS
#include <gpuloom/dev/probe.h>
extern "C" {
extern struct loom_gpu_launch loom_gpu;
}

/* A task that ends is progress, too. */
LOOM_FN void threads_dispatch(struct loom_ctx *c, const struct loom_task *t)
{
	loom_gpu_dispatch(c, t);
	block->quiet = 0;
}
#define loom_gpu_dispatch threads_dispatch

LOOM_FN void threads_end(const struct loom_ctx *c, int small)
{
	if (c->worker == c->first && c->lane == 0)
		block->end(small, loom_gpu.probe, loom_gpu.probe && c->device == loom_gpu.probe->b);
}

#ifdef LOOM_GPU_STEP
LOOM_FN void threads_step(struct loom_ctx *c, uint64_t step)
{
	block->begin(block, c->worker - c->first);
	LOOM_GPU_STEP(c, step);
}
#undef LOOM_GPU_STEP
#define LOOM_GPU_STEP threads_step
#else
LOOM_FN void threads_run(struct loom_ctx *c)
{
	block->begin(block, c->worker - c->first);
	LOOM_GPU_RUN(c);
	threads_end(c, 0);
}
#undef LOOM_GPU_RUN
#define LOOM_GPU_RUN threads_run
#if defined(LOOM_GPU_SMALL) && defined(LOOM_GPU_QUICK)
LOOM_FN uint64_t threads_small(struct loom_ctx *c, uint32_t go, uint32_t tasks, const void *initial)
{
	block->begin(block, c->worker - c->first);
	uint64_t small = LOOM_GPU_SMALL(c, go, tasks, initial);
	if (small)
		threads_end(c, 1);
	return small;
}
#undef LOOM_GPU_SMALL
#define LOOM_GPU_SMALL threads_small
#endif
#endif

#include "kernel.dev.h"

#ifdef LOOM_GPU_STEP
typedef uint64_t threads_parameter;
#else
typedef struct loom_gpu_order threads_parameter;
#endif
#define THREADS_KERNEL loom_gpu_work
#define THREADS_RECORD &loom_gpu, sizeof(loom_gpu)
#else
#include "collective.dev.h"
typedef struct loom_gpu_collective_order threads_parameter;
#define THREADS_KERNEL loom_gpu_collective
#define THREADS_RECORD NULL, 0
#endif

/* The dynamic shared memory, under the name that the vendor's keywords have for it. */
#if defined(LOOM_HIP_WAVEFRONT)
__thread char loom_gpu_dynamic[THREADS_SHARED] __align__(16);
#else
__thread char loom_gpu_shared[THREADS_SHARED] __align__(16);
#endif

static void threads_main(struct block_view *view, const void *parameter)
{
	block = view;
	THREADS_KERNEL(*(const threads_parameter *)parameter);
}

#define THREADS_TEXT_(name) #name
#define THREADS_TEXT(name)  THREADS_TEXT_(name)
extern "C" {
extern const struct block_program block_program = {threads_main, THREADS_TEXT(THREADS_KERNEL),
						   sizeof(threads_parameter), THREADS_RECORD};
/* device_hip reads the number of registers and the stack from such a note. */
extern const char threads_note[] = "\xab.vgpr_count\x40\xbb.private_segment_fixed_size\xcd\x48";
}
