/* SPDX-License-Identifier: Apache-2.0 */
/* The task function of tests/test_embed_gpu.c, for CPUs and GPUs. t->data has one cache line of words for each device, or it is the
 * cost of the task, and param[2] has these words. */
enum { EMBED_COUNT, EMBED_TREE, EMBED_SPIN, EMBED_FAIL, EMBED_TRAP };

/* param[0] is one of the constants above. param[1] is the number of levels below this task for EMBED_TREE, and the
 * detail of the error for EMBED_FAIL. */
LOOM_FN void embed_task(struct loom_ctx *c, const struct loom_task *t)
{
	uint64_t *mine = (uint64_t *)loom_at(c, t->data.access == LOOM_COST ? t->param[2] : t->data.ref) + 8 * c->device;
	struct loom_task child = *t;
	child.tag = LOOM_TAG_embed_task;
	child.param[1] = t->param[1] - 1;
	for (uint32_t i = 0; t->param[0] == EMBED_TREE && t->param[1] && i < 2; i++)
		if (LOOM_CALL(sched, spawn, c, &child))
			return;
	while (t->param[0] == EMBED_SPIN && !loom_stopped(c))
		loom_pause(c);
#ifdef __CUDACC__
	if (t->param[0] == EMBED_TRAP)
		__trap();
#endif
	if (c->lane != 0)
		return;
	if (t->param[0] == EMBED_FAIL)
		loom_worker_fail(c, LOOM_EIO, t->param[1]);
	loom_fetch_add_relaxed_dev(mine, (uint64_t)1);
}
