/* SPDX-License-Identifier: Apache-2.0 */
/* A sound workload, a sum of squares, with places for a fault.
 * A fixture defines NAME and one hook, the fault, before it includes this. */
#ifndef LOOM_BROKEN_WORKLOAD_H
#define LOOM_BROKEN_WORKLOAD_H

#ifndef MORE_TASKS /* tasks beyond those announced */
#define MORE_TASKS 0
#endif
#ifndef TAG /* the tag of task x */
#define TAG(x) 0
#endif
#ifndef WRONG /* when a result is wrong */
#define WRONG(sum, expect) (sum) != (expect)
#endif
#ifndef VERDICT /* what verify() says then */
#define VERDICT LOOM_EWRONG
#endif
#ifndef RESET /* init() of the sum of a worker */
#define RESET(sum) (sum) = 0
#endif
#ifndef COUNT /* how many tasks it announces */
#define COUNT(n) (n)
#endif
#ifndef SUM /* where a task adds */
#define SUM(c) ((struct b_sum *)(c)->own[LOOM_WORKLOAD])->sum
#endif

#include <gpuloom/plugin.h>
#include <gpuloom/workload.h>

#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>

/* The worker's block: nobody else writes there, so no atomic operation is needed. */
struct b_sum {
	uint64_t sum;
	uint64_t pad[7];
};

LOOM_FN void b_square(struct loom_ctx *c, const struct loom_task *t)
{
	if (c->lane == 0)
		SUM(c) += t->param[0] * t->param[0];
}

struct opts {
	uint32_t n;
};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct opts, n, LOOM_OPT_U32, "3000", "How many squares are summed: a task each.",
	     .min = 1, .max = 1000000),
    {0},
};

struct instance {
	const struct loom_host *host;
	const struct opts *opts; /* filled by the core, valid until destroy() */
};

static int create(const struct loom_host *host, const void *opts, void **self,
		  struct loom_error *err)
{
	struct instance *i = host->alloc(host, sizeof(*i));
	if (!i)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, NAME ": out of memory");
	i->host = host;
	i->opts = opts;
	*self = i;
	return 0;
}

static void destroy(void *self)
{
	struct instance *i = self;
	if (i)
		i->host->free(i->host, i);
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need,
		struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	need->worker = sizeof(struct b_sum);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	(void)self, (void)err;
	for (uint32_t w = 0; w < layout->workers; w++)
		RESET(((struct b_sum *)view->worker[w])->sum);
	return 0;
}

static uint64_t task_count(void *self, const struct loom_layout *layout)
{
	(void)layout;
	return COUNT(((const struct instance *)self)->opts->n);
}

static int tasks(void *self, const struct loom_layout *layout, const struct loom_view *view,
		 loom_ref global, struct loom_task *task, struct loom_error *err)
{
	const struct instance *i = self;
	(void)layout, (void)view, (void)global, (void)err;
	for (uint32_t x = 0; x < i->opts->n + MORE_TASKS; x++)
		task[x] = (struct loom_task){.tag = TAG(x), .param = {x + 1}};
	return 0;
}

/* The closed form is what the sum is compared with: a second way to the answer. */
static int verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		  struct loom_report *report, struct loom_error *err)
{
	const struct instance *i = self;
	uint64_t n = i->opts->n, expect = n * (n + 1) * (2 * n + 1) / 6, sum = 0;
	(void)report;
	for (uint32_t w = 0; w < layout->workers; w++)
		sum += ((const struct b_sum *)view->worker[w])->sum;
	if (WRONG(sum, expect))
		return LOOM_FAIL(i->host, err, VERDICT, NAME ": expected %llu, found %llu",
				 (unsigned long long)expect, (unsigned long long)sum);
	return 0;
}

static const struct loom_workload_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .destroy = destroy,
    .need = need,
    .init = init,
    .task_count = task_count,
    .tasks = tasks,
    .verify = verify,
};
static const struct loom_task_entry entries[] = {{NAME "_square", b_square}};
static const struct loom_workload_dev cpu = {.size = sizeof(cpu), .count = 1, .task = entries};
static const struct loom_device_code dev = {
    .size = sizeof(dev),
    .cpu = &cpu,
};

LOOM_PLUGIN_DEFINE(WORKLOAD, NAME, "0.1.0", "Apache-2.0", "the sum of squares, a task each",
		   .opts = rows, .opts_size = sizeof(struct opts), .ops = &ops, .dev = &dev)

#endif
