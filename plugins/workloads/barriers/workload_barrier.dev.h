/* SPDX-License-Identifier: Apache-2.0 */
/* barrier: rounds of a barrier, checked and timed. Device code.
 *
 * In a checked round each worker records that it has arrived at this round. After the barrier it checks the record of
 * another worker. Ranks cannot read each other's records. So with scope = job worker 0 also records the times when it
 * arrived and left. Timed parts have many rounds (study of GPU barriers, 3.2). A short and a long part differ only in
 * the number of rounds. So in the difference of their times all but the barrier cancels out. With the option `work`,
 * workers also compute before the barrier, or between arrive and await. */
#ifndef WORKLOAD_BARRIER_DEV_H
#define WORKLOAD_BARRIER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/barrier.h>
#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>
#endif

enum rounds_part { ROUNDS_SHORT = 0, ROUNDS_LONG, ROUNDS_WAIT, ROUNDS_SPLIT, ROUNDS_WORK, ROUNDS_PARTS };

/* The global block: constant while workers run. */
struct rounds_head {
	uint64_t few, difference, checked, parts, deadline_ns;
	uint32_t scope, work;
	uint32_t absent; /* index of a worker that never arrives (fault injection); ~0: none */
	uint32_t stay;   /* workers below this index stay, all others leave for good */
	uint64_t leave;  /* checked round after which all other workers leave; ~0: no worker leaves */
	uint32_t teams, pad;
};
#define ROUNDS_LEFT (~0ull) /* value of `round` of a worker that has left for good */

/* When worker 0 arrived at a checked round of the job, and when it left. */
struct rounds_stamp {
	uint64_t arrived, left;
};
enum { ROUNDS_STAMPS = 512 }; /* number of rounds, from the first on, that have a stamp */

/* A worker's block. Its times follow, [parts][ROUNDS_PARTS]; then, with scope = job, [ROUNDS_STAMPS] stamps. */
struct rounds_record {
	uint64_t round; /* checked round at which this worker has arrived; other workers read it */
	uint64_t pad[15];
	uint64_t early, early_round, early_by; /* number of early releases; round and late worker of the first */
	uint64_t rounds;                       /* number of completed rounds, checked or timed */
	uint64_t pad1[12];
};

/* Options on which device code branches in each round. A program for GPUs has them as constants, which
 * rounds_constants() defines. */
#ifdef ROUNDS_CONSTANTS
#define ROUNDS_OPT(h, option) ROUNDS_IS_##option
#else
#define ROUNDS_OPT(h, option) ((h)->option)
#endif

LOOM_FN struct rounds_record *rounds_record(const struct loom_ctx *c, uint32_t worker)
{
	return (struct rounds_record *)loom_public(c, LOOM_WORKLOAD, worker);
}

/* Returns 0, or an error if the run is over. If the deadline passes, reports the worker that has not arrived.
 * ROUNDS_OTHER_RANK stands for a worker of another rank. */
#define ROUNDS_OTHER_RANK (~0ull)
LOOM_FN int rounds_wait(struct loom_ctx *c, const struct rounds_head *h)
{
	enum loom_scope scope = (enum loom_scope)ROUNDS_OPT(h, scope);
	uint64_t missing = ROUNDS_OTHER_RANK;
	uint32_t absent = c->worker;
	if (!ROUNDS_OPT(h, deadline_ns))
		return LOOM_CALL(barrier, wait, c, scope);
	int rc = LOOM_CALL(barrier, arrive, c, scope);
	rc = rc ? rc : LOOM_CALL(barrier, await, c, scope, h->deadline_ns);
	if (rc != LOOM_ETIMEDOUT)
		return rc;
	if (LOOM_CALL(barrier, missing, c, scope, &absent))
		missing = absent;
	if (c->lane == 0 && (missing != ROUNDS_OTHER_RANK || scope == LOOM_SCOPE_JOB))
		loom_worker_fail(c, rc, missing);
	return rc;
}

LOOM_FN int rounds_split(struct loom_ctx *c, const struct rounds_head *h, uint32_t work)
{
	enum loom_scope scope = (enum loom_scope)ROUNDS_OPT(h, scope);
	int rc = LOOM_CALL(barrier, arrive, c, scope);
	for (uint32_t i = 0; i < work; i++)
		loom_random(c);
	rc = rc ? rc : LOOM_CALL(barrier, test, c, scope);
	return rc == LOOM_EAGAIN ? LOOM_CALL(barrier, await, c, scope, h->deadline_ns) : rc;
}

/* Records the round, waits at the barrier, and checks the record of another worker, which is a different one in each
 * round. */
LOOM_FN int rounds_checked(struct loom_ctx *c, const struct rounds_head *h, uint64_t round)
{
	int device = ROUNDS_OPT(h, scope) == LOOM_SCOPE_DEVICE;
	/* Workers of a team have indices that differ by multiples of `step`. */
	uint32_t step = ROUNDS_OPT(h, scope) == LOOM_SCOPE_GROUP ? ROUNDS_OPT(h, teams) : 1;
	uint32_t first = device ? c->first : c->worker % step;
	uint32_t n = device ? c->count : (c->workers - first + step - 1) / step;
	uint32_t other = first + step * (uint32_t)(((c->worker - first) / step + round) % n);
	struct rounds_record *own = rounds_record(c, c->worker);
	if (c->lane == 0)
		loom_store_relaxed_sys(&own->round, round);
	uint64_t arrived = ROUNDS_OPT(h, scope) == LOOM_SCOPE_JOB ? loom_clock_ns(c) : 0;
	int rc = round % 2 && !ROUNDS_OPT(h, deadline_ns) ? rounds_split(c, h, 0) : rounds_wait(c, h);
	if (rc || ROUNDS_OPT(h, scope) == LOOM_SCOPE_WORKER || c->lane)
		return rc;
	if (ROUNDS_OPT(h, scope) == LOOM_SCOPE_JOB && c->worker == 0 && round <= ROUNDS_STAMPS) {
		struct rounds_stamp *stamp =
		    (struct rounds_stamp *)((uint64_t *)(own + 1) + h->parts * ROUNDS_PARTS) + round - 1;
		stamp->arrived = arrived;
		stamp->left = loom_clock_ns(c);
	}
	uint64_t seen = loom_load_relaxed_sys(&rounds_record(c, other)->round);
	if (seen < round && !own->early++) {
		own->early_round = round;
		own->early_by = other;
	}
	return 0;
}

LOOM_FN void rounds_work(struct loom_ctx *c, uint32_t work)
{
	for (uint32_t i = 0; i < work; i++)
		loom_random(c);
}

/* Runs a round in which every second worker is late. In the next round the other workers are late. */
LOOM_FN int rounds_with_work(struct loom_ctx *c, const struct rounds_head *h, enum rounds_part part, uint64_t round)
{
	int rc = 0;
	rounds_work(c, (c->worker + round) % 2 ? h->work : 0);
	if (part == ROUNDS_SPLIT)
		return rounds_split(c, h, h->work);
	if (part == ROUNDS_WAIT)
		rc = rounds_wait(c, h);
	rounds_work(c, h->work);
	return rc;
}

LOOM_FN int rounds_part(struct loom_ctx *c, const struct rounds_head *h, enum rounds_part part, uint64_t *ns)
{
	/* 32 bits, because all lanes count, and 64 bits would take more time */
	uint32_t n = (uint32_t)(part == ROUNDS_LONG ? h->few + h->difference : h->few);
	int rc = rounds_wait(c, h); /* all workers start together */
	uint64_t begin = loom_clock_ns(c);
	if (part <= ROUNDS_LONG || !ROUNDS_OPT(h, work))
		for (uint32_t round = 0; round < n && !rc; round++)
			rc = rounds_wait(c, h);
	else
		for (uint32_t round = 0; round < n && !rc; round++)
			rc = rounds_with_work(c, h, part, round);
	*ns = loom_clock_ns(c) - begin;
	return rc;
}

LOOM_FN void rounds_leave(struct loom_ctx *c, const struct rounds_head *h, uint64_t rounds)
{
	struct rounds_record *own = rounds_record(c, c->worker);
	if (c->lane == 0) {
		own->rounds = rounds;
		loom_store_relaxed_sys(&own->round, ROUNDS_LEFT);
	}
#if !defined(ROUNDS_CONSTANTS) || ROUNDS_IS_leave /* not every barrier has the op drop */
	int rc = LOOM_CALL(barrier, drop, c, (enum loom_scope)ROUNDS_OPT(h, scope));
	if (rc && c->lane == 0)
		loom_worker_fail(c, rc, c->worker);
#else
	(void)h;
#endif
}

LOOM_FN void workload_barrier_kernel(struct loom_ctx *c)
{
	const struct rounds_head *h = (const struct rounds_head *)c->global[LOOM_WORKLOAD];
	struct rounds_record *own = rounds_record(c, c->worker);
	uint64_t *time = (uint64_t *)(own + 1), ns = 0, rounds = 0;
	int rc = 0;
	if (c->worker == h->absent)
		return;
	for (uint64_t round = 1; round <= h->checked && !rc; round++, rounds++) {
		if (c->worker >= h->stay && round == h->leave + 1) {
			rounds_leave(c, h, rounds);
			return;
		}
		rc = rounds_checked(c, h, round);
	}
	for (uint64_t i = 0; i < h->parts && !rc; i++)
		for (uint32_t part = 0; part < (ROUNDS_OPT(h, work) ? ROUNDS_PARTS : ROUNDS_WAIT) && !rc; part++) {
			rc = rounds_part(c, h, (enum rounds_part)part, &ns);
			rounds += 1 + (part == ROUNDS_WORK ? 0 : part == ROUNDS_LONG ? h->few + h->difference : h->few);
			if (c->lane == 0)
				time[i * ROUNDS_PARTS + part] = ns;
		}
	if (c->lane == 0 && !rc)
		own->rounds = rounds;
	if (rc && rc != LOOM_EINTR && rc != LOOM_ETIMEDOUT && c->lane == 0)
		loom_worker_fail(c, rc, c->worker);
}

#endif
