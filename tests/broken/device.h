/* SPDX-License-Identifier: Apache-2.0 */
/* A sound device, threads of this process, with places for a fault.
 * A fixture defines NAME and one hook, the fault, before it includes this. */
#ifndef LOOM_BROKEN_DEVICE_H
#define LOOM_BROKEN_DEVICE_H

#ifndef GOT_MEMORY /* memory was made */
#define GOT_MEMORY(at) (void)0
#endif
#ifndef FREE_MEMORY /* memory is freed */
#define FREE_MEMORY(m) munmap((m)->host, (m)->bytes)
#endif
#ifndef CLEAR_LOCAL /* private memory before a sample */
#define CLEAR_LOCAL(w, d) memset((w)->local, 0, (d)->local_bytes)
#endif
#ifndef RUN /* a worker runs a sample */
#define RUN(d, c) (d)->run(c)
#endif
#ifndef EARLY /* workers that wait() does not wait for */
#define EARLY 0
#endif
#ifndef FIRST /* error of c->first */
#define FIRST 0
#endif
#ifndef LATE /* what wait() says after its time */
#define LATE LOOM_EAGAIN
#endif
#ifndef NUDGE /* what a nudge does */
#define NUDGE(d) __atomic_store_n(&(d)->nudged, 1, __ATOMIC_RELEASE)
#endif
#ifndef RANDOM /* where random numbers start */
#define RANDOM(x) (x)
#endif

#include <errno.h>
#include <gpuloom/dev/probe.h>
#include <gpuloom/device.h>
#include <gpuloom/sched.h>
#include <gpuloom/workload.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

struct opts {
	uint32_t workers;
};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct opts, workers, LOOM_OPT_U32, "2", "How many workers: a thread each.", .min = 1,
	     .max = 256),
    {0},
};

struct worker {
	struct device *device;
	pthread_t id;
	struct loom_ctx ctx;
	struct loom_lanes together;
	char *local;
};

struct device {
	const struct loom_host *host;
	const struct opts *opts;
	char name[32];
	/* The program: tables by kind, and task functions. */
	const void *table[LOOM_KINDS];
	loom_task_fn **task;
	uint32_t tasks;
	/* The launch. */
	const struct loom_launch *what;
	struct worker *worker;
	uint32_t started; /* threads */
	void (*run)(struct loom_ctx *c);
	char **view; /* [segments] */
	char *local;
	uint64_t local_bytes; /* per worker */
	/* What workers tell the host. */
	uint32_t ready, finished, gone;
	uint64_t end_ns;
	uint32_t nudged; /* the next wait() ends at once */
};

/* ---- life
 * ---------------------------------------------------------------------------------------- */

static int create(const struct loom_host *host, const void *opts, uint32_t instance,
		  uint32_t instances, void **self, struct loom_error *err)
{
	struct device *d = host->alloc(host, sizeof(*d));
	(void)instances;
	if (!d)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, NAME ": out of memory");
	d->host = host;
	d->opts = opts;
	snprintf(d->name, sizeof(d->name), "broken:%u", instance);
	*self = d;
	return 0;
}

static void destroy(void *self)
{
	struct device *d = self;
	if (!d)
		return;
	d->host->free(d->host, d->task);
	d->host->free(d->host, d);
}

static int shape(void *self, struct loom_device_shape *s, struct loom_error *err)
{
	const struct device *d = self;
	(void)err;
	s->workers = d->opts->workers;
	s->lanes = 1;
	s->numa_node = -1;
	s->local_bytes = 1 << 20;
	s->kind = LOOM_ON_CPU;
	return 0;
}

/* ---- memory: of this process, so that mapping it is nothing
 * --------------------------------------- */

static int mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *m,
		     struct loom_error *err)
{
	const struct device *d = self;
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	(void)flags;
	GOT_MEMORY(at);
	if (at == MAP_FAILED)
		return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: no %llu bytes: %s", d->name,
				 (unsigned long long)bytes, strerror(errno));
	*m = (struct loom_memory){
	    .size = sizeof(*m), .bytes = bytes, .fd = -1, .device = -1, .host = at};
	return 0;
}

static void mem_free(void *self, struct loom_memory *m)
{
	(void)self;
	FREE_MEMORY(m);
}

static int mem_map(void *self, const struct loom_memory *m, struct loom_error *err)
{
	const struct device *d = self;
	if (!m->host)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: cannot use memory that the host cannot see", d->name);
	return 0;
}

static void mem_unmap(void *self, const struct loom_memory *m)
{
	(void)self, (void)m;
}

/* ---- program
 * -------------------------------------------------------------------------------------- */

static int build(void *self, const struct loom_program *p, struct loom_error *err)
{
	struct device *d = self;
	memset(d->table, 0, sizeof(d->table));
	for (int k = 0; k < LOOM_KINDS; k++) {
		const struct loom_plugin *policy = p->policy[k];
		if (policy && policy->dev && !policy->dev->cpu)
			return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
					 "%s: %s has no code for the CPU", d->name, policy->name);
		d->table[k] = policy && policy->dev ? policy->dev->cpu : NULL;
	}
	const struct loom_workload_dev *w = d->table[LOOM_WORKLOAD];
	const struct loom_sched_dev *s = d->table[LOOM_SCHED];
	d->run = LOOM_HAS(w, kernel) ? w->kernel : s ? s->run : NULL;
	if (!d->run)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: neither a scheduler nor a kernel to run", d->name);
	d->host->free(d->host, d->task);
	d->task = d->host->alloc(d->host, (p->tasks + 1) * sizeof(*d->task));
	if (!d->task)
		return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	for (uint32_t i = 0; i < p->tasks; i++)
		d->task[i] = p->task[i].fn;
	d->tasks = p->tasks;
	return 0;
}

/* ---- workers
 * -------------------------------------------------------------------------------------- */

static void *at(const struct device *d, loom_ref ref)
{
	return ref ? d->view[LOOM_REF_SEGMENT(ref)] + LOOM_REF_OFFSET(ref) : NULL;
}

static void fill(struct device *d, struct worker *w, uint32_t i)
{
	const struct loom_launch *l = d->what;
	const struct loom_device_shape *s = &l->layout->device[l->device];
	struct loom_ctx *c = &w->ctx;
	char *local = w->local;
	*c = (struct loom_ctx){.worker = s->first_worker + i,
			       .workers = l->layout->workers,
			       .device = l->device,
			       .devices = l->layout->devices,
			       .first = s->first_worker + FIRST,
			       .count = s->workers,
			       .lanes = 1,
			       .flags = LOOM_CTX_CROWDED, /* there may be more threads than cores */
			       .ctl = at(d, l->ctl),
			       .counters =
				   (struct loom_counters *)at(d, l->counters) + s->first_worker + i,
			       .segment = d->view,
			       .together = &w->together,
			       .initial = at(d, l->initial),
			       .sched = d->table[LOOM_SCHED],
			       .term = d->table[LOOM_TERM],
			       .sync = d->table[LOOM_SYNC],
			       .barrier = d->table[LOOM_BARRIER],
			       .trigger = d->table[LOOM_TRIGGER],
			       .qos = d->table[LOOM_QOS],
			       .workload = d->table[LOOM_WORKLOAD],
			       .task = d->task,
			       .tasks = d->tasks};
	for (int k = 0; k < LOOM_KINDS; k++) {
		c->global[k] = l->global ? at(d, l->global[k]) : NULL;
		c->on_device[k] = l->on_device ? at(d, l->on_device[k]) : NULL;
		c->registry[k] = l->registry ? at(d, l->registry[k]) : NULL;
		c->own[k] = c->registry[k] ? at(d, c->registry[k][c->worker]) : NULL;
		if (l->local_bytes && l->local_bytes[k]) {
			c->local[k] = local;
			local += (l->local_bytes[k] + 63) & ~63ull;
		}
	}
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* Waits for the phase to change; GO and READY words are even, RETIRE is odd. */
static uint32_t await_phase(const struct loom_ctx *c, uint32_t is)
{
	uint32_t phase;
	/* Acquire: pairs with the host's release of the phase. */
	while ((phase = loom_load_acquire_sys(&c->ctl->phase)) == is ||
	       (phase % 4 == 0 && is % 4 != 2))
		loom_pause(c);
	return phase;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct device *d = w->device;
	struct loom_ctx *c = &w->ctx;
	uint32_t phase = 0;
	while ((phase = await_phase(c, phase)) != LOOM_PHASE_RETIRE) {
		uint32_t ready = phase;
		c->turn = c->depth = 0;
		c->random = RANDOM(mix(mix(d->what->layout->seed + ready) + c->worker) | 1);
		CLEAR_LOCAL(w, d);
		loom_fetch_add_acq_rel_sys(&d->ready, 1u);
		phase = await_phase(c, ready);
		if (phase == LOOM_PHASE_RETIRE)
			break;
		c->counters->begin_ns = loom_clock_ns(c);
		if (d->what->entry == LOOM_ENTRY_PROBE)
			loom_probe_run(c, at(d, d->what->probe));
		else
			RUN(d, c);
		uint64_t now = loom_clock_ns(c), end = loom_load_relaxed_sys(&d->end_ns);
		c->counters->end_ns = now;
		while (end < now && !loom_cas_acq_rel_sys(&d->end_ns, &end, now))
			;
		/* Release: what the worker wrote is seen by whoever sees all as finished. */
		loom_fetch_add_acq_rel_sys(&d->finished, 1u);
	}
	loom_fetch_add_acq_rel_sys(&d->gone, 1u);
	return NULL;
}

/* ---- a launch
 * -------------------------------------------------------------------------------------- */

static void end_launch(struct device *d)
{
	for (uint32_t i = 0; i < d->started; i++)
		pthread_join(d->worker[i].id, NULL);
	for (uint32_t i = d->what->attachments; i-- > 0;)
		if (d->what->attachment[i].detach)
			d->what->attachment[i].detach(d->what->attachment[i].self, d->what->device);
	d->host->free(d->host, d->worker);
	d->host->free(d->host, d->view);
	d->host->free(d->host, d->local);
	d->worker = NULL;
	d->view = NULL;
	d->local = NULL;
	d->what = NULL;
	d->started = 0;
}

static int attach(struct device *d, struct loom_error *err)
{
	const struct loom_launch *l = d->what;
	for (uint32_t i = 0; i < l->attachments; i++) {
		const struct loom_attachment *a = &l->attachment[i];
		struct loom_space space = {.size = sizeof(space),
					   .device = l->device,
					   .layout = l->layout,
					   .global = l->global ? at(d, l->global[a->kind]) : NULL,
					   .on_device =
					       l->on_device ? at(d, l->on_device[a->kind]) : NULL,
					   .ctl = at(d, l->ctl)};
		int code = a->attach ? a->attach(a->self, &space, err) : 0;
		if (code) {
			while (i-- > 0)
				if (l->attachment[i].detach)
					l->attachment[i].detach(l->attachment[i].self, l->device);
			return code;
		}
	}
	return 0;
}

static int launch(void *self, const struct loom_launch *l, struct loom_error *err)
{
	struct device *d = self;
	uint32_t n = l->layout->device[l->device].workers;
	struct loom_launch none = {.attachments = 0};
	d->what = l;
	d->ready = d->finished = d->gone = 0;
	d->local_bytes = 0;
	for (int k = 0; k < LOOM_KINDS && l->local_bytes; k++)
		d->local_bytes += (l->local_bytes[k] + 63) & ~63ull;
	d->worker = d->host->alloc(d->host, n * sizeof(*d->worker));
	d->view = d->host->alloc(d->host, (l->segments + 1) * sizeof(*d->view));
	d->local = d->host->alloc(d->host, n * d->local_bytes + 64);
	int code = 0;
	if (!d->worker || !d->view || !d->local)
		code = LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	for (uint32_t i = 1; !code && i < l->segments; i++)
		d->view[i] = (char *)l->segment[i].memory->host + l->segment[i].offset;
	if (!code)
		code = attach(d, err);
	if (code) {
		d->what = &none;
		end_launch(d);
		return code;
	}
	for (; d->started < n && !code; d->started += !code) {
		struct worker *w = &d->worker[d->started];
		w->device = d;
		w->local = d->local + d->started * d->local_bytes;
		fill(d, w, d->started);
		code = pthread_create(&w->id, NULL, worker_main, w);
	}
	if (!code)
		return 0;
	struct loom_ctl *ctl = at(d, l->ctl);
	loom_store_release_sys(&ctl->phase, LOOM_PHASE_RETIRE);
	end_launch(d);
	return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: cannot start %u threads", d->name, n);
}

/* Looks every 50 us: simple, and of no cost to the workers. LOOM_EAGAIN when the time is over. */
static int await(struct device *d, const uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
	const struct timespec nap = {.tv_nsec = 50000};
	uint64_t until = d->host->now_ns(d->host) + timeout_ns;
	/* Acquire: pairs with the workers' additions. */
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) < value) {
		if (d->host->now_ns(d->host) >= until)
			return LATE;
		nanosleep(&nap, NULL);
	}
	return 0;
}

static int ready(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct device *d = self;
	if (await(d, &d->ready, d->started, timeout_ns))
		return LOOM_FAIL(d->host, err, LOOM_ETIMEDOUT, "%s: the workers do not wake up",
				 d->name);
	d->ready = d->finished = 0;
	d->end_ns = 0;
	for (uint32_t i = 0; i < d->what->attachments; i++)
		if (d->what->attachment[i].ready)
			d->what->attachment[i].ready(d->what->attachment[i].self, d->what->device);
	return 0;
}

static int go(void *self, struct loom_error *err)
{
	(void)self, (void)err; /* the workers look at the phase by themselves */
	return 0;
}

static int wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err)
{
	struct device *d = self;
	(void)err;
	int code = LATE;
	/* Slices, between which nudges are seen. */
	for (uint64_t slice = 1000000; code == LATE && timeout_ns; timeout_ns -= slice) {
		slice = slice < timeout_ns ? slice : timeout_ns;
		code = await(d, &d->finished, d->started - EARLY, slice);
		if (__atomic_exchange_n(&d->nudged, 0, __ATOMIC_ACQUIRE))
			break;
	}
	if (!code)
		*end_ns = d->end_ns;
	return code;
}

static void nudge(void *self)
{
	struct device *d = self;
	NUDGE(d);
	(void)d;
}

static int retire(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct device *d = self;
	if (!d->what)
		return 0;
	if (await(d, &d->gone, d->started, timeout_ns))
		return LOOM_FAIL(d->host, err, LOOM_ETIMEDOUT,
				 "%s: workers do not leave, and threads cannot be ended by force",
				 d->name);
	end_launch(d);
	return 0;
}

static const struct loom_device_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .destroy = destroy,
    .shape = shape,
    .mem_alloc = mem_alloc,
    .mem_free = mem_free,
    .mem_map = mem_map,
    .mem_unmap = mem_unmap,
    .build = build,
    .launch = launch,
    .ready = ready,
    .go = go,
    .wait = wait,
    .retire = retire,
    .nudge = nudge,
};

LOOM_PLUGIN_DEFINE(DEVICE, NAME, "0.1.0", "Apache-2.0", "threads of this process, one per worker",
		   .opts = rows, .opts_size = sizeof(struct opts), .caps = LOOM_CAP_DEVICE_IS_CPU,
		   .ops = &ops)

#endif
