/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a service path, a pipeline of qos plug-ins, on the rig (rig/rig.h), without core and device. The workers are the
 * test's own threads. */
#ifndef LOOM_TEST_QOS_RIG_H
#define LOOM_TEST_QOS_RIG_H

#include <gpuloom/qos.h>
#include <sys/mman.h>

#include "fake_host.h"
#include "rig/rig.h"
#include "lib/align.h"

#define QOS_RIG_MEMORY (16u << 20)

struct qos_rig {
	struct loom__rig rig;
	struct loom_qos_stage stage[8]; /* the first stage leads the path; the rig opens and closes it */
	uint32_t stages;
	struct loom_layout layout;
	struct loom_tenant tenant[4];
	uint32_t tenants;
	struct loom_grant grant[32];
	uint32_t grants;
	char *memory; /* segment 2, from which qos_rig_memory() allocates */
	uint64_t used;
	struct loom_view view;
	struct loom_ctl *ctl;
	struct loom_ctx *ctx;
};

/* Adds a stage such as "split" or "budget limit=5%", before qos_rig_start(). */
FAKE_FN void qos_rig_stage(struct qos_rig *r, const char *name, const char *options)
{
	struct loom_error err = {0};
	struct loom_qos_stage *s = &r->stage[r->stages++];
	char so[64];
	snprintf(so, sizeof(so), "qos_%s", name);
	const struct loom_plugin *p = fake_load(so);
	const struct loom_qos_ops *ops = p->ops;
	void *opts = fake_settings(p, options);
	*s = (struct loom_qos_stage){.ops = ops, .name = p->name};
	int rc = s == r->stage ? loom__rig_add(&r->rig, p, &fake_host, opts, &err) :
				 ops->create(&fake_host, opts, &s->self, &err);
	fake_must(!rc, so, &err);
	if (s == r->stage)
		s->self = r->rig.part[LOOM_QOS].self;
}

/* Adds a stage whose ops are functions of the test. */
FAKE_FN void qos_rig_own_stage(struct qos_rig *r, const struct loom_qos_ops *ops, void *self)
{
	r->stage[r->stages++] = (struct loom_qos_stage){ops, self, "test"};
}

FAKE_FN void *qos_rig_memory(struct qos_rig *r, uint64_t bytes, loom_ref *ref)
{
	r->used = loom__align(r->used, 4096);
	void *at = r->memory + r->used;
	*ref = LOOM_REF(2, r->used);
	r->used += bytes;
	fake_must(r->used <= QOS_RIG_MEMORY, "memory", NULL);
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

/* Grants tenant t a buffer, demand buffer or heap, and returns the number of the grant. *at is the address in the test. */
FAKE_FN uint32_t qos_rig_buffer(struct qos_rig *r, uint32_t t, uint32_t kind, uint64_t bytes,
				const void *content, char **at)
{
	struct loom_grant g = {.tenant = t, .kind = kind, .bytes = bytes, .content = content};
	*at = qos_rig_memory(r, bytes, &g.at);
	if (kind != LOOM_GRANT_BUFFER)
		madvise(*at, bytes, MADV_REMOVE);
	return qos_rig_grant(r, g);
}

FAKE_FN int qos_rig_lead(void *arg, void *self, const struct loom_layout *layout, struct loom_error *err)
{
	struct qos_rig *r = arg;
	int rc = r->stage->ops->lead(self, r->stage, r->stages, err);
	return rc ? rc : r->stage->ops->tenants(self, layout, r->tenant, r->tenants, err);
}

/* Starts the path. The test sets tenants and grants before this call. */
FAKE_FN int qos_rig_start(struct qos_rig *r, struct loom_error *err)
{
	const char *what;
	r->rig.want.arg = r;
	int rc = loom__rig_need(&r->rig, err);
	if (!rc)
		fake_must(!loom__rig_furnish(&r->rig), "memory", NULL);
	if (!rc)
		rc = r->stage->ops->grants(r->stage->self, r->grant, r->grants, err);
	if (!rc)
		rc = loom__rig_begin(&r->rig, &what, err);
	if (!rc)
		rc = loom__rig_init(&r->rig, err);
	r->view = r->rig.part[LOOM_QOS].view;
	for (uint32_t i = 1; i < r->stages && !rc; i++)
		if (r->stage[i].ops->init)
			rc = r->stage[i].ops->init(r->stage[i].self, &r->layout, &r->view, err);
	r->ctl = r->rig.ctl;
	r->ctx = r->rig.ctx;
	return rc;
}

FAKE_FN void qos_rig_must_start(struct qos_rig *r)
{
	struct loom_error err = {0};
	fake_must(!qos_rig_start(r, &err), "start", &err);
}

FAKE_FN struct qos_rig *qos_rig_create(uint32_t workers)
{
	struct qos_rig *r = calloc(1, sizeof(*r));
	int fd = memfd_create("qos_rig", MFD_CLOEXEC);
	fake_must(fd >= 0 && !ftruncate(fd, QOS_RIG_MEMORY), "memory", NULL);
	r->memory = mmap(NULL, QOS_RIG_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	fake_must(r->memory != MAP_FAILED, "memory", NULL);
	close(fd);
	loom__rig_shape(&r->rig, &(struct loom__rig_want){.devices = 1,
							  .workers = workers,
							  .lanes = 1,
							  .seed = 1,
							  .one_view = 1,
							  .extra = r->memory,
							  .extra_bytes = QOS_RIG_MEMORY,
							  .before_need = qos_rig_lead});
	r->layout = r->rig.layout;
	return r;
}

FAKE_FN double qos_rig_metric(const char *name)
{
	return loom__rig_host_metric(&fake, name);
}

/* Collects the metrics of the sample, which ends with this call. */
FAKE_FN void qos_rig_collect(struct qos_rig *r)
{
	struct loom_error err = {0};
	loom__rig_host_clear(&fake);
	fake_must(!loom__rig_collect(&r->rig, LOOM__RIG_REPORT(&fake), &err), "collect", &err);
}

FAKE_FN void qos_rig_close(struct qos_rig *r)
{
	loom__rig_close(&r->rig);
	for (uint32_t i = 1; i < r->stages; i++)
		if (r->stage[i].ops->destroy)
			r->stage[i].ops->destroy(r->stage[i].self);
	munmap(r->memory, QOS_RIG_MEMORY);
	free(r);
}

/* Makes one request, waits for it, and returns its result. Ends the program if the request is not served. */
FAKE_FN int64_t qos_rig_do(struct qos_rig *r, uint32_t worker, struct loom_request request)
{
	struct loom_ctx *c = &r->ctx[worker];
	uint64_t id;
	int64_t result = 0;
	int rc = c->qos->request(c, &request, &id);
	if (!rc)
		rc = c->qos->wait(c, id, 20000000000ull, &result);
	fake_must(!rc, "a request is not served", NULL);
	return result;
}

#endif
