/* SPDX-License-Identifier: Apache-2.0 */
/* A device outside of gpuloom's source tree, made like that of a GPU. Its memory has no address on the host, so the core copies it in
 * and out. It composes one program from the device code of the selected plug-ins, and has a compiler of this machine compile it. A
 * real accelerator replaces hostcc_load() by its own compiler, the threads by a kernel, and memcpy() by its own copies. */
#include <dlfcn.h>
#include <gpuloom/dev/probe.h>
#include <gpuloom/device.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "device_common/compose/compose.h"
#include "device_common/compose/hostcc.h"

enum { WORKERS = 2, CONTEXT_BYTES = 4096 /* as in far.dev.h */ };

struct worker {
	struct device *device;
	pthread_t id;
	struct loom_ctx *ctx; /* CONTEXT_BYTES, followed by the scratchpad memory */
};

struct device {
	const struct loom_host *host;
	char name[32];
	void (*work)(struct loom_ctx *c); /* the compiled program */
	const struct loom_launch *what; /* NULL: no launch */
	struct worker worker[WORKERS];
	uint32_t started; /* threads */
	char *view[LOOM_MAX_SEGMENTS]; /* addresses for workers */
	uint64_t local_bytes; /* scratchpad memory of a worker */
	uint32_t ready, finished, gone; /* workers that have reached this point */
};

static int create(const struct loom_host *host, const void *opts, uint32_t instance, uint32_t instances, void **self,
		  struct loom_error *err)
{
	struct device *d = host->alloc(host, sizeof(*d));
	(void)opts, (void)instances;
	if (!d)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, "far: out of memory");
	d->host = host;
	snprintf(d->name, sizeof(d->name), "far:%u", instance);
	*self = d;
	return 0;
}

static void destroy(void *self)
{
	if (self)
		((struct device *)self)->host->free(((struct device *)self)->host, self);
}

static int shape(void *self, struct loom_device_shape *s, struct loom_error *err)
{
	(void)self, (void)err;
	s->workers = WORKERS;
	s->lanes = 1;
	s->numa_node = -1;
	s->local_bytes = 1 << 20;
	s->kind = LOOM_ON_GPU; /* the affinity of the tasks that it runs: those with device code */
	return 0;
}

static int mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *m, struct loom_error *err)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return LOOM_FAIL(((struct device *)self)->host, err, LOOM_ENOMEM, "far: no %llu bytes", (unsigned long long)bytes);
	*m = (struct loom_memory){.size = sizeof(*m), .bytes = bytes, .fd = -1, .device = -1, .handle = (uint64_t)(uintptr_t)at};
	m->host = flags & LOOM_MEMORY_HOST ? at : NULL; /* only the control words and what else both sides use during a sample */
	return 0;
}

static void mem_free(void *self, struct loom_memory *m)
{
	(void)self;
	munmap((void *)(uintptr_t)m->handle, m->bytes);
}

static int mem_map(void *self, const struct loom_memory *m, struct loom_error *err)
{
	if (m->host)
		return 0;
	return LOOM_FAIL(((struct device *)self)->host, err, LOOM_EUNAVAIL,
			 "far: this device cannot use memory of another device: set transport.use = host");
}

static void mem_unmap(void *self, const struct loom_memory *m)
{
	(void)self, (void)m;
}

/* The address for workers: of own memory, or of memory that mem_map() has accepted. */
static char *address(const struct loom_memory *m, uint64_t offset)
{
	return (char *)(m->host ? m->host : (void *)(uintptr_t)m->handle) + offset;
}

static int copy_in(void *self, const struct loom_memory *m, uint64_t offset, const void *from, uint64_t bytes, struct loom_error *err)
{
	return (void)self, (void)err, memcpy(address(m, offset), from, bytes), 0;
}

static int copy_out(void *self, const struct loom_memory *m, uint64_t offset, void *to, uint64_t bytes, struct loom_error *err)
{
	return (void)self, (void)err, memcpy(to, address(m, offset), bytes), 0;
}

/* An accelerator has a device layer of its own: all functions that gpuloom/dev/dev.h describes. That of CPUs suits threads. */
LOOM_EMBED(layer_text, "gpuloom/dev/cpu.h");
LOOM_EMBED(kernel_text, "far.dev.h");
static const struct compose_layer layer = {"gpuloom/dev/cpu.h", layer_text, ""};

static int build(void *self, const struct loom_program *p, struct loom_error *err)
{
	struct device *d = self;
	struct compose_target target = {
		.label = d->name, .layer = &layer, .kernel = kernel_text, .lanes = 1, .per_block = 1, .blocks = 1, .nesting = 64};
	struct loom__text text;
	void *so;
	int rc = compose_work(d->host, &target, p, &text, err);
	if (rc)
		return rc;
	struct hostcc_want want = {.label = d->name, .what = "device functions", .cpp = 1, .text = text.at, .layer = &layer};
	rc = hostcc_load(d->host, &want, &so, err);
	loom__text_free(&text);
	if (rc)
		return rc;
	*(void **)&d->work = dlsym(so, "far_work");
	return d->work ? 0 : LOOM_FAIL(d->host, err, LOOM_EINTERNAL, "%s: its program has no entry", d->name);
}

static void *at(const struct device *d, loom_ref ref)
{
	return ref ? d->view[LOOM_REF_SEGMENT(ref)] + LOOM_REF_OFFSET(ref) : NULL;
}

/* Makes the context again for each sample: registries and blocks of policies have their contents from GO on, and what the scheduler
 * has added is 0. */
static void fill(const struct device *d, const struct worker *w, uint32_t phase)
{
	const struct loom_launch *l = d->what;
	const struct loom_device_shape *s = &l->layout->device[l->device];
	uint32_t i = (uint32_t)(w - d->worker);
	struct loom_ctx *c = w->ctx;
	char *local = (char *)c + CONTEXT_BYTES;
	memset(c, 0, CONTEXT_BYTES + d->local_bytes);
	*c = (struct loom_ctx){.worker = s->first_worker + i, .workers = l->layout->workers,
			       .device = l->device, .devices = l->layout->devices,
			       .first = s->first_worker, .count = s->workers,
			       .lanes = 1, .flags = LOOM_CTX_OVERSUBSCRIBED,
			       .random = (l->layout->seed + phase + 1) * 0x9e3779b97f4a7c15ull + s->first_worker + i + 1,
			       .ctl = at(d, l->ctl),
			       .counters = (struct loom_counters *)at(d, l->counters) + s->first_worker + i,
			       .segment = d->view, .initial = at(d, l->initial)};
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

/* Waits until the phase differs from `is`. GO and READY words are even, RETIRE is odd. */
static uint32_t await_phase(const struct loom_ctl *ctl, uint32_t is)
{
	uint32_t phase; /* the acquire pairs with the host's release of the phase */
	while ((phase = loom_load_acquire_sys(&ctl->phase)) == is || (phase % 4 == 0 && is % 4 != 2))
		loom_cpu_yield();
	return phase;
}

static void *worker_main(void *arg)
{
	struct worker *w = arg;
	struct device *d = w->device;
	const struct loom_ctl *ctl = at(d, d->what->ctl);
	for (uint32_t phase = 0; (phase = await_phase(ctl, phase)) != LOOM_PHASE_RETIRE;) {
		loom_fetch_add_acq_rel_sys(&d->ready, 1u);
		phase = await_phase(ctl, phase);
		if (phase == LOOM_PHASE_RETIRE)
			break;
		fill(d, w, phase);
		w->ctx->counters->begin_ns = loom_clock_ns(w->ctx);
		if (d->what->entry == LOOM_ENTRY_PROBE)
			loom_probe_run(w->ctx, at(d, d->what->probe));
		else
			d->work(w->ctx);
		w->ctx->counters->end_ns = loom_clock_ns(w->ctx);
		loom_fetch_add_acq_rel_sys(&d->finished, 1u); /* pairs with the acquire in await() */
	}
	loom_fetch_add_acq_rel_sys(&d->gone, 1u);
	return NULL;
}

static void end_launch(struct device *d)
{
	for (uint32_t i = 0; i < d->started; i++)
		pthread_join(d->worker[i].id, NULL);
	for (uint32_t i = 0; i < WORKERS; i++)
		d->host->free(d->host, d->worker[i].ctx);
	memset(d->worker, 0, sizeof(d->worker));
	d->what = NULL;
	d->started = 0;
}

static int launch(void *self, const struct loom_launch *l, struct loom_error *err)
{
	struct device *d = self;
	int failed = 0;
	d->what = l;
	d->ready = d->finished = d->gone = 0;
	d->local_bytes = 0;
	for (int k = 0; k < LOOM_KINDS && l->local_bytes; k++)
		d->local_bytes += (l->local_bytes[k] + 63) & ~63ull;
	for (uint32_t i = 1; i < l->segments; i++)
		d->view[i] = LOOM_SEGMENT_REACHES(&l->segment[i], l->device) ? address(l->segment[i].memory, l->segment[i].offset) : NULL;
	for (uint32_t i = 0; !failed && i < WORKERS; i++) {
		struct worker *w = &d->worker[i];
		w->device = d;
		w->ctx = d->host->alloc(d->host, CONTEXT_BYTES + d->local_bytes);
		failed = !w->ctx || pthread_create(&w->id, NULL, worker_main, w);
		d->started += !failed;
	}
	if (!failed)
		return 0;
	if (d->started)
		loom_store_release_sys(&((struct loom_ctl *)at(d, l->ctl))->phase, LOOM_PHASE_RETIRE);
	end_launch(d);
	return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: no memory or threads for its workers", d->name);
}

/* Polls every 50 us. Returns LOOM_EAGAIN after the time-out. */
static int await(struct device *d, const uint32_t *word, uint64_t timeout_ns)
{
	const struct timespec nap = {.tv_nsec = 50000};
	uint64_t until = d->host->now_ns(d->host) + timeout_ns;
	while (loom_load_acquire_sys(word) < d->started) {
		if (d->host->now_ns(d->host) >= until)
			return LOOM_EAGAIN;
		nanosleep(&nap, NULL);
	}
	return 0;
}

static int ready(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct device *d = self;
	if (await(d, &d->ready, timeout_ns))
		return LOOM_FAIL(d->host, err, LOOM_ETIMEDOUT, "%s: the workers do not wake up", d->name);
	d->ready = d->finished = 0;
	return 0;
}

static int go(void *self, struct loom_error *err)
{
	return (void)self, (void)err, 0; /* the workers poll the phase */
}

static int wait(void *self, uint64_t timeout_ns, uint64_t *end_ns, struct loom_error *err)
{
	struct device *d = self;
	int rc = ((void)err, await(d, &d->finished, timeout_ns));
	*end_ns = d->host->now_ns(d->host);
	return rc;
}

static int retire(void *self, uint64_t timeout_ns, struct loom_error *err)
{
	struct device *d = self;
	if (d->what && await(d, &d->gone, timeout_ns))
		return LOOM_FAIL(d->host, err, LOOM_ETIMEDOUT, "%s: workers do not return", d->name);
	if (d->what)
		end_launch(d);
	return 0;
}

static const struct loom_device_ops ops = {
	.size = sizeof(ops), .create = create, .destroy = destroy, .shape = shape,
	.mem_alloc = mem_alloc, .mem_free = mem_free, .mem_map = mem_map, .mem_unmap = mem_unmap, .copy_in = copy_in, .copy_out = copy_out,
	.build = build, .launch = launch, .ready = ready, .go = go, .wait = wait, .retire = retire,
};

LOOM_PLUGIN_DEFINE(DEVICE, "device_far", "0.1.0", "Apache-2.0", "an example: composed code on threads, and memory of its own",
		   .ops = &ops)
