/* SPDX-License-Identifier: Apache-2.0 */
/* Running this executable again to do what might crash or hang: bounded in time, leaves nothing. */
#ifndef LOOM_CHILD_H
#define LOOM_CHILD_H

#include "base/base.h"

enum { LOOM__CHILD_FD = 3 }; /* where the child answers */

struct loom__child {
	struct loom__text answer; /* what it wrote to LOOM__CHILD_FD, at most 256 KiB */
	struct loom__text noise;  /* what it printed, the first 4 KiB */
	int timed_out;
	int status; /* as from waitpid(); -1: not known, the process reaps its own children */
};

/* Runs argv[0] with stdin from /dev/null, in a process group of its own that is killed when the
 * child ends or limit_ms have passed. Free the texts with loom__child_free, also after an error. */
int loom__child_run(const char *const *argv, unsigned limit_ms, struct loom__child *out,
		    struct loom_error *err);
void loom__child_free(struct loom__child *c);

/* How it ended, in words: "crashed (SIGSEGV)", "did not return within 2000 ms", ... */
void loom__child_fate(const struct loom__child *c, unsigned limit_ms, char *text, size_t room);

/* The child's side, called first: no core files, dies with the process that started it. */
void loom__child_begin(int fd);
/* Writes all of it. */
void loom__child_answer(int fd, const void *bytes, size_t n);

#endif
