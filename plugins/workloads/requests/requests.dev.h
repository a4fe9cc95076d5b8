/* SPDX-License-Identifier: Apache-2.0 */
/* Device code that the workloads with service requests share. */
#ifndef WORKLOAD_REQUESTS_DEV_H
#define WORKLOAD_REQUESTS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/qos.h>
#include <gpuloom/workload.h>
#endif

/* Control words at the start of the workload's block for the stack. The host stores them while workers run. */
struct request_control {
	uint32_t quit;  /* 1: workers exit; idle workers sleep on this word */
	uint32_t quiet; /* 1: workers continue without requests */
	uint32_t pad[14];
};

/* The job's constants, at the start of each device's block. */
struct request_plan {
	uint64_t endless;  /* 1: run until `quit` */
	uint64_t requests; /* if not endless: number of requests of all workers together */
	uint64_t pause_ns; /* sleep of a worker that can neither post nor receive; 0: it spins */
	uint64_t pace_ns;  /* ns between two requests of a worker of the last tenant; 0: no pause */
	uint32_t tenants, service, window;
	uint32_t device; /* 1: the workers' buffers are in this block, behind the workers' parts */
	uint64_t bytes, room; /* size of a request; size of a worker's buffer */
	uint64_t file_bytes;
	uint64_t own_bytes; /* size of a worker's part of this block; the parts follow this struct */
	uint64_t room_at; /* with `device`: offset of the first worker's buffer in this block */
	uint64_t pad[5];
};

/* A worker's block. The host reads it. */
struct request_counters {
	uint64_t done;   /* number of answered requests, which the host also reads during a sample */
	uint64_t started;  /* 1: the worker has started the sample; the host waits for this */
	uint64_t wrong;  /* number of wrong answers */
	uint64_t first_wrong; /* service of the first wrong answer; `first_answer` is that answer */
	int64_t first_answer;
	uint64_t posted;
	uint64_t rounds; /* number of rounds of a repeated job */
	uint64_t cpu_ns; /* CPU time of the worker's thread in ns; 0 on GPUs */
	uint64_t sum;    /* the job's answer, if it has one */
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

/* Returns this worker's part of its device's block. */
LOOM_FN void *request_own(const struct loom_ctx *c, const struct request_plan *plan)
{
	return (char *)(request_plan(c) + 1) + (c->worker - c->first) * plan->own_bytes;
}

LOOM_FN uint32_t request_tenant_of(const struct loom_ctx *c, const struct request_plan *plan)
{
	return (uint32_t)((uint64_t)c->worker * plan->tenants / c->workers);
}

/* Returns this worker's index among the workers of its tenant. */
LOOM_FN uint32_t request_number_of(const struct loom_ctx *c, const struct request_plan *plan)
{
	uint32_t tenant = request_tenant_of(c, plan);
	return c->worker - (uint32_t)(((uint64_t)tenant * c->workers + plan->tenants - 1) / plan->tenants);
}

/* Returns how many of `n` items are a worker's share. */
LOOM_FN uint64_t request_share(uint64_t n, uint32_t worker, uint32_t workers)
{
	return n / workers + (worker < n % workers);
}

/* Called before the first request. Release: pairs with the host's acquire in run_sample(), which starts the clock
 * when all workers have started. */
LOOM_FN void request_start(struct request_counters *t)
{
	loom_store_release_sys(&t->started, (uint64_t)1);
}

/* Waits for at most `ns`. A worker on a CPU sleeps, because an accelerator that waits does not occupy a core,
 * either. */
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
