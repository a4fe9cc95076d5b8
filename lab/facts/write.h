/* SPDX-License-Identifier: Apache-2.0 */
/* Output files. */
#ifndef LOOM_WRITE_H
#define LOOM_WRITE_H

#include <stdio.h>

#include "base/base.h"

/* Returns 1 if `path` means standard output: "-", /dev/stdout, or a link to it. Descriptor 1 is another file while a
 * command runs, so such a path must not be opened. */
int loom__names_stdout(const char *path);
/* Sets the stream that loom__write_file() uses for standard output. */
void loom__write_stdout(FILE *out);

/* Writes through a temporary file, fsync and rename, so that readers see the old or the new content. Follows symbolic
 * links; writes to pipes and devices directly. */
int loom__write_file(const char *path, const char *bytes, size_t length, struct loom_error *err);
/* Checks before hours of work that the file could be written, and leaves it unchanged. */
int loom__write_check(const char *path, struct loom_error *err);

#endif
