/* SPDX-License-Identifier: Apache-2.0 */
/* The trigger list (GPU-TN, 3.1 and 3.3): counters found by tag, each with its posts in the order of thresholds. A post
 * that becomes ready enters a queue of runs. Independent of the network; every caller holds the NIC's lock. */
#ifndef TRIGGER_LIST_H
#define TRIGGER_LIST_H

#include <gpuloom/trigger.h>

#define LIST_NONE UINT32_MAX

enum post_state { POST_FREE = 0, POST_WAITS, POST_SPENT };

struct list_post {
	struct loom_trigger_post what;
	uint64_t threshold; /* threshold of the next run */
	uint32_t state;
	uint32_t generation; /* upper half of the post's id */
	uint32_t next;       /* next post of its counter, or of the free list */
	uint32_t counter;
	uint32_t in_flight; /* number of runs that are queued or in flight */
	uint32_t reserved;
};

struct list_counter {
	uint64_t tag; /* 0: free */
	uint64_t value;
	uint64_t argument; /* argument of the fire that raised the counter to `argued`, for runs due by then */
	uint64_t argued;
	uint32_t first; /* the post with the smallest threshold */
	uint32_t last;  /* the post with the largest threshold, since most posts are appended */
	uint32_t next_deferred;
	uint32_t deferred; /* 1: reached thresholds wait for room in the queue */
};

/* A due run: the post, and the argument of the fire. */
struct list_run {
	uint32_t post;
	uint32_t reserved;
	uint64_t argument;
};

struct trigger_list {
	struct list_counter *counter; /* [mask + 1], a hash table with open addressing */
	uint32_t mask, counters;
	struct list_post *post;
	uint32_t posts, room; /* room: number of free posts */
	uint32_t free;
	uint32_t deferred; /* first counter with reached thresholds that are not queued */
	struct list_run *ready;  /* a ring whose size is a power of two */
	uint32_t ready_mask;
	uint64_t ready_head, ready_tail; /* numbers of runs pushed and popped */
};

/* Opens a list; both sizes are powers of two. */
int list_open(const struct loom_host *host, struct trigger_list *l, uint32_t counters, uint32_t posts);
void list_close(const struct loom_host *host, struct trigger_list *l);
void list_clear(struct trigger_list *l); /* removes counters and posts; generations continue */

/* Returns the counter of a tag, and creates it if needed. LIST_NONE: the table is full (7/8). */
uint32_t list_find(struct trigger_list *l, uint64_t tag);
/* Adds a post to its counter. Returns LOOM_EFULL if no post or counter is free, LOOM_EBUSY if the fire that carries the
 * post's argument has happened. */
int list_add(struct trigger_list *l, const struct loom_trigger_post *what, uint64_t *id);
/* Counts, and queues the posts that become ready. Returns LOOM_EFULL if no counter is free. */
int list_count(struct trigger_list *l, uint64_t tag, uint64_t n, uint64_t argument);
void list_count_at(struct trigger_list *l, uint32_t counter, uint64_t n, uint64_t argument);
/* Takes the next due run. Returns 1 and *due, or 0. */
int list_next(struct trigger_list *l, struct list_run *due);
/* Called when a run has ended: frees a post that does not run again. */
void list_done(struct trigger_list *l, uint32_t post);

static inline uint64_t list_queued(const struct trigger_list *l)
{
	return l->ready_head - l->ready_tail;
}

#endif
