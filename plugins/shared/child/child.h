/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of plug-ins: forked (devices with isolation = process) or another program. Compiled into each
 * plug-in that needs it, because plug-ins link to nothing of gpuloom.
 *
 * The embedding program may wait for any child, ignore SIGCHLD, or have threads. So a child is waited for and
 * signalled by its pidfd, or by its number where the system has none, and a lost status is CHILD_LOST, never a
 * success. */
#ifndef GPULOOM_CHILD_H
#define GPULOOM_CHILD_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define CHILD_LOST (-1) /* a status: the child has ended, in an unknown way */

struct child {
	pid_t pid; /* 0: none, or it was reaped */
	int fd;    /* its pidfd; -1: the system refuses pidfd_open(); or CHILD_TAKEN */
};

#define CHILD_TAKEN (-2) /* another wait of the program has reaped the child */
#define CHILD_NONE  ((struct child){.pid = 0, .fd = -1})

/* Blocks all signals except those that a thread causes itself: a blocked SIGSEGV would kill without a report. */
void child_block_signals(sigset_t *old);

/* As fork(): 1 in the child, 0 in the parent, or -1 and errno. The child has the given name and /dev/null as
 * standard input and output. All signals are blocked except those that a thread causes itself, which keep their
 * handlers. In the parent errno says why there is no pidfd. `tied`: it is killed when the calling thread ends. */
int child_fork(struct child *c, const char *name, int tied);

/* Another program. */
struct child_program {
	const char *path; /* no search: see child_find() */
	char *const *argv;
	char *const *env;   /* NULL: of this program */
	const char *folder; /* NULL or "": the current one */
	int in, out, err;   /* its standard streams, above 2 each */
	const void *cores;  /* a cpu_set_t; NULL: those of this thread */
	size_t cores_bytes;
	int end; /* signal that it gets when the calling thread ends */
};

/* Starts it in a process group of its own, with default signals. 0, or the errno of the step that failed, which
 * *step names. The memory of the parent is not copied. */
int child_start(struct child *c, const struct child_program *p, const char **step);

/* The file that execvp() would run for a name without a slash. 0, or -1. A privileged program searches /usr/bin and
 * /bin, since PATH comes from its user. */
int child_find(const char *name, char *path, size_t room);

/* Signals the child; its process group, made by child_start(). Nothing if it was reaped. */
void child_signal(const struct child *c, int number);
void child_signal_group(const struct child *c, int number);

/* 1 if it ended within `most_ns`. Only with a pidfd. */
int child_ended(const struct child *c, uint64_t most_ns);
/* Returns when it has ended. It can still be signalled then. */
void child_await(const struct child *c);

/* Waits for its end and reaps it. The status as from waitpid(), or CHILD_LOST with *used zero. `used` may be NULL. */
int child_wait(struct child *c, struct rusage *used);

/* Describes a status, as "was killed by signal 9 (Killed)". */
void child_end_text(int status, char *text, size_t room);

#endif
