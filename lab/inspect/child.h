/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of the command: other programs, and this executable again to do what might crash or hang, bounded in
 * time. */
#ifndef LOOM_CHILD_H
#define LOOM_CHILD_H

#include <sys/types.h>

#include "base/base.h"

enum { LOOM__CHILD_FD = 3 }; /* where the child answers */

struct loom__child {
	struct loom__text answer; /* what it wrote to LOOM__CHILD_FD, at most 256 KiB */
	struct loom__text noise;  /* what it printed, the first 4 KiB */
	int timed_out;
	int status; /* as from loom__child_wait() */
};

/* What the child finds at 0, 1, 2 and LOOM__CHILD_FD, which `answer` = -1 leaves closed. Numbers from 4 on here. */
struct loom__streams {
	int in, out, err, answer;
};
/* Starts argv[0], by PATH where it is no path, with the default signals, in a process group of its own; it is killed when
 * the thread that calls this ends, and so when the process does. 0 or errno. */
int loom__child_start(const char *const *argv, const struct loom__streams *streams, pid_t *pid);

/* Waits for a child of this process. The status as from waitpid(); LOOM__CHILD_RUNS with WNOHANG in `flags`, when it has
 * not ended; LOOM__CHILD_LOST: it has ended, and how is not known, which is no success. */
enum { LOOM__CHILD_LOST = -1, LOOM__CHILD_RUNS = -2 };
int loom__child_wait(pid_t pid, int flags);

/* Runs argv[0] with stdin from /dev/null, in a process group of its own that is killed when the
 * child ends or limit_ms have passed. Free the texts with loom__child_free, also after an error. */
int loom__child_run(const char *const *argv, unsigned limit_ms, struct loom__child *out,
		    struct loom_error *err);
void loom__child_free(struct loom__child *c);

/* How it ended, in words: "crashed (SIGSEGV)", "did not return within 2000 ms", ... */
void loom__child_fate(const struct loom__child *c, unsigned limit_ms, char *text, size_t room);

/* The child's side, called first: no core files. */
void loom__child_begin(int fd);
/* Writes all of it. */
void loom__child_answer(int fd, const void *bytes, size_t n);

#endif
