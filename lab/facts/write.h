/* SPDX-License-Identifier: Apache-2.0 */
/* Files that a user asked for. */
#ifndef LOOM_WRITE_H
#define LOOM_WRITE_H

#include <stdio.h>

#include "base/base.h"

/* 1: `path` means standard output: "-", /dev/stdout, or a link to it. Descriptor 1 is not that file while a command
 * runs, so such a name must not be opened. */
int loom__names_stdout(const char *path);
/* Where loom__write_file() then writes. */
void loom__write_stdout(FILE *out);

/* Writes through a temporary file beside it, fsync and rename: readers see old or new, never half.
 * A symbolic link stays; a pipe or a device is written to directly. */
int loom__write_file(const char *path, const char *bytes, size_t length, struct loom_error *err);
/* Whether that could begin: before hours of work whose result it is to hold. The file stays as it is. */
int loom__write_check(const char *path, struct loom_error *err);

#endif
