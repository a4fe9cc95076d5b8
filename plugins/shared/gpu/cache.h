/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs on disk. A file is named by the hash of its key and used only if the whole key in it is equal: a
 * hash collision costs a compilation, never gives a wrong program. */
#ifndef GPULOOM_GPU_CACHE_H
#define GPULOOM_GPU_CACHE_H

#include <gpuloom/plugin.h>

#include "resources.h"

struct cached {
	struct resources resources;
	char *code; /* from host->alloc() */
	size_t bytes;
};

/* The folder: `path`, else $XDG_CACHE_HOME/gpuloom, else ~/.cache/gpuloom. "": no home folder. */
void cache_folder(const char *path, char *folder, size_t room);
/* Returns 1 and *out, or 0. */
int cache_get(const struct loom_host *host, const char *folder, const char *key, size_t key_bytes, struct cached *out);
/* Written to a temporary file and renamed, so that readers see all or nothing. 0 or errno. */
int cache_put(const char *folder, const char *key, size_t key_bytes, const struct cached *in);

#endif
