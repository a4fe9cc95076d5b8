/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in worker 0. Starts the program, keeps the end of its output, waits for its end, and kills its process group. */
#include <errno.h>
#include <fcntl.h>
#include <gpuloom/dev/dev.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "lib/child.h"
#include "exec.h"
#include "lib/fd.h"
#include "lib/poll.h"

/* Longest time between two polls of the stop flag, in milliseconds. */
#define POLL_MS 10
/* A poll that ends this much later shows that this process was stopped (Ctrl-Z), which does not count as time of the
 * program. */
#define STALL_NS 1000000000u

struct run {
	const struct request *r;
	struct answer *a;
	const struct loom_ctx *c;
	char *argv[EXEC_ARGS];
	int null, out[2], err[2];
	struct child child;
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
	run->null = loom_fd(open("/dev/null", O_RDONLY | O_CLOEXEC));
	if (run->null < 0 || loom_fd_pair(pipe2(run->out, O_CLOEXEC), run->out) ||
	    loom_fd_pair(pipe2(run->err, O_CLOEXEC), run->err)) {
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

/* Starts the program. If this worker's thread dies, the kernel kills the program. */
static void start(struct run *run)
{
	const struct request *r = run->r;
	const struct child_program program = {.path = r->path,
					      .argv = run->argv,
					      .in = run->null,
					      .out = run->out[1],
					      .err = run->err[1],
					      .cores = r->cpus,
					      .cores_bytes = sizeof(r->cpus),
					      .end = SIGKILL};
	const char *step;
	int code = child_start(&run->child, &program, &step);
	if (code)
		fail(run, step, code);
	else if (run->child.fd < 0 && run->child.fd != CHILD_TAKEN)
		fail(run, "pidfd_open", errno);
}

/* Moves the available bytes into the ring buffer `keep` of `room` bytes. Closes the descriptor at the end of the
 * stream. */
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

/* Waits until the program has ended, has exceeded its time limit, or the run is stopped. */
static void watch(struct loom_ctx *c, struct run *run, uint64_t begin)
{
	uint64_t limit = run->r->timeout_ns, last = begin, now;
	const struct timespec look = {.tv_nsec = POLL_MS * 1000000};
	for (;; last = now) {
		struct pollfd on[3] = {{.fd = run->child.fd, .events = POLLIN},
				       {.fd = run->out[0], .events = POLLIN},
				       {.fd = run->err[0], .events = POLLIN}};
		if (poll_or_nap(on, 3, &look) < 0 ? child_ended(&run->child, 0) : on[0].revents)
			break;
		take_all(run);
		now = loom_clock_ns(c);
		limit += limit && now - last > STALL_NS ? now - last : 0;
		run->a->late = limit && now - begin > limit;
		if (run->a->late || loom_stopped(c))
			break;
	}
	run->a->wall_ns = loom_clock_ns(c) - begin;
}

static void end(struct run *run)
{
	struct rusage used;
	/* Kill the processes that the program left behind. The id of their process group is still valid, because the
	 * program has not been reaped yet. */
	child_signal_group(&run->child, SIGKILL);
	run->a->status = child_wait(&run->child, &used);
	take_all(run);
	run->a->user_us = (uint64_t)used.ru_utime.tv_sec * 1000000u + (uint64_t)used.ru_utime.tv_usec;
	run->a->system_us = (uint64_t)used.ru_stime.tv_sec * 1000000u + (uint64_t)used.ru_stime.tv_usec;
	run->c->counters->cpu_ns += 1000 * (run->a->user_us + run->a->system_us);
	run->a->peak_bytes = (uint64_t)used.ru_maxrss * 1024u;
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
			  .child = CHILD_NONE};
	char *text = b->request.text;
	for (uint32_t i = 0; i < b->request.args; i++, text += strlen(text) + 1)
		run.argv[i] = text;
	uint64_t begin = loom_clock_ns(c);
	if (!open_pipes(&run))
		start(&run);
	shut(&run.out[1]);
	shut(&run.err[1]);
	if (run.child.pid > 0) {
		run.a->started = 1;
		if (run.child.fd >= 0)
			watch(c, &run, begin);
		end(&run);
	}
	shut(&run.out[0]);
	shut(&run.err[0]);
	shut(&run.null);
}
