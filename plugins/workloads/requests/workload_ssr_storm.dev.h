/* SPDX-License-Identifier: Apache-2.0 */
/* ssr_storm: as many requests as are answered (the paper's ubench: every access a request). Device code.
 *
 * A worker keeps `window` requests outstanding and takes answers in the order of asking. What it must
 * remember of each is in its part of its device's block. */
#ifndef WORKLOAD_SSR_STORM_DEV_H
#define WORKLOAD_SSR_STORM_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "ssr.dev.h"
#endif

#define SSR_PAGE_BYTES 4096ull

/* Right answers are known; -1: any place in the buffer. */
struct ssr_asked {
	uint64_t id;
	int64_t want;
	uint32_t service;
	uint32_t pad;
};

/* Of a worker. */
struct ssr_storm {
	struct ssr_plan plan;
	struct ssr_tally *tally;
	struct ssr_asked *asked; /* [window], then as many places of heap pages */
	uint64_t limit;		 /* how many requests it makes */
	uint64_t posted, answered; /* asked[i % window] of what lies between */
	uint64_t page;		   /* next of the demand buffer */
	uint64_t held;		   /* heap pages that are to be given back: free_at[] */
	uint64_t next_ns;	   /* not before: a tenant that paces itself */
};

LOOM_FN struct ssr_asked *ssr_asked(const struct ssr_storm *s, uint64_t i)
{
	return &s->asked[i % s->plan.window];
}

LOOM_FN uint64_t *ssr_free_at(const struct ssr_storm *s)
{
	return (uint64_t *)(s->asked + s->plan.window);
}

/* Grants of a worker, in the order in which the host makes them: see grants(). */
enum { SSR_GRANT_MEMORY = 0, SSR_GRANT_HANDLE, SSR_GRANTS };

LOOM_FN int64_t ssr_storm_next(struct loom_ctx *c, struct ssr_storm *s, struct loom_request *r)
{
	const struct ssr_plan *k = &s->plan;
	uint32_t grant = ssr_number_of(c, k) * SSR_GRANTS;
	r->service = k->service;
	r->buffer = grant + SSR_GRANT_MEMORY;
	r->handle = grant + SSR_GRANT_HANDLE;
	r->reserved = 0;
	r->offset = 0;
	r->bytes = k->bytes;
	r->argument = 0;
	switch (k->service) {
	case LOOM_SERVICE_SIGNAL:
		r->argument = 10; /* SIGUSR1 */
		return 0;
	case LOOM_SERVICE_FAULT: /* a stream through the buffer, which is emptied at its end */
		r->offset = s->page * SSR_PAGE_BYTES;
		r->bytes = SSR_PAGE_BYTES;
		if (s->page++ < k->room / SSR_PAGE_BYTES)
			return k->device ? -1 : (int64_t)SSR_PAGE_BYTES;
		r->service = LOOM_SERVICE_EVICT;
		r->offset = 0;
		r->bytes = k->room;
		s->page = 0;
		return 0;
	case LOOM_SERVICE_ALLOC:
		if (!s->held)
			return -1;
		r->service = LOOM_SERVICE_FREE;
		r->offset = ssr_free_at(s)[--s->held];
		return (int64_t)((k->bytes + SSR_PAGE_BYTES - 1) / SSR_PAGE_BYTES * SSR_PAGE_BYTES);
	case LOOM_SERVICE_READ:
	case LOOM_SERVICE_WRITE:
		r->offset = loom_random_below(c, (uint32_t)(k->room / k->bytes)) * k->bytes;
		r->argument = loom_random_below(c, (uint32_t)(k->file_bytes / k->bytes)) * k->bytes;
		return (int64_t)k->bytes;
	case LOOM_SERVICE_MIGRATE:
		if (k->device) { /* a page comes, and goes */
			r->service = s->page & 1 ? LOOM_SERVICE_MIGRATE : LOOM_SERVICE_FAULT;
			r->offset = s->page++ / 2 % (k->room / SSR_PAGE_BYTES) * SSR_PAGE_BYTES;
			r->bytes = SSR_PAGE_BYTES;
			return r->service == LOOM_SERVICE_MIGRATE ? 1 : -1;
		}
		return (int64_t)((k->bytes + SSR_PAGE_BYTES - 1) / SSR_PAGE_BYTES);
	case LOOM_SERVICE_SEND:
		return (int64_t)k->bytes;
	default:
		return 0;
	}
}

/* Its worker lets time pass between two requests. */
LOOM_FN int ssr_storm_paces(const struct loom_ctx *c, const struct ssr_plan *plan)
{
	return plan->pace_ns && ssr_tenant_of(c, plan) + 1 == plan->tenants;
}

/* 1 when a request was posted. */
LOOM_FN int ssr_storm_post(struct loom_ctx *c, struct ssr_storm *s)
{
	struct ssr_asked *a = ssr_asked(s, s->posted);
	struct loom_request r;
	if (s->posted - s->answered >= s->plan.window || s->posted >= s->limit)
		return 0;
	if (ssr_storm_paces(c, &s->plan)) {
		uint64_t now = loom_clock_ns(c);
		if (now < s->next_ns)
			return 0;
		s->next_ns = (s->next_ns ? s->next_ns : now) + s->plan.pace_ns;
	}
	a->want = ssr_storm_next(c, s, &r);
	a->service = r.service;
	if (LOOM_CALL(qos, request, c, &r, &a->id) != 0) {
		ssr_count_wrong(s->tally, r.service, 0); /* the window is no larger than the ring */
		return 0;
	}
	s->posted++;
	return 1;
}

/* What was allocated near the workers is of zeroes, and is written to: 1. */
LOOM_FN int ssr_storm_is_clean(const struct loom_ctx *c, const struct ssr_plan *k, int64_t at)
{
	char *room = (char *)c->on_device[LOOM_WORKLOAD] + k->room_at + (c->worker - c->first) * k->room;
	uint64_t *first = (uint64_t *)(void *)(room + at), *last = first + SSR_PAGE_BYTES / sizeof(*first) - 1;
	int clean = !loom_load_relaxed_dev(first) && !loom_load_relaxed_dev(last);
	loom_store_relaxed_dev(first, ~0ull);
	loom_store_relaxed_dev(last, ~0ull);
	return clean;
}

/* Answers at a time: a worker that plays an accelerator is no longer in the way of others than this takes,
 * however many come together. */
#define SSR_ROUND 512u

/* How many answers came; waits for the first at most that long. */
LOOM_FN uint64_t ssr_storm_take(struct loom_ctx *c, struct ssr_storm *s, uint64_t timeout_ns)
{
	uint64_t n = 0;
	while (s->answered < s->posted && n < SSR_ROUND) {
		struct ssr_asked *a = ssr_asked(s, s->answered);
		int64_t got = 0;
		int rc = LOOM_CALL(qos, wait, c, a->id, n ? 1 : timeout_ns, &got);
		if (rc == LOOM_ETIMEDOUT || rc == LOOM_EINTR)
			break;
		if (rc || (a->want >= 0 ? got != a->want : got < 0 || (uint64_t)got >= s->plan.room) ||
		    (s->plan.device && a->service == LOOM_SERVICE_ALLOC && !ssr_storm_is_clean(c, &s->plan, got)))
			ssr_count_wrong(s->tally, a->service, rc ? rc : got);
		else if (a->service == LOOM_SERVICE_ALLOC)
			ssr_free_at(s)[s->held++] = (uint64_t)got;
		s->answered++;
		n++;
	}
	if (n && s->plan.endless) /* the host watches it */
		loom_store_relaxed_sys(&s->tally->done, s->answered);
	return n;
}

/* How long a worker rests that has nothing to do: one that paces itself and has all its answers knows. */
LOOM_FN uint64_t ssr_storm_pause(const struct loom_ctx *c, const struct ssr_storm *s)
{
	if (!s->plan.pause_ns || s->answered < s->posted || !ssr_storm_paces(c, &s->plan))
		return s->plan.pause_ns;
	uint64_t now = loom_clock_ns(c);
	return s->next_ns > now ? s->next_ns - now : 0;
}

/* What the host says meanwhile, which it does only where a storm has no end of its own: SSR_QUITS, SSR_IS_QUIET or 0. On a
 * GPU a look crosses the link, so most turns of the loop do without. */
enum { SSR_QUITS = 1, SSR_IS_QUIET };
LOOM_FN int ssr_storm_orders(const struct loom_ctx *c, struct ssr_control *k, const struct ssr_storm *s, uint32_t turn)
{
	if (loom_stopped(c) || s->answered >= s->limit)
		return SSR_QUITS;
#ifndef GPULOOM_DEV_CPU_H
	if (turn % 8)
		return 0;
#endif
	(void)turn;
	return !s->plan.endless ? 0 :
	       loom_load_relaxed_sys(&k->quit) ? SSR_QUITS :
	       loom_load_relaxed_sys(&k->quiet) ? SSR_IS_QUIET : 0;
}

LOOM_FN void workload_ssr_storm_kernel(struct loom_ctx *c)
{
	struct ssr_control *k = ssr_control(c);
	struct ssr_storm s = {};
	uint32_t turn = 0;
	int orders;
	if (c->lane)
		return;
	uint64_t cpu = ssr_own_clock();
	s.plan = *ssr_plan(c);
	s.tally = ssr_tally(c);
	s.asked = (struct ssr_asked *)ssr_own(c, &s.plan);
	s.limit = s.plan.endless ? ~0ull : ssr_share(s.plan.requests, c->worker, c->workers);
	ssr_begin(s.tally);
	while ((orders = ssr_storm_orders(c, k, &s, turn)) != SSR_QUITS) {
		if (orders == SSR_IS_QUIET) {
			while (ssr_storm_take(c, &s, 1) == SSR_ROUND)
				;
			ssr_rest(c, k, 1000000);
			continue;
		}
		uint32_t n = 0;
		while (ssr_storm_post(c, &s))
			n++;
		/* Nothing to post and nothing answered: an accelerator would stall. */
		uint64_t took = ssr_storm_take(c, &s, s.plan.pause_ns ? 1 : 100000);
		if (took == SSR_ROUND || (!took && !n))
			ssr_rest(c, k, ssr_storm_pause(c, &s));
		turn++;
	}
	s.tally->posted = s.posted;
	loom_store_relaxed_sys(&s.tally->done, s.answered);
	s.tally->cpu_ns = ssr_own_clock() - cpu;
}

#endif
