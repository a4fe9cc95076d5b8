/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs on disk. The hash of its key names a file, and the file is used only if the whole key in it is
 * equal. A hash collision costs a compilation, but never gives a wrong program. */
#ifndef GPULOOM_GPU_CACHE_H
#define GPULOOM_GPU_CACHE_H

#include <gpuloom/plugin.h>

#include "resources.h"

struct cached {
	struct resources resources;
	char *code; /* allocated by host->alloc() */
	size_t bytes;
};

/* Finds the folder: `path`, else $XDG_CACHE_HOME/gpuloom, else ~/.cache/gpuloom. "": there is no home folder. */
void cache_folder(const char *path, char *folder, size_t room);
/* Returns 1 and *out, or 0 if the cache does not have the program. */
int cache_get(const struct loom_host *host, const char *folder, const char *key, size_t key_bytes, struct cached *out);
/* Writes a temporary file and renames it, so that readers see all or nothing. Returns 0 or errno. */
int cache_put(const char *folder, const char *key, size_t key_bytes, const struct cached *in);

#endif
