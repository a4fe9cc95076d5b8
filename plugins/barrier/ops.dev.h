/* SPDX-License-Identifier: Apache-2.0 */
/* The ops of a barrier plug-in. Before it stand word.dev.h and what differs. Lane 0 comes. Who looks: lane 0, or all lanes of
 * a wave at the same word; with BARRIER_ALONE lane 0 in any case; with BARRIER_BY_LANES all lanes, each at words of its own.
 *   BARRIER_OP(op)                 the name of an op
 *   barrier_come(c, h, slot, round)    this worker comes
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

LOOM_FN int barrier_refuses(enum loom_scope scope)
{
	return scope != LOOM_SCOPE_DEVICE && scope != LOOM_SCOPE_STACK;
}

LOOM_FN uint32_t barrier_slot(enum loom_scope scope)
{
	return scope == LOOM_SCOPE_STACK;
}

LOOM_FN void barrier_watch(struct loom_ctx *c, uint32_t slot, uint32_t next, uint32_t step, struct barrier_watch *w)
{
	w->word = (struct barrier_word *)0;
	w->seen = w->shared = 0;
	w->wide = barrier_is_wide(c, slot);
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
	while (!barrier_agree(c, (uint32_t)barrier_look(c, h, slot, round, &w))) {
		/* A wave has to agree about this, too, so it asks less often. */
		if ((LOOM_WAVE == 1 || looks % 8 == 0) && barrier_agree(c, (uint32_t)loom_stopped(c))) {
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
			loom_doing(c, LOOM_DOING_MEETING);
		barrier_rest(c, h, &w, looks, &since, left);
		looks = looks < ~0u ? looks + 1 : BARRIER_SAYS + 1;
	}
	if (looks > BARRIER_SAYS && c->lane == 0)
		loom_doing(c, LOOM_DOING_TASKS);
	return rc;
}

/* Lane 0, after all lanes have written what the others shall see: the round. */
LOOM_FN uint32_t barrier_arrive(struct loom_ctx *c, uint32_t slot)
{
	struct barrier_seat *seat = (struct barrier_seat *)c->own[LOOM_BARRIER];
	uint32_t round = ++barrier_self(c)->round[slot];
	/* Before, so that no worker that came is said to be missing; but a GPU's release would have to wait for it. */
#ifndef LOOM_DEVICE_COMPILE
	loom_store_relaxed_sys(&seat->came[slot], round);
#endif
	barrier_come(c, barrier_hall(c), slot, round);
#ifdef LOOM_DEVICE_COMPILE
	loom_store_relaxed_sys(&seat->came[slot], round);
#endif
	return round;
}

/* What those who looked found, to all lanes: also the barrier that lets them read what others wrote. A wave has agreed. */
LOOM_FN int barrier_tell_lanes(struct loom_ctx *c, int rc)
{
#if !defined(BARRIER_BY_LANES) && !defined(BARRIER_ALONE)
	if (LOOM_WAVE > 1)
		return rc;
#endif
	return -(int)loom_word_from_lane0(c, (uint32_t)-rc);
}

LOOM_FN int BARRIER_OP(arrive)(struct loom_ctx *c, enum loom_scope scope)
{
	if (scope == LOOM_SCOPE_WORKER)
		return 0; /* the lanes meet when the round ends */
	if (barrier_refuses(scope))
		return LOOM_ENOTSUP;
	loom_barrier_lanes(c);
	if (c->lane == 0)
		barrier_arrive(c, barrier_slot(scope));
#ifdef BARRIER_BY_LANES
	loom_barrier_lanes(c); /* they all read the round */
#endif
	return 0;
}

LOOM_FN int BARRIER_OP(test)(struct loom_ctx *c, enum loom_scope scope)
{
	uint64_t code = 0;
	if (scope == LOOM_SCOPE_WORKER)
		loom_barrier_lanes(c);
	if (scope == LOOM_SCOPE_WORKER || barrier_refuses(scope))
		return scope == LOOM_SCOPE_WORKER ? 0 : LOOM_ENOTSUP;
	if (c->lane == 0) {
		uint32_t slot = barrier_slot(scope);
		struct barrier_watch w;
		barrier_watch(c, slot, 0, 1, &w);
		if (!barrier_look(c, barrier_hall(c), slot, barrier_self(c)->round[slot], &w))
			code = (uint64_t)-(loom_stopped(c) ? barrier_over(c, slot) : LOOM_EAGAIN);
	}
	return -(int)loom_from_lane0(c, code);
}

LOOM_FN int BARRIER_OP(await)(struct loom_ctx *c, enum loom_scope scope, uint64_t timeout_ns)
{
	int rc = 0;
	if (scope == LOOM_SCOPE_WORKER)
		loom_barrier_lanes(c);
	if (scope == LOOM_SCOPE_WORKER || barrier_refuses(scope))
		return scope == LOOM_SCOPE_WORKER ? 0 : LOOM_ENOTSUP;
	if (BARRIER_LANE_LOOKS(c))
		rc = barrier_await(c, barrier_slot(scope), barrier_agree(c, barrier_self(c)->round[barrier_slot(scope)]),
				   timeout_ns);
#ifdef BARRIER_BY_LANES
	if (c->lanes > 1) {
		struct barrier_self *self = barrier_self(c);
		if (rc)
			loom_store_relaxed_dev(&self->code, (uint32_t)-rc);
		loom_barrier_lanes(c);
		if (c->lane == 0) {
			rc = -(int)loom_load_relaxed_dev(&self->code);
			loom_store_relaxed_dev(&self->code, 0u); /* before the barrier that the broadcast is */
		}
	}
#endif
	return barrier_tell_lanes(c, rc);
}

LOOM_FN int BARRIER_OP(wait)(struct loom_ctx *c, enum loom_scope scope)
{
	int rc = 0;
#ifdef BARRIER_BY_LANES
	rc = BARRIER_OP(arrive)(c, scope);
	return rc ? rc : BARRIER_OP(await)(c, scope, 0);
#else
	loom_barrier_lanes(c);
	if (scope == LOOM_SCOPE_WORKER || barrier_refuses(scope))
		return scope == LOOM_SCOPE_WORKER ? 0 : LOOM_ENOTSUP;
	/* In one: lanes of a GPU that part and meet again twice take longer than the step between. */
	if (BARRIER_LANE_LOOKS(c)) {
		uint32_t slot = barrier_slot(scope), round = c->lane == 0 ? barrier_arrive(c, slot) : 0;
		rc = barrier_await(c, slot, barrier_agree(c, round), 0);
	}
	return barrier_tell_lanes(c, rc);
#endif
}

LOOM_FN uint32_t BARRIER_OP(missing)(struct loom_ctx *c, enum loom_scope scope, uint32_t *worker)
{
	uint64_t n = 0, who = 0;
	if (scope == LOOM_SCOPE_WORKER || barrier_refuses(scope))
		return 0;
	if (c->lane == 0) {
		uint32_t slot = barrier_slot(scope), round = barrier_self(c)->round[slot];
		uint32_t from = slot ? 0 : c->first, count = slot ? c->workers : c->count;
		for (uint32_t i = 0; i < count; i++) {
			struct barrier_seat *seat = (struct barrier_seat *)loom_public(c, LOOM_BARRIER, from + i);
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
