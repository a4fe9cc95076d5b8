/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sched_plan: selects where the device finds the costs of tasks, and keeps measured costs. */
#include <stdio.h>
#include <stdlib.h>

#include "sched_plan.dev.h"
#include "../sched_common/costs.h"
#include "../sched_common/pool.h"

static const char *const sources[] = {"auto", "declared", "measured", "equal", NULL};
static const char *const steals[] = {"tail", "none", NULL};
enum { STEAL_TAIL, STEAL_NONE };
enum { COSTS_AUTO, COSTS_DECLARED, COSTS_MEASURED, COSTS_EQUAL };

struct plan_options {
	struct sched_config cfg; /* the first field, because its option rows have offsets in struct sched_config */
	uint32_t costs, steal;
	const char *save;
};

static const struct loom_opt sched_plan_rows[] = {
    LOOM_OPT(struct plan_options, costs, LOOM_OPT_ENUM, "auto",
	     "Where the costs of tasks come from. declared: the workload, or in a program the data descriptors of tasks; the device "
	     "reads them in each sample. measured: the first sample or warm-up, which runs equal shares. equal: all tasks cost the "
	     "same. auto: declared, if a workload does so or there is none, else measured.",
	     .choices = sources),
    LOOM_OPT(struct plan_options, save, LOOM_OPT_PATH, "", "costs = measured: a file to write these costs to.",
	     .flags = LOOM_OPT_TRUST),
    LOOM_OPT(struct plan_options, steal, LOOM_OPT_ENUM, "tail",
	     "tail: a worker whose list is used up takes tasks from the lists of others. none: it does not.",
	     .choices = steals),
    SCHED_POOL_ROW,
    SCHED_OWN_ROWS,
    {.name = NULL},
};

struct sched_plan {
	struct sched_own own;
	uint64_t *measured; /* [measured_tasks]: measured time of each task, in ns; NULL: not measured */
	uint64_t measured_tasks;
};

static int sched_plan_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct plan_options *o = opts;
	if (*o->save && o->costs != COSTS_MEASURED)
		return LOOM_REFUSE(host, err, "save", "save = %s: only measured costs are written: set costs = measured", o->save);
	return sched_own_check(host, opts, err);
}

static void sched_plan_destroy(void *self)
{
	struct sched_plan *s = self;
	if (s)
		free(s->measured);
	sched_own_destroy(self);
}

static const struct plan_options *opts_of(const struct sched_plan *s)
{
	return (const struct plan_options *)s->own.o;
}

/* ---- costs ----------------------------------------------------------------------------------- */

static int is_declared(const struct sched_plan *s, const struct loom_layout *layout)
{
	return opts_of(s)->costs == COSTS_DECLARED || (opts_of(s)->costs == COSTS_AUTO && LOOM_HAS(layout, costs));
}

/* Returns whether costs are measured, now or in an earlier sample. */
static int is_measured(const struct sched_plan *s, const struct loom_layout *layout)
{
	return opts_of(s)->costs == COSTS_MEASURED || (opts_of(s)->costs == COSTS_AUTO && !is_declared(s, layout));
}

static enum plan_source source_of(const struct sched_plan *s, const struct loom_layout *layout)
{
	if (is_declared(s, layout))
		return PLAN_DECLARED;
	return is_measured(s, layout) && s->measured && s->measured_tasks == layout->initial_tasks ? PLAN_ARRAY : PLAN_EQUAL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Returns the size of the plan's part before the slots of a pool: the set of lists, and the plan itself, unless devices are
 * non-coherent. */
static uint64_t gap_of(const struct loom_layout *layout)
{
	return PLAN_SET_BYTES(layout->workers) + (sched_noncoherent(layout) ? 0 : sizeof(struct plan));
}

static struct plan *plan_in(const struct loom_view *view, const struct loom_layout *layout)
{
	struct sched_common *common = view->global;
	const struct sched_pool *pool = (const struct sched_pool *)(common + 1);
	return (struct plan *)((char *)(common + 1) + (sched_noncoherent(layout)
							   ? 0
							   : SCHED_POOL_SLOTS_AT(pool->room) + PLAN_SET_BYTES(layout->workers)));
}

static int sched_plan_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct sched_plan *s = self;
	const int apart = sched_noncoherent(layout);
	uint64_t arrays = PLAN_ARRAYS_BYTES(layout->initial_tasks), scratch = 0;
	if (sched_has(layout, 0) && sched_has(layout, 1))
		return LOOM_FAIL(s->own.host, err, LOOM_ENOTSUP,
				 "sched_plan: a CPU and a GPU take different times for the same task, which a cost "
				 "does not tell: use devices of one kind, or the scheduler mgws");
	if (layout->initial_tasks > UINT32_MAX)
		return LOOM_FAIL(s->own.host, err, LOOM_ENOTSUP, "sched_plan: a plan has at most 2^32 - 1 tasks");
	if (opts_of(s)->costs == COSTS_DECLARED && !LOOM_HAS(layout, costs))
		return LOOM_FAIL(s->own.host, err, LOOM_EINVAL,
				 "sched_plan: costs = declared, but the workload declares none: set costs = measured");
	need->global = sched_pool_global_bytes(s->own.o, layout) + (apart ? sizeof(struct plan) : gap_of(layout)) + arrays;
	need->device = sched_pool_device_bytes(s->own.o, layout) + (apart ? gap_of(layout) : 0) +
		       (is_measured(s, layout) ? sizeof(uint32_t) * layout->initial_tasks : 0);
	sched_own_need(s->own.o, layout, sizeof(struct plan_block), need);
	for (uint32_t d = 0; d < layout->devices; d++)
		if (!PLAN_SCRATCH_FITS(layout->device[d].lanes, s->own.o->local_queue))
			scratch = PLAN_SCRATCH_BYTES(layout->device[d].lanes) > scratch ? PLAN_SCRATCH_BYTES(layout->device[d].lanes)
											: scratch;
	need->local = ((need->local + 15) & ~15ull) + sizeof(struct plan_shape) + scratch;
	if (is_measured(s, layout))
		return 0;
	need->flags |= LOOM_NEED_RESET;
	uint64_t pool = SCHED_POOL_SLOTS_AT(s->own.o->backlog) + gap_of(layout);
	need->reset_global.head = sizeof(struct sched_common) + (apart ? sizeof(struct plan) : pool);
	need->reset_device.head = sizeof(struct sched_site) + (apart ? pool : 0);
	need->reset_worker.head = sizeof(struct plan_block);
	return 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

static int sched_plan_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_error *err)
{
	static const char *const names[] = {"equal", "declared", "measured"};
	struct sched_plan *s = self;
	struct sched_common *common = view->global;
	const int apart = sched_noncoherent(layout);
	(void)err;
	*common = (struct sched_common){.cfg = sched_own_config(s->own.o, layout)};
	sched_own_init(&common->cfg, layout, view, sizeof(struct plan_block));
	sched_pool_init(s->own.o, layout, view, gap_of(layout));
	struct plan *p = plan_in(view, layout);
	enum plan_source source = source_of(s, layout);
	int measures = is_measured(s, layout) && source == PLAN_EQUAL && layout->initial_tasks;
	*p = (struct plan){.source = source,
			   .shape = {.measures = (uint32_t)measures, .steals = opts_of(s)->steal != STEAL_NONE},
			   .arrays_at = sizeof(*p) + (apart ? 0 : (uint64_t)s->own.o->backlog * sizeof(struct loom_task))};
	LOOM_CHOICE(s->own.host, "scheduler.costs", "%s", names[source]);
	for (uint64_t i = 0; source == PLAN_ARRAY && i < layout->initial_tasks; i++)
		plan_cost_of(p)[i] = s->measured[i] ? (uint32_t)s->measured[i] : 1;
	for (uint32_t d = 0; d < layout->devices; d++) {
		struct sched_site *site = view->device[d];
		if (measures)
			memset((char *)site + site->more_at, 0, layout->initial_tasks * sizeof(uint32_t));
		if (apart || !d)
			memset((char *)(apart ? (void *)(site + 1) : (void *)(common + 1)) + SCHED_POOL_SLOTS_AT(s->own.o->backlog),
			       0xff, PLAN_SET_BYTES(layout->workers));
		const struct loom_device_shape *shape = &layout->device[d];
		for (uint32_t w = shape->first_worker; w < shape->first_worker + shape->workers; w++) {
			struct plan_block *b = view->worker[w];
			b->next = 0;
			b->list = w - (apart ? shape->first_worker : 0);
		}
	}
	return 0;
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
		return LOOM_FAIL(s->own.host, err, LOOM_ENOMEM, "sched_plan: out of memory");
	s->measured_tasks = n;
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct sched_site *site = view->device[d];
		const uint32_t *times = (const uint32_t *)((const char *)site + site->more_at);
		for (uint64_t i = 0; i < n; i++)
			s->measured[i] += times[i];
	}
	return *opts_of(s)->save ? costs_write(s->own.host, opts_of(s)->save, s->measured, n, err) : 0;
}

/* Returns the sum of costs of the list with the most, divided by an equal share of all costs. The best value is 1. */
static double imbalance(struct plan *p, const struct loom_layout *layout)
{
	const uint32_t *cost = plan_cost_of(p), *order = cost + layout->initial_tasks;
	uint32_t solo = p->shape.solo, lists = layout->workers - solo;
	double sum = 0, most = 0;
	for (uint32_t w = 0; w < layout->workers; w++) {
		double own = 0;
		uint64_t at = w;
		for (uint64_t i = 0; at < p->shape.listed && !(w < solo && i); i++) {
			own += cost[order[at]];
			at = solo + (i + 1) * lists + (i % 2 ? w - solo : layout->workers - 1 - w);
		}
		sum += own;
		most = own > most ? own : most;
	}
	return sum > 0 ? most * layout->workers / sum : 1;
}

static int sched_plan_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
			      struct loom_report *report, struct loom_error *err)
{
	struct sched_plan *s = self;
	struct plan *p = plan_in(view, layout);
	int rc = sched_pool_collect(self, layout, view, err);
	if (rc)
		return rc;
	if (p->ready) {
		s->own.host->metric(s->own.host, report, "plan_ns", "ns", LOOM_BETTER_LESS, (double)p->plan_ns);
		s->own.host->metric(s->own.host, report, "plan_imbalance", "", LOOM_BETTER_LESS, imbalance(p, layout));
	}
	return p->shape.measures ? keep_times(s, layout, view, err) : 0;
}

SCHED_OWN_TABLES(sched_plan, struct sched_plan, sched_plan_destroy);

LOOM_DEVICE_CODE(sched_plan_code, sched_plan_cpu, "sched_plan.dev.h",
		 LOOM_CODE_FILE("options.dev.h") LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h")
		     LOOM_CODE_FILE("queue.dev.h") LOOM_CODE_FILE("own.dev.h") LOOM_CODE_FILE("pool.dev.h")
			 LOOM_CODE_FILE("sched_plan.dev.h"));

LOOM_PLUGIN_DEFINE(SCHED, "sched_plan", "0.1.0", "Apache-2.0",
		   "Lists by the costs of tasks, made on the device, then stealing of what is left", .opts = sched_plan_rows,
		   .opts_size = sizeof(struct plan_options), .check = sched_plan_check, .ops = &sched_plan_ops,
		   .dev = &sched_plan_code)
