/* SPDX-License-Identifier: Apache-2.0 */
/* What a run shows while it lasts: a line, or all workers. */
#ifndef LOOM_CLI_WATCH_H
#define LOOM_CLI_WATCH_H

#include "cli/cli.h"
#include "run/engine.h"

struct loom__watch {
	const struct loom__cli *cli;
	int line;            /* one line of progress, on a terminal */
	int workers;         /* --watch */
	uint64_t drawn_ns;
	uint64_t beat_ns;    /* when a beat was last shown */
	uint64_t beat_cpu_ns; /* CPU time of this process then */
	size_t executions;   /* that are over */
	unsigned lines; /* drawn on the terminal, to be drawn over */
};

/* Called while an execution is in progress: says once a second how long it has been. */
void loom__watch_beat(void *arg, const struct loom_stack *s, uint64_t since_ns);
/* The same while it is verified: how much of that is done, from 0 to 1, and how long the rest may take. */
void loom__watch_verifying(void *arg, const struct loom_stack *s, uint64_t since_ns, double done);
/* Called after each execution: workers write their counters at the end of one, so that looking
 * costs them nothing, and there is nothing newer to be seen. */
void loom__watch_sample(void *arg, const struct loom_stack *s, const struct loom_result *r);
/* Wipes what is on the terminal. */
void loom__watch_end(struct loom__watch *w);

#endif
