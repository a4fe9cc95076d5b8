/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of the command: other programs, and this executable again for code that may crash or hang, with a
 * time limit. */
#ifndef LOOM_CHILD_H
#define LOOM_CHILD_H

#include <sys/types.h>

#include "base/base.h"

enum { LOOM__CHILD_FD = 3 }; /* descriptor of the child's answer */

struct loom__child {
	struct loom__text answer; /* written to LOOM__CHILD_FD, at most 256 KiB */
	struct loom__text noise;  /* output, the first 4 KiB */
	int timed_out;
	int status; /* as from loom__child_wait() */
};

/* Descriptors that become 0, 1, 2 and LOOM__CHILD_FD in the child; answer = -1: none. Must be 4 or larger. */
struct loom__streams {
	int in, out, err, answer;
};
/* Starts argv[0] (searched in PATH without a slash) with default signals, in its own process group. It is killed when
 * the calling thread, and so the process, ends. Returns 0 or errno. */
int loom__child_start(const char *const *argv, const struct loom__streams *streams, pid_t *pid);

/* Waits for a child. Returns a status like waitpid(); LOOM__CHILD_RUNS with WNOHANG if it has not ended;
 * LOOM__CHILD_LOST if it has ended with an unknown status, which is a failure. */
enum { LOOM__CHILD_LOST = -1, LOOM__CHILD_RUNS = -2 };
int loom__child_wait(pid_t pid, int flags);

/* Runs argv[0] with stdin from /dev/null, in its own process group, which is killed when the child ends or after
 * limit_ms. Free the texts with loom__child_free(), also after an error. */
int loom__child_run(const char *const *argv, unsigned limit_ms, struct loom__child *out,
		    struct loom_error *err);
void loom__child_free(struct loom__child *c);

/* Describes how it ended: "crashed (SIGSEGV)", "did not return within 2000 ms", ... */
void loom__child_fate(const struct loom__child *c, unsigned limit_ms, char *text, size_t room);

/* Called first in the child: disables core files. */
void loom__child_begin(int fd);
/* Writes all of it. */
void loom__child_answer(int fd, const void *bytes, size_t n);

#endif
