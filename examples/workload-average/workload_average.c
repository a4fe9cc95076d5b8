/* SPDX-License-Identifier: Apache-2.0 */
/* workload_average: a workload outside of gpuloom's tree that averages vectors over ranks. See README.md. */
#include <gpuloom/collective/allreduce.h>
#include <math.h>

#include "workload_average.dev.h"

struct opts {
	uint64_t bytes, rounds, least;
	uint32_t algorithm, group;
};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct opts, bytes, LOOM_OPT_SIZE, "64KiB", "Size of a vector.", .min = 4, .max = 1 << 30),
    LOOM_OPT(struct opts, rounds, LOOM_OPT_U64, "10",
	     "Number of rounds; each moves a vector half of the way to the average.", .min = 1, .max = 100),
    LOOM_ALLREDUCE_ROWS(struct opts),
    {.name = NULL},
};
struct self {
	const struct loom_host *host;
	const struct opts *opts;
};

static int create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	struct self *s = host->alloc(host, sizeof(*s));
	if (!s)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "out of memory");
	*s = (struct self){host, opts};
	*self = s;
	return 0;
}

static void destroy(void *self)
{
	struct self *s = self;
	if (s)
		s->host->free(s->host, s);
}

/* Computes the head of the workload's block. *end is the size of the block in bytes. */
static struct average shape_of(const struct self *s, const struct loom_layout *layout, uint64_t *end)
{
	struct average v = {.rounds = s->opts->rounds, .mine_at = sizeof(v)};
	v.sum = loom_allreduce_shape(s->host, layout, &LOOM_ALLREDUCE_HOW(s->opts, s->opts->bytes));
	*end = loom_allreduce_place(&v.sum, layout, sizeof(v) + loom_net_line(v.sum.floats * sizeof(float)), 1, 2, 0);
	return v;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	(void)err;
	struct average v = shape_of(self, layout, &need->global);
	loom_allreduce_needs(&v.sum, layout, need);
	need->global_place = LOOM_PLACE_NET;
	return 0;
}

static int tasks(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		 struct loom_task *tasks, struct loom_error *err)
{
	(void)self, (void)layout, (void)view, (void)global, (void)tasks, (void)err;
	return 0; /* there are no tasks, because the workers run a kernel */
}

static float *vector_of(const struct loom_view *view)
{
	return (float *)((char *)view->global + ((struct average *)view->global)->mine_at);
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err)
{
	struct average *v = view->global;
	uint64_t end;
	(void)err;
	*v = shape_of(self, layout, &end);
	loom_allreduce_init(&v->sum, layout, v);
	for (uint64_t i = 0; i < v->sum.floats; i++)
		vector_of(view)[i] = (float)(v->sum.rank + i % 7);
	return 0;
}

static int wire(void *self, const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
		const struct loom_trigger *trigger, struct loom_error *err)
{
	struct self *s = self;
	uint64_t end;
	shape_of(s, layout, &end);
	return loom_allreduce_wire(&((struct average *)view->global)->sum, s->host, layout, view, global, end, trigger,
				   NULL, NULL, err);
}

static int verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
		  struct loom_report *report, struct loom_error *err)
{
	struct self *s = self;
	const struct average *v = view->global;
	double far = v->sum.rank - (v->sum.ranks - 1) / 2.0; /* initial distance from the average */
	(void)layout, (void)report;
	for (uint64_t i = 0; i < v->sum.floats; i++) {
		double want = (v->sum.ranks - 1) / 2.0 + (double)(i % 7) + ldexp(far, -(int)v->rounds),
		       got = vector_of(view)[i];
		if (!(fabs(got - want) < 1e-3))
			return LOOM_FAIL(s->host, err, LOOM_EWRONG, "average: element %llu is %g instead of %g",
					 (unsigned long long)i, got, want);
	}
	return 0;
}

static const struct loom_workload_ops ops = {.size = sizeof(ops), .create = create, .destroy = destroy, .need = need,
	.init = init, .tasks = tasks, .wire = wire, .verify = verify};
static const struct loom_workload_dev cpu = {.size = sizeof(cpu), .kernel = workload_average_kernel};
LOOM_DEVICE_CODE(dev, cpu, "workload_average.dev.h", LOOM_ALLREDUCE_FILES LOOM_CODE_FILE("workload_average.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_average", "1.0.0", "Apache-2.0",
		   "Vectors that come closer to the average of all ranks", .opts = rows,
		   .opts_size = sizeof(struct opts), .ops = &ops, .dev = &dev)
