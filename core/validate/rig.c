/* SPDX-License-Identifier: Apache-2.0 */
/* The rig's memory: blocks, views, contexts. How workers run is crew.c. */
#include "validate/rig.h"

#include <gpuloom/sync.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD = 64, PATTERN = 0x5c };

/* ---- layout ---------------------------------------------------------------------------------- */

static void shape(struct loom__rig *r)
{
	const struct loom__rig_want *w = &r->want;
	uint32_t first = 0;
	for (uint32_t d = 0; d < w->devices; d++) {
		uint32_t n =
		    d == 0 && w->first ? w->first : (w->workers - first) / (w->devices - d);
		r->shape[d] = (struct loom_device_shape){.first_worker = first,
							 .workers = n,
							 .lanes = w->lanes,
							 .numa_node = -1,
							 .local_bytes = 1 << 20,
							 .kind = LOOM_ON_CPU};
		snprintf(r->shape[d].name, sizeof(r->shape[d].name), "test:%u", d);
		first += n;
	}
	r->layout = (struct loom_layout){.size = sizeof(r->layout),
					 .devices = w->devices,
					 .workers = w->workers,
					 .device = r->shape,
					 .initial_tasks = w->initial_tasks,
					 .seed = w->seed};
}

static uint64_t take(struct loom__rig *r, uint64_t bytes)
{
	uint64_t at = r->at;
	if (bytes)
		r->at += ((bytes + 63) & ~63ull) + GUARD;
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

/* ---- guards ---------------------------------------------------------------------------------- */

typedef void guard_fn(struct loom__rig *r, uint64_t at, uint64_t bytes, const char *what);

static void set_guard(struct loom__rig *r, uint64_t at, uint64_t bytes, const char *what)
{
	(void)what;
	memset(r->host + at + bytes, PATTERN, GUARD + (-bytes & 63));
}

static void look_at_guard(struct loom__rig *r, uint64_t at, uint64_t bytes, const char *what)
{
	const unsigned char *end = (const unsigned char *)r->host + at + bytes;
	for (uint64_t i = 0; i < GUARD + (-bytes & 63); i++)
		if (end[i] != PATTERN) {
			char text[300];
			loom__fault(r->t,
				    "it wrote %llu bytes behind the %llu per %s that its need() "
				    "asked for (%s)",
				    (unsigned long long)i + 1, (unsigned long long)bytes, what,
				    loom__rig_text(r, text, sizeof(text)));
			return;
		}
}

static void each_guard(struct loom__rig *r, guard_fn *fn)
{
	for (int k = 0; k < LOOM_KINDS; k++) {
		struct loom__rig_part *p = &r->part[k];
		if (p->global)
			fn(r, p->global, p->need.global, "stack");
		for (uint32_t d = 0; d < r->layout.devices && p->need.device; d++)
			fn(r, p->on_device[d], p->need.device, "device");
		for (uint32_t w = 0; w < r->layout.workers && p->need.worker; w++)
			fn(r, p->own[w], p->need.worker, "worker");
	}
}

static void guard_local(struct loom__rig *r, int look)
{
	struct loom__rig_part *p = &r->part[r->kind];
	for (uint32_t w = 0; w < r->layout.workers && p->need.local; w++) {
		unsigned char *end = (unsigned char *)p->local + w * p->local_room + p->need.local;
		uint64_t room = p->local_room - p->need.local;
		for (uint64_t i = 0; look && i < room; i++)
			if (end[i] != PATTERN) {
				loom__fault(
				    r->t,
				    "it wrote behind the %llu private bytes per worker that its "
				    "need() asked for",
				    (unsigned long long)p->need.local);
				return;
			}
		memset(end, PATTERN, room);
	}
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Where a test has no channels of its own. */
static int default_channels(struct loom__rig *r, struct loom_error *err)
{
	const struct loom_sync_ops *ops = r->t->plugin->ops;
	const struct loom_channel two[] = {{4, 1, LOOM_ANY_DEVICE, 0, 64}, {1, 2, 0, 0, 200}};
	return ops->channels(r->self, &r->layout, two, 2, err);
}

static int ask(struct loom__rig *r)
{
	struct loom_error err = {0};
	struct loom__rig_part *p = &r->part[r->kind];
	int code = 0;
	if (r->want.before_need)
		code = r->want.before_need(r->want.arg, r->self, &r->layout, &err);
	else if (r->kind == LOOM_SYNC)
		code = default_channels(r, &err);
	p->need = (struct loom_need){.size = sizeof(p->need)};
	if (!code)
		code = r->ops->need(r->self, &r->layout, &p->need, &err);
	if (code) {
		int verdict = loom__judge_error(r->t, "need()", code, &err);
		snprintf(r->why, sizeof(r->why), "need() refuses: %.200s", err.text);
		return verdict ? verdict : LOOM__REFUSED;
	}
	uint64_t most = p->need.global | p->need.device | p->need.worker | p->need.local;
	if (most >> 44)
		return loom__fault(r->t, "need() asks for an impossible amount of memory");
	uint64_t all = p->need.global + p->need.device * r->layout.devices +
		       p->need.worker * r->layout.workers + p->need.local * r->layout.workers;
	snprintf(r->why, sizeof(r->why), "need() asks for %llu MiB",
		 (unsigned long long)(all >> 20));
	r->too_large = all > LOOM__RIG_MEMORY;
	return r->too_large ? LOOM__REFUSED : 0;
}

static int map(struct loom__rig *r)
{
	r->at = 4096; /* reference 0 is never valid */
	for (int k = 0; k < LOOM_KINDS; k++) {
		struct loom__rig_part *p = &r->part[k];
		if (k != (int)r->kind)
			p->need.global = r->want.bytes[k];
		p->registry = calloc(r->layout.workers, sizeof(loom_ref));
		if (!p->registry)
			return LOOM_ENOMEM;
		lay_out(r, p);
	}
	r->bytes = (r->at + 4095) & ~4095ull;
	r->file = memfd_create("blocks", MFD_CLOEXEC);
	if (r->file < 0 || ftruncate(r->file, (off_t)r->bytes))
		return LOOM_ENOMEM;
	for (uint32_t d = 0; d <= r->layout.devices; d++) {
		char *at = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->file, 0);
		if (at == MAP_FAILED)
			return LOOM_ENOMEM;
		if (d == r->layout.devices) {
			r->host = at;
			continue;
		}
		r->view[d] = at;
		r->segment[d][1] = at;
	}
	for (int k = 0; k < LOOM_KINDS; k++)
		point(r, &r->part[k]);
	each_guard(r, set_guard);
	return 0;
}

static int furnish(struct loom__rig *r)
{
	struct loom__rig_part *p = &r->part[r->kind];
	uint32_t w = r->layout.workers;
	p->local_room = p->need.local ? ((p->need.local + 63) & ~63ull) + GUARD : 0;
	int bad = map(r);
	bad |= posix_memalign((void **)&p->local, 64, p->local_room * w + 64);
	bad |= posix_memalign((void **)&r->ctl, 64, sizeof(*r->ctl));
	bad |= posix_memalign((void **)&r->counters, 64, w * sizeof(*r->counters));
	bad |= posix_memalign((void **)&r->initial, 64,
			      (r->want.initial_tasks + 1) * sizeof(*r->initial));
	r->ctx = calloc(w * r->want.lanes, sizeof(*r->ctx));
	r->together = calloc(w, sizeof(*r->together));
	if (bad || !r->ctx || !r->together)
		return loom__skip(r->t, "not enough memory for the test");
	memset(r->initial, 0, (r->want.initial_tasks + 1) * sizeof(*r->initial));
	return 0;
}

/* ---- beside the workers ------------------------------------------------------------------------
 */

void loom__rig_interrupt(struct loom__rig *r, int code, uint32_t device)
{
	const struct loom_sync_ops *ops = r->t->plugin->ops;
	if (r->kind == LOOM_SYNC && LOOM_HAS(ops, interrupt))
		ops->interrupt(r->self, &r->layout, &r->part[LOOM_SYNC].view, code, device);
}

/* As a CPU device does for its address space: here one for all. */
static int attach(struct loom__rig *r)
{
	const struct loom_sync_ops *ops = r->t->plugin->ops;
	const struct loom__rig_part *p = &r->part[LOOM_SYNC];
	for (uint32_t d = 0; r->kind == LOOM_SYNC && LOOM_HAS(ops, attach) && d < r->layout.devices;
	     d++) {
		struct loom_error err = {0};
		struct loom_space space = {
		    .size = sizeof(space),
		    .device = d,
		    .layout = &r->layout,
		    .global = p->global ? r->view[d] + p->global : NULL,
		    .on_device = p->on_device[d] ? r->view[d] + p->on_device[d] : NULL,
		    .ctl = r->ctl};
		int code = ops->attach(r->self, &space, &err);
		if (code) {
			int verdict = loom__judge_error(r->t, "attach()", code, &err);
			return verdict ? verdict
				       : loom__skip(r->t, "not available here: %s", err.text);
		}
		r->attached = d + 1;
	}
	return 0;
}

static void detach(struct loom__rig *r)
{
	const struct loom_sync_ops *ops = r->t->plugin->ops;
	for (uint32_t d = 0; d < r->attached; d++)
		if (LOOM_HAS(ops, detach))
			ops->detach(r->self, d);
}

/* Host threads. */
static int begin(struct loom__rig *r)
{
	void *at[2] = {NULL, r->host};
	uint64_t bytes[2] = {0, r->bytes};
	struct loom_segments segments = {
	    .size = sizeof(segments), .count = 2, .at = at, .bytes = bytes};
	struct loom_error err = {0};
	if (!LOOM_HAS(r->ops, start))
		return 0;
	int code = r->ops->start(r->self, &r->layout, &r->part[r->kind].view, &segments, &err);
	if (code) {
		int verdict = loom__judge_error(r->t, "start()", code, &err);
		return verdict ? verdict
		       : code == LOOM_EUNAVAIL || code == LOOM_ENOTSUP
			   ? loom__skip(r->t, "not available here: %s", err.text)
			   : loom__fault(r->t, "start() fails: %s", err.text);
	}
	r->started = 1;
	return 0;
}

int loom__rig_open(struct loom__rig *r, struct loom__trial *t, const struct loom__rig_want *want,
		   struct loom__settings *settings)
{
	struct loom_error err = {0};
	*r = (struct loom__rig){
	    .t = t, .want = *want, .kind = t->plugin->kind, .ops = t->plugin->ops, .file = -1};
	shape(r);
	if (settings)
		r->settings = *settings;
	else if (loom__settings_create(t, &r->settings))
		return loom__skip(t, "out of memory");
	int code = r->ops->create(&t->host.table, r->settings.opts, &r->self, &err);
	if (code) {
		r->self = NULL;
		int verdict = loom__judge_error(t, "create()", code, &err);
		if (!verdict)
			snprintf(r->why, sizeof(r->why), "%.250s", err.text);
		if (!verdict && !settings)
			verdict = code == LOOM_EUNAVAIL || code == LOOM_ENOTSUP
				      ? loom__skip(t, "not available here: %s", err.text)
				      : loom__fault(t, "create() refuses the default options: %s",
						    err.text);
		loom__rig_close(r);
		return verdict ? verdict : LOOM__REFUSED;
	}
	int verdict = ask(r);
	if (!verdict)
		verdict = furnish(r);
	if (!verdict)
		verdict = begin(r);
	if (!verdict)
		verdict = attach(r);
	if (verdict)
		loom__rig_close(r);
	return verdict;
}

void loom__rig_close(struct loom__rig *r)
{
	detach(r);
	if (r->started && LOOM_HAS(r->ops, stop))
		r->ops->stop(r->self);
	if (r->self)
		r->ops->destroy(r->self);
	for (uint32_t d = 0; d < r->layout.devices; d++)
		if (r->view[d])
			munmap(r->view[d], r->bytes);
	if (r->host)
		munmap(r->host, r->bytes);
	if (r->file >= 0)
		close(r->file);
	for (int k = 0; k < LOOM_KINDS; k++)
		free(r->part[k].registry);
	free(r->part[r->kind].local);
	free(r->ctl);
	free(r->counters);
	free(r->initial);
	free(r->ctx);
	free(r->together);
	loom__settings_free(&r->settings);
	char why[sizeof(r->why)];
	int too_large = r->too_large;
	memcpy(why, r->why, sizeof(why));
	*r = (struct loom__rig){.file = -1, .too_large = too_large};
	memcpy(r->why, why, sizeof(why));
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
			       .flags = LOOM_CTX_CROWDED, /* other tests may run beside this one */
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
	for (int k = 0; k < LOOM_KINDS; k++) {
		const struct loom__rig_part *p = &r->part[k];
		c->global[k] = p->global ? r->view[d] + p->global : NULL;
		c->on_device[k] = p->on_device[d] ? r->view[d] + p->on_device[d] : NULL;
		c->own[k] = p->own[w] ? r->view[d] + p->own[w] : NULL;
		c->local[k] = p->local_room ? p->local + w * p->local_room : NULL;
		c->registry[k] = p->need.worker ? p->registry : NULL;
	}
}

int loom__rig_start(struct loom__rig *r)
{
	struct loom_error err = {0};
	struct loom__rig_part *p = &r->part[r->kind];
	int code = r->ops->init(r->self, &r->layout, &p->view, &err);
	if (code) {
		int verdict = loom__judge_error(r->t, "init()", code, &err);
		return verdict ? verdict : loom__fault(r->t, "init() fails: %s", err.text);
	}
	memset(r->ctl, 0, sizeof(*r->ctl));
	memset(r->counters, 0, r->layout.workers * sizeof(*r->counters));
	memset(p->local, 0, p->local_room * r->layout.workers);
	guard_local(r, 0);
	memset(r->together, 0, r->layout.workers * sizeof(*r->together));
	r->ctl->initial_tasks = r->want.initial_tasks;
	r->ctl->sample = r->samples++;
	for (uint32_t w = 0; w < r->layout.workers; w++)
		for (uint32_t lane = 0; lane < r->want.lanes; lane++)
			fill(r, w, lane);
	return 0;
}

int loom__rig_init(struct loom__rig *r)
{
	int verdict = loom__rig_start(r);
	if (verdict)
		return verdict;
	const struct loom_sync_ops *ops = r->t->plugin->ops;
	for (uint32_t d = 0; r->kind == LOOM_SYNC && LOOM_HAS(ops, ready) && d < r->layout.devices;
	     d++)
		ops->ready(r->self, d);
	return 0;
}

int loom__rig_guards(struct loom__rig *r)
{
	each_guard(r, look_at_guard);
	guard_local(r, 1);
	return loom__faulted(r->t);
}

int loom__rig_check(struct loom__rig *r)
{
	struct loom_error err = {0};
	if (loom__rig_guards(r))
		return LOOM__FAILED;
	if (__atomic_load_n(&r->ctl->failed_ready, __ATOMIC_ACQUIRE))
		return -(int)r->ctl->failed;
	if (!LOOM_HAS(r->ops, collect))
		return 0;
	loom__watchhost_clear_report(&r->t->host);
	int code =
	    r->ops->collect(r->self, &r->layout, &r->part[r->kind].view, &r->t->host.report, &err);
	if (!code)
		return 0;
	int verdict = loom__judge_error(r->t, "collect()", code, &err);
	return verdict ? verdict
		       : loom__fault(r->t, "collect() says after a sample that was right: %s",
				     err.text);
}

void *loom__rig_block(const struct loom__rig *r, enum loom_kind kind)
{
	return r->part[kind].view.global;
}

const char *loom__rig_text(const struct loom__rig *r, char *text, size_t room)
{
	snprintf(text, room, "%u device%s, %u worker%s, %u lane%s%s%s", r->want.devices,
		 r->want.devices == 1 ? "" : "s", r->want.workers, r->want.workers == 1 ? "" : "s",
		 r->want.lanes, r->want.lanes == 1 ? "" : "s", r->settings.text.length ? ", " : "",
		 r->settings.text.length ? r->settings.text.at : "");
	return text;
}
