/* SPDX-License-Identifier: Apache-2.0 */
/* A service path without core and device: a pipeline of qos plug-ins over plain shared memory, and
 * workers that are the test's own threads. */
#ifndef LOOM_TEST_QOS_RIG_H
#define LOOM_TEST_QOS_RIG_H

#include <gpuloom/dev/dev.h>
#include <gpuloom/qos.h>
#include <sys/mman.h>

#include "fake_host.h"

#define QOS_RIG_WORKERS 8u
#define QOS_RIG_MEMORY (16u << 20)

struct qos_rig {
	struct loom_qos_stage stage[8];
	const struct loom_plugin *plugin[8];
	void *opts[8];
	char *settings[8];
	uint32_t stages, leader;
	struct loom_device_shape shape;
	struct loom_layout layout;
	struct loom_tenant tenant[4];
	uint32_t tenants;
	struct loom_grant grant[32];
	uint32_t grants;
	char *memory; /* segment 1: the service's block, then what rig_memory() hands out */
	uint64_t used;
	struct loom_view view;
	struct loom_ctl ctl;
	struct loom_counters counters[QOS_RIG_WORKERS];
	char *segment[2];
	struct loom_ctx ctx[QOS_RIG_WORKERS];
	int started;
};

FAKE_FN void qos_rig_must(int ok, const char *what, const struct loom_error *err)
{
	if (ok)
		return;
	fprintf(stderr, "qos rig: %s: %s\n", what, err ? err->text : "");
	exit(99);
}

/* "split", "budget limit=5%": one stage; before qos_rig_open(). */
FAKE_FN void qos_rig_stage(struct qos_rig *r, const char *name, const char *options)
{
	struct loom_error err = {0};
	char so[64];
	uint32_t i = r->stages++;
	snprintf(so, sizeof(so), "qos_%s", name);
	const struct loom_plugin *p = fake_load(so);
	const struct loom_qos_ops *ops = p->ops;
	r->plugin[i] = p;
	r->opts[i] = calloc(1, p->opts_size + 1);
	r->settings[i] = strdup(options ? options : "");
	fake_options(p, r->opts[i], r->settings[i]);
	qos_rig_must(!ops->create(&fake_host, r->opts[i], &r->stage[i].self, &err), so, &err);
	r->stage[i].ops = ops;
	r->stage[i].name = p->name;
}

/* A stage of the test's own. */
FAKE_FN void qos_rig_own_stage(struct qos_rig *r, const struct loom_qos_ops *ops, void *self)
{
	r->stage[r->stages++] = (struct loom_qos_stage){ops, self, "test"};
}

FAKE_FN void *qos_rig_memory(struct qos_rig *r, uint64_t bytes, loom_ref *ref)
{
	r->used = (r->used + 4095) & ~4095ull;
	void *at = r->memory + r->used;
	*ref = LOOM_REF(1, r->used);
	r->used += bytes;
	qos_rig_must(r->used <= QOS_RIG_MEMORY, "memory", NULL);
	return at;
}

FAKE_FN void qos_rig_tenant(struct qos_rig *r, uint32_t first, uint32_t count, uint32_t outstanding,
			    uint32_t weight)
{
	struct loom_tenant *t = &r->tenant[r->tenants];
	snprintf(t->name, sizeof(t->name), "t%u", r->tenants++);
	t->first = first;
	t->count = count;
	t->outstanding = outstanding;
	t->weight = weight;
}

FAKE_FN uint32_t qos_rig_grant(struct qos_rig *r, struct loom_grant grant)
{
	uint32_t number = 0;
	for (uint32_t i = 0; i < r->grants; i++)
		number += r->grant[i].tenant == grant.tenant;
	r->grant[r->grants++] = grant;
	return number;
}

/* A buffer, demand buffer or heap of tenant t; *at is the test's view. */
FAKE_FN uint32_t qos_rig_buffer(struct qos_rig *r, uint32_t t, uint32_t kind, uint64_t bytes,
				const void *content, char **at)
{
	struct loom_grant g = {.tenant = t, .kind = kind, .bytes = bytes, .content = content};
	*at = qos_rig_memory(r, bytes, &g.at);
	if (kind != LOOM_GRANT_BUFFER)
		madvise(*at, bytes, MADV_REMOVE);
	return qos_rig_grant(r, g);
}

FAKE_FN const struct loom_qos_ops *qos_rig_ops(const struct qos_rig *r)
{
	return r->stage[r->leader].ops;
}

/* Tenants and grants are set: room for `bytes` of the service's block was left by qos_rig_create(). */
FAKE_FN int qos_rig_start(struct qos_rig *r, struct loom_error *err)
{
	static const uint64_t bytes[2] = {0, QOS_RIG_MEMORY};
	void *const at[2] = {NULL, r->memory};
	struct loom_segments segments = {
		.size = sizeof(segments), .count = 2, .at = at, .bytes = bytes};
	const struct loom_qos_ops *ops = qos_rig_ops(r);
	void *self = r->stage[r->leader].self;
	struct loom_need need = {.size = sizeof(need)};
	int rc = ops->lead(self, r->stage, r->stages, err);
	if (!rc)
		rc = ops->tenants(self, &r->layout, r->tenant, r->tenants, err);
	if (!rc)
		rc = ops->need(self, &r->layout, &need, err);
	qos_rig_must(need.global <= 4u << 20, "block", NULL);
	if (!rc)
		rc = ops->grants(self, r->grant, r->grants, err);
	if (!rc)
		rc = ops->start(self, &r->layout, &r->view, &segments, err);
	r->started = !rc;
	for (uint32_t i = 0; i < r->stages && !rc; i++)
		if (r->stage[i].ops->init)
			rc = r->stage[i].ops->init(r->stage[i].self, &r->layout, &r->view, err);
	for (uint32_t w = 0; w < r->layout.workers; w++) {
		struct loom_ctx *c = &r->ctx[w];
		*c = (struct loom_ctx){.worker = w,
				       .workers = r->layout.workers,
				       .devices = 1,
				       .count = r->layout.workers,
				       .lanes = 1,
				       .flags = LOOM_CTX_CROWDED,
				       .random = w * 0x9e3779b97f4a7c15ull + 1,
				       .ctl = &r->ctl,
				       .counters = &r->counters[w],
				       .segment = r->segment,
				       .qos = r->plugin[r->leader]->dev->cpu};
		c->global[LOOM_QOS] = r->view.global;
	}
	return rc;
}

FAKE_FN struct qos_rig *qos_rig_create(uint32_t workers)
{
	struct qos_rig *r = calloc(1, sizeof(*r));
	int fd = memfd_create("qos_rig", MFD_CLOEXEC);
	qos_rig_must(fd >= 0 && !ftruncate(fd, QOS_RIG_MEMORY), "memory", NULL);
	r->memory = mmap(NULL, QOS_RIG_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	qos_rig_must(r->memory != MAP_FAILED, "memory", NULL);
	close(fd);
	r->segment[1] = r->memory;
	r->view = (struct loom_view){.size = sizeof(r->view), .global = r->memory + 4096};
	r->used = 5u << 20;
	r->shape = (struct loom_device_shape){
		.workers = workers, .lanes = 1, .numa_node = -1, .kind = LOOM_ON_CPU};
	r->layout = (struct loom_layout){.size = sizeof(r->layout),
					 .devices = 1,
					 .workers = workers,
					 .device = &r->shape,
					 .seed = 1};
	return r;
}

FAKE_FN double qos_rig_metric(const char *name)
{
	for (size_t i = 0; i < fake_metric_count; i++)
		if (!strcmp(fake_metrics[i].name, name))
			return fake_metrics[i].value;
	return -1;
}

/* The metrics of the sample that ends here. */
FAKE_FN int qos_rig_collect(struct qos_rig *r, struct loom_error *err)
{
	const struct loom_qos_ops *ops = qos_rig_ops(r);
	fake_metric_count = 0;
	return ops->collect(r->stage[r->leader].self, &r->layout, &r->view, NULL, err);
}

FAKE_FN void qos_rig_close(struct qos_rig *r)
{
	const struct loom_qos_ops *ops = qos_rig_ops(r);
	if (r->started)
		ops->stop(r->stage[r->leader].self);
	for (uint32_t i = 0; i < r->stages; i++)
		if (r->plugin[i]) {
			r->stage[i].ops->destroy(r->stage[i].self);
			free(r->opts[i]);
			free(r->settings[i]);
		}
	munmap(r->memory, QOS_RIG_MEMORY);
	free(r);
}

/* One request, waited for: its result, or a LOOM_E* as it is (less than -4095 + ...: see below). */
FAKE_FN int64_t qos_rig_do(struct qos_rig *r, uint32_t worker, struct loom_request request)
{
	struct loom_ctx *c = &r->ctx[worker];
	uint64_t id;
	int64_t result = 0;
	int rc = c->qos->request(c, &request, &id);
	if (!rc)
		rc = c->qos->wait(c, id, 20000000000ull, &result);
	qos_rig_must(!rc, "a request is not served", NULL);
	return result;
}

#endif
