/* SPDX-License-Identifier: Apache-2.0 */
/* Writes output files. */
#ifndef LOOM_WRITE_H
#define LOOM_WRITE_H

#include <stdio.h>

#include "base/base.h"

/* Returns 1 if `path` means standard output: "-", /dev/stdout, or a link to it. Such a path must not be opened, because
 * descriptor 1 is another file while a command runs. */
int loom__names_stdout(const char *path);
/* Sets the stream that loom__write_file() uses for standard output. */
void loom__write_stdout(FILE *out);

/* Writes a temporary file, syncs it and renames it to `path`. So readers see the old or the new content, never a part.
 * Symbolic links are followed. Pipes and devices are written directly. */
int loom__write_file(const char *path, const char *bytes, size_t length, struct loom_error *err);
/* Checks that the file could be written, and leaves it unchanged. Commands call it before a run that may take hours. */
int loom__write_check(const char *path, struct loom_error *err);

#endif
