/* SPDX-License-Identifier: Apache-2.0 */
#include "allreduce.h"

/* algorithm = auto: bytes up to which oneshot is chosen. On CPUs lines that go to and fro cost the most, and twoshot has
 * fewer. Between GPUs it takes one way over the link and twice the bytes. */
#define ONESHOT_MOST 256u
#define ONESHOT_MOST_GPU (3u << 19) /* to all other ranks together */
#define PIECES 64u /* of a slice at most: each takes a post, a tag and an arrival word */

const char *const allreduce_algorithms[] = {"auto", "ring", "oneshot", "twoshot", "pull", NULL};

struct allreduce allreduce_shape(const struct loom_host *host, const struct loom_layout *layout, uint32_t algorithm,
				 uint64_t bytes, uint64_t piece)
{
	struct allreduce a = {.rank = net_rank(host), .ranks = net_ranks(host), .algorithm = algorithm};
	uint64_t parts = (uint64_t)a.ranks * layout->workers;
	a.slice = (bytes / sizeof(float) + parts - 1) / parts;
	if (algorithm != ALLREDUCE_RING)
		a.slice = (a.slice + ALLREDUCE_WIDE - 1) / ALLREDUCE_WIDE * ALLREDUCE_WIDE;
	a.floats = a.slice * parts;
	a.steps = 2 * (a.ranks - 1);
	a.piece = piece / sizeof(float);
	if (a.piece * PIECES < a.slice)
		a.piece = (a.slice + PIECES - 1) / PIECES;
	a.pieces = (uint32_t)((a.slice + a.piece - 1) / a.piece);
	a.tags = layout->workers * a.steps * a.pieces;
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

uint64_t allreduce_place(struct allreduce *a, const struct loom_layout *layout, uint64_t at, uint32_t first, uint32_t inputs,
			 uint64_t stride)
{
	uint64_t vector = net_line(a->floats * sizeof(float)), slots = slots_of(a, layout);
	uint64_t met = 2ull * a->ranks * layout->workers * sizeof(struct allreduce_met);
	int ring = a->algorithm == ALLREDUCE_RING;
	a->first = first;
	a->stride = inputs > 1 ? vector : stride;
	a->cycle = inputs > 1 ? inputs * vector : stride ? 64 * stride : 1;
	a->base_at = at;
	a->met_at = a->base_at + net_line(a->ranks * sizeof(uint64_t));
	a->input_at = a->met_at + (ring ? 0 : met);
	a->sum_at = a->input_at + (inputs > 1 ? inputs * vector : net_line(a->floats * sizeof(float) + 64 * stride));
	a->inbox_at = a->sum_at + (ring ? 0 : vector);
	return a->inbox_at + (slots > vector ? slots : vector);
}

void allreduce_init(const struct allreduce *a, const struct loom_layout *layout, void *all)
{
	if (a->algorithm == ALLREDUCE_RING)
		return;
	memset((char *)all + a->met_at, 0, a->input_at - a->met_at);
	memset((char *)all + a->sum_at, 0xff, a->inbox_at - a->sum_at); /* NaN: a sum that was not made shows */
	memset((char *)all + a->inbox_at, 0, slots_of(a, layout));
}

/* Vectors that rounds of a ring take in turn. */
static uint32_t inputs_of(const struct allreduce *a)
{
	return (uint32_t)(a->stride ? a->cycle / a->stride : 1);
}

/* The put, or the add of a chain, that sends a piece on, in all rounds that take that vector. */
static struct loom_trigger_post post_of(const struct allreduce *a, uint32_t workers, loom_ref global, uint32_t w,
					uint32_t step, uint32_t piece, uint32_t input)
{
	/* First half: running sums; then the chunk that got complete here, and those that the ranks before
	 * completed. */
	uint32_t half = a->ranks - 1, chunk = a->rank + 2 * a->ranks - step;
	uint64_t begin = piece * a->piece, vector = a->input_at + input * a->stride;
	uint64_t at = vector + (allreduce_slice(a, workers, chunk, w) + begin) * sizeof(float);
	uint64_t inbox = (((uint64_t)step * workers + w) * a->slice + begin) * sizeof(float);
	int sums = step < half, adds = sums && a->chain;
	uint32_t tag = allreduce_tag(a, w, step, piece), inputs = inputs_of(a);
	return (struct loom_trigger_post){
		.tag = a->chain && step ? LOOM_TAG_ARRIVAL(allreduce_tag(a, w, step - 1, piece)) : tag,
		.threshold = input + 1,
		.rearm = inputs > 1 ? inputs : 0,
		.op = adds ? LOOM_NET_ADD : LOOM_NET_PUT,
		.type = adds ? LOOM_NET_F32 : 0,
		.target = (a->rank + 1) % a->ranks,
		.local = global + at,
		.remote = global + (sums && !adds ? a->inbox_at + inbox : at),
		.bytes = (allreduce_piece_end(a, piece) - begin) * sizeof(float),
		.notify = tag};
}

static int post_all(const struct allreduce *a, uint32_t workers, loom_ref global, const struct loom_trigger *trigger,
		    struct net_poster *poster, struct loom_error *err)
{
	uint32_t inputs = inputs_of(a);
	int rc = 0;
	for (uint32_t input = 0; input < inputs; input++)
		for (uint32_t step = 0; step < a->steps; step++)
			for (uint32_t piece = 0; piece < a->pieces; piece++)
				for (uint32_t w = 0; w < workers && !rc; w++) {
					struct loom_trigger_post post = post_of(a, workers, global, w, step, piece, input);
					rc = poster ? net_poster_add(poster, &post, err) : net_post(trigger, &post, err);
				}
	return rc;
}

int allreduce_wire(struct allreduce *a, const struct loom_host *host, const struct loom_layout *layout,
		   const struct loom_view *view, loom_ref global, uint64_t bytes, const struct loom_trigger *trigger,
		   struct net_poster *poster, struct loom_error *err)
{
	int reaches = LOOM_HAS(trigger->ops, reach), rc = 0;
	uint64_t *base = (uint64_t *)((char *)view->global + a->base_at);
	if (a->algorithm == ALLREDUCE_AUTO)
		a->algorithm = a->chain || a->turn_at || !reaches ? ALLREDUCE_RING : fastest(a, layout);
	if (a->algorithm == ALLREDUCE_RING)
		return post_all(a, layout->workers, global, trigger, poster, err);
	if (!reaches)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "algorithm = %s needs a trigger whose workers store into other ranks: choose --set trigger.use=peer",
				 allreduce_algorithms[a->algorithm]);
	for (uint32_t r = 0; r < a->ranks && !rc; r++)
		if (r != a->rank)
			rc = trigger->ops->reach(trigger->self, r, global, bytes, &base[r], err);
	return rc;
}

/* Along the ring chunk c begins at rank c; else the order is that of the ranks. */
int allreduce_compare(const struct allreduce *a, const struct loom_host *host, const struct loom_layout *layout, const void *all,
		      uint64_t round, uint64_t turned, uint64_t of, struct loom_error *err)
{
	int ring = a->algorithm == ALLREDUCE_RING;
	const float *got = (const float *)((const char *)all + (ring ? a->input_at + round * a->stride % a->cycle : a->sum_at));
	uint64_t chunk = a->slice * layout->workers;
	for (uint64_t i = 0; i < a->floats; i++) {
		uint32_t first = ring ? (uint32_t)(i / chunk) : 0;
		float sum = allreduce_element((i + turned) % of, first);
		for (uint32_t k = 1; k < a->ranks; k++)
			sum = sum + allreduce_element((i + turned) % of, (first + k) % a->ranks);
		if (sum != got[i])
			return LOOM_FAIL(host, err, LOOM_EWRONG, "allreduce: element %llu on rank %u is %.9g instead of %.9g",
					 (unsigned long long)i, a->rank, (double)got[i], (double)sum);
	}
	return 0;
}
