/* The end of a composed program for this device: how tasks run, and the entry of the program. */
static_assert(sizeof(struct loom_ctx) <= 4096, "schedulers add members to struct loom_ctx");
static thread_local struct loom_ctl *far_ctl;

struct loom_ctl *loom_gpu_host_ctl(void)
{
	return far_ctl;
}

LOOM_FN void loom_set_state(const struct loom_ctx *c, enum loom_worker_state what)
{
	loom_store_relaxed_sys(&c->counters->state, (uint64_t)what);
}

LOOM_FN void loom_task_run(struct loom_ctx *c, const struct loom_task *t)
{
	loom_gpu_dispatch(c, t);
}

LOOM_FN void loom_task_run_nested(struct loom_ctx *c, const struct loom_task *t)
{
	loom_gpu_dispatch(c, t);
}

/* Runs a sample on one worker. */
extern "C" void far_work(struct loom_ctx *c)
{
	far_ctl = c->ctl;
	LOOM_GPU_RUN(c);
}
