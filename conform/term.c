/* SPDX-License-Identifier: Apache-2.0 */
/* Termination detectors: no end while a unit of work exists, an end soon after the last one. The suite replaces the
 * scheduler and does exactly what term.h promises: first in schedules that a seed repeats, then with threads. */
#include <dlfcn.h>
#include <gpuloom/term.h>
#include <stdlib.h>
#include <string.h>

#include "conform/stand.h"
#include "conform/tests.h"
#include "rig/explore.h"

struct worker {
	uint32_t lock, copying; /* thieves that are copying from this worker */
	uint64_t units, stolen_out;
	uint64_t note; /* plain stores by a worker that has units */
	uint64_t pad[4];
};

struct sim {
	uint64_t units;  /* existing units, with those on the way between two workers */
	uint64_t budget; /* units that may still be spawned */
	uint64_t rough, trial;
	struct worker worker[LOOM__RIG_WORKERS];
};

static const struct loom_term_dev *dev(const struct loom__trial *t)
{
	return t->plugin->dev->cpu;
}

struct game {
	uint32_t devices, workers, lanes;
	uint64_t seed, units, budget;
	int spread; /* 0: all units begin at worker 0; 1: anywhere */
	/* LOOM_NEED_LATE: the host calls idle() for all workers; the first one takes all units; some never start */
	int late;
};

static int open_game(struct loom__rig *r, struct loom__trial *t, const struct game *g, struct loom__settings *s)
{
	struct loom__rig_want want = {
	    .devices = g->devices, .workers = g->workers, .lanes = g->lanes, .seed = g->seed, .hidden = 1};
	char text[300];
	want.bytes[LOOM_SCHED] = sizeof(struct sim);
	LOOM__TRY(loom__stand_open(r, t, &want, s));
	loom__say_case(t, g->seed, "%llu units of work; %s", (unsigned long long)g->units,
		       loom__stand_text(r, text, sizeof(text)));
	return 0;
}

static void deal(struct loom__rig *r, const struct game *g, uint64_t seed)
{
	struct sim *sim = loom__rig_block(r, LOOM_SCHED);
	struct loom__chance chance = loom__chance(seed);
	memset(sim, 0, sizeof(*sim));
	sim->units = g->units;
	sim->budget = g->budget;
	sim->rough = (uint64_t)loom__trial_of(r)->rough;
	sim->trial = (uint64_t)(uintptr_t)loom__trial_of(r);
	for (uint64_t i = 0; i < g->units; i++)
		sim->worker[g->spread ? loom__draw_below(&chance, g->workers) : 0].units++;
}

static int early(struct loom__trial *t, uint32_t worker, uint64_t units)
{
	return loom__fault(t, "early end: done() returned 1 to worker %u, while %llu tasks existed", worker,
			   (unsigned long long)units);
}

/* ---- random schedules --------------------------------------------------------------------------
 * Each worker is a coroutine. Between two calls the next worker is chosen at random. In a plug-in that was compiled
 * with LOOM_PERTURB, so is the next one at each atomic access. */

static struct table {
	struct loom__rig *rig;
	const struct loom_term_dev *term;
	struct sim *sim;
	struct loom__chance chance;
	uint32_t workers, asleep, ended, over;
	uint64_t quiet, since; /* calls of done() since the last unit of work; the time of the first one */
	uint32_t frozen;       /* turns that worker `halted` must still miss */
	uint32_t halted;
	int late;
	uint64_t heap; /* if late: units that no worker has taken yet */
} table;

static void run_unit(struct worker *w)
{
	uint64_t more = loom__draw_below(&table.chance, 3);
	w->units--;
	table.sim->units--;
	more = more > table.sim->budget ? table.sim->budget : more;
	table.sim->budget -= more;
	w->units += more;
	table.sim->units += more;
}

/* Lets other workers run. At random, one worker is halted for a while. */
static void turn(uint32_t me, int waits)
{
	if (!table.frozen && loom__one_in(&table.chance, 40)) {
		table.halted = me;
		table.frozen = (uint32_t)loom__draw_below(&table.chance, 30);
	}
	do {
		table.frozen -= table.frozen > 0;
		if (waits)
			loom__explore_pause();
		else
			loom__explore_yield();
	} while (table.frozen && table.halted == me && table.sim->units);
}

static void on_yield(int waits)
{
	if (waits)
		loom__explore_pause();
	else
		loom__explore_yield();
}

/* Steals some units of a victim, and calls busy() as thieves do. Returns 1 if it stole some. */
static int steal(struct loom_ctx *c, uint32_t me)
{
	uint32_t v = (uint32_t)loom__draw_below(&table.chance, table.workers);
	struct worker *victim = &table.sim->worker[v];
	if (v == me || !victim->units)
		return 0;
	uint64_t n = 1 + loom__draw_below(&table.chance, victim->units);
	victim->units -= n;
	victim->stolen_out += n;
	victim->copying++;
	turn(me, 0);
	table.term->busy(c);
	turn(me, 0);
	table.sim->worker[me].units += n;
	victim->copying--; /* the steal is complete */
	return 1;
}

/* Calls done(). Returns 1 when the worker ends. */
static int poll_done(struct loom_ctx *c, uint32_t me)
{
	enum { PATIENCE = 3000 };
	struct loom__trial *t = loom__trial_of(table.rig);
	int done = table.term->done(c, table.sim->worker[me].stolen_out);
	if (done && table.sim->units)
		early(t, me, table.sim->units);
	else if (done && !table.late && !table.term->done(c, table.sim->worker[me].stolen_out))
		loom__fault(t, "done() returned 1 to worker %u and then 0 again", me);
	if (done) {
		table.ended++;
		return 1;
	}
	if (table.sim->units)
		return 0;
	if (!table.quiet++)
		table.since = loom__now_ns();
	if (table.quiet > (uint64_t)PATIENCE * table.workers && loom__now_ns() - table.since > LOOM__SECOND / 10)
		loom__fault(
		    t,
		    "missing end: no task is left and each of %u workers has called done() about %d times since, "
		    "but it returned 1 to only %u of them",
		    table.workers, PATIENCE, table.ended);
	return loom__faulted(t);
}

/* As in a scheduler, a worker whose done() returned 0 sleeps until another one wakes it. Returns 1 when all workers
 * sleep for good. */
static int sleep_idle(uint32_t me)
{
	struct loom__trial *t = loom__trial_of(table.rig);
	if (!table.ended && !table.sim->units && table.asleep == table.workers)
		loom__fault(
		    t,
		    "missing end: it has the flag LOOM_TERM_MAY_SLEEP, but after the idle() of all %u workers the "
		    "next done() returns 1 to none of them",
		    table.workers);
	turn(me, 1);
	return loom__faulted(t);
}

static void player(uint32_t me)
{
	struct loom_ctx *c = &table.rig->ctx[me];
	struct worker *w = &table.sim->worker[me];
	int sleeps = LOOM_HAS(table.term, flags) && table.term->flags & LOOM_TERM_MAY_SLEEP;
	if (table.late) {
		for (uint64_t n = loom__draw_below(&table.chance, 60); n > 0; n--)
			turn(me, 0);
		if (me && loom__one_in(&table.chance, 3)) {
			table.asleep++;
			return;
		}
		table.term->busy(c);
		w->units = table.heap;
		table.heap = 0;
	}
	while (!loom__faulted(loom__trial_of(table.rig))) {
		for (; w->units; turn(me, 0))
			run_unit(w);
		if (w->copying) {
			turn(me, 1);
			continue;
		}
		table.term->idle(c);
		turn(me, 0);
		for (int asleep = 0;;) {
			if (loom__one_in(&table.chance, 2)) {
				table.asleep -= (uint32_t)asleep;
				if (steal(c, me))
					break;
				table.asleep += (uint32_t)asleep;
			}
			if ((!asleep || table.ended) && poll_done(c, me))
				return;
			if (sleeps && !asleep) {
				asleep = 1;
				table.asleep++;
			}
			if (asleep ? sleep_idle(me) : (turn(me, 1), 0))
				return;
		}
	}
}

static int play(struct loom__rig *r, const struct game *game, uint64_t seed)
{
	struct loom__trial *t = loom__trial_of(r);
	void *so = dlopen(t->path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
	void (**hook)(int waits) = so ? (void (**)(int))dlsym(so, "loom_cpu_yield_hook") : NULL;
	table = (struct table){.rig = r,
			       .term = dev(t),
			       /* the address on a device, because the host's is hidden */
			       .sim = r->ctx[0].global[LOOM_SCHED],
			       .chance = loom__chance(seed ^ 0x7e47),
			       .workers = game->workers,
			       .late = game->late};
	for (uint32_t w = 0; w < game->workers && game->late; w++)
		table.term->idle(&r->ctx[w]);
	if (game->late) {
		table.heap = table.sim->worker[0].units;
		table.sim->worker[0].units = 0;
	}
	if (hook)
		*hook = on_yield;
	int stuck = loom__explore(game->workers, player, seed & 1 ? LOOM__EXPLORE_PCT : LOOM__EXPLORE_RANDOM, seed,
				     100 + 40 * (game->units + game->budget), 1ull << 40);
	if (hook)
		*hook = NULL;
	LOOM__TRY(loom__faulted(t));
	return stuck ? loom__fault(t, "missing end: its workers wait for each other") : 0;
}

static int orders(struct loom__trial *t, const struct game *g, int samples, struct loom__settings *s)
{
	struct loom__rig r;
	LOOM__TRY(open_game(&r, t, g, s));
	for (uint64_t seed = g->seed; samples-- > 0; seed++) {
		deal(&r, g, seed);
		LOOM__TRY(loom__stand_init(&r));
		loom__rig_hide(&r, 1);
		LOOM__TRY(play(&r, g, seed));
		loom__rig_hide(&r, 0);
		LOOM__TRY(loom__stand_check(&r));
	}
	loom__stand_close(&r);
	return 0;
}

#define ORDERS(samples, ...) orders(t, &(struct game){__VA_ARGS__}, samples, NULL)

int loom__test_term_orders(struct loom__trial *t)
{
	static const uint32_t workers[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 64};
	for (size_t i = 0; i < LOOM__COUNT(workers); i++)
		for (uint32_t devices = 1; devices <= 4 && devices <= workers[i]; devices++)
			LOOM__TRY(ORDERS(40, .devices = devices, .workers = workers[i], .lanes = 1,
					 .seed = t->seed + 1000 * i + devices, .units = 1 + i, .budget = 60,
					 .spread = (int)(devices & 1)));
	return 0;
}

int loom__test_term_late(struct loom__trial *t)
{
	struct loom__rig r;
	struct game g = {.devices = 1, .workers = 2, .lanes = 1, .seed = t->seed, .late = 1};
	LOOM__TRY(open_game(&r, t, &g, NULL));
	int says = (r.part[LOOM_TERM].need.flags & LOOM_NEED_LATE) != 0;
	loom__stand_close(&r);
	if (!says)
		return loom__skip(t, "it needs all workers (no LOOM_NEED_LATE)");
	for (uint32_t i = 0; i < 12; i++)
		LOOM__TRY(ORDERS(40, .devices = 1, .workers = 1 + i * i / 3, .lanes = 1, .seed = t->seed + 1000 * i,
				 .units = i, .budget = 60, .late = 1));
	return 0;
}

int loom__test_term_empty(struct loom__trial *t)
{
	for (uint32_t workers = 1; workers < 20; workers++)
		LOOM__TRY(ORDERS(5, .devices = 1 + workers / 4 % 4, .workers = workers, .lanes = 1,
				 .seed = t->seed));
	return 0;
}

/* ---- threads ---------------------------------------------------------------------------------- */

static struct sim *sim_of(const struct loom_ctx *c)
{
	return c->global[LOOM_SCHED];
}

static void pause_maybe(struct loom_ctx *c)
{
	if (sim_of(c)->rough)
		loom__dawdle(c);
}

static void lock(struct worker *w)
{
	while (__atomic_exchange_n(&w->lock, 1, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void unlock(struct worker *w)
{
	__atomic_store_n(&w->lock, 0, __ATOMIC_RELEASE);
}

/* Lane 0 runs a unit of its own and spawns some. Returns 0 when it has none. */
static uint64_t live(struct loom_ctx *c)
{
	struct sim *sim = sim_of(c);
	struct worker *me = &sim->worker[c->worker];
	lock(me);
	uint64_t got = me->units > 0;
	me->units -= got;
	unlock(me);
	if (!got)
		return 0;
	loom__note_write(&me->note, 8);
	pause_maybe(c);
	for (uint64_t more = loom_random_below(c, 3); more > 0; more--) {
		uint64_t left = __atomic_load_n(&sim->budget, __ATOMIC_RELAXED);
		while (left && !__atomic_compare_exchange_n(&sim->budget, &left, left - 1, 0, __ATOMIC_RELAXED,
							    __ATOMIC_RELAXED))
			;
		if (!left)
			break;
		__atomic_add_fetch(&sim->units, 1, __ATOMIC_ACQ_REL);
		lock(me);
		me->units++;
		unlock(me);
	}
	__atomic_sub_fetch(&sim->units, 1, __ATOMIC_ACQ_REL);
	return 1;
}

/* Lane 0 steals half of the units of a victim, whose number goes to *from. */
static uint64_t take(struct loom_ctx *c, uint32_t *from)
{
	struct sim *sim = sim_of(c);
	uint32_t v = loom_random_below(c, c->workers);
	struct worker *victim = &sim->worker[v];
	uint64_t n = 0;
	if (v == c->worker)
		return 0;
	lock(victim);
	if (victim->units) {
		n = (victim->units + 1) / 2;
		victim->units -= n;
		__atomic_add_fetch(&victim->stolen_out, n, __ATOMIC_RELAXED);
		__atomic_add_fetch(&victim->copying, 1, __ATOMIC_ACQ_REL);
	}
	unlock(victim);
	*from = v;
	return n;
}

/* A worker to which done() returned 1 must see all writes of units. */
static void see_end(struct loom_ctx *c)
{
	struct sim *sim = sim_of(c);
	uint64_t units = __atomic_load_n(&sim->units, __ATOMIC_RELAXED);
	if (units)
		early((struct loom__trial *)(uintptr_t)sim->trial, c->worker, units);
	for (uint32_t w = 0; w < c->workers && c->lane == 0; w++)
		loom__note_read(&sim->worker[w].note, 8);
}

/* Returns 1 once the worker has work again, or 0 after the end or the stop word. */
static int wait_idle(struct loom_ctx *c)
{
	struct sim *sim = sim_of(c);
	struct worker *me = &sim->worker[c->worker];
	for (;;) {
		uint32_t from = 0;
		uint64_t loot = c->lane == 0 ? take(c, &from) : 0;
		if (loom_from_lane0(c, loot)) {
			pause_maybe(c);
			c->term->busy(c);
			pause_maybe(c);
			if (c->lane == 0) {
				lock(me);
				me->units += loot;
				unlock(me);
				/* The steal is complete, so the victim may become idle. */
				__atomic_sub_fetch(&sim->worker[from].copying, 1, __ATOMIC_ACQ_REL);
			}
			return 1;
		}
		uint64_t stolen_out = __atomic_load_n(&me->stolen_out, __ATOMIC_RELAXED);
		if (c->term->done(c, loom_from_lane0(c, stolen_out))) {
			see_end(c);
			return 0;
		}
		if (loom_from_lane0(c, (uint64_t)loom_stopped(c)))
			return 0;
		loom_pause(c);
	}
}

static void body(struct loom_ctx *c)
{
	struct worker *me = &sim_of(c)->worker[c->worker];
	do {
		while (loom_from_lane0(c, c->lane == 0 ? live(c) : 0))
			pause_maybe(c);
		while (c->lane == 0 && __atomic_load_n(&me->copying, __ATOMIC_ACQUIRE))
			loom_pause(c);
		loom_barrier_lanes(c);
		c->term->idle(c);
		pause_maybe(c);
	} while (wait_idle(c));
}

static int threads(struct loom__trial *t, const struct game *g, int samples, struct loom__settings *s)
{
	struct loom__rig r;
	LOOM__TRY(open_game(&r, t, g, s));
	while (samples-- > 0) {
		deal(&r, g, g->seed);
		LOOM__TRY(loom__stand_run(&r, body, 5 * LOOM__SECOND,
					  "missing end: done() does not return 1 to all workers"));
		LOOM__TRY(loom__stand_check(&r));
	}
	loom__stand_close(&r);
	return 0;
}

#define THREADS(samples, ...) threads(t, &(struct game){__VA_ARGS__}, samples, NULL)

int loom__test_term_steals(struct loom__trial *t)
{
	for (uint32_t i = 0; i < 12; i++)
		LOOM__TRY(THREADS(8, .devices = 1 + i % 3, .workers = 3 + i % 4, .lanes = 1,
				  .seed = t->seed + i, .units = i % 4 ? 1 + i : 30, .budget = 3000));
	return 0;
}

int loom__test_term_lanes(struct loom__trial *t)
{
	return THREADS(4, .devices = 1, .workers = 2, .lanes = 4, .seed = t->seed, .units = 3, .budget = 60);
}

int loom__test_term_rough(struct loom__trial *t)
{
	for (uint32_t i = 0; i < 24; i++)
		LOOM__TRY(THREADS(2, .devices = 1 + i % 4, .workers = 4 + i, .lanes = i % 12 == 11 ? 2 : 1,
				  .seed = t->seed + i, .units = 1 + i % 3, .budget = 150));
	return 0;
}

static int fuzz(struct loom__trial *t, uint64_t seed, struct loom__chance *chance, struct loom__settings *s)
{
	struct game g = {.devices = 1 + (uint32_t)loom__draw_below(chance, 6),
			 .lanes = 1,
			 .seed = seed,
			 .units = loom__draw_below(chance, 40),
			 .budget = loom__draw_below(chance, 400),
			 .spread = (int)loom__draw_below(chance, 2)};
	int threaded = loom__one_in(chance, 10);
	g.workers = g.devices + (uint32_t)loom__draw_below(chance, threaded ? 12 : 58);
	return threaded ? threads(t, &g, 1, s) : orders(t, &g, 5, s);
}

int loom__test_term_fuzz(struct loom__trial *t)
{
	return loom__fuzz(t, fuzz, 0);
}
