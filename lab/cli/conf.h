/* SPDX-License-Identifier: Apache-2.0 */
/* A conf from files, environment and --set, and its plan, for several commands. */
#ifndef LOOM_CLI_CONF_H
#define LOOM_CLI_CONF_H

#include "base/json.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "config/config.h"
#include "stack/plan.h"
#include "sweep/spec.h"

/* The conf arguments of a command line. */
struct loom__conf_args {
	struct loom__words file;
	struct loom__settings set;
	uint8_t trust; /* 1: a result may name commands to run, plug-ins to load and files to write */
};

/* The rows of --set, --trust and --samples, for a struct S with a struct loom__conf_args called conf. */
#define LOOM__OPTION_SET(S)                                                                        \
	{                                                                                          \
		"set", "SECTION.KEY=VALUE", "set one option; may be repeated", .sets = "",    \
		    LOOM__AT(S, conf.set, NONE)                                                    \
	}
#define LOOM__OPTION_TRUST(S)                                                                      \
	{                                                                                          \
		"trust", NULL, "if the conf is a RESULT.json: allow it to run commands, to load plug-ins by path, " \
		"and to write files", LOOM__AT(S, conf.trust, BOOL)                                \
	}
#define LOOM__OPTION_SAMPLES(S)                                                                    \
	{                                                                                          \
		"samples", "N", "the same as --set run.samples=N", .sets = "run.samples=",         \
		    LOOM__AT(S, conf.set, NONE)                                                    \
	}

/* Reads files, the environment and the command line, in this order, into a new config. Returns an exit code. */
int loom__conf_load(const struct loom__cli *cli, const struct loom__conf_args *a,
		    struct loom_config **cfg);

/* Callback of struct loom__plan_hooks: checks [sweep] and [x-paper] like other sections. */
void loom__conf_sections(void *arg, struct loom_config *cfg, struct loom__diag *diag);

/* Makes the plan, after a child process has probed each plug-in. Prints errors and warnings. */
int loom__conf_plan(const struct loom__cli *cli, struct loom_config *cfg, struct loom__plan *plan);

/* Reads the sweep that cfg describes; plans one of its configurations, or with spec NULL no sweep. A sweep without
 * factors is an error; without [sweep] sections *spec has no factor. */
int loom__conf_sweep(struct loom_config *cfg, struct loom__sweep_spec *spec);
int loom__conf_plan_config(const struct loom__cli *cli, struct loom_config *cfg, const struct loom__sweep_spec *spec,
			 const size_t *pick, struct loom__plan *plan);

/* The confs shipped with gpuloom, in PREFIX/share/gpuloom/conf or conf/ of the source tree. */
struct loom__confs {
	size_t n;
	struct loom__shipped {
		char *name, *path; /* "sim/figure-08" */
	} * at;                    /* [n], sorted by name */
};

/* Returns the folder of the shipped confs, or NULL. The caller frees it. */
char *loom__confs_folder(const struct loom__cli *cli);
/* Returns the path of results/papers.ini beside that folder, or NULL. The caller frees it. */
char *loom__papers_file(const struct loom__cli *cli);
/* Lists the shipped confs; the list may be empty. */
void loom__confs_list(const struct loom__cli *cli, struct loom__confs *out);
void loom__confs_free(struct loom__confs *c);

/* Finds a file as the user names it, else the shipped conf of that name: "contains", "contains.ini" and
 * "conf/contains.ini" are equivalent. The caller frees *path. LOOM_ENOENT comes with a similar name. */
int loom__conf_named(const struct loom__cli *cli, const char *name, char **path, struct loom_error *err);

/* Appends the first sentence of the first comment of a conf. */
void loom__conf_summary(const char *path, struct loom__text *out);

/* Results as confs: a result contains everything that is needed to repeat its run. */
/* Returns 1 if the name is that of a result rather than a conf. */
int loom__is_result(const char *path);
/* Sets in cfg the options of the result's run. Rejects options that name commands to run, plug-ins to load or files to
 * write, unless `trust`. Prints errors and returns an exit code. */
int loom__result_conf(const struct loom__cli *cli, const char *path, int trust, struct loom_config *cfg,
		      struct loom__diag *diag);
/* Prints one line on stderr for each difference between the result at `path` and the current one. */
void loom__rerun_tell(const struct loom__cli *cli, const char *path, const cJSON *now);

#endif
