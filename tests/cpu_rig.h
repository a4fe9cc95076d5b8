/* SPDX-License-Identifier: Apache-2.0 */
/* Drives CPU devices the way the core does, for tests: open, shape, memory, build, launch, samples,
 * retire. One segment holds everything: control words, counters, one global block (`board`) and a
 * registry with one public block per worker. */
#ifndef LOOM_TEST_CPU_RIG_H
#define LOOM_TEST_CPU_RIG_H

#include <gpuloom/dev/probe.h>
#include <gpuloom/device.h>
#include <gpuloom/sched.h>
#include <gpuloom/workload.h>

#include "fake_host.h"

#define RIG_DEVICES 4
#ifndef RIG_WORKERS
#define RIG_WORKERS 64
#endif
#define SECOND      1000000000ull

struct rig_shared {
	struct loom_ctl ctl;
	struct loom_counters counters[RIG_WORKERS];
	loom_ref registry[RIG_WORKERS];
	struct loom_probe probe;
	char block[RIG_WORKERS][64]; /* public blocks of the scheduler */
	char board[65536] __attribute__((aligned(64)));
};

struct rig {
	const struct loom_plugin *plugin;
	const struct loom_device_ops *ops;
	uint32_t n;
	void *self[RIG_DEVICES];
	char settings[RIG_DEVICES][128];
	uint64_t opts[RIG_DEVICES][32];
	struct loom_device_shape shape[RIG_DEVICES];
	struct loom_layout layout;
	struct loom_memory memory;      /* of device 0 unless the test brings its own segment */
	struct loom_segment segment[3]; /* 1: struct rig_shared; 2: the test's own */
	struct rig_shared *shared;      /* the host's view */
	loom_ref probe, global[LOOM_KINDS], registry[LOOM_KINDS];
	uint64_t local_bytes[LOOM_KINDS];
	struct loom_sched_dev sched;
	struct loom_device_code code;
	struct loom_plugin policy;
	struct loom_launch launch[RIG_DEVICES];
	struct loom_error err;
};

#define RIG_REF(member) LOOM_REF(1, offsetof(struct rig_shared, member))

/* Opens `n` devices; '|' in the settings stands between those of one and the next, and the last
 * hold for the rest. */
FAKE_FN int rig_open(struct rig *r, uint32_t n, const char *settings)
{
	memset(r, 0, sizeof(*r));
	r->plugin = fake_load("device_cpu");
	r->ops = r->plugin->ops;
	for (r->n = 0; r->n < n; r->n++) {
		uint32_t i = r->n;
		size_t length = strcspn(settings, "|");
		snprintf(r->settings[i], sizeof(r->settings[i]), "%.*s", (int)length, settings);
		settings += settings[length] ? length + 1 : 0;
		fake_options(r->plugin, r->opts[i], r->settings[i]);
		int code = r->ops->create(&fake_host, r->opts[i], i, n, &r->self[i], &r->err);
		if (code)
			return code;
		snprintf(r->shape[i].name, sizeof(r->shape[i].name), "cpu:%u", i);
		r->ops->shape(r->self[i], &r->shape[i], NULL);
		r->shape[i].first_worker = r->layout.workers;
		r->layout.workers += r->shape[i].workers;
	}
	r->layout.size = sizeof(r->layout);
	r->layout.devices = n;
	r->layout.device = r->shape;
	r->layout.seed = 42;
	return 0;
}

/* The layout in the host's view of the segment that the rig uses. */
FAKE_FN void rig_set_segment(struct rig *r, const struct loom_segment *segment)
{
	r->segment[1] = *segment;
	r->shared = (struct rig_shared *)((char *)segment->memory->host + segment->offset);
	for (uint32_t i = 0; i < r->layout.workers; i++)
		r->shared->registry[i] = RIG_REF(block) + 64 * i;
	r->probe = RIG_REF(probe);
	r->global[LOOM_SCHED] = RIG_REF(board);
	r->registry[LOOM_SCHED] = RIG_REF(registry);
}

/* One memory of device 0, as the p2p transport would make it. */
FAKE_FN int rig_memory(struct rig *r)
{
	int code = r->ops->mem_alloc(r->self[0], sizeof(struct rig_shared), LOOM_MEMORY_HOST,
				     &r->memory, &r->err);
	for (uint32_t i = 1; !code && i < r->n; i++)
		code = r->ops->mem_map(r->self[i], &r->memory, &r->err);
	if (!code)
		rig_set_segment(r, &(struct loom_segment){.memory = &r->memory,
							  .bytes = sizeof(struct rig_shared),
							  .owner = -1});
	return code;
}

FAKE_FN int rig_build(struct rig *r, void (*run)(struct loom_ctx *c))
{
	const struct loom_plugin *policy[LOOM_KINDS] = {[LOOM_SCHED] = &r->policy};
	struct loom_program program = {
	    .size = sizeof(program), .layout = &r->layout, .policy = policy};
	r->sched = (struct loom_sched_dev){.size = sizeof(r->sched), .run = run};
	r->code = (struct loom_device_code){.size = sizeof(r->code), .cpu = &r->sched};
	r->policy.name = "sched_test";
	r->policy.dev = &r->code;
	int code = 0;
	for (uint32_t i = 0; !code && i < r->n; i++)
		code = r->ops->build(r->self[i], &program, &r->err);
	return code;
}

FAKE_FN int rig_launch(struct rig *r, enum loom_entry entry)
{
	int code = 0;
	memset(&r->shared->ctl, 0, sizeof(r->shared->ctl));
	for (uint32_t i = 0; !code && i < r->n; i++) {
		r->launch[i] = (struct loom_launch){.size = sizeof(r->launch[i]),
						    .entry = entry,
						    .device = i,
						    .layout = &r->layout,
						    .segment = r->segment,
						    .segments = r->segment[2].memory ? 3 : 2,
						    .ctl = RIG_REF(ctl),
						    .counters = RIG_REF(counters),
						    .probe = r->probe,
						    .global = r->global,
						    .registry = r->registry,
						    .local_bytes = r->local_bytes};
		code = r->ops->launch(r->self[i], &r->launch[i], &r->err);
	}
	return code;
}

FAKE_FN void rig_phase(struct rig *r, uint32_t phase)
{
	__atomic_store_n(&r->shared->ctl.phase, phase, __ATOMIC_RELEASE);
}

FAKE_FN int rig_ready(struct rig *r, uint32_t sample)
{
	int code = 0;
	r->shared->ctl.sample = sample;
	rig_phase(r, LOOM_PHASE_READY(sample));
	for (uint32_t i = 0; !code && i < r->n; i++)
		code = r->ops->ready(r->self[i], 20 * SECOND, &r->err);
	return code;
}

FAKE_FN int rig_go(struct rig *r, uint32_t sample)
{
	int code = 0;
	rig_phase(r, LOOM_PHASE_GO(sample));
	for (uint32_t i = 0; !code && i < r->n; i++)
		code = r->ops->go(r->self[i], &r->err);
	return code;
}

FAKE_FN int rig_wait(struct rig *r, uint64_t timeout_ns, uint64_t *end_ns)
{
	int code = 0;
	*end_ns = 0;
	for (uint32_t i = 0; !code && i < r->n; i++) {
		uint64_t end = 0;
		uint32_t left = 0; /* each worker that leaves because of a stop may end a wait */
		do
			code = r->ops->wait(r->self[i], timeout_ns, &end, &r->err);
		while (code == LOOM_EAGAIN && r->shared->ctl.stop && left++ < RIG_WORKERS);
		if (end > *end_ns)
			*end_ns = end;
	}
	return code;
}

FAKE_FN int rig_sample(struct rig *r, uint32_t sample)
{
	uint64_t end;
	int code = rig_ready(r, sample);
	if (!code)
		code = rig_go(r, sample);
	return code ? code : rig_wait(r, 30 * SECOND, &end);
}

FAKE_FN int rig_retire(struct rig *r, uint64_t timeout_ns)
{
	int first = 0;
	rig_phase(r, LOOM_PHASE_RETIRE);
	for (uint32_t i = 0; i < r->n; i++) {
		int code = r->ops->retire(r->self[i], timeout_ns, &r->err);
		if (!first)
			first = code;
	}
	return first;
}

FAKE_FN void rig_close(struct rig *r)
{
	if (r->memory.host) {
		for (uint32_t i = 1; i < r->n; i++)
			r->ops->mem_unmap(r->self[i], &r->memory);
		r->ops->mem_free(r->self[0], &r->memory);
	}
	for (uint32_t i = 0; i < r->n; i++)
		r->ops->destroy(r->self[i]);
}

#endif
