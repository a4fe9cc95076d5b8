/* SPDX-License-Identifier: Apache-2.0 */
/* The trigger list (GPU-TN, 3.1 and 3.3): counters found by tag, each with the posts that wait on it in
 * the order of their thresholds. Knows nothing of networks: what becomes ready is handed to a queue.
 *
 * Single-threaded: the NIC's lock is held around every call. */
#ifndef TRIGGER_LIST_H
#define TRIGGER_LIST_H

#include <gpuloom/trigger.h>

#define LIST_NONE UINT32_MAX

enum post_state { POST_FREE = 0, POST_WAITS, POST_SPENT };

/* A post: an entry of the trigger list. */
struct post {
	struct loom_trigger_post what;
	uint64_t threshold; /* of the next run */
	uint32_t state;
	uint32_t generation; /* upper half of its id */
	uint32_t next;       /* on its counter, or on the free list */
	uint32_t counter;
	uint32_t flying; /* runs queued or under way */
	uint32_t reserved;
};

struct counter {
	uint64_t tag; /* 0: free */
	uint64_t value;
	uint64_t argument, argued; /* of the fire that raised it to `argued`; for what is due by then */
	uint32_t first; /* post with the smallest threshold */
	uint32_t last;  /* the largest: most posts are appended */
	uint32_t next_unsettled;
	uint32_t unsettled; /* met thresholds that the queue had no room for */
};

/* A run that is due: the post and what the fire supplied. */
struct due {
	uint32_t post;
	uint32_t reserved;
	uint64_t argument;
};

struct list {
	struct counter *counter; /* hash table, open addressing, [mask + 1] */
	uint32_t mask, counters;
	struct post *post;
	uint32_t posts, room; /* room: free ones */
	uint32_t free;
	uint32_t unsettled; /* first counter with met thresholds left */
	struct due *due;    /* ring of power-of-two size */
	uint32_t due_mask;
	uint64_t due_head, due_tail; /* pushed, popped */
};

/* Powers of two. */
int list_open(const struct loom_host *host, struct list *l, uint32_t counters, uint32_t posts);
void list_close(const struct loom_host *host, struct list *l);
void list_clear(struct list *l); /* no counters, no posts; ids of before stay unknown */

/* The counter of a tag, made when there is none; LIST_NONE when the table is full (7/8). */
uint32_t list_counter(struct list *l, uint64_t tag);
/* Adds a post to its counter. LOOM_EFULL: no place for the post, or none for its counter. LOOM_EBUSY: it wants the argument of a fire
 * that has been, which is gone. */
int list_post(struct list *l, const struct loom_trigger_post *what, uint64_t *id);
/* 0, LOOM_EBUSY, LOOM_ENOENT as in trigger.h. */
int list_cancel(struct list *l, uint64_t id);
/* Counts; what gets ready goes into the queue. LOOM_EFULL: no counter for the tag. */
int list_count(struct list *l, uint64_t tag, uint64_t n, uint64_t argument);
void list_count_at(struct list *l, uint32_t counter, uint64_t n, uint64_t argument);
/* The next run that is due: 1 and *due, else 0. */
int list_next(struct list *l, struct due *due);
/* A run has ended: gives the place of a post that will not run again back. */
void list_landed(struct list *l, uint32_t post);

static inline uint64_t list_waiting(const struct list *l)
{
	return l->due_head - l->due_tail;
}

#endif
