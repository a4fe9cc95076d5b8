/* SPDX-License-Identifier: Apache-2.0 */
#include "rig/drive.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WAIT_NS 30000000000ull

static int failed(struct loom__drive *d, const char *what, int code)
{
	if (code)
		d->what = what;
	return code;
}

int loom__drive_open(struct loom__drive *d, const struct loom_host *host, uint32_t all, void *opts)
{
	uint32_t i = d->n;
	d->ops = d->plugin->ops;
	d->opts[i] = opts;
	d->n++;
	int code = d->ops->create(host, opts, i, all, &d->self[i], &d->err);
	if (code) {
		d->self[i] = NULL;
		return failed(d, "create()", code);
	}
	snprintf(d->shape[i].name, sizeof(d->shape[i].name), "test:%u", i);
	code = d->ops->shape(d->self[i], &d->shape[i], &d->err);
	d->shape[i].first_worker = d->layout.workers;
	d->layout.workers += d->shape[i].workers;
	d->layout.size = sizeof(d->layout);
	d->layout.devices = d->n;
	d->layout.device = d->shape;
	d->layout.seed = d->layout.seed ? d->layout.seed : 42;
	return failed(d, "shape()", code);
}

int loom__drive_memory(struct loom__drive *d)
{
	int code =
	    d->ops->mem_alloc(d->self[0], sizeof(struct loom__drive_shared), LOOM_MEMORY_HOST, &d->memory, &d->err);
	if (code)
		return failed(d, "mem_alloc()", code);
	for (uint32_t i = 1; !code && i < d->n; i++) {
		code = d->ops->mem_map(d->self[i], &d->memory, &d->err);
		d->mapped += !code;
	}
	if (code || !d->memory.host)
		return failed(d, "mem_map()", code);
	d->segment[1] =
	    (struct loom_segment){.memory = &d->memory, .bytes = sizeof(struct loom__drive_shared), .owner = -1};
	d->shared = d->memory.host;
	for (uint32_t i = 0; i < d->layout.workers; i++)
		d->shared->registry[i] = LOOM__DRIVE_REF(block) + 64 * i;
	d->probe = LOOM__DRIVE_REF(probe);
	d->global[LOOM_SCHED] = LOOM__DRIVE_REF(board);
	d->registry[LOOM_SCHED] = LOOM__DRIVE_REF(registry);
	return 0;
}

int loom__drive_build(struct loom__drive *d, void (*run)(struct loom_ctx *c))
{
	struct loom_program program = {.size = sizeof(program), .layout = &d->layout, .policy = d->policy};
	int code = 0;
	d->sched = (struct loom_sched_dev){.size = sizeof(d->sched), .run = run};
	d->code = (struct loom_device_code){.size = sizeof(d->code), .cpu = &d->sched};
	d->run.name = "sched_test";
	d->run.dev = &d->code;
	d->policy[LOOM_SCHED] = &d->run;
	for (uint32_t i = 0; !code && i < d->n; i++)
		code = d->ops->build(d->self[i], &program, &d->err);
	return failed(d, "build()", code);
}

int loom__drive_launch(struct loom__drive *d, enum loom_entry entry)
{
	int code = 0;
	memset(&d->shared->ctl, 0, sizeof(d->shared->ctl));
	for (uint32_t i = 0; !code && i < d->n; i++) {
		d->launch[i] = (struct loom_launch){.size = sizeof(d->launch[i]),
						    .entry = entry,
						    .device = i,
						    .layout = &d->layout,
						    .segment = d->segment,
						    .segments = d->segment[2].memory ? 3 : 2,
						    .ctl = LOOM__DRIVE_REF(ctl),
						    .counters = LOOM__DRIVE_REF(counters),
						    .probe = d->probe,
						    .global = d->global,
						    .on_device = d->on_device[i],
						    .registry = d->registry,
						    .local_bytes = d->local_bytes,
						    .attachment = d->attachment,
						    .attachments = d->attachment != NULL};
		code = d->ops->launch(d->self[i], &d->launch[i], &d->err);
	}
	return failed(d, "launch()", code);
}

static void phase(struct loom__drive *d, uint32_t value)
{
	__atomic_store_n(&d->shared->ctl.phase, value, __ATOMIC_RELEASE);
}

int loom__drive_ready(struct loom__drive *d, uint32_t sample)
{
	int code = 0;
	d->shared->ctl.sample = sample;
	phase(d, LOOM_PHASE_READY(sample));
	for (uint32_t i = 0; !code && i < d->n; i++)
		code = d->ops->ready(d->self[i], WAIT_NS, &d->err);
	return failed(d, "ready()", code);
}

int loom__drive_go(struct loom__drive *d, uint32_t sample)
{
	int code = 0;
	phase(d, LOOM_PHASE_GO(sample));
	for (uint32_t i = 0; !code && i < d->n; i++)
		code = d->ops->go(d->self[i], &d->err);
	return failed(d, "go()", code);
}

int loom__drive_wait(struct loom__drive *d, uint64_t timeout_ns, uint64_t *end_ns)
{
	int code = 0;
	*end_ns = 0;
	for (uint32_t i = 0; !code && i < d->n; i++) {
		uint64_t end = 0;
		uint32_t left = 0; /* a worker that leaves after a stop may end a wait */
		do
			code = d->ops->wait(d->self[i], timeout_ns, &end, &d->err);
		while (code == LOOM_EAGAIN && d->shared->ctl.stop && left++ < d->layout.workers + 50);
		*end_ns = end > *end_ns ? end : *end_ns;
	}
	return failed(d, "wait()", code);
}

int loom__drive_sample(struct loom__drive *d, uint32_t sample, uint64_t *end_ns)
{
	int code = loom__drive_ready(d, sample);
	if (!code)
		code = loom__drive_go(d, sample);
	return code ? code : loom__drive_wait(d, WAIT_NS, end_ns);
}

int loom__drive_retire(struct loom__drive *d, uint64_t timeout_ns)
{
	int first = 0;
	phase(d, LOOM_PHASE_RETIRE);
	for (uint32_t i = 0; i < d->n; i++) {
		int code = d->ops->retire(d->self[i], timeout_ns, &d->err);
		first = first ? first : code;
	}
	return failed(d, "retire()", first);
}

void loom__drive_close(struct loom__drive *d)
{
	for (uint32_t i = 0; i < d->mapped; i++)
		d->ops->mem_unmap(d->self[i + 1], &d->memory);
	if (d->memory.host)
		d->ops->mem_free(d->self[0], &d->memory);
	for (uint32_t i = 0; i < d->n; i++) {
		if (d->self[i])
			d->ops->destroy(d->self[i]);
		free(d->opts[i]);
	}
	memset(d, 0, sizeof(*d));
}
