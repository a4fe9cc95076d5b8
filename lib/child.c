/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "lib/fd.h"
#include "lib/poll.h"

#ifndef P_PIDFD
#define P_PIDFD 3
#endif

/* Returns 1 if the signal is one that a thread causes itself, such as SIGSEGV. */
static int is_fault(int number)
{
	static const int fault[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
	for (size_t i = 0; i < sizeof(fault) / sizeof(fault[0]); i++)
		if (fault[i] == number)
			return 1;
	return 0;
}

void child_block_signals(sigset_t *old)
{
	sigset_t all;
	sigfillset(&all);
	for (int s = 1; s < NSIG; s++)
		if (is_fault(s))
			sigdelset(&all, s);
	pthread_sigmask(SIG_BLOCK, &all, old);
}

/* Called in the child. Resets the signals that the parent handled or ignored. `faults`: whether signals of is_fault()
 * are reset, too. */
static void default_signals(int faults)
{
	struct sigaction how;
	for (int s = 1; s < NSIG; s++)
		if ((faults || !is_fault(s)) && !sigaction(s, NULL, &how) && how.sa_handler != SIG_DFL) {
			how = (struct sigaction){.sa_handler = SIG_DFL};
			sigaction(s, &how, NULL);
		}
}

/* Called in the child. Requests signal `number` at the end of the parent thread. Returns -1 if the parent process has
 * already died, because no signal would come then. If a sandbox refuses the request, the child runs without it. */
static int tie(pid_t parent, int number)
{
	(void)prctl(PR_SET_PDEATHSIG, number);
	return getppid() == parent ? 0 : -1;
}

/* Called in the child. Replaces stdin and stdout by /dev/null, so that the child keeps no pipe of the program open. If
 * stderr is closed, /dev/null takes its number, so that no file of gpuloom gets it. */
static void leave_stdio(void)
{
	int null = loom_fd(open("/dev/null", O_RDWR | O_CLOEXEC));
	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (fcntl(STDERR_FILENO, F_GETFD) < 0)
		dup2(null, STDERR_FILENO);
	close(null);
}

static void open_pidfd(struct child *c)
{
	c->fd = loom_fd((int)syscall(SYS_pidfd_open, c->pid, 0));
	if (c->fd < 0 && errno == ESRCH)
		c->fd = CHILD_TAKEN; /* another process may have this number by this time */
}

int child_fork(struct child *c, const char *name, int tied)
{
	pid_t parent = getpid();
	sigset_t old;
	*c = CHILD_NONE;
	child_block_signals(&old); /* Ctrl-C goes to the whole process group, but only the host handles it */
	pid_t pid = fork();
	if (pid != 0) {
		int failed = errno;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		errno = failed;
		if (pid < 0)
			return -1;
		c->pid = pid;
		open_pidfd(c);
		return 0;
	}
	if (tied && tie(parent, SIGKILL))
		_exit(1);
	default_signals(0);
	char text[16];
	snprintf(text, sizeof(text), "%.15s", name);
	prctl(PR_SET_NAME, text);
	leave_stdio();
	return 1;
}

/* The state of the handler of SIGALRM, in the child. */
static unsigned limit_idle_s;
static uint64_t limit_used_ns; /* CPU time at the last SIGALRM */

static void on_limit(int number)
{
	struct timespec t;
	int code = errno;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	uint64_t used = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
	if (used - limit_used_ns < 1000000) {
		signal(number, SIG_DFL);
		raise(number); /* ends the process when this handler returns */
	}
	limit_used_ns = used;
	alarm(limit_idle_s);
	errno = code;
}

void child_limit(unsigned idle_s, unsigned busy_s)
{
	const struct rlimit most = {busy_s, busy_s};
	struct sigaction action = {.sa_handler = on_limit, .sa_flags = SA_RESTART};
	sigset_t none;
	limit_idle_s = idle_s;
	limit_used_ns = 0;
	sigaction(SIGALRM, &action, NULL);
	setrlimit(RLIMIT_CPU, &most);
	signal(SIGXCPU, SIG_DFL);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	alarm(idle_s);
}

/* ---- another program ---- */

/* State that start() shares with the child, which runs in the memory of the parent until exec. */
struct start {
	const struct child_program *program;
	const char *path;
	pid_t parent;
	volatile int code;
	const char *volatile step;
};

/* Executes the program. Does only what is safe between vfork() and exec: no allocation, no lock, no buffered output. */
static _Noreturn void become(struct start *s)
{
	const struct child_program *p = s->program;
	sigset_t none;
	if (tie(s->parent, p->end))
		_exit(127);
	default_signals(1);
	setpgid(0, 0);
	s->step = "cores";
	if (p->cores && sched_setaffinity(0, p->cores_bytes, p->cores) && errno == EINVAL)
		goto failed; /* EINVAL is an error; any other code is ignored, because a sandbox may refuse the call */
	s->step = "streams";
	if (dup2(p->in, 0) < 0 || dup2(p->out, 1) < 0 || dup2(p->err, 2) < 0 ||
	    (p->answer && dup2(p->answer, CHILD_ANSWER) < 0))
		goto failed;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
#ifdef SYS_close_range /* old kernels lack this call, and the child keeps the descriptors without O_CLOEXEC */
	if (p->answer)
		syscall(SYS_close_range, CHILD_ANSWER + 1, ~0u, 0);
#endif
	s->step = "exec";
	execve(s->path, p->argv, p->env ? p->env : environ);
failed:
	s->code = errno;
	_exit(127);
}

/* Blocks all signals during vfork(), because a handler that runs in the child would change the memory of the parent. */
static __attribute__((noinline)) pid_t start(struct start *s)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pid_t pid = vfork();
	if (pid == 0)
		become(s);
	int code = errno;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = code;
	return pid;
}

int child_start(struct child *c, const struct child_program *p, const char **step)
{
	char found[4096];
	struct start s = {.program = p, .path = p->path ? p->path : found, .parent = getpid(), .step = "vfork"};
	*c = CHILD_NONE;
	*step = "exec";
	if (!p->path && child_find(p->argv[0], found, sizeof(found)))
		return ENOENT;
	pid_t pid = start(&s);
	int code = pid < 0 ? errno : s.code;
	*step = s.step;
	if (pid < 0)
		return code;
	c->pid = pid;
	if (code) {
		child_wait(c, NULL);
		return code;
	}
	open_pidfd(c);
	return 0;
}

int child_find(const char *name, char *path, size_t room)
{
	const char *paths = secure_getenv("PATH");
	if (strchr(name, '/'))
		return (size_t)snprintf(path, room, "%s", name) < room ? 0 : -1;
	for (const char *at = paths ? paths : "/usr/bin:/bin"; *at;) {
		size_t n = strcspn(at, ":");
		int length = snprintf(path, room, "%.*s%s%s", (int)n, at, n ? "/" : "", name);
		if (length > 0 && (size_t)length < room && !access(path, X_OK))
			return 0;
		at += n + (at[n] == ':');
	}
	return -1;
}

/* ---- the end of a child ---- */

/* Without a pidfd, the function uses the process number. It is valid until another wait of the program reaps the
 * child. */
void child_signal(const struct child *c, int number)
{
	if (c->pid > 0 && c->fd >= 0)
		syscall(SYS_pidfd_send_signal, c->fd, number, NULL, 0);
	else if (c->pid > 0 && c->fd != CHILD_TAKEN)
		kill(c->pid, number);
}

void child_signal_group(const struct child *c, int number)
{
	if (c->pid > 0 && c->fd != CHILD_TAKEN)
		kill(-c->pid, number);
	child_signal(c, number);
}

/* Uses the system call, because waitid() of the C library does not return the resource usage. Returns 0, or -1 and
 * errno. */
static int wait_for(const struct child *c, int how, siginfo_t *info, struct rusage *used)
{
	int by_fd = c->fd >= 0;
	for (;;) {
		long rc = syscall(SYS_waitid, by_fd ? P_PIDFD : P_PID, by_fd ? c->fd : c->pid, info, how, used);
		if (rc == 0 || (errno != EINTR && errno != ENOSYS && !(errno == EINVAL && by_fd)))
			return (int)rc;
		if (errno == ENOSYS) { /* a filter of system calls refused it: waitid() gives no resource usage */
			if (used)
				*used = (struct rusage){0};
			return waitid(P_PID, (id_t)c->pid, info, how);
		}
		if (errno == EINVAL)
			by_fd = 0; /* Linux before 5.4 has no P_PIDFD */
	}
}

static int has_ended(const struct child *c)
{
	siginfo_t info = {0};
	return wait_for(c, WEXITED | WNOHANG | WNOWAIT, &info, NULL) ? errno == ECHILD : info.si_pid == c->pid;
}

int child_ended(const struct child *c, uint64_t most_ns)
{
	struct pollfd on = {.fd = c->fd, .events = POLLIN};
	struct timespec now, end;
	if (c->fd < 0)
		return has_ended(c);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)(most_ns / 1000000000u);
	end.tv_nsec += (long)(most_ns % 1000000000u);
	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &now);
		int64_t left = (end.tv_sec - now.tv_sec) * 1000000000ll + (end.tv_nsec - now.tv_nsec);
		left = left > 0 ? left : 0;
		const struct timespec most = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
		int n = poll_or_nap(&on, 1, &most);
		if (n >= 0)
			return n;
		if (errno != EINTR && has_ended(c))
			return 1;
		if (!left)
			return 0;
	}
}

void child_await(const struct child *c)
{
	siginfo_t info;
	struct pollfd on = {.fd = c->fd, .events = POLLIN};
	/* If another wait has reaped the child, wait_for() fails. The pidfd still reports the child's end. */
	if (c->pid && wait_for(c, WEXITED | WNOWAIT, &info, NULL) && c->fd >= 0)
		while (poll_or_nap(&on, 1, NULL) < 0 &&
		       (errno == EINTR || !syscall(SYS_pidfd_send_signal, c->fd, 0, NULL, 0)))
			; /* signal 0 asks whether the child exists, in case poll() does not work */
}

/* Converts a result of waitid() to a status, as waitpid() returns it. */
static int status_of(const siginfo_t *info)
{
	return info->si_code == CLD_EXITED ? (info->si_status & 0xff) << 8
					   : info->si_status | (info->si_code == CLD_DUMPED ? 0x80 : 0);
}

int child_wait(struct child *c, struct rusage *used)
{
	siginfo_t info = {0};
	struct rusage own = {0};
	if (!c->pid)
		return CHILD_LOST;
	child_await(c);
	int lost = wait_for(c, WEXITED, &info, &own);
	if (c->fd >= 0)
		close(c->fd);
	*c = CHILD_NONE;
	if (used)
		*used = lost ? (struct rusage){0} : own;
	return lost ? CHILD_LOST : status_of(&info);
}

void child_end_text(int status, char *text, size_t room)
{
	if (status == CHILD_LOST)
		snprintf(
		    text, room,
		    "has ended with an unknown status: this program waits for any child, ignores SIGCHLD, or may not "
		    "call waitid() (a sandbox)");
	else if (WIFSIGNALED(status))
		snprintf(text, room, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(text, room, "ended by itself with status %d", WEXITSTATUS(status));
}
