/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker looks at between two tasks, and what it then gives away. Device code. */
#ifndef SCHED_MGWS_NEWS_DEV_H
#define SCHED_MGWS_NEWS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "levels.dev.h"
#endif

enum { MGWS_STOP = 1, MGWS_SHARE = 2, MGWS_ASKED = 4 };
/* A GPU's worker with work is asked for nothing: see mail.dev.h. */
#ifdef GPULOOM_DEV_CPU_H
#define MGWS_IS_ASKED(news) ((news)&MGWS_ASKED)
#else
#define MGWS_IS_ASKED(news) 0
#endif

/* Lane 0: the public queue has nothing, as far as its word tells. A single owner's books are no news to it. */
LOOM_FN int sched_mgws_bare(const struct loom_ctx *c, uint64_t word)
{
	return SCHED_CFG(c, owners) == 1 ? !sched_mgws_offers(word) : !sched_mgws_left(word);
}

/* Lane 0: that word after this worker has changed it. A single owner's books tell without a look. */
LOOM_FN uint64_t sched_mgws_word_now(struct loom_ctx *c)
{
	return SCHED_CFG(c, owners) == 1 ? sched_mgws_hint(c)->word : loom_load_relaxed_sys(&sched_mgws_used(c)->word);
}

#ifdef GPULOOM_DEV_CPU_H
/* Lane 0: some of the initial set is still to be claimed. */
LOOM_FN int sched_mgws_unclaimed(struct loom_ctx *c, struct sched_mgws_block *b)
{
	if (b->claimed == MGWS_ALL)
		return 0;
	b->claimed = SCHED_CFG(c, apart) ? (sched_mgws_initial_left(c) ? 0 : MGWS_ALL) :
					   sched_mgws_claimed(c, loom_load_relaxed_sys(&sched_mgws_global(c)->next));
	return b->claimed != MGWS_ALL;
}

/* Lane 0: what the loop must know before the next task. Loads that hit the cache. */
LOOM_FN uint32_t sched_mgws_news(struct loom_ctx *c, struct sched_mgws_block *b,
				 const struct sched_mgws_own *own, struct sched_mgws_queue *q, int can_share)
{
	if (loom_stopped(c))
		return MGWS_STOP;
	uint32_t news = can_share && !sched_mgws_unclaimed(c, b) && sched_mgws_empty(own, q) ? MGWS_SHARE : 0;
	return SCHED_CFG(c, apart) && sched_mgws_asked(c, sched_lane(c)->count >= 2) ? news | MGWS_ASKED : news;
}
#else
/* The same on a GPU, where an answer takes longer than a short task: it judges by the look before, and then looks
 * again without waiting. What the old look said is not needed any more once the new one is under way, so that the
 * answer can arrive in the register of the old one: a copy of it would wait. */
LOOM_FN uint32_t sched_mgws_news(struct loom_ctx *c, struct sched_mgws_block *b,
				 const struct sched_mgws_own *own, struct sched_mgws_queue *q, int can_share)
{
	(void)own;
	if (c->stop_seen)
		return MGWS_STOP;
	loom_look_at_stop(c);
	int unclaimed = SCHED_CFG(c, apart) ? sched_mgws_undrawn(b->claimed) != 0 :
					      b->claimed < c->ctl->initial_tasks;
	if (can_share && !unclaimed && sched_mgws_bare(c, b->word))
		return MGWS_SHARE;
	b->word = loom_load_relaxed_sys(&q->word);
	if (unclaimed)
		b->claimed = SCHED_CFG(c, apart) ? loom_load_relaxed_dev(&sched_mgws_global(c)->range) :
						   loom_load_relaxed_sys(&sched_mgws_global(c)->next);
	return 0;
}
#endif

/* The public queue is empty: offers half of what is held there. */
SCHED_SLOW uint64_t sched_mgws_share(struct loom_ctx *c)
{
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	uint64_t begin = c->lane == 0 ? loom_trace_now(c) : 0, n = 0;
	struct sched_mgws_level *older = &sched_mgws_keep(c)->backlog;
	if (older->count) {
		n = sched_mgws_give(c, sched_mgws_backlog(c), older->head, SCHED_CFG(c, backlog) - 1,
				    (older->count + 1) / 2);
		older->head += (uint32_t)n;
		older->count -= (uint32_t)n;
	} else if (sched_lane(c)->count >= 2) {
		n = sched_mgws_release(c);
	} else if (b->end - b->next >= 2) {
		uint64_t half = (b->end - b->next) / 2;
		uint64_t most = ((uint64_t)sched_mgws_books(c)->mask + 1) / 2;
		/* Half the ring, so that spawned tasks still find room; all of a ring of one. */
		most = most ? most : 1;
		n = sched_mgws_give(c, c->initial, b->next, ~0ull, half < most ? half : most);
		b->next += n;
	} else {
		sched_mgws_share_level(c, MGWS_HIGH);
	}
	if (c->lane == 0) {
		b->word = sched_mgws_word_now(c);
		loom_trace_add(c, LOOM_TRACE_RELEASE, begin, c->worker, n);
	}
	return n;
}

#endif
