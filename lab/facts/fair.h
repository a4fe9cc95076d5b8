/* SPDX-License-Identifier: Apache-2.0 */
/* A clock for time limits. It runs slower by the share of CPU time that other programs use, so that load on the machine
 * does not cause time-outs. */
#ifndef LOOM_FACTS_FAIR_H
#define LOOM_FACTS_FAIR_H

#include <stdint.h>
#include <sys/types.h>

struct loom__fair {
	uint64_t ns;
	double all, idle, own;
	pid_t child;
};

/* `child`: a process whose time does not count as that of other programs; 0: none. Neither does the time of this
 * process and its reaped children. */
void loom__fair_begin(struct loom__fair *f, pid_t child);
/* The time since loom__fair_begin(): at least a sixteenth of the wall-clock time, all of it if the load is not known.
 * Any thread. */
uint64_t loom__fair_elapsed_ns(const struct loom__fair *f);

#endif
