/* SPDX-License-Identifier: Apache-2.0 */
#include "inspect/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST_ANSWER = 256 << 10, MOST_NOISE = 4 << 10, ABOVE_STDIO = 10 };

extern char **environ;

struct channel {
	int fd; /* our end; -1: closed */
	int theirs;
	struct loom__text *text;
	size_t most;
	int lost; /* errno: not all of it could be read */
};

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The child's end is kept clear of the numbers that it is to have there: a caller may have closed
 * its own standard streams. */
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

/* posix_spawn and not fork: the caller may have threads. */
static int spawn(const char *const *argv, int answer, int noise, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	/* Each may run out of memory, and then the child would speak into the wrong file. */
	int rc = posix_spawn_file_actions_adddup2(&files, answer, LOOM__CHILD_FD);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(&files, noise, STDOUT_FILENO);
	rc = rc ? rc : posix_spawn_file_actions_adddup2(&files, noise, STDERR_FILENO);
	rc = rc ? rc : posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
#if __GLIBC_PREREQ(2, 34)
	rc = rc ? rc : posix_spawn_file_actions_addclosefrom_np(&files, LOOM__CHILD_FD + 1);
#endif
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&attr, 0);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	if (!rc)
		rc = posix_spawn(pid, argv[0], &files, &attr, (char *const *)(uintptr_t)argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

/* Takes what there is; what exceeds the limit is read and dropped, so that the child never blocks.
 */
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

/* 1: the child has ended, and is still there as a zombie, so that its group's number is its own. */
static int has_ended(pid_t pid)
{
	siginfo_t info = {0};
	if (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT))
		return errno == ECHILD;
	return info.si_pid == pid;
}

static void attend(pid_t pid, struct channel channel[2], unsigned limit_ms, int *timed_out)
{
	uint64_t end = loom__now_ns() + (uint64_t)limit_ms * 1000000u;
	while (!has_ended(pid)) {
		struct pollfd wait[2];
		int open = 0;
		for (int i = 0; i < 2; i++) {
			wait[i] = (struct pollfd){.fd = channel[i].fd, .events = POLLIN};
			open |= channel[i].fd >= 0;
		}
		if (loom__now_ns() >= end) {
			*timed_out = 1;
			break;
		}
		/* A short tick: something that the child left running may keep the pipes open. */
		poll(wait, 2, open ? 20 : 1);
		take(&channel[0]);
		take(&channel[1]);
	}
	kill(-pid, SIGKILL);
}

static int reap(pid_t pid)
{
	int status;
	pid_t got;
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	return got == pid ? status : -1;
}

int loom__child_run(const char *const *argv, unsigned limit_ms, struct loom__child *out,
		    struct loom_error *err)
{
	*out = (struct loom__child){0};
	struct channel channel[2] = {{-1, -1, &out->answer, MOST_ANSWER, 0},
				     {-1, -1, &out->noise, MOST_NOISE, 0}};
	pid_t pid = 0;
	int rc = 0, why = 0;
	if (open_channel(&channel[0]) || open_channel(&channel[1]))
		why = errno;
	else
		why = spawn(argv, channel[0].theirs, channel[1].theirs, &pid);
	shut(&channel[0].theirs);
	shut(&channel[1].theirs);
	if (why) {
		rc = LOOM__FAIL(err, LOOM_EIO, "%s: cannot be started to probe plug-ins: %s",
				argv[0], strerror(why));
	} else {
		attend(pid, channel, limit_ms, &out->timed_out);
		out->status = reap(pid);
		take(&channel[0]);
		take(&channel[1]);
	}
	shut(&channel[0].fd);
	shut(&channel[1].fd);
	if (!rc && channel[0].lost)
		rc = LOOM__FAIL(err, LOOM_EIO, "what the probe of a plug-in says cannot be read: %s",
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
		snprintf(text, room, "did not return within %u ms", limit_ms);
	else if (c->status != -1 && WIFSIGNALED(c->status) && sigabbrev_np(WTERMSIG(c->status)))
		snprintf(text, room, "crashed (SIG%s)", sigabbrev_np(WTERMSIG(c->status)));
	else if (c->status != -1 && WIFSIGNALED(c->status))
		snprintf(text, room, "crashed (signal %d)", WTERMSIG(c->status));
	else if (c->status != -1 && WIFEXITED(c->status))
		snprintf(text, room, "ended the process (status %d)", WEXITSTATUS(c->status));
	else
		snprintf(text, room, "ended the process");
}

void loom__child_begin(int fd)
{
	const struct rlimit no_core = {0, 0};
	setrlimit(RLIMIT_CORE, &no_core);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void loom__child_answer(int fd, const void *bytes, size_t n)
{
	int number = loom__write_all(fd, bytes, n);
	if (number) { /* the parent sees the status, and this as the reason */
		fprintf(stderr, "cannot answer: %s\n", strerror(number));
		_exit(1);
	}
}
