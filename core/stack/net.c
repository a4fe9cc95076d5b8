/* SPDX-License-Identifier: Apache-2.0 */
/* Network operations of a sample: the barrier and the workload post them before it, and the trigger completes them
 * after it. */
#include "stack/stack.h"

int loom__barrier_spans_ranks(struct loom_stack *s)
{
	return s->host.table.ranks > 1 && s->layout.barrier_scopes && s->layout.barrier_scopes->scopes & LOOM_CAP_BARRIER(LOOM_SCOPE_JOB);
}

int loom__wire(struct loom_stack *s, struct loom_error *err)
{
	struct loom__policy *w = loom__policy_of(s, LOOM_WORKLOAD), *t = loom__policy_of(s, LOOM_TRIGGER);
	struct loom__policy *b = loom__policy_of(s, LOOM_BARRIER);
	const struct loom_policy_ops *ops = w ? w->ops : NULL, *barrier = b ? b->ops : NULL;
	int rc = 0;
	if (!t)
		return 0;
	struct loom_trigger trigger = {.size = sizeof(trigger),
				       .ops = t->choice->plugin->ops,
				       .self = t->self,
				       .rank = s->host.table.rank,
				       .ranks = s->host.table.ranks};
	if (LOOM_HAS(barrier, wire) && loom__barrier_spans_ranks(s))
		rc = barrier->wire(b->self, &s->layout, &b->view, b->global, &trigger, err);
	return rc || !LOOM_HAS(ops, wire) ? rc :
	       LOOM__OP(w->choice, "wire", ops->wire(w->self, &s->layout, &w->view, w->global, &trigger, err), err);
}

int loom__flush(struct loom_stack *s, uint64_t timeout_ns, struct loom_error *err)
{
	struct loom__policy *t = loom__policy_of(s, LOOM_TRIGGER);
	const struct loom_trigger_ops *ops = t ? t->choice->plugin->ops : NULL;
	return ops ? LOOM__OP(t->choice, "flush", ops->flush(t->self, timeout_ns, err), err) : 0;
}
