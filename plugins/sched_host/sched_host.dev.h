/* SPDX-License-Identifier: Apache-2.0 */
/* sched_host: central scheduling by the CPU, to compare with work stealing. A thread of the host holds all tasks and hands them
 * to workers in batches. Workers return spawned tasks to this thread. Device code, collective.
 *
 * Each worker has a box in host memory with two rings: records for the worker, and tasks for the host. Each word of a
 * box has one writer, so devices need only loads and stores of host memory. A record is a task, or names a part of the
 * initial set, which workers read in place. All tasks have ended when each record has ended and the host has handed out
 * each returned task. */
#ifndef SCHED_HOST_DEV_H
#define SCHED_HOST_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../sched_common/queue.dev.h"
#endif

/* The worker's block. Two rings follow: `local_queue` records for the worker, then HOST_RETURNS tasks for the host. Counts
 * are 0 at the start of a sample and wrap at 2^32. */
struct host_box {
	/* Words that the host writes. */
	uint64_t put;    /* number of records that the host has put into the ring; HOST_DONE; HOST_FAILED | -error */
	uint32_t taken;  /* number of returned tasks that the host has taken */
	uint32_t wanted; /* a hint: 1: other workers lack tasks, and the host has none */
	uint64_t pad0[6];
	/* Words that the worker writes. */
	uint64_t reported; /* number of ended records << 32 | number of returned tasks, so that one load reads both */
	uint64_t here;     /* 1: the worker takes part in the sample */
	uint64_t pad1[6];
};
#define HOST_DONE   (1ull << 32) /* no task is left */
#define HOST_FAILED (1ull << 33) /* the host has no memory for a task, or no device may run it */
#define HOST_RANGE  0xffffffffu  /* tag of a record that stands for the param[1] initial tasks from number param[0] on */

/* The state of a lane. All lanes of a worker have the same values, as in struct sched_lane. */
struct host_lane {
	uint32_t ran;   /* number of records that have ended */
	uint32_t made;  /* number of tasks that the worker has put into the ring for the host */
	uint32_t limit; /* the value of `made` at which the ring for the host is full */
	uint32_t other; /* the affinity of tasks that this device must not run */
};
#define HOST_REGISTER_WORDS 4 /* number of words of loom_ctx.regs that struct host_lane takes */
#define HOST_EXTRA(lanes)   ((uint64_t)(lanes) * sizeof(struct host_lane))

LOOM_FN struct host_lane *host_lane(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	return (struct host_lane *)&c->regs[SCHED_REGS_OWN];
#else
	return (struct host_lane *)sched_private(c) + c->lane;
#endif
}

LOOM_FN struct host_box *host_box(const struct loom_ctx *c)
{
	return (struct host_box *)c->own[LOOM_SCHED];
}

#define HOST_RECORDS(c) ((struct loom_task *)(host_box(c) + 1))
#define HOST_RETURNS(c) ((uint32_t)SCHED_CFG(c, overflow_list))

/* Returns the slot for task number n of the tasks that this worker returns to the host. */
LOOM_FN struct loom_task *host_slot(const struct loom_ctx *c, uint32_t n)
{
	return &HOST_RECORDS(c)[SCHED_CFG(c, local_queue) + (n & (HOST_RETURNS(c) - 1))];
}

/* Reports ended records and returned tasks to the host. The caller has passed a barrier of the lanes since the last spawn.
 * Release: pairs with the acquire in host_collect(), for the tasks and the data to which they refer. */
LOOM_FN void host_report(struct loom_ctx *c)
{
	const struct host_lane *mine = host_lane(c);
	if (c->lane == 0)
		loom_store_release_sys(&host_box(c)->reported, (uint64_t)mine->ran << 32 | mine->made);
}

/* Called by lane 0. Returns 1 if the run was stopped, because the host then provides no more tasks or room. Stops the
 * run if the host has failed. */
LOOM_FN int host_is_gone(struct loom_ctx *c)
{
	uint64_t put = loom_load_relaxed_sys(&host_box(c)->put);
	if (put & HOST_FAILED)
		loom_worker_fail(c, -(int)(uint32_t)put, 0);
	return loom_stopped(c);
}

/* Called by lane 0 while it waits for the host. */
LOOM_FN void host_pause(struct loom_ctx *c, uint32_t *pauses)
{
#ifdef GPULOOM_DEV_CPU_H /* the host's thread may need this core */
	if (*pauses >= SCHED_PAUSE_MAX)
		loom_yield(c);
#endif
	sched_pause(c, pauses);
}

/* Waits until the ring has room for `most` more tasks. Returns 1, or 0 if the run was stopped. */
SCHED_SLOW int host_await_room(struct loom_ctx *c, uint32_t most)
{
	struct host_lane *mine = host_lane(c);
	uint32_t limit = 0, pauses = 1, gone = 0;
	loom_barrier_lanes(c);
	host_report(c);
	if (c->lane == 0) {
		/* Acquire: pairs with the release in host_collect(), after the host has read the slots. */
		while ((limit = loom_load_acquire_sys(&host_box(c)->taken) + HOST_RETURNS(c)) - mine->made < most &&
		       !(gone = (uint32_t)host_is_gone(c)))
			host_pause(c, &pauses);
	}
	mine->limit = loom_word_from_lane0(c, limit);
	return !loom_word_from_lane0(c, gone);
}

/* Puts a task into the ring for the host. Returns 0, or LOOM_EFULL if the run was stopped. */
LOOM_FN int host_push(struct loom_ctx *c, const struct loom_task *task)
{
	struct host_lane *mine = host_lane(c);
	if (mine->made == mine->limit && !LOOM_OUTLINED_COLLECTIVE(host_await_room, c, 1u))
		return LOOM_EFULL;
	sched_copy_from_registers(c, host_slot(c, mine->made), task);
	mine->made++;
	return 0;
}

SCHED_SLOW int host_push_next(struct loom_ctx *c, loom_ref join)
{
	struct loom_task next;
	return sched_decrement_join(c, join, &next) ? host_push(c, &next) : 0;
}

/* For a single lane. All lanes share the free slots of the ring. There were local->backlog_count free slots, of which
 * local->count are used by now. A lane that finds no slot fails, because the worker waits for room only after a barrier of all
 * lanes. */
SCHED_SLOW int host_lane_push(struct loom_ctx *c, const struct loom_task *task)
{
	struct sched_local *l = sched_local(c);
	uint32_t at = loom_fetch_add_relaxed_dev(&l->count, 1u);
	if (at >= l->backlog_count) {
		loom_worker_fail(c, LOOM_EFULL, HOST_RETURNS(c));
		return LOOM_EFULL;
	}
	sched_copy_task(host_slot(c, l->head + at), task);
	return 0;
}

LOOM_FN int host_lane_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	sched_single_lane(c)->spawned++;
	return host_lane_push(c, task);
}

LOOM_FN int sched_host_spawn(struct loom_ctx *c, const struct loom_task *task)
{
#ifdef LOOM_DEVICE_COMPILE /* on a CPU, single lanes call host_lane_spawn() through host_lane_cpu */
	if (SCHED_SINGLE_LANE(c))
		return host_lane_spawn(c, task);
#endif
	sched_lane(c)->spawned++;
	return host_push(c, task);
}

/* Returns whether other workers lack tasks and the host has none. Also reports the tasks spawned so far, so that the host
 * can hand them out. */
LOOM_FN int sched_host_wanted(struct loom_ctx *c)
{
	int64_t yes = 0;
	if (!SCHED_SINGLE_LANE(c)) {
		loom_barrier_lanes(c);
		if (c->lane == 0 && (uint32_t)loom_load_relaxed_sys(&host_box(c)->reported) != host_lane(c)->made)
			host_report(c);
	}
	if (c->lane == 0)
		yes =
		    loom_stopped(c) ? LOOM_EINTR : !SCHED_SINGLE_LANE(c) && loom_load_relaxed_sys(&host_box(c)->wanted);
	return (int)loom_from_lane0(c, (uint64_t)yes);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Consecutive tasks: fetched records in the private ring, or a part of the initial set. Task i is ring[(at + i) & mask]. */
struct host_run {
	const struct loom_task *ring;
	uint64_t at, n, mask; /* n: number of tasks; mask: slots of the ring - 1, or ~0 for the initial set */
	uint32_t records;     /* number of records in which these tasks came */
	uint32_t unused;
};

/* Returns the tasks of the next records in the private ring, which has `n` records from number `got` on. A record that stands
 * for a part of the initial set is not combined with other records. */
LOOM_FN struct host_run host_next_run(struct loom_ctx *c, uint32_t got, uint32_t n)
{
	const struct loom_task *ring = sched_ring(c), *first = &ring[got & sched_mask(c)];
	struct host_run r = {ring, got, 0, sched_mask(c), 0, 0};
	if (first->tag == HOST_RANGE) {
		struct host_run range = {c->initial, first->param[0], first->param[1], ~0ull, 1, 0};
		if (c->lane == 0)
			sched_local(c)->counters.claimed += range.n;
		return range;
	}
	while (r.records < n && ring[(got + r.records) & sched_mask(c)].tag != HOST_RANGE)
		r.records++;
	r.n = r.records;
	return r;
}

#ifdef GPULOOM_DEV_CPU_H
static const struct loom_sched_dev host_lane_cpu = {
    .size = sizeof(host_lane_cpu), .spawn = host_lane_spawn, .wanted = sched_host_wanted};
#endif

/* Runs `t` on a single lane, or returns it to the host if this device must not run it. */
LOOM_FN void host_lane_run(struct loom_ctx *c, const struct loom_task *t)
{
	struct loom_ctx single = sched_begin_single(c, &host_lane_cpu);
	struct loom_task next;
	if (t->affinity == host_lane(c)->other) {
		loom_fetch_add_relaxed_dev(&sched_local(c)->sent, 1u);
		LOOM_OUTLINED(host_lane_push, &single, t);
	} else {
		loom_task_run(&single, t);
		if (t->join && sched_decrement_join(&single, t->join, &next))
			LOOM_OUTLINED(host_lane_push, &single, (const struct loom_task *)&next);
	}
	sched_end_single(c, &single);
}

/* Runs tasks, one on each lane. Returns the number of tasks, including the tasks that were returned to the host because this
 * device must not run them; sched_local.sent counts these. */
LOOM_FN uint64_t host_run_lanes(struct loom_ctx *c, const struct host_run *r)
{
	struct sched_local *l = sched_local(c);
	struct host_lane *mine = host_lane(c);
	uint64_t ran = 0;
	for (uint64_t i = 0; i < r->n; i += c->lanes) {
		struct loom_task t;
		/* Waits until half of the ring is free. With half of the ring free, most tasks find room, and the lanes fill
		 * one half while the host empties the other half. */
		if (mine->limit - mine->made < (HOST_RETURNS(c) + 1) / 2 &&
		    !LOOM_OUTLINED_COLLECTIVE(host_await_room, c, (HOST_RETURNS(c) + 1) / 2))
			break;
		if (c->lane == 0) {
			l->head = mine->made;
			l->count = 0;
			l->backlog_count = mine->limit - mine->made;
		}
		loom_barrier_lanes(c);
		if (i + c->lane < r->n) {
			sched_copy_task(&t, &r->ring[(r->at + i + c->lane) & r->mask]);
			host_lane_run(c, &t);
		}
		loom_barrier_lanes(c);
		mine->made += l->count < l->backlog_count ? l->count : l->backlog_count;
		ran += r->n - i < c->lanes ? r->n - i : c->lanes;
		uint32_t due = loom_word_from_lane0(c, (uint32_t)loom_stopped(c) << 1 | (uint32_t)loom_poll_due(c));
		if (due > 1)
			break;
		if (due)
			host_report(c);
	}
	return ran;
}

/* Runs tasks, each on all lanes together. Returns the number of tasks that ran. */
LOOM_FN uint64_t host_run_together(struct loom_ctx *c, const struct host_run *r)
{
	const struct host_lane *mine = host_lane(c);
	uint32_t reported = mine->made;
	uint64_t ran = 0;
	for (uint64_t i = 0; i < r->n; i++) {
		struct loom_task t;
		sched_copy_task(&t, &r->ring[(r->at + i) & r->mask]);
		if (SCHED_HAS_ATTRIBUTES(&t) && t.affinity == mine->other) {
			LOOM_OUTLINED_COLLECTIVE(host_push, c, (const struct loom_task *)&t);
		} else {
			loom_task_run(c, &t);
			ran++;
			if (t.join)
				LOOM_OUTLINED_COLLECTIVE(host_push_next, c, t.join);
		}
		/* Also the barrier before host_report(). */
		uint32_t due = loom_word_from_lane0(c, loom_poll_due(c) ? 1 + (uint32_t)loom_stopped(c) : 0);
		if (due > 1)
			break;
		if (due && reported != mine->made) {
			host_report(c);
			reported = mine->made;
		}
	}
	return ran;
}

/* Waits until host_box.put differs from `got`, and returns its value. HOST_DONE: no task will come. */
LOOM_FN uint64_t host_await_records(struct loom_ctx *c, uint32_t got)
{
	uint64_t put = 0;
	if (c->lane == 0) {
		struct sched_local *l = sched_local(c);
		uint32_t pauses = 1;
		/* Acquire: pairs with the release in host_hand_out(), for the records and data of other workers. */
		put = loom_load_acquire_sys(&host_box(c)->put);
		if (put == got) {
			loom_set_state(c, LOOM_STATE_SEARCH);
			l->counters.last_task_ns = loom_clock_ns(c);
			while ((put = loom_load_acquire_sys(&host_box(c)->put)) == got && !host_is_gone(c))
				host_pause(c, &pauses);
			if (put < HOST_DONE) { /* sched_leave() counts the time of the last wait */
				l->counters.idle_ns += loom_clock_ns(c) - l->counters.last_task_ns;
				l->counters.idle_entries++;
			}
			loom_set_state(c, LOOM_STATE_TASKS);
		}
		if (host_is_gone(c))
			put = HOST_DONE;
	}
	return loom_from_lane0(c, put);
}

LOOM_FN void sched_host_run(struct loom_ctx *c)
{
	uint32_t got = 0;
	uint64_t put, ran = 0;
	sched_start(c);
	const uint32_t mask = sched_mask(c);
	struct host_lane *mine = host_lane(c), begin = {0, 0, HOST_RETURNS(c), 0};
#ifdef LOOM_DEVICE_COMPILE
	begin.other = LOOM_ON_CPU;
#else
	begin.other = *(const uint32_t *)c->on_device[LOOM_SCHED];
#endif
	*mine = begin;
	if (c->lane == 0)
		loom_store_release_sys(&host_box(c)->here, 1ull);
	while ((put = host_await_records(c, got)) < HOST_DONE) {
		uint32_t n = (uint32_t)put - got;
		sched_copy_ring(c, sched_ring(c), got, mask, HOST_RECORDS(c), got, mask, n);
		loom_barrier_lanes(c);
		for (uint32_t i = 0; i < n;) {
			struct host_run r = host_next_run(c, got + i, n - i);
			ran += SCHED_GRANULARITY(c) == SCHED_LANE && SCHED_SEVERAL(c) ? host_run_lanes(c, &r)
										      : host_run_together(c, &r);
			i += r.records;
		}
		got += n;
		mine->ran = got;
		loom_barrier_lanes(c); /* all lanes have written their tasks and read the ring */
		host_report(c);
	}
	sched_leave(c, ran);
}

#endif
