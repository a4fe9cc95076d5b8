/* SPDX-License-Identifier: Apache-2.0 */
/* What a process holds: what a plug-in must leave as it found it. */
#ifndef LOOM_VALIDATE_FOOTPRINT_H
#define LOOM_VALIDATE_FOOTPRINT_H

#include <signal.h>
#include <stddef.h>

#include <gpuloom/plugin.h>

enum { LOOM__SIGNALS = 65 };

struct loom__footprint {
	size_t fds, threads, mappings, heap;
	int children; /* 1: there are some, running or to be reaped */
	void *handler[LOOM__SIGNALS];
	sigset_t mask;
	unsigned long long environment; /* a hash of it, and of the working directory and umask */
};

void loom__footprint_take(struct loom__footprint *f);
/* Whether what the heap has grown by is lost by a library, as the plug-in declares: so many times `rounds` times its bytes,
 * once or a few times an instance, while that library is loaded. NULL: it is not. */
const struct loom_known_leak *loom__footprint_known(const struct loom__footprint *before, size_t rounds,
						    const struct loom_known_leak *known);
/* The first thing of which there is more than `before`, or that is different, in words; NULL: none. `rounds` 0: any
 * descriptor or thread counts; else what grows with each round, memory, too. Looks for a second: threads end a moment
 * after their join. */
const char *loom__footprint_settles(const struct loom__footprint *before, size_t rounds, char *text,
				    size_t room);

/* Standard output and error while a plug-in works. Begin keeps what they were; end says how much
 * was written, and the beginning of it. */
struct loom__hush {
	int out, err, file;
};
int loom__hush_begin(struct loom__hush *h);
size_t loom__hush_end(struct loom__hush *h, char *text, size_t room);

#endif
