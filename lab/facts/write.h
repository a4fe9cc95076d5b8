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

/* Replaces the file as loom__replace() does, or writes to standard output. Symbolic links are followed, also to a file
 * that does not exist yet. */
int loom__write_file(const char *path, const char *bytes, size_t length, struct loom_error *err);
/* Checks that the file could be written, and leaves it unchanged. Commands call it before a run that may take hours. */
int loom__write_check(const char *path, struct loom_error *err);
/* Appends a text that is the same for all names of a file: its device and inode or, if the file does not exist yet,
 * those of its folder and its name. Returns 0 if `path` is not a regular file, or its folder cannot be found. */
int loom__file_key(const char *path, struct loom__text *key);

#endif
