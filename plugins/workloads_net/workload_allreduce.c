/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce: the sum of all ranks' float vectors, exact to the last bit. Host half. */
#include "workload_allreduce.dev.h"
#include "net.h"

struct allreduce_opts {
	uint64_t bytes;
};

static const struct loom_opt allreduce_rows[] = {
	LOOM_OPT(struct allreduce_opts, bytes, LOOM_OPT_SIZE, "8MiB",
		 "Size of the vector, rounded up so that every worker of every rank has equal slices.",
		 .min = 4, .max = 1ull << 36),
	{.name = NULL},
};

static uint64_t line(uint64_t bytes)
{
	return (bytes + 63) & ~63ull;
}

static struct allreduce shape_of(const void *self, const struct loom_layout *layout)
{
	const struct workload *w = self;
	const struct allreduce_opts *o = w->opts;
	struct allreduce a = {.rank = net_rank(w->host), .ranks = net_ranks(w->host)};
	uint64_t parts = (uint64_t)a.ranks * layout->workers;
	a.slice = (o->bytes / sizeof(float) + parts - 1) / parts;
	a.floats = a.slice * parts;
	a.steps = 2 * (a.ranks - 1);
	a.vector_at = line(sizeof(a));
	a.inbox_at = a.vector_at + line(a.floats * sizeof(float));
	return a;
}

static int allreduce_create(const struct loom_host *host, const void *opts, void **self,
			    struct loom_error *err)
{
	return workload_create(host, opts, sizeof(struct workload), self, err);
}

static int allreduce_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			  struct loom_error *err)
{
	struct allreduce a = shape_of(self, layout);
	(void)err;
	need->global = a.inbox_at + line((a.ranks - 1) * a.slice * layout->workers * sizeof(float));
	return 0;
}

/* Element i of rank r's vector: all bits of the mantissa count, so that the order of a sum shows. */
static float element(uint64_t i, uint32_t r)
{
	uint64_t x = (i * 0x9e3779b97f4a7c15ull) ^ ((r + 1) * 0xbf58476d1ce4e5b9ull);
	x ^= x >> 29;
	x *= 0x94d049bb133111ebull;
	return (float)(int32_t)(x >> 32) / 65536.0f;
}

static int allreduce_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  struct loom_error *err)
{
	struct allreduce *a = view->global;
	(void)err;
	*a = shape_of(self, layout);
	float *vector = (float *)((char *)a + a->vector_at);
	for (uint64_t i = 0; i < a->floats; i++)
		vector[i] = element(i, a->rank);
	return 0;
}

static int allreduce_wire(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  loom_ref global, const struct loom_trigger *trigger, struct loom_error *err)
{
	const struct allreduce *a = view->global;
	uint64_t bytes = a->slice * sizeof(float);
	uint32_t half = a->ranks - 1;
	int rc = 0;
	(void)self;
	for (uint32_t w = 0; w < layout->workers; w++)
		for (uint32_t step = 0; step < a->steps && !rc; step++) {
			/* First half: running sums; then the chunk that got complete here, and those
			 * that the ranks before completed. */
			uint32_t chunk = a->rank + 2 * a->ranks - step;
			uint64_t from = allreduce_slice(a, layout->workers, chunk, w) * sizeof(float);
			uint64_t inbox = ((uint64_t)step * layout->workers + w) * bytes;
			struct loom_trigger_post post = {
				.tag = allreduce_tag(a, w, step),
				.threshold = 1,
				.op = LOOM_NET_PUT,
				.target = (a->rank + 1) % a->ranks,
				.local = global + a->vector_at + from,
				.remote = global +
					  (step < half ? a->inbox_at + inbox : a->vector_at + from),
				.bytes = bytes,
				.notify = allreduce_tag(a, w, step)};
			rc = net_post(trigger, &post, err);
		}
	return rc;
}

/* Chunk c begins at rank c and is summed along the ring: the same order, on one processor. */
static int allreduce_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			    struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const struct allreduce *a = view->global;
	const float *vector = (const float *)((const char *)a + a->vector_at);
	uint64_t chunk = a->slice * layout->workers;
	for (uint64_t i = 0; i < a->floats; i++) {
		uint32_t first = (uint32_t)(i / chunk);
		float sum = element(i, first);
		for (uint32_t k = 1; k < a->ranks; k++)
			sum = sum + element(i, (first + k) % a->ranks);
		if (sum != vector[i])
			return LOOM_FAIL(w->host, err, LOOM_EWRONG,
					 "allreduce: element %llu on rank %u is %.9g instead of %.9g",
					 (unsigned long long)i, a->rank, (double)vector[i], (double)sum);
	}
	w->host->metric(w->host, report, "vector_bytes", "B", LOOM_BETTER_NONE,
			(double)(a->floats * sizeof(float)));
	return 0;
}

static const struct loom_workload_ops allreduce_ops = {
	.size = sizeof(struct loom_workload_ops),
	.create = allreduce_create,
	.destroy = workload_destroy,
	.need = allreduce_need,
	.init = allreduce_init,
	.tasks = net_no_tasks,
	.wire = allreduce_wire,
	.verify = allreduce_verify,
};

NET_CODE(workload_allreduce);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_allreduce", "0.1.0", "Apache-2.0",
		   "Sum of all ranks' float vectors by a ring of triggered puts", .opts = allreduce_rows,
		   .opts_size = sizeof(struct allreduce_opts), .ops = &allreduce_ops,
		   .dev = &workload_allreduce_code)
