/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of allreduce.dev.h, for workloads in this tree and elsewhere. Both halves are headers, so nothing is
 * linked. In need(), a workload calls loom_allreduce_shape(), loom_allreduce_place() and loom_allreduce_needs(). In
 * init() it calls loom_allreduce_init(), and in wire() loom_allreduce_wire(). Its device code begins with
 * LOOM_ALLREDUCE_FILES. Example: examples/workload-average. */
#ifndef LOOM_COLLECTIVE_ALLREDUCE_H
#define LOOM_COLLECTIVE_ALLREDUCE_H

#include <stdio.h>
#include <string.h>

#include "allreduce.dev.h"
#include "net.h"

/* An argument of LOOM_DEVICE_CODE(), before the workload's own file. The assembler finds these files by -Wa,-I and the
 * folder that contains `collective`: `pkg-config --variable=includedir gpuloom`/gpuloom. */
#define LOOM_ALLREDUCE_FILES LOOM_CODE_FILE("collective/net.dev.h") LOOM_CODE_FILE("collective/allreduce.dev.h")

/* Option rows for members of the workload's options: uint32_t `algorithm` and `group`, and uint64_t `least`. */
static const char *const loom_allreduce_algorithms[] = {"auto",    "ring",    "halving", "levels",
							"oneshot", "twoshot", "pull",    NULL};
#define LOOM_ALLREDUCE_ROWS(type)                                                                  \
	LOOM_OPT(type, algorithm, LOOM_OPT_ENUM, "auto", \
			 "With posted operations, under any trigger: ring: pieces go round. halving: recursive " \
			 "halving and doubling, for small vectors of many ranks. levels: a ring in each `group`, " \
			 "halving between groups. With loads and stores, under a trigger that can access the memory " \
			 "of other ranks (peer): oneshot: each rank stores its vector to all others, for small " \
			 "vectors. twoshot: reduce-scatter and allgather, for large vectors. pull: each rank reads " \
			 "the vectors of all others, for large vectors of two GPUs. auto: with such a trigger " \
			 "oneshot up to 256 bytes, on GPUs up to 1.5 MiB to all others; above that twoshot, or pull " \
			 "between two GPUs. Without such a trigger, and with late posts, halving for at least 4 " \
			 "ranks and at most 16 KiB a rank, else ring; with chained posts ring.", \
			 .choices = loom_allreduce_algorithms, .section = "workload.collective"), \
	LOOM_OPT(type, group, LOOM_OPT_U32, "0", \
			 "algorithm = levels: number of consecutive ranks that are summed first, such as those of a " \
			 "host. It must divide the number of ranks.", \
			 .max = 65535, .section = "workload.collective"), \
	LOOM_OPT(type, least, LOOM_OPT_SIZE, "16KiB", \
			 "With posted operations: adjacent workers of a rank whose parts of a step have fewer bytes than " \
			 "this share a message. 1: each worker sends its own (the paper's granularity of a work-group). " \
			 "1GiB: all workers share one (that of a kernel). Default: the time that a message takes the NIC's " \
			 "thread moves about as many bytes.", .min = 1, .max = 1ull << 40, .section = "workload.collective")

#define LOOM_ALLREDUCE_PIECE (4u << 20) /* size of a piece in bytes, for workloads without an option for it */
/* algorithm = auto: the largest vector for oneshot, in bytes. On CPUs transfers of cache lines dominate, and twoshot
 * has fewer transfers. Between GPUs, data cross the link once with oneshot and twice with twoshot, but oneshot sends
 * twice the bytes. */
#define LOOM_ALLREDUCE_ONESHOT_MOST 256u
#define LOOM_ALLREDUCE_ONESHOT_MOST_GPU (3u << 19) /* limit on the vector's bytes times the number of other ranks */
/* algorithm = auto: halving is chosen up to this number of bytes per rank, and from this number of ranks. In other
 * cases halving gained nothing (measured with 4 and 8 ranks). */
#define LOOM_ALLREDUCE_HALVING_MOST (16u << 10)
#define LOOM_ALLREDUCE_HALVING_RANKS 4u
#define LOOM_ALLREDUCE_PIECES 64u /* limit on pieces per slice, because each piece takes a post, a tag and an arrival word */

/* Sets the number of chunks, and the numbers of steps that follow from it. */
static inline void loom_allreduce_cut(struct loom_allreduce *a, uint32_t algorithm, uint32_t group)
{
	int chunks = algorithm == LOOM_ALLREDUCE_RING || algorithm == LOOM_ALLREDUCE_TWOSHOT;
	int levels = algorithm == LOOM_ALLREDUCE_LEVELS && group && a->ranks % group == 0;
	a->group = chunks ? a->ranks : levels ? group : 1;
	uint32_t groups = algorithm > LOOM_ALLREDUCE_LEVELS ? 1 : a->ranks / a->group;
	a->between = 0;
	for (a->power = 1; 2 * a->power <= groups; a->power *= 2)
		a->between += 2;
	if (a->power < groups)
		a->between += 2;
	a->steps = a->between + 2 * (a->group - 1);
}

/* How to sum a vector. */
struct loom_allreduce_how {
	uint64_t bytes; /* size of the vector, which is rounded up */
	uint64_t piece; /* number of bytes that a worker sends at once */
	uint64_t least; /* number of bytes of a message below which workers share it; 0: they never do, as late posts and chains need */
	uint32_t algorithm, group; /* group: for algorithm = levels, the number of ranks of a ring */
	uint32_t two_sided; /* 1: messages are sent and received */
};

/* struct loom_allreduce_how of a vector of `size` bytes by the options of LOOM_ALLREDUCE_ROWS at `o`. Further members may
 * follow. */
#define LOOM_ALLREDUCE_HOW(o, size, ...)                                                                               \
	(struct loom_allreduce_how)                                                                                    \
	{                                                                                                              \
		.bytes = (size), .piece = LOOM_ALLREDUCE_PIECE, .least = (o)->least, .algorithm = (o)->algorithm,     \
		.group = (o)->group, __VA_ARGS__                                                                       \
	}

/* Divides a vector among all workers of all ranks. */
static inline struct loom_allreduce loom_allreduce_shape(const struct loom_host *host, const struct loom_layout *layout,
							 const struct loom_allreduce_how *how)
{
	uint32_t algorithm = how->algorithm, group = how->group;
	uint64_t bytes = how->bytes, piece = how->piece;
	struct loom_allreduce a = {.rank = loom_net_rank(host),
				   .ranks = loom_net_ranks(host),
				   .algorithm = algorithm,
				   .two_sided = (uint16_t)how->two_sided};
	uint64_t parts = (uint64_t)a.ranks * layout->workers, slice = (bytes / sizeof(float) + parts - 1) / parts, unit;
	/* loom_allreduce_wire() calls loom_allreduce_cut() with another algorithm if it chooses one without posts */
	if (algorithm == LOOM_ALLREDUCE_AUTO)
		algorithm =
		    a.ranks >= LOOM_ALLREDUCE_HALVING_RANKS && bytes <= (uint64_t)a.ranks * LOOM_ALLREDUCE_HALVING_MOST
			? LOOM_ALLREDUCE_HALVING
			: LOOM_ALLREDUCE_RING;
	loom_allreduce_cut(&a, algorithm, group);
	/* a.slice must be a multiple of a.power, so that it can be halved log2(a.power) times. It is a multiple of `unit` times
	 * the number of groups, so `unit` needs only the factors of two that the number of groups lacks. */
	unit = a.power / (a.ranks / a.group & -(a.ranks / a.group));
	unit = unit < LOOM_ALLREDUCE_WIDE ? LOOM_ALLREDUCE_WIDE : unit;
	a.floats = (slice + unit - 1) / unit * unit * parts;
	a.slice = a.floats / a.group / layout->workers;
	a.piece = piece / sizeof(float);
	if (a.piece * LOOM_ALLREDUCE_PIECES < a.slice)
		a.piece = (a.slice + LOOM_ALLREDUCE_PIECES - 1) / LOOM_ALLREDUCE_PIECES;
	a.piece = (a.piece + a.power - 1) / a.power * a.power;
	a.pieces = (uint32_t)((a.slice + a.piece - 1) / a.piece);
	uint64_t share = how->least / (a.slice * sizeof(float));
	a.share = a.pieces > 1 || share < 2 ? 1 : share < layout->workers ? (uint32_t)share : layout->workers;
	a.tags = (layout->workers + a.share - 1) / a.share * a.steps * a.pieces;
	return a;
}

/* Returns the algorithm that `auto` chooses if workers can access the memory of other ranks. */
static inline uint32_t loom_allreduce_fastest(const struct loom_allreduce *a, const struct loom_layout *layout)
{
	uint64_t bytes = a->floats * sizeof(float);
	if (layout->device[0].kind != LOOM_ON_GPU)
		return bytes <= LOOM_ALLREDUCE_ONESHOT_MOST ? LOOM_ALLREDUCE_ONESHOT : LOOM_ALLREDUCE_TWOSHOT;
	return (a->ranks - 1) * bytes <= LOOM_ALLREDUCE_ONESHOT_MOST_GPU ? LOOM_ALLREDUCE_ONESHOT :
	       a->ranks == 2				  ? LOOM_ALLREDUCE_PULL :
							    LOOM_ALLREDUCE_TWOSHOT;
}

/* Returns the size of the slots for oneshot in bytes, or 0 if oneshot is not chosen. */
static inline uint64_t loom_allreduce_slots_of(const struct loom_allreduce *a, const struct loom_layout *layout)
{
	uint32_t algorithm = a->algorithm == LOOM_ALLREDUCE_AUTO ? loom_allreduce_fastest(a, layout) : a->algorithm;
	return algorithm == LOOM_ALLREDUCE_ONESHOT ? 2ull * a->ranks * a->floats * sizeof(uint64_t) : 0;
}

/* Assigns memory from offset `at` of the workload's block for the stack. The place of that block must be
 * LOOM_PLACE_NET. Also assigns a->tags tags and arrival words from number `first`. inputs: number of vectors between
 * which rounds alternate. `inputs` must be 2 if there are several rounds with posts. If it is 1, the input of each
 * round begins `stride` bytes after that of the previous round, modulo 64 strides. Returns the offset at which the
 * memory ends. */
static inline uint64_t loom_allreduce_place(struct loom_allreduce *a, const struct loom_layout *layout, uint64_t at,
					    uint32_t first, uint32_t inputs, uint64_t stride)
{
	uint64_t vector = loom_net_line(a->floats * sizeof(float)), inbox = loom_allreduce_slots_of(a, layout);
	uint64_t flags = 2ull * a->ranks * layout->workers * sizeof(struct loom_allreduce_flag);
	/* Size of the buffers for data to add, at first in chunks, then in bytes. */
	uint64_t added = a->group - 1 + (a->power > 1) + (a->power < a->ranks / a->group);
	int posts = a->algorithm && loom_allreduce_posts(a);
	added *= a->slice * layout->workers * sizeof(float);
	inbox = inbox > vector ? inbox : vector;
	inbox = inbox > added ? inbox : added;
	a->first = first;
	a->stride = inputs > 1 ? vector : stride;
	a->cycle = inputs > 1 ? inputs * vector : stride ? 64 * stride : 1;
	a->base_at = loom_net_line(at); /* wide accesses need an alignment of 16 bytes */
	a->flag_at = a->base_at + loom_net_line(a->ranks * sizeof(uint64_t));
	a->input_at = a->flag_at + (posts ? 0 : flags);
	a->sum_at =
	    a->input_at + (inputs > 1 ? inputs * vector : loom_net_line(a->floats * sizeof(float) + 64 * stride));
	a->inbox_at = a->sum_at + (posts ? 0 : vector);
	return a->inbox_at + inbox;
}

/* Returns the number of vectors between which rounds alternate. */
static inline uint32_t loom_allreduce_inputs_of(const struct loom_allreduce *a)
{
	return (uint32_t)(a->stride ? a->cycle / a->stride : 1);
}

/* Adds the vector's needs to the sizes of the trigger's tables. Late posts are not added, because they reuse places. */
static inline void loom_allreduce_needs(const struct loom_allreduce *a, const struct loom_layout *layout,
					struct loom_need *need)
{
	uint32_t last = a->first + a->tags;
	if (!loom_allreduce_posts(a) ||
	    (a->algorithm == LOOM_ALLREDUCE_AUTO && LOOM_HAS(layout, reaches) && !a->late_at && !a->two_sided))
		return;
	need->net.posts += a->late_at ? 0 : a->tags * loom_allreduce_inputs_of(a) * (a->two_sided ? 2 : 1);
	need->net.tags += a->chain ? 2 * a->tags : a->tags;
	need->net.arrivals = last > need->net.arrivals ? last : need->net.arrivals;
}

/* Initialises the memory of the vector, except the input. all: the workload's block for the stack. */
static inline void loom_allreduce_init(const struct loom_allreduce *a, const struct loom_layout *layout, void *all)
{
	if (a->algorithm && loom_allreduce_posts(a))
		return;
	memset((char *)all + a->flag_at, 0, a->input_at - a->flag_at);
	memset((char *)all + a->sum_at, 0xff, a->inbox_at - a->sum_at); /* NaN, so that a missing sum shows */
	memset((char *)all + a->inbox_at, 0, loom_allreduce_slots_of(a, layout));
}

/* Returns the post that sends a piece in all rounds that use this input. The operation is an add if the posts form a
 * chain, else a put. */
static inline struct loom_trigger_post loom_allreduce_post_of(const struct loom_allreduce *a, uint32_t workers,
							      loom_ref global, uint32_t w, uint32_t step,
							      uint32_t piece, uint32_t input)
{
	struct loom_allreduce_part p = loom_allreduce_part(a, workers, a->rank, w, step, piece);
	uint64_t at = a->input_at + input * a->stride + p.begin * sizeof(float);
	int adds = p.adds && a->chain;
	uint32_t tag = loom_allreduce_tag(a, w, step, piece), inputs = loom_allreduce_inputs_of(a);
	int chained = a->chain && step;
	uint64_t fires = chained ? 1 : loom_allreduce_team(a, workers, w).count;
	return (struct loom_trigger_post){
		.tag = chained ? LOOM_TAG_ARRIVAL(loom_allreduce_tag(a, w, step - 1, piece)) : tag,
		.threshold = (input + 1) * fires,
		.rearm = inputs > 1 ? inputs * fires : 0,
		.op = adds ? LOOM_NET_ADD : LOOM_NET_PUT,
		.type = adds ? LOOM_NET_F32 : 0,
		.target = loom_allreduce_peer(a, a->rank, step, 0),
		.local = global + at,
		.remote = global + (p.adds && !adds ? a->inbox_at + p.inbox * sizeof(float) : at),
		.bytes = p.floats * sizeof(float),
		.notify = tag};
}

/* Takes a post that the host will make later. to: the argument of loom_allreduce_wire(). */
typedef int loom_allreduce_poster(void *to, const struct loom_trigger_post *post, struct loom_error *err);

/* Returns the receive of a piece in all rounds that use this input. send: what this rank sends in the same step. */
static inline struct loom_trigger_post loom_allreduce_receive_of(const struct loom_allreduce *a, uint32_t workers,
								 loom_ref global, uint32_t w, uint32_t step,
								 uint32_t piece, uint32_t input,
								 const struct loom_trigger_post *send)
{
	struct loom_allreduce_part p =
	    loom_allreduce_part(a, workers, loom_allreduce_peer(a, a->rank, step, 1), w, step, piece);
	uint64_t into = p.adds ? a->inbox_at + p.inbox * sizeof(float)
			       : a->input_at + input * a->stride + p.begin * sizeof(float);
	return loom_net_receive(send, global + into, p.floats * sizeof(float), loom_allreduce_tag(a, w, step, piece));
}

static inline int loom_allreduce_post_all(const struct loom_allreduce *a, uint32_t workers, loom_ref global,
					  const struct loom_trigger *trigger, loom_allreduce_poster *late, void *to,
					  struct loom_error *err)
{
	uint32_t inputs = loom_allreduce_inputs_of(a);
	int rc = 0;
	for (uint32_t input = 0; input < inputs; input++)
		for (uint32_t step = 0; step < a->steps; step++)
			for (uint32_t piece = 0; piece < a->pieces; piece++)
				for (uint32_t w = 0; w < workers && !rc && loom_allreduce_fires(a, step); w += a->share) {
					struct loom_trigger_post post =
					    loom_allreduce_post_of(a, workers, global, w, step, piece, input);
					if (a->two_sided) {
						struct loom_trigger_post receive = loom_allreduce_receive_of(
						    a, workers, global, w, step, piece, input, &post);
						loom_net_send(&post);
						if (loom_allreduce_peer(a, a->rank, step, 1) != LOOM_ALLREDUCE_NONE)
							rc = loom_net_post(trigger, &receive, err);
					}
					if (!rc && loom_allreduce_peer(a, a->rank, step, 0) != LOOM_ALLREDUCE_NONE)
						rc = late ? late(to, &post, err) : loom_net_post(trigger, &post, err);
				}
	return rc;
}

/* Resolves algorithm = auto. If the algorithm uses posts, makes the posts, or passes them to `late` if `late` is not
 * NULL. If it uses none, finds the address of each other rank's block, whose size is `bytes`. Returns LOOM_ENOTSUP if
 * this trigger does not support the algorithm, or an error of post() or reach(). */
static inline int loom_allreduce_wire(struct loom_allreduce *a, const struct loom_host *host,
				      const struct loom_layout *layout, const struct loom_view *view, loom_ref global,
				      uint64_t bytes, const struct loom_trigger *trigger, loom_allreduce_poster *late,
				      void *to, struct loom_error *err)
{
	int reaches = LOOM_HAS(trigger->ops, reach), rc = 0;
	uint64_t *base = (uint64_t *)((char *)view->global + a->base_at);
	if (a->algorithm == LOOM_ALLREDUCE_AUTO && reaches && !a->late_at && !a->two_sided) {
		a->algorithm = loom_allreduce_fastest(a, layout);
		loom_allreduce_cut(a, a->algorithm, 0);
		a->slice = a->floats / a->group / layout->workers;
		a->share = 1;
	} else if (a->algorithm == LOOM_ALLREDUCE_AUTO) {
		a->algorithm = a->group == a->ranks ? LOOM_ALLREDUCE_RING : LOOM_ALLREDUCE_HALVING;
	}
	LOOM_CHOICE(host, "workload.algorithm", "%s", loom_allreduce_algorithms[a->algorithm]);
	if (a->algorithm == LOOM_ALLREDUCE_LEVELS && a->group == 1)
		return LOOM_FAIL(host, err, LOOM_EINVAL,
				 "algorithm = levels: group must be more than 1 and divide the %u ranks: set group = "
				 "ranks of a host",
				 a->ranks);
	if (loom_allreduce_posts(a))
		return loom_allreduce_post_all(a, layout->workers, global, trigger, late, to, err);
	if (!reaches)
		return LOOM_FAIL(host, err, LOOM_ENOTSUP,
				 "algorithm = %s needs a trigger whose workers store into other ranks: choose --set "
				 "trigger.use=peer",
				 loom_allreduce_algorithms[a->algorithm]);
	for (uint32_t r = 0; r < a->ranks && !rc; r++)
		if (r != a->rank)
			rc = trigger->ops->reach(trigger->self, r, global, bytes, &base[r], err);
	return rc;
}

#define LOOM_ALLREDUCE_BLOCK 64u /* number of elements that are checked at once */

/* Sums loom_allreduce_element(i[]) over the `ranks` ranks that begin with rank `from`. The addition begins at number
 * `first` of these ranks and wraps around. */
static inline void loom_allreduce_in_turn(const uint64_t *i, uint32_t n, uint32_t from, uint32_t first, uint32_t ranks,
					  float *sum)
{
	for (uint32_t r = 0; r < ranks; r++)
		for (uint32_t e = 0; e < n; e++) {
			float one = loom_allreduce_element(i[e], from + (first + r) % ranks);
			sum[e] = r ? sum[e] + one : one;
		}
}

/* Sums over the `groups` groups that begin with group `from`, in the order in which halving adds. */
static inline void loom_allreduce_by_halves(const struct loom_allreduce *a, const uint64_t *i, uint32_t n,
					    uint32_t from, uint32_t first, uint32_t groups, float *sum)
{
	float more[LOOM_ALLREDUCE_BLOCK] = {0};
	uint32_t rest = from + a->power;
	if (groups > 1) {
		loom_allreduce_by_halves(a, i, n, from, first, groups / 2, sum);
		loom_allreduce_by_halves(a, i, n, from + groups / 2, first, groups / 2, more);
	} else {
		loom_allreduce_in_turn(i, n, from * a->group, first, a->group, sum);
		if (rest * a->group < a->ranks)
			loom_allreduce_in_turn(i, n, rest * a->group, first, a->group, more);
	}
	for (uint32_t e = 0; e < n; e++)
		sum[e] = more[e] + sum[e];
}

/* Compares the sums of a round with the right ones. The right sums are computed from loom_allreduce_element((i +
 * shifted) % of, rank), in the same order as this algorithm adds. In a ring, the sum of chunk c begins at rank c of the
 * group. Without posts, sums follow the order of ranks. */
static inline int loom_allreduce_compare(const struct loom_allreduce *a, const struct loom_host *host,
					 const struct loom_layout *layout, const void *all, uint64_t round,
					 uint64_t shifted, uint64_t of, struct loom_error *err)
{
	int posts = loom_allreduce_posts(a);
	const float *got =
	    (const float *)((const char *)all + (posts ? a->input_at + round * a->stride % a->cycle : a->sum_at));
	uint64_t chunk = a->slice * layout->workers;
	for (uint64_t begin = 0, n; begin < a->floats; begin += n) {
		uint64_t i[LOOM_ALLREDUCE_BLOCK];
		float sum[LOOM_ALLREDUCE_BLOCK];
		n = chunk - begin % chunk;
		n = n < LOOM_ALLREDUCE_BLOCK ? n : LOOM_ALLREDUCE_BLOCK;
		for (uint64_t e = 0; e < n; e++)
			i[e] = (begin + e + shifted) % of;
		if (posts)
			loom_allreduce_by_halves(a, i, (uint32_t)n, 0, (uint32_t)(begin / chunk), a->power, sum);
		else
			loom_allreduce_in_turn(i, (uint32_t)n, 0, 0, a->ranks, sum);
		for (uint64_t e = 0; e < n; e++)
			if (sum[e] != got[begin + e])
				return LOOM_FAIL(host, err, LOOM_EWRONG,
						 "allreduce: element %llu on rank %u is %.9g instead of %.9g",
						 (unsigned long long)(begin + e), a->rank, (double)got[begin + e],
						 (double)sum[e]);
	}
	return 0;
}

#endif
