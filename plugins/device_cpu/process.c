/* SPDX-License-Identifier: Apache-2.0 */
/* isolation = process: the workers of a launch live in a forked child, which dies with its parent
 * and whose death the parent notices through a pidfd. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "../shared/child/child.h"
#include "device_cpu.h"

#define START_TIMEOUT_NS 30000000000ull

static _Noreturn void give_up_in_words(struct launch *l, const char *text)
{
	struct gate *g = &l->device->gate;
	snprintf(g->words->failure, sizeof(g->words->failure), "%.*s",
		 (int)sizeof(g->words->failure) - 1, text);
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

/* No handler of the parent's runs here, none of its buffers is flushed, and its log is left alone:
 * a thread that is not with us may have held its lock. */
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
	code = crew_start(l, &pin_errno);
	if (code)
		give_up(l, "its process cannot start the threads", code);
	struct gate *g = &l->device->gate;
	g->words->pin_errno = (uint32_t)pin_errno;
	gate_tell(g, &g->words->started, 1);
	crew_join(l);
	detach_all(l);
	_exit(0);
}

static void reap(struct launch *l)
{
	if (l->pidfd < 0)
		return;
	while (waitpid(l->pid, &l->status, 0) < 0)
		if (errno != EINTR) {
			l->status = -1; /* the embedder ignores SIGCHLD, or waits for any child */
			break;
		}
	close(l->pidfd);
	l->pidfd = -1;
}

int process_died(struct launch *l, struct loom_error *err)
{
	const struct loom_host *host = l->device->host;
	const char *name = l->device->name;
	int pid = (int)l->pid;
	reap(l);
	char how[80];
	child_end_text(l->status, how, sizeof(how));
	return LOOM_FAIL(host, err, LOOM_EDIED, "%s: its process (pid %d) %s", name, pid, how);
}

/* 1 when it has ended by the deadline. */
static int ended_by(const struct launch *l, uint64_t end_ns)
{
	struct pollfd on = {.fd = l->pidfd, .events = POLLIN};
	for (;;) {
		uint64_t now = gate_clock();
		uint64_t left = now < end_ns ? end_ns - now : 0;
		struct timespec wait = {.tv_sec = (time_t)(left / 1000000000u),
					.tv_nsec = (long)(left % 1000000000u)};
		int n = ppoll(&on, 1, &wait, NULL);
		if (n >= 0 || errno != EINTR)
			return n == 1;
	}
}

void process_retire(struct launch *l, uint64_t timeout_ns)
{
	if (l->pidfd < 0) /* it died, which wait() has said */
		return;
	const struct loom_host *host = l->device->host;
	const char *name = l->device->name;
	int in_time = ended_by(l, gate_deadline(timeout_ns));
	if (!in_time)
		syscall(SYS_pidfd_send_signal, l->pidfd, SIGKILL, NULL, 0);
	reap(l);
	if (!in_time)
		LOOM_LOG(host, LOOM_LOG_WARN, name,
			 "its process (pid %d) did not leave in time: killed", (int)l->pid);
	else if (l->status != 0 && l->status != -1)
		LOOM_LOG(host, LOOM_LOG_WARN, name,
			 "its process (pid %d) ended badly (wait status %#x)", (int)l->pid,
			 (unsigned)l->status);
}

/* Waits for the child to say that its threads run, or why not. */
static int await_start(struct launch *l, struct loom_error *err)
{
	struct device *d = l->device;
	struct gate_words *w = d->gate.words;
	int code = gate_await_within(&d->gate, &w->started, 1, l->pidfd, START_TIMEOUT_NS);
	if (code == LOOM_EDIED)
		return process_died(l, err);
	if (code)
		return LOOM_FAIL(d->host, err, code,
				 "%s: its process (pid %d) has not started in %d s", d->name,
				 (int)l->pid, (int)(START_TIMEOUT_NS / 1000000000u));
	if (w->failure[0])
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: %s", d->name, w->failure);
	return 0;
}

int process_start(struct launch *l, struct loom_error *err)
{
	struct device *d = l->device;
	pid_t pid = child_fork(d->name, 1);
	if (pid == 0)
		child_main(l);
	int failed = errno;
	if (pid < 0)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: cannot start its process: %s",
				 d->name, strerror(failed));
	l->pid = pid;
	l->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (l->pidfd < 0) {
		failed = errno;
		kill(pid, SIGKILL);
		waitpid(pid, &l->status, 0);
		return LOOM_FAIL(
		    d->host, err, LOOM_EUNAVAIL,
		    "%s: isolation = process needs pidfd_open, which this kernel or sandbox "
		    "refuses (%s): use isolation = thread",
		    d->name, strerror(failed));
	}
	int code = await_start(l, err);
	if (code && l->pidfd >= 0) { /* it has said why, or will not */
		syscall(SYS_pidfd_send_signal, l->pidfd, SIGKILL, NULL, 0);
		reap(l);
	}
	return code;
}
