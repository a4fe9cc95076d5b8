/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of sched_host: the thread that holds all tasks, and hands them out through the workers' boxes. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sched_host.dev.h"
#include "../sched_common/schedulers.h"
#include "lib/thread.h"

_Static_assert(sizeof(struct host_box) == 128, "a line for each side");

struct host_options {
	uint32_t batch, returns, granularity;
};

#define HOST_ROW(name, ...) LOOM_OPT(struct host_options, name, __VA_ARGS__)
static const struct loom_opt sched_host_rows[] = {
    LOOM_OPT(struct host_options, batch, LOOM_OPT_U32, "64",
	     "Most tasks that the host hands a worker ahead; a power of two. It hands out more when half of them have "
	     "ended.",
	     .min = 2, .max = 4096),
    LOOM_OPT(struct host_options, returns, LOOM_OPT_U32, "256",
	     "Most spawned tasks of a worker that the host has not taken yet; a power of two. A worker whose list is "
	     "full waits. With granularity = lane it cannot wait, and the run fails.",
	     .min = 2, .max = 1 << 20),
    HOST_ROW(granularity, SCHED_GRANULARITY_ROW),
    {.name = NULL},
};

/* Pending tasks. The last element is the newest task, and is handed out first. */
struct host_list {
	struct loom_task *task;
	uint64_t n, room;
};

/* The thread's state of a worker. */
struct host_worker {
	struct host_box *box;
	/* as in struct host_box; open: number of the worker's records that have not ended */
	uint32_t put, taken, wanted, open;
	uint32_t kind, least; /* LOOM_ON_* of the device; number of tasks that keep the worker busy */
};

struct sched_host {
	const struct loom_host *host;
	struct sched_config cfg;
	pthread_t thread;
	uint32_t started;     /* 1: the thread of the host runs */
	pthread_mutex_t lock; /* protects the next fields; the thread holds the lock during a round */
	pthread_cond_t changed;
	uint32_t leave, busy; /* 1: the thread must end; 1: a sample runs */
	uint32_t workers;
	struct host_worker *worker;
	struct host_list list[3]; /* [LOOM_ON_*]: pending tasks with this affinity */
	uint32_t kinds;           /* bit LOOM_ON_*: the stack has a device that runs tasks of this affinity */
	uint32_t failed;          /* minus the error code with which the thread has ended the sample; 0: none */
	uint64_t next, initial;   /* index of the next initial task to hand out; size of the initial set */
	uint64_t batches, returned;
};

static int sched_host_check(const struct loom_host *host, const void *opts, struct loom_error *err)
{
	const struct host_options *o = opts;
	int rc = sched_check_ring(host, "batch", o->batch, 2, 4096, err);
	return rc ? rc : sched_check_ring(host, "returns", o->returns, 2, 1 << 20, err);
}

static void sched_host_destroy(void *self)
{
	struct sched_host *s = self;
	if (!s)
		return;
	for (int i = 0; i < 3; i++)
		free(s->list[i].task);
	pthread_cond_destroy(&s->changed);
	pthread_mutex_destroy(&s->lock);
	s->host->free(s->host, s->worker);
	s->host->free(s->host, s);
}

static int sched_host_create(const struct loom_host *host, const void *opts, void **self, struct loom_error *err)
{
	const struct host_options *o = opts;
	struct sched_host *s = host->alloc(host, sizeof(*s));
	if (!s)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "sched_host: out of memory");
	s->host = host;
	s->cfg = (struct sched_config){
	    .local_queue = o->batch, .overflow_list = o->returns, .granularity = o->granularity, .wait = SCHED_YIELD};
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->changed, NULL);
	*self = s;
	return 0;
}

static int sched_host_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err)
{
	const struct sched_host *s = self;
	uint32_t lanes = sched_max_lanes(layout);
	(void)err;
	need->global = sizeof(struct sched_common);
	need->device = 64; /* for one word: the affinity of tasks that the device must not run */
	need->worker = sizeof(struct host_box) + (s->cfg.local_queue + s->cfg.overflow_list) * sizeof(struct loom_task);
	need->worker_place = LOOM_PLACE_HOST;
	need->local = SCHED_LOCAL_BYTES(lanes, s->cfg.local_queue) + HOST_EXTRA(lanes);
	return 0;
}

static struct sched_config sched_host_config(const struct sched_host *s, const struct loom_layout *layout)
{
	struct sched_config cfg = s->cfg;
	cfg.noncoherent = (uint32_t)sched_noncoherent(layout);
	return cfg;
}

static int sched_host_constants(void *self, const struct loom_layout *layout, char *text, size_t room,
				struct loom_error *err)
{
	const struct sched_host *s = self;
	struct sched_config cfg = sched_host_config(s, layout);
	return sched_constants(s->host, &cfg, HOST_REGISTER_WORDS, text, room, err);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* Adds a copy of the task to the list. Returns 0 if there is no memory, else 1. */
static int host_store(struct host_list *l, const struct loom_task *task)
{
	if (l->n == l->room) {
		uint64_t room = l->room ? 2 * l->room : 1024;
		struct loom_task *more = realloc(l->task, room * sizeof(*more));
		if (!more)
			return 0;
		l->task = more;
		l->room = room;
	}
	l->task[l->n++] = *task;
	return 1;
}

/* Ends the sample with an error, which the workers report. */
static void host_fail(struct sched_host *s, int code)
{
	s->failed = (uint32_t)-code;
	s->busy = 0;
	for (uint32_t i = 0; i < s->workers; i++)
		loom_store_relaxed_sys(&s->worker[i].box->put, HOST_FAILED | s->failed);
}

/* Takes the tasks that the worker has returned. Returns 1 if there were any, or if records have ended, else 0. */
static int host_collect(struct sched_host *s, struct host_worker *w)
{
	/* Acquire: pairs with the release in host_report(). */
	uint64_t reported = loom_load_acquire_sys(&w->box->reported);
	const struct loom_task *back = (const struct loom_task *)(w->box + 1) + s->cfg.local_queue;
	uint32_t made = (uint32_t)reported, open = w->put - (uint32_t)(reported >> 32),
		 some = open != w->open || made != w->taken;
	int code = 0;
	w->open = open;
	s->returned += made - w->taken;
	for (; w->taken != made && !code; w->taken++) {
		const struct loom_task *t = &back[w->taken & (s->cfg.overflow_list - 1)];
		uint32_t kind = t->affinity < 3 ? t->affinity : LOOM_ON_ANY;
		code = !(s->kinds >> kind & 1) ? LOOM_ENOTSUP : !host_store(&s->list[kind], t) ? LOOM_ENOMEM : 0;
	}
	if (code)
		host_fail(s, code);
	else if (some) /* The slots were read. Release: pairs with the acquire in host_await_room(). */
		loom_store_release_sys(&w->box->taken, w->taken);
	return (int)some;
}

/* Returns a worker's part of n tasks: half of an equal share, so that tasks remain for the next worker. A worker without tasks
 * gets at least `least` tasks, if there are so many. For a worker with tasks there is no minimum, because no other worker could
 * run the tasks that it gets in advance. */
static uint64_t host_part(const struct sched_host *s, const struct host_worker *w, uint64_t n)
{
	uint64_t part = n / (2 * s->workers);
	part = part < w->least && !w->open ? w->least : part;
	return part < n ? part : n;
}

static struct loom_task *host_record(const struct sched_host *s, const struct host_worker *w, uint32_t ahead)
{
	return (struct loom_task *)(w->box + 1) + ((w->put + ahead) & (s->cfg.local_queue - 1));
}

/* Hands pending tasks to the worker, or a part of the initial set if it gets no task. Hands out nothing if more than half
 * of the worker's records have not ended. Returns whether it has handed out anything. */
static int host_hand_out(struct sched_host *s, struct host_worker *w)
{
	struct host_list *mine = &s->list[w->kind], *any = &s->list[LOOM_ON_ANY];
	uint32_t room = s->cfg.local_queue - w->open, n = 0;
	if (w->open > s->cfg.local_queue / 2)
		return 0;
	uint64_t part = host_part(s, w, mine->n + any->n);
	for (; n < part && n < room; n++)
		*host_record(s, w, n) = mine->n ? mine->task[--mine->n] : any->task[--any->n];
	part = !n && w->open < 2 ? host_part(s, w, s->initial - s->next) : 0;
	if (part) {
		*host_record(s, w, n++) = (struct loom_task){.tag = HOST_RANGE, .param = {s->next, part}};
		s->next += part;
	}
	if (!n)
		return 0;
	w->put += n;
	w->open += n;
	s->batches++;
	loom_store_release_sys(&w->box->put, (uint64_t)w->put);
	return 1;
}

/* Sets the worker's hint `wanted`. lacking: 1: other workers lack tasks, so the worker's task should spawn some. */
static void host_request(struct host_worker *w, uint32_t lacking)
{
	if (w->wanted == lacking)
		return;
	w->wanted = lacking;
	loom_store_relaxed_sys(&w->box->wanted, lacking);
}

/* Makes one round over all workers. Returns whether something has changed. */
static int host_round(struct sched_host *s)
{
	uint32_t lacking = 0, open = 0, here = 0;
	int some = 0;
	for (uint32_t i = 0; i < s->workers && !s->failed; i++)
		some |= host_collect(s, &s->worker[i]);
	if (s->failed)
		return 0;
	for (uint32_t ahead = 0; ahead < 2; ahead++) /* first workers without tasks, then workers with tasks */
		for (uint32_t i = 0; i < s->workers; i++) {
			struct host_worker *w = &s->worker[i];
			if ((w->open != 0) != ahead || !loom_load_acquire_sys(&w->box->here))
				continue;
			some |= host_hand_out(s, w);
			here = 1;
		}
	for (uint32_t i = 0; i < s->workers; i++) {
		lacking |= !s->worker[i].open;
		open |= s->worker[i].open;
	}
	if (!here)
		return 0; /* no worker has started the sample */
	for (uint32_t i = 0; i < s->workers; i++)
		host_request(&s->worker[i], lacking && s->worker[i].open);
	/* A worker reports ended records and returned tasks in one word. So if no record is open, the host has all tasks. */
	if (open || s->next < s->initial || s->list[0].n || s->list[1].n || s->list[2].n)
		return some;
	s->busy = 0;
	for (uint32_t i = 0; i < s->workers; i++)
		loom_store_release_sys(&s->worker[i].box->put, (uint64_t)HOST_DONE);
	return 1;
}

/* The thread naps after so many rounds without change. In a stopped sample, for example, workers report nothing. */
#define HOST_PATIENCE 20000u
static void *host_main(void *arg)
{
	struct sched_host *s = arg;
	uint32_t quiet = 0;
	pthread_mutex_lock(&s->lock);
	while (!s->leave) {
		if (!s->busy) {
			pthread_cond_wait(&s->changed, &s->lock);
			quiet = 0;
			continue;
		}
		quiet = host_round(s) ? 0 : quiet + 1;
		pthread_mutex_unlock(&s->lock);
		if (quiet > HOST_PATIENCE)
			nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
		else if (quiet > 16)
			loom_cpu_yield();
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int sched_host_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
			    const struct loom_segments *segments, struct loom_error *err)
{
	struct sched_host *s = self;
	(void)layout, (void)view, (void)segments;
	s->leave = 0;
	int code = thread_start(&s->thread, host_main, s);
	if (code)
		return LOOM_FAIL(s->host, err, code == ENOMEM ? LOOM_ENOMEM : LOOM_EUNAVAIL,
				 "sched_host: cannot start the thread that holds the tasks: %s", strerror(code));
	s->started = 1;
	return 0;
}

static void sched_host_stop(void *self)
{
	struct sched_host *s = self;
	if (!s->started)
		return;
	pthread_mutex_lock(&s->lock);
	s->leave = 1;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	s->started = 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void host_reset(struct sched_host *s, const struct loom_layout *layout, const struct loom_view *view)
{
	s->kinds = 1u << LOOM_ON_ANY | (uint32_t)sched_has(layout, 0) << LOOM_ON_CPU |
		   (uint32_t)sched_has(layout, 1) << LOOM_ON_GPU;
	s->failed = 0;
	for (uint32_t d = 0; d < layout->devices; d++) {
		const struct loom_device_shape *shape = &layout->device[d];
		uint32_t other = sched_other_kind(shape->kind);
		*(uint32_t *)view->device[d] = other;
		for (uint32_t i = 0; i < shape->workers; i++) {
			struct host_box *box = view->worker[shape->first_worker + i];
			memset(box, 0, sizeof(*box));
			s->worker[shape->first_worker + i] =
			    (struct host_worker){.box = box,
						 .kind = other == LOOM_ON_CPU ? LOOM_ON_GPU : LOOM_ON_CPU,
						 .least = s->cfg.granularity == SCHED_LANE ? shape->lanes : 1};
		}
	}
	for (int i = 0; i < 3; i++)
		s->list[i].n = 0;
	s->next = s->batches = s->returned = 0;
	s->initial = layout->initial_tasks;
}

static int sched_host_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
			   struct loom_error *err)
{
	struct sched_host *s = self;
	*(struct sched_common *)view->global = (struct sched_common){.cfg = sched_host_config(s, layout)};
	if (!s->worker)
		s->worker = s->host->alloc(s->host, layout->workers * sizeof(*s->worker));
	if (!s->worker)
		return LOOM_FAIL(s->host, err, LOOM_ENOMEM, "sched_host: out of memory");
	pthread_mutex_lock(&s->lock);
	s->workers = layout->workers;
	host_reset(s, layout, view);
	s->busy = 1;
	pthread_cond_signal(&s->changed);
	pthread_mutex_unlock(&s->lock);
	return 0;
}

static int sched_host_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
			      struct loom_report *report, struct loom_error *err)
{
	struct sched_host *s = self;
	(void)layout, (void)view;
	pthread_mutex_lock(&s->lock);
	uint32_t busy = s->busy;
	uint64_t batches = s->batches, returned = s->returned;
	pthread_mutex_unlock(&s->lock);
	if (busy)
		return LOOM_FAIL(s->host, err, LOOM_EWRONG,
				 "sched_host: the workers have left, but the host still has tasks");
	s->host->metric(s->host, report, "batches", "", LOOM_BETTER_NONE, (double)batches);
	s->host->metric(s->host, report, "returned", "tasks", LOOM_BETTER_NONE, (double)returned);
	return 0;
}

static int sched_host_explain(void *self, uint32_t worker, int code, uint64_t info, struct loom_error *err)
{
	const struct sched_host *s = self;
	if (code == LOOM_EFULL)
		return LOOM_FAIL(
		    s->host, err, code,
		    "sched_host: the lanes of worker %u made more than %llu tasks at a time: raise returns, or set "
		    "granularity = worker",
		    worker, (unsigned long long)info);
	if (code == LOOM_ENOMEM && !info) /* info is not 0 if a workload has reported the error */
		return LOOM_FAIL(s->host, err, code,
				 "sched_host: the host has no memory for its tasks: use the scheduler mgws");
	if (code == LOOM_ENOTSUP && !info)
		return LOOM_FAIL(s->host, err, code,
				 "sched_host: a task is for a kind of device that the stack does not have: add one to "
				 "[run] devices, or give the task another affinity");
	if (code == LOOM_EUNAVAIL)
		return LOOM_FAIL(
		    s->host, err, code,
		    "sched_host: worker %u ended a task with a join, and these devices cannot change the same word: "
		    "use one device, or a program without joins",
		    worker);
	return 0;
}

/* Writes into `text` how many tasks the host holds and how many the workers hold. */
static void sched_host_stuck(void *self, const struct loom_layout *layout, const struct loom_view *view, char *text,
			     size_t size)
{
	struct sched_host *s = self;
	uint64_t open = 0;
	(void)layout, (void)view;
	pthread_mutex_lock(&s->lock);
	for (uint32_t i = 0; i < s->workers; i++)
		open += s->worker[i].open;
	snprintf(text, size,
		 "the host holds %llu tasks and %llu of the initial set; workers hold %llu batches or tasks",
		 (unsigned long long)(s->list[0].n + s->list[1].n + s->list[2].n),
		 (unsigned long long)(s->initial - s->next), (unsigned long long)open);
	pthread_mutex_unlock(&s->lock);
}

SCHED_TABLES(sched_host, NULL, .start = sched_host_start, .stop = sched_host_stop, .stuck = sched_host_stuck);

LOOM_DEVICE_CODE(sched_host_code, sched_host_cpu, "sched_host.dev.h",
		 LOOM_CODE_FILE("options.dev.h") LOOM_CODE_FILE("common.dev.h") LOOM_CODE_FILE("rest.dev.h")
		     LOOM_CODE_FILE("queue.dev.h") LOOM_CODE_FILE("sched_host.dev.h"));

LOOM_PLUGIN_DEFINE(SCHED, "sched_host", "0.1.0", "Apache-2.0",
		   "A thread of the host holds all tasks and hands them to workers in batches", .opts = sched_host_rows,
		   .opts_size = sizeof(struct host_options), .check = sched_host_check, .ops = &sched_host_ops,
		   .dev = &sched_host_code)
