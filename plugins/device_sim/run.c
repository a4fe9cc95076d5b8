/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a sample: which entity runs, and when. */
#include <string.h>
#include <time.h>

#include "lib/random.h"
#include "simulation.h"

/* Virtual time at the start of a sample. It is not 0, because 0 means "never" in some words. */
#define BEGIN_NS 1000000000u
/* Number of steps between two polls of the hosts' control words. */
#define POLL_STEPS 256u

/* ---- choices -------------------------------------------------------------------------------------- */

/* Fault injection: returns 1 if the entity must not run at this step, as if an access took very long. Without it, no
 * test would see a late reply of a NIC, because workers that poll fall behind the NIC. */
static int is_delayed(const struct simulation *s, const struct sim_entity *e)
{
	return e == s->delayed && s->pct.step >= s->delayed_from && s->pct.step < s->delayed_until && s->live.live > 1;
}

static struct sim_entity *highest(const struct simulation *s)
{
	struct sim_entity *best = NULL;
	for (uint32_t i = 0; i < s->live.live; i++) {
		struct sim_entity *one = s->live.at[i].what;
		if (!is_delayed(s, one) && (!best || one->priority > best->priority))
			best = one;
	}
	return best;
}

static struct sim_entity *any_entity(struct simulation *s)
{
	uint32_t at = (uint32_t)pct_draw(&s->pct, s->live.live);
	return s->live.at[is_delayed(s, s->live.at[at].what) ? (at + 1) % s->live.live : at].what;
}

/* Returns the entity that runs next, or NULL if no entity is live. */
static struct sim_entity *choose(struct simulation *s)
{
	if (s->schedule == SCHEDULE_TIME)
		return queue_next(s);
	return !s->live.live ? NULL : s->schedule == SCHEDULE_RANDOM ? any_entity(s) : highest(s);
}

/* Sets the clock to the due time of the entity that runs next. */
static void set_clock(struct simulation *s)
{
	s->sim.now = s->active->live.at[0].due;
	s->sim.horizon = queue_horizon(s);
}

static void resume(struct simulation *s, struct fiber *from, struct sim_worker *x)
{
	struct loom_sim *sim = &s->sim;
	if (s->running) {
		s->running->waited_at = sim->waited_at;
		s->running->at.group->ended = sim->ended;
	}
	s->running = x;
	s->resumed_at = s->pct.step;
	sim->recent = &x->recent;
	sim->waited_at = x->waited_at;
	sim->cost = x->cost;
	sim->device = x->index;
	sim->ctl = x->at.group->ctl;
	sim->ended = x->at.group->ended;
	if (s->schedule == SCHEDULE_TIME)
		set_clock(s);
	s->from = from;
	fiber_switch(from, &x->fiber);
}

/* Switches from a worker to the scheduler loop. */
static void switch_home(struct simulation *s)
{
	struct fiber *from = &s->running->fiber;
	s->from = from;
	fiber_switch(from, &s->home);
}

/* Ends the sample with a fault. Does not return. */
static void fail(struct simulation *s, enum fault fault)
{
	simulation_describe(s, fault);
	s->failed = LOOM_EDIED;
	s->over = 1;
	switch_home(s);
}

static void copy_stop(const struct sim_group *g)
{
	uint32_t stop = g->ctl ? __atomic_load_n(&g->ctl->stop, __ATOMIC_RELAXED) : 0;
	for (uint32_t i = 0; i < g->members && stop; i++)
		if (g->member[i] && g->member[i]->launched)
			g->member[i]->ctl->stop = stop;
}

/* Polls the stop flags of the hosts. Usually it polls the flag of one rank. It polls all flags after a host has set its
 * flag and waits for workers. */
static void poll_hosts(struct simulation *s)
{
	struct sim_group *g = s->polled ? s->polled->next : NULL;
	s->polled = g = g ? g : s->group;
	copy_stop(g);
	if (__atomic_load_n(&s->stop_requested, __ATOMIC_RELAXED)) {
		__atomic_store_n(&s->stop_requested, 0, __ATOMIC_RELAXED);
		for (g = s->group; g; g = g->next)
			copy_stop(g);
	}
	if (__atomic_load_n(&s->halt, __ATOMIC_RELAXED))
		fail(s, FAULT_HALTED);
}

static int all_waiting(const struct simulation *s, const struct heap *q)
{
	for (uint32_t i = 0; i < q->live; i++) {
		const struct sim_entity *at = q->at[i].what;
		if (at->is_agent || ((const struct sim_worker *)at)->waited_at <= s->sim.changed)
			return 0;
	}
	return 1;
}

/* Returns 1 if no entity has changed anything for `stall_ns`, and all entities have waited since the last change. The
 * second condition is needed, because a worker that polls thousands of words may take as long for one round. An agent
 * that is due counts as progress. */
static int is_stalled(struct simulation *s)
{
	const struct loom_sim *sim = &s->sim;
	if (sim->changed + s->stall_ns >= sim->now) {
		s->check_at = sim->changed + s->stall_ns;
		return 0;
	}
	s->running->waited_at = sim->waited_at;
	int all = s->between ? all_waiting(s, &s->between->live) : 1;
	if (s->schedule != SCHEDULE_TIME)
		all = all_waiting(s, &s->live);
	for (const struct sim_group *g = s->group; g && all && s->schedule == SCHEDULE_TIME; g = g->next)
		all = all_waiting(s, &g->live);
	s->check_at = sim->now + s->stall_ns;
	return all;
}

/* ---- agents --------------------------------------------------------------------------------------- */

/* Runs an agent. A random schedule may run it before it is due. In that case the clock advances to the due time. */
static void step(struct simulation *s, struct loom_agent *a)
{
	struct loom_sim *sim = &s->sim;
	uint64_t due = (s->schedule == SCHEDULE_TIME ? &a->at.group->live : &s->live)->at[a->at.slot].due;
	sim->now = s->schedule == SCHEDULE_TIME || due > sim->now ? due : sim->now;
	queue_remove(s, &a->at);
	s->pct.step++;
	sim->events++;
	uint64_t next = a->step(a->arg, sim->now);
	sim->changed = sim->changed > sim->now ? sim->changed : sim->now;
	if (next != LOOM_NEVER)
		queue_wake(s, a, next > sim->now ? next : sim->now + 1);
}

/* ---- yielding -------------------------------------------------------------------------------------- */

static void ended_early(struct loom_sim *sim)
{
	fail((struct simulation *)sim, FAULT_ENDED_EARLY);
}

static void yield(struct loom_sim *sim)
{
	struct simulation *s = (struct simulation *)sim;
	struct sim_worker *me = s->running;
	struct sim_entity *next = &me->at;
	if (++s->pct.step % POLL_STEPS == 0)
		poll_hosts(s);
	if (s->weak && model_ends(s))
		fail(s, FAULT_HALTED); /* model_end() says why */
	if (sim->now > s->check_at && is_stalled(s))
		fail(s, FAULT_STALL);
	if (sim->now - BEGIN_NS > s->limit_ns)
		fail(s, FAULT_LIMIT);
	if (s->schedule == SCHEDULE_TIME) {
		queue_reschedule(s, sim->now);
		/* Agents run on this stack, because a switch takes longer than most of their steps. */
		while ((next = queue_next(s))->is_agent)
			step(s, (struct loom_agent *)next);
	} else if (s->schedule == SCHEDULE_RANDOM) {
		if (sim->waiting || pct_draw(&s->pct, 3) == 0)
			next = any_entity(s);
	} else {
		if (sim->waiting || pct_is_change(&s->pct) || s->pct.step - s->resumed_at >= PCT_ROW)
			me->at.priority = pct_lower(&s->pct);
		next = highest(s);
	}
	if (next == &me->at) {
		if (s->schedule == SCHEDULE_TIME)
			set_clock(s);
		return;
	}
	sim->waiting = 0;
	if (next->is_agent)
		switch_home(s);
	else
		resume(s, &me->fiber, (struct sim_worker *)next);
	fiber_arrive(&me->fiber, s->from);
}

static __thread struct simulation *here;

/* ---- workers -------------------------------------------------------------------------------------- */

static void leave(struct simulation *s, struct sim_worker *me)
{
	struct sim_member *m = me->device;
	queue_remove(s, &me->at);
	if (!m->ctl->stop && !s->sim.ended) {
		s->sim.ended = 1;
		for (struct sim_group *g = me->at.group->shares ? s->group : NULL; g; g = g->next)
			g->ended = 1;
	}
	if (!--m->left)
		m->took_ns = s->sim.now + m->teardown_ns - BEGIN_NS;
	switch_home(s);
}

static void worker_main(void)
{
	struct simulation *s = here;
	struct sim_worker *me = s->running;
	struct loom_counters *counters = me->ctx.counters;
	fiber_arrive(&me->fiber, s->from);
	counters->begin_ns = s->sim.now;
	me->device->run(&me->ctx);
	counters->end_ns = s->sim.now;
	counters->cpu_ns = 0;
	counters->state = LOOM_STATE_DONE;
	leave(s, me);
}

/* Resets a worker to the start of the sample. */
static void reset_worker(struct simulation *s, struct sim_worker *x, uint64_t seed)
{
	struct sim_member *m = x->device;
	struct loom_ctx *c = &x->ctx;
	uint64_t random = loom__mix64(seed + c->worker);
	c->depth = c->turn = c->stop_seen = 0;
	c->random = random ? random : 1;
	memset(x->regs, 0, sizeof(x->regs));
	(void)fiber_make(&x->fiber, 0, worker_main); /* this cannot fail, because the fiber has a stack */
	x->waited_at = 0;
	x->recent = (struct loom_sim_recent){0};
	x->at.priority = pct_priority(&s->pct);
	queue_insert(s, &x->at, BEGIN_NS + m->launch_ns);
}

static void reset_member(struct simulation *s, struct sim_member *m, uint64_t seed)
{
	const struct loom_ctl *host = m->group->ctl;
	m->left = m->workers;
	memset(m->local, 0, m->local_bytes);
	m->ctl->initial_tasks = host->initial_tasks;
	m->ctl->sample = host->sample;
	m->ctl->stop = __atomic_load_n(&host->stop, __ATOMIC_RELAXED);
	for (uint32_t k = 0; k < m->workers; k++)
		reset_worker(s, &m->worker[k], seed);
}

static void reset_agents(struct simulation *s, struct sim_group *g, uint32_t number)
{
	g->ended = 0;
	g->live.live = 0;
	g->number = number;
	s->group_slot[number] = HEAP_NO_SLOT;
	for (struct loom_agent *a = g->agents; a; a = a->next) {
		a->at.slot = HEAP_NO_SLOT;
		a->at.priority = pct_priority(&s->pct);
		if (!s->probing)
			queue_insert(s, &a->at, BEGIN_NS);
	}
}

static void reset_all(struct simulation *s, uint64_t seed)
{
	s->live.live = 0;
	s->active = NULL;
	uint32_t groups = 0;
	for (struct sim_group *g = s->group; g; g = g->next)
		reset_agents(s, g, groups++);
	if (s->between)
		reset_agents(s, s->between, groups);
	for (struct sim_group *g = s->group; g; g = g->next)
		for (uint32_t i = 0; i < g->members && (!s->probing || g == s->probing); i++)
			if (g->member[i] && g->member[i]->launched)
				reset_member(s, g->member[i], seed);
}

/* Returns the seed of a sample. With schedule = time, it comes from the [run] seed, and decides the choices of
 * policies. In a random schedule, it comes from the seed of the schedule, and decides all choices. */
static uint64_t seed_of_sample(const struct simulation *s, uint64_t sample)
{
	return s->schedule == SCHEDULE_TIME ? loom__mix64(loom__mix64(s->seed) + sample) : loom__mix64(s->schedule_seed + sample);
}

static void prepare(struct simulation *s, uint64_t sample)
{
	uint64_t seed = seed_of_sample(s, sample);
	s->sim.now = s->sim.changed = BEGIN_NS;
	s->sim.horizon = s->sim.events = 0;
	s->sim.waiting = 0;
	s->sim.ended = 0;
	s->sim.yield = yield;
	s->sim.ended_early = ended_early;
	s->sim.find = memory_find_range;
	s->sim.stored = agents_stored;
	s->turn = s->check_at = 0;
	pct_start(&s->pct, seed);
	s->running = NULL;
	s->over = 0;
	if (s->schedule != SCHEDULE_TIME)
		s->schedule = (s->schedule_seed + sample) & 1 ? SCHEDULE_PCT : SCHEDULE_RANDOM;
	for (int i = 0; i < PCT_CHANGES; i++)
		s->pct.change[i] = 1 + pct_draw(&s->pct, 16ull << pct_draw(&s->pct, 16));
	reset_all(s, seed);
	if (s->weak && !s->probing)
		model_begin(s, seed);
	s->delayed = NULL;
	if (s->schedule == SCHEDULE_TIME || !s->live.live || pct_draw(&s->pct, 2))
		return;
	s->delayed = s->live.at[pct_draw(&s->pct, s->live.live)].what;
	s->delayed_from = pct_draw(&s->pct, 16ull << pct_draw(&s->pct, 10));
	s->delayed_until = s->delayed_from + pct_draw(&s->pct, 16ull << pct_draw(&s->pct, 10));
}

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The scheduler loop. Workers switch to each other directly. They return to this loop when they end and, in random
 * schedules, when an agent must run. */
void simulation_run(struct simulation *s)
{
	const struct sim_group *first = s->probing ? s->probing : s->group;
	double began = cpu_seconds();
	prepare(s, first->ctl->sample);
	here = s;
	fiber_home(&s->home);
	for (struct sim_entity *next; !s->over && (next = choose(s));) {
		if (next->is_agent) {
			step(s, (struct loom_agent *)next);
			continue;
		}
		resume(s, &s->home, (struct sim_worker *)next);
		fiber_arrive(&s->home, s->from);
	}
	if (s->weak && !s->probing)
		model_end(s);
	LOOM_LOG(first->host, LOOM_LOG_INFO, "sim", "%llu events in %.3g s of a core, %llu steps",
		 (unsigned long long)s->sim.events, cpu_seconds() - began, (unsigned long long)s->pct.step);
}
