/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sched_plan: chooses the costs of tasks and makes the table from these costs. */
#include <stdio.h>
#include <stdlib.h>

#include "sched_plan.dev.h"
#include "table.h"
#include "../sched_common/costs.h"
#include "../sched_common/pool.h"

static const char *const sources[] = {"auto", "declared", "measured", "equal", NULL};
static const char *const steals[] = {"tail", "none", NULL};
enum { STEAL_TAIL, STEAL_NONE };
enum { COSTS_AUTO, COSTS_DECLARED, COSTS_MEASURED, COSTS_EQUAL };

struct plan_options {
	struct sched_config cfg; /* the first field, because its option rows have offsets in struct sched_config */
	uint32_t costs, steal;
	const char *load, *save;
};

static const struct loom_opt sched_plan_rows[] = {
    LOOM_OPT(struct plan_options, costs, LOOM_OPT_ENUM, "auto",
	     "Where the costs of tasks come from. declared: the workload. measured: the first sample or warm-up, which runs "
	     "equal shares. equal: all tasks cost the same. auto: declared, if the workload does so, else measured.",
	     .choices = sources),
    LOOM_OPT(struct plan_options, load, LOOM_OPT_PATH, "",
	     "File with the costs of all initial tasks, in place of `costs`; as `save` writes it."),
    LOOM_OPT(struct plan_options, save, LOOM_OPT_PATH, "",
	     "File to write the costs of the table to, which are the plan: the table follows from them.",
	     .flags = LOOM_OPT_TRUST),
    LOOM_OPT(struct plan_options, steal, LOOM_OPT_ENUM, "tail",
	     "tail: a worker whose list is used up takes tasks from the lists of others. none: it does not.",
	     .choices = steals),
    SCHED_POOL_ROW,
    SCHED_OWN_ROWS,
    {.name = NULL},
};

struct sched_plan {
	const struct loom_host *host;
	const struct plan_options *o;
	struct costs file;
	struct plan_table table; /* of the current sample; `cost` is its input */
	const uint64_t *cost; /* [table.tasks]: cost of each task; NULL: no costs */
	uint64_t *measured;   /* [measured_tasks]: measured time of each task, in ns; NULL: not measured */
	uint64_t measured_tasks;
	int saved;
};

static int sched_plan_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct plan_options *o = opts;
	return sched_check_ring(host, "local_queue", o->cfg.local_queue, 2, 4096, err);
}

static void sched_plan_destroy(void *self)
{
	struct sched_plan *s = self;
	if (!s)
		return;
	costs_free(&s->file);
	plan_table_free(&s->table);
	free(s->measured);
	s->host->free(s->host, s);
}

static int sched_plan_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct sched_plan *s = host->alloc(host, sizeof(*s));
	if (!s)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sched_plan: out of memory");
	s->host = host;
	s->o = opts;
	int rc = *s->o->load ? costs_read(host, s->o->load, &s->file, err) : 0;
	if (rc) {
		sched_plan_destroy(s);
		return rc;
	}
	*self = s;
	return 0;
}

static int sched_plan_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct sched_plan *s = self;
	if (sched_has(layout, 0) && sched_has(layout, 1))
		return LOOM_FAIL(s->host, err, LOOM_ENOTSUP,
				 "sched_plan: a CPU and a GPU take different times for the same task, which a table of costs "
				 "does not tell: use devices of one kind, or the scheduler mgws");
	if (layout->initial_tasks > UINT32_MAX)
		return LOOM_FAIL(s->host, err, LOOM_ENOTSUP, "sched_plan: its table has at most 2^32 - 1 tasks");
	uint64_t set = PLAN_SET_BYTES(layout->workers);
	need->global = sched_pool_global_bytes(&s->o->cfg, layout) + (sched_noncoherent(layout) ? 0 : set);
	need->device = sched_pool_device_bytes(&s->o->cfg, layout) + (sched_noncoherent(layout) ? set : 0) +
		       sizeof(struct plan_site) + 2 * sizeof(uint32_t) * layout->initial_tasks;
	sched_own_need(&s->o->cfg, layout, sizeof(struct plan_block), need);
	return 0;
}

static int sched_plan_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
				struct loom_error *err)
{
	const struct sched_plan *s = self;
	return sched_own_constants(s->host, &s->o->cfg, layout, text, room, err);
}

/* ---- costs ----------------------------------------------------------------------------------- */

/* Finds the costs from which the table is made. *cost: NULL if all tasks count the same, or if costs are not measured yet.
 * *from: set to the name of the source of the costs, for the report. */
static int choose_costs(struct sched_plan *s, const struct loom_layout *layout, const uint64_t **cost, const char **from,
			struct loom_error *err)
{
	uint64_t n = layout->initial_tasks;
	const uint64_t *declared = LOOM_HAS(layout, costs) ? layout->costs : NULL;
	uint32_t costs = s->o->costs;
	*cost = NULL;
	*from = "equal";
	if (s->file.tasks) {
		if (s->file.tasks != n)
			return LOOM_FAIL(s->host, err, LOOM_EINVAL,
					 "sched_plan: %s has the costs of %llu tasks, and the job has %llu initial tasks",
					 s->o->load, (unsigned long long)s->file.tasks, (unsigned long long)n);
		*cost = s->file.cost;
		*from = "file";
	} else if (costs == COSTS_DECLARED && !declared) {
		return LOOM_FAIL(s->host, err, LOOM_EINVAL,
				 "sched_plan: costs = declared, but the workload declares none: set costs = measured");
	} else if (declared && (costs == COSTS_DECLARED || costs == COSTS_AUTO)) {
		*cost = declared;
		*from = "declared";
	} else if (costs != COSTS_EQUAL) {
		*cost = s->measured && s->measured_tasks == n ? s->measured : NULL;
		*from = "measured";
	}
	return 0;
}

static int is_to_measure(const struct sched_plan *s, const struct loom_layout *layout)
{
	int declared = LOOM_HAS(layout, costs) && layout->costs;
	return !s->cost && !s->file.tasks && layout->initial_tasks &&
	       (s->o->costs == COSTS_MEASURED || (s->o->costs == COSTS_AUTO && !declared));
}

/* Writes the costs to the file of the option `save`. Only the first call that has costs writes the file. */
static int save(struct sched_plan *s, const uint64_t *cost, uint64_t tasks, struct loom_error *err)
{
	if (s->saved || !cost || !*s->o->save)
		return 0;
	s->saved = 1;
	return costs_write(s->host, s->o->save, cost, tasks, err);
}

/* ---- samples --------------------------------------------------------------------------------- */

static int make_table(struct sched_plan *s, const struct loom_layout *layout, struct loom_error *err)
{
	const uint64_t *cost;
	const char *from;
	int rc = choose_costs(s, layout, &cost, &from, err);
	if (rc)
		return rc;
	if (s->table.order && s->table.tasks == layout->initial_tasks && s->cost == cost)
		return 0;
	plan_table_free(&s->table);
	s->cost = cost;
	if (plan_table_make(&s->table, layout->initial_tasks, cost, layout->workers))
		return LOOM_FAIL(s->host, err, LOOM_ENOMEM, "sched_plan: out of memory");
	LOOM_CHOICE(s->host, "scheduler.costs", "%s", from);
	return 0;
}

/* Fills the set of lists that may have tasks with the lists `first` to `first` + `lists` - 1, one per worker. */
static void fill_set(const struct sched_plan *s, struct sched_pool *pool, uint32_t first, uint32_t lists)
{
	uint64_t *set = (uint64_t *)((char *)pool + SCHED_POOL_BYTES(pool->room)), *level1 = set + PLAN_WORDS(lists);
	memset(set, 0, PLAN_SET_BYTES(lists));
	for (uint32_t i = 0; i < lists; i++) {
		if (s->table.first[first + i] == s->table.first[first + i + 1])
			continue;
		set[i / 64] |= 1ull << (i % 64);
		level1[i / 64 / 64] |= 1ull << (i / 64 % 64);
	}
}

static int sched_plan_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_error *err)
{
	struct sched_plan *s = self;
	struct sched_common *common = view->global;
	int rc = make_table(s, layout, err);
	if (rc)
		return rc;
	*common = (struct sched_common){.cfg = sched_own_config(&s->o->cfg, layout)};
	sched_own_init(&common->cfg, layout, view, sizeof(struct plan_block));
	sched_pool_init(&s->o->cfg, layout, view);
	int measures = is_to_measure(s, layout);
	uint64_t set = PLAN_SET_BYTES(layout->workers);
	for (uint32_t d = 0; d < layout->devices; d++) {
		struct sched_site *site = view->device[d];
		const struct loom_device_shape *shape = &layout->device[d];
		site->more_at += sched_noncoherent(layout) ? set : 0;
		struct plan_site *p = (struct plan_site *)((char *)site + site->more_at);
		uint32_t *order = (uint32_t *)(p + 1);
		*p = (struct plan_site){.tasks = s->table.tasks};
		memcpy(order, s->table.order, s->table.tasks * sizeof(*order));
		if (measures)
			memset(order + p->tasks, 0, p->tasks * sizeof(*order));
		if (sched_noncoherent(layout))
			fill_set(s, (struct sched_pool *)(site + 1), shape->first_worker, shape->workers);
	}
	if (!sched_noncoherent(layout))
		fill_set(s, (struct sched_pool *)(common + 1), 0, layout->workers);
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *shape = &layout->device[d];
		for (uint32_t w = shape->first_worker; w < shape->first_worker + shape->workers; w++) {
			struct plan_block *b = view->worker[w];
			b->next = b->begin = s->table.first[w];
			b->end = s->table.first[w + 1];
			b->steals = s->o->steal != STEAL_NONE;
			b->measures = (uint64_t)measures;
			b->victim = w - (sched_noncoherent(layout) ? shape->first_worker : 0);
		}
	}
	return save(s, s->cost, s->table.tasks, err);
}

/* Copies the measured times of all tasks from the devices. For each task, adds up the times of all devices: the device that ran
 * the task has its time, and all other devices have 0. */
static int keep_times(struct sched_plan *s, const struct loom_layout *layout, const struct loom_view *view,
		      struct loom_error *err)
{
	uint64_t n = layout->initial_tasks;
	free(s->measured);
	s->measured = calloc(n, sizeof(*s->measured));
	if (!s->measured)
		return LOOM_FAIL(s->host, err, LOOM_ENOMEM, "sched_plan: out of memory");
	s->measured_tasks = n;
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct sched_site *site = view->device[d];
		const struct plan_site *p = (const struct plan_site *)((const char *)site + site->more_at);
		const uint32_t *times = (const uint32_t *)(p + 1) + n;
		for (uint64_t i = 0; i < n; i++)
			s->measured[i] += times[i];
	}
	return 0;
}

static int sched_plan_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
			      struct loom_report *report, struct loom_error *err)
{
	struct sched_plan *s = self;
	int rc = sched_pool_collect(s->host, "sched_plan", layout, view, err);
	if (rc)
		return rc;
	int measured = is_to_measure(s, layout);
	if (s->cost) {
		double sum = 0;
		for (uint64_t i = 0; i < s->table.tasks; i++)
			sum += (double)s->cost[i];
		/* The sum of costs of the worker with the most, divided by an equal share of all costs. The best value
		 * is 1. */
		s->host->metric(s->host, report, "plan_imbalance", "", LOOM_BETTER_LESS,
				sum > 0 ? (double)s->table.longest * layout->workers / sum : 1);
	}
	rc = measured ? keep_times(s, layout, view, err) : 0;
	return rc ? rc : save(s, s->measured, s->measured_tasks, err);
}

static int sched_plan_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct sched_plan *s = self;
	return sched_own_explain(s->host, "sched_plan", &s->o->cfg, worker, code, info, err);
}

static const struct loom_sched_ops sched_plan_ops = {
    .size = sizeof(struct loom_sched_ops),
    .create = sched_plan_create,
    .destroy = sched_plan_destroy,
    .need = sched_plan_need,
    .init = sched_plan_init,
    .collect = sched_plan_collect,
    .explain = sched_plan_explain,
    .constants = sched_plan_constants,
};

static const struct loom_sched_dev sched_plan_cpu = {
    .size = sizeof(struct loom_sched_dev),
    .run = sched_plan_run,
    .spawn = sched_plan_spawn,
    .wanted = sched_plan_wanted,
};

LOOM_DEVICE_CODE(sched_plan_code, sched_plan_cpu, "sched_plan.dev.h",
		 LOOM_CODE_FILE("options.dev.h") LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h")
		     LOOM_CODE_FILE("queue.dev.h") LOOM_CODE_FILE("own.dev.h") LOOM_CODE_FILE("pool.dev.h")
			 LOOM_CODE_FILE("sched_plan.dev.h"));

LOOM_PLUGIN_DEFINE(SCHED, "sched_plan", "0.1.0", "Apache-2.0",
		   "A static table by the costs of tasks, then stealing of what is left", .opts = sched_plan_rows,
		   .opts_size = sizeof(struct plan_options), .check = sched_plan_check, .ops = &sched_plan_ops,
		   .dev = &sched_plan_code)
