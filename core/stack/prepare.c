/* SPDX-License-Identifier: Apache-2.0 */
/* The composition of device code; then memory for all policies, carved from one segment for the stack
 * and one per device; then the launch of workers. */
#include <stdlib.h>
#include <string.h>

#include "stack/stack.h"

/* A segment while it is laid out: blocks are cache-line aligned and never share a line. */
struct carve {
	uint32_t segment;
	uint64_t at;
};

static loom_ref take(struct carve *c, uint64_t bytes)
{
	if (!bytes)
		return 0;
	loom_ref ref = LOOM_REF(c->segment, c->at);
	c->at += (bytes + 63) & ~63ull;
	return ref;
}

static int is_big(uint64_t bytes)
{
	return bytes > 1ull << 44;
}

static int ask_needs(struct loom_stack *s, struct loom_error *err)
{
	for (size_t i = 0; i < s->policies; i++) {
		struct loom__policy *p = &s->policy[i];
		p->need = (struct loom_need){.size = sizeof(p->need)};
		int rc = p->ops->need(p->self, &s->layout, &p->need, err);
		if (rc)
			return rc;
		if (is_big(p->need.global) || is_big(p->need.device) || is_big(p->need.worker) ||
		    is_big(p->need.local))
			return LOOM__FAIL(err, LOOM_EPLUGIN, "%s asks for an impossible amount of memory",
					  p->choice->plugin->name);
		for (uint32_t d = 0; d < s->layout.devices; d++)
			if (s->shape[d].local_bytes && p->need.local > s->shape[d].local_bytes)
				return LOOM__FAIL(
					err, LOOM_EUNAVAIL,
					"%s wants %llu bytes of private memory per worker, %s has %llu: "
					"choose smaller queues",
					p->choice->plugin->name, (unsigned long long)p->need.local,
					s->shape[d].name,
					(unsigned long long)s->shape[d].local_bytes);
		p->device_blocks = calloc(s->layout.devices, sizeof(void *));
		p->worker_blocks = calloc(s->layout.workers, sizeof(void *));
		p->near = calloc(s->layout.devices, sizeof(loom_ref));
		p->on_device = calloc(s->layout.devices, sizeof(loom_ref));
		p->registry = calloc(s->layout.devices, sizeof(loom_ref));
		if (!p->device_blocks || !p->worker_blocks || !p->near || !p->on_device || !p->registry)
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	}
	return 0;
}

/* What is constant is near a GPU that is apart: it need not read each piece over the link. */
static int wants_copies(const struct loom_stack *s, uint32_t device)
{
	return s->layout.apart && s->shape[device].kind == LOOM_ON_GPU;
}

/* Lays out all blocks. The first pass (write = 0) measures, the second fills refs and registries. */
static void lay_out(struct loom_stack *s, struct carve *shared, struct carve *device, int write)
{
	s->counters_ref = take(shared, s->layout.workers * sizeof(struct loom_counters));
	s->initial_ref = take(shared, s->initial_room * sizeof(struct loom_task));
	for (uint32_t d = 0; d < s->layout.devices; d++)
		s->initial_copy[d] =
			wants_copies(s, d) ? take(&device[d], s->initial_room * sizeof(struct loom_task)) : 0;
	s->trace_ref = take(shared, s->layout.workers * loom__trace_bytes(s));
	for (size_t i = 0; i < s->policies; i++) {
		struct loom__policy *p = &s->policy[i];
		p->global = take(shared, p->need.global);
		for (uint32_t d = 0; d < s->layout.devices; d++) {
			p->near[d] = p->need.flags & LOOM_NEED_CONSTANT && wants_copies(s, d) ?
					     take(&device[d], p->need.global) :
					     0;
			p->on_device[d] = take(&device[d], p->need.device);
			p->registry[d] = p->need.worker ? take(&device[d], s->layout.workers *
									   sizeof(loom_ref)) :
							  0;
		}
		for (uint32_t d = 0; d < s->layout.devices; d++)
			for (uint32_t w = 0; p->need.worker && w < s->shape[d].workers; w++) {
				loom_ref ref = take(&device[d], p->need.worker);
				uint32_t worker = s->shape[d].first_worker + w;
				if (!write)
					continue;
				p->worker_blocks[worker] = loom__host_at(s, ref);
				/* Every device has the registry in memory of its own (thesis, 5.3). */
				for (uint32_t r = 0; r < s->layout.devices; r++)
					((loom_ref *)loom__host_at(s, p->registry[r]))[worker] = ref;
			}
		if (!write)
			continue;
		for (uint32_t d = 0; p->need.device && d < s->layout.devices; d++)
			p->device_blocks[d] = loom__host_at(s, p->on_device[d]);
		p->view = (struct loom_view){
			.size = sizeof(p->view),
			.global = p->global ? loom__host_at(s, p->global) : NULL,
			.device = p->device_blocks,
			.worker = p->worker_blocks,
		};
	}
}

static int allocate(struct loom_stack *s, struct loom_error *err)
{
	uint32_t devices = s->layout.devices, first;
	struct carve shared = {0}, device[LOOM_MAX_DEVICES] = {{0}};
	struct loom_segment_want want[LOOM_MAX_DEVICES + 2];
	lay_out(s, &shared, device, 0);
	want[0] = (struct loom_segment_want){
		.bytes = sizeof(struct loom_ctl), .owner = -1, .flags = LOOM_MEMORY_HOST};
	want[1] = (struct loom_segment_want){.bytes = shared.at, .owner = -1};
	for (uint32_t d = 0; d < devices; d++)
		want[d + 2] = (struct loom_segment_want){.bytes = device[d].at ? device[d].at : 64,
							 .owner = (int32_t)d};
	int rc = loom__segments_add(s, want, devices + 2, &first, err);
	if (rc)
		return rc;
	s->ctl_ref = LOOM_REF(first, 0);
	s->ctl = loom__host_at(s, s->ctl_ref);
	shared = (struct carve){.segment = first + 1};
	for (uint32_t d = 0; d < devices; d++)
		device[d] = (struct carve){.segment = first + 2 + d};
	lay_out(s, &shared, device, 1);
	s->counters = loom__host_at(s, s->counters_ref);
	return 0;
}

static int add_constants(struct loom_stack *s, const struct loom__policy *p, char *text, size_t room,
			 struct loom_error *err)
{
	const void *any = p->choice->plugin->ops;
	const struct loom_sched_ops *sched = any;
	const struct loom_workload_ops *workload = any;
	if (p->choice->kind == LOOM_SCHED && LOOM_HAS(sched, constants))
		return sched->constants(p->self, &s->layout, text, room, err);
	if (p->choice->kind == LOOM_WORKLOAD && LOOM_HAS(workload, constants))
		return workload->constants(p->self, &s->layout, text, room, err);
	return 0;
}

static int compose(struct loom_stack *s, struct loom_error *err)
{
	struct loom_program program = {.size = sizeof(program),
				       .layout = &s->layout,
				       .policy = s->selected,
				       .task = s->task,
				       .tasks = s->tasks,
				       .source = s->source,
				       .sources = s->sources,
				       .irs = s->irs,
				       .ir = s->ir,
				       .traced = loom__trace_bytes(s) != 0};
	char constants[2048] = "";
	program.constants = constants;
	for (size_t i = 0; i < s->policies; i++) {
		struct loom_need need = {.size = sizeof(need)};
		enum loom_kind kind = s->policy[i].choice->kind;
		if (kind != LOOM_SCHED && kind != LOOM_TERM)
			continue;
		int rc = s->policy[i].ops->need(s->policy[i].self, &s->layout, &need, err);
		if (rc)
			return rc;
		program.local_bytes += (need.local + 63) & ~63ull;
	}
	for (size_t i = 0; i < s->policies; i++) {
		size_t at = strlen(constants);
		int rc = add_constants(s, &s->policy[i], constants + at, sizeof(constants) - at, err);
		if (rc)
			return rc;
	}
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		int rc = s->device[d].ops->build(s->device[d].self, &program, err);
		if (rc)
			return rc;
	}
	/* How many workers a GPU keeps resident depends on the code. */
	return loom__stack_shape(s, err);
}

/* The initial set, and the workload's constants, to where devices have copies of them. */
static void copy_near(struct loom_stack *s, const struct loom__policy *workload)
{
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		if (s->initial_copy[d])
			memcpy(loom__host_at(s, s->initial_copy[d]), loom__host_at(s, s->initial_ref),
			       s->layout.initial_tasks * sizeof(struct loom_task));
		if (workload && workload->near[d])
			memcpy(loom__host_at(s, workload->near[d]), loom__host_at(s, workload->global),
			       workload->need.global);
	}
}

int loom__stack_prepare(struct loom_stack *s, struct loom_error *err)
{
	if (s->prepared)
		return 0;
	struct loom__policy *workload = NULL;
	for (size_t i = 0; i < s->policies; i++)
		if (s->policy[i].choice->kind == LOOM_WORKLOAD)
			workload = &s->policy[i];
	const struct loom_workload_ops *ops = workload ? workload->choice->plugin->ops : NULL;
	int rc = compose(s, err);
	if (rc)
		return rc;
	/* The workload is asked first: how many tasks there are decides the size of queues. */
	if (workload) {
		workload->need = (struct loom_need){.size = sizeof(workload->need)};
		rc = ops->need(workload->self, &s->layout, &workload->need, err);
		if (rc)
			return rc;
		s->layout.initial_tasks =
			LOOM_HAS(ops, task_count) ? ops->task_count(workload->self, &s->layout) : 0;
	} else {
		s->layout.initial_tasks = s->submitted_count;
	}
	if (s->layout.initial_tasks > 1ull << 38)
		return LOOM__FAIL(err, LOOM_EINVAL, "too many initial tasks");
	s->initial_room = s->layout.initial_tasks ? s->layout.initial_tasks : 1;
	rc = loom__sync_channels(s, err);
	if (!rc)
		rc = loom__qos_tenants(s, err);
	if (!rc)
		rc = ask_needs(s, err);
	if (!rc)
		rc = allocate(s, err);
	if (!rc && ops && s->layout.initial_tasks)
		rc = ops->tasks(workload->self, &s->layout, &workload->view, workload->global,
				loom__host_at(s, s->initial_ref), err);
	if (!rc)
		copy_near(s, workload);
	s->prepared = !rc;
	s->broken = rc != 0;
	return rc;
}

int loom__stack_launch(struct loom_stack *s, struct loom_error *err)
{
	if (!s->orders)
		s->orders = calloc(s->layout.devices, sizeof(*s->orders));
	if (!s->orders)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	*s->ctl = (struct loom_ctl){.initial_tasks = s->layout.initial_tasks};
	s->samples_done = 0;
	s->launched = 1;
	uint32_t attachments = loom__sync_attachments(s, &s->attachment);
	int started = loom__qos_grants(s, err);
	if (!started)
		started = loom__policies_start(s, err);
	if (started)
		return started;
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		struct loom__orders *o = &s->orders[d];
		*o = (struct loom__orders){0};
		for (size_t i = 0; i < s->policies; i++) {
			const struct loom__policy *p = &s->policy[i];
			if (p->choice->plugin != s->selected[p->choice->kind])
				continue; /* not the leader of a pipeline */
			o->global[p->choice->kind] = p->near[d] ? p->near[d] : p->global;
			o->on_device[p->choice->kind] = p->on_device[d];
			o->registry[p->choice->kind] = p->registry[d];
			o->local_bytes[p->choice->kind] = p->need.local;
		}
		o->launch = (struct loom_launch){.size = sizeof(o->launch),
						 .entry = LOOM_ENTRY_WORK,
						 .device = d,
						 .layout = &s->layout,
						 .segment = s->segment,
						 .segments = s->segments + 1,
						 .ctl = s->ctl_ref,
						 .counters = s->counters_ref,
						 .initial = s->initial_copy[d] ? s->initial_copy[d] : s->initial_ref,
						 .trace = s->trace_ref,
						 .trace_bytes = loom__trace_bytes(s),
						 .global = o->global,
						 .on_device = o->on_device,
						 .registry = o->registry,
						 .local_bytes = o->local_bytes,
						 .attachment = &s->attachment,
						 .attachments = attachments};
		int rc = s->device[d].ops->launch(s->device[d].self, &o->launch, err);
		if (rc)
			return rc;
	}
	return 0;
}

#define RETIRE_TIMEOUT_NS 1000000000ull

int loom__stack_retire(struct loom_stack *s, struct loom_error *err)
{
	if (!s->launched)
		return 0;
	int rc = 0, left = 0;
	__atomic_store_n(&s->ctl->phase, LOOM_PHASE_RETIRE, __ATOMIC_RELEASE);
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		int ended =
			s->device[d].ops->retire(s->device[d].self, RETIRE_TIMEOUT_NS, rc ? NULL : err);
		if (!rc)
			rc = ended;
		left |= ended == LOOM_ETIMEDOUT;
	}
	s->launched = left; /* threads that cannot be ended still use the memory */
	if (!left)
		loom__policies_stop(s);
	return rc;
}
