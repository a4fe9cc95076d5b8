/* SPDX-License-Identifier: Apache-2.0 */
/* A worker without work: the search for some, until there is none any more. Device code, collective. */
#ifndef SCHED_MGWS_IDLE_DEV_H
#define SCHED_MGWS_IDLE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "news.dev.h"
#endif

/* Grows when an initial task is drawn, or more of them come. */
LOOM_FN uint64_t sched_mgws_drawn(const struct sched_mgws_global *g)
{
	/* Acquire: a new range comes with its number. */
	uint32_t next = (uint32_t)loom_load_acquire_dev(&g->range);
	return next + (loom_load_relaxed_dev(&g->ranges) << 32);
}

/* For detectors that vote in rounds: tasks that left this worker's hands, or may have. */
LOOM_FN uint64_t sched_mgws_robbed(struct loom_ctx *c)
{
#ifdef LOOM_TERM_COUNTS /* this program's detector */
	(void)c;
	return 0;
#else
	struct sched_mgws_mine *mine = sched_mgws_mine(c);
	struct sched_mgws_global *g = sched_mgws_global(c);
	uint64_t n = 0;
	if (c->lane == 0) {
		if (sched_mgws_books(c) == &mine->own)
			n = mine->own.started[0] + mine->own.started[1];
		else /* as of when this worker found the queue empty, or later */
			n = loom_load_relaxed_sys(&sched_mgws_used(c)->moved);
		for (uint32_t i = 0; i < MGWS_LISTS; i++)
			n += loom_load_acquire_sys(&g->list[i].taken);
		if (SCHED_CFG(c, apart))
			n += mine->posted + sched_mgws_drawn(g);
	}
	return loom_from_lane0(c, n);
#endif
}

/* May this worker report idle? Its queue is empty, no thief is copying from it, nothing waits for another kind
 * of device, and what it gave to other devices has been taken. */
LOOM_FN int sched_mgws_workless(struct loom_ctx *c)
{
	uint64_t yes = 0;
	if (c->lane == 0 && !sched_mgws_withheld(c) && !(SCHED_CFG(c, apart) && sched_mgws_owes(c)) &&
	    sched_mgws_hold(c, sched_mgws_used(c))) {
		yes = (uint64_t)sched_mgws_quiet(sched_mgws_books(c), sched_mgws_used(c));
		sched_mgws_settle(c, sched_mgws_books(c), sched_mgws_used(c));
	}
	return (int)loom_from_lane0(c, yes);
}

/* Apart: this look for work is one at the device's range, too. A GPU's is where it began, or has come by mail, which
 * is rare. */
#define MGWS_RANGE_LOOKS 4u
#define MGWS_POST_PAUSES 8u
LOOM_FN int sched_mgws_redraws(const struct loom_ctx *c, struct sched_mgws_courier *k)
{
#ifdef GPULOOM_DEV_CPU_H
	(void)k;
	return SCHED_CFG(c, apart);
#else
	return SCHED_CFG(c, apart) && k->looks++ % MGWS_RANGE_LOOKS == 0;
#endif
}

/* One look for work, wherever it may come from. *idle: this worker has reported idle; 0 afterwards, if it has
 * taken that back in vain. */
LOOM_FN uint32_t sched_mgws_find(struct loom_ctx *c, struct sched_mgws_courier *k, int *idle)
{
	uint32_t found = sched_mgws_redraws(c, k) ? sched_mgws_redraw(c, idle) : 0;
	if (!found)
		found = sched_mgws_adopt(c, *idle);
	if (!found && SCHED_CFG(c, owners) > 1)
		found = sched_mgws_acquire(c, *idle);
	if (!found)
		found = sched_mgws_steal(c, *idle, 0);
	if (found || !SCHED_CFG(c, apart) || !sched_mgws_at_desk(c, k))
		return found;
	*idle = sched_mgws_deliver(c, *idle);
	found = sched_lane(c)->count;
	return found || *idle ? found : sched_mgws_redraw(c, idle); /* a range may have come */
}

/* Lane 0: there is something to be had. */
LOOM_FN int sched_mgws_sees(struct loom_ctx *c)
{
	return sched_mgws_look(c) || (SCHED_CFG(c, apart) && sched_mgws_posted(c));
}

/* Out of work: looks for some. 0 when there is none any more, or the run was stopped. */
SCHED_SLOW int sched_mgws_seek(struct loom_ctx *c)
{
	struct sched_common *common = &sched_mgws_global(c)->common;
	struct loom_counters *tally = &sched_local(c)->tally;
	struct sched_rest rest = {0, 1, 0, 0, 0};
	struct sched_mgws_courier courier = {0, 0};
	uint32_t *hungry = SCHED_CFG(c, apart) ? &sched_mgws_desk(c)->hungry : (uint32_t *)NULL;
	uint32_t found = 0;
	int idle = 0, done = 0;
	if (c->lane == 0) {
		rest.since = tally->last_task_ns = loom_clock_ns(c);
		tally->idle_entries++;
		loom_doing(c, LOOM_DOING_SEARCH);
		if (hungry)
			loom_fetch_add_relaxed_dev(hungry, 1u);
	}
	while (!loom_from_lane0(c, (uint64_t)loom_stopped(c))) {
		found = sched_mgws_find(c, &courier, &idle);
		if (found)
			break;
		if (!idle) {
			idle = sched_mgws_workless(c);
			if (idle)
				LOOM_CALL(term, idle, c);
		}
		done = idle && LOOM_CALL(term, done, c, sched_mgws_robbed(c));
		if (done)
			break;
		if (c->lane == 0 && courier.fetching) /* who brings the mail does not sleep: no mail rings */
			sched_unlist(&rest, &common->bell);
		if (c->lane == 0)
			sched_rest(c, &common->cfg, &common->bell, &rest, idle && !courier.fetching,
				   rest.listed && sched_mgws_sees(c));
	}
	if (c->lane == 0) {
		uint64_t now = loom_clock_ns(c);
		sched_unlist(&rest, &common->bell);
		if (SCHED_CFG(c, apart))
			sched_mgws_leave_desk(c, &courier);
		if (hungry)
			loom_fetch_add_relaxed_dev(hungry, ~0u);
		if (done) /* the others may sleep */
			sched_wake(c, &common->bell, ~0u);
		else if (sched_sleepers(&common->bell) && sched_mgws_sees(c))
			sched_wake(c, &common->bell, 1u); /* there is more: see rest.dev.h */
		loom_doing(c, LOOM_DOING_TASKS);
		tally->idle_ns += now - tally->last_task_ns;
		loom_trace_add(c, done ? LOOM_TRACE_END : LOOM_TRACE_IDLE, tally->last_task_ns, c->worker, 0);
	}
	return found != 0;
}

/* A GPU's postmaster, until there is no work any more, or the run was stopped. */
SCHED_SLOW int sched_mgws_post(struct loom_ctx *c)
{
	const uint64_t *range = &sched_mgws_global(c)->range;
	int idle = 0, done = 0;
	if (c->lane == 0)
		loom_doing(c, LOOM_DOING_SEARCH);
	while (!done && !loom_from_lane0(c, (uint64_t)loom_stopped(c))) {
		uint32_t pauses = MGWS_POST_PAUSES;
		uint64_t some;
		idle = sched_mgws_deliver(c, idle);
		/* A range that it installed may be in use. Acquire: pairs with the release of who draws, behind
		 * its busy(). */
		some = sched_lane(c)->count || sched_mgws_undrawn(loom_load_acquire_dev(range));
		if (!idle && !loom_from_lane0(c, some)) {
			idle = sched_mgws_workless(c);
			if (idle)
				LOOM_CALL(term, idle, c);
		}
		done = idle && LOOM_CALL(term, done, c, sched_mgws_robbed(c));
		if (c->lane == 0)
			sched_pause(c, &pauses);
	}
	return 0;
}

#endif
