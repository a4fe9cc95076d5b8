/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the timeline of the last execution (dev/trace.h) as JSON for chrome://tracing and Perfetto. */
#ifndef LOOM_TRACE_H
#define LOOM_TRACE_H

#include "stack/stack.h"

/* Requests a timeline with at most `room` events per worker, in which one of `every` tasks is recorded. Call it before
 * the stack is prepared. */
void loom__trace_want(struct loom_stack *s, uint64_t room, uint64_t every);
/* What loom__trace_write() has written. */
struct loom__traced {
	uint64_t tasks; /* number of recorded tasks */
	uint64_t lost;	/* number of events dropped for lack of space */
};
int loom__trace_write(struct loom_stack *s, const char *path, struct loom__traced *traced, struct loom_error *err);

#endif
