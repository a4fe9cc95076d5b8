/* SPDX-License-Identifier: Apache-2.0 */
/* A lane: its context, and its loop over samples. */
#include <string.h>
#include <time.h>

#include "../device_common/hostmem/context.h"
#include "device_cpu.h"

#include <gpuloom/term.h>

#include "lib/align.h"
#include "lib/random.h"

#define ALONE_NS 1000 /* how long the caller executes a sample alone, if the other workers poll */

static const void *table_of(const struct device *d, enum loom_kind kind)
{
	const void *table = d->program.table[kind];
	return table ? table : lacking_table(kind);
}

static void fill(struct launch *l, struct worker *w, struct loom_ctx *c, uint32_t worker, uint32_t lane)
{
	const struct device *d = l->device;
	context_fill(l->what, l->view, worker, w->local, c);
	c->lane = lane;
	c->lanes = l->lanes;
	c->flags = launch_yields(l) ? LOOM_CTX_OVERSUBSCRIBED : 0;
	c->ctl = l->ctl;
	c->counters = c->counters ? c->counters : &w->unseen;
	c->together = &w->together;
	c->sched = table_of(d, LOOM_SCHED);
	c->term = table_of(d, LOOM_TERM);
	c->sync = table_of(d, LOOM_SYNC);
	c->barrier = table_of(d, LOOM_BARRIER);
	c->trigger = table_of(d, LOOM_TRIGGER);
	c->qos = table_of(d, LOOM_QOS);
	c->workload = d->program.table[LOOM_WORKLOAD];
	c->task = d->program.task;
	c->tasks = d->program.tasks;
}

void contexts_fill(struct launch *l)
{
	l->ctl = context_at(l->view, l->what->ctl);
	l->probe = context_at(l->view, l->what->probe);
	for (uint32_t i = 0; i < l->workers; i++) {
		struct worker *w = &l->worker[i];
		w->local = l->local + i * l->local_bytes;
		for (uint32_t lane = 0; lane < l->lanes; lane++)
			fill(l, w, &l->lane[i * l->lanes + lane].ctx, i, lane);
	}
}

/* Returns a seed for xorshift. It is never 0, because xorshift would stay at 0. */
static uint64_t seed(const struct loom_ctx *c, uint64_t run, uint32_t sample)
{
	uint64_t x = loom__mix64(loom__mix64(loom__mix64(run) + sample) + c->worker);
	return x ? x : 1;
}

/* Prepares the context before the lane arrives at the gate. */
void lane_prepare(struct lane *me, uint32_t phase)
{
	struct loom_ctx *c = &me->ctx;
	c->depth = 0;
	c->turn = 0;
	c->random = seed(c, me->launch->what->layout->seed, LOOM_PHASE_SAMPLE(phase));
}

static uint64_t cpu_time_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Ends a sample for a lane. The last lane of a worker records the worker's end and the CPU time of all its lanes. The
 * workload may have counted CPU time of other processes in cpu_ns before, so the time is added. */
static void finish(struct lane *me, uint32_t go, int late)
{
	struct launch *l = me->launch;
	struct worker *w = me->worker;
	uint64_t now = l->ctl->untimed ? 0 : loom_clock_ns(&me->ctx);
	/* Relaxed, because the addition to `left` orders this one, and the gate orders the next sample. */
	if (!l->ctl->unmeasured)
		__atomic_add_fetch(&w->cpu_ns, cpu_time_ns() - me->cpu_begin_ns, __ATOMIC_RELAXED);
	if (l->lanes > 1) {
		/* Releases the work of this lane. The last lane acquires the work of all lanes. */
		if (__atomic_add_fetch(&w->left, 1, __ATOMIC_ACQ_REL) != l->lanes)
			return;
		/* Relaxed, because the gate orders the next use of this word. */
		__atomic_store_n(&w->left, 0, __ATOMIC_RELAXED);
		now = loom_clock_ns(&me->ctx); /* the end of the last lane */
	}
	me->ctx.counters->end_ns = now;
	__atomic_store_n(&me->ctx.counters->state, LOOM_STATE_DONE, __ATOMIC_RELAXED);
	me->ctx.counters->cpu_ns += w->cpu_ns;
	w->cpu_ns = 0;
	if (late)
		gate_part(&l->device->gate, go, now, loom_stopped(&me->ctx));
	else
		gate_finish(&l->device->gate, l->workers, go, now, loom_stopped(&me->ctx));
	/* Clears the private blocks of the worker before this lane reaches the next sample, outside of the measured
	 * time. */
	if (l->local_bytes)
		memset(w->local, 0, l->local_bytes);
}

static void wait_for(const struct loom_ctx *c, uint64_t ns)
{
	uint64_t until = loom_clock_ns(c) + ns;
	while (loom_clock_ns(c) < until && !loom_stopped(c))
		loom_pause(c);
}

/* Waits as long as a GPU takes to start or end a kernel. This models launch_cost and teardown_cost. */
static void spend(const struct loom_ctx *c, uint64_t ns)
{
	if (ns)
		wait_for(c, ns);
}

/* Returns 1 when all threads of the launch run, or 0 if this thread must leave. */
static int await_start(struct launch *l)
{
	uint32_t word;
	/* Release: publishes the start-up of this thread. Pairs with the acquire in await_all() of threads.c. */
	__atomic_fetch_add(&l->here, 1, __ATOMIC_RELEASE);
	loom_futex_wake(&l->here, 1, FUTEX_PRIVATE_FLAG);
	while ((word = __atomic_load_n(&l->start, __ATOMIC_ACQUIRE)) == 0)
		loom_futex_sleep(&l->start, 0, 0, FUTEX_PRIVATE_FLAG);
	return word == START_GO;
}

/* Makes the lanes of a worker agree on the phase after `last`, because either all or none must take part in barriers.
 * The phase is GO, or RETIRE if a lane woke up so late that the host has abandoned the sample. The first lane stores
 * (last + 1) << 32 | phase, and the other lanes take that phase. The key last + 1 is never 0, so 0 means that no lane
 * has stored yet. */
static uint32_t agree(struct lane *me, uint32_t last, uint32_t phase)
{
	uint64_t *word = &me->worker->agreed, key = last + 1, mine = key << 32 | phase;
	uint64_t held = __atomic_load_n(word, __ATOMIC_RELAXED);
	if (me->launch->lanes == 1)
		return phase;
	/* Relaxed, because the lane acquired the host's set-up together with the phase. */
	while (held >> 32 != key)
		if (__atomic_compare_exchange_n(word, &held, mine, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return phase;
	return (uint32_t)held;
}

void lane_sample(struct lane *me, uint32_t go, int late)
{
	struct launch *l = me->launch;
	struct loom_ctx *c = &me->ctx;
	if (!c->ctl->unmeasured)
		me->cpu_begin_ns = cpu_time_ns();
	if (c->lane == 0) {
		c->counters->cpu_ns = 0;
		c->counters->begin_ns = c->ctl->untimed ? 0 : loom_clock_ns(c);
	}
	if (l->run) {
		spend(c, l->device->options->launch_cost);
		l->run(c);
		spend(c, l->device->options->teardown_cost);
	} else {
		loom_probe_run(c, l->probe);
	}
	finish(me, go, late);
}

/* Takes part in a sample that began by GO alone and whose workers may be late. */
static void join(struct lane *me, uint32_t phase)
{
	struct gate *gate = &me->launch->device->gate;
	const struct loom_term_dev *term = me->ctx.term;
	/* The caller runs small tasks faster alone, because the words of the scheduler then stay in its cache. */
	if (me->launch->by_caller && gate_is_callers(&me->ctx))
		wait_for(&me->ctx, ALONE_NS);
	if (!gate_join(gate, &me->ctx, phase))
		return;
	gate_call(gate, me->launch->host_ctl);
	term->busy(&me->ctx);
	lane_sample(me, phase, 1);
}

/* Takes part in a sample after `phase`, which is READY or GO. Returns the phase after which the lane parks again. */
static uint32_t take_part(struct lane *me, uint32_t phase)
{
	struct launch *l = me->launch;
	struct gate *gate = &l->device->gate;
	lane_prepare(me, phase);
	if (LOOM_PHASE_IS_GO(phase) && l->late) {
		join(me, phase);
		return phase;
	}
	if (LOOM_PHASE_IS_GO(phase)) {
		loom_barrier_lanes(&me->ctx); /* after this, all lanes see zeroed private blocks */
	} else {
		if (me == l->lane)
			attach_ready(l);
		gate_arrive(gate, l->workers * l->lanes, phase);
		phase = agree(me, phase, gate_spin(gate, &me->ctx, phase));
	}
	if (phase != LOOM_PHASE_RETIRE)
		lane_sample(me, phase, 0);
	return phase;
}

void lane_main(struct lane *me)
{
	struct launch *l = me->launch;
	struct gate *gate = &l->device->gate;
	struct caller *caller = l->by_caller && me == l->lane ? &l->device->caller : NULL;
	uint32_t phase = 0;
	if (!await_start(l))
		return;
	while (phase != LOOM_PHASE_RETIRE) {
		/* Does not spin on the core of the host thread, because the host thread would have to wait for this
		 * lane. */
		uint32_t host = __atomic_load_n(&gate->words->host_cpu, __ATOMIC_RELAXED), last = phase;
		int spins = l->spare || (me->core != CORE_ANY && me->core != host);
		phase = caller ? gate_park_apart(gate, &me->ctx, last)
			       : gate_park(gate, &me->ctx, last, spins ? l->device->options->spin : 0);
		if (phase == LOOM_PHASE_RETIRE || LOOM_PHASE_IS_GO(phase))
			phase = agree(me, last, phase);
		if (phase == LOOM_PHASE_RETIRE)
			continue;
		if (caller)
			caller_lock(caller);
		phase = take_part(me, phase);
		if (caller)
			caller_unlock(caller);
	}
	gate_leave(gate, l->workers * l->lanes);
}
