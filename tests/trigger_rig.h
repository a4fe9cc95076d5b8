/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a trigger plug-in on the rig (rig/rig.h), with one device. The workers are the test's own threads. Messages go
 * to this rank itself, by a provider's loopback. */
#ifndef LOOM_TEST_TRIGGER_RIG_H
#define LOOM_TEST_TRIGGER_RIG_H

#include <gpuloom/trigger.h>
#include <pthread.h>

#include "fake_host.h"
#include "rig/rig.h"

#define RIG_WORKERS 4u
#define RIG_DATA (1u << 20)
struct trig {
	struct loom__rig rig;
	const struct loom_plugin *plugin;
	const struct loom_trigger_ops *ops;
	const struct loom_trigger_dev *dev;
	void *self;
	struct loom_ctl *ctl;
	struct loom_ctx *ctx;
	char *data; /* RIG_DATA bytes that the network can access */
	int started;
	struct loom_error err;
};

static const struct loom_net_need *trig_net; /* the needs of the workload that the next trigger gets, or NULL */
static uint32_t trig_ranks; /* the number of ranks for the next trigger; messages to each of them go to this rank */

FAKE_FN loom_ref trig_ref(const struct trig *t, const void *at)
{
	return loom__rig_ref(&t->rig, at);
}

FAKE_FN int trig_reset(struct trig *t)
{
	memset(t->data, 0, RIG_DATA);
	return loom__rig_init(&t->rig, &t->err);
}

/* Returns 0, or the plug-in's error. If the provider does not work, the error is LOOM_EUNAVAIL. */
FAKE_FN int trig_open(struct trig *t, const char *name, const char *settings)
{
	struct loom__rig_want want = {.devices = 1, .workers = RIG_WORKERS, .lanes = 1, .one_view = 1};
	const char *what;
	memset(t, 0, sizeof(*t));
	t->plugin = fake_load(name);
	t->ops = t->plugin->ops;
	t->dev = t->plugin->dev->cpu;
	want.bytes[LOOM_WORKLOAD] = RIG_DATA;
	loom__rig_shape(&t->rig, &want);
	t->rig.layout.ranks = trig_ranks;
	t->rig.layout.net = trig_net;
	int rc = loom__rig_add(&t->rig, t->plugin, &fake_host, fake_settings(t->plugin, settings), &t->err);
	if (!rc)
		rc = loom__rig_need(&t->rig, &t->err);
	if (!rc)
		rc = loom__rig_furnish(&t->rig);
	if (!rc)
		rc = loom__rig_begin(&t->rig, &what, &t->err);
	t->self = t->rig.part[LOOM_TRIGGER].self;
	t->ctl = t->rig.ctl;
	t->ctx = t->rig.ctx;
	t->data = loom__rig_block(&t->rig, LOOM_WORKLOAD);
	t->started = !rc;
	return rc ? rc : trig_reset(t);
}

FAKE_FN void trig_close(struct trig *t)
{
	loom__rig_close(&t->rig);
}

FAKE_FN uint64_t trig_post(struct trig *t, struct loom_trigger_post post)
{
	uint64_t id = 0;
	post.size = sizeof(post);
	int rc = t->ops->post(t->self, &post, &id, &t->err);
	if (rc)
		fprintf(stderr, "post: %s\n", t->err.text);
	CU_ASSERT_EQUAL(rc, 0);
	return id;
}

FAKE_FN int trig_post_fails(struct trig *t, struct loom_trigger_post post)
{
	uint64_t id;
	post.size = sizeof(post);
	return t->ops->post(t->self, &post, &id, &t->err);
}

FAKE_FN void trig_fire(struct trig *t, uint64_t tag)
{
	CU_ASSERT_EQUAL(t->dev->fire(&t->ctx[0], tag, 1), 0);
}

FAKE_FN int trig_flush(struct trig *t)
{
	int rc = t->ops->flush(t->self, 20000000000ull, &t->err);
	if (rc)
		fprintf(stderr, "flush: %s\n", t->err.text);
	return rc;
}

#endif
