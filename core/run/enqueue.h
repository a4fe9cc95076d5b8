/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in a stream of the program: loom_stack_enqueue(). */
#ifndef LOOM_ENQUEUE_H
#define LOOM_ENQUEUE_H

#include "stack/stack.h"

/* Returns LOOM_EINTR if loom_stack_stop() has ended the runs of graphs of this launch. The caller must retire the stack. */
int loom__graphs_stopped(struct loom_stack *s, struct loom_error *err);

/* Waits until all runs in streams have ended. Returns 0, and the duration of the last run in *ns. Returns LOOM_EAGAIN
 * if some have not ended at `until`. After another error, the caller must retire the stack. */
int loom__enqueued_wait(struct loom_stack *s, uint64_t until, uint64_t *ns, struct loom_error *err);

#endif
