/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of allreduce: the sum of the float vectors of all ranks, exact to the last bit. */
#include "workload_allreduce.dev.h"
#include "../collective/allreduce.h"
#include "late_posts.h"

struct allreduce_opts {
	uint64_t bytes, piece, rounds, least;
	uint32_t order, algorithm, group;
	uint8_t chain, two_sided;
};

static const struct loom_opt allreduce_rows[] = {
	LOOM_OPT(struct allreduce_opts, bytes, LOOM_OPT_SIZE, "8MiB",
			 "Size of the vector, rounded up so that all workers of all ranks have equal slices.",
			 .min = 4, .max = 1ull << 36),
	LOOM_ALLREDUCE_ROWS(struct allreduce_opts),
	LOOM_OPT(struct allreduce_opts, rounds, LOOM_OPT_U64, "1",
			 "Executions of oneshot, twoshot or pull in one sample; round_ns is then the time of one in "
			 "a kernel.", .min = 1, .max = 1e9),
	LOOM_OPT(struct allreduce_opts, piece, LOOM_OPT_SIZE, "4MiB",
			 "Size of the pieces in which a worker's slices are sent, at most 64 of them. Pieces overlap "
			 "sums with transfers if both have cores; each takes an operation.",
			 .min = 4, .max = 1ull << 36),
	NET_ORDER_ROW(struct allreduce_opts, order),
	LOOM_NET_TWO_SIDED_ROW(struct allreduce_opts),
	LOOM_OPT(struct allreduce_opts, chain, LOOM_OPT_BOOL, "no",
			 "Whether each arrival triggers the next step, with atomic adds of the network, so that "
			 "workers fire only the first step. Pieces must then be as small as the provider's atomics."),
	{.name = NULL},
};

/* Bytes between the starts of the inputs of two rounds. Algorithms with posts have only one round. */
#define STRIDE (LOOM_ALLREDUCE_WIDE * sizeof(float))

static struct allreduce_job shape_of(const void *self, const struct loom_layout *layout, uint64_t *bytes)
{
	const struct workload *w = self;
	const struct allreduce_opts *o = w->opts;
	struct loom_allreduce_how how = LOOM_ALLREDUCE_HOW(o, o->bytes, .two_sided = o->two_sided);
	how.piece = o->piece;
	how.least = o->order == NET_POST_FIRST && !o->chain ? o->least : 0;
	how.algorithm = o->chain ? LOOM_ALLREDUCE_RING : o->algorithm;
	struct allreduce_job j = {
	    .vector = loom_allreduce_shape(w->host, layout, &how), .rounds = o->rounds};
	uint64_t late = sizeof(j) + layout->workers * sizeof(struct loom_net_late);
	j.vector.chain = o->chain;
	j.vector.late_at = o->order != NET_POST_FIRST ? sizeof(j) : 0;
	*bytes = loom_allreduce_place(&j.vector, layout, loom_net_line(late), 1, 1, o->rounds > 1 ? STRIDE : 0);
	return j;
}

static int allreduce_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct allreduce_opts *o = opts;
	if (o->algorithm > LOOM_ALLREDUCE_LEVELS && (o->chain || o->order != NET_POST_FIRST))
		return LOOM_REFUSE(host, err, o->chain ? "chain" : "order",
				 "%s: oneshot, twoshot and pull post nothing: choose algorithm = ring",
				 o->chain ? "chain = yes" : "order");
	if (o->two_sided && (o->algorithm > LOOM_ALLREDUCE_LEVELS || o->chain || o->order != NET_POST_FIRST))
		return LOOM_REFUSE(host, err, "two_sided",
				   "two_sided = yes: receives are posted first, for puts of ring, halving or levels: set chain = no, "
				   "order = post-first, and one of these algorithms");
	if (o->chain && o->algorithm > LOOM_ALLREDUCE_RING)
		return LOOM_REFUSE(host, err, "chain",
				 "chain = yes: additions of several ranks to one vector would come in any order: choose algorithm = ring");
	if (o->rounds > 1 && o->algorithm && o->algorithm <= LOOM_ALLREDUCE_LEVELS)
		return LOOM_REFUSE(host, err, "rounds", "rounds = %llu: posts are made once in a sample: choose "
				 "algorithm = oneshot, twoshot or pull", (unsigned long long)o->rounds);
	if (o->chain && o->order == NET_FIRE_FIRST)
		return LOOM_REFUSE(host, err, "order",
				 "order = fire-first: with chain = yes arrivals fire most operations, for which no host can "
				 "wait: choose order = post-first or random");
	return 0;
}

static int allreduce_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	return workload_create(host, opts, sizeof(struct late_workload), self, err);
}

static int allreduce_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	(void)err;
	need->global_place = LOOM_PLACE_NET;
	struct allreduce_job j = shape_of(self, layout, &need->global);
	loom_allreduce_needs(&j.vector, layout, need);
	need->worker = sizeof(struct allreduce_times);
	return 0;
}

static int allreduce_job_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			      struct loom_error *err)
{
	struct allreduce_job *j = view->global;
	uint64_t bytes;
	(void)err;
	*j = shape_of(self, layout, &bytes);
	memset(j + 1, 0, layout->workers * sizeof(struct loom_net_late));
	loom_allreduce_init(&j->vector, layout, j);
	float *vector = (float *)((char *)j + j->vector.input_at);
	uint64_t floats = j->vector.floats + (j->rounds > 1 ? 64 * LOOM_ALLREDUCE_WIDE : 0);
	for (uint64_t i = 0; i < floats; i++)
		vector[i] = loom_allreduce_element(i % j->vector.floats, j->vector.rank);
	return 0;
}

static int allreduce_job_wire(void *self, const struct loom_layout *layout, const struct loom_view *view,
			      loom_ref global, const struct loom_trigger *trigger, struct loom_error *err)
{
	struct late_workload *i = self;
	const struct allreduce_opts *o = i->workload.opts;
	struct allreduce_job *j = view->global;
	struct loom_allreduce *a = &j->vector;
	uint64_t bytes;
	shape_of(self, layout, &bytes);
	if (o->rounds > 1 && !LOOM_HAS(trigger->ops, reach))
		return LOOM_FAIL(
		    i->workload.host, err, LOOM_ENOTSUP,
		    "rounds needs a trigger whose workers store into other ranks: choose --set trigger.use=peer");
	int rc = late_workload_wire(i, layout, trigger, o->order, a->tags, layout->workers, err);
	if (!rc)
		rc = loom_allreduce_wire(a, i->workload.host, layout, view, global, bytes, trigger,
					 late_posts_add, i->poster, err);
	return rc ? rc : late_posts_start(i->poster, (struct loom_net_late *)(j + 1), err);
}

static int allreduce_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			    struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const struct allreduce_job *j = view->global;
	const struct loom_allreduce *a = &j->vector;
	uint64_t shifted = (j->rounds - 1) * a->stride % a->cycle / sizeof(float), took = 0;
	int rc = loom_allreduce_compare(a, w->host, layout, j, j->rounds - 1, shifted, a->floats, err);
	if (rc)
		return rc;
	w->host->metric(w->host, report, "vector_bytes", "B", LOOM_BETTER_NONE,
			(double)j->rounds * (double)(a->floats * sizeof(float)));
	for (uint32_t k = 0; k < layout->workers; k++) {
		uint64_t ns = ((const struct allreduce_times *)view->worker[k])->ns;
		took = ns > took ? ns : took;
	}
	if (!loom_allreduce_posts(a))
		w->host->metric(w->host, report, "round_ns", "ns", LOOM_BETTER_LESS, (double)took / (double)j->rounds);
	return 0;
}

static const struct loom_workload_ops allreduce_ops = {
	.size = sizeof(struct loom_workload_ops),
	.create = allreduce_create,
	.destroy = late_workload_destroy,
	.need = allreduce_need,
	.init = allreduce_job_init,
	.stop = late_workload_stop,
	.tasks = workload_no_tasks,
	.wire = allreduce_job_wire,
	.verify = allreduce_verify,
	.explain = net_explain,
	.work = "vector_bytes",
};

NET_CODE_IN(workload_allreduce, LOOM_ALLREDUCE_FILES LOOM_CODE_FILE("workload_allreduce.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_allreduce", "0.1.0", "Apache-2.0",
		   "Sum of all ranks' float vectors, by triggered puts or by stores into other ranks",
		   .opts = allreduce_rows, .opts_size = sizeof(struct allreduce_opts), .check = allreduce_check,
		   .ops = &allreduce_ops, .dev = &workload_allreduce_code)
