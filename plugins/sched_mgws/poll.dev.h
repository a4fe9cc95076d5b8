/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's poll between two tasks, and the publication of tasks after it. Device code. */
#ifndef SCHED_MGWS_POLL_DEV_H
#define SCHED_MGWS_POLL_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "lanes.dev.h"
#endif

enum { MGWS_STOP = 1, MGWS_PUBLISH = 2, MGWS_REQUESTED = 4, MGWS_TRIED = 8 };
/* On a GPU the proxy worker grants requests in place of workers with tasks: mailbox.dev.h. */
#ifdef GPULOOM_DEV_CPU_H
#define MGWS_IS_REQUESTED(news) ((news)&MGWS_REQUESTED)
#else
#define MGWS_IS_REQUESTED(news) 0
#endif

/* Called by lane 0. Returns whether `word` is that of an empty public queue. If the queue has a single owner, a locked word
 * means that the queue is empty. If it has several owners, a locked word only means that one of them has closed the epoch. */
LOOM_FN int mgws_word_is_empty(const struct loom_ctx *c, uint64_t word)
{
	return SCHED_CFG(c, owners) == 1 ? !mgws_stealable(word) : !mgws_left(word);
}

#ifdef GPULOOM_DEV_CPU_H
/* Called by lane 0. Returns whether a part of the initial set is unclaimed. */
LOOM_FN int mgws_unclaimed(struct loom_ctx *c, struct mgws_block *b)
{
	if (b->claimed == MGWS_ALL || SCHED_CFG(c, claim) == MGWS_QUEUES)
		return 0;
	b->claimed = mgws_ranged(c) ? (mgws_initial_left(c) ? 0 : MGWS_ALL)
				    : mgws_claimed_upto(c, loom_load_relaxed_sys(&mgws_job(c)->next));
	return b->claimed != MGWS_ALL;
}

/* Called by lane 0. Returns the events that the loop must handle before the next task: MGWS_STOP, or a sum of MGWS_PUBLISH
 * and MGWS_REQUESTED. can_publish: 1: the worker holds tasks to publish. The loads usually hit the cache. */
LOOM_FN uint32_t mgws_poll(struct loom_ctx *c, int can_publish)
{
	if (loom_stopped(c))
		return MGWS_STOP;
	if (SCHED_CFG(c, rma)) { /* mgws_batch(): the longer tasks take, the fewer run before the next poll */
		struct mgws_worker *mine = mgws_worker(c);
		uint64_t took = mgws_rma_progress(c);
		mine->batch =
		    took > 2 * MGWS_PROGRESS_NS ? mine->batch / 2 : mine->batch + (mine->batch < MGWS_MAILBOX_TASKS);
	}
	uint32_t news = 0;
	if (can_publish && !mgws_unclaimed(c, &mgws_lane(c)->block) && mgws_empty(mgws_own_meta(c), mgws_queue(c)))
		news = MGWS_PUBLISH;
	if (SCHED_CFG(c, noncoherent) && mgws_can_grant(c, sched_lane(c)->count >= 2))
		news |= MGWS_REQUESTED;
	return news;
}
#else
/* mgws_poll() on a GPU, where a load takes longer than a short task. So a poll does not wait for its own loads. It uses the
 * values that the previous poll loaded, and then issues new loads. After these loads the function reads no old value, so each
 * new value can arrive in the register of the old one. To copy a value that has not arrived, the lane would have to wait for
 * it. */
LOOM_FN uint32_t mgws_poll(struct loom_ctx *c, int can_publish)
{
	struct mgws_block *b = &mgws_lane(c)->block;
	if (c->stop_seen)
		return MGWS_STOP;
	loom_poll_stop(c);
	int unclaimed = SCHED_CFG(c, claim) != MGWS_QUEUES &&
			(mgws_ranged(c) ? mgws_range_left(b->claimed) != 0 : b->claimed < c->ctl->initial_tasks);
#ifdef LOOM_GPU_QUICK /* if there is only one worker, no worker would steal public tasks */
	can_publish = can_publish && (c->workers > 1 || !SCHED_CFG(c, one_device));
#endif
	/* 1: thieves have come since this epoch began; then the worker publishes before the queue is empty */
	int tried = SCHED_GRANULARITY(c) == SCHED_LANE && mgws_tries(b->word);
	if (can_publish && !unclaimed && (mgws_word_is_empty(c, b->word) || (tried && mgws_left(b->word) < c->lanes)))
		return MGWS_PUBLISH | (tried ? MGWS_TRIED : 0);
	b->word = loom_load_relaxed_sys(&mgws_queue(c)->word);
	if (unclaimed)
		b->claimed = mgws_ranged(c) ? mgws_range_load(c)
					    : loom_load_relaxed_sys(&mgws_job(c)->next);
	return tried ? MGWS_TRIED : 0;
}
#endif

/* mgws_poll() for all lanes, if `due` is 1; else returns 0. due: from loom_poll_due(). The call is also a barrier. */
LOOM_FN uint32_t mgws_poll_collective(struct loom_ctx *c, int due, int can_publish)
{
	if (LOOM_POLLS_AGREE && !due) {
		loom_barrier_lanes(c);
		return 0;
	}
	return loom_word_from_lane0(c, c->lane == 0 && due ? mgws_poll(c, can_publish) : 0);
}

/* Called if the public queue is empty. Publishes half of the first of these that has enough tasks: the backlog, the local queue
 * (at least two tasks), the block. Returns the number of tasks. */
SCHED_SLOW uint64_t mgws_publish_half(struct loom_ctx *c)
{
	struct mgws_block *b = &mgws_lane(c)->block;
	struct mgws_backlog *backlog = &mgws_lane(c)->backlog;
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0, n = 0;
	if (backlog->count) {
		n = mgws_publish_ring(c, mgws_backlog(c), SCHED_CFG(c, backlog) - 1, &backlog->head, &backlog->count,
				      (backlog->count + 1) / 2);
	} else if (sched_lane(c)->count >= 2) {
		n = mgws_publish_local(c, sched_lane(c)->count / 2);
	} else if (b->end - b->next >= 2) {
		uint64_t half = (b->end - b->next) / 2;
		uint64_t most = ((uint64_t)mgws_meta(c)->mask + 1) / 2;
		/* Fills at most half of the public queue's ring, so that spawned tasks find room. If the ring has one slot,
		 * fills it. */
		most = most ? most : 1;
		n = mgws_publish(c, c->initial, b->next, ~0ull, half < most ? half : most);
		b->next += n;
	}
	if (c->lane == 0) {
		b->word = mgws_word_now(c);
		loom_trace_add(c, LOOM_TRACE_PUBLISH, begin, c->worker, n);
	}
	return n;
}

#endif
