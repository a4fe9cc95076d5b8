/* SPDX-License-Identifier: Apache-2.0 */
/* What happens beside the workers: alarms, host threads of policies, and network operations that the workload posts
 * ahead. */
#include "stack/stack.h"

/* ---- memory of devices, between ranks ---- */

static int find_key(void *ctx, uint32_t segment, struct loom_memory_key *key, struct loom_error *err)
{
	struct loom_stack *s = ctx;
	const struct loom_memory *memory = s->segment[segment].memory;
	const struct loom__device *d = &s->device[memory->device];
	if (!LOOM_HAS(d->ops, mem_key))
		return LOOM__FAIL(err, LOOM_ENOTSUP, "%s: other ranks do not reach its memory",
				  s->shape[memory->device].name);
	return d->ops->mem_key(d->self, memory, key, err);
}

static int open_key(void *ctx, uint32_t device, const struct loom_memory_key *key, uint64_t *at, struct loom_error *err)
{
	struct loom_stack *s = ctx;
	const struct loom__device *d = &s->device[device];
	if (!LOOM_HAS(d->ops, mem_open))
		return LOOM__FAIL(err, LOOM_ENOTSUP, "%s: it does not reach memory of other ranks' devices",
				  s->shape[device].name);
	return d->ops->mem_open(d->self, key, at, err);
}

static void close_key(void *ctx, uint32_t device, uint64_t at)
{
	struct loom_stack *s = ctx;
	s->device[device].ops->mem_close(s->device[device].self, at);
}

/* ---- alarms for policies: from a word in a block to the device that has it ---- */

static int open_alarm(const struct loom_interrupts *alarms, uint32_t device, uint32_t kind, uint64_t offset,
		      struct loom_interrupt **alarm, struct loom_error *err)
{
	struct loom_stack *s = alarms->stack;
	const struct loom__device *d = &s->device[device];
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom__policy *p = &s->policy[i];
		if (p->choice->plugin != s->selected[kind] || !p->on_device[device])
			continue;
		if (!LOOM_HAS(d->ops, interrupt))
			return LOOM__FAIL(err, LOOM_ENOTSUP, "%s has no interrupts", s->shape[device].name);
		loom_ref at = p->on_device[device] + offset;
		return d->ops->interrupt(d->self, &s->segment[LOOM_REF_SEGMENT(at)], LOOM_REF_OFFSET(at), alarm, err);
	}
	return LOOM__FAIL(err, LOOM_EPLUGIN, "an alarm in a block that there is not");
}

void loom__alarms(struct loom_stack *s)
{
	s->interrupts = (struct loom_interrupts){.size = sizeof(s->interrupts), .stack = s, .open = open_alarm};
	s->layout.interrupts = &s->interrupts;
}

/* ---- host threads of policies ---- */

int loom__policies_start(struct loom_stack *s, struct loom_error *err)
{
	void *at[LOOM_MAX_SEGMENTS] = {0}, *image[LOOM_MAX_SEGMENTS] = {0};
	uint64_t bytes[LOOM_MAX_SEGMENTS] = {0}, offset[LOOM_MAX_SEGMENTS] = {0};
	int fd[LOOM_MAX_SEGMENTS] = {-1};
	for (uint32_t i = 1; i <= s->segments; i++) {
		/* An image is no memory that workers see. */
		at[i] = s->image[i] ? NULL : loom__host_at(s, LOOM_REF(i, 0));
		image[i] = s->image[i];
		bytes[i] = s->segment[i].bytes;
		fd[i] = at[i] ? s->segment[i].memory->fd : -1;
		offset[i] = s->segment[i].offset;
	}
	struct loom_segments segments = {.size = sizeof(segments), .count = s->segments + 1, .at = at,
					 .bytes = bytes, .fd = fd, .offset = offset, .image = image,
					 .ctx = s, .key = find_key, .open = open_key, .close = close_key,
					 .copy = loom__segment_copy};
	for (size_t i = 0; i < s->policies; i++) {
		struct loom__policy *p = &s->policy[i];
		if (!LOOM_HAS(p->ops, start))
			continue;
		int rc = p->ops->start(p->self, &s->layout, &p->view, &segments, err);
		if (rc)
			return rc;
		p->started = 1;
	}
	return 0;
}

void loom__policies_stop(struct loom_stack *s)
{
	for (size_t i = s->policies; i-- > 0;) {
		struct loom__policy *p = &s->policy[i];
		if (p->started && LOOM_HAS(p->ops, stop))
			p->ops->stop(p->self);
		p->started = 0;
	}
}

struct loom__policy *loom__policy_of(struct loom_stack *s, enum loom_kind kind)
{
	for (size_t i = 0; i < s->policies; i++)
		if (s->policy[i].choice->kind == kind)
			return &s->policy[i];
	return NULL;
}

int loom__ranks_share_tasks(struct loom_stack *s)
{
	return s->host.table.ranks > 1 && s->layout.barrier_scopes && s->layout.barrier_scopes->scopes & LOOM_CAP_BARRIER(LOOM_SCOPE_JOB);
}

int loom__wire(struct loom_stack *s, struct loom_error *err)
{
	struct loom__policy *w = loom__policy_of(s, LOOM_WORKLOAD), *t = loom__policy_of(s, LOOM_TRIGGER);
	struct loom__policy *b = loom__policy_of(s, LOOM_BARRIER);
	const struct loom_workload_ops *ops = w ? w->choice->plugin->ops : NULL;
	const struct loom_barrier_ops *barrier = b ? b->choice->plugin->ops : NULL;
	int rc = 0;
	if (!t)
		return 0;
	struct loom_trigger trigger = {.size = sizeof(trigger),
				       .ops = t->choice->plugin->ops,
				       .self = t->self,
				       .rank = s->host.table.rank,
				       .ranks = s->host.table.ranks};
	if (LOOM_HAS(barrier, wire) && loom__ranks_share_tasks(s))
		rc = barrier->wire(b->self, &s->layout, &b->view, b->global, &trigger, err);
	return rc || !LOOM_HAS(ops, wire) ? rc : ops->wire(w->self, &s->layout, &w->view, w->global, &trigger, err);
}

int loom__settle(struct loom_stack *s, uint64_t timeout_ns, struct loom_error *err)
{
	struct loom__policy *t = loom__policy_of(s, LOOM_TRIGGER);
	const struct loom_trigger_ops *ops = t ? t->choice->plugin->ops : NULL;
	return ops ? ops->flush(t->self, timeout_ns, err) : 0;
}
