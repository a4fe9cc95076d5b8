/* SPDX-License-Identifier: Apache-2.0 */
/* allreduce: the sum of all ranks' float vectors, exact to the last bit. Host half. */
#include "workload_allreduce.dev.h"
#include "poster.h"

/* algorithm = auto: bytes up to which oneshot is chosen. On CPUs lines that go to and fro cost the most, and twoshot has
 * fewer. Between GPUs it takes one way over the link and twice the bytes. */
#define ONESHOT_MOST 256u
#define ONESHOT_MOST_GPU (3u << 19) /* to all other ranks together */
#define PIECES 64u /* of a slice at most: each takes a post, a tag and an arrival word */

struct allreduce_opts {
	uint64_t bytes, piece, rounds;
	uint32_t order, algorithm;
	uint8_t chain;
};

static const char *const algorithms[] = {"auto", "ring", "oneshot", "twoshot", "pull", NULL};
static const struct loom_opt allreduce_rows[] = {
	LOOM_OPT(struct allreduce_opts, bytes, LOOM_OPT_SIZE, "8MiB",
		 "Size of the vector, rounded up so that every worker of every rank has equal slices.",
		 .min = 4, .max = 1ull << 36),
	LOOM_OPT(struct allreduce_opts, algorithm, LOOM_OPT_ENUM, "auto",
		 "ring: pieces go round by posted operations, under any trigger. oneshot: each rank stores its vector into "
		 "all others, each word with a mark; for small vectors. twoshot: reduce-scatter and gather; for large ones. "
		 "pull: each rank reads the vectors of all others; for large ones of two GPUs. "
		 "The last three need a trigger whose workers reach the memory of other ranks: peer. auto: with such a trigger "
		 "oneshot up to 256 bytes, on GPUs up to 1.5 MiB to all others; above, twoshot, or pull between two GPUs; without, "
		 "and where order or chain is set, ring.", .choices = algorithms),
	LOOM_OPT(struct allreduce_opts, rounds, LOOM_OPT_U64, "1",
		 "How often oneshot, twoshot and pull do it in one sample: round_ns is then what one costs inside a kernel.",
		 .min = 1, .max = 1e9),
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

static struct allreduce shape_of(const void *self, const struct loom_layout *layout)
{
	const struct workload *w = self;
	const struct allreduce_opts *o = w->opts;
	struct allreduce a = {.rank = net_rank(w->host), .ranks = net_ranks(w->host), .chain = o->chain,
			      .late = o->order != NET_POST_FIRST};
	uint64_t parts = (uint64_t)a.ranks * layout->workers;
	a.slice = (o->bytes / sizeof(float) + parts - 1) / parts;
	if (o->algorithm != ALLREDUCE_RING)
		a.slice = (a.slice + ALLREDUCE_WIDE - 1) / ALLREDUCE_WIDE * ALLREDUCE_WIDE;
	a.floats = a.slice * parts;
	a.steps = 2 * (a.ranks - 1);
	a.piece = o->piece / sizeof(float);
	if (a.piece * PIECES < a.slice)
		a.piece = (a.slice + PIECES - 1) / PIECES;
	a.pieces = (uint32_t)((a.slice + a.piece - 1) / a.piece);
	a.rounds = o->rounds;
	a.algorithm = o->algorithm;
	a.base_at = net_line(sizeof(a) + layout->workers * sizeof(struct net_turn));
	a.met_at = a.base_at + net_line(a.ranks * sizeof(uint64_t));
	a.vector_at = a.met_at + (a.algorithm == ALLREDUCE_RING ? 0 : 2ull * parts * sizeof(struct allreduce_met));
	a.sum_at = a.vector_at + net_line((a.floats + ALLREDUCE_TURNED) * sizeof(float));
	a.inbox_at = a.sum_at + (a.algorithm == ALLREDUCE_RING ? 0 : net_line(a.floats * sizeof(float)));
	return a;
}

/* What auto chooses where workers reach other ranks. */
static uint32_t fastest(const struct allreduce *a, const struct loom_layout *layout)
{
	uint64_t bytes = a->floats * sizeof(float);
	if (layout->device[0].kind != LOOM_ON_GPU)
		return bytes <= ONESHOT_MOST ? ALLREDUCE_ONESHOT : ALLREDUCE_TWOSHOT;
	return (a->ranks - 1) * bytes <= ONESHOT_MOST_GPU ? ALLREDUCE_ONESHOT :
	       a->ranks == 2				  ? ALLREDUCE_PULL :
							    ALLREDUCE_TWOSHOT;
}

/* Bytes of the slots of oneshot, where it may be chosen. */
static uint64_t slots_of(const struct allreduce *a, const struct loom_layout *layout)
{
	uint32_t algorithm = a->algorithm == ALLREDUCE_AUTO ? fastest(a, layout) : a->algorithm;
	return algorithm == ALLREDUCE_ONESHOT ? 2ull * a->ranks * a->floats * sizeof(uint64_t) : 0;
}

static int allreduce_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct allreduce_opts *o = opts;
	if (o->algorithm > ALLREDUCE_RING && (o->chain || o->order != NET_POST_FIRST))
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "%s: oneshot, twoshot and pull post nothing: choose algorithm = ring",
				 o->chain ? "chain = yes" : "order");
	if (o->rounds > 1 && o->algorithm == ALLREDUCE_RING)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "rounds = %llu: the ring goes round once in a sample: choose "
				 "algorithm = oneshot, twoshot or pull", (unsigned long long)o->rounds);
	if (o->chain && o->order == NET_FIRE_FIRST)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "order = fire-first: with chain = yes arrivals fire most operations, which no host can "
				 "wait for: choose order = post-first or random");
	return 0;
}

static int allreduce_create(const struct loom_host *host, const void *opts, void **self,
			    struct loom_error *err)
{
	return workload_create(host, opts, sizeof(struct net_instance), self, err);
}

static int allreduce_need(void *self, const struct loom_layout *layout, struct loom_need *need,
			  struct loom_error *err)
{
	struct allreduce a = shape_of(self, layout);
	(void)err;
	need->global_place = LOOM_PLACE_NET;
	uint64_t inbox = a.ranks * a.slice * layout->workers * sizeof(float), slots = slots_of(&a, layout);
	need->global = a.inbox_at + net_line(inbox > slots ? inbox : slots);
	need->worker = sizeof(struct allreduce_took);
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
	for (uint64_t i = 0; i < a->floats + ALLREDUCE_TURNED; i++)
		vector[i] = element(i % a->floats, a->rank);
	if (a->algorithm == ALLREDUCE_RING)
		return 0;
	memset((char *)a + a->met_at, 0, a->vector_at - a->met_at);
	memset((char *)a + a->sum_at, 0xff, a->inbox_at - a->sum_at); /* NaN: a sum that was not made shows */
	memset((char *)a + a->inbox_at, 0, slots_of(a, layout));
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

/* Chooses; where workers shall store into the other ranks, finds out where these lie. */
static int choose(const struct workload *w, const struct loom_layout *layout, struct allreduce *a, loom_ref global,
		  const struct loom_trigger *trigger, struct loom_error *err)
{
	const struct allreduce_opts *o = w->opts;
	int reaches = LOOM_HAS(trigger->ops, reach), posts = o->chain || o->order != NET_POST_FIRST || !reaches;
	struct loom_need need = {.size = sizeof(need)};
	if (a->algorithm == ALLREDUCE_AUTO)
		a->algorithm = posts ? ALLREDUCE_RING : fastest(a, layout);
	if (a->algorithm == ALLREDUCE_RING && o->rounds == 1)
		return 0;
	if (!reaches || a->algorithm == ALLREDUCE_RING)
		return LOOM_FAIL(w->host, err, LOOM_ENOTSUP,
				 "allreduce: %s needs a trigger whose workers store into other ranks: choose --set trigger.use=peer",
				 a->algorithm == ALLREDUCE_RING ? "rounds" : algorithms[a->algorithm]);
	int rc = allreduce_need((void *)w, layout, &need, err);
	uint64_t *base = (uint64_t *)((char *)a + a->base_at);
	for (uint32_t r = 0; r < a->ranks && !rc; r++)
		if (r != a->rank)
			rc = trigger->ops->reach(trigger->self, r, global, need.global, &base[r], err);
	return rc;
}

static int allreduce_wire(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  loom_ref global, const struct loom_trigger *trigger, struct loom_error *err)
{
	struct net_instance *i = self;
	const struct allreduce_opts *o = i->workload.opts;
	struct allreduce *a = view->global;
	int rc = choose(&i->workload, layout, a, global, trigger, err);
	if (rc || a->algorithm != ALLREDUCE_RING)
		return rc;
	rc = net_instance_wire(i, layout, trigger, o->order, layout->workers * a->steps * a->pieces, layout->workers, err);
	for (uint32_t step = 0; step < a->steps; step++)
		for (uint32_t piece = 0; piece < a->pieces; piece++)
			for (uint32_t w = 0; w < layout->workers && !rc; w++) {
				struct loom_trigger_post post = post_of(a, layout->workers, global, w, step, piece);
				rc = net_poster_add(i->poster, &post, err);
			}
	return rc ? rc : net_poster_start(i->poster, allreduce_turn(a, 0), err);
}

/* The same order on one processor: along the ring chunk c begins at rank c; else it is that of the ranks, of what the
 * last round turned to that place. */
static int allreduce_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			    struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const struct allreduce *a = view->global;
	int ring = a->algorithm == ALLREDUCE_RING;
	const float *got = (const float *)((const char *)a + (ring ? a->vector_at : a->sum_at));
	uint64_t chunk = a->slice * layout->workers, turned = ring ? 0 : allreduce_turned(a->rounds - 1);
	for (uint64_t i = 0; i < a->floats; i++) {
		uint32_t first = ring ? (uint32_t)(i / chunk) : 0;
		uint64_t of = (i + turned) % a->floats;
		float sum = element(of, first);
		for (uint32_t k = 1; k < a->ranks; k++)
			sum = sum + element(of, (first + k) % a->ranks);
		if (sum != got[i])
			return LOOM_FAIL(w->host, err, LOOM_EWRONG,
					 "allreduce: element %llu on rank %u is %.9g instead of %.9g",
					 (unsigned long long)i, a->rank, (double)got[i], (double)sum);
	}
	w->host->metric(w->host, report, "vector_bytes", "B", LOOM_BETTER_NONE,
			(double)a->rounds * (double)(a->floats * sizeof(float)));
	uint64_t took = 0;
	for (uint32_t k = 0; !ring && k < layout->workers; k++) {
		uint64_t ns = ((const struct allreduce_took *)view->worker[k])->ns;
		took = ns > took ? ns : took;
	}
	if (!ring)
		w->host->metric(w->host, report, "round_ns", "ns", LOOM_BETTER_LESS, (double)took / (double)a->rounds);
	return 0;
}

static const struct loom_workload_ops allreduce_ops = {
	.size = sizeof(struct loom_workload_ops),
	.create = allreduce_create,
	.destroy = net_instance_destroy,
	.need = allreduce_need,
	.init = allreduce_init,
	.stop = net_instance_stop,
	.tasks = workload_no_tasks,
	.wire = allreduce_wire,
	.verify = allreduce_verify,
	.explain = net_explain,
	.work = "vector_bytes",
};

NET_CODE(workload_allreduce);

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_allreduce", "0.1.0", "Apache-2.0",
		   "Sum of all ranks' float vectors, by a ring of triggered puts or by stores into other ranks", .opts = allreduce_rows,
		   .opts_size = sizeof(struct allreduce_opts), .check = allreduce_check, .ops = &allreduce_ops,
		   .dev = &workload_allreduce_code)
