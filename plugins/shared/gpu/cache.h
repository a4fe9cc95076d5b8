/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled programs on disk. A file is found by the hash of its key and believed only when the whole
 * key in it is the same: a clash of hashes costs a compilation, never a wrong program. */
#ifndef GPULOOM_GPU_CACHE_H
#define GPULOOM_GPU_CACHE_H

#include <gpuloom/plugin.h>

#include "resources.h"

struct cached {
	struct resources resources;
	char *code; /* of host->alloc */
	size_t bytes;
};

/* The folder: `path`, or $XDG_CACHE_HOME/gpuloom, or ~/.cache/gpuloom. "" when there is no home. */
void cache_folder(const char *path, char *folder, size_t room);
/* 1 and *out, or 0. */
int cache_get(const struct loom_host *host, const char *folder, const char *key, size_t key_bytes,
	      struct cached *out);
/* Written beside and renamed, so that others see all or nothing. 0 or errno. */
int cache_put(const char *folder, const char *key, size_t key_bytes, const struct cached *in);

#endif
