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
	uint32_t *seat; /* its owner's note of where it is */
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

static inline int heap_before(const struct heap_entry *a, const struct heap_entry *b)
{
	return a->due < b->due || (a->due == b->due && a->turn < b->turn);
}

static inline void heap_put(struct heap *h, uint32_t at, struct heap_entry x)
{
	h->at[at] = x;
	*x.seat = at;
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
	for (uint32_t child; (child = 2 * at + 1) < h->live; at = child) {
		child += child + 1 < h->live && heap_before(&h->at[child + 1], &h->at[child]);
		if (!heap_before(&h->at[child], &x))
			break;
		heap_put(h, at, h->at[child]);
	}
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
	*h->at[0].seat = HEAP_NO_SEAT;
	if (h->live)
		heap_sink(h, 0, last);
	return first;
}

#endif
