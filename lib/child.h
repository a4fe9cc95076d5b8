/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of plug-ins and of the command: forked ones (devices with isolation = process), or other programs.
 * Plug-ins that need them compile these files into themselves, because plug-ins link to no library of gpuloom.
 *
 * The embedding program may wait for any child, ignore SIGCHLD, or have threads. So a child is waited for and signalled
 * by its pidfd, or by its number if the system has none. A lost status is CHILD_LOST, never a success. */
#ifndef GPULOOM_CHILD_H
#define GPULOOM_CHILD_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define CHILD_LOST (-1) /* a status: the child has ended, in an unknown way */

struct child {
	pid_t pid; /* 0: no child, or it was reaped */
	int fd;    /* its pidfd; -1: the system refuses pidfd_open(); or CHILD_TAKEN */
};

#define CHILD_TAKEN (-2) /* another wait of the program has reaped the child */
#define CHILD_NONE  ((struct child){.pid = 0, .fd = -1})

/* Blocks all signals except those that a thread causes itself: a blocked SIGSEGV would kill without a report. */
void child_block_signals(sigset_t *old);

/* Forks a child. Returns 1 in the child, 0 in the parent, or -1 and errno. The child has the given name, and /dev/null
 * as standard input and output. All signals are blocked except those that a thread causes itself, which keep their
 * handlers. In the parent errno says why there is no pidfd. tied: the child is killed when the calling thread ends. */
int child_fork(struct child *c, const char *name, int tied);

enum { CHILD_ANSWER = 3 }; /* descriptor of the child's answer */

struct child_program {
	const char *path; /* NULL: the file that child_find() finds for argv[0] */
	char *const *argv;
	char *const *env;   /* NULL: that of this program */
	const char *folder; /* NULL or "": the current folder */
	int in, out, err;   /* the standard streams: each above CHILD_ANSWER, or already in its place */
	int answer;         /* becomes CHILD_ANSWER, and the child inherits no other descriptor; 0: none */
	const void *cores;  /* a cpu_set_t; NULL: the cores of this thread */
	size_t cores_bytes;
	int end; /* signal for the child when the calling thread ends */
};

/* Starts the program in a process group of its own, with default signals. Returns 0, or the errno of the step that
 * failed, which *step names. The memory of the parent is not copied. */
int child_start(struct child *c, const struct child_program *p, const char **step);

/* Finds the file that execvp() would run for a name. Returns 0, or -1. A privileged program searches /usr/bin and /bin,
 * since PATH comes from its user. */
int child_find(const char *name, char *path, size_t room);

/* Signals the child, or its process group, which child_start() made. Does nothing if the child was reaped. */
void child_signal(const struct child *c, int number);
void child_signal_group(const struct child *c, int number);

/* Returns 1 if the child ended within `most_ns`; without a pidfd, if it has ended already. Does not reap the child. */
int child_ended(const struct child *c, uint64_t most_ns);
/* Returns when the child has ended. The child can still be signalled then. */
void child_await(const struct child *c);

/* Waits for the child's end and reaps it. Returns the status as waitpid() does, or CHILD_LOST. `used` may be NULL. */
int child_wait(struct child *c, struct rusage *used);

/* Describes a status, as in "was killed by signal 9 (Killed)". */
void child_end_text(int status, char *text, size_t room);

#endif
