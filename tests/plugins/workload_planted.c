/* SPDX-License-Identifier: Apache-2.0 */
/* A job of a known amount of work, to plant differences: each worker turns a generator so many times. */
#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>

struct options {
	uint64_t turns;
	uint8_t wrong;
};
static const struct loom_opt rows[] = {
	LOOM_OPT(struct options, turns, LOOM_OPT_U64, "1000000", "How often each worker turns."),
	LOOM_OPT(struct options, wrong, LOOM_OPT_BOOL, "no", "Whether the third sample is wrong."),
	{.name = NULL},
};

struct instance {
	const struct loom_host *host;
	const struct options *options;
	unsigned samples;
};

/* On a line of its own: workers do not share one. */
struct own {
	uint64_t turns, state;
} __attribute__((aligned(64)));

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct instance *x = host->alloc(host, sizeof(*x));
	if (!x)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	*x = (struct instance){.host = host, .options = opts};
	*self = x;
	return 0;
}

static void destroy(void *self)
{
	struct instance *x = self;
	if (x)
		x->host->free(x->host, x);
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *n, struct loom_error *err)
{
	(void)self, (void)layout, (void)err;
	n->worker = sizeof(struct own);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	const struct instance *x = self;
	(void)err;
	for (uint32_t w = 0; w < layout->workers; w++)
		*(struct own *)view->worker[w] = (struct own){x->options->turns, w + 1};
	return 0;
}

static int tasks(void *self, const struct loom_layout *layout, const struct loom_view *view,
		 loom_ref global, struct loom_task *list, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)global, (void)list, (void)err;
	return 0;
}

static int verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		  struct loom_report *report, struct loom_error *err)
{
	struct instance *x = self;
	for (uint32_t w = 0; w < layout->workers; w++)
		if (((struct own *)view->worker[w])->turns)
			return LOOM_FAIL(x->host, err, LOOM_EWRONG, "worker %u did not turn to the end", w);
	if (x->options->wrong && ++x->samples == 3)
		return LOOM_FAIL(x->host, err, LOOM_EWRONG, "planted: a wrong result");
	x->host->metric(x->host, report, "turns", "", LOOM_BETTER_NONE, (double)x->options->turns);
	return 0;
}

static void turn(struct loom_ctx *c)
{
	struct own *o = c->own[LOOM_WORKLOAD];
	uint64_t state = o->state, left = o->turns;
	for (; left && (left % 4096 || !loom_stopped(c)); left--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
	}
	o->state = state;
	o->turns = left;
}

static const struct loom_workload_ops ops = {.size = sizeof(ops),
					     .create = create,
					     .destroy = destroy,
					     .need = need,
					     .init = init,
					     .tasks = tasks,
					     .verify = verify};
static const struct loom_workload_dev table = {.size = sizeof(table), .kernel = turn};
static const struct loom_device_code dev = {.size = sizeof(dev), .cpu = &table};

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_planted", "1.0.0", "Apache-2.0", "work of a known amount",
		   .opts = rows, .opts_size = sizeof(struct options), .ops = &ops, .dev = &dev)
