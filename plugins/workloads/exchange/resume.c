/* SPDX-License-Identifier: Apache-2.0 */
#include "resume.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

enum { OF, WAITERS, COMPUTING, WORK }; /* indices of ex_opts.extra */

#define EXTRA(n, opt, dflt_, help_, ...)                                                           \
	{                                                                                          \
		.name = opt, .dflt = dflt_, .type = LOOM_OPT_U32, .help = help_,                   \
		.offset = offsetof(struct ex_opts, extra) + 4 * n, .size = sizeof(uint32_t),       \
		__VA_ARGS__                                                                        \
	}

static const struct loom_opt rows[] = {
	EX_ROWS("1", 1, 1 << 20, "Words of 8 bytes per item.", "1000"),
	EXTRA(OF, "of", "32",
	      "Size of the groups of workers of the second device, such as those of a GPU's block.",
	      .min = 1, .max = 1 << 20),
	EXTRA(WAITERS, "waiters", "16",
	      "Number of workers of each group that wait, from the first one on. 0: none, and nothing is "
	      "sent.", .max = 1 << 20),
	EXTRA(COMPUTING, "computing", "16", "Number of workers of each group that compute, up to the last "
		"one.", .max = 1 << 20),
	EXTRA(WORK, "work", "1000",
	      "Computation of each computing worker: rounds of 8,000 multiplications and "
	      "additions.", .min = 1, .max = 1e9),
	{.name = NULL},
};

struct resume {
	struct resume_role *role;
	uint32_t waiters, rounds;
};

static int plan(struct ex *x)
{
	struct resume *s = x->own;
	const struct ex_opts *o = x->o;
	const struct loom_device_shape *to = &x->layout->device[1];
	s->role = ex_alloc(x, x->layout->workers, sizeof(*s->role));
	if (!s->role)
		return EX_NO_MEMORY;
	for (uint32_t w = 0; w < to->workers; w++) {
		struct resume_role *r = &s->role[to->first_worker + w];
		if (w % o->extra[OF] < o->extra[WAITERS])
			*r = (struct resume_role){RESUME_WAITS, s->waiters++};
		else if (w % o->extra[OF] + o->extra[COMPUTING] >= o->extra[OF])
			r->what = RESUME_COMPUTES;
	}
	s->rounds = s->waiters ? o->iterations : 0;
	s->role[x->layout->device[0].first_worker].what = s->rounds ? RESUME_SENDS : RESUME_IDLE;
	x->head.iterations = s->rounds;
	x->head.param[RESUME_WORDS] = o->size;
	x->head.param[RESUME_WAITERS] = s->waiters;
	x->head.param[RESUME_ROUNDS] = o->extra[WORK];
	x->head.param[RESUME_ONE] = 1;
	ex_channel(x, 0, 1, s->waiters ? s->waiters : 1, 1, 8ull * o->size);
	ex_copy(x, RESUME_ROLES, s->role, x->layout->workers * sizeof(struct resume_role));
	ex_array(x, RESUME_RECEIVED, (s->waiters + 1) * sizeof(struct resume_received), EX_ZERO);
	ex_array(x, RESUME_NS, (s->rounds + 1) * 8ull, EX_ZERO);
	ex_array(x, RESUME_RESULTS, x->layout->workers * sizeof(struct resume_result), EX_ZERO);
	return 0;
}

static int check_worker(struct ex *x, struct ex_head *h, uint32_t worker, struct loom_error *err)
{
	const struct resume *s = x->own;
	const struct resume_role *r = &s->role[worker];
	const struct resume_received *received = ex_ptr(h, RESUME_RECEIVED);
	const struct resume_result *result = (const struct resume_result *)ex_ptr(h, RESUME_RESULTS) + worker;
	double chains = RESUME_CHAINS, sum = x->o->extra[WORK] * chains * (RESUME_STEPS + (chains - 1) / 2);
	if (r->what == RESUME_COMPUTES && result->sum != sum)
		return EX_WRONG(x, err, "worker %u: expected the sum %.17g, found %.17g", worker, sum, result->sum);
	uint32_t items = r->what == RESUME_WAITS ? resume_items(s->rounds, r->number, s->waiters) : 0;
	if (result->wrong || (items && received[r->number].items != items))
		return EX_WRONG(x, err, "worker %u: expected %u items, found %llu, and %llu wrong words", worker, items,
				(unsigned long long)received[r->number].items, (unsigned long long)result->wrong);
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct resume *s = x->own;
	const struct resume_result *result = ex_ptr(h, RESUME_RESULTS);
	uint64_t *ns = ex_ptr(h, RESUME_NS), compute = 0, computing = 0, items = s->rounds;
	for (uint32_t w = 0; w < x->layout->workers; w++) {
		int rc = check_worker(x, h, w, err);
		if (rc)
			return rc;
		if (s->role[w].what == RESUME_COMPUTES) {
			compute += result[w].end_ns - result[w].begin_ns;
			computing++;
		}
	}
	if (computing && items)
		items = result[x->layout->device[0].first_worker].beside + 1;
	qsort(ns, items, sizeof(*ns), workload_ascending);
	if (items) {
		x->host->metric(x->host, x->report, "resumed_p50", "ns", LOOM_BETTER_LESS, (double)ns[items / 2]);
		x->host->metric(x->host, x->report, "resumed_p99", "ns", LOOM_BETTER_LESS,
				(double)ns[items * 99 / 100]);
		x->host->metric(x->host, x->report, "beside", "items", LOOM_BETTER_NONE, (double)items);
	}
	if (computing)
		x->host->metric(x->host, x->report, "compute_s", "s", LOOM_BETTER_LESS,
				(double)compute / (double)computing / 1e9);
	x->host->metric(x->host, x->report, "items", "", LOOM_BETTER_NONE, s->rounds);
	return 0;
}

EX_PLUGIN(resume, struct resume, rows, "items",
	  "Waiters beside a computation: resume latency, and the cost to the computation", "")
