/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of a barrier plug-in. This file follows state.dev.h and NAME.dev.h. Lane 0 of a worker arrives for the worker.
 * With BARRIER_ALL_LANES_POLL each lane polls words of its own, and with BARRIER_LANE0_POLLS lane 0 polls. Without either
 * macro all lanes of a worker that is one wave (LOOM_WAVE > 1) poll the same word; in other workers lane 0 polls.
 * NAME.dev.h defines
 *   BARRIER_OP(op)                        the name of an op
 *   barrier_signal(c, h, slot, round)     lets this worker arrive; returns 1 if all workers have arrived
 *   barrier_watch_start(c, h, slot, w)    starts a wait: sets w->at, after the caller has set next, step and wide
 *   barrier_poll(c, h, slot, round, w)    returns 1 if all words that this lane polls are reached. Else returns 0, and
 *                                         w->word is a word that is not reached, w->seen its value
 * Device code. */
#ifndef BARRIER_ROUNDS_DEV_H
#define BARRIER_ROUNDS_DEV_H

/* BARRIER_LANE_POLLS(c) is 1 in a lane that polls. barrier_agree(c, v) returns the value of v in lane 0 if the lanes of a wave
 * poll the same word; else it returns the lane's own value. */
#if defined(BARRIER_ALL_LANES_POLL)
#define BARRIER_LANE_POLLS(c) 1
#define barrier_agree(c, v)   (v)
#elif defined(BARRIER_LANE0_POLLS)
#define BARRIER_LANE_POLLS(c) ((c)->lane == 0)
#define barrier_agree(c, v)   (v)
#else
#define BARRIER_LANE_POLLS(c) ((c)->lane < LOOM_WAVE)
#define barrier_agree(c, v)   loom_wave_word(c, v)
#endif

/* 1: all lanes of a wave poll together, so each may poll another word */
#if defined(BARRIER_ALL_LANES_POLL) || defined(BARRIER_LANE0_POLLS)
#define BARRIER_VOTES 0u
#else
#define BARRIER_VOTES (LOOM_WAVE >= BARRIER_LINE_WORDS)
#endif

#if defined(LOOM_REAL_GPU)
#define BARRIER_STOP_EVERY 8u /* the stop word is checked after one of this number of polls */
#else
#define BARRIER_STOP_EVERY 1u
#endif
#define BARRIER_FAST_POLLS 64u /* number of polls of an eager wait before the stop word is checked at all */

#ifdef BARRIER_HAS_GROUPS
LOOM_FN int barrier_rejects(struct loom_ctx *c, enum loom_scope scope)
{
	uint32_t k = (uint32_t)scope - LOOM_SCOPE_GROUP;
	if (scope < LOOM_SCOPE_GROUP)
		return scope != LOOM_SCOPE_DEVICE && scope != LOOM_SCOPE_STACK && scope != LOOM_SCOPE_JOB;
	return k >= barrier_state(c)->groupings ||
	       barrier_group_of(c, barrier_state(c), BARRIER_GROUP + k)[c->worker] == LOOM_NO_GROUP;
}
#else
LOOM_FN int barrier_rejects(struct loom_ctx *c, enum loom_scope scope)
{
	(void)c;
	return scope != LOOM_SCOPE_DEVICE && scope != LOOM_SCOPE_STACK && scope != LOOM_SCOPE_JOB;
}
#endif

LOOM_FN uint32_t barrier_slot(enum loom_scope scope)
{
	return scope >= LOOM_SCOPE_GROUP ? BARRIER_GROUP + (uint32_t)scope - LOOM_SCOPE_GROUP
	       : scope == LOOM_SCOPE_JOB ? (uint32_t)BARRIER_JOB
					 : scope == LOOM_SCOPE_STACK;
}

LOOM_FN void barrier_watch(struct loom_ctx *c, uint32_t slot, uint32_t next, uint32_t step, struct barrier_watch *w)
{
	w->word = (struct barrier_word *)0;
	w->seen = w->shared = w->counted = w->reached = 0;
	w->wide = barrier_is_wide(c, slot);
	w->drops = w->wide && barrier_has_drops(c, barrier_state(c));
	/* If workers may leave, none of them relays, because all workers of a device may have left. */
	w->relays = w->wide && !w->drops && barrier_relays(barrier_state(c));
	w->polls = 0;
	w->lined = 0;
	w->votes = BARRIER_VOTES;
	w->next = next;
	w->step = step;
	barrier_watch_start(c, barrier_state(c), slot, w);
	w->eager = w->counted || w->wide;
}

/* Returns whether to check the stop word after poll number `polls`, counted from 0. A GPU checks it after one of 8 polls:
 * the lanes of a wave must agree on its value, and all workers load the same word. A wait for a release word checks it after
 * the first of the 8 polls, which takes 0.1 us. An eager wait checks it after the last one. */
LOOM_FN int barrier_checks_stop(const struct barrier_watch *w, uint32_t polls)
{
	return polls % BARRIER_STOP_EVERY == (w->eager ? BARRIER_STOP_EVERY - 1 : 0);
}

/* Returns 1 if a wait of at most `timeout_ns` is over. *begin: start of the wait, which the first call sets; 0 before the first
 * call. *left_ns: set to the remaining time. */
LOOM_FN int barrier_timed_out(struct loom_ctx *c, uint64_t timeout_ns, uint64_t *begin, uint64_t *left_ns)
{
	uint64_t now = loom_clock_ns(c);
	*begin = *begin ? *begin : now;
	*left_ns = now - *begin < timeout_ns ? timeout_ns - (now - *begin) : 0;
	return !*left_ns;
}

/* Called by the polling lanes. Waits until all workers of the scope have arrived at `round`. */
LOOM_FN int barrier_await(struct loom_ctx *c, uint32_t slot, uint32_t round, uint64_t timeout_ns)
{
	struct barrier_state *h = barrier_state(c);
	struct barrier_watch w;
	uint64_t since = 0, begin = 0, left = 0;
	uint32_t polls = 0;
	int rc = 0;
#ifdef BARRIER_ALL_LANES_POLL
	barrier_watch(c, slot, c->lane, c->lanes, &w);
#else
	barrier_watch(c, slot, 0, 1, &w);
#endif
#ifdef LOOM_DEVICE_COMPILE
	/* The first polls of an eager wait have no check and no pause in between, which saves 0.05 us on an H200. */
	LOOM_NO_UNROLL
	for (uint32_t i = 0; w.eager && !timeout_ns && i < BARRIER_FAST_POLLS; i++)
		if (barrier_agree(c, (uint32_t)barrier_poll(c, h, slot, round, &w)))
			return 0;
#endif
	while (!barrier_agree(c, (uint32_t)barrier_poll(c, h, slot, round, &w))) {
		if (barrier_checks_stop(&w, polls) && barrier_agree(c, (uint32_t)loom_stopped(c))) {
			uint32_t code = (uint32_t)-barrier_stop_code(c, slot);
			rc = -(int)barrier_agree(c, code);
			break;
		}
		if (timeout_ns && barrier_agree(c, (uint32_t)barrier_timed_out(c, timeout_ns, &begin, &left))) {
			rc = LOOM_ETIMEDOUT;
			break;
		}
		if (polls == BARRIER_SHORT_POLLS && c->lane == 0)
			loom_set_state(c, LOOM_STATE_BARRIER);
		/* A pause delays eager polls as much as a check of the stop word does, so both are equally rare. */
		if (!w.eager || polls % BARRIER_STOP_EVERY == BARRIER_STOP_EVERY - 1)
			barrier_backoff(c, h, &w, polls, &since, left);
		polls = polls < ~0u ? polls + 1 : BARRIER_SHORT_POLLS + 1;
	}
	if (polls > BARRIER_SHORT_POLLS && c->lane == 0)
		loom_set_state(c, LOOM_STATE_TASKS);
	return rc;
}

/* Called by lane 0, after all lanes have written the data for other workers. Returns 1 if all workers have arrived. */
LOOM_FN int barrier_arrive(struct loom_ctx *c, uint32_t slot, uint32_t round)
{
	struct barrier_arrival *arrival = (struct barrier_arrival *)c->own[LOOM_BARRIER];
	/* A CPU stores the arrival before the signal, so that missing() names no worker that has arrived. A GPU stores it
	 * after the signal, because the release of the signal would wait for this store. */
#ifndef LOOM_DEVICE_COMPILE
	loom_store_relaxed_sys(&arrival->arrived[slot], round);
#endif
	barrier_remember(c, barrier_state(c), slot, round);
	int all = barrier_signal(c, barrier_state(c), slot, round);
#ifdef LOOM_DEVICE_COMPILE
	loom_store_relaxed_sys(&arrival->arrived[slot], round);
#endif
	barrier_local(c)->round[slot] = round;
	return all;
}

/* Shares the result of the polling lanes with all lanes, which may then read other workers' data. The word `code` passes the
 * result, and is written only after an error. A reduction by the lanes' barrier would take 0.02 us longer on a GPU. */
LOOM_FN int barrier_share_result(struct loom_ctx *c, int rc)
{
	struct barrier_local *self = barrier_local(c);
#if !defined(BARRIER_ALL_LANES_POLL) && !defined(BARRIER_LANE0_POLLS)
	if (LOOM_WAVE > 1)
		return rc; /* all lanes have polled, and barrier_agree() made them agree */
#endif
	if (rc)
		loom_store_relaxed_dev(&self->code, (uint32_t)-rc); /* atomic: several lanes may store */
	loom_barrier_lanes(c);
	rc = -(int)self->code;
	if (rc) {
		loom_barrier_lanes(c); /* all lanes have read `code` before lane 0 clears it */
		if (c->lane == 0)
			self->code = 0;
		loom_barrier_lanes(c);
	}
	return rc;
}

/* ---- rounds of one slot, for workers of this rank: collective -------------------------------------- */

LOOM_FN int barrier_slot_arrive(struct loom_ctx *c, uint32_t slot)
{
	loom_barrier_lanes(c);
	if (c->lane == 0)
		barrier_arrive(c, slot, barrier_local(c)->round[slot] + 1);
#ifdef BARRIER_ALL_LANES_POLL
	loom_barrier_lanes(c); /* all lanes read the round that lane 0 has stored */
#endif
	return 0;
}

LOOM_FN int barrier_slot_test(struct loom_ctx *c, uint32_t slot)
{
	uint64_t code = 0;
	if (c->lane == 0) {
		struct barrier_watch w;
		barrier_watch(c, slot, 0, 1, &w);
		/* with this number of polls, the next poll also checks the words of all devices */
		w.polls = BARRIER_RELAY_POLLS - 1;
		w.votes = 0;
		if (!barrier_poll(c, barrier_state(c), slot, barrier_local(c)->round[slot], &w))
			code = loom_stopped(c) ? (uint64_t)-barrier_stop_code(c, slot) : (uint64_t)-LOOM_EAGAIN;
	}
	return -(int)loom_from_lane0(c, code);
}

LOOM_FN int barrier_slot_await(struct loom_ctx *c, uint32_t slot, uint64_t timeout_ns)
{
	int rc = 0;
	if (BARRIER_LANE_POLLS(c))
		rc = barrier_await(c, slot, barrier_agree(c, barrier_local(c)->round[slot]), timeout_ns);
	return barrier_share_result(c, rc);
}

LOOM_FN int barrier_slot_wait(struct loom_ctx *c, uint32_t slot)
{
#ifdef BARRIER_ALL_LANES_POLL
	barrier_slot_arrive(c, slot);
	return barrier_slot_await(c, slot, 0);
#else
	int rc = 0, all = 0;
	/* The load precedes the branch, because in the branch lanes that diverge would wait for it. */
	uint32_t round = barrier_local(c)->round[slot] + 1;
	loom_barrier_lanes(c);
	/* One branch has both steps, because to diverge and reconverge twice would take a GPU more time than the steps take. */
	if (BARRIER_LANE_POLLS(c)) {
		if (c->lane == 0)
			all = barrier_arrive(c, slot, round);
		/* The test of `all` makes lane 0 wait for the end of its arrival, so it does not poll while other workers
		 * arrive. With this test a round takes 0.90 us instead of 1.06 us, for 264 workers of 256 lanes on an H200. A
		 * worker that is one wave is faster without the test. */
		if (LOOM_WAVE > 1 || !all)
			rc = barrier_await(c, slot, barrier_agree(c, round), 0);
	}
	return barrier_share_result(c, rc);
#endif
}

/* ---- ranks ----------------------------------------------------------------------------------------- */

/* Returns how much of `timeout_ns` remains for a wait that started at `begin`. 0: there is no deadline, because
 * `timeout_ns` is 0. ~0: no time remains. */
LOOM_FN uint64_t barrier_left(struct loom_ctx *c, uint64_t begin, uint64_t timeout_ns)
{
	uint64_t took = timeout_ns ? loom_clock_ns(c) - begin : 0;
	return took < timeout_ns ? timeout_ns - took : timeout_ns ? ~0ull : 0;
}

#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SELECTS_trigger)
LOOM_FN int barrier_ranks_poll(struct loom_ctx *c, const struct barrier_state *h)
{
	(void)c;
	return h->ranks > 1 ? LOOM_ENOTSUP : 0;
}
#else
/* The posts are paired, so a trigger may order only the data of the posts; the fences order all other memory. Of the triggers
 * that a GPU can use, only triggers with LOOM_TRIGGER_TOGETHER need the fences, because all other triggers order all memory. */
#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_TRIGGER_TOGETHER)
#define barrier_fence_ranks(order) ((void)0)
#else
#define barrier_fence_ranks(order) loom_fence_##order##_sys()
#endif

/* Called by lane 0 of worker 0, after all workers of this rank have arrived. Continues the dissemination among ranks as
 * far as messages have arrived. Returns 0 if all ranks have arrived, LOOM_EAGAIN, or an error. A rank sends the message of
 * a step only after it has received the messages of all earlier steps. */
LOOM_FN int barrier_ranks_poll(struct loom_ctx *c, const struct barrier_state *h)
{
	struct barrier_local *self = barrier_local(c);
	uint32_t round = (self->round[BARRIER_JOB] + 1) / 2, steps = 0;
	while (1u << steps < h->ranks)
		steps++;
	for (;;) {
		uint32_t step = self->received - (round - 1) * steps;
		int64_t seen;
		int rc = 0;
		if (step == steps) {
			/* Acquire: pairs with the release fences below, of all ranks. */
			barrier_fence_ranks(acquire);
			return 0;
		}
		if (self->sent == self->received) {
			/* Release: covers the writes of this rank's workers, and the writes of other ranks that earlier rounds
			 * made visible to this rank. */
			barrier_fence_ranks(release);
			rc = LOOM_CALL(trigger, fire, c, (uint64_t)(h->tag + step), 1);
		}
		self->sent += self->sent == self->received;
		seen = rc ? rc : LOOM_CALL(trigger, arrived, c, h->tag + step);
		if (seen < (int64_t)round)
			return seen < 0 ? (int)seen : LOOM_EAGAIN;
		self->received++;
	}
}
#endif

/* Called by all lanes of worker 0. Waits until all ranks have arrived. */
LOOM_FN int barrier_ranks_await(struct loom_ctx *c, uint64_t timeout_ns)
{
	struct barrier_state *h = barrier_state(c);
	struct barrier_watch w = {0};
	uint64_t since = 0, begin = timeout_ns ? loom_clock_ns(c) : 0, left = 0;
	int rc = 0;
	loom_set_state(c, LOOM_STATE_MESSAGE);
	for (uint32_t polls = 0; c->lane == 0 && (rc = barrier_ranks_poll(c, h)) == LOOM_EAGAIN; polls += polls < ~0u) {
		left = barrier_left(c, begin, timeout_ns);
		if (loom_stopped(c))
			rc = barrier_stop_code(c, BARRIER_JOB);
		else if (left == ~0ull)
			rc = LOOM_ETIMEDOUT;
		if (rc != LOOM_EAGAIN)
			break;
		barrier_backoff(c, h, &w, polls, &since, left);
	}
	loom_set_state(c, LOOM_STATE_TASKS);
	return -(int)loom_word_from_lane0(c, (uint32_t)-rc);
}

/* Worker 0 synchronises with the other ranks. Each worker then arrives at the second round of the slot, which ends when
 * worker 0 has arrived. */
LOOM_FN int barrier_job_ranks(struct loom_ctx *c, int once, uint64_t left_ns)
{
	int rc = 0;
	if (c->worker == 0 && once)
		rc = -(int)loom_word_from_lane0(c, c->lane ? 0 : (uint32_t)-barrier_ranks_poll(c, barrier_state(c)));
	else if (c->worker == 0)
		rc = barrier_ranks_await(c, left_ns);
	if (!rc)
		barrier_slot_arrive(c, BARRIER_JOB);
	return rc;
}

/* Collective. Continues a round of the job at which this worker has arrived. once: 1: poll once and do not wait. */
LOOM_FN int barrier_job(struct loom_ctx *c, int once, uint64_t timeout_ns)
{
	struct barrier_local *self = barrier_local(c);
	uint64_t begin = timeout_ns ? loom_clock_ns(c) : 0, left = timeout_ns;
	uint32_t stage = loom_word_from_lane0(c, c->lane == 0 ? self->stage : 0);
	int rc = 0;
	while (stage <= BARRIER_LEAVING && !rc) {
		left = barrier_left(c, begin, timeout_ns);
		left = left == ~0ull ? 1 : left; /* a wait of 1 ns still polls once */
		if (stage == BARRIER_RANKS)
			rc = barrier_job_ranks(c, once, left);
		else
			rc = once ? barrier_slot_test(c, BARRIER_JOB) : barrier_slot_await(c, BARRIER_JOB, left);
		if (!rc)
			stage++;
	}
	if (c->lane == 0)
		self->stage = rc ? stage : BARRIER_ARRIVING;
	return rc;
}

/* Returns whether the ranks of the job synchronise by messages. If they write into each other's words, a round of the job is
 * like one of the stack, with ranks in place of devices. */
LOOM_FN int barrier_by_messages(const struct loom_ctx *c, enum loom_scope scope)
{
	return scope == LOOM_SCOPE_JOB && barrier_direct(c) <= 1;
}

/* ---- ops ------------------------------------------------------------------------------------------- */

LOOM_FN int BARRIER_OP(arrive)(struct loom_ctx *c, enum loom_scope scope)
{
	if (scope == LOOM_SCOPE_WORKER)
		return 0; /* the lanes synchronise when the round ends */
	return barrier_rejects(c, scope) ? LOOM_ENOTSUP : barrier_slot_arrive(c, barrier_slot(scope));
}

LOOM_FN int BARRIER_OP(test)(struct loom_ctx *c, enum loom_scope scope)
{
	if (scope == LOOM_SCOPE_WORKER)
		loom_barrier_lanes(c);
	if (scope == LOOM_SCOPE_WORKER || barrier_rejects(c, scope))
		return scope == LOOM_SCOPE_WORKER ? 0 : LOOM_ENOTSUP;
	return barrier_by_messages(c, scope) ? barrier_job(c, 1, 0) : barrier_slot_test(c, barrier_slot(scope));
}

LOOM_FN int BARRIER_OP(await)(struct loom_ctx *c, enum loom_scope scope, uint64_t timeout_ns)
{
	if (scope == LOOM_SCOPE_WORKER)
		loom_barrier_lanes(c);
	if (scope == LOOM_SCOPE_WORKER || barrier_rejects(c, scope))
		return scope == LOOM_SCOPE_WORKER ? 0 : LOOM_ENOTSUP;
	return barrier_by_messages(c, scope) ? barrier_job(c, 0, timeout_ns)
					     : barrier_slot_await(c, barrier_slot(scope), timeout_ns);
}

LOOM_FN int BARRIER_OP(wait)(struct loom_ctx *c, enum loom_scope scope)
{
	if (scope == LOOM_SCOPE_WORKER)
		loom_barrier_lanes(c);
	if (scope == LOOM_SCOPE_WORKER || barrier_rejects(c, scope))
		return scope == LOOM_SCOPE_WORKER ? 0 : LOOM_ENOTSUP;
	if (!barrier_by_messages(c, scope))
		return barrier_slot_wait(c, barrier_slot(scope));
	barrier_slot_arrive(c, BARRIER_JOB);
	return barrier_job(c, 0, 0);
}

LOOM_FN int BARRIER_OP(drop)(struct loom_ctx *c, enum loom_scope scope)
{
	if (scope == LOOM_SCOPE_WORKER || scope == LOOM_SCOPE_JOB || barrier_rejects(c, scope))
		return LOOM_ENOTSUP;
#ifdef BARRIER_HAS_GROUPS
	struct barrier_state *h = barrier_state(c);
	uint32_t slot = barrier_slot(scope);
	if (h->drops != BARRIER_DROP)
		return LOOM_ENOTSUP;
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		uint32_t round = ++barrier_local(c)->round[slot];
		loom_store_relaxed_sys(&((struct barrier_arrival *)c->own[LOOM_BARRIER])->arrived[slot],
				       round + BARRIER_LEFT_AHEAD);
		barrier_remember(c, h, slot, round);
		barrier_leave(c, h, slot, round);
	}
	return 0;
#else
	return LOOM_ENOTSUP;
#endif
}

LOOM_FN uint32_t BARRIER_OP(missing)(struct loom_ctx *c, enum loom_scope scope, uint32_t *worker)
{
	uint64_t n = 0, first = 0;
	if (scope == LOOM_SCOPE_WORKER || barrier_rejects(c, scope))
		return 0;
	if (c->lane == 0) {
		uint32_t slot = barrier_slot(scope), round = barrier_local(c)->round[slot];
		uint32_t from = slot ? 0 : c->first, count = slot ? c->workers : c->count; /* first worker and number */
		const uint32_t *group =
		    slot < BARRIER_GROUP ? (const uint32_t *)0 : barrier_group_of(c, barrier_state(c), slot);
		for (uint32_t i = 0; i < count; i++) {
			struct barrier_arrival *arrival =
			    (struct barrier_arrival *)loom_public(c, LOOM_BARRIER, from + i);
			if (group && group[i] != group[c->worker])
				continue;
			if (!barrier_reached(loom_load_relaxed_sys(&arrival->arrived[slot]), round) && !n++)
				first = from + i;
		}
	}
	n = loom_from_lane0(c, n);
	first = loom_from_lane0(c, first);
	if (n)
		*worker = (uint32_t)first;
	return (uint32_t)n;
}

#endif
