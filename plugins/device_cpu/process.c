/* SPDX-License-Identifier: Apache-2.0 */
/* isolation = process: the workers of a launch run in a forked child. The child dies with its parent, and the parent
 * detects the child's death by a pidfd. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "device_cpu.h"

#define START_TIMEOUT_NS 30000000000ull

static _Noreturn void give_up_in_words(struct launch *l, const char *text)
{
	struct gate *g = &l->device->gate;
	snprintf(g->words->failure, sizeof(g->words->failure), "%.*s", (int)sizeof(g->words->failure) - 1, text);
	gate_tell(g, &g->words->started, 1);
	_exit(1);
}

static _Noreturn void give_up(struct launch *l, const char *what, int code)
{
	struct gate *g = &l->device->gate;
	snprintf(g->words->failure, sizeof(g->words->failure), "%s: %s", what, strerror(code));
	gate_tell(g, &g->words->started, 1);
	_exit(1);
}

/* The main function of the child. It runs no handlers of the parent, and flushes none of its buffers. It does not log,
 * because a thread that does not exist in the child may have held the lock of the log. */
static _Noreturn void child_main(struct launch *l)
{
	int code = views_remap(l);
	if (code)
		give_up(l, "its process cannot map the segments", code);
	contexts_fill(l);
	struct loom_error err;
	if (attach_all(l, &err))
		give_up_in_words(l, err.text);
	int pin_errno;
	code = threads_start(l, &pin_errno);
	if (code)
		give_up(l, "its process cannot start the threads", code);
	struct gate *g = &l->device->gate;
	g->words->pin_errno = (uint32_t)pin_errno;
	gate_tell(g, &g->words->started, 1);
	threads_join(l);
	detach_all(l);
	_exit(0);
}

static void reap(struct launch *l)
{
	if (l->process.pid)
		l->status = child_wait(&l->process, NULL);
}

int process_died(struct launch *l, struct loom_error *err)
{
	const struct loom_host *host = l->device->host;
	const char *name = l->device->name;
	int pid = (int)l->pid;
	reap(l);
	char how[160];
	child_end_text(l->status, how, sizeof(how));
	return LOOM_FAIL(host, err, LOOM_EDIED, "%s: its process (pid %d) %s", name, pid, how);
}

/* Returns 1 if the process ended in order. If its status was lost, it did so if all threads have counted themselves in
 * `gone`. */
static int ended_well(const struct launch *l)
{
	uint32_t gone = __atomic_load_n(&l->device->gate.words->gone, __ATOMIC_RELAXED);
	return l->status == CHILD_LOST ? gone == l->workers * l->lanes : l->status == 0;
}

void process_retire(struct launch *l, uint64_t timeout_ns)
{
	if (!l->process.pid) /* process_died() has reaped it already */
		return;
	const struct loom_host *host = l->device->host;
	const char *name = l->device->name;
	char how[160];
	int in_time = child_ended(&l->process, timeout_ns);
	if (!in_time)
		child_signal(&l->process, SIGKILL);
	reap(l);
	child_end_text(l->status, how, sizeof(how));
	if (!in_time)
		LOOM_LOG(host, LOOM_LOG_WARN, name, "its process (pid %d) did not leave in time: killed", (int)l->pid);
	else if (!ended_well(l))
		LOOM_LOG(host, LOOM_LOG_WARN, name, "its process (pid %d) %s", (int)l->pid, how);
}

/* Waits until the child reports that its threads run, or that it failed. */
static int await_start(struct launch *l, struct loom_error *err)
{
	struct device *d = l->device;
	struct gate_words *w = d->gate.words;
	int code = gate_await_within(&d->gate, &w->started, 1, l->process.fd, START_TIMEOUT_NS);
	if (code == LOOM_EDIED)
		return process_died(l, err);
	if (code)
		return LOOM_FAIL(d->host, err, code, "%s: its process (pid %d) has not started in %d s", d->name,
				 (int)l->pid, (int)(START_TIMEOUT_NS / 1000000000u));
	if (w->failure[0])
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: %s", d->name, w->failure);
	return 0;
}

int process_start(struct launch *l, struct loom_error *err)
{
	struct device *d = l->device;
	int inside = child_fork(&l->process, d->name, 1);
	if (inside > 0)
		child_main(l);
	int failed = errno;
	if (inside < 0)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: cannot start its process: %s", d->name,
				 strerror(failed));
	l->pid = l->process.pid;
	if (l->process.fd < 0) {
		child_signal(&l->process, SIGKILL);
		reap(l);
		if (failed == ESRCH) /* it ended at once, and another wait of this program has reaped it */
			return process_died(l, err);
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: isolation = process needs pidfd_open, which this kernel or sandbox "
				 "refuses (%s): use isolation = thread",
				 d->name, strerror(failed));
	}
	int code = await_start(l, err);
	if (code && l->process.pid) { /* the child had an error or a time-out */
		child_signal(&l->process, SIGKILL);
		reap(l);
	}
	return code;
}
