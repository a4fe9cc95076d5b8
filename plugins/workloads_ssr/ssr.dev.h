/* SPDX-License-Identifier: Apache-2.0 */
/* What the workloads that ask for services share on the workers' side. Device code. */
#ifndef WORKLOAD_SSR_DEV_H
#define WORKLOAD_SSR_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/qos.h>
#include <gpuloom/workload.h>
#endif

/* First in the workload's global block. The host stores the first line while workers run. */
struct ssr_control {
	uint32_t quit;  /* leave; who rests sleeps on this word */
	uint32_t quiet; /* go on, but ask for nothing */
	uint32_t pad0[14];
	uint32_t begun; /* workers that have begun the sample */
	uint32_t pad1[15];
	/* Constant. */
	uint64_t limit;    /* requests of each worker; 0: until `quit` */
	uint64_t pause_ns; /* how long a worker rests when nothing can go on; 0: it spins */
	uint64_t pace_ns;  /* from one request of the last tenant to the next; 0: at once */
	uint32_t tenants, service, window;
	uint32_t first_grant; /* of a worker among its tenant's */
	uint64_t bytes, room; /* of a request, and of a worker's buffer */
	uint64_t file_bytes;
	uint64_t data_at; /* of the workload's own, from here */
};

/* One per worker: its own block. */
struct ssr_tally {
	uint64_t done;   /* requests answered: the host reads while the worker runs */
	uint64_t wrong;  /* answers that were not right */
	uint64_t first_wrong; /* what the first of them was asked: service; and its answer */
	int64_t first_answer;
	uint64_t posted;
	uint64_t rounds; /* of a job that is repeated */
	uint64_t cpu_ns; /* of the thread that plays the worker, on the CPU */
	uint64_t sum;    /* of the answer, where there is one */
};

LOOM_FN struct ssr_control *ssr_control(const struct loom_ctx *c)
{
	return (struct ssr_control *)c->global[LOOM_WORKLOAD];
}

LOOM_FN struct ssr_tally *ssr_tally(const struct loom_ctx *c)
{
	return (struct ssr_tally *)c->own[LOOM_WORKLOAD];
}

LOOM_FN uint32_t ssr_tenant_of(const struct loom_ctx *c, const struct ssr_control *k)
{
	return (uint32_t)((uint64_t)c->worker * k->tenants / c->workers);
}

LOOM_FN int ssr_quits(const struct loom_ctx *c, struct ssr_control *k)
{
	return loom_load_relaxed_sys(&k->quit) || loom_stopped(c);
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
