/* SPDX-License-Identifier: Apache-2.0 */
/* A sample: who goes on, and when. */
#include <string.h>

#include "world.h"

/* Virtual time begins here in each sample: 0 means "never" to some. */
#define BEGIN_NS 1000000000u
/* How long a worker goes on alone before it looks whether the host wants something; and after how many turns. */
#define SLICE_NS 100000u
#define LOOK_STEPS 256u

/* ---- chance -------------------------------------------------------------------------------------- */

/* splitmix64, as on GPUs. */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static uint64_t draw(struct world *w, uint64_t below)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 7;
	w->random ^= w->random << 17;
	return (w->random >> 11) % below;
}

/* ---- who is live: a heap in virtual time, in no order otherwise ------------------------------------ */

static int before(const struct sim_worker *a, const struct sim_worker *b)
{
	return a->due < b->due || (a->due == b->due && a->turn < b->turn);
}

static void seat(struct world *w, uint32_t at, struct sim_worker *x)
{
	w->live[at] = x;
	x->seat = at;
}

/* x goes where it belongs, from a free seat downwards. */
static void sink(struct world *w, uint32_t at, struct sim_worker *x)
{
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= w->lives)
			break;
		if (child + 1 < w->lives && before(w->live[child + 1], w->live[child]))
			child++;
		if (!before(w->live[child], x))
			break;
		seat(w, at, w->live[child]);
		at = child;
	}
	seat(w, at, x);
}

/* In virtual time the one that runs has the first seat: it was due first. */
static void remove_running(struct world *w)
{
	uint32_t at = w->running->seat;
	struct sim_worker *last = w->live[--w->lives];
	if (last == w->running)
		return;
	if (w->schedule == WORLD_TIME)
		sink(w, at, last);
	else
		seat(w, at, last);
}

/* ---- turns ---------------------------------------------------------------------------------------- */

/* When the first of the others is due: in the heap these are below the first seat. */
static uint64_t next_due(const struct world *w)
{
	uint64_t due = w->sim.now + SLICE_NS;
	for (uint32_t i = 1; i < 3 && i < w->lives; i++)
		due = w->live[i]->due < due ? w->live[i]->due : due;
	return due;
}

static struct sim_worker *highest(const struct world *w)
{
	struct sim_worker *best = w->live[0];
	for (uint32_t i = 1; i < w->lives; i++)
		if (w->live[i]->priority > best->priority)
			best = w->live[i];
	return best;
}

/* Of those that are live, of whom there are some. */
static struct sim_worker *choose(struct world *w)
{
	switch (w->schedule) {
	case WORLD_RANDOM:
		return w->live[draw(w, w->lives)];
	case WORLD_PRIORITIES:
		return highest(w);
	default:
		return w->live[0];
	}
}

static void resume(struct world *w, struct fiber *from, struct sim_worker *x)
{
	struct loom_sim *sim = &w->sim;
	w->running = x;
	sim->cost = x->device->cost;
	sim->device = x->device->index;
	if (w->schedule == WORLD_TIME) {
		sim->now = x->due > sim->now ? x->due : sim->now;
		sim->horizon = next_due(w);
	}
	w->from = from;
	fiber_switch(from, &x->fiber);
}

/* Never to come back. */
static void go_home(struct world *w)
{
	struct fiber *from = &w->running->fiber;
	w->from = from;
	fiber_switch(from, &w->home);
}

static void fail(struct world *w, enum world_fault fault)
{
	world_describe(w, fault);
	__atomic_store_n(&w->failed, 1, __ATOMIC_RELEASE);
	world_ring(w);
	go_home(w);
}

/* What the host has written meanwhile. */
static void look(struct world *w)
{
	uint32_t stop = __atomic_load_n(&w->sim.ctl->stop, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < w->members && stop; i++)
		if (w->member[i] && w->member[i]->launched)
			w->member[i]->ctl->stop = stop;
	if (__atomic_load_n(&w->halt, __ATOMIC_RELAXED))
		go_home(w);
}

/* Nothing has changed for long, and all have waited since: a worker that looks at thousands of words may take as long. */
static int stands_still(struct world *w)
{
	const struct loom_sim *sim = &w->sim;
	if (sim->changed + w->stall_ns >= sim->now) {
		w->check_at = sim->changed + w->stall_ns;
		return 0;
	}
	for (uint32_t i = 0; i < w->lives; i++)
		if (w->live[i]->waited <= sim->changed) {
			w->check_at = sim->now + w->stall_ns;
			return 0;
		}
	return 1;
}

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
	struct sim_worker *me = w->running, *next = me;
	if (++w->steps % LOOK_STEPS == 0)
		look(w);
	if (sim->waits)
		me->waited = sim->now;
	if (sim->now > w->check_at && stands_still(w))
		fail(w, WORLD_STANDS_STILL);
	if (sim->now - BEGIN_NS > w->limit_ns)
		fail(w, WORLD_TOO_LONG);
	if (w->schedule == WORLD_TIME) {
		me->due = sim->now;
		me->turn = ++w->turn;
		sink(w, 0, me);
		next = w->live[0];
	} else if (w->schedule == WORLD_RANDOM) {
		if (sim->waits || draw(w, 3) == 0)
			next = choose(w);
	} else {
		if (sim->waits || falls(w))
			me->priority = --w->low;
		next = highest(w);
	}
	if (next == me) {
		if (w->schedule == WORLD_TIME)
			sim->horizon = next_due(w);
		return;
	}
	sim->waits = 0;
	resume(w, &me->fiber, next);
	fiber_arrive(&me->fiber, w->from);
}

/* ---- workers -------------------------------------------------------------------------------------- */

static __thread struct world *here;

static void leave(struct world *w, struct sim_worker *me)
{
	struct sim_member *m = me->device;
	remove_running(w);
	w->sim.ended |= !m->ctl->stop;
	if (!--m->left) {
		m->took_ns = w->sim.now + m->teardown_ns - BEGIN_NS;
		/* Release: the sample. */
		__atomic_store_n(&m->done, 1, __ATOMIC_RELEASE);
		world_ring(w);
	}
	if (w->lives)
		resume(w, &me->fiber, choose(w));
	else
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
	counters->doing = LOOM_DOING_DONE;
	leave(w, me);
}

/* Each waits for its begin. */
static void seat_worker(struct world *w, struct sim_worker *x, uint64_t seed)
{
	struct sim_member *m = x->device;
	struct loom_ctx *c = &x->ctx;
	uint64_t random = mix(seed + c->worker);
	c->depth = c->turn = c->stop_seen = 0;
	c->random = random ? random : 1;
	memset(x->keep, 0, sizeof(x->keep));
	(void)fiber_make(&x->fiber, 0, main_of_worker); /* it has its stack: that cannot fail */
	x->waited = 0;
	x->due = BEGIN_NS + m->launch_ns;
	x->turn = ++w->turn;
	x->priority = (1ull << 33) + draw(w, 1u << 20);
	seat(w, w->lives++, x);
}

static void seat_all(struct world *w, uint64_t seed)
{
	w->lives = 0;
	for (uint32_t i = 0; i < w->members; i++) {
		struct sim_member *m = w->member[i];
		if (!m || !m->launched)
			continue;
		m->left = m->workers;
		memset(m->local, 0, m->local_bytes);
		m->ctl->initial_tasks = w->sim.ctl->initial_tasks;
		m->ctl->sample = w->sim.ctl->sample;
		m->ctl->stop = __atomic_load_n(&w->sim.ctl->stop, __ATOMIC_RELAXED);
		for (uint32_t k = 0; k < m->workers; k++)
			seat_worker(w, &m->worker[k], seed);
	}
	for (uint32_t i = w->lives / 2; w->schedule == WORLD_TIME && i-- > 0;)
		sink(w, i, w->live[i]);
}

/* The same [run] seed makes the same choices in each sample, and a seed of the schedule all of them. */
static uint64_t seed_of_sample(const struct world *w)
{
	return w->schedule == WORLD_TIME ? mix(mix(w->seed) + w->sim.ctl->sample) : mix(w->schedule_seed + w->sim.ctl->sample);
}

void world_play(struct world *w)
{
	uint64_t seed = seed_of_sample(w), began = w->host->now_ns(w->host);
	w->sim.now = w->sim.changed = BEGIN_NS;
	w->sim.horizon = 0;
	w->sim.waits = 0;
	w->sim.ended = 0;
	w->sim.give_way = give_way;
	w->sim.early = ended_early;
	w->sim.find = world_find;
	w->steps = w->turn = w->check_at = 0;
	w->low = 1ull << 32;
	w->random = seed | 1;
	if (w->schedule != WORLD_TIME)
		w->schedule = (w->schedule_seed + w->sim.ctl->sample) & 1 ? WORLD_PRIORITIES : WORLD_RANDOM;
	for (int i = 0; i < 4; i++)
		w->change[i] = 1 + draw(w, 16ull << draw(w, 16));
	seat_all(w, seed);
	here = w;
	fiber_home(&w->home);
	if (w->lives)
		resume(w, &w->home, choose(w));
	fiber_arrive(&w->home, w->from);
	LOOM_LOG(w->host, LOOM_LOG_INFO, "sim", "%llu events in %.3g s of this machine's time",
		 (unsigned long long)w->steps, (double)(w->host->now_ns(w->host) - began) / 1e9);
}
