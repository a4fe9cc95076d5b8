/* SPDX-License-Identifier: Apache-2.0 */
/* Executes one sample: sends READY and GO, and waits until the last worker has left. Every wait has a time limit. */
#include "stack/stack.h"

/* How long the host waits for one device before it polls the other devices and the deadline. If only one device is
 * left, the wait also ends when the device's workers are done, fail or die, at a signal, and at a call of wake(). So
 * for the last device the slice may be longer, which lets an idle machine sleep. */
#define SLICE_NS 20000000ull
#define LAST_NS 1000000000ull
/* A wait that ends this much later than its slice shows that this process was stopped, because CLOCK_MONOTONIC runs on
 * (Ctrl-Z, SIGSTOP, a frozen control group, a paused virtual machine). With ten threads per core a wait was 0.3 s late. */
#define STALL_NS 1000000000ull
/* Workers must leave within this time after the stop word is set, or they are ended by force. The wait has ten parts,
 * because time also passes while this process is stopped (SIGSTOP) and its workers do not run. */
#define GRACE_NS 1000000000ull

int loom__worker_failure(struct loom_stack *s, struct loom_error *err)
{
	/* Acquire: pairs with the release in loom_worker_fail(). After it, worker, code and info are valid. */
	if (!__atomic_load_n(&s->ctl->failed_ready, __ATOMIC_ACQUIRE))
		return 0;
	uint32_t worker = s->ctl->failed_worker, device = 0;
	int code = -(int)s->ctl->failed;
	while (device + 1 < s->layout.devices && worker >= s->shape[device].first_worker + s->shape[device].workers)
		device++;
	uint64_t info = s->ctl->failed_info;
	enum loom_kind lacks = (enum loom_kind)(info & 0xff);
	if (code == LOOM_ENOENT && lacks < LOOM_KINDS && info == LOOM_LACKS_KIND(lacks))
		return LOOM__FAIL(err, code, "worker %u on %s: the workload calls a %s, and the conf selects none: set 'use = NAME' in "
				  "[%s]; if the workload declares the kind in .needs, such a conf is rejected before the run", worker, s->shape[device].name,
				  loom__kind_section(lacks), loom__kind_section(lacks));
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom__policy *p = &s->policy[i];
		int rc = LOOM_HAS(p->ops, explain) ? p->ops->explain(p->self, worker, code, info, err) : 0;
		if (rc)
			return rc;
	}
	if (code == LOOM_ENOENT) /* loom_task_run() fails with this code */
		return LOOM__FAIL(err, code, "worker %u on %s: a task has the tag %llu, and no task function has it",
				  worker, s->shape[device].name, (unsigned long long)info);
	if (code == LOOM_EIO && loom__flush(s, 0, err) == code) /* the network may have a more exact message */
		return code;
	return LOOM__FAIL(err, code, "worker %u on %s: %s (code %d, detail %llu)", worker,
			  s->shape[device].name, loom_strerror(code), code, (unsigned long long)info);
}

/* Describes where the tasks of an unfinished sample are. If a segment has an image, describes nothing, because images
 * show the state before the sample. */
static void describe_stuck(struct loom_stack *s, char *text, size_t size)
{
	for (uint32_t i = 1; i <= s->memory.segments; i++)
		if (s->memory.image[i])
			return;
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom_sched_ops *ops = s->policy[i].choice->plugin->ops;
		if (s->policy[i].choice->kind == LOOM_SCHED && LOOM_HAS(ops, stuck))
			ops->stuck(s->policy[i].self, &s->layout, &s->policy[i].view, text, size);
	}
}

/* Returns the number of stop requests that end a sample at once; gpuloom.h defines it. */
static uint32_t stops_needed(const struct loom_stack *s)
{
	return s->selected[LOOM_WORKLOAD] ? 2 : 1;
}

/* Looks whether this process was stopped between `begin` and `end`, in which it waited for `slice` at most. If so, moves
 * the deadline of the sample by this time. Finds nothing in virtual time, or if the wait may execute submitted tasks. */
static void note_stall(struct loom_stack *s, uint64_t begin, uint64_t slice, uint64_t end)
{
	int works = s->ctl->awaited && !s->selected[LOOM_WORKLOAD];
	if (s->layout.clock || works || end < begin || end - begin < slice + STALL_NS)
		return;
	uint64_t stall = end - begin - slice;
	s->sample.stalled_ns += stall;
	s->sample.deadline_ns = stall < UINT64_MAX - s->sample.deadline_ns ? s->sample.deadline_ns + stall : UINT64_MAX;
	s->ctl->deadline_ns = s->sample.deadline_ns;
}

/* Checks the time that a device returns. Without the check, a false one would be the time of a verified sample. */
static int check_end(const struct loom_stack *s, uint32_t d, uint64_t end, struct loom_error *err)
{
	uint64_t now = loom__now_ns();
	if (s->ctl->untimed || s->layout.clock ? end <= INT64_MAX : end >= s->sample.begin_ns && end <= now + STALL_NS)
		return 0;
	return LOOM__FAIL(err, LOOM_EPLUGIN, "%s: wait() of %s returned %llu ns as the end of a sample from %llu to %llu ns: report "
			  "it to its author", s->shape[d].name, s->device[d].choice->plugin->name, (unsigned long long)end,
			  (unsigned long long)s->sample.begin_ns, (unsigned long long)now);
}

/* Waits for one device after the other, for a slice of time each, until all have ended the sample or `until` has
 * passed. If `until_stop` is 1, the deadline of the sample, stop requests and the loss of a rank also end the wait. */
static int wait_all(struct loom_stack *s, uint64_t until, int until_stop, struct loom_error *err)
{
	char finished[LOOM_MAX_DEVICES] = {0};
	uint32_t left = s->layout.devices;
	uint32_t stops = stops_needed(s);
	int interrupted = 0;
	while (left) {
		/* A failed worker has set `stop`. Wake the sleeping workers, so that they see it. */
		if (!interrupted && __atomic_load_n(&s->ctl->stop, __ATOMIC_RELAXED)) {
			loom__interrupt(s, LOOM_EINTR, 0);
			interrupted = 1;
		}
		for (uint32_t d = 0; d < s->layout.devices; d++) {
			if (finished[d])
				continue;
			uint64_t now = loom__now_ns(), end = 0;
			uint64_t last = until_stop && s->sample.deadline_ns < until ? s->sample.deadline_ns : until;
			uint64_t slice = now >= last ? 0 : last - now;
			uint64_t most = left > 1 ? SLICE_NS : LAST_NS;
			slice = slice < most ? slice : most;
			int rc = LOOM__OP(s->device[d].choice, "wait", s->device[d].ops->wait(s->device[d].self, slice, &end, err), err);
			rc = rc || !until_stop ? rc : check_end(s, d, end, err);
			if (rc == 0) {
				finished[d] = 1;
				left--;
				note_stall(s, now, slice, end);
				if (s->layout.clock)
					end += s->sample.begin_ns;
				if (end > s->sample.end_ns)
					s->sample.end_ns = end;
			} else if (rc != LOOM_EAGAIN) {
				if (rc == LOOM_EDIED)
					loom__interrupt(s, rc, d);
				return rc;
			} else {
				note_stall(s, now, slice, loom__now_ns());
			}
		}
		if (left && until_stop && s->run.beat)
			s->run.beat(s->run.arg, s, loom__now_ns() - s->sample.begin_ns);
		if (left && until_stop && __atomic_load_n(&s->stop_requests, __ATOMIC_ACQUIRE) >= stops)
			return LOOM__FAIL(err, LOOM_EINTR, "interrupted in mid-sample");
		if (left && until_stop && loom__ranks_lost(s, err))
			return LOOM_EDIED;
		uint64_t now = left ? loom__now_ns() : 0;
		if (left && (now >= until || (until_stop && now >= s->sample.deadline_ns)))
			return LOOM_EAGAIN;
	}
	return 0;
}

static void set_stop(struct loom_stack *s)
{
	/* Relaxed: workers poll the word, and leave when they see it. */
	__atomic_store_n(&s->ctl->stop, 1u, __ATOMIC_RELAXED);
	loom__interrupt(s, LOOM_EINTR, 0);
}

void loom__stack_wake(struct loom_stack *s)
{
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if (LOOM_HAS(s->device[d].ops, wake))
			s->device[d].ops->wake(s->device[d].self);
}

void loom__sample_reset(struct loom_stack *s)
{
	*s->ctl = (struct loom_ctl){0};
	s->sample.done = 0;
}

int loom__sample_begin(struct loom_stack *s, int alone, uint64_t timeout_ns, struct loom_error *err)
{
	uint64_t n = s->sample.done;
	int rc = 0;
	s->ctl->initial_tasks = s->layout.initial_tasks;
	s->ctl->sample = n;
	s->sample.end_ns = 0;
	if (!alone) {
		/* Release: pairs with the acquire by which workers load the phase, so that they see all that init()
		 * wrote. */
		__atomic_store_n(&s->ctl->phase, LOOM_PHASE_READY(n), __ATOMIC_RELEASE);
		for (uint32_t d = 0; d < s->layout.devices && !rc; d++)
			if (s->device[d].kept)
				rc = s->device[d].kept->muster(s->device[d].self, err);
		for (uint32_t d = 0; d < s->layout.devices && !rc; d++)
			rc = LOOM__OP(s->device[d].choice, "ready", s->device[d].ops->ready(s->device[d].self, timeout_ns, err), err);
		if (rc)
			return rc;
	}
	s->sample.begin_ns = loom__now_ns();
	s->sample.stalled_ns = 0;
	s->ctl->deadline_ns = s->sample.deadline_ns = timeout_ns < UINT64_MAX - s->sample.begin_ns ? s->sample.begin_ns + timeout_ns : UINT64_MAX;
	__atomic_store_n(&s->ctl->phase, LOOM_PHASE_GO(n), __ATOMIC_RELEASE);
	for (uint32_t d = 0; d < s->layout.devices && !rc; d++)
		rc = LOOM__OP(s->device[d].choice, "go", s->device[d].ops->go(s->device[d].self, err), err);
	if (rc)
		set_stop(s);
	/* A request from before go() found no sample that it could stop, and the thread that waits may execute tasks
	 * itself. Sequentially consistent, as the addition in loom_stack_stop(). */
	if (__atomic_load_n(&s->stop_requests, __ATOMIC_SEQ_CST) >= stops_needed(s))
		loom__stack_wake(s);
	return rc;
}

int loom__sample_cancel(struct loom_stack *s)
{
	int rc = LOOM_EAGAIN;
	set_stop(s);
	for (int tenth = 0; tenth < 10 && rc == LOOM_EAGAIN; tenth++)
		rc = wait_all(s, loom__now_ns() + GRACE_NS / 10, 0, NULL);
	return rc == 0;
}

static int fail_late(struct loom_stack *s, struct loom_error *err)
{
	struct loom__text doing = {0}, stayed = {0};
	char where[400] = "";
	loom__whereabouts(s, &doing);
	int ended = loom__sample_cancel(s);
	describe_stuck(s, where, sizeof(where));
	if (!ended)
		loom__whereabouts(s, &stayed);
	LOOM__FAIL(err, LOOM_ETIMEDOUT, "no end after %.3g s ([run] timeout): %s; workers %s after the stop%s%s%s%s",
		   (double)(s->sample.deadline_ns - s->sample.begin_ns - s->sample.stalled_ns) / 1e9, doing.at ? doing.at : "what workers do is not known",
		   ended ? "left" : "did not leave", stayed.at ? ": " : "", stayed.at ? stayed.at : "",
		   *where ? "; " : "", where);
	loom__text_free(&doing);
	loom__text_free(&stayed);
	return LOOM_ETIMEDOUT;
}

int loom__sample_end(struct loom_stack *s, uint64_t until, struct loom_error *err)
{
	int rc = wait_all(s, until, 1, err);
	if (rc == LOOM_EAGAIN && loom__now_ns() >= s->sample.deadline_ns)
		return fail_late(s, err);
	/* loom_stack_stop() counts a request and then calls wake(). If the run has begun and discarded the request in
	 * between, wake() can still stop a thread that executes tasks itself. The sample has ended, but lacks tasks. */
	if (!rc && __atomic_load_n(&s->ctl->stop, __ATOMIC_RELAXED) && !__atomic_load_n(&s->ctl->failed_ready, __ATOMIC_ACQUIRE))
		rc = LOOM__FAIL(err, LOOM_EINTR, "interrupted in mid-sample");
	if (rc && rc != LOOM_EAGAIN)
		set_stop(s);
	if (!rc)
		s->sample.done++;
	return rc;
}
