/* SPDX-License-Identifier: Apache-2.0 */
/* The host thread's part of a launch. */
#include <errno.h>
#include <gpuloom/dev/futex.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "../device_common/hostmem/context.h"
#include "device_sim.h"
#include "lib/align.h"

#define CTL_BYTES 4096u
/* Grace period, in real time, for workers that ignore the stop flag. */
#define FORCE_NS 1000000000ull

static uint64_t host_clock(const struct device *d)
{
	return d->host->now_ns(d->host);
}

static void fill(struct device *d, struct sim_worker *x, uint32_t worker)
{
	char *local = (char *)d->member.local + worker * (d->member.local_bytes / d->member.workers);
	x->device = &d->member;
	x->at.group = d->member.group;
	x->index = d->member.index;
	/* Ranks usually have the same costs. Then they share one copy, which takes less of the cache. */
	x->cost = memcmp(d->simulation->cost, d->member.cost, sizeof(d->member.cost)) ? d->member.cost :
											d->simulation->cost;
	context_fill(d->what, d->view, worker, local, &x->ctx);
	x->ctx.ctl = d->member.ctl;
	x->ctx.counters = x->ctx.counters ? x->ctx.counters : &x->unseen;
}

static int refuse(struct device *d, const struct loom_launch *what, struct loom_error *err)
{
	for (uint32_t i = 0; i < what->attachments; i++)
		if (what->attachment[i].attach)
			return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
					 "%s: the selected sync acts on pages or threads of real processes: choose "
					 "another sync in [sync]",
					 d->name);
	if (what->entry == LOOM_ENTRY_WORK && !d->work)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing to run: no program was built", d->name);
	return 0;
}

static void unmake(struct device *d)
{
	struct sim_member *m = &d->member;
	for (uint32_t i = 0; m->worker && i < m->workers; i++)
		fiber_free(&m->worker[i].fiber);
	d->host->free(d->host, m->worker);
	if (d->own) {
		memory_drop_range(d->member.group, d->own);
		if (m->local_bytes)
			memory_drop_range(d->member.group, d->own + CTL_BYTES);
		munmap(d->own, d->own_bytes);
	}
	m->worker = NULL;
	d->own = NULL;
	d->what = NULL;
}

/* Makes the stacks and private blocks of all workers, and registers their memory. Returns 0 or errno. */
static int make(struct device *d)
{
	const struct loom_launch *what = d->what;
	struct sim_member *m = &d->member;
	uint64_t each = 0;
	for (int kind = 0; what->local_bytes && kind < LOOM_KINDS_MAX; kind++)
		each += loom__align(what->local_bytes[kind], 64);
	m->workers = what->entry == LOOM_ENTRY_PROBE ? 1 : d->options->workers;
	m->local_bytes = each * m->workers;
	d->own_bytes = CTL_BYTES + m->local_bytes;
	d->own = mmap(NULL, d->own_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (d->own == MAP_FAILED) {
		d->own = NULL;
		return errno;
	}
	if (memory_add_range(d->member.group, d->own, CTL_BYTES, m->index) ||
	    (m->local_bytes && memory_add_range(d->member.group, d->own + CTL_BYTES, m->local_bytes, LOOM_SIM_PRIVATE)))
		return ENOMEM;
	m->ctl = (struct loom_ctl *)d->own;
	m->local = d->own + CTL_BYTES;
	m->run = what->entry == LOOM_ENTRY_PROBE ? probe_work : d->work;
	m->worker = d->host->alloc(d->host, m->workers * sizeof(*m->worker));
	if (!m->worker)
		return ENOMEM;
	for (uint32_t i = 0; i < m->workers; i++) {
		int code = fiber_make(&m->worker[i].fiber, d->options->stack, NULL);
		if (code)
			return code;
		fill(d, &m->worker[i], i);
	}
	return 0;
}

int device_launch(void *self, const struct loom_launch *what, struct loom_error *err)
{
	struct device *d = self;
	if (d->what)
		return LOOM_FAIL(d->host, err, LOOM_EBUSY, "%s: workers of an earlier launch still run", d->name);
	int code = refuse(d, what, err);
	if (code)
		return code;
	d->what = what;
	d->member.group->shares = LOOM_HAS(what->layout, ranks) && what->layout->ranks > 1;
	context_views(what, d->view);
	code = make(d);
	if (!code)
		code = simulation_start(d->simulation, &d->member, context_at(d->view, what->ctl), what->layout->seed,
					what->entry == LOOM_ENTRY_PROBE);
	if (!code)
		return 0;
	unmake(d);
	return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: cannot make %u workers: %s", d->name, d->options->workers,
			 strerror(code));
}

static int launched(struct device *d, struct loom_error *err)
{
	return d->what ? 0 : LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
}

/* No worker must be woken, because each sample makes its workers. */
int device_ready(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	(void)timeout_ns;
	return launched(self, err);
}

int device_go(void *self, struct loom_error *err)
{
	struct device *d = self;
	int code = launched(d, err);
	if (code)
		return code;
	d->sample = simulation_go(d->simulation);
	return 0;
}

/* Waits for the end of a sample, and returns 1. Returns 0 at `until` or, with `woken`, after device_wake(). The
 * acquires pair with the releases in simulation_notify() and simulation_main(). */
static int await(struct device *d, uint32_t sample, int woken, uint64_t until)
{
	struct simulation *s = d->simulation;
	for (;;) {
		uint32_t seen = __atomic_load_n(&s->notifications, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&s->completed, __ATOMIC_ACQUIRE) == sample)
			return 1;
		if (host_clock(d) >= until || (woken && __atomic_exchange_n(&d->nudged, 0, __ATOMIC_RELAXED)))
			return 0;
		loom_futex_sleep(&s->notifications, seen, until, FUTEX_PRIVATE_FLAG);
	}
}

static uint64_t deadline(const struct device *d, uint64_t timeout_ns)
{
	uint64_t now = host_clock(d);
	return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

int device_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err)
{
	struct device *d = self;
	int code = launched(d, err);
	if (code)
		return code;
	if (__atomic_load_n(&d->member.group->ctl->stop, __ATOMIC_RELAXED))
		__atomic_store_n(&d->simulation->stop_requested, 1, __ATOMIC_RELAXED);
	if (!await(d, d->sample, 1, deadline(d, timeout_ns)))
		return LOOM_EAGAIN;
	if (d->simulation->failed) /* the acquire of `completed` in await() orders it */
		return LOOM_FAIL(d->host, err, d->simulation->failed, "%s", d->simulation->why);
	*end_ns = d->member.took_ns;
	return 0;
}

void device_wake(void *self)
{
	struct device *d = self;
	__atomic_store_n(&d->nudged, 1, __ATOMIC_RELAXED);
	simulation_notify(d->simulation);
}

int device_repeat(void *self, char *text, size_t size)
{
	const struct device *d = self;
	const struct simulation *s = d->simulation;
	if (s->schedule == SCHEDULE_TIME || !d->what)
		return 0;
	return snprintf(text, size, "[device.sim] schedule = random:%" PRIu64,
			s->schedule_seed + d->member.group->ctl->sample);
}

/* The stop flag is already set. A worker that ignores it is abandoned when it next calls the device layer. */
int device_retire(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct device *d = self;
	struct simulation *s = d->simulation;
	if (!d->what)
		return 0;
	uint32_t last = __atomic_load_n(&s->command, __ATOMIC_ACQUIRE);
	if (!await(d, last, 0, deadline(d, timeout_ns))) {
		__atomic_store_n(&s->halt, 1, __ATOMIC_RELAXED);
		if (!await(d, last, 0, deadline(d, FORCE_NS)))
			return LOOM_FAIL(d->host, err, LOOM_ETIMEDOUT,
					 "%s: a task neither returns nor calls the device layer, and cannot be ended: "
					 "the memory of this run must stay",
					 d->name);
	}
	simulation_end(s, &d->member);
	unmake(d);
	return 0;
}
