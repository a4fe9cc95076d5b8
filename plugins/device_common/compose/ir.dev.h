/* SPDX-License-Identifier: Apache-2.0 */
/* Calls between a composed program and task functions that were compiled elsewhere (gpuloom/dev/ir.h). An optimising
 * linker inlines these calls. Included after kernel.dev.h. */

extern "C" LOOM_DEVICE int loom_ir1_sched_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	return LOOM_CALL(sched, spawn, c, task);
}

extern "C" LOOM_DEVICE void loom_ir1_barrier_lanes(struct loom_ctx *c)
{
	loom_barrier_lanes(c);
}

extern "C" LOOM_DEVICE uint64_t loom_ir1_from_lane0(struct loom_ctx *c, uint64_t value)
{
	return loom_from_lane0(c, value);
}

extern "C" LOOM_DEVICE struct loom_ctl *loom_ir1_host_ctl(void)
{
	return loom_gpu_host_ctl();
}

/* The task function gets a context in memory of its own, so that the context of the scheduler's loop stays in
 * registers. */
#define LOOM_GPU_IR(name)                                                                                    \
	extern "C" LOOM_DEVICE void loom_ir1_task_##name(struct loom_ctx *c, const struct loom_task *t);     \
	extern "C" LOOM_DEVICE uint32_t loom_ir1_tag_##name(void)                                            \
	{                                                                                                    \
		return LOOM_TAG_##name;                                                                      \
	}                                                                                                    \
	static LOOM_DEVICE struct loom_gpu_state loom_gpu_ir_##name(struct loom_gpu_state s, uint32_t depth, \
								    struct loom_task t)                      \
	{                                                                                                    \
		struct loom_ctx c;                                                                           \
		loom_gpu_task_context_at(&c, &s, depth);                                                     \
		loom_ir1_task_##name(&c, &t);                                                                \
		return loom_gpu_save(&c);                                                                    \
	}                                                                                                    \
	LOOM_FN void name(struct loom_ctx *c, const struct loom_task *t)                                     \
	{                                                                                                    \
		struct loom_gpu_state s = loom_gpu_ir_##name(loom_gpu_save(c), c->depth, *t);                \
		loom_gpu_restore(c, &s);                                                                     \
	}
