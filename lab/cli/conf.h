/* SPDX-License-Identifier: Apache-2.0 */
/* What run, config and later commands share: a conf from files, environment and --set, and its plan. */
#ifndef LOOM_CLI_CONF_H
#define LOOM_CLI_CONF_H

#include "cli/options.h"
#include "stack/plan.h"
#include "sweep/spec.h"

/* What the command line says about a conf. */
struct loom__conf_args {
	struct loom__words file;
	struct loom__settings set;
	uint8_t trust; /* a result may name what is run, loaded or written to */
};

/* The rows of --set, --trust and --samples, for a struct S with a struct loom__conf_args called conf. */
#define LOOM__OPTION_SET(S)                                                                        \
	{                                                                                          \
		"set", "SECTION.KEY=VALUE", "set one option; may be repeated", .sets = "",    \
		    LOOM__AT(S, conf.set, NONE)                                                    \
	}
#define LOOM__OPTION_TRUST(S)                                                                      \
	{                                                                                          \
		"trust", NULL, "of a RESULT.json as a conf: run its commands, load the plug-ins whose paths it names, " \
		"and write its files", LOOM__AT(S, conf.trust, BOOL)                                \
	}
#define LOOM__OPTION_SAMPLES(S)                                                                    \
	{                                                                                          \
		"samples", "N", "the same as --set run.samples=N", .sets = "run.samples=",         \
		    LOOM__AT(S, conf.set, NONE)                                                    \
	}

/* Reads all into a fresh config: files in order, then the environment, then the command line. Prints the mistakes
 * when there are any and returns an exit code. */
int loom__conf_load(const struct loom__cli *cli, const struct loom__conf_args *a,
		    struct loom_config **cfg);

/* For struct loom__plan_hooks: [sweep] is checked like the other sections of a conf. */
void loom__conf_sections(void *arg, struct loom_config *cfg, struct loom__diag *diag);

/* Makes the plan, each plug-in probed in a process of its own; prints mistakes and warnings. */
int loom__conf_plan(const struct loom__cli *cli, struct loom_config *cfg, struct loom__plan *plan);

/* What cfg says about a sweep, and the plan of one cell of it, whose values it is given; NULL: of none. The same
 * rules hold. A sweep that varies nothing is a mistake; without any section of one, *spec has no factor. */
int loom__conf_sweep(struct loom_config *cfg, struct loom__sweep_spec *spec);
int loom__conf_plan_cell(const struct loom__cli *cli, struct loom_config *cfg, const struct loom__sweep_spec *spec,
			 const size_t *pick, struct loom__plan *plan);

#endif
