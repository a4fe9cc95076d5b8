/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a rig: blocks, views, contexts. threads.c runs the workers. */
#include "rig/rig.h"

#include <gpuloom/sync.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/align.h"
#include "lib/random.h"

enum { GUARD = 64, PATTERN = 0x5c };

/* ---- layout ---------------------------------------------------------------------------------- */

void loom__rig_shape(struct loom__rig *r, const struct loom__rig_want *w)
{
	uint32_t first = 0;
	*r = (struct loom__rig){.want = *w, .file = -1};
	for (uint32_t d = 0; d < w->devices; d++) {
		uint32_t n = d == 0 && w->first ? w->first : (w->workers - first) / (w->devices - d);
		r->shape[d] = (struct loom_device_shape){.first_worker = first,
							 .workers = n,
							 .lanes = w->lanes,
							 .numa_node = -1,
							 .local_bytes = 1 << 20,
							 .kind = w->kind[d] ? w->kind[d] : LOOM_ON_CPU};
		snprintf(r->shape[d].name, sizeof(r->shape[d].name), "test:%u", d);
		first += n;
	}
	r->layout = (struct loom_layout){.size = sizeof(r->layout),
					 .devices = w->devices,
					 .workers = w->workers,
					 .device = r->shape,
					 .initial_tasks = w->initial_tasks,
					 .seed = w->seed,
					 .noncoherent = w->noncoherent,
					 .costs = w->costs,
					 .barrier_scopes = w->barrier_scopes};
}

int loom__rig_add(struct loom__rig *r, const struct loom_plugin *p, const struct loom_host *host, const void *opts,
		  struct loom_error *err)
{
	struct loom__rig_part *part = &r->part[p->kind];
	part->plugin = p;
	part->ops = p->ops;
	int code = LOOM_HAS(p, check) ? p->check(host, opts, err) : 0;
	if (!code)
		code = part->ops->create(host, opts, &part->self, err);
	if (code)
		part->plugin = NULL;
	if (!code && p->kind == LOOM_WORKLOAD && p->dev && LOOM_HAS((const struct loom_workload_dev *)p->dev->cpu, cost))
		r->layout.costs = LOOM_COSTS_OF_WORKLOAD;
	if (!code && p->dev && !r->want.table[p->kind])
		r->want.table[p->kind] = p->dev->cpu;
	return code;
}

/* The channels of tests that define none. */
static int default_channels(struct loom__rig *r, struct loom_error *err)
{
	const struct loom__rig_part *p = &r->part[LOOM_SYNC];
	const struct loom_channel two[] = {{.slots = 4, .readers = 1, .from = LOOM_ANY_DEVICE, .item_bytes = 64},
					   {.slots = 1, .readers = 2, .item_bytes = 200}};
	return ((const struct loom_sync_ops *)p->plugin->ops)->channels(p->self, &r->layout, two, 2, err);
}

static int need_of(struct loom__rig *r, int k, struct loom_error *err)
{
	struct loom__rig_part *p = &r->part[k];
	int code = 0;
	p->need = (struct loom_need){.size = sizeof(p->need), .global = r->want.bytes[k]};
	if (!p->plugin)
		return 0;
	p->need.global = 0;
	if (r->want.before_need)
		code = r->want.before_need(r->want.arg, p->self, &r->layout, err);
	else if (k == LOOM_SYNC)
		code = default_channels(r, err);
	return code ? code : p->ops->need(p->self, &r->layout, &p->need, err);
}

int loom__rig_need(struct loom__rig *r, struct loom_error *err)
{
	const struct loom__rig_part *w = &r->part[LOOM_WORKLOAD];
	const struct loom_workload_ops *ops = r->want.counts && w->plugin ? w->plugin->ops : NULL;
	int code = ops ? need_of(r, LOOM_WORKLOAD, err) : 0;
	if (ops && !code)
		r->want.initial_tasks = r->layout.initial_tasks = ops->task_count(w->self, &r->layout);
	for (int k = 0; k < LOOM_KINDS_MAX && !code; k++)
		code = ops && k == LOOM_WORKLOAD ? 0 : need_of(r, k, err);
	return code;
}

uint64_t loom__rig_asked(const struct loom__rig *r)
{
	uint64_t all = 0;
	for (int k = 0; k < LOOM_KINDS_MAX; k++) {
		const struct loom_need *n = &r->part[k].need;
		if ((n->global | n->device | n->worker | n->local) >> 44)
			return ~0ull;
		all += n->global + n->device * r->layout.devices + (n->worker + n->local) * r->layout.workers;
	}
	return all;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t take(struct loom__rig *r, uint64_t bytes)
{
	uint64_t at = r->at;
	if (bytes)
		r->at += loom__align(bytes, 64) + GUARD;
	return bytes ? at : 0;
}

static void lay_out(struct loom__rig *r, struct loom__rig_part *p)
{
	p->global = take(r, p->need.global);
	for (uint32_t d = 0; d < r->layout.devices; d++)
		p->on_device[d] = take(r, p->need.device);
	for (uint32_t w = 0; w < r->layout.workers; w++)
		p->own[w] = take(r, p->need.worker);
}

static void point(struct loom__rig *r, struct loom__rig_part *p)
{
	for (uint32_t d = 0; d < r->layout.devices; d++)
		p->device[d] = p->on_device[d] ? r->host + p->on_device[d] : NULL;
	for (uint32_t w = 0; w < r->layout.workers; w++) {
		p->worker[w] = p->own[w] ? r->host + p->own[w] : NULL;
		p->registry[w] = p->own[w] ? LOOM_REF(1, p->own[w]) : 0;
	}
	p->view = (struct loom_view){.size = sizeof(p->view),
				     .global = p->global ? r->host + p->global : NULL,
				     .device = p->device,
				     .worker = p->worker};
}

/* With `text` NULL, writes the guard pattern after a block. Else returns a text about overwritten bytes. */
static const char *guard(struct loom__rig *r, uint64_t at, uint64_t bytes, const char *what, char *text, size_t room)
{
	unsigned char *end = (unsigned char *)r->host + at + bytes;
	uint64_t n = bytes ? GUARD + (-bytes & 63) : 0;
	if (!text)
		memset(end, PATTERN, n);
	for (uint64_t i = 0; i < n && text; i++)
		if (end[i] != PATTERN) {
			snprintf(text, room, "it wrote %llu bytes behind the %llu per %s that its need() asked for",
				 (unsigned long long)i + 1, (unsigned long long)bytes, what);
			return text;
		}
	return NULL;
}

static const char *each_guard(struct loom__rig *r, char *text, size_t room)
{
	const char *found = NULL;
	for (int k = 0; k < LOOM_KINDS_MAX && !found; k++) {
		struct loom__rig_part *p = &r->part[k];
		found = guard(r, p->global, p->need.global, "stack", text, room);
		for (uint32_t d = 0; d < r->layout.devices && !found; d++)
			found = guard(r, p->on_device[d], p->need.device, "device", text, room);
		for (uint32_t w = 0; w < r->layout.workers && !found; w++)
			found = guard(r, p->own[w], p->need.worker, "worker", text, room);
	}
	return found;
}

/* Writes or checks guards after scratchpad memory, like guard(). */
static const char *guard_local(struct loom__rig *r, struct loom__rig_part *p, char *text, size_t room)
{
	for (uint32_t w = 0; w < r->layout.workers && p->local_room; w++) {
		unsigned char *end = (unsigned char *)p->local + w * p->local_room + p->need.local;
		uint64_t n = p->local_room - p->need.local;
		for (uint64_t i = 0; text && i < n; i++)
			if (end[i] != PATTERN) {
				snprintf(text, room,
					 "it wrote behind the %llu private bytes per worker that its need() asked for",
					 (unsigned long long)p->need.local);
				return text;
			}
		memset(end, PATTERN, n);
	}
	return NULL;
}

const char *loom__rig_guards(struct loom__rig *r, char *text, size_t room)
{
	const char *found = each_guard(r, text, room);
	for (int k = 0; k < LOOM_KINDS_MAX && !found; k++)
		found = guard_local(r, &r->part[k], text, room);
	return found;
}

static int map(struct loom__rig *r)
{
	uint32_t w = r->layout.workers;
	int bad = 0;
	r->at = 4096; /* reference 0 is never valid */
	for (int k = 0; k < LOOM_KINDS_MAX; k++) {
		struct loom__rig_part *p = &r->part[k];
		p->registry = calloc(w, sizeof(loom_ref));
		bad |= !p->registry;
		lay_out(r, p);
		p->local_room = p->need.local ? loom__align(p->need.local, 64) + GUARD : 0;
		if (p->local_room) {
			bad |= posix_memalign((void **)&p->local, 64, p->local_room * w);
			if (p->local)
				memset(p->local, 0xa5, p->local_room * w);
		}
	}
	r->bytes = loom__align(r->at, 4096);
	r->file = bad ? -1 : memfd_create("blocks", MFD_CLOEXEC);
	if (r->file < 0 || ftruncate(r->file, (off_t)r->bytes))
		return LOOM_ENOMEM;
	for (uint32_t d = 0; d <= (r->want.one_view ? 0 : r->layout.devices); d++) {
		char *at = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->file, 0);
		if (at == MAP_FAILED)
			return LOOM_ENOMEM;
		if (d == 0)
			r->host = at;
		else
			r->view[d - 1] = at;
	}
	return 0;
}

int loom__rig_furnish(struct loom__rig *r)
{
	uint32_t w = r->layout.workers;
	uint64_t tasks = (r->want.initial_tasks + 1) * sizeof(*r->initial);
	int bad = map(r);
	bad |= posix_memalign((void **)&r->ctl, 64, sizeof(*r->ctl));
	bad |= posix_memalign((void **)&r->counters, 64, w * sizeof(*r->counters));
	bad |= posix_memalign((void **)&r->initial, 64, tasks);
	r->ctx = calloc((size_t)w * r->want.lanes, sizeof(*r->ctx));
	r->together = calloc(w, sizeof(*r->together));
	if (bad || !r->ctx || !r->together)
		return LOOM_ENOMEM;
	memset(r->ctl, 0, sizeof(*r->ctl));
	memset(r->initial, 0, tasks);
	for (int k = 0; k < LOOM_KINDS_MAX; k++)
		point(r, &r->part[k]);
	each_guard(r, NULL, 0);
	for (uint32_t d = 0; d < r->layout.devices; d++) {
		r->segment[d][1] = r->want.one_view ? r->host : r->view[d];
		r->segment[d][2] = r->want.extra;
	}
	return 0;
}

/* ---- beside the workers ---------------------------------------------------------------------- */

static const struct loom_sync_ops *sync_of(const struct loom__rig *r)
{
	return r->part[LOOM_SYNC].plugin ? r->part[LOOM_SYNC].plugin->ops : NULL;
}

void loom__rig_interrupt(struct loom__rig *r, int code, uint32_t device)
{
	struct loom__rig_part *p = &r->part[LOOM_SYNC];
	if (code == LOOM_EDIED)
		__atomic_store_n(&r->ctl->died, device + 1, __ATOMIC_RELEASE);
	if (LOOM_HAS(sync_of(r), interrupt))
		sync_of(r)->interrupt(p->self, &r->layout, &p->view, code, device);
}

/* Attaches once, as a CPU device does for its address space: all devices here share one. */
static int attach(struct loom__rig *r, struct loom_error *err)
{
	struct loom__rig_part *p = &r->part[LOOM_SYNC];
	for (uint32_t d = 0; LOOM_HAS(sync_of(r), attach) && d < r->layout.devices; d++) {
		char *base = r->segment[d][1];
		struct loom_space space = {.size = sizeof(space),
					   .device = d,
					   .layout = &r->layout,
					   .global = p->global ? base + p->global : NULL,
					   .on_device = p->on_device[d] ? base + p->on_device[d] : NULL,
					   .ctl = r->ctl};
		int code = sync_of(r)->attach(p->self, &space, err);
		if (code)
			return code;
		p->attached = d + 1;
	}
	return 0;
}

int loom__rig_begin(struct loom__rig *r, const char **what, struct loom_error *err)
{
	void *at[3] = {NULL, r->host, r->want.extra};
	uint64_t bytes[3] = {0, r->bytes, r->want.extra_bytes};
	struct loom_segments segments = {
	    .size = sizeof(segments), .count = r->want.extra ? 3 : 2, .at = at, .bytes = bytes};
	*what = "start()";
	for (int k = 0; k < LOOM_KINDS_MAX; k++) {
		struct loom__rig_part *p = &r->part[k];
		if (!p->plugin || !LOOM_HAS(p->ops, start))
			continue;
		int code = p->ops->start(p->self, &r->layout, &p->view, &segments, err);
		if (code)
			return code;
		p->started = 1;
	}
	*what = "attach()";
	return attach(r, err);
}

void loom__rig_close(struct loom__rig *r)
{
	struct loom__rig_part *sync = &r->part[LOOM_SYNC];
	for (uint32_t d = 0; d < sync->attached; d++)
		if (LOOM_HAS(sync_of(r), detach))
			sync_of(r)->detach(sync->self, d);
	for (int k = 0; k < LOOM_KINDS_MAX; k++) {
		struct loom__rig_part *p = &r->part[k];
		if (p->started && LOOM_HAS(p->ops, stop))
			p->ops->stop(p->self);
		if (p->plugin)
			p->ops->destroy(p->self);
		free(p->registry);
		free(p->local);
	}
	for (uint32_t d = 0; d < r->layout.devices; d++)
		if (r->view[d])
			munmap(r->view[d], r->bytes);
	if (r->host)
		munmap(r->host, r->bytes);
	if (r->file >= 0)
		close(r->file);
	free(r->ctl);
	free(r->counters);
	free(r->initial);
	free(r->ctx);
	free(r->together);
	*r = (struct loom__rig){.file = -1};
}

/* ---- a sample -------------------------------------------------------------------------------- */

static void fill(struct loom__rig *r, uint32_t w, uint32_t lane)
{
	const struct loom__rig_want *want = &r->want;
	uint32_t d = 0;
	while (d + 1 < r->layout.devices && w >= r->shape[d + 1].first_worker)
		d++;
	struct loom_ctx *c = &r->ctx[w * want->lanes + lane];
	*c = (struct loom_ctx){.worker = w,
			       .workers = r->layout.workers,
			       .device = d,
			       .devices = r->layout.devices,
			       .first = r->shape[d].first_worker,
			       .count = r->shape[d].workers,
			       .lane = lane,
			       .lanes = want->lanes,
			       .flags = LOOM_CTX_OVERSUBSCRIBED, /* other tests may run at the same time */
			       .random = loom__mix(want->seed + r->samples * 1000ull + w) | 1,
			       .ctl = r->ctl,
			       .counters = &r->counters[w],
			       .segment = r->segment[d],
			       .together = &r->together[w],
			       .initial = r->initial,
			       .sched = want->table[LOOM_SCHED],
			       .term = want->table[LOOM_TERM],
			       .sync = want->table[LOOM_SYNC],
			       .barrier = want->table[LOOM_BARRIER],
			       .trigger = want->table[LOOM_TRIGGER],
			       .qos = want->table[LOOM_QOS],
			       .workload = want->table[LOOM_WORKLOAD],
			       .task = want->task,
			       .tasks = want->tasks};
	for (int k = 0; k < LOOM_KINDS_MAX; k++) {
		const struct loom__rig_part *p = &r->part[k];
		char *base = r->segment[d][1];
		c->global[k] = p->global ? base + p->global : NULL;
		c->on_device[k] = p->on_device[d] ? base + p->on_device[d] : NULL;
		c->own[k] = p->own[w] ? base + p->own[w] : NULL;
		c->local[k] = p->local_room ? p->local + w * p->local_room : NULL;
		c->registry[k] = p->need.worker ? p->registry : NULL;
	}
}

/* Fills the stack with a known content that differs between samples. Padding of a struct that init() copies has that
 * content, so a comparison of two initial states always finds such padding. AddressSanitizer would put an area around
 * the array that stays unfilled, so it must not change this function. */
static __attribute__((noinline, no_sanitize("address"))) void fill_stack(unsigned char with)
{
	volatile uint64_t area[2048];
	for (size_t i = 0; i < sizeof(area) / sizeof(area[0]); i++)
		area[i] = with * 0x0101010101010101ull;
}

int loom__rig_init(struct loom__rig *r, struct loom_error *err)
{
	uint32_t workers = r->layout.workers;
	for (int k = 0; k < LOOM_KINDS_MAX; k++) {
		struct loom__rig_part *p = &r->part[k];
		fill_stack(r->samples % 2 ? 0x5a : 0xa5);
		int code = p->plugin ? p->ops->init(p->self, &r->layout, &p->view, err) : 0;
		if (code)
			return code;
		if (p->local_room && !(r->want.dirty >> k & 1))
			memset(p->local, 0, p->local_room * workers);
		guard_local(r, p, NULL, 0);
	}
	memset(r->ctl, 0, sizeof(*r->ctl));
	memset(r->counters, 0, workers * sizeof(*r->counters));
	memset(r->together, 0, workers * sizeof(*r->together));
	r->ctl->initial_tasks = r->layout.initial_tasks;
	r->ctl->sample = r->samples++;
	for (uint32_t w = 0; w < workers; w++)
		for (uint32_t lane = 0; lane < r->want.lanes; lane++)
			fill(r, w, lane);
	return 0;
}

void loom__rig_ready(struct loom__rig *r)
{
	for (uint32_t d = 0; LOOM_HAS(sync_of(r), ready) && d < r->layout.devices; d++)
		sync_of(r)->ready(r->part[LOOM_SYNC].self, d);
}

int loom__rig_collect(struct loom__rig *r, struct loom_report *report, struct loom_error *err)
{
	int code = 0;
	for (int k = 0; k < LOOM_KINDS_MAX && !code; k++) {
		struct loom__rig_part *p = &r->part[k];
		if (p->plugin && LOOM_HAS(p->ops, collect))
			code = p->ops->collect(p->self, &r->layout, &p->view, report, err);
	}
	return code;
}
