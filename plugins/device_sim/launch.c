/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a launch, from the host's side. */
#include <errno.h>
#include <gpuloom/dev/futex.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "device_sim.h"
#include "lib/align.h"

#define CTL_BYTES 4096u
/* How long those are waited for who do not heed the stop word, in real time. */
#define FORCE_NS 1000000000ull

static uint64_t clock_of_host(const struct device *d)
{
	return d->host->now_ns(d->host);
}

static void *at(const struct device *d, loom_ref ref)
{
	return ref ? d->view[LOOM_REF_SEGMENT(ref)] + LOOM_REF_OFFSET(ref) : NULL;
}

static void fill(struct device *d, struct sim_worker *x, uint32_t worker)
{
	const struct loom_launch *what = d->what;
	const struct loom_device_shape *shape = &what->layout->device[what->device];
	struct loom_ctx *c = &x->ctx;
	struct loom_counters *counters = at(d, what->counters);
	uint32_t id = shape->first_worker + worker;
	char *trace = LOOM_HAS(what, trace) ? at(d, what->trace) : NULL;
	char *local = (char *)d->member.local + worker * (d->member.local_bytes / d->member.workers);
	x->device = &d->member;
	x->at.crew = d->member.crew;
	x->index = d->member.index;
	/* Ranks have the same costs mostly, and then one copy of them in the cache. */
	x->cost = memcmp(d->world->cost, d->member.cost, sizeof(d->member.cost)) ? d->member.cost : d->world->cost;
	*c = (struct loom_ctx){
		.worker = id,
		.workers = what->layout->workers,
		.device = what->device,
		.devices = what->layout->devices,
		.first = shape->first_worker,
		.count = shape->workers,
		.lanes = 1,
		.ctl = d->member.ctl,
		.counters = counters ? &counters[id] : &x->unseen,
		.segment = d->view,
		.initial = at(d, what->initial),
		.trace = trace ? (struct loom_trace *)(trace + id * what->trace_bytes) : NULL,
	};
	for (int kind = 0; kind < LOOM_KINDS; kind++) {
		c->global[kind] = what->global ? at(d, what->global[kind]) : NULL;
		c->on_device[kind] = what->on_device ? at(d, what->on_device[kind]) : NULL;
		c->registry[kind] = what->registry ? at(d, what->registry[kind]) : NULL;
		c->own[kind] = c->registry[kind] ? at(d, c->registry[kind][id]) : NULL;
		c->local[kind] = local;
		local += what->local_bytes ? loom__align(what->local_bytes[kind], 64) : 0;
	}
}

static int refuse(struct device *d, const struct loom_launch *what, struct loom_error *err)
{
	for (uint32_t i = 0; i < what->layout->devices; i++)
		if (!(what->layout->device[i].flags & LOOM_SHAPE_IS_VIRTUAL))
			return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
					 "%s: %s runs in real time, which virtual time does not mix with: let all "
					 "devices be simulated",
					 d->name, what->layout->device[i].name);
	for (uint32_t i = 0; i < what->attachments; i++)
		if (what->attachment[i].attach)
			return LOOM_FAIL(d->host, err, LOOM_ENOTSUP,
					 "%s: the selected sync acts on pages or threads of real processes: choose "
					 "another in [sync]",
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
		world_drop_range(d->member.crew, d->own);
		if (m->local_bytes)
			world_drop_range(d->member.crew, d->own + CTL_BYTES);
		munmap(d->own, d->own_bytes);
	}
	m->worker = NULL;
	d->own = NULL;
	d->what = NULL;
}

/* A stack for each worker, private blocks, and a place in the world. 0 or errno. */
static int make(struct device *d)
{
	const struct loom_launch *what = d->what;
	struct sim_member *m = &d->member;
	uint64_t each = 0;
	for (int kind = 0; what->local_bytes && kind < LOOM_KINDS; kind++)
		each += loom__align(what->local_bytes[kind], 64);
	m->workers = what->entry == LOOM_ENTRY_PROBE ? 1 : d->options->workers;
	m->local_bytes = each * m->workers;
	d->own_bytes = CTL_BYTES + m->local_bytes;
	d->own = mmap(NULL, d->own_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (d->own == MAP_FAILED) {
		d->own = NULL;
		return errno;
	}
	if (world_add_range(d->member.crew, d->own, CTL_BYTES, m->index) ||
	    (m->local_bytes && world_add_range(d->member.crew, d->own + CTL_BYTES, m->local_bytes, LOOM_SIM_PRIVATE)))
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
		return LOOM_FAIL(d->host, err, LOOM_EBUSY, "%s: its workers are still there", d->name);
	int code = refuse(d, what, err);
	if (code)
		return code;
	d->what = what;
	d->member.crew->shares = LOOM_HAS(what->layout, ranks) && what->layout->ranks > 1;
	for (uint32_t i = 1; i < what->segments; i++) {
		const struct loom_segment *s = &what->segment[i];
		int reaches = LOOM_SEGMENT_REACHES(s, what->device);
		d->view[i] = reaches && s->memory->host ? (char *)s->memory->host + s->offset : NULL;
	}
	code = make(d);
	if (!code)
		code = world_start(d->world, &d->member, at(d, what->ctl), what->layout->seed,
				   what->entry == LOOM_ENTRY_PROBE);
	if (!code)
		return 0;
	unmake(d);
	return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL, "%s: cannot make %u workers: %s", d->name,
			 d->options->workers, strerror(code));
}

static int launched(struct device *d, struct loom_error *err)
{
	return d->what ? 0 : LOOM_FAIL(d->host, err, LOOM_EINVAL, "%s: nothing is launched", d->name);
}

/* Workers are made anew for each sample: there is nobody to wake up. */
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
	d->sample = world_go(d->world);
	return 0;
}

/* Until the world rests after that sample: 1. 0 when the clock says `until`, or after a nudge that is heeded.
 * Acquire: pairs with who rings. */
static int await(struct device *d, uint32_t sample, int heed, uint64_t until)
{
	struct world *w = d->world;
	for (;;) {
		uint32_t heard = __atomic_load_n(&w->rings, __ATOMIC_ACQUIRE);
		if (__atomic_load_n(&w->idle, __ATOMIC_ACQUIRE) == sample)
			return 1;
		if (clock_of_host(d) >= until || (heed && __atomic_exchange_n(&d->nudged, 0, __ATOMIC_RELAXED)))
			return 0;
		loom_futex_sleep(&w->rings, heard, until, FUTEX_PRIVATE_FLAG);
	}
}

static uint64_t deadline(const struct device *d, uint64_t timeout_ns)
{
	uint64_t now = clock_of_host(d);
	return timeout_ns > UINT64_MAX - now ? UINT64_MAX : now + timeout_ns;
}

int device_wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err)
{
	struct device *d = self;
	int code = launched(d, err);
	if (code)
		return code;
	if (__atomic_load_n(&d->member.crew->ctl->stop, __ATOMIC_RELAXED))
		__atomic_store_n(&d->world->stops, 1, __ATOMIC_RELAXED);
	if (!await(d, d->sample, 1, deadline(d, timeout_ns)))
		return LOOM_EAGAIN;
	if (d->world->failed) /* ordered by the end of the sample */
		return LOOM_FAIL(d->host, err, LOOM_EDIED, "%s", d->world->why);
	*end_ns = d->member.took_ns;
	return 0;
}

void device_wake(void *self)
{
	struct device *d = self;
	__atomic_store_n(&d->nudged, 1, __ATOMIC_RELAXED);
	world_ring(d->world);
}

int device_repeat(void *self, char *text, size_t size)
{
	const struct device *d = self;
	const struct world *w = d->world;
	if (w->schedule == WORLD_TIME || !d->what)
		return 0;
	return snprintf(text, size, "[device.sim] schedule = random:%" PRIu64, w->schedule_seed + d->member.crew->ctl->sample);
}

/* A sample in progress is told to end by the stop word. Who does not heed that is left where it is, the next time that it
 * calls the device layer. */
int device_retire(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct device *d = self;
	struct world *w = d->world;
	if (!d->what)
		return 0;
	uint32_t last = __atomic_load_n(&w->order, __ATOMIC_ACQUIRE);
	if (!await(d, last, 0, deadline(d, timeout_ns))) {
		__atomic_store_n(&w->halt, 1, __ATOMIC_RELAXED);
		if (!await(d, last, 0, deadline(d, FORCE_NS)))
			return LOOM_FAIL(d->host, err, LOOM_ETIMEDOUT,
					 "%s: a task neither ends nor calls the device layer, and cannot be ended: the "
					 "memory of this run must stay",
					 d->name);
	}
	world_end(w, &d->member);
	unmake(d);
	return 0;
}
