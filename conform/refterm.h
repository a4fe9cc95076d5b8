/* SPDX-License-Identifier: Apache-2.0 */
/* The suite's own termination detector: one counter of idle workers, which also watches that the
 * scheduler keeps what it promises a detector. */
#ifndef LOOM_VALIDATE_REFTERM_H
#define LOOM_VALIDATE_REFTERM_H

#include <gpuloom/dev/dev.h>
#include <gpuloom/term.h>

#include "conform/stand.h"

/* Its block for the stack, with the truth about tasks beside it. */
struct loom__refterm {
	uint64_t idle;        /* workers */
	uint64_t made, ended; /* tasks: told by the test's task functions, made before the spawn */
	uint64_t never;       /* 1: done() never says yes, to see who heeds the stop word */
	uint64_t rough;
	uint64_t trial; /* struct loom__trial *: the suite's workers share its process */
	struct {
		uint32_t idle, told_done;
		uint64_t stolen_out, turns;
	} worker[LOOM__RIG_WORKERS];
};

extern const struct loom_term_dev loom__refterm_dev;

#endif
