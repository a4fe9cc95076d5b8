/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline of the last execution (dev/trace.h), as JSON that chrome://tracing and Perfetto read. */
#ifndef LOOM_TRACE_H
#define LOOM_TRACE_H

#include "stack/stack.h"

/* Asks for a timeline: `room` events per worker, one of `every` tasks. Before the stack is prepared. */
void loom__trace_want(struct loom_stack *s, uint64_t room, uint64_t every);
/* Writes the last execution's: 0 or an error. */
struct loom__traced {
	uint64_t tasks; /* that it shows */
	uint64_t lost;	/* events that found no room */
};
int loom__trace_write(struct loom_stack *s, const char *path, struct loom__traced *traced, struct loom_error *err);

#endif
