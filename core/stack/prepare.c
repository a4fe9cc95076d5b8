/* SPDX-License-Identifier: Apache-2.0 */
/* Composes the device code, and lays out the blocks of policies. Each owner (the stack or a device) has one segment for
 * each place in which it has blocks. */
#include <stdlib.h>
#include <string.h>

#include "stack/stack.h"
#include "lib/align.h"

#define SEGMENT_MOST (1ull << 48) /* limit on the offset of a loom_ref */

/* A segment during the layout. `at` is the end of the last block, or stays SEGMENT_MOST if the blocks do not fit. A block begins a
 * cache line, a large one a page (workload_place(), too): GPUs take longer to read rows that begin in the middle of a line. */
struct carve {
	uint32_t segment;
	uint64_t at;
};

static loom_ref take(struct carve *c, uint64_t bytes)
{
	if (!bytes)
		return 0;
	c->at = loom__align(c->at, bytes < 64 << 10 ? 64 : 4096);
	loom_ref ref = LOOM_REF(c->segment, c->at);
	bytes = loom__align(bytes, 64);
	c->at = bytes < SEGMENT_MOST - c->at ? c->at + bytes : SEGMENT_MOST;
	return ref;
}

/* Returns an error if a stop was requested or the time limit has passed. Called between the steps of the set-up, which
 * is long for a large job. A stack that is set up in part cannot run anything else. So after the first step (`begun` is
 * 1), the function checks only if the caller will close the stack anyway. */
static int halted(struct loom_stack *s, int begun, struct loom_error *err)
{
	uint64_t limit = s->plan.run.time_limit;
	if (begun && !s->run.closes)
		return 0;
	if (__atomic_load_n(&s->stop_requests, __ATOMIC_RELAXED))
		return LOOM__FAIL(err, LOOM_EINTR, "interrupted while the run was set up");
	if (limit && s->run.begin_ns && loom__now_ns() - s->run.begin_ns > limit)
		return LOOM__FAIL(err, LOOM_ETIMEDOUT, "[run] time_limit reached while the run was set up");
	return 0;
}

/* Called by a policy whose need() or tasks() takes long. */
static int preparing(void *arg, double done, struct loom_error *err)
{
	(void)done;
	return halted(arg, 1, err);
}

static int ask_needs(struct loom_stack *s, struct loom_error *err)
{
	for (size_t i = 0; i < s->policies; i++) {
		struct loom__policy *p = &s->policy[i];
		int rc = loom__policy_need(s, p, &p->need, err);
		rc = rc ? rc : halted(s, 1, err);
		if (rc)
			return rc;
		p->device_blocks = calloc(s->layout.devices, sizeof(void *));
		p->worker_blocks = calloc(s->layout.workers, sizeof(void *));
		p->copy = calloc(s->layout.devices, sizeof(loom_ref));
		p->on_device = calloc(s->layout.devices, sizeof(loom_ref));
		p->registry = calloc(s->layout.devices, sizeof(loom_ref));
		if (!p->device_blocks || !p->worker_blocks || !p->copy || !p->on_device || !p->registry)
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	}
	return 0;
}

/* The segments that contain blocks. First index: the device that owns the segment, or layout.devices for the stack.
 * Second index: an enum loom_place. */
struct room {
	struct carve at[LOOM_MAX_DEVICES + 1][LOOM_PLACES];
};

static const uint32_t memory_flags[LOOM_PLACES] = {
	[LOOM_PLACE_HOST] = LOOM_MEMORY_HOST, [LOOM_PLACE_DEVICE] = LOOM_MEMORY_PRIVATE};

/* Lays out a policy's blocks for workers, and the registries by which devices find these blocks. */
static void lay_out_workers(struct loom_stack *s, struct loom__policy *p, struct room *room, int write)
{
	for (uint32_t d = 0; d < s->layout.devices; d++)
		p->registry[d] = take(&room->at[d][LOOM_PLACE_DEVICE], s->layout.workers * sizeof(loom_ref));
	for (uint32_t d = 0; d < s->layout.devices; d++)
		for (uint32_t w = 0; w < s->shape[d].workers; w++) {
			loom_ref ref = take(&room->at[d][p->need.worker_place], p->need.worker);
			uint32_t worker = s->shape[d].first_worker + w;
			if (!write)
				continue;
			p->worker_blocks[worker] = loom__host_at(s, ref);
			/* Every device has a copy of the registry in its own memory (thesis, 5.3). */
			for (uint32_t r = 0; r < s->layout.devices; r++)
				((loom_ref *)loom__host_at(s, p->registry[r]))[worker] = ref;
		}
}

/* Lays out all blocks. If `write` is 0, only finds the sizes of segments; otherwise sets the references and fills in registries. */
static void lay_out(struct loom_stack *s, struct room *room, int write)
{
	struct carve *shared = room->at[s->layout.devices];
	s->ctl_ref = take(&shared[LOOM_PLACE_HOST], sizeof(struct loom_ctl));
	s->counters_ref = take(&shared[LOOM_PLACE_ANY], s->layout.workers * sizeof(struct loom_counters));
	s->trace.ref = take(&shared[LOOM_PLACE_ANY], s->layout.workers * loom__trace_bytes(s));
	for (size_t i = 0; i < s->policies; i++) {
		struct loom__policy *p = &s->policy[i];
		struct carve *of = p->need.global_place == LOOM_PLACE_DEVICE ? room->at[0] : shared; /* at[0]: the only device */
		p->global = take(&of[p->need.global_place], p->need.global);
		for (uint32_t d = 0; d < s->layout.devices; d++) {
			int copied = p->need.flags & LOOM_NEED_CONSTANT && s->layout.devices > 1 && s->shape[d].kind == LOOM_ON_GPU;
			p->copy[d] = copied ? take(&room->at[d][LOOM_PLACE_DEVICE], p->need.global) : 0;
			p->on_device[d] = take(&room->at[d][p->need.device_place], p->need.device);
			if (write && p->need.device)
				p->device_blocks[d] = loom__host_at(s, p->on_device[d]);
		}
		if (p->need.worker)
			lay_out_workers(s, p, room, write);
		if (write)
			p->view = (struct loom_view){
				.size = sizeof(p->view),
				.global = p->global ? loom__host_at(s, p->global) : NULL,
				.device = p->device_blocks,
				.worker = p->worker_blocks};
	}
}

static int allocate(struct loom_stack *s, struct loom_error *err)
{
	uint32_t devices = s->layout.devices, first, n = 0;
	struct room room = {0};
	struct loom_segment_want want[(LOOM_MAX_DEVICES + 1) * LOOM_PLACES];
	lay_out(s, &room, 0);
	for (uint32_t d = 0; d <= devices; d++)
		for (uint32_t place = 0; place < LOOM_PLACES; place++) {
			if (room.at[d][place].at >= SEGMENT_MOST)
				return LOOM__FAIL(err, LOOM_ENOMEM, "the blocks of all workers take more than 256 TiB: have fewer workers, or "
						  "smaller queues");
			if (room.at[d][place].at)
				want[n++] = (struct loom_segment_want){.bytes = room.at[d][place].at,
								       .owner = d < devices ? (int32_t)d : -1,
								       .flags = memory_flags[place]};
		}
	int rc = loom__segments_add(s, want, n, &first, err);
	if (rc)
		return rc;
	for (uint32_t d = 0; d <= devices; d++)
		for (uint32_t place = 0; place < LOOM_PLACES; place++)
			if (room.at[d][place].at)
				room.at[d][place] = (struct carve){.segment = first++};
	lay_out(s, &room, 1);
	s->ctl = loom__host_at(s, s->ctl_ref);
	s->counters = loom__host_at(s, s->counters_ref);
	return 0;
}

static const struct loom_barrier_scopes *barrier_scopes_of(struct loom_stack *s)
{
	struct loom__policy *w = loom__policy_of(s, LOOM_WORKLOAD);
	const struct loom_workload_ops *ops = w ? w->choice->plugin->ops : NULL;
	return LOOM_HAS(ops, barrier_scopes) ? ops->barrier_scopes(w->self, &s->layout) : NULL;
}

/* Returns the scratchpad memory that task functions use, in bytes per worker. */
static uint64_t scratch_of(struct loom_stack *s)
{
	struct loom__policy *w = loom__policy_of(s, LOOM_WORKLOAD);
	const struct loom_workload_ops *ops = w ? w->choice->plugin->ops : NULL;
	return LOOM_HAS(ops, scratch) ? ops->scratch(w->self, &s->layout) : 0;
}

static uint32_t registers_of(struct loom_stack *s)
{
	struct loom__policy *w = loom__policy_of(s, LOOM_WORKLOAD);
	const struct loom_workload_ops *ops = w ? w->choice->plugin->ops : NULL;
	return LOOM_HAS(ops, registers) ? ops->registers(w->self, &s->layout) : 0;
}

static int compose(struct loom_stack *s, struct loom_error *err)
{
	struct loom_program program = {.size = sizeof(program),
				       .layout = &s->layout,
				       .policy = s->selected,
				       .registers = registers_of(s),
				       .traced = loom__trace_bytes(s) != 0};
	char constants[2048] = "";
	if (s->layout.ranks > 1) /* gpuloom/trigger.h explains these macros */
		strcpy(constants, s->layout.rma ? "#define LOOM_RANKS_SHARE 1\n#define LOOM_RANKS_RMA 1\n" :
						   "#define LOOM_RANKS_SHARE 1\n");
	const struct loom_plugin *workload = s->selected[LOOM_WORKLOAD];
	const struct loom_workload_dev *dev = workload && workload->dev ? workload->dev->cpu : NULL;
	s->layout.costs = !workload ? LOOM_COSTS_OF_DATA : LOOM_HAS(dev, cost) ? LOOM_COSTS_OF_WORKLOAD : LOOM_COSTS_UNKNOWN;
	program.constants = constants;
	s->layout.barrier_scopes = barrier_scopes_of(s);
	s->layout.net = &s->net;
	/* The device code of schedulers and detectors depends on the numbers of workers of all ranks. These numbers are
	 * read a second time below, because the composed code may change the shapes of devices. */
	int code = loom__code_list(s, &program, err);
	code = code ? code : loom__ranks_size(s, err);
	if (code)
		return code;
	for (size_t i = 0; i < s->policies; i++) {
		struct loom_need need = {.size = sizeof(need)};
		enum loom_kind kind = s->policy[i].choice->kind;
		if (kind != LOOM_SCHED && kind != LOOM_TERM && kind != LOOM_TRIGGER && kind != LOOM_BARRIER)
			continue;
		int rc = LOOM__OP(s->policy[i].choice, "need", s->policy[i].ops->need(s->policy[i].self, &s->layout, &need, err), err);
		if (rc)
			return rc;
		program.local_bytes += loom__align(need.local, 64);
	}
	program.local_bytes += loom__align(scratch_of(s), 64);
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom__policy *p = &s->policy[i];
		size_t at = strlen(constants);
		int rc = LOOM_HAS(p->ops, constants) ? p->ops->constants(p->self, &s->layout, constants + at, sizeof(constants) - at, err) : 0;
		if (rc)
			return rc;
	}
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		int rc = LOOM__OP(s->device[d].choice, "build", s->device[d].ops->build(s->device[d].self, &program, err), err);
		if (rc)
			return rc;
	}
	int rc = loom__stack_shape(s, err); /* the code determines how many workers a GPU keeps resident */
	return rc ? rc : loom__ranks_size(s, err);
}

/* Checks that the barrier has the scopes that the workload uses. */
static int check_barrier_scopes(struct loom_stack *s, struct loom_error *err)
{
#define SCOPE_NAME(NAME, value, text) text,
	static const char *const names[] = {LOOM_SCOPE_MAP(SCOPE_NAME)};
	const struct loom_plugin *barrier = s->selected[LOOM_BARRIER], *workload = s->selected[LOOM_WORKLOAD];
	const struct loom_barrier_scopes *m = s->layout.barrier_scopes = barrier_scopes_of(s);
	if (!barrier || !m)
		return 0;
	uint64_t has = barrier->caps ? barrier->caps : LOOM_CAP_BARRIER_DEFAULT, lacks = m->scopes & ~has;
	if (m->drops && !(has & LOOM_CAP_BARRIER_DROP))
		return LOOM__FAIL(err, LOOM_ENOTSUP, "workers of %s leave the barrier for good, which %s does not "
				"support: choose another barrier", workload->name, barrier->name);
	for (uint32_t i = 0; i < LOOM_SCOPES; i++)
		if (lacks & LOOM_CAP_BARRIER(i))
			return LOOM__FAIL(err, LOOM_ENOTSUP, "%s has a barrier of the scope '%s', which %s does "
					"not support: choose another scope, or another barrier", workload->name,
					names[i], barrier->name);
	if (loom__barrier_spans_ranks(s) && !loom__policy_of(s, LOOM_TRIGGER))
		return LOOM__FAIL(err, LOOM_EINVAL, "%s has a barrier of the scope 'job', and %u ranks synchronise "
				"by messages: set 'use = NAME' in [trigger] (`gpuloom list trigger` shows the names)",
				workload->name, s->host.table.ranks);
	return 0;
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* Adds up the posts and tags of the workload and the barrier, which determine the size of the trigger's tables. */
static int ask_net(struct loom_stack *s, const struct loom__policy *workload, struct loom_error *err)
{
	const struct loom__policy *barrier = loom__policy_of(s, LOOM_BARRIER);
	struct loom_need need = {.size = sizeof(need)};
	s->net = workload ? workload->need.net : (struct loom_net_need){0};
	if (!barrier || !loom__barrier_spans_ranks(s))
		return 0;
	int rc = barrier->ops->need(barrier->self, &s->layout, &need, err);
	s->net.posts += need.net.posts;
	s->net.tags += need.net.tags;
	s->net.slots = larger(s->net.slots, need.net.slots);
	s->net.arrivals = larger(s->net.arrivals, need.net.arrivals);
	return rc;
}

/* Allocates the blocks and writes the workload's initial set. */
static int make_room(struct loom_stack *s, struct loom_error *err)
{
	struct loom__policy *workload = loom__policy_of(s, LOOM_WORKLOAD);
	const struct loom_workload_ops *ops = workload ? workload->choice->plugin->ops : NULL;
	int rc = 0;
	s->layout.initial_tasks = s->initial.count;
	/* Ask the workload first, because the number of its tasks determines the size of queues. */
	if (workload) {
		workload->need = (struct loom_need){.size = sizeof(workload->need)};
		rc = LOOM__OP(workload->choice, "need", ops->need(workload->self, &s->layout, &workload->need, err), err);
		s->layout.initial_tasks = LOOM_HAS(ops, task_count) && !rc ? ops->task_count(workload->self, &s->layout) : 0;
	}
	rc = rc ? rc : loom__sync_channels(s, err);
	rc = rc ? rc : check_barrier_scopes(s, err);
	rc = rc ? rc : ask_net(s, workload, err);
	rc = rc ? rc : loom__qos_tenants(s, err);
	rc = rc ? rc : ask_needs(s, err);
	rc = rc ? rc : allocate(s, err);
	rc = rc ? rc : halted(s, 1, err);
	rc = rc ? rc : loom__initial_room(s, s->layout.initial_tasks, err);
	rc = rc ? rc : halted(s, 1, err);
	if (!rc && ops && s->layout.initial_tasks)
		rc = LOOM__OP(workload->choice, "tasks", ops->tasks(workload->self, &s->layout, &workload->view, workload->global,
								     loom__host_at(s, s->initial.ref), err), err);
	rc = rc ? rc : halted(s, 1, err);
	if (rc || !workload)
		return rc;
	loom__initial_written(s);
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if (workload->copy[d])
			memcpy(loom__host_at(s, workload->copy[d]), loom__host_at(s, workload->global),
			       workload->need.global);
	return 0;
}

int loom__stack_prepare(struct loom_stack *s, struct loom_error *err)
{
	uint32_t workers = s->layout.workers;
	int rc = loom__ranks_watch(s, err);
	if (rc)
		return rc;
	if (!s->composed) {
		rc = loom__stack_room(err);
		rc = rc ? rc : loom__stack_retire(s, err);
		rc = rc ? rc : halted(s, 0, err);
		rc = rc ? rc : compose(s, err);
		if (rc)
			return rc;
		s->composed = 1;
	}
	if (s->prepared && workers != s->layout.workers)
		rc = LOOM__FAIL(err, LOOM_ENOTSUP, "with the task functions that were added devices have %u workers "
				"instead of %u: register them before the first run", s->layout.workers, workers);
	s->host.progress = preparing;
	s->host.verifying_arg = s;
	if (!s->prepared && !rc)
		rc = make_room(s, err);
	s->host.progress = NULL;
	s->prepared = !rc;
	s->broken = rc != 0;
	return rc;
}
