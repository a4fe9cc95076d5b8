/* SPDX-License-Identifier: Apache-2.0 */
/* The part of ir.h for GPUs. The device layer of a GPU includes it first if LOOM_IR is defined. Composed programs define the
 * functions that IR calls (plugins/device_common/compose/ir.dev.h). */
#ifndef GPULOOM_DEV_GPU_IR_H
#define GPULOOM_DEV_GPU_IR_H

#define LOOM_POLICY_sched loom_ir1_sched
#define LOOM_NESTING_MAX 0u
#define LOOM_IR_LANES                                                                              \
	extern "C" __device__ void loom_ir1_barrier_lanes(struct loom_ctx *c);                     \
	extern "C" __device__ uint64_t loom_ir1_from_lane0(struct loom_ctx *c, uint64_t value);    \
	extern "C" __device__ struct loom_ctl *loom_ir1_host_ctl(void);                            \
	LOOM_FN void loom_barrier_lanes(struct loom_ctx *c) { loom_ir1_barrier_lanes(c); }         \
	LOOM_FN uint64_t loom_from_lane0(struct loom_ctx *c, uint64_t value)                       \
	{                                                                                          \
		return loom_ir1_from_lane0(c, value);                                              \
	}
#define LOOM_HOST_CTL(c) loom_ir1_host_ctl()

extern "C" __device__ int loom_ir1_sched_spawn(struct loom_ctx *c, const struct loom_task *task);

#define LOOM_IR_TAG(name) LOOM_IR_NAME(tag, name)()
#define LOOM_IR_TASK(name)                                                                         \
	LOOM_FN void name(struct loom_ctx *c, const struct loom_task *t);                          \
	extern "C" __device__ uint32_t LOOM_IR_NAME(tag, name)(void);                              \
	extern "C" __device__ void LOOM_IR_NAME(task, name)(struct loom_ctx *c, const struct loom_task *t) \
	{                                                                                          \
		name(c, t);                                                                        \
	}

#endif
