/* SPDX-License-Identifier: Apache-2.0 */
/* The public queue: a ring of tasks that others may steal (MGWS thesis, 4.2 to 4.4 and 5.1), and the books of its owner.
 * Device code; lane 0 only.
 *
 * One word of 64 bits says what the ring offers in this epoch: the slot of the oldest task (tail), how many tasks there
 * were when the epoch began, and how often thieves have tried since. A thief adds one attempt and thereby owns the upper
 * half of what is left: after a attempts on n tasks, n >> a are left. No thief ever locks or retries.
 *
 * The owner ends an epoch by setting the lock bit, which freezes the tasks taken, and begins the next epoch with a new
 * word. Thieves may still be copying then. The thesis refills at once and so overwrites slots that are being read (its
 * section 5.1; found by model checking). Here `started` and `completed` of the two epochs tell the oldest position that
 * an unfinished copy can read, and the owner writes behind it only: see mgws_room(). The owner waits for no thief.
 *
 * A queue may have several owners, who take turns: see owners.dev.h. */
#ifndef SCHED_MGWS_PUBLIC_DEV_H
#define SCHED_MGWS_PUBLIC_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "spill.dev.h"
#endif

/* attempts 24 | lock 1 | epoch 1 | tasks at its begin 19 | tail 19. A test may make fields narrower, so that they wrap
 * sooner; attempts fill the word's upper end in any case. */
#ifndef MGWS_ATTEMPT_BITS
#define MGWS_ATTEMPT_BITS 24
#endif
#ifndef MGWS_COUNT_BITS
#define MGWS_COUNT_BITS 19
#endif
#define MGWS_COUNT_MASK ((1ull << MGWS_COUNT_BITS) - 1)
#define MGWS_TASKS_SHIFT MGWS_COUNT_BITS
#define MGWS_EPOCH_SHIFT (2 * MGWS_COUNT_BITS)
#define MGWS_LOCK (1ull << (MGWS_EPOCH_SHIFT + 1))
#define MGWS_ATTEMPT_SHIFT (64 - MGWS_ATTEMPT_BITS)
#define MGWS_ATTEMPT (1ull << MGWS_ATTEMPT_SHIFT)
/* Each worker adds at most one attempt to an epoch that has nothing left, so the field cannot wrap. */
#define MGWS_MAX_WORKERS ((1u << MGWS_ATTEMPT_BITS) - 32u)

/* The scope of what owners and thieves do to a queue's words. A GPU's fences are cheaper where no other device steals. */
#if defined(SCHED_CONSTANTS) && SCHED_MAY(SCHED_IS_near)
#define MGWS_AMONG_THIEVES(op) op##_dev
#else
#define MGWS_AMONG_THIEVES(op) op##_sys
#endif

/* No queue's word: locked, with all attempts made. */
#define MGWS_NO_WORD (~0ull)

/* What the owner knows about its queue without looking. Positions count tasks since the start of the
 * sample; a task's slot is its position & mask. */
struct mgws_books {
	uint64_t word;       /* as published in this epoch, or MGWS_NO_WORD */
	uint64_t open;       /* tasks published in this epoch; 0: none can be left */
	uint64_t tail, head; /* oldest task, and one past the newest, as of the last publication */
	uint64_t begin[2];   /* no copy of this epoch bit reads in front of this position */
	uint64_t started[2]; /* tasks taken in ended epochs, per epoch bit */
	uint64_t shared;     /* tasks put into the queue, from wherever */
	uint64_t acquired;   /* tasks that owners took back */
	uint32_t epoch;
	uint32_t mask;
	uint64_t pad[5];
};

/* One per worker, in memory that all see. The ring follows. */
struct mgws_queue {
	uint64_t word;   /* owner stores, thieves add */
	uint32_t leader; /* the worker whose queue this worker uses: constant */
	uint32_t pad0;
	uint64_t pad1[6];
	uint64_t completed[2]; /* tasks copied, per epoch bit; thieves add */
	uint64_t moved;        /* several owners: tasks stolen or acquired, see mgws_robbed() */
	uint32_t turn;         /* several owners: one of them acts */
	uint32_t pad2;
	/* Left by the owner, for collect(): from other ranks, and how often from those of this host. */
	uint64_t far_steals, far_tasks, host_steals;
	uint64_t pad3;
	struct mgws_books books; /* of several owners; else left by the owner, for collect() */
};

/* A worker's private view, after its local queue. */
struct mgws_mine {
	struct mgws_books own;    /* the books of a single owner; see mgws_known() */
	struct mgws_books *books; /* that one, or the queue's */
	struct mgws_queue *q;
	uint32_t distance; /* victim = neighbour: how far away the next victim is */
	uint32_t next;     /* the victim to try first, plus 1; 0: none */
	uint32_t pool;     /* transfer = id: where the search for a free slot of the pool begins */
	/* Where devices are non-coherent: see mail.dev.h. */
	uint32_t polled; /* at which device's wishes, last. Where ranks share tasks: at how many of their victims */
	uint64_t owed;   /* a bit per device that has yet to take what this worker mailed */
	uint64_t mailed; /* how often it mailed */
	/* Where ranks share tasks: the victim in another rank that had some last time, plus 1, or 0; and how often and how
	 * many this worker has stolen there. */
	uint32_t last, far_steals;
	uint64_t far_tasks;
	uint64_t helped; /* the time of its last look at what they ask of this rank */
	uint32_t sprint; /* so many short tasks it runs between two looks at the clock */
	uint32_t wanted; /* how often long tasks have asked whether to spawn */
	uint32_t vain;	 /* searches in vain, of which it asks the detector after every fourth */
	uint32_t host_steals; /* of far_steals, those from ranks of this host */
	uint32_t pad[10];
};

LOOM_FN struct mgws_mine *mgws_mine(const struct loom_ctx *c)
{
	return (struct mgws_mine *)sched_private(c);
}

LOOM_FN uint64_t mgws_offered(uint64_t word)
{
	return word >> MGWS_TASKS_SHIFT & MGWS_COUNT_MASK;
}

LOOM_FN uint32_t mgws_tries(uint64_t word)
{
	uint32_t a = (uint32_t)(word >> MGWS_ATTEMPT_SHIFT);
	return a < 32 ? a : 32; /* attempts on an empty queue count too */
}

/* Tasks that no thief owns yet. */
LOOM_FN uint64_t mgws_left(uint64_t word)
{
	return mgws_offered(word) >> mgws_tries(word);
}

/* A thief's attempt would succeed. */
LOOM_FN int mgws_stealable(uint64_t word)
{
	return !(word & MGWS_LOCK) && mgws_left(word);
}

/* Ends the epoch: until the next one begins nobody can steal. An empty queue needs no lock. */
LOOM_FN void mgws_close_epoch(struct mgws_books *books, struct mgws_queue *q)
{
	if (!books->open)
		return;
	uint64_t word = loom_load_relaxed_sys(&q->word);
	/* The bit is the owner's alone and clear, so adding sets it; links have an atomic add where they lack an or
	 * (PCIe). Relaxed: it carries counts, no tasks. */
	if (mgws_left(word))
		word = MGWS_AMONG_THIEVES(loom_fetch_add_relaxed)(&q->word, MGWS_LOCK);
	uint64_t taken = books->open - mgws_left(word);
	books->started[books->epoch] += taken;
	books->tail += taken;
	books->open = 0;
	books->word = MGWS_NO_WORD;
}

/* Copies of ended epochs with this bit are all done. Acquire: pairs with the thief's completion (release), so that its
 * reads of the slots come before what is written there next. */
LOOM_FN int mgws_copied(const struct mgws_books *books, struct mgws_queue *q, uint32_t epoch)
{
	return MGWS_AMONG_THIEVES(loom_load_acquire)(&q->completed[epoch]) == books->started[epoch];
}

/* Slots that may be written behind `head`, between two epochs. */
LOOM_FN uint32_t mgws_room(const struct mgws_books *books, struct mgws_queue *q)
{
	uint64_t oldest = books->tail;
	for (uint32_t e = 0; e < 2; e++)
		if (!mgws_copied(books, q, e) && books->begin[e] < oldest)
			oldest = books->begin[e];
	return books->mask + 1 - (uint32_t)(books->head - oldest);
}

/* Begins an epoch that offers tail..head. An epoch bit whose copies are not done keeps its older `begin`, which covers
 * them too. */
LOOM_FN void mgws_open_epoch(struct mgws_books *books, struct mgws_queue *q)
{
	uint32_t e = books->epoch ^ 1;
	if (mgws_copied(books, q, e))
		books->begin[e] = books->tail;
	books->epoch = e;
	books->open = books->head - books->tail;
	books->word = (uint64_t)e << MGWS_EPOCH_SHIFT | books->open << MGWS_TASKS_SHIFT |
		      (books->tail & MGWS_COUNT_MASK);
	/* Release: pairs with the acquire of a thief's attempt, which then reads the tasks. */
	MGWS_AMONG_THIEVES(loom_store_release)(&q->word, books->word);
}

/* Nothing to acquire. One load of a line that stays in this worker's cache until a thief comes. */
LOOM_FN int mgws_empty(const struct mgws_books *books, struct mgws_queue *q)
{
	uint64_t word = loom_load_relaxed_sys(&q->word);
	return word != books->word && (!books->open || !mgws_left(word));
}

/* Empty, and no thief is still copying: what idle() asks for. Only whose turn it is may ask. */
LOOM_FN int mgws_quiet(struct mgws_books *books, struct mgws_queue *q)
{
	if (!mgws_empty(books, q))
		return 0;
	mgws_close_epoch(books, q);
	return mgws_copied(books, q, 0) && mgws_copied(books, q, 1);
}

#endif
