/* SPDX-License-Identifier: Apache-2.0 */
/* The suite's reference termination detector: one counter of idle workers. It also checks that the scheduler calls the
 * detector as the contract says. */
#ifndef LOOM_VALIDATE_REFTERM_H
#define LOOM_VALIDATE_REFTERM_H

#include <gpuloom/dev/dev.h>
#include <gpuloom/term.h>

#include "conform/stand.h"

/* The detector's block for the stack, with the test's own counts of tasks. */
struct loom__refterm {
	uint64_t idle;        /* idle workers */
	uint64_t made, ended; /* tasks, counted by the test's task functions; `made` rises before the spawn */
	uint64_t never;       /* 1: done() always returns 0, so that only the stop word ends the run */
	uint64_t rough;
	uint64_t trial; /* the address of the struct loom__trial, in whose process the suite's workers run */
	struct {
		uint32_t idle, saw_done;
		uint64_t stolen_out, turns;
	} worker[LOOM__RIG_WORKERS];
};

extern const struct loom_term_dev loom__refterm_dev;

#endif
