/* SPDX-License-Identifier: Apache-2.0 */
/* The host thread's part of a launch. */
#include <gpuloom/sched.h>
#include <gpuloom/workload.h>
#include <gpuloom/term.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "../device_common/hostmem/context.h"
#include "device_cpu.h"
#include "lib/align.h"

/* Time for which the host polls whether the spinning workers have finished. Then it wakes the sleeping workers. A
 * wake-up takes longer than this time. */
#define POLL_NS 5000

static void launch_free(struct launch *l)
{
	if (!l)
		return;
	const struct loom_host *host = l->device->host;
	for (uint32_t i = 0; l->lane && i < l->workers * l->lanes; i++)
		if (l->lane[i].launch && l->lane[i].core != CORE_ANY)
			cores_give_back(l->lane[i].core);
	host->free(host, l->worker);
	host->free(host, l->lane);
	host->free(host, l->local);
	host->free(host, l->view);
	host->free(host, l);
}

/* Selects the function that the workers run. Returns 0 or an error. */
static int choose_entry(struct launch *l, struct loom_error *err)
{
	const struct device *d = l->device;
	if (l->what->entry == LOOM_ENTRY_PROBE)
		return 0;
	const struct loom_sched_dev *sched = d->program.table[LOOM_SCHED];
	const struct loom_workload_dev *workload = d->program.table[LOOM_WORKLOAD];
	if (LOOM_HAS(workload, kernel))
		l->run = workload->kernel;
	else if (LOOM_HAS(sched, run))
		l->run = sched->run;
	else
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: nothing to run: no scheduler is selected, and the workload has no "
				 "kernel of its own",
				 d->name);
	return 0;
}

/* Reports the cores that were chosen, and whether a worker yields its core while it waits. */
static void report(const struct launch *l)
{
	const struct device *d = l->device;
	char name[64], text[100];
	struct cores_set set = {0};
	for (uint32_t i = 0; i < l->workers * l->lanes; i++)
		if (l->lane[i].core != CORE_ANY)
			cores_add(&set, l->lane[i].core);
	cores_print(cores_weight(&set) ? &set : &d->cores.set, text, sizeof(text));
	snprintf(name, sizeof(name), "device.%s.cores", d->name);
	LOOM_CHOICE(d->host, name, "%s%s", d->options->pin == PIN_NO ? "any of " : "", text);
	snprintf(name, sizeof(name), "device.%s.yield", d->name);
	LOOM_CHOICE(d->host, name, "%s", launch_yields(l) ? "yes" : "no");
	if (d->options->caller && !l->by_caller)
		LOOM_LOG(d->host, LOOM_LOG_WARN, d->name,
			 "caller = yes has no effect in this stack: it needs submitted tasks, one device, lanes = 1, "
			 "isolation = thread, scheduler mgws with owners = 1, and termination counter or hcounter");
	if (l->oversubscribed)
		LOOM_LOG(d->host, LOOM_LOG_INFO, d->name, "%u of its %u workers share their cores with other processes",
			 l->oversubscribed, l->workers);
}

/* Allocates everything before any fork, because the child of a process with threads must not allocate. */
static struct launch *launch_make(struct device *d, const struct loom_launch *what)
{
	const struct loom_host *host = d->host;
	struct launch *l = host->alloc(host, sizeof(*l));
	if (!l)
		return NULL;
	int probe = what->entry == LOOM_ENTRY_PROBE;
	*l = (struct launch){.device = d,
			     .what = what,
			     .workers = probe ? 1 : d->workers,
			     .lanes = probe ? 1 : d->lanes,
			     .process = CHILD_NONE};
	l->spare = l->workers * l->lanes < d->cores.count;
	l->late = LOOM_HAS(what, flags) && what->flags & LOOM_LAUNCH_LATE && d->lanes == 1 &&
		  d->options->isolation == ISOLATION_THREAD;
	l->by_caller = l->late && d->options->caller;
	for (int kind = 0; what->local_bytes && kind < LOOM_KINDS_MAX; kind++)
		l->local_bytes += loom__align(what->local_bytes[kind], 64);
	l->worker = host->alloc(host, l->workers * sizeof(*l->worker));
	l->lane = host->alloc(host, (size_t)l->workers * l->lanes * sizeof(*l->lane));
	l->view = host->alloc(host, (what->segments + 1u) * sizeof(*l->view));
	if (l->local_bytes)
		l->local = host->alloc(host, l->workers * l->local_bytes);
	if (!l->worker || !l->lane || !l->view || (l->local_bytes && !l->local)) {
		launch_free(l);
		return NULL;
	}
	for (uint32_t i = 0; i < l->workers * l->lanes; i++) {
		l->lane[i].launch = l;
		l->lane[i].worker = &l->worker[i / l->lanes];
		/* cores_take() runs in the host process, so other stacks of this process see which cores are taken. */
		int crowded = 0;
		l->lane[i].core =
		    d->options->pin == PIN_CORE && l->lanes == 1 ? cores_take(&d->cores, i, &crowded) : CORE_ANY;
		l->oversubscribed += (uint32_t)crowded;
	}
	if (!probe)
		report(l);
	context_views(what, l->view);
	char *ctl = l->view[LOOM_REF_SEGMENT(what->ctl)];
	l->host_ctl = (struct loom_ctl *)(ctl + LOOM_REF_OFFSET(what->ctl));
	return l;
}

static int start_threads(struct launch *l, struct loom_error *err)
{
	struct device *d = l->device;
	int pin_errno;
	contexts_fill(l);
	int code = attach_all(l, err);
	if (code)
		return code;
	code = l->by_caller ? caller_start(&d->caller) : 0;
	if (!code)
		code = threads_start(l, &pin_errno);
	if (code) {
		caller_end(&d->caller);
		detach_all(l);
	}
	if (code)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: cannot start %u threads: %s", d->name,
				 l->workers * l->lanes, strerror(code));
	d->gate.words->pin_errno = (uint32_t)pin_errno;
	return 0;
}

int device_launch(void *self, const struct loom_launch *what, struct loom_error *err)
{
	struct device *d = self;
	if (d->launch)
		return LOOM_FAIL(d->host, err, LOOM_EBUSY, "%s: workers of an earlier launch still run", d->name);
	struct launch *l = launch_make(d, what);
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	int code = choose_entry(l, err);
	if (!code) {
		gate_reset(&d->gate);
		code = d->options->isolation == ISOLATION_PROCESS ? process_start(l, err) : start_threads(l, err);
	}
	if (code) {
		launch_free(l);
		return code;
	}
	d->launch = l;
	if (d->gate.words->pin_errno)
		LOOM_LOG(d->host, LOOM_LOG_WARN, d->name,
			 "workers are not pinned to cores %s (%s): set pin = no in [device.cpu], or run where affinity "
			 "may be set",
			 d->cores.text, strerror((int)d->gate.words->pin_errno));
	return 0;
}

/* Records the host thread's core. Workers on that core do not spin between samples. */
static void note_host(struct device *d)
{
	__atomic_store_n(&d->gate.words->host_cpu, (uint32_t)sched_getcpu(), __ATOMIC_RELAXED);
}

static void wake(struct device *d)
{
	struct launch *l = d->launch;
	l->wake_due = 0;
	gate_wake(&d->gate, l->host_ctl);
	if (l->by_caller)
		gate_wake_apart(&d->gate);
}

int device_ready(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct device *d = self;
	struct launch *l = d->launch;
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	l->phase = __atomic_load_n(&l->host_ctl->phase, __ATOMIC_RELAXED); /* relaxed, because this thread stored it */
	note_host(d);
	wake(d);
	if (l->pid && !l->process.pid)
		return process_died(l, err);
	struct gate_words *w = d->gate.words;
	int code = gate_await_within(&d->gate, &w->ready, l->phase, l->process.fd, timeout_ns);
	if (code == LOOM_EDIED)
		return process_died(l, err);
	if (code)
		return LOOM_FAIL(d->host, err, code,
				 "%s: %u of %u threads were awake after %" PRIu64 " ms: the machine is too busy, or a "
				 "worker hangs in the previous sample",
				 d->name, __atomic_load_n(&w->arrived, __ATOMIC_RELAXED), l->workers * l->lanes,
				 timeout_ns / 1000000u);
	return 0;
}

/* Starts a sample by GO without READY. If workers may be late, only those that spin start at once. */
static void go_alone(struct device *d, uint32_t go)
{
	struct launch *l = d->launch;
	struct gate_words *w = d->gate.words;
	const struct loom_term_dev *term = d->program.table[LOOM_TERM];
	note_host(d);
	if (!l->late) {
		wake(d);
		return;
	}
	uint32_t own = l->by_caller && l->host_ctl->awaited; /* 1: the caller is worker 0, which is busy from the start */
	if (own)
		caller_enter(d);
	for (uint32_t i = own; i < l->workers; i++)
		term->idle(&l->lane[i].ctx);
	int some = __atomic_load_n(&w->watching, __ATOMIC_RELAXED) != 0;
	/* Relaxed, because gate_admit() releases it. */
	__atomic_store_n(&w->call_due, own && some, __ATOMIC_RELAXED);
	gate_admit(&d->gate, go, own);
	l->wake_due = !own;
	if (!own && (!l->host_ctl->awaited || !some))
		wake(d);
	/* Short runs in a row wake the workers once. caller_enter() orders this load behind the store of GO. */
	if (own && !some && l->workers > 1 && !__atomic_load_n(&w->woken, __ATOMIC_SEQ_CST)) {
		__atomic_store_n(&w->woken, 1, __ATOMIC_RELAXED);
		gate_wake(&d->gate, l->host_ctl);
	}
}

int device_go(void *self, struct loom_error *err)
{
	struct device *d = self;
	struct launch *l = d->launch;
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	uint32_t go = __atomic_load_n(&l->host_ctl->phase, __ATOMIC_RELAXED); /* relaxed, because this thread stored it */
	if (l->phase != LOOM_PHASE_READY(LOOM_PHASE_SAMPLE(go)))
		go_alone(d, go);
	/* After READY nothing is needed, because the workers poll the phase word. */
	l->phase = go;
	return 0;
}

int device_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err)
{
	struct device *d = self;
	struct launch *l = d->launch;
	if (!l)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
	if (l->pid && !l->process.pid)
		return process_died(l, err);
	struct gate_words *w = d->gate.words;
	int worked = d->caller.due;
	if (worked && caller_work(d))
		return LOOM_EAGAIN;
	/* After the caller's own work, the other workers are about to leave, too. */
	if ((worked || l->wake_due) && !gate_watch(&w->done, l->phase, POLL_NS) && l->wake_due)
		wake(d);
	/* Acquire: pairs with the release in gate_tell(). */
	int code = __atomic_load_n(&w->done, __ATOMIC_ACQUIRE) == l->phase
		       ? 0
		       : gate_await(&d->gate, &w->done, l->phase, &l->host_ctl->stop, l->process.fd,
				    gate_deadline(timeout_ns));
	if (code == LOOM_EDIED)
		return process_died(l, err);
	if (code) /* also after a signal, which the host may have to handle */
		return LOOM_EAGAIN;
	*end_ns = __atomic_load_n(&w->ended_ns, __ATOMIC_RELAXED);
	return 0;
}

void device_wake(void *self)
{
	struct device *d = self;
	gate_nudge(&d->gate);
	caller_stop(&d->caller);
}

int device_retire(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct device *d = self;
	struct launch *l = d->launch;
	if (!l)
		return 0;
	wake(d);
	if (l->pid) {
		process_retire(l, timeout_ns);
	} else {
		uint32_t threads = l->workers * l->lanes, *gone = &d->gate.words->gone;
		int code = gate_await_within(&d->gate, gone, threads, -1, timeout_ns);
		if (code) /* the launch stays, because the threads still use it */
			return LOOM_FAIL(d->host, err, code,
					 "%s: %u of %u threads did not leave within %" PRIu64 " ms: "
					 "threads cannot be killed, so the memory of this run must stay "
					 "(isolation = process can end such workers)",
					 d->name, threads - __atomic_load_n(gone, __ATOMIC_RELAXED), threads,
					 timeout_ns / 1000000u);
		threads_join(l);
		caller_end(&d->caller);
		detach_all(l);
	}
	launch_free(l);
	d->launch = NULL;
	return 0;
}
