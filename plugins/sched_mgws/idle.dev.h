/* SPDX-License-Identifier: Apache-2.0 */
/* A worker without work: it searches for some until there is none anywhere. Device code, collective. */
#ifndef SCHED_MGWS_IDLE_DEV_H
#define SCHED_MGWS_IDLE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "work.dev.h"
#endif

/* Grows when initial tasks are claimed from the device's range, or another range comes by mail. */
LOOM_FN uint64_t mgws_range_moved(const struct mgws_global *g)
{
	/* Acquire: a new range comes with its number. */
	uint32_t next = (uint32_t)loom_load_acquire_dev(&g->range);
	return next + (loom_load_relaxed_dev(&g->ranges) << 32);
}

/* For detectors that vote in rounds: tasks that left this worker's hands, or may have. */
LOOM_FN uint64_t mgws_robbed(struct loom_ctx *c)
{
#ifdef LOOM_TERM_COUNTS /* this program's detector */
	(void)c;
	return 0;
#else
	const struct mgws_books *known = mgws_known(c);
	struct mgws_global *g = mgws_global(c);
	uint64_t n = 0;
	if (c->lane == 0) {
		if (mgws_sole_owner(c))
			n = known->started[0] + known->started[1];
		else /* as of when this worker found the queue empty, or later */
			n = loom_load_relaxed_sys(&mgws_queue(c)->moved);
		for (uint32_t i = 0; i < MGWS_LISTS; i++)
			n += loom_load_acquire_sys(&g->list[i].taken);
		if (mgws_ranged(c))
			n += mgws_mine(c)->mailed + mgws_range_moved(g);
	}
	return loom_from_lane0(c, n);
#endif
}

/* This worker may report idle: its queue is empty, no thief is copying from it, no task waits for another kind of device,
 * and what it mailed has been taken. */
LOOM_FN int mgws_may_idle(struct loom_ctx *c)
{
	uint64_t yes = 0;
	if (c->lane == 0 && !mgws_filled_for_others(c) && !(SCHED_CFG(c, noncoherent) && mgws_owes(c)) &&
	    mgws_try_turn(c, mgws_queue(c))) {
		yes = (uint64_t)mgws_quiet(mgws_books(c), mgws_queue(c));
		mgws_settle(c, mgws_books(c), mgws_queue(c));
	}
	return (int)loom_from_lane0(c, yes);
}

/* This search includes the device's or the rank's range. Apart, a GPU's workers have used up the range with which the sample
 * began when they search, and another seldom comes by mail: they look at it now and then. */
#define MGWS_RANGE_LOOKS 4u
#define MGWS_POST_PAUSES 8u
LOOM_FN int mgws_looks_at_range(const struct loom_ctx *c, struct mgws_search_state *s)
{
#ifdef GPULOOM_DEV_CPU_H
	(void)s;
	return mgws_ranged(c);
#else
	return SCHED_CFG(c, rma) || (SCHED_CFG(c, noncoherent) && s->looks++ % MGWS_RANGE_LOOKS == 0);
#endif
}

/* One search, everywhere. *idle: this worker has reported idle; 0 afterwards, if it has taken that back in vain. */
LOOM_FN uint32_t mgws_search_once(struct loom_ctx *c, struct mgws_search_state *s, int *idle)
{
	uint32_t found = mgws_looks_at_range(c, s) ? mgws_claim_again(c, idle) : 0;
	if (!found)
		found = mgws_unspill(c, *idle);
	if (!found && SCHED_CFG(c, owners) > 1)
		found = mgws_acquire(c, *idle);
	if (!found)
		found = mgws_steal(c, *idle, 0);
	if (!found && SCHED_CFG(c, far)) {
		uint32_t victim = c->lane == 0 ? mgws_far_victim(c) : 0;
#ifdef LOOM_RANKS_RMA
		if (SCHED_CFG(c, rma))
			found = mgws_claim_far(c, victim, idle);
#endif
		if (!found)
			found = mgws_steal_from(c, victim, *idle, 0);
	}
	if (found || !SCHED_CFG(c, noncoherent) || !mgws_at_desk(c, s))
		return found;
	*idle = mgws_tend_desk(c, *idle);
	found = sched_lane(c)->count;
	return found || *idle ? found : mgws_claim_again(c, idle); /* a range may have come */
}

/* Lane 0: a search would find something. */
LOOM_FN int mgws_sees_work(struct loom_ctx *c)
{
	return mgws_scan(c) || (SCHED_CFG(c, noncoherent) && mgws_mail_waits(c));
}

/* The detector asks other ranks, too, at the cost of attempts to steal there. */
#define MGWS_VAIN 4u
LOOM_FN int mgws_asks_detector(struct loom_ctx *c)
{
	uint64_t yes = c->lane == 0 && (!SCHED_CFG(c, rma) || ++mgws_mine(c)->vain % MGWS_VAIN == 0);
	return (int)loom_from_lane0(c, yes);
}

/* Searches until something is found. 0 when there is no work any more, or the run was stopped. */
SCHED_SLOW int mgws_search(struct loom_ctx *c)
{
	struct sched_bell *bell = mgws_bell(c);
	struct loom_counters *tally = &sched_local(c)->tally;
	struct sched_rest rest = {0, 1, 0, 0, 0};
	struct mgws_search_state search = {0, 0};
	uint32_t *hungry = SCHED_CFG(c, noncoherent) ? &mgws_desk(c)->hungry : (uint32_t *)NULL;
	uint32_t found = 0;
	int idle = 0, done = 0;
	if (c->lane == 0) {
		rest.since = tally->last_task_ns = loom_clock_ns(c);
		tally->idle_entries++;
		loom_set_state(c, LOOM_STATE_SEARCH);
		if (hungry)
			loom_fetch_add_relaxed_dev(hungry, 1u);
	}
	while (!loom_from_lane0(c, (uint64_t)loom_stopped(c))) {
		found = mgws_search_once(c, &search, &idle);
		if (found)
			break;
		if (!idle) {
			idle = mgws_may_idle(c);
			if (idle)
				LOOM_CALL(term, idle, c);
		}
		done = idle && mgws_asks_detector(c) && LOOM_CALL(term, done, c, mgws_robbed(c));
		if (done)
			break;
		if (c->lane == 0 && search.asking) /* mail rings no bell: the worker that waits for it does not sleep */
			sched_unlist(&rest, bell);
		if (c->lane == 0)
			sched_rest(c, &mgws_global(c)->common.cfg, bell, &rest, idle && !search.asking,
				   rest.listed && mgws_sees_work(c));
	}
	if (c->lane == 0) {
		uint64_t now = loom_clock_ns(c);
		sched_unlist(&rest, bell);
		if (SCHED_CFG(c, noncoherent))
			mgws_leave_desk(c, &search);
		if (hungry)
			loom_fetch_add_relaxed_dev(hungry, ~0u);
		if (done) /* the others may sleep */
			sched_wake(c, bell, ~0u);
		else if (sched_sleepers(bell) && mgws_sees_work(c))
			sched_wake(c, bell, 1u); /* there is more: see rest.dev.h */
		loom_set_state(c, LOOM_STATE_TASKS);
		tally->idle_ns += now - tally->last_task_ns;
		loom_trace_add(c, done ? LOOM_TRACE_END : LOOM_TRACE_IDLE, tally->last_task_ns, c->worker, 0);
	}
	return found != 0;
}

/* What a GPU's postmaster does, until there is no work any more or the run was stopped. */
SCHED_SLOW int mgws_postmaster(struct loom_ctx *c)
{
	const uint64_t *range = &mgws_global(c)->range;
	int idle = 0, done = 0;
	if (c->lane == 0)
		loom_set_state(c, LOOM_STATE_SEARCH);
	while (!done && !loom_from_lane0(c, (uint64_t)loom_stopped(c))) {
		uint32_t pauses = MGWS_POST_PAUSES;
		uint64_t some;
		idle = mgws_tend_desk(c, idle);
		/* Workers may still claim from a range that came by mail. Acquire: pairs with their release, behind
		 * busy(). */
		some = sched_lane(c)->count || mgws_range_left(loom_load_acquire_dev(range));
		if (!idle && !loom_from_lane0(c, some)) {
			idle = mgws_may_idle(c);
			if (idle)
				LOOM_CALL(term, idle, c);
		}
		done = idle && LOOM_CALL(term, done, c, mgws_robbed(c));
		if (c->lane == 0)
			sched_pause(c, &pauses);
	}
	return 0;
}

#endif
