/* SPDX-License-Identifier: Apache-2.0 */
/* The public queue: a ring of tasks that other workers may steal (MGWS thesis, 4.2 to 4.4 and 5.1). Device code; lane 0
 * only.
 *
 * One 64-bit word says what the ring offers in this epoch: the slot of the oldest task (tail), the number of tasks at
 * the start of the epoch, and the number of attempts to steal since. A thief adds one attempt and thereby owns the
 * newer half of the remaining tasks: after `a` attempts on n tasks, n >> a remain. Thieves neither lock nor retry.
 *
 * The owner ends an epoch by setting the lock bit, which freezes the tasks taken, and starts the next one with a new
 * word. Thieves may still be copying then. The thesis refills at once and so overwrites slots that are being read (its
 * section 5.1; found by model checking). Here `started` and `completed` of the two epochs give the oldest position that
 * an unfinished copy can read. The owner writes only behind it, see mgws_room(), and never waits for a thief.
 *
 * Several owners of a queue take a trylock: owners.dev.h. */
#ifndef SCHED_MGWS_PUBLIC_DEV_H
#define SCHED_MGWS_PUBLIC_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "state.dev.h"
#endif

/* Bits of the word: attempts 24 | lock 1 | epoch 1 | tasks at the start 19 | tail 19. Tests make fields narrower, so
 * that they wrap sooner. Attempts fill the upper end in any case. */
#ifndef MGWS_ATTEMPT_BITS
#define MGWS_ATTEMPT_BITS 24
#endif
#ifndef MGWS_COUNT_BITS
#define MGWS_COUNT_BITS 19
#endif
#define MGWS_COUNT_MASK    ((1ull << MGWS_COUNT_BITS) - 1)
#define MGWS_TASKS_SHIFT   MGWS_COUNT_BITS
#define MGWS_EPOCH_SHIFT   (2 * MGWS_COUNT_BITS)
#define MGWS_LOCK          (1ull << (MGWS_EPOCH_SHIFT + 1))
#define MGWS_ATTEMPT_SHIFT (64 - MGWS_ATTEMPT_BITS)
#define MGWS_ATTEMPT       (1ull << MGWS_ATTEMPT_SHIFT)
/* Each worker adds at most one attempt to an epoch without tasks left, so the field cannot wrap. */
#define MGWS_MAX_WORKERS ((1u << MGWS_ATTEMPT_BITS) - 32u)

/* The scope of operations on a queue's words. A GPU's fences cost less if only workers of one device steal. */
#if defined(SCHED_CONSTANTS) && SCHED_MAY(SCHED_IS_one_device)
#define MGWS_QUEUE_OP(op) op##_dev
#else
#define MGWS_QUEUE_OP(op) op##_sys
#endif

LOOM_FN uint64_t mgws_offered(uint64_t word)
{
	return word >> MGWS_TASKS_SHIFT & MGWS_COUNT_MASK;
}

LOOM_FN uint32_t mgws_tries(uint64_t word)
{
	uint32_t a = (uint32_t)(word >> MGWS_ATTEMPT_SHIFT);
	return a < 32 ? a : 32; /* attempts on an empty queue count, too */
}

/* Returns the number of tasks that no thief owns yet. */
LOOM_FN uint64_t mgws_left(uint64_t word)
{
	return mgws_offered(word) >> mgws_tries(word);
}

/* Returns whether a thief's attempt would succeed. */
LOOM_FN int mgws_stealable(uint64_t word)
{
	return !(word & MGWS_LOCK) && mgws_left(word);
}

/* Ends the epoch: no steal succeeds until the next epoch starts. An empty queue needs no lock bit. */
LOOM_FN void mgws_close_epoch(struct mgws_meta *meta, struct mgws_queue *q)
{
	if (!meta->open)
		return;
	uint64_t word = loom_load_relaxed_sys(&q->word);
	/* Only the owner changes the bit, and the bit is clear, so an add sets it. PCIe has an atomic add, but no
	 * atomic or. Relaxed: the word carries counts, no tasks. */
	if (mgws_left(word))
		word = MGWS_QUEUE_OP(loom_fetch_add_relaxed)(&q->word, MGWS_LOCK);
	uint64_t taken = meta->open - mgws_left(word);
	meta->started[meta->epoch] += taken;
	meta->tail += taken;
	meta->open = 0;
	meta->word = MGWS_NO_WORD;
}

/* Returns whether all copies of ended epochs with this bit are done. Acquire: pairs with the release of the thief's
 * completion, so the thief's reads of the slots precede the next writes there. */
LOOM_FN int mgws_copied(const struct mgws_meta *meta, struct mgws_queue *q, uint32_t epoch)
{
	return MGWS_QUEUE_OP(loom_load_acquire)(&q->completed[epoch]) == meta->started[epoch];
}

/* Returns the number of slots that may be written behind `head`, between two epochs. */
LOOM_FN uint32_t mgws_room(const struct mgws_meta *meta, struct mgws_queue *q)
{
	uint64_t oldest = meta->tail;
	for (uint32_t e = 0; e < 2; e++)
		if (!mgws_copied(meta, q, e) && meta->begin[e] < oldest)
			oldest = meta->begin[e];
	return meta->mask + 1 - (uint32_t)(meta->head - oldest);
}

/* Starts an epoch that offers tail..head. If copies with its epoch bit are not done, the older `begin` stays and covers
 * these, too. */
LOOM_FN void mgws_open_epoch(struct mgws_meta *meta, struct mgws_queue *q)
{
	uint32_t e = meta->epoch ^ 1;
	if (mgws_copied(meta, q, e))
		meta->begin[e] = meta->tail;
	meta->epoch = e;
	meta->open = meta->head - meta->tail;
	meta->word = (uint64_t)e << MGWS_EPOCH_SHIFT | meta->open << MGWS_TASKS_SHIFT | (meta->tail & MGWS_COUNT_MASK);
	/* Release: pairs with the acquire of a thief's attempt, after which the thief reads the tasks. */
	MGWS_QUEUE_OP(loom_store_release)(&q->word, meta->word);
}

/* Relaxed: nothing to acquire. The load reads a line that stays in this worker's cache until a thief adds to it. */
LOOM_FN int mgws_empty(const struct mgws_meta *meta, struct mgws_queue *q)
{
	uint64_t word = loom_load_relaxed_sys(&q->word);
	return word != meta->word && (!meta->open || !mgws_left(word));
}

/* Returns whether the queue is empty and no thief still copies, as idle() requires. Only with the trylock held. */
LOOM_FN int mgws_is_drained(struct mgws_meta *meta, struct mgws_queue *q)
{
	if (!mgws_empty(meta, q))
		return 0;
	mgws_close_epoch(meta, q);
	return mgws_copied(meta, q, 0) && mgws_copied(meta, q, 1);
}

#endif
