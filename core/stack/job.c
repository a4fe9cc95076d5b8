/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares the next run: the initial set, its copies in the memory of devices, and the workers. Also ends the workers,
 * and checks whether workers of an earlier run have left. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stack/stack.h"

/* Workers that have not left after this time are ended by force. Workers that were stopped may be in a task that does not
 * end. Workers that were not stopped only need a core, for which they may have to wait on a busy machine. */
#define STOPPED_TIMEOUT_NS 1000000000ull
#define PARKED_TIMEOUT_NS 30000000000ull

/* ---- the initial set ---------------------------------------------------------------------------- */

/* Returns 1 if device d has a copy of the initial set. A small set is copied before each sample by each device that
 * resets its own memory (LOOM_SHAPE_KEEPS). Of a larger set, a GPU has a copy if it would otherwise read the tasks
 * across a link. It would do so if the set is in host memory and devices are non-coherent, or if the set is in memory
 * of another GPU. `home` is the device that has the set in its memory, or -1 for host memory. Coherent devices read a
 * set in host memory in place, because the conf may demand that. */
static int has_copy(const struct loom_stack *s, uint32_t d, int32_t home, int small)
{
	if (small)
		return (s->shape[d].flags & LOOM_SHAPE_KEEPS) != 0;
	return s->shape[d].kind == LOOM_ON_GPU && (s->layout.noncoherent || (home >= 0 && (uint32_t)home != d));
}

/* Makes room for `tasks` initial tasks, in memory that all devices can access and in the devices' copies. The room
 * doubles each time, because segments stay until the stack is closed. */
int loom__initial_room(struct loom_stack *s, uint64_t tasks, struct loom_error *err)
{
	struct loom_segment_want want[LOOM_MAX_DEVICES];
	uint32_t first, n = 0, devices = s->layout.devices;
	uint64_t room = s->initial_room ? s->initial_room : 1;
	if (s->initial_ref && tasks <= s->initial_room)
		return 0;
	if (tasks > 1ull << 38)
		return LOOM__FAIL(err, LOOM_EINVAL, "too many initial tasks");
	int rc = loom__stack_retire(s, err); /* launched workers know only the old address */
	if (rc)
		return rc;
	if (!s->initial_ref)
		room = tasks ? tasks : 1;
	while (room < tasks)
		room *= 2;
	if (tasks <= LOOM__SMALL_SET && room > LOOM__SMALL_SET)
		room = LOOM__SMALL_SET;
	int small = loom__may_keep(s) && room <= LOOM__SMALL_SET;
	want[0] = (struct loom_segment_want){.bytes = room * sizeof(struct loom_task),
					     .owner = -1,
					     .flags = small ? LOOM_MEMORY_HOST : LOOM_MEMORY_TASKS};
	rc = loom__segments_add(s, want, 1, &first, err);
	if (rc)
		return rc;
	int32_t home = s->segment[first].memory->device;
	uint32_t set = first;
	for (uint32_t d = 0; d < devices; d++)
		if (has_copy(s, d, home, small))
			want[n++] = (struct loom_segment_want){
				.bytes = room * sizeof(struct loom_task), .owner = (int32_t)d, .flags = LOOM_MEMORY_PRIVATE};
	rc = n ? loom__segments_add(s, want, n, &first, err) : 0;
	if (rc)
		return rc;
	s->initial_ref = LOOM_REF(set, 0); /* set only here, so that an error above changes nothing */
	for (uint32_t d = 0; d < devices; d++)
		s->initial_copy[d] = has_copy(s, d, home, small) ? LOOM_REF(first++, 0) : 0;
	s->initial_room = room;
	s->initial_small = small;
	return 0;
}

void loom__initial_copy(struct loom_stack *s)
{
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if (s->initial_copy[d] && !s->initial_small)
			memcpy(loom__host_at(s, s->initial_copy[d]), loom__host_at(s, s->initial_ref),
			       s->layout.initial_tasks * sizeof(struct loom_task));
}

int loom_stack_submit(struct loom_stack *s, const struct loom_task *tasks, size_t n, struct loom_error *err)
{
	if (loom__stack_own(s, err))
		return LOOM_EBUSY;
	if (s->selected[LOOM_WORKLOAD])
		return LOOM__FAIL(err, LOOM_EINVAL,
				  "the conf selects a workload: its tasks cannot be mixed with others");
	if (!tasks && n)
		return LOOM__FAIL(err, LOOM_EINVAL, "no tasks to submit: %zu at NULL", n);
	if (n > SIZE_MAX / 4 / sizeof(*tasks))
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory for %zu tasks", n);
	for (size_t i = 0; i < n; i++)
		if (tasks[i].tag >= s->tasks)
			return LOOM__FAIL(err, LOOM_EINVAL, "task %zu has tag %u, but only %u are registered",
					  i, tasks[i].tag, s->tasks);
	return loom__submit(s, tasks, n, err);
}

int loom__submit(struct loom_stack *s, const struct loom_task *tasks, size_t n, struct loom_error *err)
{
	if (n > s->submitted_room - s->submitted_count) {
		size_t room = s->submitted_room ? s->submitted_room : 64;
		while (room - s->submitted_count < n)
			room *= 2;
		struct loom_task *list = realloc(s->submitted, room * sizeof(*list));
		if (!list)
			return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory for %zu tasks", n);
		s->submitted = list;
		s->submitted_room = room;
	}
	if (n)
		memcpy(s->submitted + s->submitted_count, tasks, n * sizeof(*tasks));
	s->submitted_count += n;
	return 0;
}

/* ---- the workers --------------------------------------------------------------------------------- */

static int may_be_late(struct loom_stack *s)
{
	const struct loom__policy *sched = loom__policy_of(s, LOOM_SCHED), *term = loom__policy_of(s, LOOM_TERM);
	return s->layout.devices == 1 && sched && term && sched->need.flags & term->need.flags & LOOM_NEED_LATE;
}

/* Fills *chain, and returns 1 if the workload runs in steps and the trigger has the words for which steps wait. */
static int fill_chain(struct loom_stack *s, uint32_t d, struct loom_chain *chain)
{
	const struct loom__policy *w = loom__policy_of(s, LOOM_WORKLOAD), *t = loom__policy_of(s, LOOM_TRIGGER);
	const struct loom_workload_ops *workload = w ? w->choice->plugin->ops : NULL;
	const struct loom_trigger_ops *trigger = t ? t->choice->plugin->ops : NULL;
	if (!LOOM_HAS(workload, steps) || !LOOM_HAS(workload, awaits) || !LOOM_HAS(trigger, edge))
		return 0;
	*chain = (struct loom_chain){.size = sizeof(*chain),
				     .steps = workload->steps(w->self, &s->layout),
				     .words = t->global,
				     .awaits = workload->awaits,
				     .self = w->self};
	trigger->edge(t->self, d, &chain->edge);
	return 1;
}

static int keeps(const struct loom_stack *s, uint32_t d)
{
	return s->resets && s->shape[d].flags & LOOM_SHAPE_KEEPS;
}

static uint32_t launch_flags(struct loom_stack *s, uint32_t d)
{
	const struct loom__policy *sched = loom__policy_of(s, LOOM_SCHED);
	uint32_t flags = may_be_late(s) ? LOOM_LAUNCH_LATE : 0;
	if (!keeps(s, d))
		return flags;
	flags |= LOOM_LAUNCH_KEPT;
	if (s->layout.devices > 1 || loom__resets_vary(s))
		return flags;
	flags |= LOOM_LAUNCH_QUICK;
	return sched && sched->need.flags & LOOM_NEED_SMALL ? flags | LOOM_LAUNCH_SMALL : flags;
}

static void fill_orders(struct loom_stack *s, uint32_t d, uint32_t attachments)
{
	struct loom__orders *o = &s->orders[d];
	*o = (struct loom__orders){0};
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom__policy *p = &s->policy[i];
		if (p->choice->plugin != s->selected[p->choice->kind])
			continue; /* a qos plug-in that is not the leader of the pipeline */
		o->global[p->choice->kind] = p->copy[d] ? p->copy[d] : p->global;
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
					 .flags = launch_flags(s, d),
					 .ctl = s->ctl_ref,
					 .counters = s->counters_ref,
					 .initial = s->initial_copy[d] && (keeps(s, d) || !s->initial_small) ?
							    s->initial_copy[d] :
							    s->initial_ref,
					 .trace = s->trace_ref,
					 .trace_bytes = loom__trace_bytes(s),
					 .global = o->global,
					 .on_device = o->on_device,
					 .registry = o->registry,
					 .local_bytes = o->local_bytes,
					 .attachment = &s->attachment,
					 .attachments = attachments,
					 .chain = fill_chain(s, d, &o->chain) ? &o->chain : NULL};
	if (keeps(s, d))
		o->launch.reset = loom__resets_of(s, d, &o->launch.resets);
	if (keeps(s, d) && s->initial_small)
		o->launch.tasks = s->initial_ref;
}

int loom__stack_launch(struct loom_stack *s, struct loom_error *err)
{
	if (s->launched)
		return 0;
	if (!s->orders)
		s->orders = calloc(s->layout.devices, sizeof(*s->orders));
	if (!s->orders)
		return LOOM__FAIL(err, LOOM_ENOMEM, "out of memory");
	int rc = loom__resets_make(s, err);
	if (rc)
		return rc;
	__atomic_store_n(&s->captured, 0, __ATOMIC_RELAXED); /* graphs of an earlier launch do nothing any more */
	*s->ctl = (struct loom_ctl){0};
	s->samples_done = 0;
	s->launches++;
	s->launched = 1;
	uint32_t attachments = loom__sync_attachments(s, &s->attachment);
	rc = loom__qos_grants(s, err);
	if (!rc)
		rc = loom__policies_start(s, err);
	if (!rc)
		rc = loom__ranks_reach(s, err);
	for (uint32_t d = 0; d < s->layout.devices && !rc; d++) {
		fill_orders(s, d, attachments);
		rc = s->device[d].ops->launch(s->device[d].self, &s->orders[d].launch, err);
	}
	s->stays = !attachments && !s->host.exchange.ranks;
	for (uint32_t d = 0; d < s->layout.devices; d++)
		s->stays &= s->shape[d].flags & LOOM_SHAPE_PERSISTENT || keeps(s, d);
	for (size_t i = 0; i < s->policies; i++)
		s->stays &= !s->policy[i].started;
	if (rc)
		loom__stack_retire(s, NULL);
	return rc;
}

static int retire(struct loom_stack *s, uint64_t timeout_ns, struct loom_error *err)
{
	int rc = 0, left = 0;
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		int ended = s->device[d].ops->retire(s->device[d].self, timeout_ns, rc ? NULL : err);
		if (!rc)
			rc = ended;
		left |= ended == LOOM_ETIMEDOUT;
	}
	s->launched = s->stuck = left; /* workers that cannot be ended still use the memory */
	if (!left)
		loom__policies_stop(s);
	return rc;
}

int loom__stack_retire(struct loom_stack *s, struct loom_error *err)
{
	if (!s->launched)
		return 0;
	if (loom__stack_own(s, err))
		return LOOM_EBUSY;
	if (s->running)
		return LOOM__FAIL(err, LOOM_EBUSY, "a run is in progress: loom_stack_wait() first");
	/* Release: pairs with the acquire by which workers load the phase. */
	__atomic_store_n(&s->ctl->phase, LOOM_PHASE_RETIRE, __ATOMIC_RELEASE);
	/* Relaxed: a request to stop may come at this time. */
	int stopped = __atomic_load_n(&s->ctl->stop, __ATOMIC_RELAXED) != 0;
	return retire(s, stopped ? STOPPED_TIMEOUT_NS : PARKED_TIMEOUT_NS, err);
}

void loom__stack_note_process(struct loom_stack *s)
{
	size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	s->owner = getpid();
	if (page == MAP_FAILED)
		return;
	if (madvise(page, bytes, MADV_WIPEONFORK)) {
		munmap(page, bytes);
		return;
	}
	s->unforked = page;
	*s->unforked = 1;
}

void loom__stack_forget_process(struct loom_stack *s)
{
	if (s->unforked)
		munmap(s->unforked, (size_t)sysconf(_SC_PAGESIZE));
}

int loom__stack_own(const struct loom_stack *s, struct loom_error *err)
{
	if (s->unforked ? *s->unforked : s->owner == getpid())
		return 0;
	return LOOM__FAIL(err, LOOM_EBUSY, "the stack belongs to the process that opened it, of which this one is a fork: open "
					   "a stack in this process");
}

int loom__stack_is_idle(struct loom_stack *s, struct loom_error *err)
{
	struct loom_error why;
	if (loom__stack_own(s, err))
		return LOOM_EBUSY;
	if (s->broken)
		return LOOM__FAIL(err, LOOM_EINVAL, "the stack could not be set up: close it");
	if (s->running)
		return LOOM__FAIL(err, LOOM_EBUSY, "a run is in progress: loom_stack_wait() first");
	if (s->enqueued)
		return LOOM__FAIL(err, LOOM_EBUSY, "%llu runs are in a stream: loom_stack_wait() first",
				  (unsigned long long)s->enqueued);
	if (s->stuck && retire(s, 0, &why) == LOOM_ETIMEDOUT)
		return LOOM__FAIL(err, LOOM_EBUSY, "workers of a run that was stopped are still there: %s",
				  why.text);
	return 0;
}
