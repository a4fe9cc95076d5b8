/* SPDX-License-Identifier: Apache-2.0 */
/* The public queue: a ring of tasks that others may steal (MGWS thesis, 4.2 to 4.4 and 5.1), and
 * the owner's books. Device code; lane 0 only.
 *
 * One 64-bit word says what the ring offers in this epoch: the slot of the oldest task (tail), how
 * many tasks there were when the epoch began, and how often thieves have tried since. A thief adds
 * one attempt and thereby owns the upper half of what is left: after a attempts on n tasks, n >> a
 * are left. No thief ever locks or retries.
 *
 * The owner ends an epoch by setting the lock bit, which freezes the tasks taken, and begins the
 * next with a new word. Thieves may still be copying then. The thesis refills at once and so
 * overwrites slots that are being read (its section 5.1; found by model checking). Here `started`
 * and `completed` of the two epochs tell the oldest position that an unfinished copy can read, and
 * the owner writes behind it only: see sched_mgws_room(). The owner waits for no thief.
 *
 * A queue may have several owners (cfg.owners). Then the books lie in the queue, and an owner holds its
 * `held` word from before it reads them until its tasks are copied: owners take turns at being the
 * owner, and what was said about one holds. None waits long: an owner that does not get the word does
 * without the queue. */
#ifndef SCHED_MGWS_PUBLIC_DEV_H
#define SCHED_MGWS_PUBLIC_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "lists.dev.h"
#include "queue.dev.h"
#endif

/* attempts 24 | lock 1 | epoch 1 | initial tasks 19 | tail 19. A test may make fields narrower, so that
 * they wrap sooner; attempts fill the word's upper end in any case. */
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

/* No queue's word: locked, with all attempts made. */
#define MGWS_NO_WORD (~0ull)

/* What the owner knows about its queue without looking. Positions count tasks since the start of the
 * sample; a task's slot is its position & mask. */
struct sched_mgws_own {
	uint64_t word;       /* as published in this epoch, or MGWS_NO_WORD */
	uint64_t open;       /* tasks published in this epoch; 0: none can be left */
	uint64_t tail, head; /* oldest task, and one past the newest, as of the last publication */
	uint64_t begin[2];   /* no copy of this epoch bit reads in front of this position */
	uint64_t started[2]; /* tasks taken in ended epochs, per epoch bit */
	uint64_t given;      /* tasks put into the queue, from wherever */
	uint64_t acquired;   /* tasks that owners took back */
	uint32_t epoch;
	uint32_t mask;
	uint64_t pad[5];
};

/* One per worker, in memory that all see. The ring follows. */
struct sched_mgws_queue {
	uint64_t word;   /* owner stores, thieves add */
	uint32_t leader; /* the worker whose queue this worker uses: constant */
	uint32_t pad0;
	uint64_t pad1[6];
	uint64_t completed[2]; /* tasks copied, per epoch bit; thieves add */
	uint64_t moved;        /* several owners: tasks stolen or acquired, see sched_mgws_robbed() */
	uint32_t held;         /* by one of several owners */
	uint32_t pad2;
	uint64_t pad3[4];
	struct sched_mgws_own books; /* of several owners; else left by the owner, for collect() */
};

/* A worker's private view, after its local queue. */
struct sched_mgws_mine {
	struct sched_mgws_own own;   /* the books of a single owner; see sched_mgws_hint() */
	struct sched_mgws_own *books; /* that one, or the queue's */
	struct sched_mgws_queue *q;
	uint32_t turn; /* victim = neighbour: how far away the next victim is */
	uint32_t next; /* the victim to try first, plus 1; 0: none */
	uint32_t pool; /* where the search for a free slot of the pool begins */
	/* Where devices are apart: see mail.dev.h. */
	uint32_t looked;               /* at which device's wishes, last */
	uint64_t pad[2];
	uint64_t owed;                 /* a bit per device that has yet to take what this worker granted */
	uint64_t posted;               /* how often it granted */
};

LOOM_FN struct sched_mgws_mine *sched_mgws_mine(const struct loom_ctx *c)
{
	return (struct sched_mgws_mine *)sched_private(c);
}

/* The queue that this worker uses, and its books. With one owner a GPU's program knows where they are. */
LOOM_FN struct sched_mgws_queue *sched_mgws_used(const struct loom_ctx *c)
{
#ifdef SCHED_CONSTANTS
	if (SCHED_CFG(c, owners) == 1)
		return (struct sched_mgws_queue *)c->own[LOOM_SCHED];
#endif
	return sched_mgws_mine(c)->q;
}

LOOM_FN struct sched_mgws_own *sched_mgws_books(const struct loom_ctx *c)
{
#ifdef SCHED_CONSTANTS
	if (SCHED_CFG(c, owners) == 1)
		return &sched_mgws_mine(c)->own;
#endif
	return sched_mgws_mine(c)->books;
}

/* What sched_mgws_empty() may be asked with at any time: with several owners a copy that never tells
 * anything, so that only the word counts. */
LOOM_FN const struct sched_mgws_own *sched_mgws_hint(const struct loom_ctx *c)
{
	return &sched_mgws_mine(c)->own;
}

LOOM_FN uint64_t sched_mgws_initial(uint64_t word)
{
	return word >> MGWS_TASKS_SHIFT & MGWS_COUNT_MASK;
}

LOOM_FN uint32_t sched_mgws_attempts(uint64_t word)
{
	uint32_t a = (uint32_t)(word >> MGWS_ATTEMPT_SHIFT);
	return a < 32 ? a : 32; /* attempts on an empty queue count too */
}

/* Tasks that nobody has claimed yet. */
LOOM_FN uint64_t sched_mgws_left(uint64_t word)
{
	return sched_mgws_initial(word) >> sched_mgws_attempts(word);
}

/* Something that a thief may claim. */
LOOM_FN int sched_mgws_offers(uint64_t word)
{
	return !(word & MGWS_LOCK) && sched_mgws_left(word);
}

#define MGWS_HOLD_TRIES 32u
/* 1 when this worker may act as the owner: always, where it is the only one. */
LOOM_FN int sched_mgws_hold(struct loom_ctx *c, struct sched_mgws_queue *q)
{
	uint32_t free = 0;
	if (SCHED_CFG(c, owners) == 1)
		return 1;
	LOOM_NO_UNROLL
	for (uint32_t i = 0; i < MGWS_HOLD_TRIES; i++) {
		/* Acquire: pairs with the release in drop; the books and slots are as left there. */
		if (!loom_load_relaxed_sys(&q->held) && loom_cas_acq_rel_sys(&q->held, &free, 1u))
			return 1;
		free = 0;
		loom_pause(c);
	}
	return 0;
}

LOOM_FN void sched_mgws_drop(struct loom_ctx *c, const struct sched_mgws_own *own,
			     struct sched_mgws_queue *q)
{
	if (SCHED_CFG(c, owners) == 1)
		return;
	loom_store_relaxed_sys(&q->moved, own->started[0] + own->started[1] + own->acquired);
	loom_store_release_sys(&q->held, 0u);
}

/* Ends the epoch: from here to publish() nobody can claim. An empty queue needs no lock. */
LOOM_FN void sched_mgws_close(struct sched_mgws_own *own, struct sched_mgws_queue *q)
{
	if (!own->open)
		return;
	uint64_t word = loom_load_relaxed_sys(&q->word);
	/* The bit is the owner's alone and clear, so adding sets it; links have an atomic add where
	 * they lack an or (PCIe). Relaxed: it carries counts, no tasks. */
	if (sched_mgws_left(word))
		word = loom_fetch_add_relaxed_sys(&q->word, MGWS_LOCK);
	uint64_t taken = own->open - sched_mgws_left(word);
	own->started[own->epoch] += taken;
	own->tail += taken;
	own->open = 0;
	own->word = MGWS_NO_WORD;
}

/* Copies of ended epochs with this bit are all done. Acquire: pairs with the thief's completion
 * (release), so that its reads of the slots come before what is written there next. */
LOOM_FN int sched_mgws_copied(const struct sched_mgws_own *own, struct sched_mgws_queue *q,
			      uint32_t epoch)
{
	return loom_load_acquire_sys(&q->completed[epoch]) == own->started[epoch];
}

/* Slots that may be written behind `head`. Between close() and publish(). */
LOOM_FN uint32_t sched_mgws_room(const struct sched_mgws_own *own, struct sched_mgws_queue *q)
{
	uint64_t oldest = own->tail;
#ifdef SCHED_MGWS_THESIS_ORDER /* for tests alone: refills as the thesis does, and loses tasks */
	(void)q;
#else
	for (uint32_t e = 0; e < 2; e++)
		if (!sched_mgws_copied(own, q, e) && own->begin[e] < oldest)
			oldest = own->begin[e];
#endif
	return own->mask + 1 - (uint32_t)(own->head - oldest);
}

/* Begins an epoch that offers tail..head. An epoch bit whose copies are not done keeps its older
 * `begin`, which covers them too. */
LOOM_FN void sched_mgws_publish(struct sched_mgws_own *own, struct sched_mgws_queue *q)
{
	uint32_t e = own->epoch ^ 1;
	if (sched_mgws_copied(own, q, e))
		own->begin[e] = own->tail;
	own->epoch = e;
	own->open = own->head - own->tail;
	own->word = (uint64_t)e << MGWS_EPOCH_SHIFT | own->open << MGWS_TASKS_SHIFT |
		    (own->tail & MGWS_COUNT_MASK);
	/* Release: pairs with the acquire of a thief's claim, which then reads the tasks. */
	loom_store_release_sys(&q->word, own->word);
}

/* Nothing to acquire. One load of a line that stays in this worker's cache until a thief comes. */
LOOM_FN int sched_mgws_empty(const struct sched_mgws_own *own, struct sched_mgws_queue *q)
{
	uint64_t word = loom_load_relaxed_sys(&q->word);
	return word != own->word && (!own->open || !sched_mgws_left(word));
}

/* Empty, and no thief is still copying: what idle() asks for. The queue is held. */
LOOM_FN int sched_mgws_quiet(struct sched_mgws_own *own, struct sched_mgws_queue *q)
{
	if (!sched_mgws_empty(own, q))
		return 0;
	sched_mgws_close(own, q);
	return sched_mgws_copied(own, q, 0) && sched_mgws_copied(own, q, 1);
}

#endif
