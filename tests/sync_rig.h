/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a sync plug-in on CPU devices, for tests: as cpu_rig.h, and a memory with the plug-in's blocks.
 * Workers run the test's function; each has a row of results on the board. */
#ifndef LOOM_TEST_SYNC_RIG_H
#define LOOM_TEST_SYNC_RIG_H

#include <gpuloom/sync.h>

#include "cpu_rig.h"

struct sync_rig {
	struct rig r;
	const struct loom_plugin *plugin;
	const struct loom_sync_ops *ops;
	void *self;
	char settings[256];
	uint64_t opts[16];
	struct loom_need need;
	struct loom_memory memory;
	struct loom_view view;
	void *worker_block[RIG_WORKERS], *device_block[RIG_DEVICES];
	struct loom_attachment attachment;
	uint32_t sample;
};

#define SYNC_RIG_REF(s, p) LOOM_REF(2, (uint64_t)((char *)(p) - (char *)(s)->memory.host))

FAKE_FN int sync_rig_blocks(struct sync_rig *s)
{
	struct rig *r = &s->r;
	uint64_t head = RIG_WORKERS * sizeof(loom_ref), line = 63;
	uint64_t global = (s->need.global + line) & ~line, worker = (s->need.worker + line) & ~line;
	int rc = r->ops->mem_alloc(r->self[0], head + global + r->layout.workers * worker,
				   LOOM_MEMORY_HOST, &s->memory, &r->err);
	for (uint32_t i = 1; !rc && i < r->n; i++)
		rc = r->ops->mem_map(r->self[i], &s->memory, &r->err);
	if (rc)
		return rc;
	char *at = s->memory.host;
	loom_ref *registry = s->memory.host;
	s->view = (struct loom_view){.size = sizeof(s->view),
				     .global = at + head,
				     .worker = s->worker_block,
				     .device = s->device_block};
	for (uint32_t w = 0; w < r->layout.workers; w++) {
		s->worker_block[w] = at + head + global + w * worker;
		registry[w] = SYNC_RIG_REF(s, s->worker_block[w]);
	}
	r->segment[2] = (struct loom_segment){.memory = &s->memory, .bytes = s->memory.bytes, .owner = -1};
	r->global[LOOM_SYNC] = SYNC_RIG_REF(s, s->view.global);
	r->registry[LOOM_SYNC] = SYNC_RIG_REF(s, registry);
	return 0;
}

FAKE_FN int sync_rig_build(struct sync_rig *s, void (*run)(struct loom_ctx *c))
{
	struct rig *r = &s->r;
	int rc = rig_build(r, run);
	const struct loom_plugin *policy[LOOM_KINDS] = {[LOOM_SCHED] = &r->policy,
							[LOOM_SYNC] = s->plugin};
	struct loom_program program = {.size = sizeof(program), .layout = &r->layout, .policy = policy};
	for (uint32_t i = 0; !rc && i < r->n; i++)
		rc = r->ops->build(r->self[i], &program, &r->err);
	return rc;
}

/* `sync` as in "sync_wic mode=in_place"; `devices` and `settings` as of rig_open. */
FAKE_FN int sync_rig_open(struct sync_rig *s, const char *sync, uint32_t devices, const char *settings,
			  const struct loom_channel *channel, uint32_t channels,
			  void (*run)(struct loom_ctx *c))
{
	char name[64];
	memset(s, 0, sizeof(*s));
	int rc = rig_open(&s->r, devices, settings);
	if (!rc)
		rc = rig_memory(&s->r);
	size_t length = strcspn(sync, " ");
	snprintf(name, sizeof(name), "%.*s", (int)length, sync);
	snprintf(s->settings, sizeof(s->settings), "%s", sync[length] ? sync + length + 1 : "");
	s->plugin = fake_load(name);
	s->ops = s->plugin->ops;
	fake_options(s->plugin, s->opts, s->settings);
	s->need.size = sizeof(s->need);
	if (!rc)
		rc = s->ops->create(&fake_host, s->opts, &s->self, &s->r.err);
	if (!rc)
		rc = s->ops->channels(s->self, &s->r.layout, channel, channels, &s->r.err);
	if (!rc)
		rc = s->ops->need(s->self, &s->r.layout, &s->need, &s->r.err);
	if (!rc)
		rc = sync_rig_blocks(s);
	if (!rc)
		rc = sync_rig_build(s, run);
	s->attachment = (struct loom_attachment){.self = s->self, .kind = LOOM_SYNC};
	if (LOOM_HAS(s->ops, attach)) {
		s->attachment.attach = s->ops->attach;
		s->attachment.ready = s->ops->ready;
		s->attachment.detach = s->ops->detach;
	}
	return rc;
}

FAKE_FN int sync_rig_launch(struct sync_rig *s)
{
	struct rig *r = &s->r;
	int rc = 0;
	memset(&r->shared->ctl, 0, sizeof(r->shared->ctl));
	s->sample = 0;
	for (uint32_t i = 0; !rc && i < r->n; i++) {
		r->launch[i] = (struct loom_launch){.size = sizeof(r->launch[i]),
						    .entry = LOOM_ENTRY_WORK,
						    .device = i,
						    .layout = &r->layout,
						    .segment = r->segment,
						    .segments = 3,
						    .ctl = RIG_REF(ctl),
						    .counters = RIG_REF(counters),
						    .global = r->global,
						    .registry = r->registry,
						    .local_bytes = r->local_bytes,
						    .attachment = &s->attachment,
						    .attachments = 1};
		rc = r->ops->launch(r->self[i], &r->launch[i], &r->err);
	}
	return rc;
}

FAKE_FN int sync_rig_start(struct sync_rig *s)
{
	struct rig *r = &s->r;
	int rc = s->ops->init(s->self, &r->layout, &s->view, &r->err);
	if (!rc)
		rc = rig_ready(r, s->sample);
	return rc ? rc : rig_go(r, s->sample++);
}

FAKE_FN int sync_rig_wait(struct sync_rig *s, uint64_t timeout_ns)
{
	uint64_t end;
	return rig_wait(&s->r, timeout_ns, &end);
}

FAKE_FN int sync_rig_sample(struct sync_rig *s)
{
	int rc = sync_rig_start(s);
	return rc ? rc : sync_rig_wait(s, 50 * SECOND);
}

FAKE_FN double sync_rig_metric(struct sync_rig *s, const char *name)
{
	fake_metric_count = 0;
	s->ops->collect(s->self, &s->r.layout, &s->view, NULL, NULL);
	for (size_t i = 0; i < fake_metric_count; i++)
		if (!strcmp(fake_metrics[i].name, name))
			return fake_metrics[i].value;
	return -1;
}

FAKE_FN void sync_rig_close(struct sync_rig *s)
{
	struct rig *r = &s->r;
	s->ops->destroy(s->self);
	if (s->memory.host) {
		for (uint32_t i = 1; i < r->n; i++)
			r->ops->mem_unmap(r->self[i], &s->memory);
		r->ops->mem_free(r->self[0], &s->memory);
	}
	rig_close(r);
}

#endif
