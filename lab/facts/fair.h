/* SPDX-License-Identifier: Apache-2.0 */
/* A clock for time limits. It slows down by the share of CPU time that other programs use, so that load on the machine
 * causes no time-outs. */
#ifndef LOOM_FACTS_FAIR_H
#define LOOM_FACTS_FAIR_H

#include <stdint.h>
#include <sys/types.h>

struct loom__fair {
	uint64_t ns;
	double all, idle, own;
	pid_t child;
};

/* Starts the clock. Time that this process, its reaped children and `child` (0: none) spend on a CPU does not slow
 * it. */
void loom__fair_begin(struct loom__fair *f, pid_t child);
/* Returns the nanoseconds on this clock since loom__fair_begin(). The result is at least 1/16 of the wall-clock time,
 * and equal to it if the load is not known. Any thread may call it. */
uint64_t loom__fair_elapsed_ns(const struct loom__fair *f);

#endif
