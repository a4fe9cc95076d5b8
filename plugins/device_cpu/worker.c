/* SPDX-License-Identifier: Apache-2.0 */
/* What a lane knows and what it does, from sample to sample. */
#include <string.h>
#include <time.h>

#include "device_cpu.h"

#include <gpuloom/term.h>

#include "lib/align.h"
#include "lib/random.h"


static void *at(const struct launch *l, loom_ref ref)
{
	if (!ref)
		return NULL;
	return l->view[LOOM_REF_SEGMENT(ref)] + LOOM_REF_OFFSET(ref);
}

static const void *table_of(const struct device *d, enum loom_kind kind)
{
	const void *table = d->program.table[kind];
	return table ? table : lacking_table(kind);
}

static void fill(struct launch *l, struct worker *w, struct loom_ctx *c, uint32_t worker,
		 uint32_t lane)
{
	const struct loom_launch *what = l->what;
	const struct device *d = l->device;
	const struct loom_device_shape *shape = &what->layout->device[what->device];
	struct loom_counters *counters = at(l, what->counters);
	uint32_t id = shape->first_worker + worker;
	*c = (struct loom_ctx){
	    .worker = id,
	    .workers = what->layout->workers,
	    .device = what->device,
	    .devices = what->layout->devices,
	    .first = shape->first_worker,
	    .count = shape->workers,
	    .lane = lane,
	    .lanes = l->lanes,
	    .flags = launch_yields(l) ? LOOM_CTX_OVERSUBSCRIBED : 0,
	    .ctl = l->ctl,
	    .counters = counters ? &counters[id] : &w->unseen,
	    .segment = l->view,
	    .together = &w->together,
	    .initial = at(l, what->initial),
	    .sched = table_of(d, LOOM_SCHED),
	    .term = table_of(d, LOOM_TERM),
	    .sync = table_of(d, LOOM_SYNC),
	    .barrier = table_of(d, LOOM_BARRIER),
	    .trigger = table_of(d, LOOM_TRIGGER),
	    .qos = table_of(d, LOOM_QOS),
	    .workload = d->program.table[LOOM_WORKLOAD],
	    .task = d->program.task,
	    .tasks = d->program.tasks,
	};
	char *trace = LOOM_HAS(what, trace) ? at(l, what->trace) : NULL;
	c->trace = trace ? (struct loom_trace *)(trace + id * what->trace_bytes) : NULL;
	char *local = w->local;
	for (int kind = 0; kind < LOOM_KINDS; kind++) {
		c->global[kind] = what->global ? at(l, what->global[kind]) : NULL;
		c->on_device[kind] = what->on_device ? at(l, what->on_device[kind]) : NULL;
		c->registry[kind] = what->registry ? at(l, what->registry[kind]) : NULL;
		c->own[kind] = c->registry[kind] ? at(l, c->registry[kind][id]) : NULL;
		if (what->local_bytes && what->local_bytes[kind]) {
			c->local[kind] = local;
			local += loom__align(what->local_bytes[kind], 64);
		}
	}
}

void contexts_fill(struct launch *l)
{
	l->ctl = at(l, l->what->ctl);
	l->probe = at(l, l->what->probe);
	for (uint32_t i = 0; i < l->workers; i++) {
		struct worker *w = &l->worker[i];
		w->local = l->local + i * l->local_bytes;
		for (uint32_t lane = 0; lane < l->lanes; lane++)
			fill(l, w, &l->lane[i * l->lanes + lane].ctx, i, lane);
	}
}

/* Never 0, where xorshift would stay. */
static uint64_t seed(const struct loom_ctx *c, uint64_t run, uint32_t sample)
{
	uint64_t x = loom__mix64(loom__mix64(loom__mix64(run) + sample) + c->worker);
	return x ? x : 1;
}

/* Before the arrival at the gate. */
static void prepare(struct lane *me, uint32_t phase)
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

/* The last lane that comes out stamps the worker's end, and says what CPU time all of them used, besides
 * what the workload has counted of other processes. */
static void finish(struct lane *me, uint32_t go, int late)
{
	struct launch *l = me->launch;
	struct worker *w = me->worker;
	uint64_t now = loom_clock_ns(&me->ctx);
	/* Ordered by `left`, and towards the next sample by the gate. */
	if (!l->ctl->unmeasured)
		__atomic_add_fetch(&w->cpu_ns, cpu_time_ns() - me->cpu_begin_ns, __ATOMIC_RELAXED);
	if (l->lanes > 1) {
		/* Release what this lane did; the last one acquires it all. */
		if (__atomic_add_fetch(&w->left, 1, __ATOMIC_ACQ_REL) != l->lanes)
			return;
		/* Next touched in the next sample: ordered by the gate. */
		__atomic_store_n(&w->left, 0, __ATOMIC_RELAXED);
		now = loom_clock_ns(&me->ctx); /* after all of them */
	}
	me->ctx.counters->end_ns = now;
	__atomic_store_n(&me->ctx.counters->state, LOOM_STATE_DONE, __ATOMIC_RELAXED);
	me->ctx.counters->cpu_ns += w->cpu_ns;
	w->cpu_ns = 0;
	if (late)
		gate_part(&l->device->gate, go, now, loom_stopped(&me->ctx));
	else
		gate_finish(&l->device->gate, l->workers, go, now, loom_stopped(&me->ctx));
	/* Of all lanes, but before this one comes to the next sample: not part of a sample's time. */
	if (l->local_bytes)
		memset(w->local, 0, l->local_bytes);
}

/* launch_cost and teardown_cost: what a kernel costs on the device that this one stands for. */
static void spend(const struct loom_ctx *c, uint64_t ns)
{
	uint64_t until = loom_clock_ns(c) + ns;
	while (ns && loom_clock_ns(c) < until && !loom_stopped(c))
		loom_pause(c);
}

/* 1: all threads of the launch have been started; 0: leave. */
static int await_start(struct launch *l)
{
	uint32_t word;
	/* Release: what the thread's start-up did, for await_all. */
	__atomic_fetch_add(&l->here, 1, __ATOMIC_RELEASE);
	loom_futex_wake(&l->here, 1, FUTEX_PRIVATE_FLAG);
	while ((word = __atomic_load_n(&l->start, __ATOMIC_ACQUIRE)) == 0)
		loom_futex_sleep(&l->start, 0, 0, FUTEX_PRIVATE_FLAG);
	return word == START_GO;
}

/* What a lane saw after `last`: GO, or RETIRE where it woke up so late that the host has given up the sample. The lanes
 * of a worker meet at barriers, so all of them take part, or none: the first one's word holds. */
static uint32_t agree(struct lane *me, uint32_t last, uint32_t phase)
{
	uint64_t *word = &me->worker->agreed, key = last + 1, mine = key << 32 | phase; /* 0: none yet */
	uint64_t held = __atomic_load_n(word, __ATOMIC_RELAXED);
	if (me->launch->lanes == 1)
		return phase;
	/* Relaxed: what the host set up was acquired with the phase. */
	while (held >> 32 != key)
		if (__atomic_compare_exchange_n(word, &held, mine, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return phase;
	return (uint32_t)held;
}

void *lane_main(void *arg)
{
	struct lane *me = arg;
	struct launch *l = me->launch;
	struct loom_ctx *c = &me->ctx;
	struct gate *gate = &l->device->gate;
	uint32_t lanes = l->workers * l->lanes;
	const struct loom_term_dev *term = c->term;
	uint32_t phase = 0;
	if (!await_start(l))
		return NULL;
	for (;;) {
		int late = 0;
		/* Not where the host's thread is: it would have to wait for us. */
		uint32_t host = __atomic_load_n(&gate->words->host_cpu, __ATOMIC_RELAXED);
		int spins = l->spare || (me->core != CORE_ANY && me->core != host);
		uint32_t last = phase;
		phase = gate_park(gate, c, last, spins ? l->device->options->spin : 0);
		if (phase == LOOM_PHASE_RETIRE || LOOM_PHASE_IS_GO(phase))
			phase = agree(me, last, phase);
		if (phase == LOOM_PHASE_RETIRE)
			break;
		prepare(me, phase);
		if (!LOOM_PHASE_IS_GO(phase)) {
			if (me == l->lane)
				attach_ready(l);
			gate_arrive(gate, lanes, phase);
			last = phase;
			phase = agree(me, last, gate_spin(gate, c, last));
			if (phase == LOOM_PHASE_RETIRE)
				break;
		} else if (l->late) {
			late = 1;
			if (!gate_join(gate, c, phase))
				continue;
			term->busy(c);
		} else {
			loom_barrier_lanes(c); /* all find their private blocks zeroed */
		}
		if (!c->ctl->unmeasured)
			me->cpu_begin_ns = cpu_time_ns();
		if (c->lane == 0) {
			c->counters->cpu_ns = 0;
			c->counters->begin_ns = loom_clock_ns(c);
		}
		if (l->run) {
			spend(c, l->device->options->launch_cost);
			l->run(c);
			spend(c, l->device->options->teardown_cost);
		} else {
			loom_probe_run(c, l->probe);
		}
		finish(me, phase, late);
	}
	gate_leave(gate, lanes);
	return NULL;
}
