/* SPDX-License-Identifier: Apache-2.0 */
/* Service requests: gives the leading qos plug-in the other plug-ins of its pipeline, the tenants and their grants. */
#include <stdlib.h>
#include <string.h>

#include "stack/stack.h"

static struct loom__policy *leader(struct loom_stack *s)
{
	for (size_t i = 0; i < s->policies; i++)
		if (s->policy[i].choice->plugin == s->selected[LOOM_QOS])
			return &s->policy[i];
	return NULL;
}

static int leads(const struct loom_plugin *p)
{
	const struct loom_qos_ops *ops = p->ops;
	return p->dev && LOOM_HAS(ops, lead) && LOOM_HAS(ops, tenants) && LOOM_HAS(ops, grants);
}

int loom__qos_open(struct loom_stack *s, struct loom_error *err)
{
	struct loom_qos_stage stage[LOOM__QOS_STAGES];
	uint32_t n = 0;
	s->selected[LOOM_QOS] = NULL;
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom__policy *p = &s->policy[i];
		if (p->choice->kind != LOOM_QOS)
			continue;
		for (size_t j = 0; j < i; j++)
			if (s->policy[j].choice->plugin == p->choice->plugin)
				return LOOM__FAIL(err, LOOM_EINVAL, "[qos] use: '%s' is named twice", p->choice->label);
		if (n == LOOM__QOS_STAGES)
			return LOOM__FAIL(err, LOOM_EINVAL, "[qos] use: more than %d plug-ins", n);
		stage[n++] = (struct loom_qos_stage){p->choice->plugin->ops, p->self, p->choice->label};
		if (!s->selected[LOOM_QOS] && leads(p->choice->plugin))
			s->selected[LOOM_QOS] = p->choice->plugin;
	}
	if (!n)
		return 0;
	struct loom__policy *first = leader(s);
	if (!first)
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "[qos] use: none of these plug-ins can serve requests: add 'split' or 'monolithic'");
	const struct loom_qos_ops *ops = first->choice->plugin->ops;
	return ops->lead(first->self, stage, n, err);
}

int loom__qos_tenants(struct loom_stack *s, struct loom_error *err)
{
	const struct loom_tenant *tenant = NULL;
	uint32_t n = 0;
	struct loom__policy *q = leader(s), *w = loom__policy_of(s, LOOM_WORKLOAD);
	const struct loom_workload_ops *job = w ? w->choice->plugin->ops : NULL;
	if (LOOM_HAS(job, tenants)) {
		int rc = job->tenants(w->self, &s->layout, &tenant, &n, err);
		if (rc)
			return rc;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct loom_tenant *t = &tenant[i];
		int bad = !t->count || t->first >= s->layout.workers || t->count > s->layout.workers - t->first ||
			  !t->weight || !t->outstanding || t->outstanding > 1u << 20 ||
			  (t->outstanding & (t->outstanding - 1)) || !memchr(t->name, 0, sizeof(t->name));
		for (uint32_t j = 0; j < i; j++)
			bad |= t->first < tenant[j].first + tenant[j].count && tenant[j].first < t->first + t->count;
		if (bad || n > LOOM_MAX_TENANTS)
			return LOOM__FAIL(err, LOOM_EPLUGIN, "tenant %u of the workload is impossible", i);
	}
	if (!q)
		return 0;
	const struct loom_qos_ops *ops = q->choice->plugin->ops;
	return ops->tenants(q->self, &s->layout, tenant, n, err);
}

int loom__qos_grants(struct loom_stack *s, struct loom_error *err)
{
	const struct loom_grant *grant = NULL;
	uint32_t n = 0;
	struct loom__policy *q = leader(s), *w = loom__policy_of(s, LOOM_WORKLOAD);
	const struct loom_workload_ops *job = w ? w->choice->plugin->ops : NULL;
	if (!q)
		return 0;
	if (LOOM_HAS(job, grants)) {
		int rc = job->grants(w->self, &s->layout, &w->view, w->global, &grant, &n, err);
		if (rc)
			return rc;
	}
	const struct loom_qos_ops *ops = q->choice->plugin->ops;
	return ops->grants(q->self, grant, n, err);
}
