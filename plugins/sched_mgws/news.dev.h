/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker looks at between two tasks, and what it then gives away. Device code. */
#ifndef SCHED_MGWS_NEWS_DEV_H
#define SCHED_MGWS_NEWS_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "levels.dev.h"
#endif

enum { MGWS_STOP = 1, MGWS_SHARE = 2, MGWS_ASKED = 4, MGWS_ASKER_SHIFT = 8 };
#define MGWS_SOMEBODY 0xffffffu

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

/* Lane 0, apart: a device that wants tasks, and this one has some; or MGWS_NOBODY. */
LOOM_FN uint32_t sched_mgws_to_answer(struct loom_ctx *c, int can_share)
{
	uint32_t device = sched_mgws_asker(c);
	if (device == MGWS_NOBODY ||
	    (!(can_share && SCHED_CFG(c, afar)) && !sched_mgws_withheld(c) &&
	     sched_mgws_undrawn(loom_load_relaxed_dev(&sched_mgws_global(c)->range)) < 2))
		return MGWS_NOBODY;
	return device;
}

/* Lane 0, apart: whether to answer mail, and whom. A GPU finds that out where it answers, now and then: its loop has
 * no registers for it. */
LOOM_FN uint32_t sched_mgws_asked(struct loom_ctx *c, int can_share, uint64_t ran)
{
#ifdef GPULOOM_DEV_CPU_H
	uint32_t device = sched_mgws_to_answer(c, can_share);
	(void)ran;
	return device == MGWS_NOBODY ? 0u : MGWS_ASKED | device << MGWS_ASKER_SHIFT;
#else
	(void)c, (void)can_share;
	/* Looks that a clock tells to come are far enough apart. */
	return !LOOM_LOOKS_ARE_TIMED && ran % MGWS_MAIL_ROUNDS ? 0u : MGWS_ASKED | MGWS_SOMEBODY << MGWS_ASKER_SHIFT;
#endif
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
				 const struct sched_mgws_own *own, struct sched_mgws_queue *q, int can_share,
				 uint64_t ran)
{
	if (loom_stopped(c))
		return MGWS_STOP;
	uint32_t news = can_share && !sched_mgws_unclaimed(c, b) && sched_mgws_empty(own, q) ? MGWS_SHARE : 0;
	return SCHED_CFG(c, apart) ? news | sched_mgws_asked(c, can_share, ran) : news;
}
#else
/* The same on a GPU, where an answer takes longer than a short task: it judges by the look before, and then looks
 * again without waiting. What the old look said is not needed any more once the new one is under way, so that the
 * answer can arrive in the register of the old one: a copy of it would wait. */
LOOM_FN uint32_t sched_mgws_news(struct loom_ctx *c, struct sched_mgws_block *b,
				 const struct sched_mgws_own *own, struct sched_mgws_queue *q, int can_share,
				 uint64_t ran)
{
	(void)own;
	if (c->stop_seen)
		return MGWS_STOP;
	loom_look_at_stop(c);
	int unclaimed = b->claimed != MGWS_ALL && b->claimed < c->ctl->initial_tasks;
	if (can_share && !unclaimed && sched_mgws_bare(c, b->word))
		return MGWS_SHARE;
	b->word = loom_load_relaxed_sys(&q->word);
	if (unclaimed)
		b->claimed = SCHED_CFG(c, apart) ? (sched_mgws_initial_left(c) ? 0 : MGWS_ALL) :
						   loom_load_relaxed_sys(&sched_mgws_global(c)->next);
	return SCHED_CFG(c, apart) ? sched_mgws_asked(c, can_share, ran) : 0;
}
#endif

/* Apart: the answer to a device that asked, or to MGWS_SOMEBODY, from the backlog, or the local queue, or the
 * block. */
SCHED_SLOW int sched_mgws_answer(struct loom_ctx *c, uint32_t asker)
{
	struct sched_lane *mine = sched_lane(c);
	struct sched_mgws_block *b = &sched_mgws_keep(c)->block;
	struct sched_mgws_level *older = &sched_mgws_keep(c)->backlog;
	if (asker == MGWS_SOMEBODY) {
		int can_share = older->count || mine->count >= 2 || b->end - b->next >= 2;
		asker = loom_word_from_lane0(c, c->lane == 0 ? sched_mgws_to_answer(c, can_share) : 0u);
	}
	if (asker == MGWS_NOBODY)
		return 0;
	struct sched_mgws_hand h = {sched_ring(c), mine->head, sched_mask(c), mine->count, mine->count / 2, b->next,
				    b->end};
	if (older->count) {
		h.ring = sched_mgws_backlog(c);
		h.at = older->head;
		h.mask = SCHED_CFG(c, backlog) - 1;
		h.tasks = older->count;
		h.most = (older->count + 1) / 2;
	}
	sched_mgws_grant(c, asker, &h);
	if (older->count) {
		older->head = (uint32_t)h.at;
		older->count = h.tasks;
	} else {
		mine->head = (uint32_t)h.at;
		mine->count = h.tasks;
	}
	b->end = h.end;
	return 0;
}

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
