/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that share tasks: the workers of other ranks as victims, and RMA if their memory has no addresses in this rank.
 * Device code. This file is a module. Other files call only
 *
 *   mgws_is_remote, mgws_is_rma             whether a victim is remote; the numbers of remote victims follow those of workers
 *   mgws_remote_queue                       returns the queue of a remote victim, or the queue in which its tasks arrive
 *   mgws_rma_steal, mgws_rma_complete       the attempt and the completion of a steal
 *   mgws_scan_remote, mgws_remote_victim    choose remote victims
 *   mgws_claim_remote                       claims initial tasks of another rank
 *   mgws_rma_progress                       serves other ranks if the NIC's thread needs this worker's core
 *
 * A worker reaches remote memory by addresses (trigger_peer) or by the trigger's rma(). By addresses, a remote steal works in
 * the same way as a local steal. By RMA, a steal has three operations. The first adds an attempt to the victim's word. The
 * second reads the tasks into the same slots of a ring of this worker. The third posts the completion. Model:
 * tests/models/ranks.pml. */
#ifndef SCHED_MGWS_RANKS_DEV_H
#define SCHED_MGWS_RANKS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "claim.dev.h"
#endif

#define MGWS_NO_VICTIM 0xffffffffu

/* A worker of another rank. */
struct mgws_remote {
	uint64_t queue, global; /* the worker's queue and the stack's block of its rank: addresses, or loom_refs for RMA */
	uint32_t rank;
	uint32_t first;   /* the victim number of that rank's first worker */
	uint32_t used_up; /* used only in the entry of the rank's first worker; 1: the range of that rank is used up */
	uint32_t pad;
};

/* Returns the entry of a victim in the table of remote workers. The nearest ranks come first in the table. Equally near
 * ranks follow each other in cyclic order after this rank. */
LOOM_FN struct mgws_remote *mgws_remote(const struct loom_ctx *c, uint32_t victim)
{
	return (struct mgws_remote *)mgws_list_slots(c, SCHED_CFG(c, mixed) ? MGWS_LISTS : 1) + (victim - c->workers);
}

LOOM_FN int mgws_is_remote(const struct loom_ctx *c, uint32_t victim)
{
	return SCHED_CFG(c, remote_workers) && victim >= c->workers;
}

LOOM_FN int mgws_is_rma(const struct loom_ctx *c, uint32_t victim)
{
	return SCHED_CFG(c, rma) && mgws_is_remote(c, victim);
}

/* Returns the offset, in this worker's block, of the queue into which tasks are read by RMA. This queue is behind the
 * backlog, and as large as a victim's queue. */
LOOM_FN uint64_t mgws_rma_ring_at(const struct loom_ctx *c)
{
	return MGWS_QUEUE_BYTES(SCHED_CFG(c, public_queue), MGWS_BODY) +
	       SCHED_CFG(c, backlog) * sizeof(struct loom_task);
}

LOOM_FN struct mgws_queue *mgws_rma_ring(const struct loom_ctx *c)
{
	return (struct mgws_queue *)((char *)c->own[LOOM_SCHED] + mgws_rma_ring_at(c));
}

/* Returns the queue of a remote victim. With RMA, returns the queue of this worker in which tasks of the victim arrive. */
LOOM_FN struct mgws_queue *mgws_remote_queue(const struct loom_ctx *c, uint32_t victim)
{
	return mgws_is_rma(c, victim) ? mgws_rma_ring(c)
				      : (struct mgws_queue *)(uintptr_t)mgws_remote(c, victim)->queue;
}

/* ---- victims: lane 0 ------------------------------------------------------------------------- */

/* Returns the number of remote workers from which this worker steals. */
LOOM_FN uint32_t mgws_remote_victims(const struct loom_ctx *c)
{
	uint32_t policy = SCHED_CFG(c, victim);
	return policy == MGWS_LOCAL || policy == MGWS_NONE ? 0 : mgws_remote_count(c);
}

/* Returns whether a worker of a rank that is reached by addresses has tasks to steal. Stores this victim in
 * mgws_worker.next. */
LOOM_FN int mgws_scan_remote(struct loom_ctx *c)
{
	uint32_t n = SCHED_CFG(c, rma) ? 0 : mgws_remote_victims(c);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t v = c->workers + (c->worker + i) % n;
		if (mgws_stealable(loom_load_relaxed_sys(&mgws_remote_queue(c, v)->word))) {
			mgws_worker(c)->next = v + 1;
			return 1;
		}
	}
	return 0;
}

/* Returns one of the n remote victims. If victim = neighbour, the victims take turns. If victim = biased, returns with
 * probability `bias` a random victim among the nearest; else the victims at the next distance are tried in the same way.
 * Otherwise returns a random victim. */
LOOM_FN uint32_t mgws_pick_remote(struct loom_ctx *c, uint32_t n)
{
	uint32_t from = 0;
	if (SCHED_CFG(c, victim) == MGWS_NEIGHBOUR)
		return c->workers + mgws_worker(c)->neighbour++ % n;
	for (uint32_t d = 0; d < MGWS_OTHER_HOST && SCHED_CFG(c, victim) == MGWS_BIASED; d++) {
		uint32_t until = mgws_global(c)->within[d];
		if (until == from)
			continue;
		if (until == n || loom_random(c) >> 32 < SCHED_CFG(c, bias_of_2_32)) {
			n = until;
			break;
		}
		from = until;
	}
	return c->workers + from + loom_random_below(c, n - from);
}

/* Returns the remote victim of the last steal if that was successful, else the result of mgws_pick_remote(). */
LOOM_FN uint32_t mgws_remote_victim(struct loom_ctx *c)
{
	uint32_t n = mgws_remote_victims(c), last = mgws_worker(c)->remote_last;
	return !n ? MGWS_NO_VICTIM : last ? last - 1 : mgws_pick_remote(c, n);
}

/* ---- RMA: lane 0 ------------------------------------------------------------------------------ */

#ifdef LOOM_RANKS_RMA
/* Adds to a word of another rank. Returns the value before the addition, or 0 if the run has failed or was stopped. */
LOOM_FN uint64_t mgws_rma_add(struct loom_ctx *c, const struct mgws_remote *remote, uint64_t at, uint64_t value)
{
	struct loom_rma add = {.op = LOOM_NET_ADD, .rank = remote->rank, .remote = at, .value = value};
	uint64_t was = 0;
	return LOOM_CALL(trigger, rma, c, &add, &was) ? 0 : was;
}

/* Makes an attempt and reads the stolen tasks; each of the two takes a round trip. Returns as mgws_attempt(). Usually no check
 * precedes an attempt, so attempts on an empty queue add up in the field `attempts` of its word. When a quarter of the values
 * of this field is used, the thief checks the queue before its next attempt. */
static __attribute__((noinline)) uint64_t mgws_rma_steal(struct loom_ctx *c, uint32_t victim)
{
	const struct mgws_remote *remote = mgws_remote(c, victim);
	uint64_t at = remote->queue + offsetof(struct mgws_queue, word), bit = 1ull << victim % 64, word;
	uint64_t *bits = &mgws_bits(c)[victim / 64];
	if (*bits & bit && !mgws_stealable(mgws_rma_add(c, remote, at, 0)))
		return 0;
	word = mgws_rma_add(c, remote, at, MGWS_ATTEMPT);
	*bits = word >> 62 ? *bits | bit : *bits & ~bit;
	if (!mgws_stealable(word))
		return 0;
	uint64_t left = mgws_left(word), slots = mgws_meta(c)->mask + 1, n = left - left / 2;
	uint64_t slot = ((word & MGWS_COUNT_MASK) + mgws_offered(word) - left) & (slots - 1);
	if (slot + n > slots) { /* the tasks continue at the start of the ring, so one operation reads the whole ring */
		slot = 0;
		n = slots;
	}
	uint64_t behind = sizeof(struct mgws_queue) + slot * sizeof(struct loom_task);
	struct loom_rma get = {.op = LOOM_NET_GET,
			       .rank = remote->rank,
			       .remote = remote->queue + behind,
			       .local = c->registry[LOOM_SCHED][c->worker] + mgws_rma_ring_at(c) + behind,
			       .bytes = n * sizeof(struct loom_task)};
	return LOOM_CALL(trigger, rma, c, &get, (uint64_t *)NULL) ? 0 : word;
}

/* Adds the number of copied tasks to mgws_queue.completed of the victim. Posts the add and does not wait for its completion,
 * because this worker does not need the result. */
LOOM_FN void mgws_rma_complete(struct loom_ctx *c, uint32_t victim, uint32_t epoch, uint64_t n)
{
	const struct mgws_remote *remote = mgws_remote(c, victim);
	uint64_t at = remote->queue + offsetof(struct mgws_queue, completed) + epoch * sizeof(uint64_t);
	struct loom_rma add = {.op = LOOM_NET_ADD, .rank = remote->rank, .remote = at, .value = n};
	(void)LOOM_CALL(trigger, rma, c, &add, (uint64_t *)NULL);
}

LOOM_FN uint64_t mgws_remote_range(const struct loom_ctx *c, uint32_t victim)
{
	return mgws_remote(c, victim)->global + offsetof(struct mgws_global, range);
}

/* Claims from the range of a victim's rank, if a check finds tasks in it. Returns whether it has claimed tasks. If the range is
 * used up, the worker remembers that in `used_up`, because the rank gets no other range. */
LOOM_FN uint32_t mgws_claim_remote(struct loom_ctx *c, uint32_t victim, int *idle)
{
	struct mgws_block *b = &mgws_lane(c)->block;
	uint64_t range = 0, left = 0, n = 0;
	if (c->lane == 0 && victim != MGWS_NO_VICTIM) {
		uint32_t *used_up = &mgws_remote(c, mgws_remote(c, victim)->first)->used_up;
		if (!loom_load_relaxed_dev(used_up)) {
			left =
			    mgws_range_left(mgws_rma_add(c, mgws_remote(c, victim), mgws_remote_range(c, victim), 0));
			if (!left)
				loom_store_relaxed_dev(used_up, 1u);
		}
	}
	left = loom_from_lane0(c, left);
	if (!left)
		return 0;
	/* busy() comes before the claim, because a worker that finds the range used up after the claim may report idle.
	 * */
	if (*idle)
		LOOM_CALL(term, busy, c);
	*idle = 0;
	if (c->lane == 0) {
		/* Claims a larger part than of this rank's range, because the round trip takes longer. */
		n = mgws_fraction(left, 2 * (c->workers + mgws_remote_count(c)));
		n = n < 1 ? 1 : n < MGWS_CLAIM_MAX ? n : MGWS_CLAIM_MAX;
		range = mgws_rma_add(c, mgws_remote(c, victim), mgws_remote_range(c, victim), n);
		left = mgws_range_left(range);
		n = n < left ? n : left;
		sched_local(c)->counters.claimed += n;
	}
	b->next = loom_from_lane0(c, (uint64_t)(uint32_t)range);
	b->end = b->next + loom_from_lane0(c, n);
	return b->next < b->end;
}
#else
#define mgws_rma_steal(c, victim)              0
#define mgws_rma_complete(c, victim, epoch, n) ((void)0)
#endif

#ifdef GPULOOM_DEV_CPU_H
/* Called between two tasks and inside long tasks. Serves the RMA of other ranks at most once per MGWS_PROGRESS_NS, because
 * otherwise the NIC's thread would need this worker's core to serve it. Returns the time since the last service, in ns. */
#define MGWS_PROGRESS_NS    20000u
#define MGWS_PROGRESS_CALLS 8u /* number of calls of sched_mgws_wanted() between two calls of mgws_rma_progress() */
LOOM_FN uint64_t mgws_rma_progress(struct loom_ctx *c)
{
	struct mgws_worker *mine = mgws_worker(c);
	uint64_t took = loom_clock_ns(c) - mine->progress_ns;
	if (took >= MGWS_PROGRESS_NS) {
		(void)LOOM_CALL(trigger, rma, c, (const struct loom_rma *)NULL, (uint64_t *)NULL);
		mine->progress_ns = loom_clock_ns(c);
	}
	return took;
}
#endif

#endif
