/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs on disk. Each program has a key, whose hash names a file. The file contains the whole key, and is
 * used only if this key equals the key of the wanted program. So a hash collision costs a compilation, but never gives
 * a wrong program. */
#ifndef GPULOOM_GPU_CACHE_H
#define GPULOOM_GPU_CACHE_H

#include <gpuloom/plugin.h>

#include "resources.h"

struct cached {
	struct resources resources;
	char *code; /* allocated by host->alloc() */
	size_t bytes;
};

/* Finds the folder: `path`, else $XDG_CACHE_HOME/gpuloom, else ~/.cache/gpuloom. Sets `folder` to "" if there is no
 * home folder. */
void cache_folder(const char *path, char *folder, size_t room);
/* Returns 1 with *out, or 0 if the cache does not have the program. */
int cache_get(const struct loom_host *host, const char *folder, const char *key, size_t key_bytes, struct cached *out);
/* Writes a temporary file and then renames it, so that readers find the whole program or none. Returns 0 or errno. */
int cache_put(const char *folder, const char *key, size_t key_bytes, const struct cached *in);

#endif
