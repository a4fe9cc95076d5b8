/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_reduce: the sum of many floats with barriers, in several ways, and a model that predicts the
 * fastest way. */
#include "workload_reduce.dev.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "../common/host.h"

struct reduce_opts {
	uint64_t floats, rounds;
	uint32_t way;
};

enum { ALL_WAYS = 0 }; /* choice i > 0 is way REDUCE_WARP + i - 1 */
static const char *const ways[] = {"all", "warp", "worker", "device", "stack", NULL};

static const struct loom_opt reduce_rows[] = {
	LOOM_OPT(struct reduce_opts, floats, LOOM_OPT_U64, "1048576",
			 "Number of floats that are summed: a multiple of 4. Each device has all of them in its own "
			 "memory.", .min = 4, .max = 1ll << 34),
	LOOM_OPT(struct reduce_opts, way, LOOM_OPT_ENUM, "all",
			 "Which lanes sum together. warp: 32 lanes of worker 0. worker: all its lanes. device: the "
			 "workers of the first device. stack: those of all devices. all: each of these in turn; warp "
			 "if a worker has more lanes, stack if there are several devices.", .choices = ways),
	LOOM_OPT(struct reduce_opts, rounds, LOOM_OPT_U64, "auto",
			 "Sums of each way in a sample. auto: 4 to 1,000, so that about 16 million floats are "
			 "summed.", .max = 1e9, .flags = LOOM_OPT_AUTO),
	{.name = NULL},
};

struct reduce {
	struct workload workload;
	struct reduce_all all; /* contents of the global block; head.rounds is 0 until reduce_need() sets it */
};

static const struct reduce_opts *opts_of(const struct reduce *r)
{
	return r->workload.opts;
}

static int reduce_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	int code = workload_create(host, opts, sizeof(struct reduce), self, err);
	if (!code)
		((struct reduce *)*self)->all = (struct reduce_all){.head = {.rounds = 0}};
	return code;
}

/* Computes the expected sum of each round's input: first the whole sum of round 0, then the differences between
 * rounds. */
static void find_sums(struct reduce_all *a)
{
	const struct reduce_head *h = &a->head;
	uint64_t n = h->quads * 4, sum = 0;
	for (uint64_t i = 0; i < n; i++)
		sum += (uint64_t)reduce_value(i, h->seed);
	for (uint64_t offset = 0; offset < REDUCE_OFFSETS; offset++) {
		a->sum[offset] = (double)sum;
		for (uint64_t i = offset * 4 * REDUCE_OFFSET; i < (offset + 1) * 4 * REDUCE_OFFSET; i++)
			sum += (uint64_t)reduce_value(n + i, h->seed) - (uint64_t)reduce_value(i, h->seed);
	}
}

static int reduce_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	struct reduce *r = self;
	const struct reduce_opts *o = opts_of(r);
	const struct loom_host *host = r->workload.host;
	struct reduce_head *h = &r->all.head;
	uint64_t rounds = (1 << 24) / o->floats;
	uint32_t lanes = 1;
	if (o->floats % 4)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "reduce: floats = %llu: not a multiple of 4",
				 (unsigned long long)o->floats);
	if (!strcmp(ways[o->way], "stack") && layout->devices == 1)
		return LOOM_FAIL(host, err, LOOM_EINVAL, "reduce: way = stack: there is only one device: set way = "
			"device");
	for (uint32_t d = 0; d < layout->devices; d++)
		lanes = layout->device[d].lanes > lanes ? layout->device[d].lanes : lanes;
	if (!h->rounds) {
		h->quads = o->floats / 4;
		h->rounds = o->rounds ? o->rounds : rounds < 4 ? 4 : rounds > 1000 ? 1000 : rounds;
		h->seed = (uint32_t)layout->seed;
		h->phases = o->way != ALL_WAYS ? 1u << (REDUCE_WARP + o->way - 1)
			    : 1u << REDUCE_WORKER | 1u << REDUCE_DEVICE |
				      (uint32_t)(layout->device[0].lanes > REDUCE_WARP_LANES) << REDUCE_WARP |
				      (uint32_t)(layout->devices > 1) << REDUCE_STACK;
		h->phases |= (1u << REDUCE_WARP) - 1 - (uint32_t)(layout->devices == 1) * (1u << REDUCE_BARRIER);
		find_sums(&r->all);
	}
	need->global = sizeof(struct reduce_all);
	need->device =
	    reduce_input_at(layout->workers) + (h->quads + REDUCE_OFFSETS * REDUCE_OFFSET) * sizeof(struct reduce_quad);
	need->device_place = LOOM_PLACE_DEVICE;
	need->worker = sizeof(struct reduce_record);
	need->worker_place = layout->noncoherent ? LOOM_PLACE_HOST : LOOM_PLACE_ANY;
	need->local = lanes * sizeof(double);
	return 0;
}

static const struct loom_barrier_scopes *reduce_barrier_scopes(void *self, const struct loom_layout *layout)
{
	static const struct loom_barrier_scopes scopes = {
		.scopes = 1u << LOOM_SCOPE_WORKER | 1u << LOOM_SCOPE_DEVICE | 1u << LOOM_SCOPE_STACK};
	(void)self, (void)layout;
	return &scopes;
}

static int reduce_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_error *err)
{
	const struct reduce *r = self;
	(void)err;
	*(struct reduce_all *)view->global = r->all;
	for (uint32_t w = 0; w < layout->workers; w++)
		memset(view->worker[w], 0, sizeof(struct reduce_record));
	return 0;
}

/* ---- the model ---- */

/* Returns the ns in which `lanes` lanes read `bytes` bytes. Each batch takes at least the latency of a load (Little's
 * law: the rate is the bytes in flight divided by the latency). The measured rate, in bytes per ns, is another
 * limit. */
static double read_ns(double bytes, double lanes, double latency, double rate)
{
	double batches = ceil(bytes / (lanes * REDUCE_BATCH * sizeof(struct reduce_quad)));
	double full = rate > 0 ? bytes / rate : 0;
	return batches * latency > latency + full ? batches * latency : latency + full;
}

static double part(const struct reduce_record *n, int phase)
{
	return (double)n->ns[phase] / (double)n->rounds[phase];
}

/* Returns the rate in bytes per ns of a phase that reads `bytes` bytes and spends `others` ns on all else. Returns 0
 * if no time is left for reading. */
static double rate(const struct reduce_record *n, int phase, double bytes, double others)
{
	double left = part(n, phase) - others;
	return left > 0 ? bytes / left : 0;
}

static double predict(const struct reduce_head *h, const struct loom_layout *layout, const struct reduce_record *n,
		      int way)
{
	const double bytes = (double)h->quads * sizeof(struct reduce_quad), lanes = layout->device[0].lanes;
	const double some = (double)(h->quads < REDUCE_ALONE ? h->quads : REDUCE_ALONE) * sizeof(struct reduce_quad);
	const double local = (double)n->load[0] / REDUCE_TIMES, behind = (double)n->load[1] / REDUCE_TIMES;
	const double warp = part(n, REDUCE_LANES_WARP), worker = part(n, REDUCE_LANES_WORKER),
		     gather = part(n, REDUCE_GATHER);
	const double all = lanes * layout->device[0].workers, device = rate(n, REDUCE_ALL, bytes, behind + worker);
	switch (way) {
	case REDUCE_WARP:
		return read_ns(bytes, lanes < REDUCE_WARP_LANES ? lanes : REDUCE_WARP_LANES, local,
			       rate(n, REDUCE_ALONE_WARP, some, local + warp)) +
		       warp;
	case REDUCE_WORKER:
		return read_ns(bytes, lanes, local, rate(n, REDUCE_ALONE_WORKER, some, local + worker)) + worker;
	case REDUCE_DEVICE:
		return read_ns(bytes, all, behind, device) + worker + gather;
	default: /* assumes that all devices are equal */
		return read_ns(bytes / layout->devices, all, behind, device) + worker + gather +
		       part(n, REDUCE_BARRIER);
	}
}

/* ---- the check ---- */

static int check_way(const struct reduce *r, const struct reduce_record *n, uint32_t way, struct loom_error *err)
{
	const struct reduce_head *h = &r->all.head;
	const char *name = ways[1 + way - REDUCE_WARP];
	if (n->wrong[way])
		return LOOM_FAIL(
		    r->workload.host, err, LOOM_EWRONG,
		    "reduce: way %s: round %llu: the sum is %.0f instead of %.0f; %llu of %llu rounds are wrong",
		    name, (unsigned long long)n->wrong_round[way], n->wrong_sum[way],
		    r->all.sum[n->wrong_round[way] % REDUCE_OFFSETS], (unsigned long long)n->wrong[way],
		    (unsigned long long)n->rounds[way]);
	if (n->rounds[way] != h->rounds)
		return LOOM_FAIL(r->workload.host, err, LOOM_EWRONG, "reduce: way %s: %llu rounds instead of %llu",
				 name, (unsigned long long)n->rounds[way], (unsigned long long)h->rounds);
	return 0;
}

static int reduce_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_report *report, struct loom_error *err)
{
	static const char *const time[] = {"by_warp", "by_worker", "by_device", "by_stack"};
	static const char *const model[] = {"by_warp_model", "by_worker_model", "by_device_model", "by_stack_model"};
	const struct reduce *r = self;
	const struct loom_host *host = r->workload.host;
	const struct reduce_head *h = &r->all.head;
	const struct reduce_record *n = view->worker[0];
	double best = 0, named = 0, least = 0;
	for (uint32_t way = REDUCE_WARP; way < REDUCE_PHASES; way++) {
		if (!(h->phases >> way & 1))
			continue;
		int code = check_way(r, n, way, err);
		if (code)
			return code;
		double ns = part(n, (int)way), thought = predict(h, layout, n, (int)way);
		host->metric(host, report, time[way - REDUCE_WARP], "ns", LOOM_BETTER_LESS, ns);
		host->metric(host, report, model[way - REDUCE_WARP], "ns", LOOM_BETTER_NONE, thought);
		best = best == 0 || ns < best ? ns : best;
		named = least == 0 || thought < least ? ns : named;
		least = least == 0 || thought < least ? thought : least;
	}
	host->metric(host, report, "bytes_per_s", "B/s", LOOM_BETTER_MORE,
		     (double)h->quads * sizeof(struct reduce_quad) / best * 1e9);
	host->metric(host, report, "model_loss", "", LOOM_BETTER_LESS, named / best - 1);
	return 0;
}

WORKLOAD_OPS(reduce, .create = reduce_create, .destroy = workload_destroy, .tasks = workload_no_tasks,
	     .needs = 1u << LOOM_BARRIER, .barrier_scopes = reduce_barrier_scopes);

WORKLOAD_KERNEL(workload_reduce, LOOM_CODE_FILE("workload_reduce.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_reduce", "0.1.0", "Apache-2.0",
		   "The sum of many floats, by a warp, a worker, a device, all; and a model of which is the fastest",
		   .opts = reduce_rows, .opts_size = sizeof(struct reduce_opts), .ops = &reduce_ops,
		   .dev = &workload_reduce_code)
