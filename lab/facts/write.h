/* SPDX-License-Identifier: Apache-2.0 */
/* Output files. */
#ifndef LOOM_WRITE_H
#define LOOM_WRITE_H

#include <stdio.h>

#include "base/base.h"

/* 1 if `path` means standard output: "-", /dev/stdout, or a link to it. Descriptor 1 is not that file while a command
 * runs, so such a path must not be opened. */
int loom__names_stdout(const char *path);
/* Sets the stream that loom__write_file() uses for standard output. */
void loom__write_stdout(FILE *out);

/* Writes through a temporary file, fsync and rename: readers see the old or the new content. Follows symbolic links;
 * writes to pipes and devices directly. */
int loom__write_file(const char *path, const char *bytes, size_t length, struct loom_error *err);
/* Checks that the file could be written, before hours of work. Leaves it unchanged. */
int loom__write_check(const char *path, struct loom_error *err);

#endif
