/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a plug-in's file without running its code. */
#ifndef LOOM_ELF_H
#define LOOM_ELF_H

#include "plugin/registry.h"

/* Checks the file before dlopen() sees it, and rejects one that is absent, not regular, not ELF, truncated, or for
 * another machine. Otherwise returns 0. *found says whether the file has a manifest, which *out then is, cleaned. */
int loom__elf_read(const char *path, int *found, struct loom_manifest *out, struct loom_error *err);

#endif
