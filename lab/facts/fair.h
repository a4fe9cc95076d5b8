/* SPDX-License-Identifier: Apache-2.0 */
/* A clock for time limits. The share of CPU time that other programs use slows it, so that load causes no time-outs. */
#ifndef LOOM_FACTS_FAIR_H
#define LOOM_FACTS_FAIR_H

#include <stdint.h>
#include <sys/types.h>

struct loom__fair {
	uint64_t ns;
	double all, idle, own;
	pid_t child;
};

/* Starts the clock. The CPU time of `child` (0: none), this process and its reaped children counts as its own. */
void loom__fair_begin(struct loom__fair *f, pid_t child);
/* Returns the time since loom__fair_begin(): at least 1/16 of the wall-clock time, all of it if the load is unknown.
 * Any thread. */
uint64_t loom__fair_elapsed_ns(const struct loom__fair *f);

#endif
