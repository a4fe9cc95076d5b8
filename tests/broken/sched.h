/* SPDX-License-Identifier: Apache-2.0 */
/* A sound scheduler, one queue behind a lock, with places for a fault.
 * A fixture defines NAME and one hook, the fault, before it includes this. */
#ifndef LOOM_BROKEN_SCHED_H
#define LOOM_BROKEN_SCHED_H

#ifndef PUT /* a spawned task goes into the queue */
#define PUT(q, task) ((struct loom_task *)((q) + 1))[(q)->count++] = *(task)
#endif
#ifndef TAKEN /* a task comes out of it */
#define TAKEN(q, task) (void)0
#endif
#ifndef RUN /* how a task is run */
#define RUN(c, task) loom_task_run(c, task)
#endif
#ifndef COUNTED /* how many tasks that counts for */
#define COUNTED 1
#endif
#ifndef INITIAL /* how many initial tasks there are */
#define INITIAL(c) (c)->ctl->initial_tasks
#endif
#ifndef STOPPED /* whether the run was stopped */
#define STOPPED(c) loom_from_lane0(c, (uint64_t)loom_stopped(c))
#endif
#ifndef NEVER_STOPS /* 1: the lock does not look at the stop word */
#define NEVER_STOPS 0
#endif
#ifndef LEAVE /* whether an idle worker leaves */
#define LEAVE(c) LOOM_CALL(term, done, c, 0)
#endif
#ifndef SAY_BUSY /* an idle worker has a task */
#define SAY_BUSY(c) LOOM_CALL(term, busy, c)
#endif
#ifndef ROOM /* how many tasks fit */
#define ROOM(q) (q)->slots
#endif
#ifndef IN_PLACE /* whether a task that does not fit is run in place */
#define IN_PLACE 1
#endif

#include <gpuloom/plugin.h>
#include <gpuloom/sched.h>

#include <gpuloom/dev/dev.h>
#include <gpuloom/sched.h>
#include <gpuloom/term.h>

/* The block for the stack; `slots` tasks follow. What the lock guards is read and written under it.
 */
struct block {
	uint32_t lock;
	uint32_t slots;
	uint64_t next;  /* of the initial set */
	uint64_t count; /* tasks in the queue: a stack, so that it stays short */
	uint64_t pad[5];
};

LOOM_FN struct block *b_block(const struct loom_ctx *c)
{
	return (struct block *)c->global[LOOM_SCHED];
}

/* Lane 0. 0 when the run was stopped instead. */
LOOM_FN int b_lock(struct loom_ctx *c)
{
	uint32_t open = 0;
	/* Acquire: pairs with the release in unlock. */
	while (!loom_cas_acq_rel_sys(&b_block(c)->lock, &open, 1u)) {
		if (!NEVER_STOPS && loom_stopped(c))
			return 0;
		loom_pause(c);
		open = 0;
	}
	return 1;
}

LOOM_FN void b_unlock(struct loom_ctx *c)
{
	loom_store_release_sys(&b_block(c)->lock, 0u);
}

/* A task from lane 0 to all lanes, a word at a time. */
LOOM_FN void b_share(struct loom_ctx *c, struct loom_task *task)
{
	uint64_t *word = (uint64_t *)(void *)task;
	if (c->lanes > 1)
		for (uint32_t i = 0; i < sizeof(*task) / sizeof(*word); i++)
			word[i] = loom_from_lane0(c, word[i]);
}

LOOM_FN void b_run_task(struct loom_ctx *c, const struct loom_task *task)
{
	RUN(c, task);
	if (c->lane == 0)
		c->counters->executed += COUNTED;
}

LOOM_FN int b_spawn(struct loom_ctx *c, const struct loom_task *task)
{
	struct block *q = b_block(c);
	uint64_t put = 0;
	if (c->lane == 0) {
		c->counters->spawned++;
		if (b_lock(c)) {
			put = q->count < ROOM(q);
			if (put)
				PUT(q, task);
			b_unlock(c);
		}
	}
	put = loom_from_lane0(c, put);
	if (!put && loom_from_lane0(c, (uint64_t)loom_stopped(c)))
		return LOOM_EFULL; /* the run ends anyway */
	if (!put && IN_PLACE) {
		struct loom_task copy = *task; /* the spawner may change its record */
		loom_task_run_nested(c, &copy);
		if (c->lane == 0) {
			c->counters->executed++;
			c->counters->in_place++;
		}
	}
	return 0;
}

/* Takes one task, of the queue first; an idle worker says busy before it gives the lock back, so
 * that nobody finds the queue empty while its last task belongs to a worker that counts as idle. */
LOOM_FN int b_take(struct loom_ctx *c, int idle, struct loom_task *task)
{
	struct block *q = b_block(c);
	uint64_t got = 0;
	if (c->lane == 0 && b_lock(c)) {
		if (q->count) {
			*task = ((struct loom_task *)(q + 1))[--q->count];
			TAKEN(q, task);
			got = 1;
		} else if (q->next < INITIAL(c)) {
			*task = c->initial[q->next++];
			c->counters->claimed++;
			got = 1;
		} else {
			b_unlock(c);
		}
	}
	got = loom_from_lane0(c, got);
	if (!got)
		return 0;
	if (idle)
		SAY_BUSY(c);
	if (c->lane == 0)
		b_unlock(c);
	b_share(c, task);
	return 1;
}

LOOM_FN void b_run(struct loom_ctx *c)
{
	struct loom_task task;
	int idle = 0;
	while (!STOPPED(c)) {
		if (b_take(c, idle, &task)) {
			idle = 0;
			b_run_task(c, &task);
			continue;
		}
		if (!idle) {
			if (c->lane == 0) {
				c->counters->last_task_ns = loom_clock_ns(c);
				c->counters->idle_entries++;
			}
			LOOM_CALL(term, idle, c);
			idle = 1;
		}
		if (LEAVE(c))
			break;
		loom_pause(c);
	}
}

struct opts {
	uint32_t queue;
};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct opts, queue, LOOM_OPT_U32, "4096",
	     "Tasks in the queue; when it is full, new tasks run inside their spawner.", .min = 1,
	     .max = 1 << 20),
    {0},
};

struct instance {
	const struct loom_host *host;
	const struct opts *opts; /* filled by the core, valid until destroy() */
};

static int create(const struct loom_host *host, const void *opts, void **self,
		  struct loom_error *err)
{
	struct instance *i = host->alloc(host, sizeof(*i));
	if (!i)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, NAME ": out of memory");
	i->host = host;
	i->opts = opts;
	*self = i;
	return 0;
}

static void destroy(void *self)
{
	struct instance *i = self;
	if (i)
		i->host->free(i->host, i);
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need,
		struct loom_error *err)
{
	const struct instance *i = self;
	(void)layout, (void)err;
	need->global = sizeof(struct block) + i->opts->queue * sizeof(struct loom_task);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	const struct instance *i = self;
	struct block *q = view->global;
	(void)layout, (void)err;
	*q = (struct block){.slots = i->opts->queue};
	return 0;
}

/* After each sample. What did not hold makes the sample wrong, not slow. */
static int collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		   struct loom_report *report, struct loom_error *err)
{
	const struct instance *i = self;
	const struct block *q = view->global;
	(void)layout, (void)report;
	if (q->count)
		return LOOM_FAIL(i->host, err, LOOM_EWRONG,
				 NAME ": %llu tasks were left in the queue",
				 (unsigned long long)q->count);
	return 0;
}

static const struct loom_sched_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .destroy = destroy,
    .need = need,
    .init = init,
    .collect = collect,
};
static const struct loom_sched_dev cpu = {
    .size = sizeof(cpu),
    .run = b_run,
    .spawn = b_spawn,
};
static const struct loom_device_code dev = {
    .size = sizeof(dev),
    .cpu = &cpu,
};

LOOM_PLUGIN_DEFINE(SCHED, NAME, "0.1.0", "Apache-2.0", "one queue for all workers, behind a lock",
		   .opts = rows, .opts_size = sizeof(struct opts), .ops = &ops, .dev = &dev)

#endif
