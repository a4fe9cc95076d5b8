/* SPDX-License-Identifier: Apache-2.0 */
/* The public queue: a ring of tasks that other workers may steal (MGWS thesis, 4.2 to 4.4 and 5.1). Device code; lane 0
 * only.
 *
 * One 64-bit word describes the tasks that the ring offers in this epoch. Its fields are the position of the oldest task
 * (tail), the number of tasks at the start of the epoch, and the number of steal attempts since then. A thief adds one
 * attempt, and thereby owns the older half of the remaining tasks. After `a` attempts on n tasks, n >> a remain. Thieves
 * neither lock nor retry.
 *
 * The owner ends an epoch by setting the lock bit, so that thieves take no more tasks. The owner starts the next epoch with a
 * new word, while thieves may still be copying. The algorithm of the thesis (section 5.1) refills the ring at once, and so
 * overwrites slots that thieves are reading, as model checking has shown. In this implementation epochs alternate between two
 * epoch bits. For each bit the owner keeps the oldest position that a copy can read (`begin`, state.dev.h), and compares
 * `started` with `completed` to see whether all copies have ended. The owner overwrites only slots before the oldest position
 * that an unfinished copy can read, see mgws_room(), and never waits for a thief.
 *
 * If a queue has several owners, they take a trylock: owners.dev.h. */
#ifndef SCHED_MGWS_PUBLIC_DEV_H
#define SCHED_MGWS_PUBLIC_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "state.dev.h"
#endif

/* The fields of the word and their bits, from the top: attempts 24 | lock 1 | epoch 1 | tasks at the start 19 | tail 19.
 * Tests make fields narrower, so that they wrap sooner. The field of attempts is always at the upper end. */
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
/* The most workers with which the field of attempts cannot wrap: each worker adds at most one attempt to an epoch without
 * tasks. */
#define MGWS_MAX_WORKERS ((1u << MGWS_ATTEMPT_BITS) - 32u)

/* MGWS_QUEUE_OP selects the scope of operations on a queue's words. If only workers of one device steal, the scope is the
 * device, in which a GPU's fences take less time. */
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
	return a < 32 ? a : 32; /* attempts on an empty queue also count, but a shift must be less than 64 */
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

/* Ends the epoch, so that no steal succeeds until the next epoch starts. An empty queue needs no lock bit, because no
 * steal from it succeeds. */
LOOM_FN void mgws_close_epoch(struct mgws_meta *meta, struct mgws_queue *q)
{
	if (!meta->open)
		return;
	uint64_t word = loom_load_relaxed_sys(&q->word);
	/* An add sets the lock bit, because the bit is clear and only the owner changes it. PCIe has an atomic add, but no
	 * atomic or. Relaxed: from the word the owner only computes how many tasks were taken, and reads no data of thieves. */
	if (mgws_left(word))
		word = MGWS_QUEUE_OP(loom_fetch_add_relaxed)(&q->word, MGWS_LOCK);
	uint64_t taken = meta->open - mgws_left(word);
	meta->started[meta->epoch] += taken;
	meta->tail += taken;
	meta->open = 0;
	meta->word = MGWS_NO_WORD;
}

/* Returns whether thieves have completed all copies of ended epochs with this bit. Acquire: pairs with the release add in
 * mgws_steal_from(), so that the thief's reads of the slots precede the next writes to these slots. */
LOOM_FN int mgws_copied(const struct mgws_meta *meta, struct mgws_queue *q, uint32_t epoch)
{
#ifndef GPULOOM_DEV_CPU_H /* a CPU has the word in its cache */
	if (!meta->started[epoch])
		return 1;
#endif
	return MGWS_QUEUE_OP(loom_load_acquire)(&q->completed[epoch]) == meta->started[epoch];
}

/* Called between two epochs. Returns the number of slots from `head` on that the owner may write. */
LOOM_FN uint32_t mgws_room(const struct mgws_meta *meta, struct mgws_queue *q)
{
	uint64_t oldest = meta->tail;
	for (uint32_t e = 0; e < 2; e++)
		if (!mgws_copied(meta, q, e) && meta->begin[e] < oldest)
			oldest = meta->begin[e];
	return meta->mask + 1 - (uint32_t)(meta->head - oldest);
}

/* Starts an epoch that offers the tasks from tail to head. If copies of an earlier epoch with the same bit are not done,
 * `begin` keeps its older position, which is valid for the copies of both epochs. */
LOOM_FN void mgws_open_epoch(struct mgws_meta *meta, struct mgws_queue *q)
{
	uint32_t e = meta->epoch ^ 1;
	if (mgws_copied(meta, q, e))
		meta->begin[e] = meta->tail;
	meta->epoch = e;
	meta->open = meta->head - meta->tail;
	meta->word = (uint64_t)e << MGWS_EPOCH_SHIFT | meta->open << MGWS_TASKS_SHIFT | (meta->tail & MGWS_COUNT_MASK);
	/* Release: pairs with the acquire in mgws_attempt(), after which the thief reads the tasks. */
	MGWS_QUEUE_OP(loom_store_release)(&q->word, meta->word);
}

/* Returns whether the queue has no task left. Relaxed, because the owner reads no data of thieves after this load. The line
 * stays in this worker's cache until a thief adds to the word. */
LOOM_FN int mgws_empty(const struct mgws_meta *meta, struct mgws_queue *q)
{
#ifndef GPULOOM_DEV_CPU_H
	if (!meta->open)
		return 1;
#endif
	uint64_t word = loom_load_relaxed_sys(&q->word);
	return word != meta->word && (!meta->open || !mgws_left(word));
}

/* Called with the trylock. Returns whether the queue is empty and no thief still copies, as idle() requires. */
LOOM_FN int mgws_is_drained(struct mgws_meta *meta, struct mgws_queue *q)
{
	if (!mgws_empty(meta, q))
		return 0;
	mgws_close_epoch(meta, q);
	return mgws_copied(meta, q, 0) && mgws_copied(meta, q, 1);
}

#endif
