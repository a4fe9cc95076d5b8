/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of a barrier plug-in. Before it stand word.dev.h and what differs. Lane 0 comes. Who looks: lane 0, or all lanes of
 * a wave at the same word; with BARRIER_ALONE lane 0 in any case; with BARRIER_BY_LANES all lanes, each at words of its own.
 *   BARRIER_OP(op)                 the name of an op
 *   barrier_come(c, h, slot, round)    this worker comes; 1: it knows that all have, and need not look
 *   barrier_begin(c, h, slot, w)       a wait begins: w->at; next, step and wide are set
 *   barrier_look(c, h, slot, round, w) 1: all have come, as far as this lane has to look; 0: w->word, w->seen
 * Device code. */
#ifndef BARRIER_OPS_DEV_H
#define BARRIER_OPS_DEV_H

#if defined(BARRIER_BY_LANES)
#define BARRIER_LANE_LOOKS(c) 1
#define barrier_agree(c, v) (v)
#elif defined(BARRIER_ALONE)
#define BARRIER_LANE_LOOKS(c) ((c)->lane == 0)
#define barrier_agree(c, v) (v)
#else
#define BARRIER_LANE_LOOKS(c) ((c)->lane < LOOM_WAVE)
#define barrier_agree(c, v) loom_wave_word(c, v)
#endif

#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SIM)
#define BARRIER_ASKS 8u /* in so many looks whether the run was stopped */
#else
#define BARRIER_ASKS 1u
#endif
#define BARRIER_BRISK 64u /* looks at a counter before the first of these */

#ifdef BARRIER_HAS_GROUPS
LOOM_FN int barrier_refuses(struct loom_ctx *c, enum loom_scope scope)
{
	uint32_t k = (uint32_t)scope - LOOM_SCOPE_GROUP;
	if (scope < LOOM_SCOPE_GROUP)
		return scope != LOOM_SCOPE_DEVICE && scope != LOOM_SCOPE_STACK && scope != LOOM_SCOPE_JOB;
	return k >= barrier_hall(c)->groupings ||
	       barrier_group_of(c, barrier_hall(c), BARRIER_GROUP + k)[c->worker] == LOOM_NO_GROUP;
}
#else
LOOM_FN int barrier_refuses(struct loom_ctx *c, enum loom_scope scope)
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
	w->seen = w->shared = w->counted = w->open = 0;
	w->wide = barrier_is_wide(c, slot);
	w->drops = w->wide && barrier_drops(c, barrier_hall(c));
	w->next = next;
	w->step = step;
	barrier_begin(c, barrier_hall(c), slot, w);
}

/* The lanes that look: until all have come to `round`. */
LOOM_FN int barrier_await(struct loom_ctx *c, uint32_t slot, uint32_t round, uint64_t timeout_ns)
{
	struct barrier_hall *h = barrier_hall(c);
	struct barrier_watch w;
	uint64_t since = 0, begin = 0, left = 0;
	uint32_t looks = 0;
	int rc = 0;
#ifdef BARRIER_BY_LANES
	barrier_watch(c, slot, c->lane, c->lanes, &w);
#else
	barrier_watch(c, slot, 0, 1, &w);
#endif
#ifdef LOOM_DEVICE_COMPILE
	/* Whatever stands between two looks at a counter is time: 0.05 us on an H200. */
	LOOM_NO_UNROLL
	for (uint32_t i = 0; w.counted && !timeout_ns && i < BARRIER_BRISK; i++)
		if (barrier_agree(c, (uint32_t)barrier_look(c, h, slot, round, &w)))
			return 0;
#endif
	while (!barrier_agree(c, (uint32_t)barrier_look(c, h, slot, round, &w))) {
		/* A GPU asks less often: a wave has to agree about this, too, and the word is another that all look at. Behind the
		 * first look it takes 0.1 us, which are well spent only where many wait for a word that one writes. */
		if (looks % BARRIER_ASKS == (w.counted ? BARRIER_ASKS - 1 : 0) && barrier_agree(c, (uint32_t)loom_stopped(c))) {
			rc = -(int)barrier_agree(c, (uint32_t)-barrier_over(c, slot));
			break;
		}
		if (timeout_ns) {
			uint64_t now = loom_clock_ns(c);
			begin = begin ? begin : now;
			left = now - begin < timeout_ns ? timeout_ns - (now - begin) : 0;
			if (barrier_agree(c, !left)) {
				rc = LOOM_ETIMEDOUT;
				break;
			}
		}
		if (looks == BARRIER_SAYS && c->lane == 0)
			loom_set_state(c, LOOM_STATE_BARRIER);
		/* So is a pause. */
		if (!w.counted || looks % BARRIER_ASKS == BARRIER_ASKS - 1)
			barrier_rest(c, h, &w, looks, &since, left);
		looks = looks < ~0u ? looks + 1 : BARRIER_SAYS + 1;
	}
	if (looks > BARRIER_SAYS && c->lane == 0)
		loom_set_state(c, LOOM_STATE_TASKS);
	return rc;
}

/* Lane 0, after all lanes have written what the others shall see. 1: all have come. */
LOOM_FN int barrier_arrive(struct loom_ctx *c, uint32_t slot, uint32_t round)
{
	struct barrier_seat *seat = (struct barrier_seat *)c->own[LOOM_BARRIER];
	/* `came` before, so that no worker that came is said to be missing; but a GPU's release would have to wait for it. */
#ifndef LOOM_DEVICE_COMPILE
	loom_store_relaxed_sys(&seat->came[slot], round);
#endif
	int all = barrier_come(c, barrier_hall(c), slot, round);
#ifdef LOOM_DEVICE_COMPILE
	loom_store_relaxed_sys(&seat->came[slot], round);
#endif
	barrier_self(c)->round[slot] = round;
	return all;
}

/* What those who looked found, to all lanes: also the barrier that lets them read what others wrote. By a word that is not
 * written but after an error: a reduction by the lanes' barrier takes 0.02 us more on a GPU. */
LOOM_FN int barrier_tell_lanes(struct loom_ctx *c, int rc)
{
	struct barrier_self *self = barrier_self(c);
#if !defined(BARRIER_BY_LANES) && !defined(BARRIER_ALONE)
	if (LOOM_WAVE > 1)
		return rc; /* they have agreed */
#endif
	if (rc)
		loom_store_relaxed_dev(&self->code, (uint32_t)-rc); /* several lanes may */
	loom_barrier_lanes(c);
	rc = -(int)self->code;
	if (rc) {
		loom_barrier_lanes(c); /* all have read it */
		if (c->lane == 0)
			self->code = 0;
		loom_barrier_lanes(c);
	}
	return rc;
}

/* ---- workers of this rank, in a slot: collective --------------------------------------------------- */

LOOM_FN int barrier_slot_arrive(struct loom_ctx *c, uint32_t slot)
{
	loom_barrier_lanes(c);
	if (c->lane == 0)
		barrier_arrive(c, slot, barrier_self(c)->round[slot] + 1);
#ifdef BARRIER_BY_LANES
	loom_barrier_lanes(c); /* they all read the round */
#endif
	return 0;
}

LOOM_FN int barrier_slot_test(struct loom_ctx *c, uint32_t slot)
{
	uint64_t code = 0;
	if (c->lane == 0) {
		struct barrier_watch w;
		barrier_watch(c, slot, 0, 1, &w);
		if (!barrier_look(c, barrier_hall(c), slot, barrier_self(c)->round[slot], &w))
			code = (uint64_t)-(loom_stopped(c) ? barrier_over(c, slot) : LOOM_EAGAIN);
	}
	return -(int)loom_from_lane0(c, code);
}

LOOM_FN int barrier_slot_await(struct loom_ctx *c, uint32_t slot, uint64_t timeout_ns)
{
	int rc = 0;
	if (BARRIER_LANE_LOOKS(c))
		rc = barrier_await(c, slot, barrier_agree(c, barrier_self(c)->round[slot]), timeout_ns);
	return barrier_tell_lanes(c, rc);
}

LOOM_FN int barrier_slot_wait(struct loom_ctx *c, uint32_t slot)
{
#ifdef BARRIER_BY_LANES
	barrier_slot_arrive(c, slot);
	return barrier_slot_await(c, slot, 0);
#else
	int rc = 0, all = 0;
	uint32_t round = barrier_self(c)->round[slot] + 1; /* here nobody waits for it; lanes that part would take time */
	loom_barrier_lanes(c);
	/* In one: lanes of a GPU that part and meet again twice take longer than the step between. */
	if (BARRIER_LANE_LOOKS(c)) {
		if (c->lane == 0)
			all = barrier_arrive(c, slot, round);
		/* A lane that awaits the answer looks once less, and does not look while others still come: 0.90 us for 264 workers
		 * of 256 lanes on an H200, else 1.06. A wave that looks in step is the faster without the answer. */
		if (LOOM_WAVE > 1 || !all)
			rc = barrier_await(c, slot, barrier_agree(c, round), 0);
	}
	return barrier_tell_lanes(c, rc);
#endif
}

/* ---- ranks ----------------------------------------------------------------------------------------- */

/* How long a wait that began at `begin` may still last, of `timeout_ns` (0: for good, and so is the answer); ~0: it is over. */
LOOM_FN uint64_t barrier_left(struct loom_ctx *c, uint64_t begin, uint64_t timeout_ns)
{
	uint64_t took = timeout_ns ? loom_clock_ns(c) - begin : 0;
	return took < timeout_ns ? timeout_ns - took : timeout_ns ? ~0ull : 0;
}

#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SELECTS_trigger)
LOOM_FN int barrier_ranks_look(struct loom_ctx *c, const struct barrier_hall *h)
{
	(void)c;
	return h->ranks > 1 ? LOOM_ENOTSUP : 0;
}
#else
/* Lane 0 of worker 0, behind a round of all workers here: dissemination, as far as it goes. 0: all ranks have come, LOOM_EAGAIN or
 * an error. A message of a step that is heard says that its sender was told by all of the steps before. */
LOOM_FN int barrier_ranks_look(struct loom_ctx *c, const struct barrier_hall *h)
{
	struct barrier_self *self = barrier_self(c);
	uint32_t round = (self->round[BARRIER_JOB] + 1) / 2, steps = 0;
	while (1u << steps < h->ranks)
		steps++;
	for (;;) {
		uint32_t step = self->heard - (round - 1) * steps;
		int64_t seen;
		int rc = 0;
		if (step == steps)
			return 0;
		if (self->fired == self->heard)
			rc = LOOM_CALL(trigger, fire, c, (uint64_t)(h->tag + step), 1);
		self->fired += self->fired == self->heard;
		seen = rc ? rc : LOOM_CALL(trigger, arrived, c, h->tag + step);
		if (seen < (int64_t)round)
			return seen < 0 ? (int)seen : LOOM_EAGAIN;
		self->heard++;
	}
}
#endif

/* Worker 0: until all ranks have come. Collective. */
LOOM_FN int barrier_ranks_await(struct loom_ctx *c, uint64_t timeout_ns)
{
	struct barrier_hall *h = barrier_hall(c);
	struct barrier_watch w = {0};
	uint64_t since = 0, begin = timeout_ns ? loom_clock_ns(c) : 0, left = 0;
	int rc = 0;
	loom_set_state(c, LOOM_STATE_MESSAGE);
	for (uint32_t looks = 0; c->lane == 0 && (rc = barrier_ranks_look(c, h)) == LOOM_EAGAIN; looks += looks < ~0u) {
		left = barrier_left(c, begin, timeout_ns);
		if (loom_stopped(c))
			rc = barrier_over(c, BARRIER_JOB);
		else if (left == ~0ull)
			rc = LOOM_ETIMEDOUT;
		if (rc != LOOM_EAGAIN)
			break;
		barrier_rest(c, h, &w, looks, &since, left);
	}
	loom_set_state(c, LOOM_STATE_TASKS);
	return -(int)loom_word_from_lane0(c, (uint32_t)-rc);
}

/* A round of the job to which this worker has come goes on. once: it is looked at, and not waited for. Collective. */
LOOM_FN int barrier_job(struct loom_ctx *c, int once, uint64_t timeout_ns)
{
	struct barrier_self *self = barrier_self(c);
	uint64_t begin = timeout_ns ? loom_clock_ns(c) : 0, left = timeout_ns;
	uint32_t stage = loom_word_from_lane0(c, c->lane == 0 ? self->stage : 0);
	int rc = 0;
	for (; stage <= BARRIER_LEAVING && !rc; stage += !rc) {
		left = barrier_left(c, begin, timeout_ns);
		left = left == ~0ull ? 1 : left; /* a look, as for all others */
		if (stage != BARRIER_RANKS) {
			rc = once ? barrier_slot_test(c, BARRIER_JOB) : barrier_slot_await(c, BARRIER_JOB, left);
			continue;
		}
		if (c->worker == 0 && once)
			rc = -(int)loom_word_from_lane0(c, c->lane == 0 ? (uint32_t)-barrier_ranks_look(c, barrier_hall(c)) : 0);
		else if (c->worker == 0)
			rc = barrier_ranks_await(c, left);
		if (!rc)
			barrier_slot_arrive(c, BARRIER_JOB);
	}
	if (c->lane == 0)
		self->stage = rc ? stage : BARRIER_COMING;
	return rc;
}

/* ---- ops ------------------------------------------------------------------------------------------- */

LOOM_FN int BARRIER_OP(arrive)(struct loom_ctx *c, enum loom_scope scope)
{
	if (scope == LOOM_SCOPE_WORKER)
		return 0; /* the lanes meet when the round ends */
	return barrier_refuses(c, scope) ? LOOM_ENOTSUP : barrier_slot_arrive(c, barrier_slot(scope));
}

LOOM_FN int BARRIER_OP(test)(struct loom_ctx *c, enum loom_scope scope)
{
	if (scope == LOOM_SCOPE_WORKER)
		loom_barrier_lanes(c);
	if (scope == LOOM_SCOPE_WORKER || barrier_refuses(c, scope))
		return scope == LOOM_SCOPE_WORKER ? 0 : LOOM_ENOTSUP;
	return scope == LOOM_SCOPE_JOB ? barrier_job(c, 1, 0) : barrier_slot_test(c, barrier_slot(scope));
}

LOOM_FN int BARRIER_OP(await)(struct loom_ctx *c, enum loom_scope scope, uint64_t timeout_ns)
{
	if (scope == LOOM_SCOPE_WORKER)
		loom_barrier_lanes(c);
	if (scope == LOOM_SCOPE_WORKER || barrier_refuses(c, scope))
		return scope == LOOM_SCOPE_WORKER ? 0 : LOOM_ENOTSUP;
	return scope == LOOM_SCOPE_JOB ? barrier_job(c, 0, timeout_ns) : barrier_slot_await(c, barrier_slot(scope), timeout_ns);
}

LOOM_FN int BARRIER_OP(wait)(struct loom_ctx *c, enum loom_scope scope)
{
	if (scope == LOOM_SCOPE_WORKER)
		loom_barrier_lanes(c);
	if (scope == LOOM_SCOPE_WORKER || barrier_refuses(c, scope))
		return scope == LOOM_SCOPE_WORKER ? 0 : LOOM_ENOTSUP;
	if (scope != LOOM_SCOPE_JOB)
		return barrier_slot_wait(c, barrier_slot(scope));
	barrier_slot_arrive(c, BARRIER_JOB);
	return barrier_job(c, 0, 0);
}

LOOM_FN int BARRIER_OP(drop)(struct loom_ctx *c, enum loom_scope scope)
{
	if (scope == LOOM_SCOPE_WORKER || scope == LOOM_SCOPE_JOB || barrier_refuses(c, scope))
		return LOOM_ENOTSUP;
#ifdef BARRIER_HAS_GROUPS
	struct barrier_hall *h = barrier_hall(c);
	uint32_t slot = barrier_slot(scope);
	if (h->drops != BARRIER_DROP)
		return LOOM_ENOTSUP;
	loom_barrier_lanes(c);
	if (c->lane == 0) {
		uint32_t round = ++barrier_self(c)->round[slot];
		loom_store_relaxed_sys(&((struct barrier_seat *)c->own[LOOM_BARRIER])->came[slot], round + BARRIER_FAR);
		barrier_leave(c, h, slot, round);
	}
	return 0;
#else
	return LOOM_ENOTSUP;
#endif
}

LOOM_FN uint32_t BARRIER_OP(missing)(struct loom_ctx *c, enum loom_scope scope, uint32_t *worker)
{
	uint64_t n = 0, who = 0;
	if (scope == LOOM_SCOPE_WORKER || barrier_refuses(c, scope))
		return 0;
	if (c->lane == 0) {
		uint32_t slot = barrier_slot(scope), round = barrier_self(c)->round[slot];
		uint32_t from = slot ? 0 : c->first, count = slot ? c->workers : c->count; /* of this rank */
		const uint32_t *group = slot < BARRIER_GROUP ? (const uint32_t *)0 : barrier_group_of(c, barrier_hall(c), slot);
		for (uint32_t i = 0; i < count; i++) {
			struct barrier_seat *seat = (struct barrier_seat *)loom_public(c, LOOM_BARRIER, from + i);
			if (group && group[i] != group[c->worker])
				continue;
			if (!barrier_reached(loom_load_relaxed_sys(&seat->came[slot]), round) && !n++)
				who = from + i;
		}
	}
	n = loom_from_lane0(c, n);
	who = loom_from_lane0(c, who);
	if (n)
		*worker = (uint32_t)who;
	return (uint32_t)n;
}

#endif
