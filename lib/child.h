/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of plug-ins and of the command. A child is a fork of this process (devices with isolation = process)
 * or another program. Plug-ins that need children compile these files into themselves, because plug-ins link to no
 * library of gpuloom.
 *
 * The embedding program may wait for any child, ignore SIGCHLD, or have threads. So these functions wait for a child
 * and signal it by its pidfd. If the system has no pidfds, they use the process number. If another wait took the status
 * of a child, the status is CHILD_LOST, which never counts as success. */
#ifndef GPULOOM_CHILD_H
#define GPULOOM_CHILD_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#define CHILD_LOST (-1) /* a status: the child has ended, but how it ended is unknown */

struct child {
	pid_t pid; /* process number; 0: there is no child, or it was reaped */
	int fd;    /* its pidfd; -1: the system refuses pidfd_open(); CHILD_TAKEN */
};

#define CHILD_TAKEN (-2) /* value of `fd`: another wait of the program has reaped the child */
#define CHILD_NONE  ((struct child){.pid = 0, .fd = -1})

/* Blocks all signals except those that a thread causes itself. If SIGSEGV were blocked, the kernel would kill the
 * process without calling the handler that reports it. */
void child_block_signals(sigset_t *old);

/* Forks a child. Returns 1 in the child, 0 in the parent, or -1 and errno. The child has the given name, and /dev/null
 * as standard input and output. Its signals are blocked, except those that a thread causes itself: these keep their
 * handlers. If the parent gets no pidfd, its errno gives the reason. tied: the child is killed when the calling thread
 * ends. */
int child_fork(struct child *c, const char *name, int tied);

/* Called in a forked child: unblocks all signals, and limits the time of the child. SIGALRM ends it if it uses less than 1 ms of
 * CPU time in `idle_s`, because then it waits for something. SIGXCPU ends it after `busy_s` of CPU time. On a busy machine, a
 * limit of wall time would end a child that works. */
void child_limit(unsigned idle_s, unsigned busy_s);

enum { CHILD_ANSWER = 3 }; /* the descriptor to which the child writes its answer */

struct child_program {
	const char *path; /* NULL: the file that child_find() finds for argv[0] */
	char *const *argv;
	char *const *env;   /* NULL: the environment of this program */
	int in, out, err;   /* the standard streams; each number is above CHILD_ANSWER, or already right */
	int answer;         /* descriptor that the child gets as CHILD_ANSWER, as the only one above 2; 0: none */
	const void *cores;  /* a cpu_set_t with the cores of the child; NULL: those of this thread */
	size_t cores_bytes; /* size of this set */
	int end;            /* the signal that the child gets when the calling thread ends */
};

/* Starts the program in its own process group, with default signals. Returns 0, or the errno of the step that failed.
 * *step gets the name of this step. Uses vfork(), so that the memory of the parent is not copied. */
int child_start(struct child *c, const struct child_program *p, const char **step);

/* Writes the path of the file that execvp() would run for `name`. Returns 0, or -1. If this program has no PATH, or is
 * privileged, the function searches /usr/bin and /bin. A privileged program ignores PATH, because PATH comes from its
 * user. */
int child_find(const char *name, char *path, size_t room);

/* Sends a signal to the child, or to the process group that child_start() made for it. Does nothing if the child was
 * reaped. */
void child_signal(const struct child *c, int number);
void child_signal_group(const struct child *c, int number);

/* Returns 1 if the child ends within `most_ns`. Without a pidfd, returns 1 only if it has ended already. Does not reap
 * it. */
int child_ended(const struct child *c, uint64_t most_ns);
/* Returns when the child has ended. The child can still be signalled, because it is not reaped. */
void child_await(const struct child *c);

/* Waits for the child's end and reaps it. Returns the status as waitpid() does, or CHILD_LOST. `used` may be NULL. */
int child_wait(struct child *c, struct rusage *used);

/* Describes a status, as in "was killed by signal 9 (Killed)". */
void child_end_text(int status, char *text, size_t room);

#endif
