/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces files in one step, so that readers see the old or the new content, and a failure leaves the old one. */
#ifndef LOOM_LIB_REPLACE_H
#define LOOM_LIB_REPLACE_H

#include <sys/types.h>

#include "lib/text.h"

/* Creates a file next to `path`, and sets `name`, which the caller frees. The umask applies to this file, as to any
 * output file; mkstemp() would ignore the umask. Returns -1 with errno after a failure. */
int loom__open_beside(struct loom__text *name, const char *path, mode_t mode);
/* Writes a temporary file, syncs it and renames it to `path`, or to the file to which a link of this name leads. Pipes,
 * devices, and a file that is mounted over another one are written directly. Returns 0 or an errno. */
int loom__replace(const char *path, const char *bytes, size_t length);

#endif
