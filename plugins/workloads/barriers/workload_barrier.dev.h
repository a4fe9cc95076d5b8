/* SPDX-License-Identifier: Apache-2.0 */
/* barrier: rounds of a barrier, checked and timed. Device code.
 *
 * In checked rounds each worker notes the round that it has come to, and looks at the note of another one behind the
 * barrier. Ranks do not see each other's notes: of the job's rounds worker 0 notes when it came and when it left. Timed are
 * parts of many rounds (the sync study, 3.2): some, and some more, so that what is not a barrier cancels out; and, with work,
 * rounds beside work that waits, or does not, for the others. */
#ifndef WORKLOAD_BARRIER_DEV_H
#define WORKLOAD_BARRIER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>
#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>
#endif

enum meet_part { MEET_FEW = 0, MEET_MORE, MEET_SYNC, MEET_SPLIT, MEET_WORK, MEET_PARTS };

/* The global block: constant while workers run. */
struct meet_head {
	uint64_t few, difference, checked, parts, deadline_ns;
	uint32_t scope, work;
	uint32_t absent; /* worker that never comes; ~0: all come */
	uint32_t stay;   /* workers that do not leave: the first ones */
	uint64_t leave;  /* the checked round after which the others leave */
	uint32_t teams, pad;
};
#define MEET_LEFT (~0ull) /* the round of who has left */

/* When worker 0 came to a checked round of the job, and when it left. */
struct meet_stamp {
	uint64_t came, left;
};
enum { MEET_STAMPS = 512 }; /* of the first rounds */

/* A worker's block; behind it its times: [parts][MEET_PARTS]; then, of the job, [MEET_STAMPS] stamps. */
struct meet_note {
	uint64_t round; /* that this worker has come to: looked at by others */
	uint64_t pad[15];
	uint64_t early, early_round, early_by; /* what it found of others that it should not */
	uint64_t rounds;                       /* all that it went through */
	uint64_t pad1[12];
};

/* Options that device code branches by in each round: constants of a program for GPUs, see meet_constants(). */
#ifdef MEET_CONSTANTS
#define MEET_OPT(h, option) MEET_IS_##option
#else
#define MEET_OPT(h, option) ((h)->option)
#endif

LOOM_FN struct meet_note *meet_note(const struct loom_ctx *c, uint32_t worker)
{
	return (struct meet_note *)loom_public(c, LOOM_WORKLOAD, worker);
}

/* 0, or the run is over: who is missing after a deadline is reported. */
#define MEET_OTHER_RANK (~0ull)
LOOM_FN int meet_wait(struct loom_ctx *c, const struct meet_head *h)
{
	enum loom_scope scope = (enum loom_scope)MEET_OPT(h, scope);
	uint64_t missing = MEET_OTHER_RANK;
	uint32_t who = c->worker;
	if (!MEET_OPT(h, deadline_ns))
		return LOOM_CALL(barrier, wait, c, scope);
	int rc = LOOM_CALL(barrier, arrive, c, scope);
	rc = rc ? rc : LOOM_CALL(barrier, await, c, scope, h->deadline_ns);
	if (rc != LOOM_ETIMEDOUT)
		return rc;
	if (LOOM_CALL(barrier, missing, c, scope, &who))
		missing = who;
	if (c->lane == 0 && (missing != MEET_OTHER_RANK || scope == LOOM_SCOPE_JOB))
		loom_worker_fail(c, rc, missing);
	return rc;
}

LOOM_FN int meet_split(struct loom_ctx *c, const struct meet_head *h, uint32_t work)
{
	enum loom_scope scope = (enum loom_scope)MEET_OPT(h, scope);
	int rc = LOOM_CALL(barrier, arrive, c, scope);
	for (uint32_t i = 0; i < work; i++)
		loom_random(c);
	rc = rc ? rc : LOOM_CALL(barrier, test, c, scope);
	return rc == LOOM_EAGAIN ? LOOM_CALL(barrier, await, c, scope, h->deadline_ns) : rc;
}

/* All of them note the round, meet, and look at another, each time another one. */
LOOM_FN int meet_checked(struct loom_ctx *c, const struct meet_head *h, uint64_t round)
{
	int device = MEET_OPT(h, scope) == LOOM_SCOPE_DEVICE;
	uint32_t step = MEET_OPT(h, scope) == LOOM_SCOPE_GROUP ? MEET_OPT(h, teams) : 1; /* between workers that meet */
	uint32_t first = device ? c->first : c->worker % step;
	uint32_t n = device ? c->count : (c->workers - first + step - 1) / step;
	uint32_t other = first + step * (uint32_t)(((c->worker - first) / step + round) % n);
	struct meet_note *own = meet_note(c, c->worker);
	if (c->lane == 0)
		loom_store_relaxed_sys(&own->round, round);
	uint64_t came = MEET_OPT(h, scope) == LOOM_SCOPE_JOB ? loom_clock_ns(c) : 0;
	int rc = round % 2 && !MEET_OPT(h, deadline_ns) ? meet_split(c, h, 0) : meet_wait(c, h);
	if (rc || MEET_OPT(h, scope) == LOOM_SCOPE_WORKER || c->lane)
		return rc;
	if (MEET_OPT(h, scope) == LOOM_SCOPE_JOB && c->worker == 0 && round <= MEET_STAMPS) {
		struct meet_stamp *stamp = (struct meet_stamp *)((uint64_t *)(own + 1) + h->parts * MEET_PARTS) + round - 1;
		stamp->came = came;
		stamp->left = loom_clock_ns(c);
	}
	uint64_t seen = loom_load_relaxed_sys(&meet_note(c, other)->round);
	if (seen < round && !own->early++) {
		own->early_round = round;
		own->early_by = other;
	}
	return 0;
}

LOOM_FN void meet_work(struct loom_ctx *c, uint32_t work)
{
	for (uint32_t i = 0; i < work; i++)
		loom_random(c);
}

/* Each second worker comes late, in turn. */
LOOM_FN int meet_beside_work(struct loom_ctx *c, const struct meet_head *h, enum meet_part part, uint64_t round)
{
	int rc = 0;
	meet_work(c, (c->worker + round) % 2 ? h->work : 0);
	if (part == MEET_SPLIT)
		return meet_split(c, h, h->work);
	if (part == MEET_SYNC)
		rc = meet_wait(c, h);
	meet_work(c, h->work);
	return rc;
}

LOOM_FN int meet_part(struct loom_ctx *c, const struct meet_head *h, enum meet_part part, uint64_t *ns)
{
	uint32_t n = (uint32_t)(part == MEET_MORE ? h->few + h->difference : h->few); /* all lanes count: 64 bits would take time */
	int rc = meet_wait(c, h); /* from one start */
	uint64_t begin = loom_clock_ns(c);
	if (part <= MEET_MORE || !MEET_OPT(h, work))
		for (uint32_t round = 0; round < n && !rc; round++)
			rc = meet_wait(c, h);
	else
		for (uint32_t round = 0; round < n && !rc; round++)
			rc = meet_beside_work(c, h, part, round);
	*ns = loom_clock_ns(c) - begin;
	return rc;
}

LOOM_FN void meet_leave(struct loom_ctx *c, const struct meet_head *h, uint64_t rounds)
{
	struct meet_note *own = meet_note(c, c->worker);
	if (c->lane == 0) {
		own->rounds = rounds;
		loom_store_relaxed_sys(&own->round, MEET_LEFT);
	}
#if !defined(MEET_CONSTANTS) || MEET_IS_leave /* not every barrier has it */
	int rc = LOOM_CALL(barrier, drop, c, (enum loom_scope)MEET_OPT(h, scope));
	if (rc && c->lane == 0)
		loom_worker_fail(c, rc, c->worker);
#else
	(void)h;
#endif
}

LOOM_FN void workload_barrier_kernel(struct loom_ctx *c)
{
	const struct meet_head *h = (const struct meet_head *)c->global[LOOM_WORKLOAD];
	struct meet_note *own = meet_note(c, c->worker);
	uint64_t *time = (uint64_t *)(own + 1), ns = 0, rounds = 0;
	int rc = 0;
	if (c->worker == h->absent)
		return;
	for (uint64_t round = 1; round <= h->checked && !rc; round++, rounds++) {
		if (c->worker >= h->stay && round == h->leave + 1) {
			meet_leave(c, h, rounds);
			return;
		}
		rc = meet_checked(c, h, round);
	}
	for (uint64_t i = 0; i < h->parts && !rc; i++)
		for (uint32_t part = 0; part < (MEET_OPT(h, work) ? MEET_PARTS : MEET_SYNC) && !rc; part++) {
			rc = meet_part(c, h, (enum meet_part)part, &ns);
			rounds += 1 + (part == MEET_WORK ? 0 : part == MEET_MORE ? h->few + h->difference : h->few);
			if (c->lane == 0)
				time[i * MEET_PARTS + part] = ns;
		}
	if (c->lane == 0 && !rc)
		own->rounds = rounds;
	if (rc && rc != LOOM_EINTR && rc != LOOM_ETIMEDOUT && c->lane == 0)
		loom_worker_fail(c, rc, c->worker);
}

#endif
