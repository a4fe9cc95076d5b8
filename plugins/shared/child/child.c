/* SPDX-License-Identifier: Apache-2.0 */
#include "child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

void child_block_signals(sigset_t *old)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
	sigset_t all;
	sigfillset(&all);
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_BLOCK, &all, old);
}

/* The command's stdin and stdout belong to the host: a pipe must not stay open because of us. */
static void leave_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (null > STDERR_FILENO)
		close(null);
}

pid_t child_fork(const char *name, int tied)
{
	pid_t parent = getpid();
	sigset_t old;
	child_block_signals(&old); /* Ctrl-C reaches the whole process group, and is the host's */
	pid_t pid = fork();
	if (pid != 0) {
		int failed = errno;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		errno = failed;
		return pid;
	}
	if (tied)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before the line above */
		_exit(1);
	char text[16];
	snprintf(text, sizeof(text), "%.15s", name);
	prctl(PR_SET_NAME, text);
	leave_stdio();
	return 0;
}

void child_end_text(int status, char *text, size_t room)
{
	if (status == -1)
		snprintf(text, room, "is gone");
	else if (WIFSIGNALED(status))
		snprintf(text, room, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(text, room, "ended by itself with status %d", WEXITSTATUS(status));
}
