/* SPDX-License-Identifier: Apache-2.0 */
/* Barriers: nobody of a scope leaves before its last worker has come, and what was written before
 * is seen after. */
#include <gpuloom/barrier.h>
#include <stdlib.h>
#include <string.h>

#include "validate/rig.h"
#include "validate/tests.h"

enum { LANES = 8 };

struct hall {
	uint64_t rounds, rough, trial;
	uint32_t scope;  /* enum loom_scope; MIXED: by round */
	uint32_t absent; /* this worker never comes; ~0: all come */
	uint64_t left;   /* workers that returned LOOM_EINTR */
	/* The round in which each lane is: plain words, ordered by the barrier alone. */
	uint64_t at[LOOM__RIG_WORKERS][LANES];
};
enum { MIXED = 9 };

static const struct loom_barrier_dev *dev(const struct loom__trial *t)
{
	return t->plugin->dev->cpu;
}

static struct hall *hall_of(const struct loom_ctx *c)
{
	return c->global[LOOM_WORKLOAD];
}

static struct loom__trial *trial_of(const struct loom_ctx *c)
{
	return (struct loom__trial *)(uintptr_t)hall_of(c)->trial;
}

static void look(struct loom_ctx *c, enum loom_scope scope, uint64_t round)
{
	static const char *const name[] = {"worker", "device", "stack"};
	struct hall *h = hall_of(c);
	uint32_t from = scope == LOOM_SCOPE_STACK    ? 0
			: scope == LOOM_SCOPE_DEVICE ? c->first
						     : c->worker;
	uint32_t n = scope == LOOM_SCOPE_STACK    ? c->workers
		     : scope == LOOM_SCOPE_DEVICE ? c->count
						  : 1;
	for (uint32_t w = from; w < from + n; w++)
		for (uint32_t lane = 0; lane < c->lanes; lane++) {
			uint64_t at = __atomic_load_n(&h->at[w][lane], __ATOMIC_RELAXED);
			if (at >= round)
				continue;
			loom__fault(trial_of(c),
				    "early release: lane %u of worker %u left the barrier of the "
				    "%s in round %llu, "
				    "when lane %u of worker %u had come to round %llu only",
				    c->lane, c->worker, name[scope], (unsigned long long)round,
				    lane, w, (unsigned long long)at);
			__atomic_store_n(&c->ctl->stop, 1u, __ATOMIC_RELAXED);
			return;
		}
}

static void body(struct loom_ctx *c)
{
	struct hall *h = hall_of(c);
	if (c->worker == h->absent)
		return;
	for (uint64_t round = 1; round <= h->rounds; round++) {
		enum loom_scope scope =
		    h->scope == MIXED ? (enum loom_scope)(round % 3) : (enum loom_scope)h->scope;
		if (h->rough)
			loom__dawdle(c);
		__atomic_store_n(&h->at[c->worker][c->lane], round, __ATOMIC_RELAXED);
		int code = c->barrier->wait(c, scope);
		if (code == LOOM_EINTR) {
			if (c->lane == 0)
				__atomic_add_fetch(&h->left, 1, __ATOMIC_RELAXED);
			return;
		}
		if (code) {
			loom__fault(trial_of(c), "wait() returns %d to worker %u", code, c->worker);
			__atomic_store_n(&c->ctl->stop, 1u, __ATOMIC_RELAXED);
			return;
		}
		look(c, scope, round);
	}
}

struct party {
	uint32_t devices, workers, lanes, scope, absent;
	uint64_t rounds, seed, limit_ns;
	int stopped; /* it is to be stopped: that is the test */
};

static int meet(struct loom__trial *t, const struct party *p, struct loom__settings *s, int samples)
{
	struct loom__rig r;
	struct loom__rig_want want = {
	    .devices = p->devices, .workers = p->workers, .lanes = p->lanes, .seed = p->seed};
	char text[300];
	if (!dev(t))
		return loom__skip(t, "it has no code for the CPU");
	want.bytes[LOOM_WORKLOAD] = sizeof(struct hall);
	want.table[LOOM_BARRIER] = dev(t);
	int verdict = loom__rig_open(&r, t, &want, s);
	if (verdict == LOOM__REFUSED && !s)
		return loom__fault(t, "it refuses its default options");
	if (verdict)
		return verdict;
	loom__say_case(t, p->seed, "%s", loom__rig_text(&r, text, sizeof(text)));
	for (int n = 0; n < samples && !verdict; n++) {
		struct hall *h = loom__rig_block(&r, LOOM_WORKLOAD);
		memset(h, 0, sizeof(*h));
		h->rounds = p->rounds;
		h->scope = p->scope;
		h->absent = p->absent;
		h->rough = (uint64_t)t->rough;
		h->trial = (uint64_t)(uintptr_t)t;
		verdict = loom__rig_init(&r);
		if (verdict)
			break;
		int late = loom__rig_run(&r, body, p->limit_ns ? p->limit_ns : 10 * LOOM__SECOND);
		verdict = loom__faulted(t);
		if (!verdict && p->stopped && h->left != p->workers - 1)
			verdict = loom__fault(
			    t,
			    "%llu of %u workers that waited returned LOOM_EINTR when the run was "
			    "stopped",
			    (unsigned long long)h->left, p->workers - 1);
		if (!verdict && !p->stopped && late)
			verdict = loom__fault(
			    t, "workers that have all come to the barrier are not released");
		if (!verdict)
			verdict = p->stopped ? loom__rig_guards(&r) : loom__rig_check(&r);
	}
	loom__rig_close(&r);
	return verdict;
}

int loom__test_barrier_rounds(struct loom__trial *t)
{
	static const uint32_t workers[] = {1, 2, 3, 4, 5, 8};
	int verdict = 0;
	for (size_t i = 0; i < LOOM__COUNT(workers) && !verdict; i++)
		for (uint32_t devices = 1; devices <= 3 && devices <= workers[i] && !verdict;
		     devices++) {
			struct party p = {.devices = devices,
					  .workers = workers[i],
					  .lanes = 1,
					  .scope = devices == 2 ? MIXED : LOOM_SCOPE_STACK,
					  .absent = ~0u,
					  .rounds = workers[i] > 4 ? 500 : 2000,
					  .seed = t->seed};
			verdict = meet(t, &p, NULL, 2);
		}
	return verdict;
}

int loom__test_barrier_device(struct loom__trial *t)
{
	struct party p = {.devices = 2,
			  .workers = 5,
			  .lanes = 1,
			  .scope = LOOM_SCOPE_DEVICE,
			  .absent = ~0u,
			  .rounds = 1000,
			  .seed = t->seed};
	int verdict = meet(t, &p, NULL, 2);
	/* The other device has one worker, which does not come: that is nobody else's business. */
	p.workers = 3;
	p.absent = 0;
	return verdict ? verdict : meet(t, &p, NULL, 2);
}

int loom__test_barrier_lanes(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t i = 0; i < 4 && !verdict; i++) {
		struct party p = {.devices = 1 + i / 2,
				  .workers = 2 + i / 2,
				  .lanes = i % 2 ? 4 : 3,
				  .scope = i == 3 ? MIXED : i,
				  .absent = ~0u,
				  .rounds = 150,
				  .seed = t->seed};
		verdict = meet(t, &p, NULL, 2);
	}
	return verdict;
}

int loom__test_barrier_stop(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t lanes = 1; lanes < 3 && !verdict; lanes++) {
		struct party p = {.devices = 2,
				  .workers = 4,
				  .lanes = lanes,
				  .scope = LOOM_SCOPE_STACK,
				  .absent = 2,
				  .rounds = 10,
				  .seed = t->seed,
				  .limit_ns = LOOM__SECOND / 20,
				  .stopped = 1};
		verdict = meet(t, &p, NULL, 2);
	}
	return verdict;
}

int loom__test_barrier_rough(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t i = 0; i < 12 && !verdict; i++) {
		struct party p = {.devices = 1 + i % 4,
				  .workers = 4 + i,
				  .lanes = i % 6 == 5 ? 2 : 1,
				  .scope = i % 2 ? MIXED : LOOM_SCOPE_STACK,
				  .absent = ~0u,
				  .rounds = 60,
				  .seed = t->seed + i};
		verdict = meet(t, &p, NULL, 1);
	}
	return verdict;
}

int loom__test_barrier_fuzz(struct loom__trial *t)
{
	uint64_t until = loom__now_ns() + t->fuzz_ns;
	for (uint64_t seed = t->seed; loom__now_ns() < until; seed++) {
		struct loom__chance chance = loom__chance(seed);
		struct loom__settings s;
		struct party p = {.devices = 1 + (uint32_t)loom__draw_below(&chance, 5),
				  .lanes = loom__one_in(&chance, 4) ? 3 : 1,
				  .scope = loom__one_in(&chance, 2) ? MIXED : LOOM_SCOPE_STACK,
				  .absent = ~0u,
				  .rounds = 20 + loom__draw_below(&chance, 100),
				  .seed = seed};
		p.workers = p.devices + (uint32_t)loom__draw_below(&chance, p.lanes > 1 ? 4 : 12);
		if (loom__settings_create(t, &s))
			return loom__skip(t, "out of memory");
		loom__settings_random(t, &s, &chance);
		t->rough = loom__one_in(&chance, 3);
		int verdict = meet(t, &p, &s, 1);
		if (verdict && verdict != LOOM__REFUSED)
			return verdict;
	}
	return 0;
}
