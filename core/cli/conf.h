/* SPDX-License-Identifier: Apache-2.0 */
/* What run, config and later commands share: a conf from files, environment and --set, and its plan. */
#ifndef LOOM_CLI_CONF_H
#define LOOM_CLI_CONF_H

#include "cli/cli.h"
#include "stack/plan.h"

/* What the command line says about a conf; pointers into argv. */
struct loom__conf_args {
	const char **file; /* as many as argc at most; free the array */
	size_t files;
	const char **set;
	size_t sets;
};

/* Handles --set k=v and positional files. Returns how many arguments it used at argv[i], 0: not its. */
int loom__conf_argument(struct loom__conf_args *a, int argc, char **argv, int i);
void loom__conf_free(struct loom__conf_args *a);

/* Reads all into a fresh config: files in order, then the environment, then --set. Prints the mistakes
 * when there are any and returns an exit code. */
int loom__conf_load(const struct loom__cli *cli, const struct loom__conf_args *a,
		    struct loom_config **cfg);

/* Makes the plan, each plug-in probed in a process of its own; prints mistakes and warnings. */
int loom__conf_plan(const struct loom__cli *cli, struct loom_config *cfg, struct loom__plan *plan);

/* Stops at an unknown option: the nearest of `known` (n names) is suggested. */
int loom__bad_option(const struct loom__cli *cli, const char *command, const char *option,
		     const char *const *known, size_t n);

#endif
