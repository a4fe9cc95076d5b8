/* SPDX-License-Identifier: Apache-2.0 */
/* The trigger list (GPU-TN, 3.1 and 3.3). It finds the counter of a tag, and each counter has its posts in the order of
 * thresholds. A post whose threshold is reached enters a queue of runs. The list does not depend on the network. Every
 * caller holds the NIC's lock. */
#ifndef TRIGGER_LIST_H
#define TRIGGER_LIST_H

#include <gpuloom/trigger.h>

#define LIST_NONE UINT32_MAX

enum post_state { POST_FREE = 0, POST_WAITS, POST_SPENT };

struct list_post {
	struct loom_trigger_post what;
	uint64_t threshold; /* threshold of the next run */
	uint32_t state;
	uint32_t generation; /* upper half of the post's id; incremented when the post is freed */
	uint32_t next;       /* index of the next post of its counter, or of the next free post; LIST_NONE: none */
	uint32_t counter;   /* index of its counter */
	uint32_t in_flight; /* number of runs that are queued or in flight */
	uint32_t reserved;
};

struct list_counter {
	uint64_t tag; /* 0: free */
	uint64_t value;
	uint64_t argument; /* argument of the last fire with an argument, for runs with thresholds up to `argued` */
	uint64_t argued;   /* value of the counter after the fire with `argument` */
	uint32_t first; /* index of the post with the smallest threshold, or LIST_NONE */
	uint32_t last;  /* index of the post with the largest threshold, because most posts are appended */
	uint32_t next_deferred; /* index of the next deferred counter, or LIST_NONE */
	uint32_t deferred;	/* 1: posts whose thresholds are reached wait for room in the queue */
};

/* A due run: the index of its post, and the argument of the fire. */
struct list_run {
	uint32_t post;
	uint32_t reserved;
	uint64_t argument;
};

struct trigger_list {
	struct list_counter *counter; /* [mask + 1], a hash table with open addressing */
	uint32_t mask, counters; /* number of slots of the table, minus 1; number of slots in use */
	struct list_post *post; /* [posts] */
	uint32_t posts, room; /* number of posts in `post`; number of these that are free */
	uint32_t free; /* index of the first free post, or LIST_NONE */
	uint32_t deferred; /* index of the first counter whose runs wait for room in the queue, or LIST_NONE */
	struct list_run *ready;  /* [ready_mask + 1]: the queue, a ring whose size is a power of two */
	uint32_t ready_mask;
	uint64_t ready_head, ready_tail; /* total numbers of runs pushed and popped */
};

/* Opens a list. counters is a power of two. */
int list_open(const struct loom_host *host, struct trigger_list *l, uint32_t counters, uint32_t posts);
void list_close(const struct loom_host *host, struct trigger_list *l);
void list_clear(struct trigger_list *l); /* removes counters and posts; posts keep their generations */

/* Returns the index of a tag's counter, which is created if needed. Returns LIST_NONE if it cannot be created, because
 * seven eighths of the table are in use. */
uint32_t list_find(struct trigger_list *l, uint64_t tag);
/* Adds a post to its counter. Returns 0; LOOM_EFULL if no post or counter is free; or LOOM_EBUSY if the fire that
 * should supply the post's argument has already happened. */
int list_add(struct trigger_list *l, const struct loom_trigger_post *what, uint64_t *id);
/* Adds n to a tag, and queues the posts whose thresholds the count reaches. Returns 0, or LOOM_EFULL if no counter is
 * free. */
int list_count(struct trigger_list *l, uint64_t tag, uint64_t n, uint64_t argument);
void list_count_at(struct trigger_list *l, uint32_t counter, uint64_t n, uint64_t argument);
/* Takes the next due run from the queue. Returns 1 and sets *due, or returns 0 if the queue is empty. */
int list_next(struct trigger_list *l, struct list_run *due);
/* Called when a run has ended. Frees the post if it does not run again. */
void list_done(struct trigger_list *l, uint32_t post);

static inline uint64_t list_queued(const struct trigger_list *l)
{
	return l->ready_head - l->ready_tail;
}

#endif
