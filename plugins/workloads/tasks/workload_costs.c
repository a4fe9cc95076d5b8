/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_costs: the cost of accesses to memory. */
#include "../common/host.h"
#include "workload_costs.dev.h"

#include <string.h>

struct costs_opts {
	uint64_t rounds, bytes;
};

static const struct loom_opt costs_rows[] = {
	LOOM_OPT(struct costs_opts, rounds, LOOM_OPT_U64, "1024",
			 "Accesses of each type.", .min = COSTS_BURST, .max = 1e7),
	LOOM_OPT(struct costs_opts, bytes, LOOM_OPT_SIZE, "1MiB",
			 "Bytes that each worker reads and writes at the same time as the others.",
			 .min = 1024, .max = 1ull << 30),
	{.name = NULL},
};

static const struct costs_opts *opts_of(const void *self)
{
	return ((const struct workload *)self)->opts;
}

static uint64_t bytes_of(const struct costs_opts *o)
{
	return o->bytes & ~(uint64_t)63;
}

/* Returns the number of accesses of each type, a multiple of COSTS_BURST. */
static uint64_t rounds_of(const struct costs_opts *o)
{
	return o->rounds - o->rounds % COSTS_BURST;
}

static uint64_t most_workers(const struct loom_layout *layout)
{
	uint64_t most = 0;
	for (uint32_t d = 0; d < layout->devices; d++)
		most = layout->device[d].workers > most ? layout->device[d].workers : most;
	return most;
}

static int costs_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	(void)err;
	need->global = sizeof(struct costs_head);
	need->global_place = LOOM_PLACE_HOST;
	need->device = sizeof(struct costs_words) + most_workers(layout) * bytes_of(opts_of(self));
	need->device_place = LOOM_PLACE_DEVICE;
	need->worker = sizeof(struct costs_note);
	return 0;
}

/* Makes a cycle over all words in steps of 27. The step is odd, so the cycle visits each word; it visits no line
 * twice in a row. */
static void make_chain(struct costs_words *w)
{
	memset(w, 0, sizeof(*w));
	for (uint64_t i = 0; i < COSTS_WORDS; i++)
		w->next[i] = (i + 27) % COSTS_WORDS;
}

static int costs_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      struct loom_error *err)
{
	const struct costs_opts *o = opts_of(self);
	struct costs_head *h = view->global;
	(void)err;
	h->rounds = rounds_of(o);
	h->bytes = bytes_of(o);
	h->has_peer = layout->devices > 1;
	make_chain(&h->far);
	for (uint32_t d = 0; d < layout->devices; d++) {
		memset(view->device[d], 0, sizeof(struct costs_words) + layout->device[d].workers * h->bytes);
		make_chain(view->device[d]);
	}
	for (uint32_t w = 0; w < layout->workers; w++) {
		struct costs_note *n = view->worker[w];
		memset(n, 0, sizeof(*n));
		make_chain(&n->peer);
	}
	return 0;
}

/* Checks that every access was made, and that the compiler has removed none. */
static int check_words(const struct workload *w, const struct costs_words *words, uint64_t end, const char *where,
		       struct loom_error *err)
{
	uint64_t rounds = rounds_of(w->opts), want = 27 * rounds % COSTS_WORDS;
	if (end == want && words->sum == 2 * rounds && words->stored[COSTS_BURST - 1])
		return 0;
	return LOOM_FAIL(
	    w->host, err, LOOM_EWRONG,
	    "costs: %s memory: %llu loads ended at word %llu instead of %llu, and %llu additions made %llu", where,
	    (unsigned long long)rounds, (unsigned long long)end, (unsigned long long)want,
	    (unsigned long long)(2 * rounds), (unsigned long long)words->sum);
}

static int check_streams(const struct workload *w, const struct loom_layout *layout, const struct loom_view *view,
			 struct loom_error *err)
{
	uint64_t n = bytes_of(w->opts) / sizeof(uint64_t);
	for (uint32_t d = 0; d < layout->devices; d++) {
		const uint64_t *word = (const uint64_t *)((const struct costs_words *)view->device[d] + 1);
		for (uint64_t i = 0; i < layout->device[d].workers * n; i++)
			if (word[i] != i % n)
				return LOOM_FAIL(
				    w->host, err, LOOM_EWRONG, "costs: device %u, word %llu is %llu instead of %llu", d,
				    (unsigned long long)i, (unsigned long long)word[i], (unsigned long long)(i % n));
	}
	return 0;
}

static void report_costs(const struct workload *w, const struct costs_note *n, int has_peer, struct loom_report *report)
{
	static const char *const name[COSTS_COUNT] = {"load_local",   "load_host",   "load_peer",   "store_local",
						      "store_host",   "store_peer", "atomic_local", "atomic_host",
						      "atomic_peer", "fence_dev",  "fence_sys",   "stream"};
	const struct costs_opts *o = w->opts;
	double each[COSTS_COUNT], rounds = (double)rounds_of(o);
	for (int i = 0; i < COSTS_COUNT; i++)
		each[i] = (double)n->ns[i] / rounds;
	for (int i = COSTS_STORE; i < COSTS_STORE + COSTS_PLACES; i++)
		each[i] = ((double)n->ns[i] - (double)n->rest) / rounds;
	each[COSTS_FENCE_DEV] -= each[COSTS_STORE];
	each[COSTS_FENCE_SYS] -= each[COSTS_STORE];
	each[COSTS_STREAM] = (double)n->ns[COSTS_STREAM] * 1024 / (2.0 * (double)bytes_of(o));
	for (int i = 0; i < COSTS_COUNT; i++)
		if (i >= COSTS_FENCE_DEV || i % COSTS_PLACES != COSTS_PEER || has_peer)
			w->host->metric(w->host, report, name[i], "ns", LOOM_BETTER_LESS, each[i] > 0 ? each[i] : 0);
}

static int costs_verify(void *self, const struct loom_layout *layout, const struct loom_view *view,
			struct loom_report *report, struct loom_error *err)
{
	const struct workload *w = self;
	const struct costs_head *h = view->global;
	const struct costs_note *first = view->worker[0];
	int code = check_words(w, view->device[0], first->end[COSTS_LOCAL], "the device's", err);
	code = code ? code : check_words(w, &h->far, first->end[COSTS_HOST], "the host's", err);
	if (!code && h->has_peer) {
		const struct costs_note *other = view->worker[layout->device[0].workers];
		code = check_words(w, &other->peer, first->end[COSTS_PEER], "the other device's", err);
	}
	code = code ? code : check_streams(w, layout, view, err);
	if (!code)
		report_costs(w, first, (int)h->has_peer, report);
	return code;
}

WORKLOAD_OPS(costs, .create = workload_create_plain, .destroy = workload_destroy, .tasks = workload_no_tasks);

WORKLOAD_KERNEL(workload_costs, LOOM_CODE_FILE("workload_costs.dev.h"));

LOOM_PLUGIN_DEFINE(WORKLOAD, "workload_costs", "0.1.0", "Apache-2.0",
		   "Costs of accesses to memory, by the names of a simulated device's options", .opts = costs_rows,
		   .opts_size = sizeof(struct costs_opts), .ops = &costs_ops, .dev = &workload_costs_code)
