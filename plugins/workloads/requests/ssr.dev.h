/* SPDX-License-Identifier: Apache-2.0 */
/* What the workloads that ask for services share on the workers' side. Device code. */
#ifndef WORKLOAD_SSR_DEV_H
#define WORKLOAD_SSR_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/qos.h>
#include <gpuloom/workload.h>
#endif

/* First in the workload's block for the stack: what the host stores while workers run. */
struct ssr_control {
	uint32_t quit;  /* leave; who rests sleeps on this word */
	uint32_t quiet; /* go on, but ask for nothing */
	uint32_t pad[14];
};

/* First in each device's block, near its workers. Constant. */
struct ssr_plan {
	uint64_t endless;  /* 1: until `quit` */
	uint64_t requests; /* else: of all workers together */
	uint64_t pause_ns; /* how long a worker rests when nothing can go on; 0: it spins */
	uint64_t pace_ns;  /* from one request of the last tenant to the next; 0: at once */
	uint32_t tenants, service, window;
	uint32_t device; /* 1: the workers' buffers are in this block, behind what is of each worker */
	uint64_t bytes, room; /* of a request, and of a worker's buffer */
	uint64_t file_bytes;
	uint64_t own_bytes; /* of each worker, behind this */
	uint64_t room_at; /* with `near`: the first worker's, from here */
	uint64_t pad[5];
};

/* One per worker, its own block, which the host sees. */
struct ssr_tally {
	uint64_t done;   /* requests answered: the host reads while the worker runs */
	uint64_t begun;  /* 1: the worker has begun the sample. The host waits for that */
	uint64_t wrong;  /* answers that were not right */
	uint64_t first_wrong; /* what the first of them was asked: service; and its answer */
	int64_t first_answer;
	uint64_t posted;
	uint64_t rounds; /* of a job that is repeated */
	uint64_t cpu_ns; /* of the thread that plays the worker, on the CPU */
	uint64_t sum;    /* of the answer, where there is one */
	uint64_t pad[7];
};

LOOM_FN struct ssr_control *ssr_control(const struct loom_ctx *c)
{
	return (struct ssr_control *)c->global[LOOM_WORKLOAD];
}

LOOM_FN struct ssr_tally *ssr_tally(const struct loom_ctx *c)
{
	return (struct ssr_tally *)c->own[LOOM_WORKLOAD];
}

LOOM_FN const struct ssr_plan *ssr_plan(const struct loom_ctx *c)
{
	return (const struct ssr_plan *)c->on_device[LOOM_WORKLOAD];
}

/* The worker's part of its device's block. */
LOOM_FN void *ssr_own(const struct loom_ctx *c, const struct ssr_plan *plan)
{
	return (char *)(ssr_plan(c) + 1) + (c->worker - c->first) * plan->own_bytes;
}

LOOM_FN uint32_t ssr_tenant_of(const struct loom_ctx *c, const struct ssr_plan *plan)
{
	return (uint32_t)((uint64_t)c->worker * plan->tenants / c->workers);
}

/* The worker's number among its tenant's. */
LOOM_FN uint32_t ssr_number_of(const struct loom_ctx *c, const struct ssr_plan *plan)
{
	uint32_t tenant = ssr_tenant_of(c, plan);
	return c->worker - (uint32_t)(((uint64_t)tenant * c->workers + plan->tenants - 1) / plan->tenants);
}

/* Its share of `n` that all workers have together. */
LOOM_FN uint64_t ssr_share(uint64_t n, uint32_t worker, uint32_t workers)
{
	return n / workers + (worker < n % workers);
}

/* Before the first request. Release: the host's clock of the sample begins when all have said so. */
LOOM_FN void ssr_begin(struct ssr_tally *t)
{
	loom_store_release_sys(&t->begun, (uint64_t)1);
}

/* A worker on the CPU that only waits is in the way of others, as no accelerator would be. */
LOOM_FN void ssr_rest(const struct loom_ctx *c, struct ssr_control *k, uint64_t ns)
{
	if (ns)
		loom_sleep_on(c, &k->quit, 0, ns);
	else
		loom_pause(c);
}

#ifdef GPULOOM_DEV_CPU_H
LOOM_FN uint64_t ssr_own_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
#else
LOOM_FN uint64_t ssr_own_clock(void)
{
	return 0;
}
#endif

LOOM_FN void ssr_count_wrong(struct ssr_tally *t, uint32_t service, int64_t answer)
{
	if (t->wrong++)
		return;
	t->first_wrong = service;
	t->first_answer = answer;
}

#endif
