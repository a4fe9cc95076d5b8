/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the workers for the next run, ends them, and checks whether workers of an earlier run have left. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stack/stack.h"

/* Workers that have not left after this time are ended by force. Workers that were stopped may be in a task that does not
 * end. Workers that were not stopped only need a core, for which they may have to wait on a busy machine. */
#define STOPPED_TIMEOUT_NS 1000000000ull
#define PARKED_TIMEOUT_NS 30000000000ull

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
					 .segment = s->memory.segment,
					 .segments = s->memory.segments + 1,
					 .flags = launch_flags(s, d),
					 .ctl = s->ctl_ref,
					 .counters = s->counters_ref,
					 .initial = s->initial.copy[d] && (keeps(s, d) || !s->initial.small) ?
							    s->initial.copy[d] :
							    s->initial.ref,
					 .trace = s->trace.ref,
					 .trace_bytes = loom__trace_bytes(s),
					 .global = o->global,
					 .on_device = o->on_device,
					 .registry = o->registry,
					 .local_bytes = o->local_bytes,
					 .attachment = &s->launch.attachment,
					 .attachments = attachments,
					 .chain = fill_chain(s, d, &o->chain) ? &o->chain : NULL};
	if (keeps(s, d))
		o->launch.reset = loom__resets_of(s, d, &o->launch.resets);
	if (keeps(s, d) && s->initial.small)
		o->launch.tasks = s->initial.ref;
}

int loom__stack_launch(struct loom_stack *s, struct loom_error *err)
{
	if (s->launch.launched)
		return 0;
	int rc = loom__resets_make(s, err);
	if (rc)
		return rc;
	__atomic_store_n(&s->launch.captured, 0, __ATOMIC_RELAXED); /* graphs of an earlier launch do nothing any more */
	loom__sample_reset(s);
	s->launch.number++;
	s->launch.launched = 1;
	uint32_t attachments = loom__sync_attachments(s, &s->launch.attachment);
	rc = loom__qos_grants(s, err);
	rc = rc ? rc : loom__policies_start(s, err);
	rc = rc ? rc : loom__ranks_reach(s, err);
	for (uint32_t d = 0; d < s->layout.devices && !rc; d++) {
		fill_orders(s, d, attachments);
		rc = LOOM__OP(s->device[d].choice, "launch",
			      s->device[d].ops->launch(s->device[d].self, &s->orders[d].launch, err), err);
	}
	s->launch.stays = !attachments && !s->host.exchange.ranks;
	for (uint32_t d = 0; d < s->layout.devices; d++)
		s->launch.stays &= s->shape[d].flags & LOOM_SHAPE_PERSISTENT || keeps(s, d);
	for (size_t i = 0; i < s->policies; i++)
		s->launch.stays &= !s->policy[i].started;
	if (rc)
		loom__stack_retire(s, NULL);
	return rc;
}

void loom__launch_captures(struct loom_stack *s)
{
	/* Release: pairs with the acquire in loom_stack_stop(), which then uses s->ctl. */
	__atomic_store_n(&s->launch.captured, 1, __ATOMIC_RELEASE);
}

static int retire(struct loom_stack *s, uint64_t timeout_ns, struct loom_error *err)
{
	int rc = 0, left = 0;
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		int ended = s->device[d].ops->retire(s->device[d].self, timeout_ns, rc ? NULL : err);
		rc = rc ? rc : ended;
		left |= ended == LOOM_ETIMEDOUT;
	}
	s->launch.launched = s->launch.stuck = left; /* workers that cannot be ended still use the memory */
	if (!left)
		loom__policies_stop(s);
	return rc;
}

int loom__stack_retire(struct loom_stack *s, struct loom_error *err)
{
	if (!s->launch.launched)
		return 0;
	if (loom__stack_own(s, err))
		return LOOM_EBUSY;
	if (s->run.running)
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
	if (s->run.running)
		return LOOM__FAIL(err, LOOM_EBUSY, "a run is in progress: loom_stack_wait() first");
	if (s->streams.enqueued)
		return LOOM__FAIL(err, LOOM_EBUSY, "%llu runs are in a stream: loom_stack_wait() first",
				  (unsigned long long)s->streams.enqueued);
	if (s->launch.stuck && retire(s, 0, &why) == LOOM_ETIMEDOUT)
		return LOOM__FAIL(err, LOOM_EBUSY, "workers of a run that was stopped are still there: %s", why.text);
	return 0;
}
