/* SPDX-License-Identifier: Apache-2.0 */
/* The confs that come with gpuloom: in PREFIX/share/gpuloom/conf, or conf/ of the source tree. */
#ifndef LOOM_CLI_CONFS_H
#define LOOM_CLI_CONFS_H

#include "cli/cli.h"

struct loom__confs {
	size_t n;
	struct loom__shipped {
		char *name, *path; /* "sim/figure-08" */
	} * at;                    /* [n], by name */
};

/* Empty where there are none. */
void loom__confs_list(const struct loom__cli *cli, struct loom__confs *out);
void loom__confs_free(struct loom__confs *c);

/* A file as the user names it; where there is none, the shipped conf of that name: "contains", "contains.ini" and
 * "conf/contains.ini" are the same. free(*path). LOOM_ENOENT: neither, with a suggestion. */
int loom__conf_named(const struct loom__cli *cli, const char *name, char **path, struct loom_error *err);

/* The first sentence of its first comment: what it shows. */
void loom__conf_summary(const char *path, struct loom__text *out);

#endif
