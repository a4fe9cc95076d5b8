/* SPDX-License-Identifier: Apache-2.0 */
/* Finds and loads plug-ins. No file of the core contains the name of a plug-in. */
#ifndef LOOM_REGISTRY_H
#define LOOM_REGISTRY_H

#include <gpuloom/plugin.h>

#include "base/base.h"

/* The folders of plug-ins, in the order in which they are searched. */
struct loom__search {
	char **folder; /* real paths of the folders */
	size_t count;
};
/* Collects the folders in this order: `configured`, which is [gpuloom] plugin_path (separated by colons; may be NULL);
 * GPULOOM_PLUGIN_PATH; folders beside this executable or library (build/plugins, or those of an installation). A
 * missing folder is an error if the user has named it, else it is skipped. A folder is an error if every user may write
 * to it or to a folder that contains it. Programs with privileges ignore GPULOOM_PLUGIN_PATH. */
int loom__search_create(const char *configured, struct loom__search *out, struct loom_error *err);
void loom__search_free(struct loom__search *s);

/* Finds the real path of a plug-in: sched_mgws.so for "mgws" of kind LOOM_SCHED. A name with a '/' is a path. Returns
 * LOOM_ENOENT if there is none; the message lists the folders, the nearest name and the available names. Returns
 * LOOM_EUNAVAIL if the build left the plug-in out. */
int loom__plugin_find(const struct loom__search *s, enum loom_kind kind, const char *name, char **path,
		      struct loom_error *err);

/* Writes the short names of the plug-ins of a kind, without repetitions, and returns their number, at most `most` -
 * 1. */
enum { LOOM__NAMES_MOST = 101 };
size_t loom__plugin_names(const struct loom__search *s, enum loom_kind kind, char (*out)[64], size_t most);

/* Sets *path to the real path of a file, which the caller frees. If there is no such file, sets *path to NULL and
 * returns an error. */
int loom__plugin_real(const char *name, char **path, struct loom_error *err);

/* A plug-in that the build left out. The first line of FOLDER/KIND_NAME.absent is the reason, the second line is the
 * remedy. */
struct loom__absent {
	char name[64]; /* such as "sched_mgws" */
	enum loom_kind kind;
	char why[200], fix[200];
};
/* Reads a .absent file. Returns 1, or 0 if the file does not exist or has another form. */
int loom__absent_read(const char *path, struct loom__absent *out);
const char *loom__absent_brief(const struct loom__absent *a); /* the short name: "mgws" */
/* Fills *err with the reason and remedy, and returns LOOM_EUNAVAIL. */
int loom__absent_fail(const struct loom__absent *a, struct loom_error *err);

/* Loads a plug-in with RTLD_NOW|RTLD_LOCAL|RTLD_NODELETE. It is never unloaded. Rejects a wrong magic number or ABI, a
 * missing mandatory op, wrong rows, an entry function from another file, and a manifest that differs from the
 * descriptor. The message has file, plug-in, cause and remedy. `kind`: the kind that the caller needs; LOOM_KIND_NONE:
 * any. */
int loom__plugin_load(const char *path, enum loom_kind kind, const struct loom_plugin **out,
		      struct loom_error *err);

const char *loom__kind_name(enum loom_kind kind);    /* for LOOM_SCHED: "sched" */
const char *loom__kind_section(enum loom_kind kind); /* for LOOM_SCHED: "scheduler" */
enum loom_kind loom__kind_of_section(const char *section); /* LOOM_KIND_NONE if no kind has that section */
/* For "sched_mgws.so", returns LOOM_SCHED and sets *brief to "mgws.so". Returns LOOM_KIND_NONE if the file name is not
 * that of a plug-in. */
enum loom_kind loom__kind_of_file(const char *file, const char **brief);
const char *loom__plugin_short(const struct loom_plugin *p); /* for "sched_mgws": "mgws" */

#endif
