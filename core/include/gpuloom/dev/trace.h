/* SPDX-License-Identifier: Apache-2.0 */
/* Events that workers record for a timeline, if c->trace is set (`gpuloom run --trace`). Workers record each steal,
 * idle time and so on, but only one of `every` tasks. Lane 0 writes to a buffer of its worker. If the buffer is full,
 * lane 0 only counts the events. */
#ifndef GPULOOM_DEV_TRACE_H
#define GPULOOM_DEV_TRACE_H

#include "dev.h" /* dev.h includes this file at its end */

/* X(NAME, text, meaning of the members `other` and `count`) */
#define LOOM_TRACE_MAP(X)                                                                          \
	X(TASK, "task", "other: its tag; count: how many tasks it represents")                     \
	X(PUBLISH, "publish", "count: tasks made public")                                          \
	X(ACQUIRE, "acquire", "count: tasks taken back")                                           \
	X(STEAL, "steal", "other: the victim; count: tasks stolen")                                \
	X(IDLE, "idle", "")                                                                        \
	X(END, "termination", "out of work until the end")

enum loom_trace_what {
#define LOOM_TRACE_ENUM(NAME, text, more) LOOM_TRACE_##NAME,
	LOOM_TRACE_MAP(LOOM_TRACE_ENUM)
#undef LOOM_TRACE_ENUM
	LOOM_TRACE_KINDS
};

struct loom_event {
	uint64_t begin_ns, end_ns; /* times on the device's clock */
	uint64_t count;
	uint32_t what, other;
};

/* The buffer of a worker: this header, followed by `room` events. The core writes `room` and `every` before a
 * sample. */
struct loom_trace {
	uint64_t room, every; /* one of `every` tasks is recorded; 0: no task */
	uint64_t used, lost;
	uint64_t pad[4];
};

/* Returns the buffer, or NULL without a trace. In a program for a GPU without traces, this is the constant NULL. */
#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_TRACED)
#define LOOM_TRACE_OF(c) ((struct loom_trace *)NULL)
#else
#define LOOM_TRACE_OF(c) ((c)->trace)
#endif

/* Returns the time on the device's clock, or 0 without a trace. */
LOOM_FN uint64_t loom_trace_now(const struct loom_ctx *c)
{
	return LOOM_TRACE_OF(c) ? loom_clock_ns(c) : 0;
}

/* Lane 0 calls this at the end of an event that began at begin_ns, and records the event. */
LOOM_FN void loom_trace_add(const struct loom_ctx *c, uint32_t what, uint64_t begin_ns, uint32_t other,
			    uint64_t count)
{
	struct loom_trace *t = LOOM_TRACE_OF(c);
	if (!t)
		return;
	if (t->used == t->room) {
		t->lost++;
		return;
	}
	struct loom_event *e = (struct loom_event *)(t + 1) + t->used++;
	e->begin_ns = begin_ns;
	e->end_ns = loom_clock_ns(c);
	e->count = count;
	e->what = what;
	e->other = other;
}

/* Returns the number of the next task to record. The worker has run `ran` tasks before, and its loop counts from 0
 * again. */
LOOM_FN uint64_t loom_trace_next(const struct loom_ctx *c, uint64_t ran)
{
	uint64_t every = LOOM_TRACE_OF(c) ? LOOM_TRACE_OF(c)->every : 0;
	return every ? (every - ran % every) % every : ~0ull;
}

/* Runs task number `n` and records it. Returns the number of the next task to record. Collective. */
LOOM_FN uint64_t loom_trace_task(struct loom_ctx *c, uint64_t n, const struct loom_task *task)
{
	uint64_t begin = loom_clock_ns(c);
	loom_task_run_nested(c, task);
	if (c->lane == 0)
		loom_trace_add(c, LOOM_TRACE_TASK, begin, task->tag, c->trace->every);
	return n + c->trace->every;
}

#endif
