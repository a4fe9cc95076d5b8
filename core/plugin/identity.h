/* SPDX-License-Identifier: Apache-2.0 */
/* The identity that a plug-in states, in its manifest and in its descriptor; what it offers; whether this core accepts it. */
#ifndef LOOM_IDENTITY_H
#define LOOM_IDENTITY_H

#include "plugin/registry.h"

void loom__manifest_clean(struct loom_manifest *m);
/* 0: only this user and root can have put the file or folder there, according to modes. LOOM_EINVAL where every user may write
 * to it or replace it; in a program with privileges also where another user or a group may. A real path. */
int loom__trusted(const char *real, struct loom_error *err);
/* The end of a long path: a message must have room for the cause. */
const char *loom__shown(const char *path);

/* The identity that a descriptor states, in the form of a manifest. */
void loom__identity_of(const struct loom_plugin *p, struct loom_manifest *out);
/* Rejects what this core cannot use, in the order in which fields can be trusted. */
int loom__identity_judge(const char *path, const struct loom_manifest *m, struct loom_error *err);
/* The first field in which the two differ, or NULL. */
const char *loom__identity_differs(const struct loom_manifest *a, const struct loom_manifest *b);
/* Operations, device code, option rows. `p` is a copy of the descriptor whose identity was judged; what it points
 * to is not trusted. */
int loom__offer_check(const char *path, const struct loom_plugin *p, struct loom_error *err);

#endif
