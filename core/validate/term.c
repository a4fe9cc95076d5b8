/* SPDX-License-Identifier: Apache-2.0 */
/* Termination detectors: no end while a unit of work exists, an end soon after the last one. The
 * suite plays the scheduler and keeps exactly what term.h promises: first alone, in orders of calls
 * that an adversary draws and a seed repeats, then with real threads. */
#include <gpuloom/term.h>
#include <stdlib.h>
#include <string.h>

#include "validate/rig.h"
#include "validate/tests.h"

struct worker {
	uint32_t lock, copying; /* thieves that are copying from this worker */
	uint64_t units, robbed;
	uint64_t pad[5];
};

struct sim {
	uint64_t units;  /* that exist anywhere, on their way too */
	uint64_t budget; /* that may still be made */
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
	int spread; /* 0: all units at worker 0; 1: anywhere */
};

static int open_game(struct loom__rig *r, struct loom__trial *t, const struct game *g,
		     struct loom__settings *s)
{
	struct loom__rig_want want = {
	    .devices = g->devices, .workers = g->workers, .lanes = g->lanes, .seed = g->seed};
	if (!dev(t))
		return loom__skip(t, "it has no code for the CPU");
	want.bytes[LOOM_SCHED] = sizeof(struct sim);
	want.table[LOOM_TERM] = dev(t);
	int verdict = loom__rig_open(r, t, &want, s);
	if (verdict == LOOM__REFUSED && !s)
		return loom__fault(t, "it refuses its default options");
	return verdict;
}

static int deal(struct loom__rig *r, const struct game *g)
{
	struct sim *sim = loom__rig_block(r, LOOM_SCHED);
	struct loom__chance chance = loom__chance(g->seed);
	memset(sim, 0, sizeof(*sim));
	sim->units = g->units;
	sim->budget = g->budget;
	sim->rough = (uint64_t)r->t->rough;
	sim->trial = (uint64_t)(uintptr_t)r->t;
	for (uint64_t i = 0; i < g->units; i++)
		sim->worker[g->spread ? loom__draw_below(&chance, g->workers) : 0].units++;
	return loom__rig_init(r);
}

static int early(struct loom__trial *t, uint32_t worker, uint64_t units)
{
	return loom__fault(t,
			   "early end: done() told worker %u that no task exists, while %llu did",
			   worker, (unsigned long long)units);
}

/* ---- drawn orders ------------------------------------------------------------------------------
 */

enum stage { RUNNING, IDLE, TOOK, BUSY, LEFT };

struct player {
	enum stage stage;
	uint32_t victim;
	uint64_t loot;
};

struct table {
	struct loom__rig *rig;
	const struct loom_term_dev *term;
	struct sim *sim;
	struct loom__chance chance;
	struct player player[LOOM__RIG_WORKERS];
	uint32_t workers, left;
	uint64_t frozen; /* bit set over workers % 64: they do not move for now */
};

static void run_unit(struct table *g, struct worker *w)
{
	uint64_t more = loom__draw_below(&g->chance, 3);
	w->units--;
	g->sim->units--;
	more = more > g->sim->budget ? g->sim->budget : more;
	g->sim->budget -= more;
	w->units += more;
	g->sim->units += more;
}

/* An idle worker looks for a victim. 1: it has robbed one. */
static int rob(struct table *g, uint32_t me)
{
	uint32_t v = (uint32_t)loom__draw_below(&g->chance, g->workers);
	struct worker *victim = &g->sim->worker[v];
	if (v == me || !victim->units)
		return 0;
	uint64_t n = 1 + loom__draw_below(&g->chance, victim->units);
	victim->units -= n;
	victim->robbed += n;
	victim->copying++;
	g->player[me] = (struct player){.stage = TOOK, .victim = v, .loot = n};
	return 1;
}

static int ask(struct table *g, uint32_t me)
{
	int done = g->term->done(&g->rig->ctx[me], g->sim->worker[me].robbed);
	if (done && g->sim->units)
		return early(g->rig->t, me, g->sim->units);
	if (done) {
		if (!g->term->done(&g->rig->ctx[me], g->sim->worker[me].robbed))
			return loom__fault(g->rig->t,
					   "done() said yes to worker %u and then no again", me);
		g->player[me].stage = LEFT;
		g->left++;
	}
	return 0;
}

/* One step of one worker, as term.h lets schedulers behave. */
static int step(struct table *g, uint32_t me)
{
	struct player *p = &g->player[me];
	struct worker *w = &g->sim->worker[me];
	struct loom_ctx *c = &g->rig->ctx[me];
	switch (p->stage) {
	case RUNNING:
		if (w->units) {
			run_unit(g, w);
		} else if (!w->copying) {
			g->term->idle(c);
			p->stage = IDLE;
		}
		return 0;
	case IDLE:
		if (loom__one_in(&g->chance, 2) && rob(g, me))
			return 0;
		return ask(g, me);
	case TOOK:
		g->term->busy(c);
		p->stage = BUSY;
		return 0;
	case BUSY: /* the steal is complete */
		g->sim->worker[p->victim].copying--;
		w->units += p->loot;
		p->stage = RUNNING;
		return 0;
	default:
		return 0;
	}
}

static int play(struct loom__rig *r, const struct game *game)
{
	enum { PATIENCE = 3000 };
	struct table g = {
	    .rig = r,
	    .term = dev(r->t),
	    .sim = r->ctx[0].global[LOOM_SCHED], /* a device's view: the host's is hidden */
	    .chance = loom__chance(game->seed ^ 0x7e47),
	    .workers = game->workers};
	uint64_t quiet = 0, since = 0;
	for (uint64_t n = 0; g.left < g.workers; n++) {
		if (n % 40 == 0) /* an adversary halts some of them for a while */
			g.frozen = loom__draw(&g.chance) & loom__draw(&g.chance);
		uint32_t me = (uint32_t)loom__draw_below(&g.chance, g.workers);
		if (g.frozen >> me % 64 & 1 && g.sim->units)
			continue;
		int verdict = step(&g, me);
		if (verdict)
			return verdict;
		if (g.sim->units)
			continue;
		if (!quiet++)
			since = loom__now_ns();
		if (quiet > (uint64_t)PATIENCE * g.workers &&
		    loom__now_ns() - since > LOOM__SECOND / 10)
			return loom__fault(
			    r->t,
			    "missing end: no task is left and each of %u workers was asked about "
			    "%d times since, but done() told only %u of them so",
			    g.workers, PATIENCE, g.left);
	}
	return 0;
}

static int orders(struct loom__trial *t, const struct game *g, int samples,
		  struct loom__settings *s)
{
	struct loom__rig r;
	char text[300];
	int verdict = open_game(&r, t, g, s);
	if (verdict)
		return verdict;
	loom__say_case(t, g->seed, "%llu units of work; %s", (unsigned long long)g->units,
		       loom__rig_text(&r, text, sizeof(text)));
	struct game now = *g;
	for (int n = 0; n < samples && !verdict; n++, now.seed++) {
		verdict = deal(&r, &now);
		loom__rig_hide(&r, 1);
		if (!verdict)
			verdict = play(&r, &now);
		loom__rig_hide(&r, 0);
		if (!verdict)
			verdict = loom__rig_check(&r);
	}
	loom__rig_close(&r);
	return verdict;
}

int loom__test_term_orders(struct loom__trial *t)
{
	static const uint32_t workers[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 33, 64};
	int verdict = 0;
	for (size_t i = 0; i < LOOM__COUNT(workers) && !verdict; i++)
		for (uint32_t devices = 1; devices <= 4 && devices <= workers[i] && !verdict;
		     devices++) {
			struct game g = {.devices = devices,
					 .workers = workers[i],
					 .lanes = 1,
					 .seed = t->seed + 1000 * i + devices,
					 .units = 1 + i,
					 .budget = 60,
					 .spread = (int)(devices & 1)};
			verdict = orders(t, &g, 40, NULL);
		}
	return verdict;
}

int loom__test_term_empty(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t workers = 1; workers < 20 && !verdict; workers++) {
		struct game g = {.devices = 1 + workers / 4 % 4,
				 .workers = workers,
				 .lanes = 1,
				 .seed = t->seed};
		verdict = orders(t, &g, 5, NULL);
	}
	return verdict;
}

/* ---- threads -----------------------------------------------------------------------------------
 */

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

/* Lane 0: takes a unit of one's own and makes some. 0: there is none. */
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
	pause_maybe(c);
	for (uint64_t more = loom_random_below(c, 3); more > 0; more--) {
		uint64_t left = __atomic_load_n(&sim->budget, __ATOMIC_RELAXED);
		while (left && !__atomic_compare_exchange_n(&sim->budget, &left, left - 1, 0,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
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

/* Lane 0: takes half of what a victim has; the victim in *from. */
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
		__atomic_add_fetch(&victim->robbed, n, __ATOMIC_RELAXED);
		__atomic_add_fetch(&victim->copying, 1, __ATOMIC_ACQ_REL);
	}
	unlock(victim);
	*from = v;
	return n;
}

/* Until the worker has work again (1), or the end or the stop word came (0). */
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
				/* The mark: the victim may become idle from here on. */
				__atomic_sub_fetch(&sim->worker[from].copying, 1, __ATOMIC_ACQ_REL);
			}
			return 1;
		}
		uint64_t robbed = __atomic_load_n(&me->robbed, __ATOMIC_RELAXED);
		if (c->term->done(c, loom_from_lane0(c, robbed))) {
			uint64_t units = __atomic_load_n(&sim->units, __ATOMIC_ACQUIRE);
			if (units)
				early((struct loom__trial *)(uintptr_t)sim->trial, c->worker,
				      units);
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

static int threads(struct loom__trial *t, const struct game *g, int samples,
		   struct loom__settings *s)
{
	struct loom__rig r;
	char text[300];
	int verdict = open_game(&r, t, g, s);
	if (verdict)
		return verdict;
	loom__say_case(t, g->seed, "%llu units of work; %s", (unsigned long long)g->units,
		       loom__rig_text(&r, text, sizeof(text)));
	for (int n = 0; n < samples && !verdict; n++) {
		verdict = deal(&r, g);
		int late = verdict ? 0 : loom__rig_run(&r, body, 5 * LOOM__SECOND);
		const struct sim *sim = loom__rig_block(&r, LOOM_SCHED);
		if (!verdict)
			verdict = loom__faulted(t);
		if (!verdict && late)
			verdict = loom__fault(
			    t,
			    "missing end: after 5 s %llu units of work are left, and not all "
			    "workers were told of the end",
			    (unsigned long long)sim->units);
		if (!verdict)
			verdict = loom__rig_check(&r);
	}
	loom__rig_close(&r);
	return verdict;
}

int loom__test_term_steals(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t i = 0; i < 12 && !verdict; i++) {
		struct game g = {.devices = 1 + i % 3,
				 .workers = 3 + i % 4,
				 .lanes = 1,
				 .seed = t->seed + i,
				 .units = i % 4 ? 1 + i : 30,
				 .budget = 3000};
		verdict = threads(t, &g, 8, NULL);
	}
	return verdict;
}

int loom__test_term_lanes(struct loom__trial *t)
{
	struct game g = {
	    .devices = 1, .workers = 2, .lanes = 4, .seed = t->seed, .units = 3, .budget = 60};
	return threads(t, &g, 4, NULL);
}

int loom__test_term_rough(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t i = 0; i < 24 && !verdict; i++) {
		struct game g = {.devices = 1 + i % 4,
				 .workers = 4 + i,
				 .lanes = i % 12 == 11 ? 2 : 1,
				 .seed = t->seed + i,
				 .units = 1 + i % 3,
				 .budget = 150};
		verdict = threads(t, &g, 2, NULL);
	}
	return verdict;
}

int loom__test_term_fuzz(struct loom__trial *t)
{
	uint64_t until = loom__now_ns() + t->fuzz_ns;
	for (uint64_t seed = t->seed; loom__now_ns() < until; seed++) {
		struct loom__chance chance = loom__chance(seed);
		struct loom__settings s;
		struct game g = {.devices = 1 + (uint32_t)loom__draw_below(&chance, 6),
				 .lanes = 1,
				 .seed = seed,
				 .units = loom__draw_below(&chance, 40),
				 .budget = loom__draw_below(&chance, 400),
				 .spread = (int)loom__draw_below(&chance, 2)};
		g.workers = g.devices + (uint32_t)loom__draw_below(&chance, 60);
		if (loom__settings_create(t, &s))
			return loom__skip(t, "out of memory");
		loom__settings_random(t, &s, &chance);
		loom__say_case(t, seed, "%s", s.text.length ? s.text.at : "defaults");
		t->rough = loom__one_in(&chance, 2);
		int threaded = loom__one_in(&chance, 10);
		g.workers = threaded && g.workers > 12 ? g.devices + 6 : g.workers;
		int verdict = threaded ? threads(t, &g, 1, &s) : orders(t, &g, 5, &s);
		if (verdict && verdict != LOOM__REFUSED)
			return verdict;
	}
	return 0;
}
