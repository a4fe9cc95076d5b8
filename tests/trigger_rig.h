/* SPDX-License-Identifier: Apache-2.0 */
/* A trigger plug-in on plain memory, one device, workers as the test's own threads: what a stack does for
 * it, in one page. The network is a provider's loop to the own rank. */
#ifndef LOOM_TEST_TRIGGER_RIG_H
#define LOOM_TEST_TRIGGER_RIG_H

#include <gpuloom/dev/dev.h>
#include <gpuloom/trigger.h>
#include <pthread.h>

#include "fake_host.h"

#define RIG_WORKERS 4u
#define RIG_DATA (1u << 20)
#define RIG_FN static __attribute__((unused))

struct trig {
	const struct loom_plugin *plugin;
	const struct loom_trigger_ops *ops;
	const struct loom_trigger_dev *dev;
	void *self, *opts;
	char settings[512];
	struct loom_device_shape shape;
	struct loom_layout layout;
	struct loom_need need;
	struct loom_view view;
	char *arena;
	uint64_t size, used;
	void *device[1], *worker[RIG_WORKERS];
	loom_ref registry[RIG_WORKERS];
	char *segment[2];
	struct loom_ctl *ctl;
	char *data; /* RIG_DATA bytes that the network reaches */
	struct loom_ctx ctx[RIG_WORKERS];
	int started;
	struct loom_error err;
};

RIG_FN void *trig_take(struct trig *t, uint64_t bytes)
{
	void *at = t->arena + t->used;
	t->used += (bytes + 63) & ~63ull;
	return at;
}

RIG_FN loom_ref trig_ref(const struct trig *t, const void *at)
{
	return LOOM_REF(1, (uint64_t)((const char *)at - t->arena));
}

RIG_FN int trig_reset(struct trig *t)
{
	memset(t->data, 0, RIG_DATA);
	return t->ops->init(t->self, &t->layout, &t->view, &t->err);
}

/* 0, or the plug-in's refusal: LOOM_EUNAVAIL where the provider does not work. */
RIG_FN int trig_open(struct trig *t, const char *name, const char *settings)
{
	memset(t, 0, sizeof(*t));
	t->plugin = fake_load(name);
	t->ops = t->plugin->ops;
	t->dev = t->plugin->dev->cpu;
	t->opts = calloc(1, t->plugin->opts_size);
	snprintf(t->settings, sizeof(t->settings), "%s", settings);
	fake_options(t->plugin, t->opts, t->settings);
	int rc = t->ops->create(&fake_host, t->opts, &t->self, &t->err);
	if (rc)
		return rc;
	t->shape = (struct loom_device_shape){
		.name = "cpu:0", .workers = RIG_WORKERS, .lanes = 1, .numa_node = -1, .kind = LOOM_ON_CPU};
	t->layout = (struct loom_layout){
		.size = sizeof(t->layout), .devices = 1, .workers = RIG_WORKERS, .device = &t->shape};
	t->need.size = sizeof(t->need);
	t->ops->need(t->self, &t->layout, &t->need, NULL);
	t->size = RIG_DATA + sizeof(struct loom_ctl) + t->need.global + t->need.device +
		  RIG_WORKERS * (t->need.worker + 64) + 4096;
	t->arena = aligned_alloc(4096, (t->size + 4095) & ~4095ull);
	memset(t->arena, 0, t->size);
	t->ctl = trig_take(t, sizeof(*t->ctl));
	t->data = trig_take(t, RIG_DATA);
	void *global = trig_take(t, t->need.global);
	t->device[0] = trig_take(t, t->need.device);
	t->segment[1] = t->arena;
	for (uint32_t w = 0; w < RIG_WORKERS; w++) {
		t->worker[w] = t->need.worker ? trig_take(t, t->need.worker) : NULL;
		t->registry[w] = t->need.worker ? trig_ref(t, t->worker[w]) : 0;
	}
	t->view = (struct loom_view){
		.size = sizeof(t->view), .global = global, .device = t->device, .worker = t->worker};
	for (uint32_t w = 0; w < RIG_WORKERS; w++) {
		struct loom_ctx *c = &t->ctx[w];
		*c = (struct loom_ctx){.worker = w, .workers = RIG_WORKERS, .devices = 1, .count = RIG_WORKERS,
				       .lanes = 1, .flags = LOOM_CTX_CROWDED, .ctl = t->ctl,
				       .segment = t->segment, .trigger = t->dev};
		c->global[LOOM_TRIGGER] = global;
		c->on_device[LOOM_TRIGGER] = t->device[0];
		c->own[LOOM_TRIGGER] = t->worker[w];
		c->registry[LOOM_TRIGGER] = t->registry;
	}
	void *at[2] = {NULL, t->arena};
	uint64_t bytes[2] = {0, t->size};
	struct loom_segments segments = {.size = sizeof(segments), .count = 2, .at = at, .bytes = bytes};
	rc = t->ops->start(t->self, &t->layout, &t->view, &segments, &t->err);
	t->started = !rc;
	return rc ? rc : trig_reset(t);
}

RIG_FN void trig_close(struct trig *t)
{
	if (t->started)
		t->ops->stop(t->self);
	if (t->self)
		t->ops->destroy(t->self);
	free(t->opts);
	free(t->arena);
}

RIG_FN uint64_t trig_post(struct trig *t, struct loom_trigger_post post)
{
	uint64_t id = 0;
	post.size = sizeof(post);
	int rc = t->ops->post(t->self, &post, &id, &t->err);
	if (rc)
		fprintf(stderr, "post: %s\n", t->err.text);
	CU_ASSERT_EQUAL(rc, 0);
	return id;
}

RIG_FN int trig_post_fails(struct trig *t, struct loom_trigger_post post)
{
	uint64_t id;
	post.size = sizeof(post);
	return t->ops->post(t->self, &post, &id, &t->err);
}

RIG_FN void trig_fire(struct trig *t, uint64_t tag)
{
	CU_ASSERT_EQUAL(t->dev->fire(&t->ctx[0], tag, 1), 0);
}

RIG_FN int trig_flush(struct trig *t)
{
	int rc = t->ops->flush(t->self, 20000000000ull, &t->err);
	if (rc)
		fprintf(stderr, "flush: %s\n", t->err.text);
	return rc;
}

#endif
