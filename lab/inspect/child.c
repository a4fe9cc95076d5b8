/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "facts/fair.h"
#include "lib/fd.h"
#include "lib/poll.h"

enum { MOST_ANSWER = 256 << 10, MOST_NOISE = 4 << 10, ABOVE_STDIO = 10 };

struct channel {
	int fd; /* the parent's end of the pipe; -1: closed */
	int theirs;
	struct loom__text *text;
	size_t most;
	int lost; /* errno of a failed read; 0: none */
};

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Creates a pipe. The child's end gets a number above all descriptors that the child will replace. If the caller has
 * closed its standard streams, pipe2() may return the number of one of these descriptors. */
static int open_channel(struct channel *c)
{
	int fd[2];
	if (pipe2(fd, O_CLOEXEC))
		return -1;
	c->theirs = fcntl(fd[1], F_DUPFD_CLOEXEC, ABOVE_STDIO);
	close(fd[1]);
	c->fd = fd[0];
	return c->theirs < 0 || fcntl(c->fd, F_SETFL, O_NONBLOCK) ? -1 : 0;
}

/* Reads available data. Data beyond the limit are read and dropped, so that the child never blocks. */
static void take(struct channel *c)
{
	char piece[4096];
	while (c->fd >= 0) {
		ssize_t n = read(c->fd, piece, sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0) {
			c->lost = n < 0 ? errno : 0;
			shut(&c->fd);
			return;
		}
		size_t room = c->most - c->text->length;
		loom__text_put(c->text, piece, (size_t)n < room ? (size_t)n : room);
	}
}

static uint64_t deadline_ns; /* 0: none */

void loom__child_deadline(uint64_t ns)
{
	deadline_ns = ns;
}

static void attend(const struct child *c, struct channel channel[2], unsigned limit_ms, int *timed_out)
{
	struct loom__fair fair;
	uint64_t limit = (uint64_t)limit_ms * 1000000u, begin = loom__now_ns();
	loom__fair_begin(&fair, c->pid);
	while (!child_ended(c, 0)) {
		struct pollfd wait[2];
		int open = 0;
		for (int i = 0; i < 2; i++) {
			wait[i] = (struct pollfd){.fd = channel[i].fd, .events = POLLIN};
			open |= channel[i].fd >= 0;
		}
		uint64_t now = loom__now_ns();
		if ((deadline_ns && now >= deadline_ns) ||
		    (now - begin >= limit && loom__fair_elapsed_ns(&fair) >= limit)) {
			*timed_out = 1;
			break;
		}
		/* The wait is short even if no pipe is readable, because processes that the child started may keep the
		 * pipes open after the child has ended. */
		poll_or_nap(wait, 2, &(struct timespec){.tv_nsec = open ? 20000000 : 1000000});
		take(&channel[0]);
		take(&channel[1]);
	}
	child_signal_group(c, SIGKILL); /* the child is not reaped yet, so its group number is still valid */
}

static int start_with(const char *const *argv, int answer, int noise, struct child *c)
{
	struct child_program program = {.argv = (char *const *)(uintptr_t)argv,
					.in = loom_fd(open("/dev/null", O_RDONLY | O_CLOEXEC)),
					.out = noise,
					.err = noise,
					.answer = answer,
					.end = SIGKILL};
	const char *step;
	int code = program.in < 0 ? errno : child_start(c, &program, &step);
	if (program.in >= 0)
		close(program.in);
	return code;
}

int loom__child_run(const char *const *argv, unsigned limit_ms, struct loom__child *out, struct loom_error *err)
{
	*out = (struct loom__child){0};
	struct channel channel[2] = {{-1, -1, &out->answer, MOST_ANSWER, 0}, {-1, -1, &out->noise, MOST_NOISE, 0}};
	struct child c;
	int rc = 0, why = 0;
	if (open_channel(&channel[0]) || open_channel(&channel[1]))
		why = errno;
	else
		why = start_with(argv, channel[0].theirs, channel[1].theirs, &c);
	shut(&channel[0].theirs);
	shut(&channel[1].theirs);
	if (why) {
		int files = why == EMFILE || why == EBADF || why == EINVAL; /* EINVAL: a descriptor above the limit */
		rc = LOOM__FAIL(err, LOOM_EIO, "%s: cannot be started to probe plug-ins: %s%s", argv[0], strerror(why),
				files ? "; if few files may be open, raise that limit (ulimit -n 1024)" : "");
	} else {
		attend(&c, channel, limit_ms, &out->timed_out);
		out->status = child_wait(&c, NULL);
		take(&channel[0]);
		take(&channel[1]);
	}
	shut(&channel[0].fd);
	shut(&channel[1].fd);
	if (!rc && channel[0].lost)
		rc = LOOM__FAIL(err, LOOM_EIO, "cannot read the answer of a plug-in probe: %s",
				strerror(channel[0].lost));
	if (!rc && (!loom__text_ok(&out->answer) || !loom__text_ok(&out->noise)))
		rc = LOOM__FAIL(err, LOOM_ENOMEM, "out of memory while probing plug-ins");
	return rc;
}

void loom__child_free(struct loom__child *c)
{
	loom__text_free(&c->answer);
	loom__text_free(&c->noise);
}

void loom__child_fate(const struct loom__child *c, unsigned limit_ms, char *text, size_t room)
{
	if (c->timed_out)
		snprintf(text, room, "did not return within %u ms of a fair share of the machine", limit_ms);
	else if (c->status == CHILD_LOST)
		child_end_text(c->status, text, room);
	else if (WIFSIGNALED(c->status) && sigabbrev_np(WTERMSIG(c->status)))
		snprintf(text, room, "crashed (SIG%s)", sigabbrev_np(WTERMSIG(c->status)));
	else if (WIFSIGNALED(c->status))
		snprintf(text, room, "crashed (signal %d)", WTERMSIG(c->status));
	else
		snprintf(text, room, "ended the process (status %d)", WEXITSTATUS(c->status));
}

void loom__child_begin(int fd)
{
	const struct rlimit no_core = {0, 0};
	setrlimit(RLIMIT_CORE, &no_core);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Async-signal-safe. */
void loom__child_answer(int fd, const void *bytes, size_t n)
{
	static const char cannot[] = "cannot answer: ";
	int number = loom__write_all(fd, bytes, n);
	if (number) { /* the parent sees the exit status, and this text as the reason */
		const char *why = strerrordesc_np(number);
		loom__write_all(STDERR_FILENO, cannot, sizeof(cannot) - 1);
		loom__write_all(STDERR_FILENO, why, strlen(why));
		_exit(1);
	}
}
