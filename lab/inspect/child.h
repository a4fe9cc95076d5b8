/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes with a time limit: other programs, and this executable again for code that may crash or hang. */
#ifndef LOOM_CHILD_H
#define LOOM_CHILD_H

#include <sys/types.h>

#include "base/base.h"

enum { LOOM__CHILD_FD = 3 }; /* descriptor of the child's answer */

struct loom__child {
	struct loom__text answer; /* written to LOOM__CHILD_FD, at most 256 KiB */
	struct loom__text noise;  /* the first 4 KiB of the child's output */
	int timed_out;
	int status; /* the status from loom__child_wait() */
};

/* Descriptors that become 0, 1, 2 and LOOM__CHILD_FD in the child; answer = -1: none. They must be 4 or larger. */
struct loom__streams {
	int in, out, err, answer;
};
/* Starts argv[0] (searched in PATH without a slash) with default signals, in its own process group. The child is killed
 * when the calling thread, and so the process, ends. Returns 0 or an errno. */
int loom__child_start(const char *const *argv, const struct loom__streams *streams, pid_t *pid);

/* Waits for a child. Returns a status like waitpid(). LOOM__CHILD_RUNS: with WNOHANG, the child has not ended.
 * LOOM__CHILD_LOST: it has ended with an unknown status, which is a failure. */
enum { LOOM__CHILD_LOST = -1, LOOM__CHILD_RUNS = -2 };
int loom__child_wait(pid_t pid, int flags);

/* Runs argv[0] with stdin from /dev/null, in its own process group, which is killed when the child ends or after
 * limit_ms. The caller frees the texts by loom__child_free(), also after an error. */
int loom__child_run(const char *const *argv, unsigned limit_ms, struct loom__child *out,
		    struct loom_error *err);
void loom__child_free(struct loom__child *c);

/* Describes how the child ended: "crashed (SIGSEGV)", "did not return within 2000 ms", ... */
void loom__child_fate(const struct loom__child *c, unsigned limit_ms, char *text, size_t room);

/* Disables core files; the child calls it first. */
void loom__child_begin(int fd);
/* Writes all n bytes. */
void loom__child_answer(int fd, const void *bytes, size_t n);

#endif
