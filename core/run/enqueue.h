/* SPDX-License-Identifier: Apache-2.0 */
/* Runs in a stream of the program: loom_stack_enqueue(). */
#ifndef LOOM_ENQUEUE_H
#define LOOM_ENQUEUE_H

#include "stack/stack.h"

/* Waits until all of them have ended: 0; *ns: how long the last one took. LOOM_EAGAIN at `until`. After an error the
 * stack is to be retired. */
int loom__enqueued_wait(struct loom_stack *s, uint64_t until, uint64_t *ns, struct loom_error *err);

#endif
