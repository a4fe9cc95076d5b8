/* SPDX-License-Identifier: Apache-2.0 */
/* A heap of entries with times. The first entry is the one with the earliest time; of equal times, the one with the
 * lowest `turn`. Entries contain their keys. If the heap read the keys from thousands of owners, each level would miss
 * the cache. */
#ifndef LOOM_LIB_HEAP_H
#define LOOM_LIB_HEAP_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

struct heap_entry {
	uint64_t due, turn; /* the time, and a number that orders entries of equal times */
	void *what;         /* the owner of the entry */
	uint32_t *slot;     /* where the heap stores the entry's index in `at`, for the owner; NULL: not stored */
};
struct heap {
	struct heap_entry *at; /* array of `room` entries, of which the first `live` are used */
	uint32_t live, room;
};
#define HEAP_NO_SLOT UINT32_MAX /* value of *slot while the owner is in no heap */

/* Makes room for at least `all` entries. Returns 0 or ENOMEM. */
static inline int heap_make_room(struct heap *h, uint32_t all)
{
	if (all <= h->room)
		return 0;
	all += all / 2 + 8;
	struct heap_entry *more = (struct heap_entry *)realloc(h->at, all * sizeof(*more));
	if (!more)
		return ENOMEM;
	h->at = more;
	h->room = all;
	return 0;
}

/* The comparison has no branch, because its result is unpredictable. */
static inline int heap_before(const struct heap_entry *a, const struct heap_entry *b)
{
	return ((unsigned __int128)a->due << 64 | a->turn) < ((unsigned __int128)b->due << 64 | b->turn);
}

/* Stores x in slot `at`, and tells its owner the slot. */
static inline void heap_put(struct heap *h, uint32_t at, struct heap_entry x)
{
	h->at[at] = x;
	if (x.slot)
		*x.slot = at;
}

/* Returns the earlier child of a slot. If the slot has no child, returns a slot past the end. */
static inline uint32_t heap_below(const struct heap *h, uint32_t at)
{
	uint32_t first = 2 * at + 1;
	return first + (first + 1 < h->live && heap_before(&h->at[first + 1], &h->at[first]));
}

/* Stores x in the free slot `at` or in a slot above it, and moves later entries down. */
static inline void heap_rise(struct heap *h, uint32_t at, struct heap_entry x)
{
	for (; at && heap_before(&x, &h->at[(at - 1) / 2]); at = (at - 1) / 2)
		heap_put(h, at, h->at[(at - 1) / 2]);
	heap_put(h, at, x);
}

/* Stores x in the free slot `at` or in a slot below it, and moves earlier entries up. */
static inline void heap_sink(struct heap *h, uint32_t at, struct heap_entry x)
{
	for (uint32_t below; (below = heap_below(h, at)) < h->live && heap_before(&h->at[below], &x); at = below)
		heap_put(h, at, h->at[below]);
	heap_put(h, at, x);
}

/* Changes the time of the entry in slot `at`, and moves the entry to its place. */
static inline void heap_move(struct heap *h, uint32_t at, uint64_t due)
{
	struct heap_entry x = h->at[at];
	int earlier = due < x.due;
	x.due = due;
	if (earlier)
		heap_rise(h, at, x);
	else
		heap_sink(h, at, x);
}

/* Adds an entry. heap_make_room() must have made room for it. */
static inline void heap_add(struct heap *h, struct heap_entry x)
{
	heap_rise(h, h->live++, x);
}

/* Removes the first entry and returns its owner. */
static inline void *heap_take(struct heap *h)
{
	void *first = h->at[0].what;
	struct heap_entry last = h->at[--h->live];
	uint32_t at = 0;
	if (h->at[0].slot)
		*h->at[0].slot = HEAP_NO_SLOT;
	if (!h->live)
		return first;
	/* Move the gap down to a leaf, because the last entry usually belongs near a leaf. */
	for (uint32_t below; (below = heap_below(h, at)) < h->live; at = below)
		heap_put(h, at, h->at[below]);
	heap_rise(h, at, last);
	return first;
}

#endif
