/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of the last execution (dev/trace.h) as JSON for chrome://tracing and Perfetto. */
#ifndef LOOM_TRACE_H
#define LOOM_TRACE_H

#include "stack/stack.h"

/* Requests a timeline: `room` events per worker, one of `every` tasks. Call it before the stack is prepared. */
void loom__trace_want(struct loom_stack *s, uint64_t room, uint64_t every);
/* Writes the timeline of the last execution. Returns 0 or an error. */
struct loom__traced {
	uint64_t tasks; /* recorded tasks */
	uint64_t lost;	/* events dropped for lack of space */
};
int loom__trace_write(struct loom_stack *s, const char *path, struct loom__traced *traced, struct loom_error *err);

#endif
