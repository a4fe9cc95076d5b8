/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_makespan: the time that a scheduler takes for tasks of given costs, compared with the
 * shortest possible time. */
#include <stdlib.h>

#include "ragged_lengths.h"
#include "workload_makespan.dev.h"
#include "../../sched_common/costs.h"
#include "../common/host.h"
#include "lib/align.h"

#define LAW_TEXT(NAME, text, what) text,
static const char *const laws[] = {RAGGED_LAWS(LAW_TEXT) NULL};

struct makespan_opts {
	const char *trace;
	uint32_t tasks, law;
	uint64_t mean;
};

static const struct loom_opt makespan_rows[] = {
	LOOM_OPT(struct makespan_opts, law, LOOM_OPT_ENUM, "zipf",
			 "Costs of the tasks, drawn by [run] seed as workload_ragged draws the lengths of sequences, in steps of a "
			 "hundredth of `mean`. trace: as the file `trace` says.", .choices = laws),
	LOOM_OPT(struct makespan_opts, tasks, LOOM_OPT_U32, "200", "Tasks, unless law = trace.", .min = 1, .max = 1 << 24),
	LOOM_OPT(struct makespan_opts, mean, LOOM_OPT_TIME, "20us", "Mean cost of a task.", .min = 1000, .max = 1e9),
	LOOM_OPT(struct makespan_opts, trace, LOOM_OPT_PATH, "",
			 "law = trace: a file with the costs of tasks, and which come before which: "
			 "{\"format\": \"gpuloom-costs\", \"tasks\": [{\"id\": 0, \"cost\": 1200}, {\"id\": 1, \"cost\": 300, \"after\": "
			 "[0]}]}, in ns. The option save of sched_plan writes such files."),
	{.name = NULL},
};

struct makespan_job {
	struct workload base;
	const struct makespan_opts *o;
	struct costs costs;
	/* drawn_for: seed of the costs, if `drawn` is set. initial: number of initial tasks. longest: ns of the
	 * longest chain. total: ns of all tasks. */
	uint64_t drawn_for, initial, longest, total;
	int drawn;
};

static int makespan_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct makespan_opts *o = opts;
	if (o->law == RAGGED_TRACE && !*o->trace)
		return LOOM_REFUSE(host, err, "trace", "law = trace: set trace = FILE");
	return 0;
}

static void makespan_destroy(void *self)
{
	struct makespan_job *job = self;
	if (job)
		costs_free(&job->costs);
	workload_destroy(self);
}

static int makespan_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	void *made = NULL;
	int rc = workload_create(host, opts, sizeof(struct makespan_job), &made, err);
	if (rc)
		return rc;
	struct makespan_job *job = made;
	job->o = opts;
	if (job->o->law == RAGGED_TRACE) {
		rc = costs_read(host, job->o->trace, &job->costs, err);
	} else {
		job->costs = (struct costs){.tasks = job->o->tasks,
					    .cost = calloc(job->o->tasks, sizeof(uint64_t)),
					    .first_after = calloc(job->o->tasks + 1ull, sizeof(uint64_t)),
					    .after = calloc(1, sizeof(uint32_t))};
		if (!job->costs.cost || !job->costs.first_after || !job->costs.after)
			rc = LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	}
	if (rc)
		makespan_destroy(job);
	else
		*self = job;
	return rc;
}

static int makespan_inputs(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct makespan_opts *o = opts;
	struct costs c = {0};
	int rc = o->law == RAGGED_TRACE ? costs_read(host, o->trace, &c, err) : 0;
	costs_free(&c);
	return rc;
}

static int draw(struct makespan_job *job, const struct loom_layout *layout, struct loom_error *err)
{
	struct costs *c = &job->costs;
	int64_t longest;
	if (job->drawn && job->drawn_for == layout->seed)
		return 0;
	if (job->o->law != RAGGED_TRACE) {
		uint32_t *length = calloc(c->tasks, sizeof(*length));
		if (!length)
			return LOOM_FAIL(job->base.host, err, LOOM_ENOMEM, "makespan: out of memory");
		ragged_draw(job->o->law, 100, layout->seed, (uint32_t)c->tasks, length);
		for (uint64_t i = 0; i < c->tasks; i++)
			c->cost[i] = length[i] * job->o->mean / 100;
		free(length);
	}
	longest = costs_critical_path(c);
	if (longest < 0)
		return LOOM_FAIL(job->base.host, err, LOOM_ENOMEM, "makespan: out of memory");
	job->longest = (uint64_t)longest;
	job->initial = job->total = 0;
	for (uint64_t i = 0; i < c->tasks; i++) {
		job->total += c->cost[i];
		job->initial += c->first_after[i] == c->first_after[i + 1];
	}
	job->drawn = 1;
	job->drawn_for = layout->seed;
	return 0;
}

static struct makespan head_of(const struct makespan_job *job, const struct loom_layout *layout, uint64_t *bytes)
{
	const struct costs *c = &job->costs;
	struct makespan m = {.tasks = c->tasks,
			     .noncoherent = LOOM_HAS(layout, noncoherent) && layout->noncoherent && layout->devices > 1};
	uint64_t at = sizeof(m) + layout->devices * sizeof(struct loom_onebit_lock);
#define PLACE(what, size) (m.what##_at = workload_place(&at, size))
	PLACE(cost, c->tasks * 8);
	PLACE(first_after, (c->tasks + 1) * 8);
	PLACE(after, c->first_after[c->tasks] * 4);
	PLACE(pending, c->tasks * 8);
	PLACE(ran, c->tasks * 8);
#undef PLACE
	*bytes = at;
	return m;
}

static int makespan_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct makespan_job *job = self;
	int rc = draw(job, layout, err);
	if (rc)
		return rc;
	struct makespan m = head_of(job, layout, &need->global);
	need->worker = sizeof(struct makespan_times);
	if (m.noncoherent) {
		need->global_place = LOOM_PLACE_HOST;
		need->device = LOOM_ONEBIT_LOCAL_BYTES;
		need->device_place = LOOM_PLACE_DEVICE;
	}
	return 0;
}

static uint64_t makespan_task_count(void *self, const struct loom_layout *layout)
{
	(void)layout;
	return ((const struct makespan_job *)self)->initial;
}

static int makespan_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
			  struct loom_task *tasks, struct loom_error *err)
{
	const struct makespan_job *job = self;
	const struct costs *c = &job->costs;
	struct makespan *m = view->global;
	uint64_t bytes, *first;
	(void)global, (void)err;
	*m = head_of(job, layout, &bytes);
	memcpy(MAKESPAN_AT(m, uint64_t, cost), c->cost, c->tasks * 8);
	/* job->costs lists the tasks before each task. A task that ends needs a list of the tasks after it. So the
	 * lists are inverted. Each `first` starts at the end of its list, and goes down with each task that is
	 * added. */
	first = MAKESPAN_AT(m, uint64_t, first_after);
	memset(first, 0, (c->tasks + 1) * 8);
	for (uint64_t e = 0; e < c->first_after[c->tasks]; e++)
		first[c->after[e]]++;
	for (uint64_t i = 0, sum = 0; i <= c->tasks; i++) {
		uint64_t n = first[i];
		first[i] = sum += n;
	}
	for (uint64_t i = c->tasks; i > 0; i--)
		for (uint64_t e = c->first_after[i - 1]; e < c->first_after[i]; e++)
			MAKESPAN_AT(m, uint32_t, after)[--first[c->after[e]]] = (uint32_t)(i - 1);
	for (uint64_t i = 0; i < c->tasks; i++)
		if (c->first_after[i] == c->first_after[i + 1])
			makespan_task(i, tasks++);
	return 0;
}

static int makespan_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_error *err)
{
	const struct makespan_job *job = self;
	const struct costs *c = &job->costs;
	struct makespan *m = view->global;
	(void)err;
	if (m->noncoherent) {
		memset(m + 1, 0, layout->devices * sizeof(struct loom_onebit_lock));
		for (uint32_t d = 0; d < layout->devices; d++)
			memset(view->device[d], 0, LOOM_ONEBIT_LOCAL_BYTES);
	}
	for (uint64_t i = 0; i < c->tasks; i++)
		MAKESPAN_AT(m, uint64_t, pending)[i] = c->first_after[i + 1] - c->first_after[i];
	memset(MAKESPAN_AT(m, uint64_t, ran), 0, c->tasks * 8);
	for (uint32_t w = 0; w < layout->workers; w++)
		*(struct makespan_times *)view->worker[w] = (struct makespan_times){0};
	return 0;
}

static int makespan_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_report *report, struct loom_error *err)
{
	const struct makespan_job *job = self;
	const struct loom_host *host = job->base.host;
	struct makespan *m = view->global;
	uint64_t first = ~0ull, last = 0, share = (job->total + layout->workers - 1) / layout->workers;
	uint64_t bound = share > job->longest ? share : job->longest;
	for (uint64_t i = 0; i < m->tasks; i++)
		if (MAKESPAN_AT(m, uint64_t, ran)[i] != 1)
			return LOOM_FAIL(host, err, LOOM_EWRONG, "makespan: task %llu was run %llu times",
					 (unsigned long long)i, (unsigned long long)MAKESPAN_AT(m, uint64_t, ran)[i]);
	for (uint32_t w = 0; w < layout->workers; w++) {
		const struct makespan_times *t = view->worker[w];
		first = t->first_ns && t->first_ns < first ? t->first_ns : first;
		last = t->last_ns > last ? t->last_ns : last;
	}
	host->metric(host, report, "makespan_ns", "ns", LOOM_BETTER_LESS, (double)(last - first));
	host->metric(host, report, "bound_ns", "ns", LOOM_BETTER_SAME, (double)bound);
	host->metric(host, report, "over_bound", "", LOOM_BETTER_LESS, (double)(last - first) / (double)(bound ? bound : 1));
	return 0;
}

static const struct loom_workload_ops makespan_ops = {
	.size = sizeof(struct loom_workload_ops),
	.create = makespan_create,
	.destroy = makespan_destroy,
	.need = makespan_need,
	.init = makespan_init,
	.task_count = makespan_task_count,
	.tasks = makespan_tasks,
	.verify = makespan_verify,
	.work = "tasks",
	.inputs = makespan_inputs,
};

static const struct loom_task_entry makespan_entries[] = {{"workload_makespan_task", workload_makespan_task}};
WORKLOAD_CODE(workload_makespan, makespan_entries, LOOM_CODE_FILE("task.dev.h") LOOM_CODE_FILE("workload_makespan.dev.h"),
	      .cost = workload_makespan_cost);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_makespan", "0.1.0", "Apache-2.0",
		   "Tasks that take the times of a trace of costs, beside the shortest possible time",
		   .opts = makespan_rows, .opts_size = sizeof(struct makespan_opts), .check = makespan_check,
		   .ops = &makespan_ops, .dev = &workload_makespan_code)
