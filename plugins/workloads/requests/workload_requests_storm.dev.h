/* SPDX-License-Identifier: Apache-2.0 */
/* requests_storm: posts requests as fast as they are answered, like ubench of the HISS paper, in which every access
 * is a request. Device code.
 *
 * A worker has up to `window` requests outstanding and takes answers in the order in which it has posted. It keeps
 * records of these requests in its part of its device's block. */
#ifndef WORKLOAD_REQUESTS_STORM_DEV_H
#define WORKLOAD_REQUESTS_STORM_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "requests.dev.h"
#endif

#define REQUEST_PAGE_BYTES 4096ull

/* A request in flight. `want` is the right answer; -1: any offset in the buffer is right. */
struct request_pending {
	uint64_t id;
	int64_t want;
	uint32_t service;
	uint32_t pad;
};

/* The state of a worker. */
struct request_storm {
	struct request_plan plan;
	struct request_counters *counters;
	struct request_pending *pending; /* [window] requests in flight; [window] offsets of heap pages follow */
	uint64_t limit;		 /* number of requests that the worker is to post */
	uint64_t posted, answered; /* numbers of posted and answered requests; those between are in flight */
	uint64_t page;		   /* index of the next page of the demand buffer */
	uint64_t held;		   /* number of heap pages to be freed, in request_free_at() */
	uint64_t next_ns;	   /* earliest time of a paced worker's next request */
};

LOOM_FN struct request_pending *request_pending(const struct request_storm *s, uint64_t i)
{
	return &s->pending[i % s->plan.window];
}

LOOM_FN uint64_t *request_free_at(const struct request_storm *s)
{
	return (uint64_t *)(s->pending + s->plan.window);
}

/* Indices of a worker's grants, in the order in which grants() on the host makes them. */
enum { REQUEST_GRANT_MEMORY = 0, REQUEST_GRANT_HANDLE, REQUEST_GRANTS };

LOOM_FN int64_t request_storm_next(struct loom_ctx *c, struct request_storm *s, struct loom_request *r)
{
	const struct request_plan *k = &s->plan;
	uint32_t grant = request_number_of(c, k) * REQUEST_GRANTS;
	r->service = k->service;
	r->buffer = grant + REQUEST_GRANT_MEMORY;
	r->handle = grant + REQUEST_GRANT_HANDLE;
	r->reserved = 0;
	r->offset = 0;
	r->bytes = k->bytes;
	r->argument = 0;
	switch (k->service) {
	case LOOM_SERVICE_SIGNAL:
		r->argument = 10; /* SIGUSR1 */
		return 0;
	case LOOM_SERVICE_FAULT: /* stream through the buffer, then evict it as a whole */
		r->offset = s->page * REQUEST_PAGE_BYTES;
		r->bytes = REQUEST_PAGE_BYTES;
		if (s->page++ < k->room / REQUEST_PAGE_BYTES)
			return k->device ? -1 : (int64_t)REQUEST_PAGE_BYTES;
		r->service = LOOM_SERVICE_EVICT;
		r->offset = 0;
		r->bytes = k->room;
		s->page = 0;
		return 0;
	case LOOM_SERVICE_ALLOC:
		if (!s->held)
			return -1;
		r->service = LOOM_SERVICE_FREE;
		r->offset = request_free_at(s)[--s->held];
		return (int64_t)((k->bytes + REQUEST_PAGE_BYTES - 1) / REQUEST_PAGE_BYTES * REQUEST_PAGE_BYTES);
	case LOOM_SERVICE_READ:
	case LOOM_SERVICE_WRITE:
		r->offset = loom_random_below(c, (uint32_t)(k->room / k->bytes)) * k->bytes;
		r->argument = loom_random_below(c, (uint32_t)(k->file_bytes / k->bytes)) * k->bytes;
		return (int64_t)k->bytes;
	case LOOM_SERVICE_MIGRATE:
		if (k->device) { /* fault in a page, then move it out */
			r->service = s->page & 1 ? LOOM_SERVICE_MIGRATE : LOOM_SERVICE_FAULT;
			r->offset = s->page++ / 2 % (k->room / REQUEST_PAGE_BYTES) * REQUEST_PAGE_BYTES;
			r->bytes = REQUEST_PAGE_BYTES;
			return r->service == LOOM_SERVICE_MIGRATE ? 1 : -1;
		}
		return (int64_t)((k->bytes + REQUEST_PAGE_BYTES - 1) / REQUEST_PAGE_BYTES);
	case LOOM_SERVICE_SEND:
		return (int64_t)k->bytes;
	default:
		return 0;
	}
}

/* Returns whether this worker's tenant is paced. */
LOOM_FN int request_storm_paces(const struct loom_ctx *c, const struct request_plan *plan)
{
	return plan->pace_ns && request_tenant_of(c, plan) + 1 == plan->tenants;
}

/* Posts a request if the window and the pace allow it. Returns 1 if a request was posted. */
LOOM_FN int request_storm_post(struct loom_ctx *c, struct request_storm *s)
{
	struct request_pending *a = request_pending(s, s->posted);
	struct loom_request r;
	if (s->posted - s->answered >= s->plan.window || s->posted >= s->limit)
		return 0;
	if (request_storm_paces(c, &s->plan)) {
		uint64_t now = loom_clock_ns(c);
		if (now < s->next_ns)
			return 0;
		s->next_ns = (s->next_ns ? s->next_ns : now) + s->plan.pace_ns;
	}
	a->want = request_storm_next(c, s, &r);
	a->service = r.service;
	if (LOOM_CALL(qos, request, c, &r, &a->id) != 0) {
		/* The window is not larger than the ring, so this is an error. */
		request_count_wrong(s->counters, r.service, 0);
		return 0;
	}
	s->posted++;
	return 1;
}

/* Returns 1 if the first and the last word of an allocated page in device memory are 0. Overwrites both words. */
LOOM_FN int request_storm_is_clean(const struct loom_ctx *c, const struct request_plan *k, int64_t at)
{
	char *room = (char *)c->on_device[LOOM_WORKLOAD] + k->room_at + (c->worker - c->first) * k->room;
	uint64_t *first = (uint64_t *)(void *)(room + at), *last = first + REQUEST_PAGE_BYTES / sizeof(*first) - 1;
	int clean = !loom_load_relaxed_dev(first) && !loom_load_relaxed_dev(last);
	loom_store_relaxed_dev(first, ~0ull);
	loom_store_relaxed_dev(last, ~0ull);
	return clean;
}

/* Upper limit on the answers that a worker takes at once. It bounds how long a worker that emulates an accelerator
 * occupies its core. */
#define REQUEST_BATCH 512u

/* Takes answers. Waits at most `timeout_ns` for the first one. Returns the number of answers. */
LOOM_FN uint64_t request_storm_collect(struct loom_ctx *c, struct request_storm *s, uint64_t timeout_ns)
{
	uint64_t n = 0;
	while (s->answered < s->posted && n < REQUEST_BATCH) {
		struct request_pending *a = request_pending(s, s->answered);
		int64_t got = 0;
		int rc = LOOM_CALL(qos, wait, c, a->id, n ? 1 : timeout_ns, &got);
		if (rc == LOOM_ETIMEDOUT || rc == LOOM_EINTR)
			break;
		if (rc || (a->want >= 0 ? got != a->want : got < 0 || (uint64_t)got >= s->plan.room) ||
		    (s->plan.device && a->service == LOOM_SERVICE_ALLOC && !request_storm_is_clean(c, &s->plan, got)))
			request_count_wrong(s->counters, a->service, rc ? rc : got);
		else if (a->service == LOOM_SERVICE_ALLOC)
			request_free_at(s)[s->held++] = (uint64_t)got;
		s->answered++;
		n++;
	}
	if (n && s->plan.endless) /* the host reads `done` during such a sample */
		loom_store_relaxed_sys(&s->counters->done, s->answered);
	return n;
}

/* Returns how long an idle worker sleeps. A paced worker that has all its answers sleeps until its next request. */
LOOM_FN uint64_t request_storm_pause(const struct loom_ctx *c, const struct request_storm *s)
{
	if (!s->plan.pause_ns || s->answered < s->posted || !request_storm_paces(c, &s->plan))
		return s->plan.pause_ns;
	uint64_t now = loom_clock_ns(c);
	return s->next_ns > now ? s->next_ns - now : 0;
}

/* Returns REQUEST_QUIT, REQUEST_QUIET or 0. The host sends commands only to an endless storm. A poll by a GPU crosses
 * the link to the host, so most iterations skip it. */
enum { REQUEST_QUIT = 1, REQUEST_QUIET };
LOOM_FN int request_storm_command(const struct loom_ctx *c, struct request_control *k, const struct request_storm *s,
				  uint32_t iteration)
{
	if (loom_stopped(c) || s->answered >= s->limit)
		return REQUEST_QUIT;
#ifndef GPULOOM_DEV_CPU_H
	if (iteration % 8)
		return 0;
#endif
	(void)iteration;
	return !s->plan.endless ? 0 :
	       loom_load_relaxed_sys(&k->quit) ? REQUEST_QUIT :
	       loom_load_relaxed_sys(&k->quiet) ? REQUEST_QUIET : 0;
}

LOOM_FN void workload_requests_storm_kernel(struct loom_ctx *c)
{
	struct request_control *k = request_control(c);
	struct request_storm s = {};
	uint32_t iteration = 0;
	int command;
	if (c->lane)
		return;
	uint64_t cpu = request_cpu_clock();
	s.plan = *request_plan(c);
	s.counters = request_counters(c);
	s.pending = (struct request_pending *)request_own(c, &s.plan);
	s.limit = s.plan.endless ? ~0ull : request_share(s.plan.requests, c->worker, c->workers);
	request_start(s.counters);
	while ((command = request_storm_command(c, k, &s, iteration)) != REQUEST_QUIT) {
		if (command == REQUEST_QUIET) {
			while (request_storm_collect(c, &s, 1) == REQUEST_BATCH)
				;
			request_idle(c, k, 1000000);
			continue;
		}
		uint32_t n = 0;
		while (request_storm_post(c, &s))
			n++;
		/* If nothing was posted or answered, an accelerator would stall, so the worker sleeps. */
		uint64_t took = request_storm_collect(c, &s, s.plan.pause_ns ? 1 : 100000);
		if (took == REQUEST_BATCH || (!took && !n))
			request_idle(c, k, request_storm_pause(c, &s));
		iteration++;
	}
	s.counters->posted = s.posted;
	loom_store_relaxed_sys(&s.counters->done, s.answered);
	s.counters->cpu_ns = request_cpu_clock() - cpu;
}

#endif
