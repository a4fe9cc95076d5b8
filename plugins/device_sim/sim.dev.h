/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a composed program for the simulator: how tasks run, and the entry of the program. */

extern "C" {
struct loom_sim *loom_sim; /* load() in program.c sets it */
uint64_t loom_sim_context_bytes = sizeof(struct loom_ctx);
}

struct loom_ctl *loom_gpu_host_ctl(void)
{
	return loom_sim->ctl;
}

LOOM_FN void loom_set_state(const struct loom_ctx *c, enum loom_worker_state what)
{
	c->counters->state = what;
}

LOOM_FN void loom_task_run(struct loom_ctx *c, const struct loom_task *t)
{
	if (loom_sim->ended)
		loom_sim->ended_early(loom_sim);
	loom_sim_compute(loom_sim->cost[LOOM_SIM_task]);
	loom_gpu_dispatch(c, t);
	if (LOOM_SIM_IS_WEAK)
#line 1 "the end of a task"
		loom_sim->memory->ran();
#line 1 "gpuloom"
}

LOOM_FN void loom_task_run_nested(struct loom_ctx *c, const struct loom_task *t)
{
	loom_task_run(c, t);
}

/* Runs a sample on one worker. */
extern "C" void loom_sim_work(struct loom_ctx *c)
{
	LOOM_GPU_RUN(c);
#ifdef LOOM_SELECTS_term
	if (LOOM_SIM_IS_WEAK && !c->ctl->stop)
#line 1 "the end of a worker, after done()"
		loom_sim->memory->left();
#endif
}
