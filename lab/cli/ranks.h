/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that run as several ranks: rank 0 alone prints. */
#ifndef LOOM_CLI_RANKS_H
#define LOOM_CLI_RANKS_H

#include "ranks/boot.h"
#include "cli/cli.h"
#include "stack/plan.h"

/* Whether the ranks are threads of this process, which those of simulated devices are. 1: *ranks of them, or *status has an
 * exit code because they cannot be. */
int loom__ranks_threads(const struct loom__cli *cli, const char *n, const struct loom__plan *plan, uint32_t *ranks, int *status);
/* `-n` as written, or NULL: then `ranks`. Returns 1 in a rank, which goes on and calls loom__ranks_end; else 0 with the
 * exit code in *status: the parent of ranks, or a failure. */
int loom__ranks_begin(struct loom__cli *cli, const char *n, uint32_t ranks, struct loom__boot *boot, int *status);
/* Says why it failed, if it did (err->code 0: not). Returns status. */
int loom__ranks_end(const struct loom__cli *cli, struct loom__boot *boot, int status,
		    const struct loom_error *err);

#endif
