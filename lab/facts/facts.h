/* SPDX-License-Identifier: Apache-2.0 */
/* What the command adds to a result: the binaries and the machine of the measurement. */
#ifndef LOOM_FACTS_H
#define LOOM_FACTS_H

#include "run/result.h"

/* Before the first execution: adds the revision of this build, the build ID of each plug-in, and the environment. `arg`
 * is unused, for struct loom__run_hooks. */
void loom__facts_begin(void *arg, struct loom_result *r);
/* After the last execution: adds the environment again. */
void loom__facts_end(struct loom_result *r);

/* Adds the "revision" of this build to the "gpuloom" of a document. */
void loom__build_revision(cJSON *gpuloom);

#endif
