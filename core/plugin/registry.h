/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and loading plug-ins. The core names no plug-in. */
#ifndef LOOM_REGISTRY_H
#define LOOM_REGISTRY_H

#include <gpuloom/plugin.h>

#include "base/base.h"

/* The folders of plug-ins, in the order of the search. */
struct loom__search {
	char **folder; /* real paths */
	size_t count;
};
/* Collects the folders: `configured`, which is [gpuloom] plugin_path (colon-separated, may be NULL);
 * GPULOOM_PLUGIN_PATH; the folder beside this executable or library (build/plugins); the install folder. Missing
 * folders are errors if configured, else skipped. A folder that every user may write to, or one inside such a folder,
 * is an error. Programs with privileges ignore GPULOOM_PLUGIN_PATH. */
int loom__search_create(const char *configured, struct loom__search *out, struct loom_error *err);
void loom__search_free(struct loom__search *s);

/* Finds the real path of sched_mgws.so for "mgws" of kind LOOM_SCHED; a name with a '/' is a path already. LOOM_ENOENT:
 * there is none, and the message has the folders, the nearest name and the available ones. LOOM_EUNAVAIL: the build
 * left it out. */
int loom__plugin_find(const struct loom__search *s, enum loom_kind kind, const char *name, char **path,
		      struct loom_error *err);

/* Writes the short names of the plug-ins of that kind in the folders, each once, and returns how many. One place of
 * `out` stays unused. */
enum { LOOM__NAMES_MOST = 101 };
size_t loom__plugin_names(const struct loom__search *s, enum loom_kind kind, char (*out)[64], size_t most);

/* Sets *path to the real path of a file, or to NULL if there is none. */
int loom__plugin_real(const char *name, char **path, struct loom_error *err);

/* A plug-in that the build left out. The first line of FOLDER/KIND_NAME.absent is the reason, the second the remedy. */
struct loom__absent {
	char name[64]; /* "sched_mgws" */
	enum loom_kind kind;
	char why[200], fix[200];
};
/* Returns 0 when the file is absent or no such note. */
int loom__absent_read(const char *path, struct loom__absent *out);
const char *loom__absent_brief(const struct loom__absent *a); /* "mgws" */
/* Words the error and returns LOOM_EUNAVAIL. */
int loom__absent_fail(const struct loom__absent *a, struct loom_error *err);

/* Loads a plug-in into this process by RTLD_NOW|RTLD_LOCAL|RTLD_NODELETE, for good. Rejects a wrong magic or ABI, a
 * missing mandatory op, bad rows, an entry symbol from another file, and a manifest that differs from the descriptor.
 * The message has file, plug-in, cause and remedy. `kind` 0: any. */
int loom__plugin_load(const char *path, enum loom_kind kind, const struct loom_plugin **out,
		      struct loom_error *err);

const char *loom__kind_name(enum loom_kind kind);    /* "sched" */
const char *loom__kind_section(enum loom_kind kind); /* "scheduler" */
enum loom_kind loom__kind_of_section(const char *section); /* LOOM_KIND_NONE: no kind has that section */
/* Returns the kind of "sched_mgws.so", with "mgws.so" in *brief. LOOM_KIND_NONE: the name is not that of a plug-in. */
enum loom_kind loom__kind_of_file(const char *file, const char **brief);
const char *loom__plugin_short(const struct loom_plugin *p); /* "mgws" of "sched_mgws" */

#endif
