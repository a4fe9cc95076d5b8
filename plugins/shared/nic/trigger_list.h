/* SPDX-License-Identifier: Apache-2.0 */
/* The trigger list (GPU-TN, 3.1 and 3.3): counters found by tag, each with its posts in the order of thresholds. A
 * post that becomes ready enters a queue of runs. Independent of the network.
 * Single-threaded: every call holds the NIC's lock. */
#ifndef TRIGGER_LIST_H
#define TRIGGER_LIST_H

#include <gpuloom/trigger.h>

#define LIST_NONE UINT32_MAX

enum post_state { POST_FREE = 0, POST_WAITS, POST_SPENT };

/* An entry of the trigger list. */
struct list_post {
	struct loom_trigger_post what;
	uint64_t threshold; /* of the next run */
	uint32_t state;
	uint32_t generation; /* upper half of its id */
	uint32_t next;       /* on its counter, or on the free list */
	uint32_t counter;
	uint32_t in_flight; /* runs queued or in flight */
	uint32_t reserved;
};

struct list_counter {
	uint64_t tag; /* 0: free */
	uint64_t value;
	uint64_t argument; /* of the fire that raised the counter to `argued`: for runs due by then */
	uint64_t argued;
	uint32_t first; /* post with the smallest threshold */
	uint32_t last;  /* the largest threshold: most posts are appended */
	uint32_t next_deferred;
	uint32_t deferred; /* its reached thresholds wait for room in the queue */
};

/* A run that is due: the post, and the argument of the fire. */
struct list_run {
	uint32_t post;
	uint32_t reserved;
	uint64_t argument;
};

struct trigger_list {
	struct list_counter *counter; /* hash table, open addressing, [mask + 1] */
	uint32_t mask, counters;
	struct list_post *post;
	uint32_t posts, room; /* room: free posts */
	uint32_t free;
	uint32_t deferred; /* first counter with reached thresholds left */
	struct list_run *ready;  /* ring of power-of-two size */
	uint32_t ready_mask;
	uint64_t ready_head, ready_tail; /* pushed, popped */
};

/* Sizes are powers of two. */
int list_open(const struct loom_host *host, struct trigger_list *l, uint32_t counters, uint32_t posts);
void list_close(const struct loom_host *host, struct trigger_list *l);
void list_clear(struct trigger_list *l); /* removes counters and posts; generations continue */

/* The counter of a tag, created if needed; LIST_NONE when the table is full (7/8). */
uint32_t list_find(struct trigger_list *l, uint64_t tag);
/* Adds a post to its counter. LOOM_EFULL: no free post, or no free counter. LOOM_EBUSY: the post takes the argument
 * of a fire that has happened. */
int list_add(struct trigger_list *l, const struct loom_trigger_post *what, uint64_t *id);
/* Counts; posts that become ready enter the queue. LOOM_EFULL: no free counter. */
int list_count(struct trigger_list *l, uint64_t tag, uint64_t n, uint64_t argument);
void list_count_at(struct trigger_list *l, uint32_t counter, uint64_t n, uint64_t argument);
/* The next run that is due: 1 and *due, else 0. */
int list_next(struct trigger_list *l, struct list_run *due);
/* A run has ended: frees a post that does not run again. */
void list_done(struct trigger_list *l, uint32_t post);

static inline uint64_t list_queued(const struct trigger_list *l)
{
	return l->ready_head - l->ready_tail;
}

#endif
