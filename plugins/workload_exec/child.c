/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in worker 0: starts the program, keeps the end of what it prints, waits, and leaves nothing
 * behind: the whole process group is killed before the sample ends. */
#include <errno.h>
#include <fcntl.h>
#include <gpuloom/dev/dev.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "exec.h"

/* How long it takes at most until the stop word is seen. */
#define LOOK_MS 10

struct run {
	const struct request *r;
	struct answer *a;
	const struct loom_ctx *c;
	char *argv[EXEC_ARGS];
	int null, out[2], err[2], pidfd;
	pid_t pid;
	volatile int child_errno; /* written by the child, which borrows our memory until it execs */
};

static void fail(struct run *run, const char *step, int code)
{
	if (run->a->failed)
		return;
	run->a->failed = code;
	snprintf(run->a->step, sizeof(run->a->step), "%.31s", step);
}

static int open_pipes(struct run *run)
{
	run->null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (run->null < 0 || pipe2(run->out, O_CLOEXEC) || pipe2(run->err, O_CLOEXEC)) {
		fail(run, "pipe", errno);
		return -1;
	}
	fcntl(run->out[0], F_SETFL, O_NONBLOCK);
	fcntl(run->err[0], F_SETFL, O_NONBLOCK);
	return 0;
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Only what is safe between vfork and exec. The handlers of the host's process go away at exec, but
 * what it ignores and what this thread blocks would stay. */
static _Noreturn void become(struct run *run)
{
	sigset_t none;
	sigemptyset(&none);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* when the worker dies */
	setpgid(0, 0);
	sched_setaffinity(0, sizeof(run->r->cpus), (const cpu_set_t *)(const void *)run->r->cpus);
	if (!*run->r->directory || !chdir(run->r->directory))
		if (dup2(run->null, 0) >= 0 && dup2(run->out[1], 1) >= 0 && dup2(run->err[1], 2) >= 0)
			execv(run->r->path, run->argv);
	run->child_errno = errno;
	_exit(127);
}

/* vfork: copying the tables of a process with much memory would be part of the sample's time. */
static __attribute__((noinline)) void start(struct run *run)
{
	run->pid = vfork();
	if (run->pid == 0)
		become(run);
	if (run->pid < 0) {
		fail(run, "vfork", errno);
		return;
	}
	setpgid(run->pid, run->pid); /* a stop may come before the child has done it */
	run->pidfd = (int)syscall(SYS_pidfd_open, run->pid, 0);
	if (run->pidfd < 0)
		fail(run, "pidfd_open", errno);
}

/* What is there to read goes over the oldest kept. Closes at the end of the stream. */
static void take(int *fd, char *keep, size_t room, uint64_t *total)
{
	char bytes[4096];
	ssize_t n = 1;
	while (*fd >= 0 && (n = read(*fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < n; i++)
			keep[(*total)++ % room] = bytes[i];
	if (n == 0)
		shut(fd);
}

static void take_all(struct run *run)
{
	take(&run->out[0], run->a->out, sizeof(run->a->out), &run->a->out_total);
	take(&run->err[0], run->a->err, sizeof(run->a->err), &run->a->err_total);
}

/* Until it has ended, or must be ended. */
static void attend(struct loom_ctx *c, struct run *run, uint64_t begin)
{
	uint64_t limit = run->r->timeout_ns;
	for (;;) {
		struct pollfd on[3] = {{.fd = run->pidfd, .events = POLLIN},
				       {.fd = run->out[0], .events = POLLIN},
				       {.fd = run->err[0], .events = POLLIN}};
		poll(on, 3, LOOK_MS);
		if (on[0].revents)
			break;
		take_all(run);
		run->a->late = limit && loom_clock_ns(c) - begin > limit;
		if (run->a->late || loom_stopped(c))
			break;
	}
	run->a->wall_ns = loom_clock_ns(c) - begin;
}

static void end(struct run *run)
{
	struct rusage used = {0};
	int status = 0;
	/* Not reaped yet, so the number is still its own: those whom it left behind go now. */
	kill(-run->pid, SIGKILL);
	kill(run->pid, SIGKILL);
	while (wait4(run->pid, &status, 0, &used) < 0 && errno == EINTR)
		;
	take_all(run);
	run->a->status = status;
	run->a->user_us = (uint64_t)used.ru_utime.tv_sec * 1000000u + (uint64_t)used.ru_utime.tv_usec;
	run->a->system_us = (uint64_t)used.ru_stime.tv_sec * 1000000u + (uint64_t)used.ru_stime.tv_usec;
	run->c->counters->cpu_ns += 1000 * (run->a->user_us + run->a->system_us);
	run->a->peak_bytes = (uint64_t)used.ru_maxrss * 1024u;
	if (run->child_errno)
		fail(run, "exec", run->child_errno);
}

void exec_kernel(struct loom_ctx *c)
{
	if (c->worker || c->lane)
		return;
	struct block *b = c->global[LOOM_WORKLOAD];
	struct run run = {.c = c,
			  .r = &b->request,
			  .a = &b->answer,
			  .null = -1,
			  .out = {-1, -1},
			  .err = {-1, -1},
			  .pidfd = -1};
	char *text = b->request.text;
	for (uint32_t i = 0; i < b->request.args; i++, text += strlen(text) + 1)
		run.argv[i] = text;
	uint64_t begin = loom_clock_ns(c);
	if (!open_pipes(&run))
		start(&run);
	shut(&run.out[1]);
	shut(&run.err[1]);
	if (run.pid > 0) {
		run.a->started = 1;
		if (run.pidfd >= 0)
			attend(c, &run, begin);
		end(&run);
	}
	shut(&run.out[0]);
	shut(&run.err[0]);
	shut(&run.null);
	shut(&run.pidfd);
}
