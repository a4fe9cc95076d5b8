/* SPDX-License-Identifier: Apache-2.0 */
/* Runs this executable again in a child process with a time limit, for code that may crash or hang. */
#ifndef LOOM_CHILD_H
#define LOOM_CHILD_H

#include "base/base.h"
#include "lib/child.h"

struct loom__child {
	struct loom__text answer; /* what the child wrote to CHILD_ANSWER, at most 256 KiB */
	struct loom__text noise;  /* the first 4 KiB of the child's output */
	int timed_out;
	int status; /* the status from child_wait() */
};

/* Ends children of this process at `ns` of loom__now_ns(), even if the machine is so busy that they had no time. 0:
 * never. */
void loom__child_deadline(uint64_t ns);

/* Runs argv[0] with /dev/null as standard input, in its own process group. The group is killed when the child ends or
 * after limit_ms. The caller frees the texts with loom__child_free(), also after an error. */
int loom__child_run(const char *const *argv, unsigned limit_ms, struct loom__child *out,
		    struct loom_error *err);
void loom__child_free(struct loom__child *c);

/* Describes how the child ended: "crashed (SIGSEGV)", "did not return within 2000 ms", ... */
void loom__child_fate(const struct loom__child *c, unsigned limit_ms, char *text, size_t room);

/* Disables core files. The child calls this function first. `fd` is the child's end of the pipe for answers. */
void loom__child_begin(int fd);
/* Writes n bytes of the answer. Ends the child with status 1 if that fails. */
void loom__child_answer(int fd, const void *bytes, size_t n);

#endif
