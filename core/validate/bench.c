/* SPDX-License-Identifier: Apache-2.0 */
#include "validate/bench.h"

#include <stdio.h>
#include <string.h>

#define REF(member) LOOM_REF(1, offsetof(struct loom__bench_shared, member))

int loom__bench_must(struct loom__bench *b, const char *what, int code)
{
	if (!code)
		return 0;
	int verdict = loom__judge_error(b->t, what, code, &b->err);
	return verdict ? verdict : loom__fault(b->t, "%s fails: %s", what, b->err.text);
}

/* Small enough for any machine, by the names that such options usually have. */
static int settle(struct loom__bench *b, uint32_t i, const char *const *wish, int *missing)
{
	struct loom__settings *s = &b->settings[i];
	if (loom__settings_create(b->t, s))
		return loom__skip(b->t, "out of memory");
	loom__settings_name(b->t, s, "oversubscribe", "yes");
	for (; wish && wish[0]; wish += 2)
		if (loom__settings_name(b->t, s, wish[0], wish[1]) && missing)
			*missing = 1;
	return 0;
}

int loom__bench_open(struct loom__bench *b, struct loom__trial *t, uint32_t n,
		     const char *const *wish, int *missing)
{
	memset(b, 0, sizeof(*b));
	b->t = t;
	b->ops = t->plugin->ops;
	for (b->n = 0; b->n < n; b->n++) {
		uint32_t i = b->n;
		int verdict = settle(b, i, wish, missing);
		if (verdict)
			return verdict;
		b->err = (struct loom_error){0};
		int code =
		    b->ops->create(&t->host.table, b->settings[i].opts, i, n, &b->self[i], &b->err);
		if (code) {
			b->self[i] = NULL;
			verdict = loom__judge_error(t, "create()", code, &b->err);
			return verdict
				   ? verdict
				   : loom__skip(t, "%u instances, %s: %s", n,
						b->settings[i].text.length ? b->settings[i].text.at
									   : "defaults",
						b->err.text);
		}
		snprintf(b->shape[i].name, sizeof(b->shape[i].name), "test:%u", i);
		code = b->ops->shape(b->self[i], &b->shape[i], &b->err);
		if (code)
			return loom__bench_must(b, "shape()", code);
		b->shape[i].first_worker = b->layout.workers;
		b->layout.workers += b->shape[i].workers;
	}
	b->layout.size = sizeof(b->layout);
	b->layout.devices = n;
	b->layout.device = b->shape;
	b->layout.seed = t->seed;
	if (b->layout.workers > LOOM__BENCH_WORKERS)
		return loom__skip(t, "%u workers are more than the suite's bench holds",
				  b->layout.workers);
	for (uint32_t i = 0; i < n; i++)
		if (b->shape[i].lanes > LOOM__BENCH_LANES)
			return loom__skip(t, "more than %d lanes", LOOM__BENCH_LANES);
	return 0;
}

static int build(struct loom__bench *b, void (*run)(struct loom_ctx *c))
{
	const struct loom_plugin *policy[LOOM_KINDS] = {[LOOM_SCHED] = &b->policy};
	struct loom_program program = {
	    .size = sizeof(program), .layout = &b->layout, .policy = policy};
	int code = 0;
	b->sched = (struct loom_sched_dev){.size = sizeof(b->sched), .run = run};
	b->code = (struct loom_device_code){.size = sizeof(b->code), .cpu = &b->sched};
	b->policy.name = "sched_test";
	b->policy.dev = &b->code;
	for (uint32_t i = 0; !code && i < b->n; i++)
		code = b->ops->build(b->self[i], &program, &b->err);
	return loom__bench_must(b, "build()", code);
}

int loom__bench_furnish(struct loom__bench *b, void (*run)(struct loom_ctx *c))
{
	int code = b->ops->mem_alloc(b->self[0], sizeof(struct loom__bench_shared),
				     LOOM_MEMORY_HOST, &b->memory, &b->err);
	if (code)
		return loom__bench_must(b, "mem_alloc()", code);
	if (!b->memory.host)
		return loom__fault(b->t, "mem_alloc() with LOOM_MEMORY_HOST gives no host view");
	for (uint32_t i = 1; !code && i < b->n; i++) {
		code = b->ops->mem_map(b->self[i], &b->memory, &b->err);
		b->mapped += !code;
	}
	if (code)
		return loom__bench_must(b, "mem_map()", code);
	b->segment[1] = (struct loom_segment){
	    .memory = &b->memory, .bytes = sizeof(struct loom__bench_shared), .owner = -1};
	b->shared = b->memory.host;
	for (uint32_t i = 0; i < b->layout.workers; i++)
		b->shared->registry[i] = REF(block) + 64 * i;
	b->global[LOOM_SCHED] = REF(row);
	b->registry[LOOM_SCHED] = REF(registry);
	b->local_bytes[LOOM_SCHED] = 100;
	b->local_bytes[LOOM_TERM] = 8;
	return run ? build(b, run) : 0;
}

int loom__bench_launch(struct loom__bench *b, enum loom_entry entry)
{
	int code = 0;
	memset(&b->shared->ctl, 0, sizeof(b->shared->ctl));
	for (uint32_t i = 0; !code && i < b->n; i++) {
		b->launch[i] = (struct loom_launch){.size = sizeof(b->launch[i]),
						    .entry = entry,
						    .device = i,
						    .layout = &b->layout,
						    .segment = b->segment,
						    .segments = 2,
						    .ctl = REF(ctl),
						    .counters = REF(counters),
						    .probe = REF(probe),
						    .global = b->global,
						    .registry = b->registry,
						    .local_bytes = b->local_bytes};
		code = b->ops->launch(b->self[i], &b->launch[i], &b->err);
	}
	return code;
}

static void phase(struct loom__bench *b, uint32_t value)
{
	__atomic_store_n(&b->shared->ctl.phase, value, __ATOMIC_RELEASE);
}

int loom__bench_ready(struct loom__bench *b, uint32_t sample)
{
	int code = 0;
	b->shared->ctl.sample = sample;
	phase(b, LOOM_PHASE_READY(sample));
	for (uint32_t i = 0; !code && i < b->n; i++)
		code = b->ops->ready(b->self[i], 10 * LOOM__SECOND, &b->err);
	return code;
}

int loom__bench_go(struct loom__bench *b, uint32_t sample)
{
	int code = 0;
	phase(b, LOOM_PHASE_GO(sample));
	for (uint32_t i = 0; !code && i < b->n; i++)
		code = b->ops->go(b->self[i], &b->err);
	return code;
}

int loom__bench_sample(struct loom__bench *b, uint32_t sample, uint64_t *end_ns)
{
	int code = loom__bench_ready(b, sample);
	if (!code)
		code = loom__bench_go(b, sample);
	*end_ns = 0;
	for (uint32_t i = 0; !code && i < b->n; i++) {
		uint64_t end = 0, until = loom__now_ns() + 10 * LOOM__SECOND;
		do /* a signal may come */
			code = b->ops->wait(b->self[i], LOOM__SECOND, &end, &b->err);
		while (code == LOOM_EAGAIN && loom__now_ns() < until);
		*end_ns = end > *end_ns ? end : *end_ns;
	}
	return code;
}

int loom__bench_retire(struct loom__bench *b, uint64_t timeout_ns)
{
	int first = 0;
	phase(b, LOOM_PHASE_RETIRE);
	for (uint32_t i = 0; i < b->n; i++) {
		int code = b->ops->retire(b->self[i], timeout_ns, &b->err);
		first = first ? first : code;
	}
	return first;
}

void loom__bench_close(struct loom__bench *b)
{
	for (uint32_t i = 0; i < b->mapped; i++)
		b->ops->mem_unmap(b->self[i + 1], &b->memory);
	if (b->memory.host)
		b->ops->mem_free(b->self[0], &b->memory);
	for (uint32_t i = 0; i < LOOM__BENCH_DEVICES; i++) {
		if (i < b->n && b->self[i])
			b->ops->destroy(b->self[i]);
		loom__settings_free(&b->settings[i]);
	}
	memset(b, 0, sizeof(*b));
}
