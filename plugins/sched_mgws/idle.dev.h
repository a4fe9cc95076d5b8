/* SPDX-License-Identifier: Apache-2.0 */
/* A worker without tasks searches until it finds tasks, or until the job has no tasks left. Device code, collective. */
#ifndef SCHED_MGWS_IDLE_DEV_H
#define SCHED_MGWS_IDLE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "work.dev.h"
#endif

/* Returns a number that grows if a worker claims from the device's range or the device receives another range. */
LOOM_FN uint64_t mgws_range_moved(const struct mgws_global *g)
{
	/* Acquire: pairs with the release in mgws_receive(). */
	uint32_t next = (uint32_t)loom_load_acquire_dev(&g->range);
	return next + (loom_load_relaxed_dev(&g->ranges) << 32);
}

/* Returns a count for detectors that vote in rounds. The count grows whenever other workers take tasks from this worker, and
 * whenever any worker takes tasks from the lists or from the range. */
LOOM_FN uint64_t mgws_stolen_count(struct loom_ctx *c)
{
#ifdef LOOM_TERM_COUNTS /* defined if the detector of this program counts tasks */
	(void)c;
	return 0;
#else
	const struct mgws_meta *own = mgws_own_meta(c);
	struct mgws_global *g = mgws_global(c);
	uint64_t n = 0;
	if (c->lane == 0) {
		if (mgws_sole_owner(c))
			n = own->started[0] + own->started[1];
		else /* at least the value at the time when this worker found the queue empty */
			n = loom_load_relaxed_sys(&mgws_queue(c)->moved);
		for (uint32_t i = 0; i < MGWS_LISTS; i++)
			n += loom_load_acquire_sys(&g->list[i].taken);
		if (mgws_ranged(c) && !SCHED_CFG(c, spread))
			n += mgws_worker(c)->grants + mgws_range_moved(g);
	}
	return loom_from_lane0(c, n);
#endif
}

/* Returns whether this worker may report idle. Four conditions must hold. The worker's queue is empty. No thief copies from
 * this queue. No list holds tasks for the other kind of device. All grants of this worker were taken. */
LOOM_FN int mgws_may_idle(struct loom_ctx *c)
{
	uint64_t yes = 0;
	if (c->lane == 0 && !mgws_others_listed(c) && !(SCHED_CFG(c, noncoherent) && mgws_has_untaken(c)) &&
	    mgws_try_lock_queue(c, mgws_queue(c))) {
		yes = (uint64_t)mgws_is_drained(mgws_meta(c), mgws_queue(c));
		mgws_reopen(c, mgws_meta(c), mgws_queue(c));
	}
	return (int)loom_from_lane0(c, yes);
}

/* Returns whether this search includes the range of the device or rank. *polls: number of calls so far. Workers of a
 * non-coherent GPU search only when their first range is used up. They rarely receive another range, so they poll for it in
 * one of MGWS_RANGE_POLLS searches. */
#define MGWS_RANGE_POLLS 4u
LOOM_FN int mgws_polls_range(const struct loom_ctx *c, uint32_t *polls)
{
#ifdef GPULOOM_DEV_CPU_H
	(void)polls;
	return mgws_ranged(c) && !SCHED_CFG(c, spread); /* with cfg.spread, all ranges were used up before the search */
#else
	return SCHED_CFG(c, rma) || (SCHED_CFG(c, noncoherent) && (*polls)++ % MGWS_RANGE_POLLS == 0);
#endif
}

/* Called by lane 0. Returns whether to search other ranks. With RMA it scans this rank first, which takes less time than a
 * remote steal. A GPU reaches other ranks by addresses, and would scan hundreds of queues more slowly than it steals. So
 * the worker instead searches other ranks in one of MGWS_LOCAL_SEARCHES searches. */
LOOM_FN int mgws_rank_is_empty(struct loom_ctx *c)
{
#ifdef LOOM_RANKS_RMA
	return !mgws_scan_local(c);
#else
	return mgws_worker(c)->remote_last || ++mgws_worker(c)->searches % MGWS_LOCAL_SEARCHES == 0;
#endif
}

/* Searches one victim in another rank, and with RMA the range of that rank. Returns the number of tasks found. */
LOOM_FN uint32_t mgws_search_ranks(struct loom_ctx *c, int *idle)
{
	uint32_t found = 0, victim = MGWS_NO_VICTIM;
	if (c->lane == 0 && mgws_remote_victims(c) && mgws_rank_is_empty(c))
		victim = mgws_remote_victim(c);
#ifdef LOOM_RANKS_RMA
	if (SCHED_CFG(c, rma))
		found = mgws_claim_remote(c, victim, idle);
#endif
	return found ? found : mgws_steal_from(c, victim, *idle, 0);
}

/* The state of mgws_search_for_work(). */
struct mgws_search {
	uint32_t receive_lock; /* only in lane 0: 1: this worker holds mgws_exchange.receive_lock */
	uint32_t polls;        /* number of calls of mgws_polls_range() */
};

/* Searches each source of tasks once. Returns the number of tasks found; for a claimed block, any number but 0. *idle: 1: this
 * worker has reported idle. If the search calls busy(), *idle becomes 0, even if it finds no task. */
LOOM_FN uint32_t mgws_search_once(struct loom_ctx *c, struct mgws_search *s, int *idle)
{
	uint32_t found = mgws_polls_range(c, &s->polls) ? mgws_claim_again(c, idle) : 0;
#ifdef GPULOOM_DEV_CPU_H
	if (!found)
		found = mgws_list_refill(c, *idle);
#else
	/* The steal does not wait for the load of the list's length. A worker that has reported idle need not acquire an empty list, which
	 * would also empty the cache of the multiprocessor. */
	uint64_t listed = *idle && !SCHED_CFG(c, mixed) ? mgws_glance(c) : 1;
#endif
	if (!found && SCHED_CFG(c, owners) > 1)
		found = mgws_acquire(c, *idle);
	if (!found)
		found = mgws_steal(c, *idle, 0);
#ifndef GPULOOM_DEV_CPU_H
	if (!found && loom_from_lane0(c, listed))
		found = mgws_list_refill(c, *idle);
#endif
	if (!found && SCHED_CFG(c, remote_workers))
		found = mgws_search_ranks(c, idle);
	if (found || !SCHED_CFG(c, noncoherent) || !mgws_try_exchange(c, &s->receive_lock))
		return found;
	*idle = mgws_exchange_tasks(c, *idle);
	found = sched_lane(c)->count;
	return found || *idle ? found : mgws_claim_again(c, idle); /* this worker may have received a range */
}

/* Called by lane 0. Returns whether a search would find tasks. */
LOOM_FN int mgws_sees_work(struct loom_ctx *c)
{
	return mgws_scan_local(c) || mgws_scan_remote(c) || (SCHED_CFG(c, noncoherent) && mgws_mailbox_filled(c));
}

/* Returns whether to call done() after this search. With RMA, done() queries other ranks, which takes as long as a remote
 * steal. So with RMA it is called only after one of MGWS_DETECTOR_CHECKS searches. */
#define MGWS_DETECTOR_CHECKS 4u
LOOM_FN int mgws_checks_detector(struct loom_ctx *c)
{
	uint64_t yes = c->lane == 0 && (!SCHED_CFG(c, rma) || ++mgws_worker(c)->checks % MGWS_DETECTOR_CHECKS == 0);
	return (int)loom_from_lane0(c, yes);
}

/* Searches until it finds tasks. Returns 0 if no task is left, or if the run was stopped. The worker is in one of these
 * states:
 *
 *   searching   idle = 0: the worker has not reported idle, because its queue may hold tasks, or a grant is not taken
 *   idle        idle = 1: the worker has reported idle. If a search calls busy() without success, idle = 0 again
 *   found       found != 0: the worker has tasks, and the detector counts it as busy
 *   done        done = 1: the detector has found that no task is left
 *
 * Three variables hold the state, because an enum takes up to 6 more registers of a GPU. */
SCHED_SLOW int mgws_search_for_work(struct loom_ctx *c)
{
	struct sched_event *event = mgws_event(c);
	struct loom_counters *counters = &sched_local(c)->counters;
	struct sched_rest rest = {0, 1, 0, 0, 0};
	struct mgws_search search = {0, 0};
	struct mgws_site *site = (struct mgws_site *)c->on_device[LOOM_SCHED];
	uint32_t found = 0, counted = SCHED_CFG(c, noncoherent);
	int idle = 0, done = 0;
	if (c->lane == 0) {
		rest.since = counters->last_task_ns = sched_time(c);
		counters->idle_entries++;
		loom_set_state(c, LOOM_STATE_SEARCH);
		if (counted)
			loom_fetch_add_relaxed_dev(&site->searching, 1u);
	}
	while (!loom_from_lane0(c, (uint64_t)loom_stopped(c))) {
#ifdef GPULOOM_DEV_CPU_H
		/* Operations that this worker has posted may need a call to be carried out. A victim that waits for such a
		 * completion has no room to steal, and makes no call itself. So two thieves of each other would wait forever. */
		if (c->lane == 0 && SCHED_CFG(c, rma))
			(void)mgws_rma_progress(c);
#endif
		found = mgws_search_once(c, &search, &idle);
		if (found)
			break;
		if (!idle) {
			idle = mgws_may_idle(c);
			if (idle)
				LOOM_CALL(term, idle, c);
		}
		done = idle && mgws_checks_detector(c) && LOOM_CALL(term, done, c, mgws_stolen_count(c));
		if (done)
			break;
		/* The worker with receive_lock does not sleep, because a grant increments no eventcount that would wake it. */
		if (c->lane == 0 && search.receive_lock)
			sched_unlist(&rest, event);
		if (c->lane == 0)
			sched_rest(c, &mgws_global(c)->common.cfg, event, &rest, idle && !search.receive_lock,
				   rest.listed && mgws_sees_work(c));
	}
	if (c->lane == 0) {
		uint64_t now = sched_time(c);
		sched_unlist(&rest, event);
		if (SCHED_CFG(c, noncoherent))
			mgws_end_exchange(c, &search.receive_lock);
		if (counted)
			loom_fetch_add_relaxed_dev(&site->searching, ~0u);
		if (done) /* wake all sleepers, because the run ends for them, too */
			sched_wake(c, event, ~0u);
		else if (sched_sleepers(event) && mgws_sees_work(c))
			sched_wake(c, event, 1u); /* another worker may find more tasks: rest.dev.h */
		loom_set_state(c, LOOM_STATE_TASKS);
		counters->idle_ns += now - counters->last_task_ns;
		loom_trace_add(c, done ? LOOM_TRACE_END : LOOM_TRACE_IDLE, counters->last_task_ns,
			       c->worker, 0);
	}
	return found != 0;
}

/* Runs a GPU's proxy worker, until no task is left or the run was stopped. */
#define MGWS_PROXY_PAUSES 8u
SCHED_SLOW int mgws_proxy(struct loom_ctx *c)
{
	const uint64_t *range = &mgws_global(c)->range;
	int idle = 0, done = 0;
	if (c->lane == 0)
		loom_set_state(c, LOOM_STATE_SEARCH);
	while (!done && !loom_from_lane0(c, (uint64_t)loom_stopped(c))) {
		uint32_t pauses = MGWS_PROXY_PAUSES;
		uint64_t some;
		idle = mgws_exchange_tasks(c, idle);
		/* The proxy does not report idle while other workers may claim from a range that it has received. Acquire:
		 * pairs with the release in mgws_claim_range(), which follows busy(). */
		some = sched_lane(c)->count || mgws_range_left(loom_load_acquire_dev(range));
		if (!idle && !loom_from_lane0(c, some)) {
			idle = mgws_may_idle(c);
			if (idle)
				LOOM_CALL(term, idle, c);
		}
		done = idle && LOOM_CALL(term, done, c, mgws_stolen_count(c));
		if (c->lane == 0)
			sched_pause(c, &pauses);
	}
	return 0;
}

#endif
