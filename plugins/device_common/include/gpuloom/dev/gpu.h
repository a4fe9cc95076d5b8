/* SPDX-License-Identifier: Apache-2.0 */
/* The part that the device layers of all GPUs have in common. Each layer includes it. */
#ifndef GPULOOM_DEV_GPU_H
#define GPULOOM_DEV_GPU_H

#include <gpuloom/dev/ctx.h>

#ifdef LOOM_FN

#ifndef LOOM_YIELD
#define LOOM_YIELD() ((void)0)
#endif
#define LOOM_NO_UNROLL _Pragma("unroll 1")

/* State in shared memory of the block, for workers that consist of several warps. */
struct loom_lanes {
	uint64_t slot[2];
};

#ifdef LOOM_SLOTS_IN_TURN
/* Returns the value of lane 0 to all lanes. Two slots alternate, as in cpu.h. */
LOOM_FN uint64_t loom_from_lane0(struct loom_ctx *c, uint64_t value)
{
	if (LOOM_IS_SINGLE_LANE(c))
		return value;
	uint32_t turn = c->turn;
	c->turn = turn ^ 1;
	if (c->lane == 0)
		c->together->slot[turn] = value;
	loom_barrier_lanes(c);
	return c->together->slot[turn];
}
#endif

/* GPUs do not speculate stores, so stores after a branch follow this load. */
#ifndef loom_load_guard_dev
LOOM_FN uint64_t loom_load_guard_dev(const uint64_t *p)
{
	return loom_load_relaxed_dev(p);
}
#endif

/* A poll between short tasks loads words that others change. Such a load takes as long as several tasks, and the
 * processor stalls if it needs the value before it has arrived. So each poll uses the values that the poll before it
 * has loaded. loom_poll_due(c) returns 1 as soon as these values must have arrived. */
LOOM_FN void loom_poll_stop(struct loom_ctx *c)
{
	c->stop_seen = loom_load_relaxed_dev(&c->ctl->stop);
}

#define LOOM_OWN_STOPPED
LOOM_FN int loom_stopped(const struct loom_ctx *c)
{
	struct loom_ctx *own = (struct loom_ctx *)c;
	if (own->stop_seen)
		return 1;
	loom_poll_stop(own);
	return 0;
}

/* In a composed program, returns the control words in host memory. */
#ifdef LOOM_DEVICE_COMPILE
__device__ struct loom_ctl *loom_gpu_host_ctl(void);
#define LOOM_HOST_CTL(c) loom_gpu_host_ctl()
#endif

#ifdef LOOM_DEVICE_COMPILE
LOOM_FN void loom_set_state(const struct loom_ctx *c, enum loom_worker_state what);
#else
LOOM_FN void loom_set_state(const struct loom_ctx *c, enum loom_worker_state what)
{
	(void)c, (void)what; /* the composed program records the state */
}
#endif

/* LOOM_CALL(term, idle, c) is term_counter_idle(c), if term_counter is selected. */
#define LOOM_CALL(kind, op, ...) LOOM_PASTE(LOOM_POLICY_##kind, op)(__VA_ARGS__)
#define LOOM_PASTE(policy, op) LOOM_PASTE_(policy, op)
#define LOOM_PASTE_(policy, op) policy##_##op

/* The composition generates these functions. loom_task_run() is a switch over the tags, which is inlined;
 * loom_task_run_nested() calls that switch. */
#ifdef LOOM_DEVICE_COMPILE
LOOM_FN void loom_task_run(struct loom_ctx *c, const struct loom_task *t);
LOOM_FN void loom_task_run_nested(struct loom_ctx *c, const struct loom_task *t);
#else
__device__ void loom_task_run(struct loom_ctx *c, const struct loom_task *t);
__device__ void loom_task_run_nested(struct loom_ctx *c, const struct loom_task *t);
#endif

/* A LOOM_LEAF function has no context that must be copied, so a plain call suffices. */
#ifdef LOOM_DEVICE_COMPILE
#define LOOM_LEAF static __device__ __attribute__((noinline, unused))
#endif

/* All other code is inlined into the kernel. A function with LOOM_OUTLINED is called, so that it takes neither
 * registers of the kernel nor space in the instruction cache. The called function makes a context of its own. If it had
 * the address of the caller's context, the compiler would have to keep that context in memory, not in registers. */
#ifdef LOOM_DEVICE_COMPILE
template <auto fn, int together, typename... A> LOOM_FN uint64_t loom_gpu_outlined(struct loom_ctx *c, A... a);
#define LOOM_OUTLINED_COLLECTIVE(fn, ...) loom_gpu_outlined<fn, 1>(__VA_ARGS__)
#ifdef LOOM_SINGLE_LANE
#define LOOM_OUTLINED(fn, ...) loom_gpu_outlined<fn, 0>(__VA_ARGS__)
#else
#define LOOM_OUTLINED LOOM_OUTLINED_COLLECTIVE
#endif
#endif

#endif
#endif
