/* SPDX-License-Identifier: Apache-2.0 */
/* workload_resume: host half. */
#include "resume.dev.h"

#include <stdlib.h>
#include <string.h>

#include "exchange.h"

enum { OF, WAITERS, COMPUTING, WORK }; /* ex_opts.extra */

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
	EXTRA(WAITERS, "waiters", "16", "Workers of each group that wait, the first ones. 0: none, and nothing is sent.",
	      .max = 1 << 20),
	EXTRA(COMPUTING, "computing", "16", "Workers of each group that compute, the last ones.", .max = 1 << 20),
	EXTRA(WORK, "work", "1000", "Computation of each of these: rounds of 8,000 multiplications and additions.", .min = 1,
	      .max = 1e9),
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
	s->role = ex_room(x, x->layout->workers, sizeof(*s->role));
	if (!s->role)
		return EX_NO_ROOM;
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
	ex_array(x, RESUME_ROLES, x->layout->workers * sizeof(struct resume_role));
	ex_array(x, RESUME_TOLD, (s->waiters + 1) * sizeof(struct resume_told));
	ex_array(x, RESUME_NS, (s->rounds + 1) * 8ull);
	ex_array(x, RESUME_DID, x->layout->workers * sizeof(struct resume_did));
	return 0;
}

static void fill(struct ex *x, struct ex_head *h)
{
	const struct resume *s = x->own;
	memcpy(ex_of(h, RESUME_ROLES), s->role, x->layout->workers * sizeof(struct resume_role));
	memset(ex_of(h, RESUME_TOLD), 0, (s->waiters + 1) * sizeof(struct resume_told));
	memset(ex_of(h, RESUME_NS), 0, (s->rounds + 1) * 8ull);
	memset(ex_of(h, RESUME_DID), 0, x->layout->workers * sizeof(struct resume_did));
}

static int ascending(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

static int check_worker(struct ex *x, struct ex_head *h, uint32_t worker, struct loom_error *err)
{
	const struct resume *s = x->own;
	const struct resume_role *r = &s->role[worker];
	const struct resume_told *told = ex_of(h, RESUME_TOLD);
	const struct resume_did *did = (const struct resume_did *)ex_of(h, RESUME_DID) + worker;
	double chains = RESUME_CHAINS, sum = x->o->extra[WORK] * chains * (RESUME_STEPS + (chains - 1) / 2);
	if (r->what == RESUME_COMPUTES && did->sum != sum)
		return EX_WRONG(x, err, "worker %u: expected the sum %.17g, found %.17g", worker, sum, did->sum);
	uint32_t items = r->what == RESUME_WAITS ? resume_items(s->rounds, r->number, s->waiters) : 0;
	if (did->wrong || (items && told[r->number].items != items))
		return EX_WRONG(x, err, "worker %u: expected %u items, found %llu, and %llu wrong words", worker, items,
				(unsigned long long)told[r->number].items, (unsigned long long)did->wrong);
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct resume *s = x->own;
	const struct resume_did *did = ex_of(h, RESUME_DID);
	uint64_t *ns = ex_of(h, RESUME_NS), compute = 0, computing = 0, items = s->rounds;
	for (uint32_t w = 0; w < x->layout->workers; w++) {
		int rc = check_worker(x, h, w, err);
		if (rc)
			return rc;
		if (s->role[w].what == RESUME_COMPUTES) {
			compute += did[w].end_ns - did[w].begin_ns;
			computing++;
		}
	}
	if (computing && items)
		items = did[x->layout->device[0].first_worker].beside + 1;
	qsort(ns, items, sizeof(*ns), ascending);
	if (items) {
		x->host->metric(x->host, x->report, "resumed_p50", "ns", LOOM_BETTER_LESS, (double)ns[items / 2]);
		x->host->metric(x->host, x->report, "resumed_p99", "ns", LOOM_BETTER_LESS, (double)ns[items * 99 / 100]);
		x->host->metric(x->host, x->report, "beside", "items", LOOM_BETTER_NONE, (double)items);
	}
	if (computing)
		x->host->metric(x->host, x->report, "compute_s", "s", LOOM_BETTER_LESS, (double)compute / (double)computing / 1e9);
	x->host->metric(x->host, x->report, "items", "", LOOM_BETTER_NONE, s->rounds);
	return 0;
}

static const struct ex_app app = {.name = "resume", .bytes = sizeof(struct resume), .plan = plan,
				  .fill = fill, .check = check};

EX_PLUGIN(resume, app, rows, "items", "Waiters beside a computation: how soon they resume, and what they cost it", "")
