/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a conf from files, environment and --set, and its plan, for several commands. */
#ifndef LOOM_CLI_CONF_H
#define LOOM_CLI_CONF_H

#include "base/json.h"
#include "cli/cli.h"
#include "cli/base/options.h"
#include "config/config.h"
#include "stack/plan.h"
#include "sweep/spec.h"

/* The arguments of a command line that make up a conf. */
struct loom__conf_args {
	struct loom__words file;
	struct loom__settings set;
	uint8_t trust; /* 1: a result may name commands to run, plug-ins to load and files to write */
};

/* The rows of --set, --trust and --samples, for a struct S that has a struct loom__conf_args named conf. */
#define LOOM__OPTION_SET(S)                                                                                            \
	{                                                                                                              \
		"set", "SECTION.KEY=VALUE", "set one option; may be repeated", .sets = "", LOOM__AT(S, conf.set, NONE) \
	}
#define LOOM__OPTION_TRUST(S)                                                                                          \
	{                                                                                                              \
		"trust", NULL,                                                                                         \
		    "if the conf is a RESULT.json: allow it to run commands, to load plug-ins by path, "               \
		    "and to write files",                                                                              \
		    LOOM__AT(S, conf.trust, BOOL)                                                                      \
	}
#define LOOM__OPTION_SAMPLES(S)                                                                                        \
	{                                                                                                              \
		"samples", "N", "the same as --set run.samples=N", .sets = "run.samples=", LOOM__AT(S, conf.set, NONE) \
	}

/* Prints the mistakes in a conf, frees them, and returns an exit code. Prints each line only once, because a command
 * may read a conf several times. */
int loom__say_mistakes(struct loom__diag *diag);

/* Reads the files, the environment and the command line, in this order, into a new config. Returns an exit code. */
int loom__conf_load(const struct loom__cli *cli, const struct loom__conf_args *a, struct loom_config **cfg);

/* Callback of struct loom__plan_hooks: checks [sweep] and [x-paper] like other sections. */
void loom__conf_sections(void *arg, struct loom_config *cfg, struct loom__diag *diag);

/* Makes the plan, after a child process has probed each plug-in. Prints errors and warnings. */
int loom__conf_plan(const struct loom__cli *cli, struct loom_config *cfg, struct loom__plan *plan);

/* loom__conf_sweep() reads the sweep that cfg describes. If cfg has no [sweep] section, *spec has no factor. If there
 * is such a section, but no factor, this is an error. loom__conf_plan_config() plans the configuration `pick` of spec,
 * or, if spec is NULL, the conf without its sweep. Both print errors and return an exit code. */
int loom__conf_sweep(struct loom_config *cfg, struct loom__sweep_spec *spec);
int loom__conf_plan_config(const struct loom__cli *cli, struct loom_config *cfg, const struct loom__sweep_spec *spec,
			   const size_t *pick, struct loom__plan *plan);

/* The confs shipped with gpuloom. They are in PREFIX/share/gpuloom/conf, or in conf/ of the source tree. */
struct loom__confs {
	size_t n;
	struct loom__shipped {
		char *name, *path; /* name: such as "sim/figure-08" */
	} * at;                    /* [n], sorted by name */
};

/* Returns the folder of the shipped confs, or NULL. The caller frees it. */
char *loom__confs_folder(const struct loom__cli *cli);
/* Returns the path of another file that is shipped with gpuloom, such as "results/papers.ini", or NULL. `name` is
 * relative to the parent folder of the shipped confs. The caller frees the path. */
char *loom__shipped_file(const struct loom__cli *cli, const char *name);
/* Lists the shipped confs. The list may be empty. */
void loom__confs_list(const struct loom__cli *cli, struct loom__confs *out);
void loom__confs_free(struct loom__confs *c);

/* Finds the file `name` or, if there is none, the shipped conf of that name: "contains", "contains.ini" and
 * "conf/contains.ini" are equivalent. If neither exists, returns LOOM_ENOENT, with a similar name in the message. The
 * caller frees *path. */
int loom__conf_named(const struct loom__cli *cli, const char *name, char **path, struct loom_error *err);

/* Appends what the first comment of a conf says: to `shows` its first sentence, and to `takes` how long the run takes,
 * from a line "; takes 3 s". */
void loom__conf_summary(const char *path, struct loom__text *shows, struct loom__text *takes);

/* A result may stand in place of a conf, because it contains everything that is needed to repeat its run. */
/* Sets the options of the result's run in cfg. If `trust` is 0, rejects options that name commands to run, plug-ins to
 * load or files to write. Prints errors and returns an exit code. */
int loom__result_conf(const struct loom__cli *cli, const char *path, int trust, struct loom_config *cfg,
		      struct loom__diag *diag);
/* Prints one line on stderr for each difference between the result at `path` and the result `now`. */
void loom__rerun_tell(const struct loom__cli *cli, const char *path, const cJSON *now);

#endif
