/* SPDX-License-Identifier: Apache-2.0 */
#include "report/view/arena.h"
#include "facts/must.h"

#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"

struct loom__arena_block {
	struct loom__arena_block *before;
	char bytes[] __attribute__((aligned(16)));
};

void *loom__arena_get(struct loom__arena *p, size_t n, size_t size)
{
	size_t bytes;
	int fits = !__builtin_mul_overflow(n, size, &bytes) && bytes < SIZE_MAX / 2;
	struct loom__arena_block *b = loom__must(fits ? calloc(1, sizeof(*b) + bytes + 1) : NULL);
	b->before = p->last;
	p->last = b;
	return b->bytes;
}

char *loom__arena_copy(struct loom__arena *p, const char *text)
{
	return strcpy(loom__arena_get(p, strlen(text) + 1, 1), text);
}

void loom__arena_free(struct loom__arena *p)
{
	while (p->last) {
		struct loom__arena_block *before = p->last->before;
		free(p->last);
		p->last = before;
	}
}

static size_t *slot_of(const struct loom__names *names, const char *name)
{
	uint64_t hash = loom__fnv1a(LOOM__FNV1A, name, strlen(name));
	size_t at = (hash ^ hash >> 32) & (names->slots - 1);
	while (names->slot[at] && strcmp(names->name[names->slot[at] - 1], name))
		at = (at + 1) & (names->slots - 1);
	return &names->slot[at];
}

/* Doubles the tables. The old tables stay in the arena. All old tables together are smaller than the new tables. */
static void grow(struct loom__arena *p, struct loom__names *names)
{
	size_t room = names->room ? 2 * names->room : 16;
	const char **name = loom__arena_get(p, room, sizeof(*name));
	size_t *slot = loom__arena_get(p, 2 * room, sizeof(*slot));
	if (names->count)
		memcpy(name, names->name, names->count * sizeof(*name));
	names->name = name;
	names->room = room;
	names->slot = slot;
	names->slots = 2 * room;
	for (size_t i = 0; i < names->count; i++)
		*slot_of(names, name[i]) = i + 1;
}

size_t loom__names_find(const struct loom__names *names, const char *name)
{
	size_t *slot = names->count ? slot_of(names, name) : NULL;
	return slot && *slot ? *slot - 1 : LOOM__NO_NAME;
}

size_t loom__names_add(struct loom__arena *p, struct loom__names *names, const char *name)
{
	size_t found = loom__names_find(names, name);
	if (found != LOOM__NO_NAME)
		return found;
	if (names->count == names->room)
		grow(p, names);
	char *copy = loom__arena_copy(p, name);
	size_t *slot = slot_of(names, copy);
	names->name[names->count] = copy;
	*slot = ++names->count;
	return names->count - 1;
}
