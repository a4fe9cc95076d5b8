/* SPDX-License-Identifier: Apache-2.0 */
/* What can be learnt from a plug-in's file without running it. */
#ifndef LOOM_ELF_H
#define LOOM_ELF_H

#include "plugin/registry.h"

/* Refuses a file that dlopen() should not see: absent, not regular, not ELF, cut short, made for
 * another machine. Otherwise 0; *found says whether there is a manifest, *out is it, cleaned. */
int loom__elf_read(const char *path, int *found, struct loom_manifest *out, struct loom_error *err);

#endif
