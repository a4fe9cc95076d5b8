/* SPDX-License-Identifier: Apache-2.0 */
/* Drives a sync plug-in on CPU devices, for tests. The rig has the devices of cpu_rig.h, and memory with the plug-in's
 * blocks. Workers run the test's function. Each worker writes its results into a row of its own (sync_row()). */
#ifndef LOOM_TEST_SYNC_RIG_H
#define LOOM_TEST_SYNC_RIG_H

#include <gpuloom/sync.h>

#include "cpu_rig.h"

#ifndef SYNC_RIG_WORKERS
#define SYNC_RIG_WORKERS 64
#endif

struct sync_rig {
	struct loom__drive r;
	const struct loom_sync_ops *ops;
	void *self;
	struct loom_memory memory;
	struct loom_view view;
	void *worker_block[SYNC_RIG_WORKERS], *device_block[LOOM__DRIVE_DEVICES];
	struct loom_attachment attachment;
	uint32_t sample;
};

#define SYNC_RIG_REF(s, p) LOOM_REF(2, (uint64_t)((char *)(p) - (char *)(s)->memory.host))

FAKE_FN int sync_rig_blocks(struct sync_rig *s, const struct loom_need *need)
{
	struct loom__drive *r = &s->r;
	uint64_t head = SYNC_RIG_WORKERS * sizeof(loom_ref), line = 63;
	uint64_t global = (need->global + line) & ~line, worker = (need->worker + line) & ~line;
	uint64_t device = (need->device + line) & ~line, workers = r->layout.workers * worker;
	int rc = r->ops->mem_alloc(r->self[0], head + global + workers + r->n * device, LOOM_MEMORY_HOST, &s->memory,
				   &r->err);
	for (uint32_t i = 1; !rc && i < r->n; i++)
		rc = r->ops->mem_map(r->self[i], &s->memory, &r->err);
	if (rc)
		return rc;
	char *at = s->memory.host;
	loom_ref *registry = s->memory.host;
	s->view = (struct loom_view){
	    .size = sizeof(s->view), .global = at + head, .worker = s->worker_block, .device = s->device_block};
	for (uint32_t w = 0; w < r->layout.workers; w++) {
		s->worker_block[w] = at + head + global + w * worker;
		registry[w] = SYNC_RIG_REF(s, s->worker_block[w]);
	}
	for (uint32_t d = 0; device && d < r->n; d++) {
		s->device_block[d] = at + head + global + workers + d * device;
		r->on_device[d][LOOM_SYNC] = SYNC_RIG_REF(s, s->device_block[d]);
	}
	r->segment[2] = (struct loom_segment){.memory = &s->memory, .bytes = s->memory.bytes, .owner = -1};
	r->global[LOOM_SYNC] = SYNC_RIG_REF(s, s->view.global);
	r->registry[LOOM_SYNC] = SYNC_RIG_REF(s, registry);
	return 0;
}

/* Opens the rig. `sync` has the form "sync_wic mode=in_place"; `devices` and `settings` are those of rig_open. */
FAKE_FN int sync_rig_open(struct sync_rig *s, const char *sync, uint32_t devices, const char *settings,
			  const struct loom_channel *channel, uint32_t channels, void (*run)(struct loom_ctx *c))
{
	char name[64];
	struct loom_need need = {.size = sizeof(need)};
	memset(s, 0, sizeof(*s));
	int rc = rig_open(&s->r, devices, settings);
	if (!rc)
		rc = loom__drive_memory(&s->r);
	size_t length = strcspn(sync, " ");
	snprintf(name, sizeof(name), "%.*s", (int)length, sync);
	const struct loom_plugin *p = s->r.policy[LOOM_SYNC] = fake_load(name);
	s->ops = p->ops;
	if (!rc)
		rc = s->ops->create(&fake_host, fake_settings(p, sync[length] ? sync + length + 1 : ""), &s->self,
				    &s->r.err);
	if (!rc)
		rc = s->ops->channels(s->self, &s->r.layout, channel, channels, &s->r.err);
	if (!rc)
		rc = s->ops->need(s->self, &s->r.layout, &need, &s->r.err);
	if (!rc)
		rc = sync_rig_blocks(s, &need);
	if (!rc)
		rc = loom__drive_build(&s->r, run);
	s->attachment = (struct loom_attachment){.self = s->self, .kind = LOOM_SYNC};
	if (LOOM_HAS(s->ops, attach)) {
		s->attachment.attach = s->ops->attach;
		s->attachment.ready = s->ops->ready;
		s->attachment.detach = s->ops->detach;
	}
	s->r.attachment = &s->attachment;
	return rc;
}

FAKE_FN int sync_rig_launch(struct sync_rig *s)
{
	s->sample = 0;
	return loom__drive_launch(&s->r, LOOM_ENTRY_WORK);
}

FAKE_FN int sync_rig_start(struct sync_rig *s)
{
	int rc = s->ops->init(s->self, &s->r.layout, &s->view, &s->r.err);
	if (!rc)
		rc = loom__drive_ready(&s->r, s->sample);
	return rc ? rc : loom__drive_go(&s->r, s->sample++);
}

FAKE_FN int sync_rig_wait(struct sync_rig *s, uint64_t timeout_ns)
{
	uint64_t end;
	return loom__drive_wait(&s->r, timeout_ns, &end);
}

FAKE_FN int sync_rig_sample(struct sync_rig *s)
{
	int rc = sync_rig_start(s);
	return rc ? rc : sync_rig_wait(s, 50 * SECOND);
}

FAKE_FN double sync_rig_metric(struct sync_rig *s, const char *name)
{
	loom__rig_host_clear(&fake);
	s->ops->collect(s->self, &s->r.layout, &s->view, LOOM__RIG_REPORT(&fake), NULL);
	return loom__rig_host_metric(&fake, name);
}

FAKE_FN void sync_rig_close(struct sync_rig *s)
{
	struct loom__drive *r = &s->r;
	s->ops->destroy(s->self);
	if (s->memory.host) {
		for (uint32_t i = 1; i < r->n; i++)
			r->ops->mem_unmap(r->self[i], &s->memory);
		r->ops->mem_free(r->self[0], &s->memory);
	}
	loom__drive_close(r);
}

FAKE_FN void sync_rig_end(struct sync_rig *s)
{
	CU_ASSERT_EQUAL(loom__drive_retire(&s->r, 10 * SECOND), 0);
	sync_rig_close(s);
}

/* The results of a worker. The rows are in memory that the devices and the test share. */
struct sync_row {
	uint64_t wrong, done;
	int64_t code, id;
};

FAKE_FN struct sync_row *sync_row(const struct loom_ctx *c)
{
	return (struct sync_row *)c->global[LOOM_SCHED] + c->worker;
}

FAKE_FN struct sync_row *sync_rig_rows(struct sync_rig *s)
{
	return (struct sync_row *)s->r.shared->board;
}

FAKE_FN void sync_rig_clear(struct sync_rig *s)
{
	memset(sync_rig_rows(s), 0, sizeof(struct sync_row) * SYNC_RIG_WORKERS);
}

#endif
