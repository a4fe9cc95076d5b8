/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_knapsack. Makes items from a seed, and computes the answer by dynamic programming. */
#include <stdlib.h>

#include "workload_knapsack.dev.h"
#include "lib/random.h"
#include "../../shared/workload/host.h"

enum { FREE_VALUES, WEAK_VALUES, STRONG_VALUES, EQUAL_VALUES };
static const char *const correlations[] = {"none", "weak", "strong", "equal", NULL};

struct knapsack_opts {
	uint32_t items, range, correlation, split;
	uint64_t seed;
};

static const struct loom_opt knapsack_rows[] = {
	LOOM_OPT(struct knapsack_opts, items, LOOM_OPT_U32, "24",
			 "Number of items; half of their weight fits.", .min = 1, .max = KNAPSACK_ITEMS),
	LOOM_OPT(struct knapsack_opts, range, LOOM_OPT_U32, "1000",
			 "Weights are drawn from 1 to this.", .min = 1, .max = 100000),
	LOOM_OPT(struct knapsack_opts, correlation, LOOM_OPT_ENUM, "equal",
			 "How an item's value follows from its weight. none: drawn in the same way. weak: within a "
			 "tenth of range of it. strong: a tenth of range above it. equal: the same, and all even, with "
			 "an odd capacity. Then the bound is never reached, only items that do not fit are pruned, and "
			 "the time doubles with each item.", .choices = correlations),
	LOOM_OPT(struct knapsack_opts, split, LOOM_OPT_U32, "12",
			 "Nodes that have decided on fewer items make tasks of their branches; one task searches below "
			 "any other node.", .max = KNAPSACK_ITEMS),
	LOOM_OPT(struct knapsack_opts, seed, LOOM_OPT_U64, "1", "Seed of the items."),
	{.name = NULL},
};

struct knapsack_job {
	struct workload base;
	struct knapsack sack;
	uint64_t best;
};

struct item {
	uint32_t value, weight;
};

/* Orders items by descending value per weight. */
static int by_density(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	uint64_t left = (uint64_t)x->value * y->weight, right = (uint64_t)y->value * x->weight;
	return (left < right) - (left > right);
}

static void make_items(const struct knapsack_opts *o, struct knapsack *k)
{
	struct item item[KNAPSACK_ITEMS];
	uint64_t state = o->seed, all = 0, tenth = o->range / 10 + 1;
	for (uint32_t i = 0; i < o->items; i++) {
		uint64_t weight = 1 + loom__random(&state) % o->range, value = weight + tenth;
		if (o->correlation == EQUAL_VALUES)
			value = weight = (weight + 1) / 2 * 2;
		else if (o->correlation == WEAK_VALUES)
			value = weight + loom__random(&state) % (2 * tenth);
		else if (o->correlation == FREE_VALUES)
			value = 1 + loom__random(&state) % o->range;
		item[i] = (struct item){(uint32_t)value, (uint32_t)weight};
		all += weight;
	}
	qsort(item, o->items, sizeof(*item), by_density);
	*k = (struct knapsack){
	    .capacity = o->correlation == EQUAL_VALUES ? all / 2 | 1 : all / 2, .items = o->items, .split = o->split};
	for (uint32_t i = 0; i < o->items; i++) {
		k->value[i] = item[i].value;
		k->weight[i] = item[i].weight;
	}
}

/* Computes the best value, by dynamic programming: the best value for each capacity, item by item. */
static int solve(const struct loom_host *host, const struct knapsack *k, uint64_t *best, struct loom_error *err)
{
	uint64_t *value = host->alloc(host, (k->capacity + 1) * sizeof(*value));
	if (!value)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "knapsack: out of memory");
	for (uint32_t i = 0; i < k->items; i++)
		for (uint64_t capacity = k->capacity; capacity >= k->weight[i]; capacity--) {
			uint64_t with = value[capacity - k->weight[i]] + k->value[i];
			if (with > value[capacity])
				value[capacity] = with;
		}
	*best = value[k->capacity];
	host->free(host, value);
	return 0;
}

static int knapsack_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	int rc = workload_create(host, opts, sizeof(struct knapsack_job), self, err);
	if (rc)
		return rc;
	struct knapsack_job *j = *self;
	make_items(opts, &j->sack);
	rc = solve(host, &j->sack, &j->best, err);
	if (rc)
		workload_destroy(j);
	return rc;
}

static int knapsack_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	need->global = sizeof(struct knapsack);
	need->flags = LOOM_NEED_CONSTANT;
	need->device = sizeof(struct knapsack_best);
	need->worker = sizeof(struct knapsack_count);
	return 0;
}

static int knapsack_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_error *err)
{
	(void)self, (void)err;
	for (uint32_t d = 0; d < layout->devices; d++)
		*(struct knapsack_best *)view->device[d] = (struct knapsack_best){0};
	for (uint32_t w = 0; w < layout->workers; w++)
		*(struct knapsack_count *)view->worker[w] = (struct knapsack_count){0};
	return 0;
}

static int knapsack_tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
			  struct loom_task *tasks, struct loom_error *err)
{
	const struct knapsack_job *j = self;
	(void)layout, (void)global, (void)err;
	*(struct knapsack *)view->global = j->sack;
	tasks[0] = (struct loom_task){.param = {0, 0, j->sack.capacity}};
	return 0;
}

static int knapsack_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_report *report, struct loom_error *err)
{
	const struct knapsack_job *j = self;
	const struct loom_host *host = j->base.host;
	uint64_t nodes = 0, covered = 0, best = 0;
	for (uint32_t w = 0; w < layout->workers; w++) {
		nodes += ((const struct knapsack_count *)view->worker[w])->nodes;
		covered += ((const struct knapsack_count *)view->worker[w])->covered;
	}
	for (uint32_t d = 0; d < layout->devices; d++) {
		uint64_t value = ((const struct knapsack_best *)view->device[d])->value;
		best = value > best ? value : best;
	}
	if (covered != 1ull << j->sack.items)
		return LOOM_FAIL(host, err, LOOM_EWRONG, "knapsack: %llu of %llu choices were visited or pruned",
				 (unsigned long long)covered, 1ull << j->sack.items);
	if (best != j->best)
		return LOOM_FAIL(host, err, LOOM_EWRONG, "knapsack: the best value is %llu, found was %llu",
				 (unsigned long long)j->best, (unsigned long long)best);
	host->metric(host, report, "nodes", "", LOOM_BETTER_NONE, (double)nodes);
	host->metric(host, report, "best", "", LOOM_BETTER_SAME, (double)best);
	return 0;
}

WORKLOAD_OPS(knapsack, .create = knapsack_create, .destroy = workload_destroy, .task_count = workload_one_task,
	     .tasks = knapsack_tasks, .work = "nodes");

static const struct loom_task_entry knapsack_entries[] = {{"workload_knapsack_task", workload_knapsack_task}};
WORKLOAD_CODE(workload_knapsack, knapsack_entries, LOOM_CODE_FILE("task.dev.h")
	      LOOM_CODE_FILE("workload_knapsack.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_knapsack", "0.1.0", "Apache-2.0",
		   "The best choice of items for a knapsack, by branch and bound", .opts = knapsack_rows,
		   .opts_size = sizeof(struct knapsack_opts), .ops = &knapsack_ops, .dev = &workload_knapsack_code)
