/* SPDX-License-Identifier: Apache-2.0 */
/* A sample: who goes on, and when. */
#include <string.h>
#include <time.h>

#include "world.h"
#include "lib/random.h"

/* Virtual time begins here in each sample: 0 means "never" to some. */
#define BEGIN_NS 1000000000u
/* After how many turns it is seen what the hosts want. */
#define LOOK_STEPS 256u

/* ---- chance -------------------------------------------------------------------------------------- */

static uint64_t draw(struct world *w, uint64_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (w->random >> 11) % below;
}

/* ---- turns ---------------------------------------------------------------------------------------- */

/* An access that takes as long as many others': a NIC that answers late is never met otherwise, as who waits falls behind it. */
static int is_late(const struct world *w, const struct sim_turn *who)
{
	return who == w->late && w->steps >= w->late_from && w->steps < w->late_until && w->live.live > 1;
}

static struct sim_turn *highest(const struct world *w)
{
	struct sim_turn *best = NULL;
	for (uint32_t i = 0; i < w->live.live; i++) {
		struct sim_turn *one = w->live.at[i].what;
		if (!is_late(w, one) && (!best || one->priority > best->priority))
			best = one;
	}
	return best;
}

static struct sim_turn *anybody(struct world *w)
{
	uint32_t at = (uint32_t)draw(w, w->live.live);
	return w->live.at[is_late(w, w->live.at[at].what) ? (at + 1) % w->live.live : at].what;
}

/* NULL: nobody is live. */
static struct sim_turn *choose(struct world *w)
{
	if (w->schedule == WORLD_TIME)
		return turns_next(w);
	return !w->live.live ? NULL : w->schedule == WORLD_RANDOM ? anybody(w) : highest(w);
}

/* Who is first does. Who gave way has not done yet what is later than that. */
static void go_on(struct world *w)
{
	w->sim.now = w->playing->live.at[0].due;
	w->sim.horizon = turns_horizon(w);
}

static void resume(struct world *w, struct fiber *from, struct sim_worker *x)
{
	struct loom_sim *sim = &w->sim;
	if (w->running) {
		w->running->waited = sim->waited;
		w->running->at.crew->ended = sim->ended;
	}
	w->running = x;
	sim->near = &x->near;
	sim->waited = x->waited;
	sim->cost = x->cost;
	sim->device = x->index;
	sim->ctl = x->at.crew->ctl;
	sim->ended = x->at.crew->ended;
	if (w->schedule == WORLD_TIME)
		go_on(w);
	w->from = from;
	fiber_switch(from, &x->fiber);
}

/* From a worker, which need not come back. */
static void go_home(struct world *w)
{
	struct fiber *from = &w->running->fiber;
	w->from = from;
	fiber_switch(from, &w->home);
}

/* Never to come back. */
static void fail(struct world *w, enum world_fault fault)
{
	world_describe(w, fault);
	w->failed = w->over = 1;
	go_home(w);
}

static void hear(const struct sim_crew *c)
{
	uint32_t stop = c->ctl ? __atomic_load_n(&c->ctl->stop, __ATOMIC_RELAXED) : 0;
	for (uint32_t i = 0; i < c->members && stop; i++)
		if (c->member[i] && c->member[i]->launched)
			c->member[i]->ctl->stop = stop;
}

/* What the hosts have written meanwhile: of each rank in turn; of all, once a host waits for the end of workers that it has
 * told to stop. */
static void look(struct world *w)
{
	struct sim_crew *c = w->looked ? w->looked->next : NULL;
	w->looked = c = c ? c : w->crew;
	hear(c);
	if (__atomic_load_n(&w->stops, __ATOMIC_RELAXED)) {
		__atomic_store_n(&w->stops, 0, __ATOMIC_RELAXED);
		for (c = w->crew; c; c = c->next)
			hear(c);
	}
	if (__atomic_load_n(&w->halt, __ATOMIC_RELAXED))
		fail(w, WORLD_HALTED);
}

static int all_wait(const struct world *w, const struct heap *q)
{
	for (uint32_t i = 0; i < q->live; i++) {
		const struct sim_turn *at = q->at[i].what;
		if (at->is_agent || ((const struct sim_worker *)at)->waited <= w->sim.changed)
			return 0;
	}
	return 1;
}

/* Nothing has changed for long, and all have waited since: a worker that looks at thousands of words may take as long.
 * Where an agent is due, something is under way. */
static int stands_still(struct world *w)
{
	const struct loom_sim *sim = &w->sim;
	if (sim->changed + w->stall_ns >= sim->now) {
		w->check_at = sim->changed + w->stall_ns;
		return 0;
	}
	w->running->waited = sim->waited;
	int all = w->between ? all_wait(w, &w->between->live) : 1;
	if (w->schedule != WORLD_TIME)
		all = all_wait(w, &w->live);
	for (const struct sim_crew *c = w->crew; c && all && w->schedule == WORLD_TIME; c = c->next)
		all = all_wait(w, &c->live);
	w->check_at = sim->now + w->stall_ns;
	return all;
}

/* ---- agents --------------------------------------------------------------------------------------- */

/* It is due. Random schedules let it go on early: then the clock goes on to its time. */
static void step(struct world *w, struct loom_agent *a)
{
	struct loom_sim *sim = &w->sim;
	uint64_t due = (w->schedule == WORLD_TIME ? &a->at.crew->live : &w->live)->at[a->at.seat].due;
	sim->now = w->schedule == WORLD_TIME || due > sim->now ? due : sim->now;
	turns_quit(w, &a->at);
	w->steps++;
	sim->events++;
	uint64_t next = a->step(a->arg, sim->now);
	sim->changed = sim->changed > sim->now ? sim->changed : sim->now;
	if (next != LOOM_NEVER)
		turns_wake(w, a, next > sim->now ? next : sim->now + 1);
}

/* ---- giving way ------------------------------------------------------------------------------------ */

static int falls(struct world *w)
{
	int now = 0;
	for (int i = 0; i < 4; i++)
		now |= w->change[i] == w->steps;
	return now;
}

static void ended_early(struct loom_sim *sim)
{
	fail((struct world *)sim, WORLD_ENDED_EARLY);
}

static void give_way(struct loom_sim *sim)
{
	struct world *w = (struct world *)sim;
	struct sim_worker *me = w->running;
	struct sim_turn *next = &me->at;
	if (++w->steps % LOOK_STEPS == 0)
		look(w);
	if (sim->now > w->check_at && stands_still(w))
		fail(w, WORLD_STANDS_STILL);
	if (sim->now - BEGIN_NS > w->limit_ns)
		fail(w, WORLD_TOO_LONG);
	if (w->schedule == WORLD_TIME) {
		turns_again(w, sim->now);
		while ((next = turns_next(w))->is_agent) /* here: a switch of stacks costs more than what most of them do */
			step(w, (struct loom_agent *)next);
	} else if (w->schedule == WORLD_RANDOM) {
		if (sim->waits || draw(w, 3) == 0)
			next = anybody(w);
	} else {
		if (sim->waits || falls(w))
			me->at.priority = --w->low;
		next = highest(w);
	}
	if (next == &me->at) {
		if (w->schedule == WORLD_TIME)
			go_on(w);
		return;
	}
	sim->waits = 0;
	if (next->is_agent)
		go_home(w);
	else
		resume(w, &me->fiber, (struct sim_worker *)next);
	fiber_arrive(&me->fiber, w->from);
}

static __thread struct world *here;

/* ---- workers -------------------------------------------------------------------------------------- */

static void leave(struct world *w, struct sim_worker *me)
{
	struct sim_member *m = me->device;
	turns_quit(w, &me->at);
	if (!m->ctl->stop && !w->sim.ended) {
		w->sim.ended = 1;
		for (struct sim_crew *c = me->at.crew->shares ? w->crew : NULL; c; c = c->next)
			c->ended = 1;
	}
	if (!--m->left)
		m->took_ns = w->sim.now + m->teardown_ns - BEGIN_NS;
	go_home(w);
}

static void main_of_worker(void)
{
	struct world *w = here;
	struct sim_worker *me = w->running;
	struct loom_counters *counters = me->ctx.counters;
	fiber_arrive(&me->fiber, w->from);
	counters->begin_ns = w->sim.now;
	me->device->run(&me->ctx);
	counters->end_ns = w->sim.now;
	counters->cpu_ns = 0;
	counters->state = LOOM_STATE_DONE;
	leave(w, me);
}

/* Each waits for its begin. */
static void seat_worker(struct world *w, struct sim_worker *x, uint64_t seed)
{
	struct sim_member *m = x->device;
	struct loom_ctx *c = &x->ctx;
	uint64_t random = loom__mix64(seed + c->worker);
	c->depth = c->turn = c->stop_seen = 0;
	c->random = random ? random : 1;
	memset(x->keep, 0, sizeof(x->keep));
	(void)fiber_make(&x->fiber, 0, main_of_worker); /* it has its stack: that cannot fail */
	x->waited = 0;
	x->near = (struct loom_sim_near){0};
	x->at.priority = (1ull << 33) + draw(w, 1u << 20);
	turns_enter(w, &x->at, BEGIN_NS + m->launch_ns);
}

static void seat_member(struct world *w, struct sim_member *m, uint64_t seed)
{
	const struct loom_ctl *host = m->crew->ctl;
	m->left = m->workers;
	memset(m->local, 0, m->local_bytes);
	m->ctl->initial_tasks = host->initial_tasks;
	m->ctl->sample = host->sample;
	m->ctl->stop = __atomic_load_n(&host->stop, __ATOMIC_RELAXED);
	for (uint32_t k = 0; k < m->workers; k++)
		seat_worker(w, &m->worker[k], seed);
}

static void seat_agents(struct world *w, struct sim_crew *c, uint32_t number)
{
	c->ended = 0;
	c->live.live = 0;
	c->number = number;
	w->places[number] = HEAP_NO_SLOT;
	for (struct loom_agent *a = c->agents; a; a = a->next) {
		a->at.seat = HEAP_NO_SLOT;
		a->at.priority = (1ull << 33) + draw(w, 1u << 20);
		if (!w->probing)
			turns_enter(w, &a->at, BEGIN_NS);
	}
}

static void seat_all(struct world *w, uint64_t seed)
{
	w->live.live = 0;
	w->playing = NULL;
	uint32_t crews = 0;
	for (struct sim_crew *c = w->crew; c; c = c->next)
		seat_agents(w, c, crews++);
	if (w->between)
		seat_agents(w, w->between, crews);
	for (struct sim_crew *c = w->crew; c; c = c->next)
		for (uint32_t i = 0; i < c->members && (!w->probing || c == w->probing); i++)
			if (c->member[i] && c->member[i]->launched)
				seat_member(w, c->member[i], seed);
}

/* The same [run] seed makes the same choices in each sample, and a seed of the schedule all of them. */
static uint64_t seed_of_sample(const struct world *w, uint64_t sample)
{
	return w->schedule == WORLD_TIME ? loom__mix64(loom__mix64(w->seed) + sample) : loom__mix64(w->schedule_seed + sample);
}

static void prepare(struct world *w, uint64_t sample)
{
	uint64_t seed = seed_of_sample(w, sample);
	w->sim.now = w->sim.changed = BEGIN_NS;
	w->sim.horizon = w->sim.events = 0;
	w->sim.waits = 0;
	w->sim.ended = 0;
	w->sim.give_way = give_way;
	w->sim.early = ended_early;
	w->sim.find = world_find;
	w->sim.stored = agents_stored;
	w->steps = w->turn = w->check_at = 0;
	w->low = 1ull << 32;
	w->random = seed | 1;
	w->running = NULL;
	w->over = 0;
	if (w->schedule != WORLD_TIME)
		w->schedule = (w->schedule_seed + sample) & 1 ? WORLD_PRIORITIES : WORLD_RANDOM;
	for (int i = 0; i < 4; i++)
		w->change[i] = 1 + draw(w, 16ull << draw(w, 16));
	seat_all(w, seed);
	w->late = NULL;
	if (w->schedule == WORLD_TIME || !w->live.live || draw(w, 2))
		return;
	w->late = w->live.at[draw(w, w->live.live)].what;
	w->late_from = draw(w, 16ull << draw(w, 10));
	w->late_until = w->late_from + draw(w, 16ull << draw(w, 10));
}

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Workers switch to each other, and come here at their end; in random schedules for agents, too. */
void world_play(struct world *w)
{
	const struct sim_crew *first = w->probing ? w->probing : w->crew;
	double began = cpu_seconds();
	prepare(w, first->ctl->sample);
	here = w;
	fiber_home(&w->home);
	for (struct sim_turn *next; !w->over && (next = choose(w));) {
		if (next->is_agent) {
			step(w, (struct loom_agent *)next);
			continue;
		}
		resume(w, &w->home, (struct sim_worker *)next);
		fiber_arrive(&w->home, w->from);
	}
	LOOM_LOG(first->host, LOOM_LOG_INFO, "sim", "%llu events in %.3g s of a core, %llu turns",
		 (unsigned long long)w->sim.events, cpu_seconds() - began,
		 (unsigned long long)w->steps);
}
