/* SPDX-License-Identifier: Apache-2.0 */
/* What policies use of devices and the host: memory, interrupts, memory of other ranks, and host threads. */
#include "stack/stack.h"

struct loom__policy *loom__policy_of(struct loom_stack *s, enum loom_kind kind)
{
	for (size_t i = 0; i < s->policies; i++)
		if (s->policy[i].choice->kind == kind)
			return &s->policy[i];
	return NULL;
}

/* ---- memory that policies need ---- */

static int is_big(uint64_t bytes)
{
	return bytes > 1ull << 44;
}

static int sends_from_anywhere(struct loom_stack *s)
{
	const struct loom__policy *trigger = loom__policy_of(s, LOOM_TRIGGER);
	const struct loom_trigger_ops *ops = trigger ? trigger->choice->plugin->ops : NULL;
	return LOOM_HAS(ops, anywhere) && ops->anywhere(trigger->self);
}

int loom__policy_need(struct loom_stack *s, const struct loom__policy *p, struct loom_need *need, struct loom_error *err)
{
	*need = (struct loom_need){.size = sizeof(*need)};
	int rc = LOOM__OP(p->choice, "need", p->ops->need(p->self, &s->layout, need, err), err);
	if (rc)
		return rc;
	if (is_big(need->global) || is_big(need->device) || is_big(need->worker) || is_big(need->local))
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s needs an impossible amount of memory", p->choice->plugin->name);
	if (need->global_place == LOOM_PLACE_NET)
		need->global_place = sends_from_anywhere(s) ? LOOM_PLACE_ANY : LOOM_PLACE_HOST;
	if (need->global_place > (s->layout.devices == 1 ? LOOM_PLACE_DEVICE : LOOM_PLACE_HOST) ||
	    need->device_place > LOOM_PLACE_DEVICE || need->worker_place > LOOM_PLACE_HOST)
		return LOOM__FAIL(err, LOOM_EPLUGIN, "%s needs memory in a place that does not exist: only a block "
				"of one device may be LOOM_PLACE_DEVICE", p->choice->plugin->name);
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if (s->shape[d].local_bytes && need->local > s->shape[d].local_bytes)
			return LOOM__FAIL(err, LOOM_EUNAVAIL,
					  "%s wants %llu bytes of scratchpad memory per worker, %s has %llu: "
					  "choose %s", p->choice->plugin->name, (unsigned long long)need->local,
					  s->shape[d].name, (unsigned long long)s->shape[d].local_bytes,
					  p->choice->kind == LOOM_WORKLOAD ? "smaller tasks, or fewer workers" : "smaller queues");
	return 0;
}

int loom__needs_hold(struct loom_stack *s, struct loom_error *err)
{
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom_need *had = &s->policy[i].need;
		struct loom_need need;
		int rc = loom__policy_need(s, &s->policy[i], &need, err);
		if (rc)
			return rc;
		if (need.global > had->global || need.device > had->device || need.worker > had->worker || need.local > had->local)
			return LOOM__FAIL(err, LOOM_EFULL,
					  "%s has no memory for %llu submitted tasks: the first run fixes the size, and had fewer",
					  s->policy[i].choice->plugin->name, (unsigned long long)s->layout.initial_tasks);
	}
	return 0;
}

/* ---- interrupts, which a word in the memory of a device causes ---- */

static int open_interrupt(const struct loom_interrupts *interrupts, uint32_t device, uint32_t kind, uint64_t offset,
		      struct loom_interrupt **interrupt, struct loom_error *err)
{
	struct loom_stack *s = interrupts->stack;
	const struct loom__device *d = &s->device[device];
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom__policy *p = &s->policy[i];
		if (p->choice->plugin != s->selected[kind] || !p->on_device[device])
			continue;
		if (!d->interrupts)
			return LOOM__FAIL(err, LOOM_ENOTSUP, "%s has no interrupts", s->shape[device].name);
		loom_ref at = p->on_device[device] + offset;
		return d->interrupts->interrupt(d->self, &s->memory.segment[LOOM_REF_SEGMENT(at)], LOOM_REF_OFFSET(at), interrupt, err);
	}
	return LOOM__FAIL(err, LOOM_EPLUGIN, "an interrupt of a block that does not exist");
}

void loom__interrupts_offer(struct loom_stack *s)
{
	s->interrupts = (struct loom_interrupts){.size = sizeof(s->interrupts), .stack = s, .open = open_interrupt};
	s->layout.interrupts = &s->interrupts;
}

/* ---- memory of devices that other ranks access ---- */

static int memory_key(void *ctx, uint32_t segment, struct loom_memory_key *key, struct loom_error *err)
{
	struct loom_stack *s = ctx;
	const struct loom_memory *memory = s->memory.segment[segment].memory;
	if (memory->device < 0)
		return LOOM__FAIL(err, LOOM_ENOTSUP, "segment %u: not in the memory of a device", segment);
	const struct loom__device *d = &s->device[memory->device];
	if (!d->sharing)
		return LOOM__FAIL(err, LOOM_ENOTSUP, "%s: other ranks do not reach its memory",
				  s->shape[memory->device].name);
	return d->sharing->mem_key(d->self, memory, key, err);
}

static int memory_open(void *ctx, uint32_t device, const struct loom_memory_key *key, uint64_t *at,
		       struct loom_error *err)
{
	struct loom_stack *s = ctx;
	const struct loom__device *d = &s->device[device];
	if (!d->sharing)
		return LOOM__FAIL(err, LOOM_ENOTSUP, "%s: it does not reach memory of other ranks' devices",
				  s->shape[device].name);
	return d->sharing->mem_open(d->self, key, at, err);
}

static void memory_close(void *ctx, uint32_t device, uint64_t at)
{
	struct loom_stack *s = ctx;
	s->device[device].sharing->mem_close(s->device[device].self, at);
}

/* ---- host threads of policies ---- */

int loom__policies_start(struct loom_stack *s, struct loom_error *err)
{
	void *at[LOOM_MAX_SEGMENTS] = {0}, *image[LOOM_MAX_SEGMENTS] = {0};
	uint64_t bytes[LOOM_MAX_SEGMENTS] = {0}, offset[LOOM_MAX_SEGMENTS] = {0};
	int fd[LOOM_MAX_SEGMENTS] = {-1};
	for (uint32_t i = 1; i <= s->memory.segments; i++) {
		/* Workers do not access images, so a segment with an image has no address here. */
		at[i] = s->memory.image[i] ? NULL : loom__host_at(s, LOOM_REF(i, 0));
		image[i] = s->memory.image[i];
		bytes[i] = s->memory.segment[i].bytes;
		fd[i] = at[i] ? s->memory.segment[i].memory->fd : -1;
		offset[i] = s->memory.segment[i].offset;
	}
	struct loom_segments segments = {.size = sizeof(segments), .count = s->memory.segments + 1, .at = at,
					 .bytes = bytes, .fd = fd, .offset = offset, .image = image,
					 .ctx = s, .key = memory_key, .open = memory_open, .close = memory_close,
					 .copy = loom__segment_copy,
					 .start_copy = loom__segment_start_copy,
					 .copy_ended = loom__segment_copy_ended};
	for (size_t i = 0; i < s->policies; i++) {
		struct loom__policy *p = &s->policy[i];
		if (!LOOM_HAS(p->ops, start))
			continue;
		int rc = LOOM__OP(p->choice, "start", p->ops->start(p->self, &s->layout, &p->view, &segments, err), err);
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
