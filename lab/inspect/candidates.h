/* SPDX-License-Identifier: Apache-2.0 */
/* The files of the search path that look like plug-ins. */
#ifndef LOOM_CANDIDATES_H
#define LOOM_CANDIDATES_H

#include "plugin/registry.h"

/* One file that looks like a plug-in, read without running its code. */
struct loom__candidate {
	char *path;
	int has_manifest;              /* the ELF note was there and sound */
	struct loom_manifest manifest; /* strings NUL-terminated, control characters removed */
	char fault[300];               /* why it cannot be used, or "" */
};
struct loom__candidates {
	struct loom__candidate *list;
	size_t count;
};
int loom__candidates_scan(const struct loom__search *s, struct loom__candidates *out,
			  struct loom_error *err);
void loom__candidates_free(struct loom__candidates *c);

/* The sentence without the path that it begins with, for where the path is shown already. */
const char *loom__cause(const char *path, const char *sentence);

#endif
