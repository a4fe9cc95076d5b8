/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that the command adds to a result: the binaries and the machine of the measurement. */
#ifndef LOOM_FACTS_H
#define LOOM_FACTS_H

#include "run/result.h"
#include "stack/stack.h"

/* Adds the revision of this build, the build ID of each plug-in, and the environment. Call it before the first
 * execution. `arg` is unused, and makes this function fit into struct loom__run_hooks. */
void loom__facts_begin(void *arg, const struct loom_stack *s, struct loom_result *r);
/* Adds the environment a second time. Call it after the last execution, while the stack is open. */
void loom__facts_end(const struct loom_stack *s, struct loom_result *r);
/* devices.c: adds what the devices report about their hardware. Call it between executions. */
void loom__facts_look(const struct loom_stack *s, struct loom_result *r);

/* Adds "command", the command line, to a document. argv[0] is the name of the command. */
void loom__command_line(cJSON *doc, int argc, char *const *argv);

/* Adds "revision", the revision of this build, to the object "gpuloom" of a document. */
void loom__build_revision(cJSON *gpuloom);

#endif
