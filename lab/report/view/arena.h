/* SPDX-License-Identifier: Apache-2.0 */
/* An arena of memory: all of it is freed at once. A view keeps its parts in an arena. */
#ifndef LOOM_ARENA_H
#define LOOM_ARENA_H

#include "base/base.h"

struct loom__arena {
	struct loom__arena_block *last;
};
/* Returns zeroed memory for n objects, never NULL. */
void *loom__arena_get(struct loom__arena *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *loom__arena_copy(struct loom__arena *p, const char *text) __attribute__((returns_nonnull));
void loom__arena_free(struct loom__arena *p);

/* A map from names to 0, 1, 2, ... in order of first appearance. The arena owns the names. */
struct loom__names {
	const char **name;
	size_t count, room;
	size_t *slot, slots; /* slot: hash table with open addressing; slots: its size, a power of two */
};
#define LOOM__NO_NAME SIZE_MAX
/* Returns the number of `name`. If the name is new, gives it the next number. */
size_t loom__names_add(struct loom__arena *p, struct loom__names *names, const char *name);
size_t loom__names_find(const struct loom__names *names, const char *name);

#endif
