/* SPDX-License-Identifier: Apache-2.0 */
/* Files of the search path that may be plug-ins. */
#ifndef LOOM_CANDIDATES_H
#define LOOM_CANDIDATES_H

#include "plugin/registry.h"

/* A file that may be a plug-in, examined without running its code. */
struct loom__candidate {
	char *path;
	int has_manifest;              /* 1: the ELF note exists and is valid */
	struct loom_manifest manifest; /* the manifest; its strings are NUL-terminated and have no control characters */
	char fault[300];               /* the reason why the file cannot be used, or "" */
};
struct loom__candidates {
	struct loom__candidate *list;
	size_t count;
};
int loom__candidates_scan(const struct loom__search *s, struct loom__candidates *out,
			  struct loom_error *err);
void loom__candidates_free(struct loom__candidates *c);

/* Returns an error message without the path at its beginning, for output that already shows the path. */
const char *loom__cause(const char *path, const char *sentence);

/* Plug-ins that this build left out, because a dependency was missing. */
enum { LOOM__ABSENT_MOST = 32 };
/* Lists the plug-ins that the build left out and that are in no folder of the search path. Returns their number. */
size_t loom__absent_scan(const struct loom__search *s, struct loom__absent *out, size_t most);
/* If the build left out a plug-in named `name`, of any kind, returns LOOM_EUNAVAIL with a message, else 0. */
int loom__absent_named(const struct loom__search *s, const char *name, struct loom_error *err);

#endif
