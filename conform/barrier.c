/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers: no worker leaves a round before the last one arrives, and writes before a barrier are visible after it. */
#include <gpuloom/barrier.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conform/stand.h"
#include "conform/tests.h"
#include "lib/random.h"

enum { LANES = 8 };

struct state {
	uint64_t rounds, rough, trial;
	uint32_t scope;  /* enum loom_scope; MIXED: each round has its own */
	uint32_t absent; /* the worker that never arrives; ~0: all arrive */
	int32_t expect;  /* the error that waits return when the run is stopped */
	uint32_t split;  /* arrive(), test() and await() in place of wait() */
	uint32_t scopes; /* MIXED: the number of scopes in use, from the first of enum loom_scope */
	uint32_t groups; /* 1: every second round is one of a grouping: group_of() */
	uint32_t leave;  /* number of workers, the last ones, that leave in mid-run */
	uint64_t left;   /* workers whose wait returned `expect` */
	uint64_t gate;   /* deadline test: workers that have reported the absent one as missing */
	/* The current round of each lane: plain words, which only the barrier orders. */
	uint64_t at[LOOM__RIG_WORKERS][LANES];
	/* For a thread sanitizer. Two of them, because a lane one round ahead writes while others read. */
	uint64_t noted[2][LOOM__RIG_WORKERS][LANES];
};
enum { MIXED = 9 };

static struct state *state_of(const struct loom_ctx *c)
{
	return c->global[LOOM_WORKLOAD];
}

/* Two groupings: the first one has two groups of workers in turn, without worker 4; the second one pairs neighbours. */
static uint32_t group_of(uint32_t grouping, uint32_t worker)
{
	return grouping ? worker / 2 : worker == 4 ? LOOM_NO_GROUP : worker % 2;
}

static void check(struct loom_ctx *c, enum loom_scope scope, uint64_t round)
{
	static const char *const name[] = {"worker", "device", "stack", "job", "group", "second group"};
	struct state *h = state_of(c);
	uint32_t from = scope >= LOOM_SCOPE_STACK    ? 0 /* with one rank, the job is its stack */
			: scope == LOOM_SCOPE_DEVICE ? c->first
						     : c->worker;
	uint32_t n = scope >= LOOM_SCOPE_STACK    ? c->workers
		     : scope == LOOM_SCOPE_DEVICE ? c->count
						  : 1;
	for (uint32_t w = from; w < from + n; w++) {
		uint32_t k = (uint32_t)scope - LOOM_SCOPE_GROUP;
		if (scope >= LOOM_SCOPE_GROUP && group_of(k, w) != group_of(k, c->worker))
			continue;
		for (uint32_t lane = 0; lane < c->lanes; lane++) {
			uint64_t at = __atomic_load_n(&h->at[w][lane], __ATOMIC_RELAXED);
			if (h->scope != MIXED && !h->groups)
				loom__note_read(&h->noted[round % 2][w][lane], 8);
			if (at >= round)
				continue;
			loom__fault_stop(c, h->trial,
				    "early release: lane %u of worker %u left the barrier of the "
				    "%s in round %llu, "
				    "when lane %u of worker %u had reached round %llu only",
				    c->lane, c->worker, name[scope], (unsigned long long)round,
				    lane, w, (unsigned long long)at);
			return;
		}
	}
}

/* Runs one round. `split` selects a sequence of arrive(), test() and await(); 0: wait(). */
static int meet_once(struct loom_ctx *c, enum loom_scope scope, uint64_t split)
{
	if (!split)
		return c->barrier->wait(c, scope);
	int code = c->barrier->arrive(c, scope);
	for (uint64_t polls = split % 3 ? split % 40 : ~0ull; !code && polls; polls--) {
		code = c->barrier->test(c, scope);
		if (code != LOOM_EAGAIN)
			return code;
		code = 0;
		loom_pause(c);
	}
	do
		code = code && code != LOOM_ETIMEDOUT ? code : c->barrier->await(c, scope, split % 2 ? 0 : 20000);
	while (code == LOOM_ETIMEDOUT);
	return code;
}

/* Drops all scopes of the worker, that of this round and the others, because other workers may wait there. */
static void leave(struct loom_ctx *c, const struct state *h, enum loom_scope scope)
{
	int code = scope == LOOM_SCOPE_WORKER ? 0 : c->barrier->drop(c, scope);
	for (uint32_t s = LOOM_SCOPE_DEVICE; s <= LOOM_SCOPE_GROUP + 1 && !code; s++) {
		int is_of = s < LOOM_SCOPE_JOB ? h->scope == MIXED || h->scope == s
			    : s >= LOOM_SCOPE_GROUP && h->groups
				? group_of(s - LOOM_SCOPE_GROUP, c->worker) != LOOM_NO_GROUP
				: 0;
		if (is_of && s != (uint32_t)scope)
			code = c->barrier->drop(c, (enum loom_scope)s);
	}
	if (code)
		loom__fault_stop(c, h->trial, "drop() returns %d (%s) to worker %u", code, loom_strerror(code),
				 c->worker);
}

static void body(struct loom_ctx *c)
{
	struct state *h = state_of(c);
	if (c->worker == h->absent)
		return;
	for (uint64_t round = 1; round <= h->rounds; round++) {
		enum loom_scope scope =
		    h->scope == MIXED ? (enum loom_scope)(round % h->scopes) : (enum loom_scope)h->scope;
		if (h->groups && round % 2) {
			scope = (enum loom_scope)(LOOM_SCOPE_GROUP + round / 2 % 2);
			if (group_of(round / 2 % 2, c->worker) == LOOM_NO_GROUP)
				continue;
		}
		if (h->rough)
			loom__dawdle(c);
		/* A late lane exposes an early release. */
		if (c->lane && loom__mix64(round * LANES + c->lane) % 32 == 0)
			nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
		if (c->worker >= c->workers - h->leave && round >= h->rounds / 2 + c->worker % 3) {
			__atomic_store_n(&h->at[c->worker][c->lane], ~0ull, __ATOMIC_RELAXED);
			leave(c, h, scope);
			return;
		}
		__atomic_store_n(&h->at[c->worker][c->lane], round, __ATOMIC_RELAXED);
		if (h->scope != MIXED && !h->groups)
			loom__note_write(&h->noted[round % 2][c->worker][c->lane], 8);
		int code = meet_once(c, scope, h->split ? round : 0);
		if (code && code == h->expect) {
			if (c->lane == 0)
				__atomic_add_fetch(&h->left, 1, __ATOMIC_RELAXED);
			return;
		}
		if (code)
			return loom__fault_stop(c, h->trial, "a wait returns %d (%s) to worker %u; a stop returns %s",
						code, loom_strerror(code), c->worker,
						h->expect == LOOM_EDIED ? "LOOM_EDIED" : "LOOM_EINTR");
		check(c, scope, round);
	}
}

struct party {
	uint32_t devices, workers, lanes, scope, absent;
	uint64_t rounds, seed, limit_ns;
	int stopped; /* the test stops the run */
	int split, noncoherent, groups;
	uint32_t leave;
	int died; /* the reason for the stop: the device of the absent worker died */
};

/* Returns the scope of the job if the plug-in has it, else that of the stack. */
static uint32_t widest(const struct loom__trial *t)
{
	return t->plugin->caps & LOOM_CAP_BARRIER(LOOM_SCOPE_JOB) ? LOOM_SCOPE_JOB : LOOM_SCOPE_STACK;
}

static int has_groups(const struct loom__trial *t)
{
	return (t->plugin->caps & LOOM_CAP_BARRIER(LOOM_SCOPE_GROUP)) != 0;
}

static int has_drop(const struct loom__trial *t)
{
	return (t->plugin->caps & LOOM_CAP_BARRIER_DROP) != 0;
}

static void device_dies(struct loom__rig *r)
{
	loom__rig_interrupt(r, LOOM_EDIED, 1);
}

static int meet(struct loom__trial *t, const struct party *p, struct loom__settings *s, int samples)
{
	struct loom__rig r;
	struct loom__rig_want want = {
	    .devices = p->devices, .workers = p->workers, .lanes = p->lanes, .seed = p->seed, .hidden = 1,
	    .noncoherent = (uint32_t)p->noncoherent};
	char text[300];
	uint32_t group[2 * LOOM__RIG_WORKERS];
	for (uint32_t w = 0; w < 2 * p->workers; w++)
		group[w] = group_of(w / p->workers, w % p->workers);
	const struct loom_barrier_scopes scopes = {
	    .groupings = p->groups ? 2 : 0, .drops = p->leave > 0, .group = group};
	want.barrier_scopes = &scopes;
	want.bytes[LOOM_WORKLOAD] = sizeof(struct state);
	int opened = (p->noncoherent ? loom__stand_try : loom__stand_open)(&r, t, &want, s);
	if (opened)
		return opened == LOOM__REFUSED ? loom__skip(t, "%s", t->refusal) : opened;
	if (p->died) {
		r.want.midway = device_dies;
		r.want.midway_ns = LOOM__SECOND / 50;
	}
	loom__say_case(t, p->seed, "%llu rounds; %s", (unsigned long long)p->rounds,
		       loom__stand_text(&r, text, sizeof(text)));
	struct state *h = loom__rig_block(&r, LOOM_WORKLOAD);
	while (samples-- > 0) {
		*h = (struct state){.rounds = p->rounds,
				   .rough = (uint64_t)t->rough,
				   .trial = (uint64_t)(uintptr_t)t,
				   .scope = p->scope,
				   .expect = p->died ? LOOM_EDIED : LOOM_EINTR,
				   .split = (uint32_t)p->split,
				   .scopes = p->leave ? LOOM_SCOPE_STACK + 1 : widest(t) + 1,
				   .groups = (uint32_t)p->groups,
				   .leave = p->leave,
				   .absent = p->absent};
		LOOM__TRY(loom__stand_init(&r));
		int late = loom__rig_run(&r, body, p->limit_ns ? p->limit_ns : 10 * LOOM__SECOND);
		LOOM__TRY(loom__faulted(t));
		if (p->stopped && h->left != p->workers - 1)
			return loom__fault(
			    t, "%llu of %u workers that waited returned %s when the run was stopped",
			    (unsigned long long)h->left, p->workers - 1, p->died ? "LOOM_EDIED" : "LOOM_EINTR");
		if (!p->stopped && late)
			return loom__fault(t, "all workers have arrived at the barrier, but are not released");
		LOOM__TRY(p->stopped ? loom__stand_guards(&r) : loom__stand_check(&r));
	}
	loom__stand_close(&r);
	return 0;
}

#define MEET(samples, ...) meet(t, &(struct party){__VA_ARGS__}, NULL, samples)

int loom__test_barrier_rounds(struct loom__trial *t)
{
	static const uint32_t workers[] = {1, 2, 3, 4, 5, 8};
	for (size_t i = 0; i < LOOM__COUNT(workers); i++)
		for (uint32_t devices = 1; devices <= 3 && devices <= workers[i]; devices++)
			LOOM__TRY(MEET(2, .devices = devices, .workers = workers[i], .lanes = 1,
				       .scope = devices == 2 ? MIXED : LOOM_SCOPE_STACK, .absent = ~0u,
				       .rounds = workers[i] > 4 ? 500 : 2000, .seed = t->seed));
	return 0;
}

int loom__test_barrier_device(struct loom__trial *t)
{
	LOOM__TRY(MEET(2, .devices = 2, .workers = 5, .lanes = 1, .scope = LOOM_SCOPE_DEVICE, .absent = ~0u,
		       .rounds = 1000, .seed = t->seed));
	/* The only worker of the other device does not arrive, which must not affect the first device. */
	return MEET(2, .devices = 2, .workers = 3, .lanes = 1, .scope = LOOM_SCOPE_DEVICE, .absent = 0,
		    .rounds = 1000, .seed = t->seed);
}

int loom__test_barrier_lanes(struct loom__trial *t)
{
	for (uint32_t i = 0; i < 4; i++)
		LOOM__TRY(MEET(2, .devices = 1 + i / 2, .workers = 2 + i / 2, .lanes = i % 2 ? 4 : 3,
			       .scope = i == 3 ? MIXED : i, .absent = ~0u, .rounds = 150, .seed = t->seed));
	return 0;
}

int loom__test_barrier_stop(struct loom__trial *t)
{
	for (uint32_t lanes = 1; lanes < 3; lanes++)
		LOOM__TRY(MEET(2, .devices = 2, .workers = 4, .lanes = lanes, .scope = LOOM_SCOPE_STACK,
			       .absent = 2, .rounds = 10, .seed = t->seed, .limit_ns = LOOM__SECOND / 20,
			       .stopped = 1));
	return 0;
}

/* The device of the absent worker dies. */
int loom__test_barrier_died(struct loom__trial *t)
{
	return MEET(2, .devices = 2, .workers = 4, .lanes = 1, .scope = LOOM_SCOPE_STACK, .absent = 2, .rounds = 10,
		    .seed = t->seed, .limit_ns = LOOM__SECOND / 20, .stopped = 1, .died = 1);
}

int loom__test_barrier_split(struct loom__trial *t)
{
	for (uint32_t i = 0; i < 6; i++)
		LOOM__TRY(MEET(2, .devices = 1 + i % 3, .workers = 3 + i % 2, .lanes = i == 5 ? 3 : 1,
			       .scope = i % 2    ? LOOM_SCOPE_DEVICE
					: i == 4 ? widest(t)
						 : LOOM_SCOPE_STACK,
			       .absent = ~0u, .rounds = i == 5 ? 100 : 400, .seed = t->seed, .split = 1));
	return 0;
}

int loom__test_barrier_noncoherent(struct loom__trial *t)
{
	for (uint32_t i = 0; i < 6; i++)
		LOOM__TRY(MEET(2, .devices = 2 + i / 2, .workers = 5, .lanes = 1, .scope = i ? LOOM_SCOPE_STACK : MIXED,
			       .absent = ~0u, .rounds = 500, .seed = t->seed, .split = i % 2, .noncoherent = 1,
			       .groups = i > 3 && has_groups(t), .leave = i > 2 && has_drop(t) ? 3 : 0));
	return 0;
}

int loom__test_barrier_groups(struct loom__trial *t)
{
	static const uint32_t workers[] = {2, 3, 5, 8};
	if (!has_groups(t))
		return loom__skip(t, "it has no groups");
	for (uint32_t i = 0; i < 8; i++)
		LOOM__TRY(MEET(2, .devices = 1 + i / 4 + i % 2 * (i > 2), .workers = workers[i % 4],
			       .lanes = i == 7 ? 3 : 1, .scope = LOOM_SCOPE_STACK, .absent = ~0u,
			       .rounds = i == 7 ? 60 : 400, .seed = t->seed, .split = i % 3 == 1, .groups = 1));
	return 0;
}

int loom__test_barrier_drop(struct loom__trial *t)
{
	if (!has_drop(t))
		return loom__skip(t, "it has no drop()");
	/* With 3 devices, all workers of the last one leave; in the last cases, those of two devices. */
	for (uint32_t i = 0; i < 12; i++)
		LOOM__TRY(MEET(2, .devices = 1 + i % 3, .workers = 6, .lanes = i == 11 ? 3 : 1,
			       .scope = i % 4 == 3 ? MIXED
					: i % 4    ? LOOM_SCOPE_STACK
						   : LOOM_SCOPE_DEVICE,
			       .absent = ~0u, .rounds = i == 11 ? 60 : 300, .seed = t->seed, .split = i % 2,
			       .leave = i < 6   ? 3
					: i < 9 ? 5
						: 6,
			       .groups = i > 6 && has_groups(t)));
	return 0;
}

/* One worker arrives only after the deadlines of the others have passed and missing() has named it. */
static void late_body(struct loom_ctx *c)
{
	struct state *h = state_of(c);
	enum loom_scope scope = (enum loom_scope)h->scope;
	uint32_t who = ~0u;
	int code;
	if (c->worker == h->absent) {
		/* Acquire: pairs with the fetch-and-add of the other workers below. */
		while (__atomic_load_n(&h->gate, __ATOMIC_ACQUIRE) + 1 < c->count && !loom_stopped(c))
			loom_pause(c);
		code = c->barrier->wait(c, scope);
	} else {
		code = c->barrier->arrive(c, scope);
		for (int i = 0; i < 3 && !code; i++) {
			code = c->barrier->await(c, scope, LOOM__SECOND / 200);
			if (code != LOOM_ETIMEDOUT)
				return loom__fault_stop(
				    c, h->trial,
				    "await() with a deadline of 5 ms returns %d, where worker %u has not arrived", code,
				    h->absent);
			code = 0;
		}
		/* Workers other than the absent one may arrive late. */
		for (uint64_t end = loom_clock_ns(c) + 2 * LOOM__SECOND;
		     c->barrier->missing(c, scope, &who) != 1 && loom_from_lane0(c, loom_clock_ns(c) < end);)
			loom_pause(c);
		if (who != h->absent)
			return loom__fault_stop(c, h->trial, "missing() names worker %d where %u has not arrived",
						(int)who, h->absent);
		__atomic_add_fetch(&h->gate, c->lane == 0, __ATOMIC_ACQ_REL);
		code = code ? code : c->barrier->await(c, scope, 0);
	}
	code = code ? code : c->barrier->wait(c, scope); /* The round has ended, and a further one must work. */
	if (code && !loom_stopped(c))
		loom__fault_stop(c, h->trial, "a wait that follows a deadline returns %d (%s)", code,
				 loom_strerror(code));
}

int loom__test_barrier_deadline(struct loom__trial *t)
{
	for (uint32_t i = 0; i < 5; i++) {
		struct loom__rig r;
		struct loom__rig_want want = {
		    .devices = 1, .workers = 3, .lanes = i == 3 ? 3 : 1, .seed = t->seed, .hidden = 1};
		want.bytes[LOOM_WORKLOAD] = sizeof(struct state);
		LOOM__TRY(loom__stand_open(&r, t, &want, NULL));
		*(struct state *)loom__rig_block(&r, LOOM_WORKLOAD) =
		    (struct state){.trial = (uint64_t)(uintptr_t)t,
				  .scope = i % 2 ? LOOM_SCOPE_DEVICE : i == 4 ? widest(t) : LOOM_SCOPE_STACK,
				  .absent = (i + 1) % 3};
		LOOM__TRY(
		    loom__stand_run(&r, late_body, 4 * LOOM__SECOND,
				    "await() does not end at its deadline, or a round that was late does not end"));
		LOOM__TRY(loom__stand_check(&r));
		loom__stand_close(&r);
	}
	return 0;
}

int loom__test_barrier_rough(struct loom__trial *t)
{
	for (uint32_t i = 0; i < 12; i++)
		LOOM__TRY(MEET(1, .devices = 1 + i % 4, .workers = 4 + i, .lanes = i % 6 == 5 ? 2 : 1,
			       .scope = i % 2 ? MIXED : LOOM_SCOPE_STACK, .absent = ~0u, .rounds = 60,
			       .seed = t->seed + i, .split = i % 3 == 2));
	return 0;
}

static int fuzz(struct loom__trial *t, uint64_t seed, struct loom__chance *chance, struct loom__settings *s)
{
	struct party p = {.devices = 1 + (uint32_t)loom__draw_below(chance, 5),
			  .lanes = loom__one_in(chance, 4) ? 3 : 1,
			  .scope = loom__one_in(chance, 2) ? MIXED : LOOM_SCOPE_STACK,
			  .absent = ~0u,
			  .rounds = 20 + loom__draw_below(chance, 100),
			  .split = loom__one_in(chance, 2),
			  .groups = has_groups(t) && loom__one_in(chance, 3),
			  .seed = seed};
	p.workers = p.devices + (uint32_t)loom__draw_below(chance, p.lanes > 1 ? 4 : 12);
	if (has_drop(t) && loom__one_in(chance, 3))
		p.leave = 1 + (uint32_t)loom__draw_below(chance, p.workers);
	return meet(t, &p, s, 1);
}

int loom__test_barrier_fuzz(struct loom__trial *t)
{
	return loom__fuzz(t, fuzz, 0);
}
