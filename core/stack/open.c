/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a stack: first the devices, then the transport with its probe, then the policies. Closes it in the reverse
 * order. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stack/stack.h"

int loom__stack_shape(struct loom_stack *s, struct loom_error *err)
{
	uint64_t workers = 0;
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		struct loom_device_shape *shape = &s->shape[d];
		const struct loom__choice *c = s->device[d].choice;
		int rc = LOOM__OP(c, "shape", s->device[d].ops->shape(s->device[d].self, shape, err), err);
		if (rc)
			return rc;
		if (!shape->workers || !shape->lanes || shape->lanes > 1024 || shape->kind - 1 > LOOM_ON_GPU - 1 ||
		    workers + shape->workers > UINT32_MAX / 2)
			return LOOM__FAIL(err, LOOM_EPLUGIN, "device %s: shape() of %s offers %u workers of %u lanes and kind %u, which is "
					  "impossible: report it to its author", c->label, c->plugin->name, shape->workers, shape->lanes,
					  shape->kind);
		snprintf(shape->name, sizeof(shape->name), "%s", c->label);
		if (s->watch.in_turns >> d & 1)
			shape->flags |= LOOM_SHAPE_TIME_SLICED;
		shape->first_worker = (uint32_t)workers;
		workers += shape->workers;
	}
	s->layout.workers = (uint32_t)workers;
	return 0;
}

/* Takes the clock of the devices. All devices must have the same clock, because times of different clocks cannot be
 * compared. */
static int find_clock(struct loom_stack *s, struct loom_error *err)
{
	const struct loom_clock *clock[LOOM_MAX_DEVICES] = {NULL};
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		clock[d] = LOOM_HAS(s->device_ops[d], clock) ? s->device_ops[d]->clock(s->device_self[d]) : NULL;
		if (clock[d] != clock[0])
			return LOOM__FAIL(err, LOOM_ENOTSUP,
					  "%s runs in real time, which cannot be mixed with the virtual time of %s: "
					  "simulate all devices",
					  s->shape[clock[d] ? 0 : d].name, s->shape[clock[d] ? d : 0].name);
	}
	s->layout.clock = clock[0];
	return 0;
}

static int open_devices(struct loom_stack *s, struct loom_error *err)
{
	for (size_t i = 0; i < s->plan.choices; i++) {
		const struct loom__choice *c = &s->plan.choice[i];
		if (c->kind != LOOM_DEVICE)
			continue;
		struct loom__device *d = &s->device[s->layout.devices];
		d->choice = c;
		d->ops = c->plugin->ops;
#define FIND_EXTENSION(name) d->name = LOOM_EXTENSION_OF(d->ops, name);
		LOOM_EXTENSION_MAP(FIND_EXTENSION)
		int rc = LOOM__OP(c, "create", d->ops->create(&s->host.table, c->opts, c->instance, c->instances, &d->self, err), err);
		if (rc)
			return rc;
		s->device_ops[s->layout.devices] = d->ops;
		s->device_self[s->layout.devices] = d->self;
		s->layout.devices++; /* counted at once, because loom_stack_close() destroys the counted devices */
	}
	int rc = loom__stack_shape(s, err);
	if (rc)
		return rc;
	s->devices = (struct loom_devices){.size = sizeof(s->devices),
					   .count = s->layout.devices,
					   .layout = &s->layout,
					   .ops = s->device_ops,
					   .self = s->device_self};
	loom__interrupts_offer(s);
	return find_clock(s, err);
}

static int open_transport(struct loom_stack *s, struct loom_error *err)
{
	const struct loom__choice *c = loom__plan_get(&s->plan, LOOM_TRANSPORT);
	s->transport = c->plugin->ops;
	int rc = LOOM__OP(c, "create", s->transport->create(&s->host.table, c->opts, &s->transport_self, err), err);
	return rc ? rc : loom__stack_probe(s, err);
}

/* Called by a policy whose create() takes long. There is no run yet that could be stopped. */
static int opening(void *arg, double done, struct loom_error *err)
{
	const struct loom_stack *s = arg;
	uint64_t limit = s->plan.run.time_limit;
	(void)done;
	return limit && loom__now_ns() - s->open_ns > limit
		   ? LOOM__FAIL(err, LOOM_ETIMEDOUT, "[run] time_limit reached while the run was set up")
		   : 0;
}

static int open_policies(struct loom_stack *s, struct loom_error *err)
{
	s->policy = calloc(s->plan.choices, sizeof(*s->policy));
	if (!s->policy)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	for (size_t i = 0; i < s->plan.choices; i++) {
		const struct loom__choice *c = &s->plan.choice[i];
		if (c->kind == LOOM_DEVICE || c->kind == LOOM_TRANSPORT)
			continue;
		struct loom__policy *p = &s->policy[s->policies];
		p->choice = c;
		p->ops = c->plugin->ops;
		s->host.progress = opening;
		s->host.verifying_arg = s;
		int rc = LOOM__OP(c, "create", p->ops->create(&s->host.table, c->opts, &p->self, err), err);
		s->host.progress = NULL;
		if (rc)
			return rc;
		s->policies++;
		if (!s->selected[c->kind])
			s->selected[c->kind] = c->plugin;
	}
	const struct loom_trigger_ops *trigger = s->selected[LOOM_TRIGGER] ? s->selected[LOOM_TRIGGER]->ops : NULL;
	s->layout.reaches = LOOM_HAS(trigger, reach);
	return loom__qos_open(s, err);
}

/* Registers the workload's task functions before all others, so that their tags begin at 0. */
static int take_tasks(struct loom_stack *s, struct loom_error *err)
{
	const struct loom_plugin *w = s->selected[LOOM_WORKLOAD];
	const struct loom_workload_dev *dev = w ? w->dev->cpu : NULL;
	for (uint32_t i = 0; dev && i < dev->count; i++) {
		uint32_t tag;
		int rc = loom_stack_task(s, dev->task[i].name, dev->task[i].fn, &tag, err);
		if (rc)
			return rc;
	}
	return 0;
}

int loom__stack_open(struct loom__plan *plan, const struct loom_stack_params *params,
		     struct loom_stack **stack, struct loom_error *err)
{
	struct loom_stack *s = calloc(1, sizeof(*s));
	if (!s) {
		loom__plan_free(plan);
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	}
	s->open_ns = loom__now_ns();
	loom__stack_note_process(s);
	s->plan = *plan;
	*plan = (struct loom__plan){0};
	loom__host_init(&s->host, params);
	s->layout = (struct loom_layout){.size = sizeof(s->layout), .seed = s->plan.run.seed};
	int rc = loom__host_join(&s->host, params, err);
	rc = rc ? rc : open_devices(s, err);
	s->layout.device = s->shape;
	rc = rc ? rc : open_transport(s, err);
	rc = rc ? rc : open_policies(s, err);
	rc = rc ? rc : loom__ranks_share(s, err);
	rc = rc ? rc : take_tasks(s, err);
	if (rc) {
		loom_stack_close(s);
		return rc;
	}
	*stack = s;
	return 0;
}

int loom_stack_open(struct loom_config *cfg, const struct loom_stack_params *params,
		    struct loom_stack **stack, struct loom_error *err)
{
	struct loom__plan plan;
	struct loom__diag diag = {0};
	if (!cfg || !stack)
		return LOOM__FAIL(err, LOOM_EINVAL, "loom_stack_open: no config or no place for the stack");
	int rc = loom__stack_room(err);
	if (rc)
		return rc;
	/* Plug-ins are loaded without a probe, because a library must not start unexpected processes. */
	rc = loom__plan_create(cfg, NULL, &plan, &diag);
	if (rc)
		rc = loom__diag_fail(&diag, rc, err);
	loom__diag_free(&diag);
	return rc ? rc : loom__stack_open(&plan, params, stack, err);
}

/* Frees the memory that is private to this process. */
static void drop(struct loom_stack *s)
{
	for (size_t i = 0; s->policy && i < s->plan.choices; i++) {
		struct loom__policy *p = &s->policy[i];
		free(p->device_blocks);
		free(p->worker_blocks);
		free(p->copy);
		free(p->on_device);
		free(p->registry);
		free(p->remote);
		free(p->remote_worker);
	}
	free(s->policy);
	for (uint32_t i = 0; i < s->code.tasks; i++)
		free((char *)s->code.task[i].name);
	free(s->code.task);
	for (uint32_t i = 0; i < s->code.sources; i++) {
		free((char *)s->code.source[i].file);
		free((char *)s->code.source[i].text);
	}
	free(s->code.source);
	for (uint32_t i = 0; i < s->code.irs; i++) {
		free((char *)s->code.ir[i].file);
		free((void *)s->code.ir[i].data);
		free((uint32_t *)s->code.ir[i].tag);
	}
	free(s->code.ir);
	free(s->initial.submitted);
	free(s->ranks.size);
	free(s->ranks.counters);
	loom__resets_drop(s);
	free(s->streams.slots);
	loom__ranks_unwatch(s);
	loom__exchange_destroy(&s->host.exchange);
	if (s->about)
		s->about_drop(s->about);
	loom__plan_free(&s->plan);
	loom__stack_forget_process(s);
	free(s);
}

void loom_stack_close(struct loom_stack *s)
{
	if (!s)
		return;
	while (s->guests)
		s->guests->leave(s->guests);
	if (loom__stack_own(s, NULL)) { /* the other process owns workers, shared memory and descriptors */
		loom__images_forget(s);
		drop(s);
		return;
	}
	if (s->run.running)
		loom__sample_cancel(s);
	if (s->streams.enqueued) /* runs in a stream: their workers leave as soon as they begin */
		__atomic_store_n(&s->ctl->stop, 1u, __ATOMIC_RELAXED);
	s->run.running = 0;
	loom__stack_retire(s, NULL);
	if (s->launch.launched) /* workers that cannot be ended still use its memory: a leak is better than a crash */
		return;
	while (s->policies > 0) {
		struct loom__policy *p = &s->policy[--s->policies];
		p->ops->destroy(p->self);
	}
	while (s->memory.segments)
		loom__segments_release_last(s);
	if (s->transport_self)
		s->transport->destroy(s->transport_self);
	while (s->layout.devices > 0) {
		s->layout.devices--;
		s->device[s->layout.devices].ops->destroy(s->device[s->layout.devices].self);
	}
	drop(s);
}
