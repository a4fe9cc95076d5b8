/* SPDX-License-Identifier: Apache-2.0 */
/* A heap by time: what is due first and, of equal times, what came first. The keys stand in the heap itself: to look at each of
 * thousands of owners would miss the cache at each level. */
#ifndef GPULOOM_SHARED_HEAP_H
#define GPULOOM_SHARED_HEAP_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

struct heap_entry {
	uint64_t due, turn;
	void *what;
	uint32_t *seat; /* its owner's note of where it is; NULL: it keeps none */
};
struct heap {
	struct heap_entry *at; /* [live] */
	uint32_t live, room;
};
#define HEAP_NO_SEAT UINT32_MAX /* of who is in no heap */

/* For as many, or more: 0 or ENOMEM. */
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

/* Without a branch: nobody can foretell it. */
static inline int heap_before(const struct heap_entry *a, const struct heap_entry *b)
{
	return ((unsigned __int128)a->due << 64 | a->turn) < ((unsigned __int128)b->due << 64 | b->turn);
}

static inline void heap_put(struct heap *h, uint32_t at, struct heap_entry x)
{
	h->at[at] = x;
	if (x.seat)
		*x.seat = at;
}

/* The first of the two below a seat, or a seat that there is not. */
static inline uint32_t heap_below(const struct heap *h, uint32_t at)
{
	uint32_t first = 2 * at + 1;
	return first + (first + 1 < h->live && heap_before(&h->at[first + 1], &h->at[first]));
}

/* x goes where it belongs, from a free seat upwards ... */
static inline void heap_rise(struct heap *h, uint32_t at, struct heap_entry x)
{
	for (; at && heap_before(&x, &h->at[(at - 1) / 2]); at = (at - 1) / 2)
		heap_put(h, at, h->at[(at - 1) / 2]);
	heap_put(h, at, x);
}

/* ... or downwards. */
static inline void heap_sink(struct heap *h, uint32_t at, struct heap_entry x)
{
	for (uint32_t below; (below = heap_below(h, at)) < h->live && heap_before(&h->at[below], &x); at = below)
		heap_put(h, at, h->at[below]);
	heap_put(h, at, x);
}

/* The one in that seat is due at another time. */
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

/* There is room. */
static inline void heap_add(struct heap *h, struct heap_entry x)
{
	heap_rise(h, h->live++, x);
}

/* The first one leaves. */
static inline void *heap_take(struct heap *h)
{
	void *first = h->at[0].what;
	struct heap_entry last = h->at[--h->live];
	uint32_t at = 0;
	if (h->at[0].seat)
		*h->at[0].seat = HEAP_NO_SEAT;
	if (!h->live)
		return first;
	/* The gap goes down to the end, where the last one mostly belongs. */
	for (uint32_t below; (below = heap_below(h, at)) < h->live; at = below)
		heap_put(h, at, h->at[below]);
	heap_rise(h, at, last);
	return first;
}

#endif
