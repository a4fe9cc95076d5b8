/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of plug-ins: forked, as devices with isolation = process are, or another program. Compiled into each
 * plug-in that has any, because plug-ins link to nothing of gpuloom.
 *
 * The program around the plug-in may wait for any child, ignore SIGCHLD, or have threads. So a child is waited for and
 * signalled by its pidfd, or its own number where the system has none, and a status that was lost is CHILD_LOST:
 * never a success. */
#ifndef GPULOOM_CHILD_H
#define GPULOOM_CHILD_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define CHILD_LOST (-1) /* a status: the child has ended, and how is not known */

struct child {
	pid_t pid; /* 0: none, or it was waited for */
	int fd;	   /* its pidfd; -1: the system refuses pidfd_open(); or CHILD_TAKEN */
};

#define CHILD_TAKEN (-2) /* another wait of the program has taken the child already */
#define CHILD_NONE ((struct child){.pid = 0, .fd = -1})

/* Blocks all signals but those that a thread causes itself: a blocked SIGSEGV would kill without a word. */
void child_block_signals(sigset_t *old);

/* As fork(): 1 in the child, 0 in the parent, or -1 and errno. The child has the given name, /dev/null as its standard
 * input and output, and none of the parent's signals: all are blocked but those that a thread causes itself, which keep
 * their handlers. In the parent errno says why there is no pidfd. `tied`: it is killed when the thread that calls this ends, and so when its process does. */
int child_fork(struct child *c, const char *name, int tied);

/* Another program. */
struct child_program {
	const char *path;	 /* no search: child_find() */
	char *const *argv;
	char *const *env;	 /* NULL: this program's */
	const char *folder;	 /* NULL or "": this one */
	int in, out, err;	 /* its standard streams, above 2 each */
	const void *cores;	 /* a cpu_set_t; NULL: those of this thread */
	size_t cores_bytes;
	int end;		 /* the signal that it gets when the thread that calls this ends */
};

/* Starts it in a process group of its own, with the default signals: 0, or errno of the step that failed, which *step
 * names. The parent's memory is not copied, however large it is. */
int child_start(struct child *c, const struct child_program *p, const char **step);

/* The file that execvp() would take for a name without a slash, by PATH: 0, or -1. A program with privileges searches
 * /usr/bin and /bin: PATH is its user's. */
int child_find(const char *name, char *path, size_t room);

/* To the child; to its process group, which child_start() made. Nothing where it has ended and was waited for. */
void child_signal(const struct child *c, int number);
void child_signal_group(const struct child *c, int number);

/* 1: it has ended, within `most_ns`. Only with a pidfd. */
int child_ended(const struct child *c, uint64_t most_ns);
/* Returns when it has ended. It can still be signalled then. */
void child_await(const struct child *c);

/* Waits for its end and lets go of it. The status as from waitpid(), or CHILD_LOST: then *used is zeros. `used` may be
 * NULL. */
int child_wait(struct child *c, struct rusage *used);

/* "was killed by signal 9 (Killed)", by such a status. */
void child_end_text(int status, char *text, size_t room);

#endif
