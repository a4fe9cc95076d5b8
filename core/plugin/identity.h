/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of a plug-in in its manifest and descriptor, what it offers, and whether this core accepts it. */
#ifndef LOOM_IDENTITY_H
#define LOOM_IDENTITY_H

#include "plugin/registry.h"

/* Checks the file before dlopen() sees it, without running its code, and rejects one that is absent, not regular, not
 * ELF, truncated, or for another machine. Otherwise returns 0. *found says whether the file has a manifest, which *out
 * then is, cleaned. */
int loom__elf_read(const char *path, int *found, struct loom_manifest *out, struct loom_error *err);
void loom__manifest_clean(struct loom_manifest *m);
/* Returns 0 when, by the modes, only this user and root can have written this real path. LOOM_EINVAL: every user may
 * write or replace it, or, in a program with privileges, another user or a group may. */
int loom__trusted(const char *real, struct loom_error *err);
/* Returns the end of a long path, so that a message has room for the cause. */
const char *loom__shown(const char *path);

/* Copies the identity of a descriptor into the form of a manifest. */
void loom__identity_of(const struct loom_plugin *p, struct loom_manifest *out);
/* Rejects an identity that this core cannot use. Checks fields in the order in which they can be trusted. */
int loom__identity_judge(const char *path, const struct loom_manifest *m, struct loom_error *err);
/* Returns the name of the first field in which the two differ, or NULL. */
const char *loom__identity_differs(const struct loom_manifest *a, const struct loom_manifest *b);
/* Checks ops, device code and option rows. `p`: a descriptor with accepted identity and untrusted pointers. */
int loom__offer_check(const char *path, const struct loom_plugin *p, struct loom_error *err);

#endif
