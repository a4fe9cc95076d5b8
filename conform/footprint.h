/* SPDX-License-Identifier: Apache-2.0 */
/* Resources and state of a process, which a plug-in must leave unchanged. */
#ifndef LOOM_VALIDATE_FOOTPRINT_H
#define LOOM_VALIDATE_FOOTPRINT_H

#include <signal.h>
#include <stddef.h>

enum { LOOM__SIGNALS = 65 };

struct loom__footprint {
	size_t fds, threads, mappings, heap;
	int children; /* 1: the process has children, running or zombies */
	void *handler[LOOM__SIGNALS];
	sigset_t mask;
	unsigned long long environment; /* a hash of the environment, the working directory and the umask */
};

void loom__footprint_take(struct loom__footprint *f);
/* Returns what a library is known to leak, in words, if this explains the growth of the heap: `rounds` times the known
 * bytes or a small multiple, while that library is loaded. NULL: none does. */
const char *loom__footprint_known(const struct loom__footprint *before, size_t rounds);
/* Returns in words the first resource that has grown since `before`, or the first state that differs; NULL: none. If
 * `rounds` is 0, a single additional descriptor or thread is growth. Otherwise a resource (memory, too) has grown only
 * if it has grown by one or more in each round. Checks for a second, because threads end shortly after their join. */
const char *loom__footprint_settles(const struct loom__footprint *before, size_t rounds, char *text,
				    size_t room);

/* Catches standard output and error of a plug-in. The end restores both, and returns the number of bytes and the first
 * ones. */
struct loom__hush {
	int out, err, file;
};
int loom__hush_begin(struct loom__hush *h);
size_t loom__hush_end(struct loom__hush *h, char *text, size_t room);

#endif
