/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce: the sum of all ranks' float vectors, exact to the last bit. Host half. */
#include "workload_allreduce.dev.h"
#include "poster.h"

#define PIECES 64u /* of a slice at most: each takes a post, a tag and an arrival word */

struct allreduce_opts {
	uint64_t bytes, piece;
	uint32_t order;
	uint8_t chain;
};

static const struct loom_opt allreduce_rows[] = {
	LOOM_OPT(struct allreduce_opts, bytes, LOOM_OPT_SIZE, "8MiB",
		 "Size of the vector, rounded up so that every worker of every rank has equal slices.",
		 .min = 4, .max = 1ull << 36),
	LOOM_OPT(struct allreduce_opts, piece, LOOM_OPT_SIZE, "4MiB",
		 "Each worker's slices are sent in pieces of so much, at most 64 of them. Pieces overlap sums "
		 "with transfers where cores are free for both; each costs an operation.", .min = 4,
		 .max = 1ull << 36),
	NET_ORDER_ROW(struct allreduce_opts, order),
	LOOM_OPT(struct allreduce_opts, chain, LOOM_OPT_BOOL, "no",
		 "Whether each arrival triggers the next step, with atomic adds of the network: workers only "
		 "fire the first. Pieces must then be as small as the provider's atomics."),
	{.name = NULL},
};

struct instance {
	struct workload workload;
	struct net_poster *poster;
};

static uint64_t line(uint64_t bytes)
{
	return (bytes + 63) & ~63ull;
}

static struct allreduce shape_of(const void *self, const struct loom_layout *layout)
{
	const struct workload *w = self;
	const struct allreduce_opts *o = w->opts;
	struct allreduce a = {.rank = net_rank(w->host), .ranks = net_ranks(w->host), .chain = o->chain};
	uint64_t parts = (uint64_t)a.ranks * layout->workers;
	a.slice = (o->bytes / sizeof(float) + parts - 1) / parts;
	a.floats = a.slice * parts;
	a.steps = 2 * (a.ranks - 1);
	a.piece = o->piece / sizeof(float);
	if (a.piece * PIECES < a.slice)
		a.piece = (a.slice + PIECES - 1) / PIECES;
	a.pieces = (uint32_t)((a.slice + a.piece - 1) / a.piece);
	a.vector_at = line(sizeof(a) + layout->workers * sizeof(struct net_turn));
	a.inbox_at = a.vector_at + line(a.floats * sizeof(float));
	return a;
}

static int allreduce_create(const struct loom_host *host, const void *opts, void **self,
			    struct loom_error *err)
{
	const struct allreduce_opts *o = opts;
	if (o->chain && o->order == NET_FIRE_FIRST)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "allreduce: with chain = yes arrivals fire most operations, which no host can wait "
				 "for: choose order = post-first or random");
	return workload_create(host, opts, sizeof(struct instance), self, err);
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
	memset(a + 1, 0, layout->workers * sizeof(struct net_turn));
	float *vector = (float *)((char *)a + a->vector_at);
	for (uint64_t i = 0; i < a->floats; i++)
		vector[i] = element(i, a->rank);
	return 0;
}

/* The put, or the add of a chain, that sends a piece on. */
static struct loom_trigger_post post_of(const struct allreduce *a, uint32_t workers, loom_ref global, uint32_t w,
					uint32_t step, uint32_t piece)
{
	/* First half: running sums; then the chunk that got complete here, and those that the ranks before
	 * completed. */
	uint32_t half = a->ranks - 1, chunk = a->rank + 2 * a->ranks - step;
	uint64_t begin = piece * a->piece;
	uint64_t at = (allreduce_slice(a, workers, chunk, w) + begin) * sizeof(float);
	uint64_t inbox = (((uint64_t)step * workers + w) * a->slice + begin) * sizeof(float);
	int sums = step < half, adds = sums && a->chain;
	uint32_t tag = allreduce_tag(a, w, step, piece);
	return (struct loom_trigger_post){
		.tag = a->chain && step ? LOOM_TAG_ARRIVAL(allreduce_tag(a, w, step - 1, piece)) : tag,
		.threshold = 1,
		.op = adds ? LOOM_NET_ADD : LOOM_NET_PUT,
		.type = adds ? LOOM_NET_F32 : 0,
		.target = (a->rank + 1) % a->ranks,
		.local = global + a->vector_at + at,
		.remote = global + (sums && !adds ? a->inbox_at + inbox : a->vector_at + at),
		.bytes = (allreduce_piece_end(a, piece) - begin) * sizeof(float),
		.notify = tag};
}

static int allreduce_wire(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  loom_ref global, const struct loom_trigger *trigger, struct loom_error *err)
{
	struct instance *i = self;
	const struct allreduce_opts *o = i->workload.opts;
	struct allreduce *a = view->global;
	int rc = net_poster_end(i->poster, err);
	i->poster = rc ? NULL :
			 net_poster_new(i->workload.host, trigger, o->order,
					layout->workers * a->steps * a->pieces, layout->workers, err);
	if (!i->poster)
		return rc ? rc : LOOM_ENOMEM;
	for (uint32_t step = 0; step < a->steps; step++)
		for (uint32_t piece = 0; piece < a->pieces; piece++)
			for (uint32_t w = 0; w < layout->workers && !rc; w++) {
				struct loom_trigger_post post = post_of(a, layout->workers, global, w, step, piece);
				rc = net_poster_add(i->poster, &post, err);
			}
	return rc ? rc : net_poster_start(i->poster, allreduce_turn(a, 0), err);
}

static void allreduce_stop(void *self)
{
	struct instance *i = self;
	net_poster_end(i->poster, NULL);
	i->poster = NULL;
}

static void allreduce_destroy(void *self)
{
	if (self)
		allreduce_stop(self);
	workload_destroy(self);
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
	.destroy = allreduce_destroy,
	.need = allreduce_need,
	.init = allreduce_init,
	.stop = allreduce_stop,
	.tasks = net_no_tasks,
	.wire = allreduce_wire,
	.verify = allreduce_verify,
};

NET_CODE(workload_allreduce);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_allreduce", "0.1.0", "Apache-2.0",
		   "Sum of all ranks' float vectors by a ring of triggered puts", .opts = allreduce_rows,
		   .opts_size = sizeof(struct allreduce_opts), .ops = &allreduce_ops,
		   .dev = &workload_allreduce_code)
