/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker looks at between two tasks, and what it then shares. Device code. */
#ifndef SCHED_MGWS_LOOK_DEV_H
#define SCHED_MGWS_LOOK_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "lanes.dev.h"
#endif

enum { MGWS_STOP = 1, MGWS_SHARE = 2, MGWS_ASKED = 4 };
/* On a GPU the postmaster deals with wishes, not a worker with work: see mail.dev.h. */
#ifdef GPULOOM_DEV_CPU_H
#define MGWS_IS_ASKED(news) ((news)&MGWS_ASKED)
#else
#define MGWS_IS_ASKED(news) 0
#endif

/* Lane 0: the public queue is empty, as far as its word tells. A locked word: a single owner knows that its queue is empty
 * (MGWS_NO_WORD); of several owners one acts just now. */
LOOM_FN int mgws_word_is_empty(const struct loom_ctx *c, uint64_t word)
{
	return SCHED_CFG(c, owners) == 1 ? !mgws_stealable(word) : !mgws_left(word);
}

/* Lane 0: that word, after this worker has changed it. A single owner has it in its books. */
LOOM_FN uint64_t mgws_word_now(struct loom_ctx *c)
{
	return SCHED_CFG(c, owners) == 1 ? mgws_known(c)->word :
					    loom_load_relaxed_sys(&mgws_queue(c)->word);
}

#ifdef GPULOOM_DEV_CPU_H
/* Lane 0: some of the initial set is still to be claimed. */
LOOM_FN int mgws_unclaimed(struct loom_ctx *c, struct mgws_block *b)
{
	if (b->claimed == MGWS_ALL)
		return 0;
	b->claimed = mgws_ranged(c) ? (mgws_initial_left(c) ? 0 : MGWS_ALL) :
				      mgws_claimed_upto(c, loom_load_relaxed_sys(&mgws_job(c)->next));
	return b->claimed != MGWS_ALL;
}

/* Lane 0: what the loop must know before the next task. These loads hit the cache. */
LOOM_FN uint32_t mgws_look(struct loom_ctx *c, int can_share)
{
	if (loom_stopped(c))
		return MGWS_STOP;
	if (SCHED_CFG(c, rma)) { /* how many short tasks run before the next look follows from how long they take */
		struct mgws_mine *mine = mgws_mine(c);
		uint64_t took = mgws_help(c);
		mine->sprint = took > 2 * MGWS_HELP_NS ? mine->sprint / 2 : mine->sprint + (mine->sprint < MGWS_MAIL_TASKS);
	}
	uint32_t news = can_share && !mgws_unclaimed(c, &mgws_keep(c)->block) &&
					mgws_empty(mgws_known(c), mgws_queue(c)) ?
				MGWS_SHARE :
				0;
	return SCHED_CFG(c, noncoherent) && mgws_can_grant(c, sched_lane(c)->count >= 2) ? news | MGWS_ASKED : news;
}
#else
/* The same on a GPU, where an answer takes longer than a short task. It judges by the look before, and then looks again
 * without waiting. When the new look is under way, nothing reads the old answer any more. So the new answer can arrive in
 * the same register: a copy of it would wait. */
LOOM_FN uint32_t mgws_look(struct loom_ctx *c, int can_share)
{
	struct mgws_block *b = &mgws_keep(c)->block;
	if (c->stop_seen)
		return MGWS_STOP;
	loom_poll_stop(c);
	int unclaimed = mgws_ranged(c) ? mgws_range_left(b->claimed) != 0 : b->claimed < c->ctl->initial_tasks;
	if (can_share && !unclaimed && mgws_word_is_empty(c, b->word))
		return MGWS_SHARE;
	b->word = loom_load_relaxed_sys(&mgws_queue(c)->word);
	if (unclaimed)
		b->claimed = mgws_ranged(c) ? loom_load_relaxed_dev(&mgws_global(c)->range) :
					      loom_load_relaxed_sys(&mgws_job(c)->next);
	return 0;
}
#endif

/* The same, to all lanes. Also a barrier. */
LOOM_FN uint32_t mgws_look_together(struct loom_ctx *c, int can_share)
{
	return loom_word_from_lane0(c, c->lane == 0 ? mgws_look(c, can_share) : 0);
}

/* The public queue is empty: shares half of what the worker holds. Of the backlog the oldest come first. */
SCHED_SLOW uint64_t mgws_share_some(struct loom_ctx *c)
{
	struct mgws_block *b = &mgws_keep(c)->block;
	struct mgws_level *older = &mgws_keep(c)->backlog;
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0, n = 0;
	if (older->count) {
		n = mgws_share_ring(c, mgws_backlog(c), SCHED_CFG(c, backlog) - 1, &older->head, &older->count,
				    (older->count + 1) / 2);
	} else if (sched_lane(c)->count >= 2) {
		n = mgws_share_local(c, sched_lane(c)->count / 2);
	} else if (b->end - b->next >= 2) {
		uint64_t half = (b->end - b->next) / 2;
		uint64_t most = ((uint64_t)mgws_books(c)->mask + 1) / 2;
		/* Half the ring, so that spawned tasks still find room; all of a ring of one. */
		most = most ? most : 1;
		n = mgws_share(c, c->initial, b->next, ~0ull, half < most ? half : most);
		b->next += n;
	} else {
		n = mgws_share_level(c, MGWS_HIGH);
	}
	if (c->lane == 0) {
		b->word = mgws_word_now(c);
		loom_trace_add(c, LOOM_TRACE_RELEASE, begin, c->worker, n);
	}
	return n;
}

#endif
