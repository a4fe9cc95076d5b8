/* SPDX-License-Identifier: Apache-2.0 */
/* Results as confs: what a result says of its run is enough to run it again. */
#ifndef LOOM_RERUN_H
#define LOOM_RERUN_H

#include "base/json.h"
#include "cli/cli.h"
#include "config/config.h"

/* 1: the name is that of a result, not of a conf. */
int loom__is_result(const char *path);
/* Sets in cfg what the result's run was given: what names something to be run, loaded or written to is refused when it is
 * read, unless `trust`. An exit code: what is wrong was said. */
int loom__result_conf(const struct loom__cli *cli, const char *path, int trust, struct loom_config *cfg, struct loom__diag *diag);
/* A sentence on stderr for each thing that differs between the result at `path` and another of now. */
void loom__rerun_tell(const struct loom__cli *cli, const char *path, const cJSON *now);

#endif
