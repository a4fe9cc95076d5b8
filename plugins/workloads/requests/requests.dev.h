/* SPDX-License-Identifier: Apache-2.0 */
/* Workers' part of the workloads that post service requests. Device code. */
#ifndef WORKLOAD_REQUESTS_DEV_H
#define WORKLOAD_REQUESTS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/qos.h>
#include <gpuloom/workload.h>
#endif

/* At the start of the workload's block for the stack. The host stores these words while workers run. */
struct request_control {
	uint32_t quit;  /* 1: exit; idle workers sleep on this word */
	uint32_t quiet; /* 1: continue without requests */
	uint32_t pad[14];
};

/* At the start of each device's block. Constant. */
struct request_plan {
	uint64_t endless;  /* 1: run until `quit` */
	uint64_t requests; /* otherwise: number of requests of all workers together */
	uint64_t pause_ns; /* sleep of a worker that can neither post nor receive; 0: it spins */
	uint64_t pace_ns;  /* time from one request of the last tenant to the next; 0: at once */
	uint32_t tenants, service, window;
	uint32_t device; /* 1: the workers' buffers are in this block, behind the parts of the workers */
	uint64_t bytes, room; /* size of a request; size of a worker's buffer */
	uint64_t file_bytes;
	uint64_t own_bytes; /* size of each worker's part, which follow this struct */
	uint64_t room_at; /* offset of the first worker's buffer; used with `device` */
	uint64_t pad[5];
};

/* A worker's block, which the host reads. */
struct request_counters {
	uint64_t done;   /* number of answered requests; the host reads it while the worker runs */
	uint64_t started;  /* 1: the worker has started the sample; the host waits for that */
	uint64_t wrong;  /* number of wrong answers */
	uint64_t first_wrong; /* service of the first wrong answer, and the answer */
	int64_t first_answer;
	uint64_t posted;
	uint64_t rounds; /* rounds of a repeated job */
	uint64_t cpu_ns; /* CPU time of the worker's thread, on a CPU */
	uint64_t sum;    /* answer of the job, if it has one */
	uint64_t pad[7];
};

LOOM_FN struct request_control *request_control(const struct loom_ctx *c)
{
	return (struct request_control *)c->global[LOOM_WORKLOAD];
}

LOOM_FN struct request_counters *request_counters(const struct loom_ctx *c)
{
	return (struct request_counters *)c->own[LOOM_WORKLOAD];
}

LOOM_FN const struct request_plan *request_plan(const struct loom_ctx *c)
{
	return (const struct request_plan *)c->on_device[LOOM_WORKLOAD];
}

/* Returns the worker's part of its device's block. */
LOOM_FN void *request_own(const struct loom_ctx *c, const struct request_plan *plan)
{
	return (char *)(request_plan(c) + 1) + (c->worker - c->first) * plan->own_bytes;
}

LOOM_FN uint32_t request_tenant_of(const struct loom_ctx *c, const struct request_plan *plan)
{
	return (uint32_t)((uint64_t)c->worker * plan->tenants / c->workers);
}

/* Returns the worker's number within its tenant. */
LOOM_FN uint32_t request_number_of(const struct loom_ctx *c, const struct request_plan *plan)
{
	uint32_t tenant = request_tenant_of(c, plan);
	return c->worker - (uint32_t)(((uint64_t)tenant * c->workers + plan->tenants - 1) / plan->tenants);
}

/* Returns the worker's share of `n` items. */
LOOM_FN uint64_t request_share(uint64_t n, uint32_t worker, uint32_t workers)
{
	return n / workers + (worker < n % workers);
}

/* Called before the first request. Release: pairs with the host's acquire in run_sample(), which starts the clock when
 * all workers have started. */
LOOM_FN void request_start(struct request_counters *t)
{
	loom_store_release_sys(&t->started, (uint64_t)1);
}

/* A worker on a CPU sleeps while it waits, because an accelerator would not occupy a core, either. */
LOOM_FN void request_idle(const struct loom_ctx *c, struct request_control *k, uint64_t ns)
{
	if (ns)
		loom_sleep_on(c, &k->quit, 0, ns);
	else
		loom_pause(c);
}

#ifdef GPULOOM_DEV_CPU_H
LOOM_FN uint64_t request_cpu_clock(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
#else
LOOM_FN uint64_t request_cpu_clock(void)
{
	return 0;
}
#endif

LOOM_FN void request_count_wrong(struct request_counters *t, uint32_t service, int64_t answer)
{
	if (t->wrong++)
		return;
	t->first_wrong = service;
	t->first_answer = answer;
}

#endif
