/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that run as several ranks: rank 0 alone prints. */
#ifndef LOOM_CLI_RANKS_H
#define LOOM_CLI_RANKS_H

#include "ranks/boot.h"
#include "cli/cli.h"

/* `-n` as written, or NULL. Returns 1 in a rank, which goes on and calls loom__ranks_end; else 0 with the
 * exit code in *status: the parent of ranks, or a failure. */
int loom__ranks_begin(struct loom__cli *cli, const char *n, struct loom__boot *boot, int *status);
/* Says why it failed, if it did (err->code 0: not). Returns status. */
int loom__ranks_end(const struct loom__cli *cli, struct loom__boot *boot, int status,
		    const struct loom_error *err);

#endif
