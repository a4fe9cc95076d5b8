/* SPDX-License-Identifier: Apache-2.0 */
/* Finding and loading plug-ins. The core never names a plug-in. */
#ifndef LOOM_REGISTRY_H
#define LOOM_REGISTRY_H

#include <gpuloom/plugin.h>

#include "base/base.h"

/* The folders of plug-ins, in order of the search. */
struct loom__search {
	char **folder; /* real paths */
	size_t count;
};
/* `configured` is [gpuloom] plugin_path (colon-separated, may be NULL), then GPULOOM_PLUGIN_PATH, then
 * the folder beside this executable or library (build/plugins), then the install folder. Folders that
 * do not exist are skipped when guessed and rejected when configured; one that every user may write to, or a
 * folder above it, is rejected. Programs with privileges ignore GPULOOM_PLUGIN_PATH. */
int loom__search_create(const char *configured, struct loom__search *out, struct loom_error *err);
void loom__search_free(struct loom__search *s);

/* "mgws" of kind LOOM_SCHED -> the real path of sched_mgws.so; a name with a '/' is a path already.
 * Not found: LOOM_ENOENT, the message names the folders, the nearest name and what there is;
 * LOOM_EUNAVAIL where the build left it out. */
int loom__plugin_find(const struct loom__search *s, enum loom_kind kind, const char *name, char **path,
		      struct loom_error *err);

/* The short names of the plug-ins of that kind which the folders have, each once: how many. One place of `out` is not used. */
enum { LOOM__NAMES_MOST = 101 };
size_t loom__plugin_names(const struct loom__search *s, enum loom_kind kind, char (*out)[64], size_t most);

/* The real path of a file; else *path is NULL. */
int loom__plugin_real(const char *name, char **path, struct loom_error *err);

/* A plug-in that the build left out, as FOLDER/KIND_NAME.absent says: its first line why, its second the
 * fix. */
struct loom__absent {
	char name[64]; /* "sched_mgws" */
	enum loom_kind kind;
	char why[200], fix[200];
};
/* 0: the file is not there, or no such note. */
int loom__absent_read(const char *path, struct loom__absent *out);
const char *loom__absent_brief(const struct loom__absent *a); /* "mgws" */
/* LOOM_EUNAVAIL. */
int loom__absent_fail(const struct loom__absent *a, struct loom_error *err);

/* Loads in this process: RTLD_NOW|RTLD_LOCAL|RTLD_NODELETE, never dlclose'd. Rejects, with a message that has file,
 * plug-in, cause and fix, a wrong magic or ABI, a missing mandatory op, bad rows, an entry symbol that comes from another
 * file, a manifest that differs from the descriptor. `kind` 0:
 * any. */
int loom__plugin_load(const char *path, enum loom_kind kind, const struct loom_plugin **out,
		      struct loom_error *err);

const char *loom__kind_name(enum loom_kind kind);    /* "sched" */
const char *loom__kind_section(enum loom_kind kind); /* "scheduler" */
enum loom_kind loom__kind_of_section(const char *section); /* LOOM_KIND_NONE: no such kind */
/* Of "sched_mgws.so", and in *brief "mgws.so". LOOM_KIND_NONE: not called as a plug-in must be. */
enum loom_kind loom__kind_of_file(const char *file, const char **brief);
const char *loom__plugin_short(const struct loom_plugin *p); /* "mgws" of "sched_mgws" */

#endif
