/* SPDX-License-Identifier: Apache-2.0 */
/* A clock for limits. While other programs use the processors it runs slower, by their share, so that a busy machine is
 * no verdict on what is waited for. */
#ifndef LOOM_FACTS_FAIR_H
#define LOOM_FACTS_FAIR_H

#include <stdint.h>
#include <sys/types.h>

struct loom__fair {
	uint64_t ns;
	double all, idle, own;
	pid_t child;
};

/* `child`: a process whose time is not that of other programs; 0: none. This process and the children that it has waited
 * for are never others. */
void loom__fair_begin(struct loom__fair *f, pid_t child);
/* Since then: at least a sixteenth of what a watch shows. All of it where the system does not tell. Any thread. */
uint64_t loom__fair_elapsed_ns(const struct loom__fair *f);

#endif
