/* SPDX-License-Identifier: Apache-2.0 */
/* Central scheduling by the CPU: a thread of the host holds all tasks and hands them to workers in batches; what tasks
 * spawn goes back to it. What work stealing between workers is compared with. Device code, collective.
 *
 * Each worker has a box in host memory with two rings: records on their way to the worker, and tasks on their way back.
 * Each word of a box is written by one side only, so that any link will do. A record is a task, or names a part of the
 * initial set, which workers read where it lies. The host knows that all is done when each record that it handed out
 * has ended and each task that came back has been handed out. */
#ifndef SCHED_HOST_DEV_H
#define SCHED_HOST_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sched/queue.dev.h"
#endif

/* The worker's block. Behind it the two rings: local_queue records, and `spill` tasks. Counts begin anew in each sample
 * and wrap. */
struct host_box {
	uint64_t put;    /* the host: how many records; HOST_DONE, HOST_FAILED */
	uint32_t taken;  /* and how many tasks it has taken out */
	uint32_t wanted; /* a hint: others lack tasks, and the host has none */
	uint64_t pad0[6];
	uint64_t told; /* the worker: how many records have ended, << 32, and how many tasks it has put in: one word, so that
			* who knows the one knows the other */
	uint64_t here; /* 1: it takes part in the sample */
	uint64_t pad1[6];
};
#define HOST_DONE (1ull << 32)   /* no task is left */
#define HOST_FAILED (1ull << 33) /* the host has no memory for its tasks */
#define HOST_RANGE 0xffffffffu   /* the tag of a record that means param[1] tasks of the initial set, from param[0] on */

/* What each lane keeps; in step like sched_lane. */
struct host_lane {
	uint32_t ran;   /* records that have ended */
	uint32_t made;  /* tasks put into the box */
	uint32_t limit; /* up to where there is room for them */
	uint32_t other; /* an affinity that excludes this device */
};
#define HOST_REGISTER_WORDS 4 /* of loom_ctx.regs */
#define HOST_EXTRA(lanes) ((uint64_t)(lanes) * sizeof(struct host_lane))

LOOM_FN struct host_lane *host_lane(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	return (struct host_lane *)&c->regs[SCHED_KEEP_REST];
#else
	return (struct host_lane *)sched_private(c) + c->lane;
#endif
}

LOOM_FN struct host_box *host_box(const struct loom_ctx *c)
{
	return (struct host_box *)c->own[LOOM_SCHED];
}

#define HOST_RECORDS(c) ((struct loom_task *)(host_box(c) + 1))
#define HOST_RETURNS(c) ((uint32_t)SCHED_CFG(c, spill))

/* Where the n-th task goes that this worker sends back. */
LOOM_FN struct loom_task *host_slot(const struct loom_ctx *c, uint32_t n)
{
	return &HOST_RECORDS(c)[SCHED_CFG(c, local_queue) + (n & (HOST_RETURNS(c) - 1))];
}

/* After a barrier since the last spawn. Release: the host's acquire then covers the tasks, and what they refer to. */
LOOM_FN void host_tell(struct loom_ctx *c)
{
	const struct host_lane *mine = host_lane(c);
	if (c->lane == 0)
		loom_store_release_sys(&host_box(c)->told, (uint64_t)mine->ran << 32 | mine->made);
}

/* Lane 0. No task and no room will come any more. */
LOOM_FN int host_is_gone(struct loom_ctx *c)
{
	if (loom_load_relaxed_sys(&host_box(c)->put) & HOST_FAILED)
		loom_worker_fail(c, LOOM_ENOMEM, 0);
	return loom_stopped(c);
}

/* Lane 0, while it waits for the host. */
LOOM_FN void host_pause(struct loom_ctx *c, uint32_t *pauses)
{
#ifdef GPULOOM_DEV_CPU_H /* whose thread may need this core */
	if (*pauses >= SCHED_PAUSE_MAX)
		loom_yield(c);
#endif
	sched_pause(c, pauses);
}

/* Waits until the host has made room for `most` more tasks; 0 when the run was stopped instead. */
SCHED_SLOW int host_await_room(struct loom_ctx *c, uint32_t most)
{
	struct host_lane *mine = host_lane(c);
	uint32_t limit = 0, pauses = 1, gone = 0;
	loom_barrier_lanes(c);
	host_tell(c);
	if (c->lane == 0) {
		/* Acquire: the host has read what lay there. */
		while ((limit = loom_load_acquire_sys(&host_box(c)->taken) + HOST_RETURNS(c)) - mine->made < most &&
		       !(gone = (uint32_t)host_is_gone(c)))
			host_pause(c, &pauses);
	}
	mine->limit = loom_word_from_lane0(c, limit);
	return !loom_word_from_lane0(c, gone);
}

/* Sends a task back. */
LOOM_FN int host_push(struct loom_ctx *c, const struct loom_task *task)
{
	struct host_lane *mine = host_lane(c);
	if (mine->made == mine->limit && !LOOM_OUTLINED_COLLECTIVE(host_await_room, c, 1u))
		return LOOM_EFULL;
	sched_copy_held(c, host_slot(c, mine->made), task);
	mine->made++;
	return 0;
}

SCHED_SLOW int host_push_next(struct loom_ctx *c, loom_ref join)
{
	struct loom_task next;
	return sched_lower_join(c, join, &next) ? host_push(c, &next) : 0;
}

/* A lane that runs a task of its own. Its worker has seen to it that there is room for some from each, in local->count
 * up to local->backlog_count; it cannot wait for more before all lanes meet. */
SCHED_SLOW int host_alone_push(struct loom_ctx *c, const struct loom_task *task)
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

LOOM_FN int host_alone_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	sched_alone_lane(c)->spawned++;
	return host_alone_push(c, task);
}

LOOM_FN int sched_host_spawn(struct loom_ctx *c, const struct loom_task *task)
{
#ifdef LOOM_DEVICE_COMPILE /* the CPU has a table for this */
	if (SCHED_SINGLE_LANE(c))
		return host_alone_spawn(c, task);
#endif
	sched_lane(c)->spawned++;
	return host_push(c, task);
}

/* Tasks are wanted where the host has none for a worker that lacks some. What was made so far is sent at once. */
LOOM_FN int sched_host_wanted(struct loom_ctx *c)
{
	int64_t yes = 0;
	if (!SCHED_SINGLE_LANE(c)) {
		loom_barrier_lanes(c);
		if (c->lane == 0 && (uint32_t)loom_load_relaxed_sys(&host_box(c)->told) != host_lane(c)->made)
			host_tell(c);
	}
	if (c->lane == 0)
		yes = loom_stopped(c) ? LOOM_EINTR : !SCHED_SINGLE_LANE(c) && loom_load_relaxed_sys(&host_box(c)->wanted);
	return (int)loom_from_lane0(c, (uint64_t)yes);
}

/* ---- running --------------------------------------------------------------------------------- */

/* Tasks that lie one after the other in a ring: records that were fetched, or a part of the initial set. */
struct host_run {
	const struct loom_task *ring;
	uint64_t at, n, mask;
	uint32_t records; /* that it is of */
	uint32_t unused;
};

/* The next of the `n` records that lie in the private ring from the n-th on. */
LOOM_FN struct host_run host_next_run(struct loom_ctx *c, uint32_t got, uint32_t n)
{
	const struct loom_task *ring = sched_ring(c), *first = &ring[got & sched_mask(c)];
	struct host_run r = {ring, got, 0, sched_mask(c), 0, 0};
	if (first->tag == HOST_RANGE) {
		struct host_run range = {c->initial, first->param[0], first->param[1], ~0ull, 1, 0};
		if (c->lane == 0)
			sched_local(c)->tally.claimed += range.n;
		return range;
	}
	while (r.records < n && ring[(got + r.records) & sched_mask(c)].tag != HOST_RANGE)
		r.records++;
	r.n = r.records;
	return r;
}

#ifdef GPULOOM_DEV_CPU_H
static const struct loom_sched_dev host_alone_cpu; /* with host_alone_spawn */
#endif

/* A lane of several runs `t`, or sends it back. */
LOOM_FN void host_alone_run(struct loom_ctx *c, const struct loom_task *t)
{
	struct loom_ctx alone = *c;
	struct loom_task next;
	alone.single_lane = c->lane + 1;
	alone.lane = 0;
	alone.lanes = 1;
#ifdef GPULOOM_DEV_CPU_H
	alone.sched = &host_alone_cpu;
#endif
	if (t->affinity == host_lane(c)->other) {
		loom_fetch_add_relaxed_dev(&sched_local(c)->sent, 1u);
		LOOM_OUTLINED(host_alone_push, &alone, t);
	} else {
		loom_task_run(&alone, t);
		if (t->join && sched_lower_join(&alone, t->join, &next))
			LOOM_OUTLINED(host_alone_push, &alone, (const struct loom_task *)&next);
	}
	c->random = alone.random;
	c->stop_seen = alone.stop_seen;
	sched_lane(c)->spawned = sched_alone_lane(&alone)->spawned; /* on a GPU its context's */
}

/* A task for each lane at a time; how many, with those that sched_local.sent counts. */
LOOM_FN uint64_t host_run_lanes(struct loom_ctx *c, const struct host_run *r)
{
	struct sched_local *l = sched_local(c);
	struct host_lane *mine = host_lane(c);
	uint64_t ran = 0;
	for (uint64_t i = 0; i < r->n; i += c->lanes) {
		struct loom_task t;
		/* Half of the ring: then most tasks find room, and batches overlap. */
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
			host_alone_run(c, &t);
		}
		loom_barrier_lanes(c);
		mine->made += l->count < l->backlog_count ? l->count : l->backlog_count;
		ran += r->n - i < c->lanes ? r->n - i : c->lanes;
		if (loom_from_lane0(c, (uint64_t)loom_stopped(c)))
			break;
		if (loom_poll_due(c))
			host_tell(c);
	}
	return ran;
}

/* Lanes run a task together; how many ran. */
LOOM_FN uint64_t host_run_together(struct loom_ctx *c, const struct host_run *r)
{
	const struct host_lane *mine = host_lane(c);
	uint32_t told = mine->made;
	uint64_t ran = 0;
	for (uint64_t i = 0; i < r->n; i++) {
		struct loom_task t;
		sched_copy_task(&t, &r->ring[(r->at + i) & r->mask]);
		if (SCHED_ODD(&t) && t.affinity == mine->other) {
			LOOM_OUTLINED_COLLECTIVE(host_push, c, (const struct loom_task *)&t);
		} else {
			loom_task_run(c, &t);
			ran++;
			if (t.join)
				LOOM_OUTLINED_COLLECTIVE(host_push_next, c, t.join);
		}
		if (!loom_poll_due(c))
			continue;
		if (loom_from_lane0(c, (uint64_t)loom_stopped(c))) /* also a barrier */
			break;
		if (told != mine->made)
			host_tell(c);
		told = mine->made;
	}
	return ran;
}

/* The host's word, once it says something new; HOST_DONE where no task will come. */
LOOM_FN uint64_t host_await_records(struct loom_ctx *c, uint32_t got)
{
	uint64_t put = 0;
	if (c->lane == 0) {
		struct sched_local *l = sched_local(c);
		uint32_t pauses = 1;
		/* Acquire: pairs with the host's release of the records, and of what others wrote for them. */
		put = loom_load_acquire_sys(&host_box(c)->put);
		if (put == got) {
			loom_set_state(c, LOOM_STATE_SEARCH);
			l->tally.last_task_ns = loom_clock_ns(c);
			while ((put = loom_load_acquire_sys(&host_box(c)->put)) == got && !host_is_gone(c))
				host_pause(c, &pauses);
			if (put < HOST_DONE) { /* sched_leave() counts the last time */
				l->tally.idle_ns += loom_clock_ns(c) - l->tally.last_task_ns;
				l->tally.idle_entries++;
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
			ran += SCHED_GRANULARITY(c) == SCHED_LANE && SCHED_SEVERAL(c) ? host_run_lanes(c, &r) :
										   host_run_together(c, &r);
			i += r.records;
		}
		got += n;
		mine->ran = got;
		loom_barrier_lanes(c); /* tasks are written, and the ring has been read */
		host_tell(c);
	}
	sched_leave(c, ran);
}

#endif
