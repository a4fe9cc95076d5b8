/* SPDX-License-Identifier: Apache-2.0 */
/* What the command adds to a result: which files it was measured with, and on which machine. */
#ifndef LOOM_FACTS_H
#define LOOM_FACTS_H

#include "run/result.h"

/* Before the first execution: the revision of this build, a digest of each plug-in's file, and the
 * environment. `arg` is not used: for struct loom__run_hooks. */
void loom__facts_begin(void *arg, struct loom_result *r);
/* After the last one: the environment once more. */
void loom__facts_end(struct loom_result *r);

/* Adds the "revision" of this build to the "gpuloom" of a document. */
void loom__build_revision(cJSON *gpuloom);

#endif
