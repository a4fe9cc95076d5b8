/* SPDX-License-Identifier: Apache-2.0 */
/* For task functions that an embedding program compiles itself (loom_stack_ir). Include this header first, and compile
 * the file to IR that the device links, such as PTX, or to a shared object (cc). The same file serves both:
 *
 *   #include <gpuloom/dev/ir.h>
 *   LOOM_IR_TASK(NAME)            ... for each task function that the stack registers
 *   LOOM_FN void NAME(struct loom_ctx *c, const struct loom_task *t) { ... }
 *
 * LOOM_IR_TAG(NAME) is the tag of a function. The linked names contain the number of this interface (LOOM_IR), so IR
 * for another version of the interface does not link. On GPUs, the only policy op that IR may call is
 * LOOM_CALL(sched, spawn, c, task). */
#ifndef GPULOOM_DEV_IR_H
#define GPULOOM_DEV_IR_H

#define LOOM_IR 1

/* The names by which the composed program and the IR call functions of each other. */
#define LOOM_IR_NAME(what, name) loom_ir1_##what##_##name
#define LOOM_IR_PREFIX "loom_ir1_"

#include "dev.h"
#include "../sched.h"

#ifndef LOOM_IR_TASK /* the device layer of a GPU defines it */
/* The device that loads the object stores the tag in this variable. */
#define LOOM_IR_TAG(name) LOOM_IR_NAME(tag, name)
#define LOOM_IR_TASK(name)                                                                         \
	LOOM_FN void name(struct loom_ctx *c, const struct loom_task *t);                          \
	__attribute__((visibility("default"))) uint32_t LOOM_IR_NAME(tag, name);                   \
	__attribute__((visibility("default"))) void LOOM_IR_NAME(task, name)(                      \
		struct loom_ctx *c, const struct loom_task *t);                                    \
	void LOOM_IR_NAME(task, name)(struct loom_ctx *c, const struct loom_task *t)               \
	{                                                                                          \
		name(c, t);                                                                        \
	}
#endif

#endif
