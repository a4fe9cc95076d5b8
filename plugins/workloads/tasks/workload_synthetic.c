/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_synthetic: tasks of given length, variance, spawn degree, depth and affinity. */
#include "workload_synthetic.dev.h"
#include "../common/host.h"

struct synthetic_opts {
	uint64_t tasks;
	uint32_t length, spawn, depth;
	double variance, on_cpu, on_gpu;
};

static const struct loom_opt synthetic_rows[] = {
	LOOM_OPT(struct synthetic_opts, tasks, LOOM_OPT_U64, "1024", "Initial tasks.", .min = 1, .max = 1ull << 31),
	LOOM_OPT(struct synthetic_opts, length, LOOM_OPT_U32, "1000",
			 "Length of a task: steps of a multiplication and an addition, each of which depends on the "
			 "previous step. On a CPU a step takes about 1.5 ns.", .max = 1 << 30),
	LOOM_OPT(struct synthetic_opts, variance, LOOM_OPT_SHARE, "0",
			 "Variation of lengths: evenly drawn within this share of length, to either side.",
			 .to = 1),
	LOOM_OPT(struct synthetic_opts, spawn, LOOM_OPT_U32, "2",
			 "Tasks that a task spawns, unless it is of the last level.", .max = 1 << 20),
	LOOM_OPT(struct synthetic_opts, depth, LOOM_OPT_U32, "4", "Levels below the initial tasks.", .max = 1 << 20),
	LOOM_OPT(struct synthetic_opts, on_cpu, LOOM_OPT_SHARE, "0",
			 "Share of the tasks that only CPUs may run.", .to = 1),
	LOOM_OPT(struct synthetic_opts, on_gpu, LOOM_OPT_SHARE, "0",
			 "Share of the tasks that only GPUs may run.", .to = 1),
	{.name = NULL},
};

static const uint64_t most_tasks = 1ull << 40;

/* Returns the number of all tasks. If it exceeds most_tasks, it need not be exact. */
static uint64_t total_of(const struct synthetic_opts *o)
{
	uint64_t level = o->tasks, total = level;
	for (uint32_t i = 0; i < o->depth && level && total <= most_tasks; i++) {
		level *= o->spawn;
		total += level;
	}
	return total;
}

static int synthetic_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct synthetic_opts *o = opts;
	if (o->on_cpu + o->on_gpu > 1)
		return LOOM_REFUSE(host, err, "on_gpu",
				   "on_cpu and on_gpu are shares of the same tasks: %g and %g exceed 100 %%", o->on_cpu,
				   o->on_gpu);
	if (total_of(o) > most_tasks)
		return LOOM_REFUSE(host, err, "depth",
				   "depth = %u with spawn = %u and tasks = %llu makes more than 2^40 tasks", o->depth,
				   o->spawn, (unsigned long long)o->tasks);
	return 0;
}

static const struct synthetic_opts *synthetic_opts(const void *self)
{
	return ((const struct workload *)self)->opts;
}

static int synthetic_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	need->global = sizeof(struct synthetic);
	need->flags = LOOM_NEED_CONSTANT;
	need->worker = sizeof(struct synthetic_count);
	return 0;
}

static int synthetic_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  struct loom_error *err)
{
	(void)self, (void)err;
	for (uint32_t w = 0; w < layout->workers; w++)
		*(struct synthetic_count *)view->worker[w] = (struct synthetic_count){0};
	return 0;
}

static uint64_t synthetic_task_count(void *self, const struct loom_layout *layout)
{
	(void)layout;
	return synthetic_opts(self)->tasks;
}

static int synthetic_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
			   struct loom_task *tasks, struct loom_error *err)
{
	const struct synthetic_opts *o = synthetic_opts(self);
	struct synthetic *s = view->global;
	uint64_t off = (uint64_t)(o->variance * o->length);
	(void)global, (void)err;
	*s = (struct synthetic){.tasks = o->tasks,
				.shortest = o->length - off,
				.span = 2 * off,
				.cpu_below = (uint64_t)(o->on_cpu * 0x1p32),
				.gpu_below = (uint64_t)((o->on_cpu + o->on_gpu) * 0x1p32),
				.spawn = o->spawn,
				.depth = o->depth};
	for (uint32_t d = 0; d < layout->devices; d++)
		s->kind[d] = layout->device[d].kind == LOOM_ON_GPU ? LOOM_ON_GPU : LOOM_ON_CPU;
	for (uint64_t i = 0; i < o->tasks; i++)
		synthetic_task(s, i, 0, &tasks[i]);
	return 0;
}

static int synthetic_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			    struct loom_report *report, struct loom_error *err)
{
	const struct loom_host *host = ((struct workload *)self)->host;
	struct synthetic_count n = {0};
	/* Sums of all numbers, 0 + 1 + ..., and of their squares, 0 + 1 + 4 + ..., computed in 128 bits. */
	uint64_t all = total_of(synthetic_opts(self)), sum = (uint64_t)((unsigned __int128)all * (all - 1) / 2),
		 squares = (uint64_t)((unsigned __int128)all * (all - 1) / 2 * (2 * all - 1) / 3);
	(void)report;
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct synthetic_count *c = view->worker[w];
		n.tasks += c->tasks;
		n.sum += c->sum;
		n.squares += c->squares;
		n.misplaced += c->misplaced;
	}
	int rc = workload_sum(host, layout, (uint64_t *)&n, sizeof(n) / sizeof(uint64_t), err);
	if (rc)
		return rc;
	if (n.tasks != all || n.sum != sum || n.squares != squares)
		return LOOM_FAIL(
		    host, err, LOOM_EWRONG,
		    "synthetic: %llu tasks were expected, each once; %llu were run, and the sum of their numbers is "
		    "%llu in place of %llu",
		    (unsigned long long)all, (unsigned long long)n.tasks, (unsigned long long)n.sum,
		    (unsigned long long)sum);
	if (n.misplaced)
		return LOOM_FAIL(host, err, LOOM_EWRONG,
				 "synthetic: %llu tasks were run on a kind of device that they exclude",
				 (unsigned long long)n.misplaced);
	return 0;
}

WORKLOAD_OPS(synthetic, .create = workload_create_plain, .destroy = workload_destroy,
	     .task_count = synthetic_task_count, .tasks = synthetic_tasks, .work = "tasks");

static const struct loom_task_entry synthetic_entries[] = {{"workload_synthetic_task", workload_synthetic_task}};
WORKLOAD_CODE(workload_synthetic, synthetic_entries, LOOM_CODE_FILE("task.dev.h")
	      LOOM_CODE_FILE("workload_synthetic.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_synthetic", "0.1.0", "Apache-2.0",
		   "Tasks of given length, variance, spawn degree, depth and affinity", .opts = synthetic_rows,
		   .opts_size = sizeof(struct synthetic_opts), .caps = LOOM_CAP_WORKLOAD_IS_SHARED,
		   .check = synthetic_check, .ops = &synthetic_ops, .dev = &workload_synthetic_code)
