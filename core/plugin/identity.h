/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of a plug-in, as its manifest and its descriptor contain it. Also the checks by which this core accepts
 * a plug-in. */
#ifndef LOOM_IDENTITY_H
#define LOOM_IDENTITY_H

#include "plugin/registry.h"

/* Checks a file before dlopen() opens it, without running its code. Rejects a file that is absent, not regular, not
 * ELF, truncated, or for another machine. Otherwise returns 0. If the file has a manifest, sets *found to 1 and *out to
 * a copy of the manifest with cleaned texts. */
int loom__elf_read(const char *path, int *found, struct loom_manifest *out, struct loom_error *err);
void loom__manifest_clean(struct loom_manifest *m);
/* Returns 0 if this process may load code from `real`, a real path. Returns LOOM_EINVAL if the file modes allow every
 * user to write or replace the file. In a program with privileges, also returns LOOM_EINVAL if they allow this to a
 * group or to another user except root. */
int loom__trusted(const char *real, struct loom_error *err);
/* Returns the last part of a long path, so that a message has room for the cause. */
const char *loom__shown(const char *path);

/* Converts the identity in a descriptor to a manifest. */
void loom__identity_of(const struct loom_plugin *p, struct loom_manifest *out);
/* Returns an error if this core cannot use a plug-in with this identity. Checks the magic number and the ABI first,
 * because the other fields depend on them. */
int loom__identity_judge(const char *path, const struct loom_manifest *m, struct loom_error *err);
/* Returns the name of the first field in which the manifests differ, or NULL if they are equal. */
const char *loom__identity_differs(const struct loom_manifest *a, const struct loom_manifest *b);
/* Checks ops, device code and option rows of a descriptor. The identity in the descriptor was accepted before, but the
 * pointers in it are untrusted. */
int loom__offer_check(const char *path, const struct loom_plugin *p, struct loom_error *err);

#endif
