/* SPDX-License-Identifier: Apache-2.0 */
/* Transports: segments are as requested, have the same contents for all devices, and are released completely. */
#include <gpuloom/dev/probe.h>
#include <gpuloom/transport.h>
#include <pthread.h>
#include <string.h>

#include "conform/footprint.h"
#include "conform/instance.h"
#include "conform/refdevice.h"
#include "conform/stand.h"
#include "conform/tests.h"
#include "lib/align.h"

enum { MOST = 24 };

struct batch {
	struct loom_segment_want want[MOST];
	struct loom_segment out[MOST];
	uint32_t n;
};

static const struct loom_transport_ops *ops(const struct loom__trial *t)
{
	return t->plugin->ops;
}

/* Draws random requests: sizes that occur in a stack, and unusual ones. */
static void draw_wants(struct batch *b, uint32_t devices, struct loom__chance *chance)
{
	static const uint64_t sizes[] = {64, 128, 192, 4096, 4160, 65536, 1 << 20, (1 << 20) + 64};
	b->n = 2 + devices + (uint32_t)loom__draw_below(chance, MOST - 2 - LOOM__REF_DEVICES);
	for (uint32_t i = 0; i < b->n; i++) {
		int32_t owner = (int32_t)loom__draw_below(chance, devices + 1) - 1;
		b->want[i] =
		    (struct loom_segment_want){.bytes = sizes[loom__draw_below(chance, LOOM__COUNT(sizes))],
					       .owner = owner,
					       .flags = loom__one_in(chance, 3)                 ? LOOM_MEMORY_HOST
							: owner >= 0 && loom__one_in(chance, 3) ? LOOM_MEMORY_PRIVATE
												: 0};
	}
	b->want[0] = (struct loom_segment_want){.bytes = 256, .owner = -1, .flags = LOOM_MEMORY_HOST};
}

static int make(struct loom__trial *t, void *self, struct loom__refdevices *r, struct batch *b)
{
	struct loom_error err = {0};
	memset(b->out, 0, sizeof(b->out));
	int code = ops(t)->segments(self, &r->table, b->want, b->n, b->out, &err);
	if (!code)
		return loom__faulted(t);
	LOOM__TRY(loom__judge_error(t, "segments()", code, &err));
	return code == LOOM_EUNAVAIL || code == LOOM_ENOTSUP || code == LOOM_EINVAL
		   ? loom__skip(t, "it does not serve the suite's %u devices: %s", r->table.count, err.text)
		   : loom__fault(t, "segments() fails: %s", err.text);
}

static int overlap(const struct loom_segment *a, const struct loom_segment *b)
{
	return a->memory == b->memory && a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

static int check_one(struct loom__trial *t, const struct loom__refdevices *r, const struct batch *b, uint32_t i)
{
	const struct loom_segment *s = &b->out[i];
	const struct loom_segment_want *w = &b->want[i];
	const struct loom_memory *m = s->memory;
	if (!m)
		return loom__fault(t, "segment %u has no memory", i);
	if (s->bytes < w->bytes)
		return loom__fault(t, "segment %u has %llu of %llu bytes", i, (unsigned long long)s->bytes,
				   (unsigned long long)w->bytes);
	if (s->offset > m->bytes || s->bytes > m->bytes - s->offset)
		return loom__fault(t, "segment %u reaches beyond its memory: offset %llu, %llu bytes of %llu", i,
				   (unsigned long long)s->offset, (unsigned long long)s->bytes,
				   (unsigned long long)m->bytes);
	if (s->owner != w->owner)
		return loom__fault(t, "segment %u belongs to %d, where %d was wanted", i, s->owner, w->owner);
	if (w->flags & LOOM_MEMORY_HOST && !m->host)
		return loom__fault(t, "segment %u was wanted with LOOM_MEMORY_HOST, but the host cannot see it", i);
	if (s->offset & 63 || (uintptr_t)m->host & 63)
		return loom__fault(t, "segment %u is not aligned to 64 bytes", i);
	if (m->device < -1 || m->device >= (int32_t)r->table.count)
		return loom__fault(t, "the memory of segment %u has device %d, which does not exist", i, m->device);
	for (uint32_t d = 0; d < r->table.count; d++) {
		const char *view = loom__refdevice_view(r, d, m);
		if (!view && w->flags & LOOM_MEMORY_PRIVATE && !LOOM_SEGMENT_REACHES(s, d))
			continue;
		if (!view)
			return loom__fault(t, "the memory of segment %u is not mapped into device %u", i, d);
		for (uint64_t k = 0; k < s->bytes; k++)
			if (view[s->offset + k])
				return loom__fault(t, "segment %u is not zeroed (byte %llu)", i, (unsigned long long)k);
		for (uint32_t n = 0; n < r->device[d].maps; n++)
			if (r->device[d].map[n].memory == m && r->device[d].map[n].owned != (m->device == (int32_t)d))
				return loom__fault(t,
						   "the memory of segment %u is on device %u, but "
						   "its field says device %d",
						   i, d, m->device);
	}
	for (uint32_t k = 0; k < i; k++)
		if (overlap(s, &b->out[k]))
			return loom__fault(t, "segments %u and %u overlap", k, i);
	return 0;
}

static int make_right(struct loom__trial *t, void *self, struct loom__refdevices *r, struct batch *b)
{
	LOOM__TRY(make(t, self, r, b));
	for (uint32_t i = 0; i < b->n; i++)
		LOOM__TRY(check_one(t, r, b, i));
	return 0;
}

static int give_back(struct loom__trial *t, void *self, struct loom__refdevices *r, struct batch *b)
{
	ops(t)->release(self, &r->table, b->out, b->n);
	return loom__faulted(t);
}

static int all_given_back(struct loom__trial *t, const struct loom__refdevices *r)
{
	uint32_t maps = loom__refdevices_maps(r);
	return maps ? loom__fault(t, "release() leaves %u memories allocated or mapped on devices", maps) : 0;
}

/* ---- tests ---------------------------------------------------------------------------------- */

static int round_trip(struct loom__trial *t, uint32_t devices, uint32_t blind, uint64_t seed)
{
	struct loom__refdevices r;
	struct loom__chance chance = loom__chance(seed);
	struct batch b;
	void *self;
	LOOM__TRY(loom__instance_must(t, &self));
	loom__say_case(t, seed, "%u devices, %s", devices, blind ? "some hide their memory" : "all visible");
	loom__refdevices_init(&r, t, devices, blind);
	draw_wants(&b, devices, &chance);
	LOOM__TRY(make_right(t, self, &r, &b));
	LOOM__TRY(give_back(t, self, &r, &b));
	LOOM__TRY(all_given_back(t, &r));
	loom__instance_destroy(t, self);
	return 0;
}

int loom__test_transport_segments(struct loom__trial *t)
{
	for (uint32_t devices = 1; devices <= LOOM__REF_DEVICES; devices++)
		for (uint64_t n = 0; n < 6; n++)
			LOOM__TRY(round_trip(t, devices, 0, t->seed + n));
	return 0;
}

int loom__test_transport_placement(struct loom__trial *t)
{
	for (uint32_t blind = 1; blind < 8; blind++)
		LOOM__TRY(round_trip(t, 3, blind, t->seed + blind));
	return 0;
}

int loom__test_transport_release(struct loom__trial *t)
{
	struct loom__footprint before;
	for (int n = 0; n < 45; n++) {
		if (n == 5)
			loom__footprint_take(&before);
		LOOM__TRY(round_trip(t, 2, (uint32_t)n & 3, t->seed));
		if (t->host.live)
			return loom__fault(t, "%llu blocks of host->alloc() stay after release() and destroy()",
					   (unsigned long long)t->host.live);
	}
	return loom__judge_footprint(t, &before, 40, "after segments() and release(), 40 times");
}

/* A call for 0 segments must work. */
static int nothing(struct loom__trial *t)
{
	struct loom__refdevices r;
	struct batch b = {.n = 0};
	void *self;
	LOOM__TRY(loom__instance_must(t, &self));
	loom__refdevices_init(&r, t, 2, 0);
	LOOM__TRY(make(t, self, &r, &b));
	LOOM__TRY(give_back(t, self, &r, &b));
	loom__instance_destroy(t, self);
	return 0;
}

/* Makes the n-th call to a device, or of host->alloc(), fail. Returns 1 when there was no such call. */
static int fail_once(struct loom__trial *t, uint32_t d, uint32_t at, int *reached)
{
	struct loom__refdevices r;
	struct loom__chance chance = loom__chance(t->seed);
	struct loom_error err = {0};
	struct batch b;
	void *self;
	LOOM__TRY(loom__instance_must(t, &self));
	uint64_t live = t->host.live;
	loom__refdevices_init(&r, t, 3, 4);
	draw_wants(&b, 3, &chance);
	memset(b.out, 0, sizeof(b.out));
	if (d < 3)
		r.device[d].refuse_in = at;
	else
		loom__rig_host_refuse(&t->host, at);
	loom__say_case(
	    t, t->seed,
	    d < 3 ? "call %u of mem_alloc() or mem_map() of device %u fails" : "host->alloc() number %u fails", at, d);
	int code = ops(t)->segments(self, &r.table, b.want, b.n, b.out, &err);
	*reached = d < 3 ? r.device[d].refused != 0 : t->host.refused != 0;
	loom__rig_host_refuse(&t->host, 0);
	LOOM__TRY(loom__faulted(t));
	if (code && !*reached)
		return loom__skip(t, "segments() fails by itself: %s", err.text);
	if (code) {
		LOOM__TRY(loom__judge_error(t, "segments()", code, &err));
		if (loom__refdevices_maps(&r))
			return loom__fault(t, "segments() fails and leaves %u memories on devices",
					   loom__refdevices_maps(&r));
		if (t->host.live != live)
			return loom__fault(t, "segments() fails and leaves blocks of host->alloc() behind");
	} else if (*reached && d < 3) {
		return loom__fault(t, "segments() returns 0 although device %u refused", d);
	} else {
		LOOM__TRY(give_back(t, self, &r, &b));
	}
	loom__instance_destroy(t, self);
	return 0;
}

int loom__test_transport_failing(struct loom__trial *t)
{
	LOOM__TRY(nothing(t));
	for (uint32_t d = 0; d <= 3; d++) {
		int reached = 1;
		for (uint32_t at = 1; at < 60 && reached; at++)
			LOOM__TRY(fail_once(t, d, at, &reached));
	}
	return 0;
}

/* ---- coherence ------------------------------------------------------------------------------ */

struct prober {
	struct loom_ctx c;
	struct loom_probe *probe;
	pthread_t id;
};

static void *prober_main(void *arg)
{
	struct prober *p = arg;
	loom_probe_run(&p->c, p->probe);
	return NULL;
}

static int probe(struct loom__trial *t, const struct loom__refdevices *r, const struct loom_segment *s, uint32_t a,
		 uint32_t b)
{
	struct loom_ctl ctl = {0};
	struct prober p[2];
	const uint32_t who[] = {a, b};
	struct loom_probe *first = NULL;
	for (int i = 0; i < 2; i++) {
		char *view = loom__refdevice_view(r, who[i], s->memory);
		p[i] = (struct prober){.probe = (struct loom_probe *)(void *)(view + s->offset),
				       .c = {.worker = who[i],
					     .workers = r->table.count,
					     .device = who[i],
					     .devices = r->table.count,
					     .first = who[i],
					     .count = 1,
					     .lanes = 1,
					     .flags = LOOM_CTX_OVERSUBSCRIBED,
					     .ctl = &ctl}};
		first = first ? first : p[i].probe;
	}
	/* If the host is one of the two, it writes first. */
	struct loom_probe *begin = s->memory->host ? (void *)((char *)s->memory->host + s->offset) : first;
	*begin = (struct loom_probe){.a = a, .b = b, .sum = 7};
	if (first->a != a || first->b != b || first->sum != 7)
		return loom__fault(t, "device %u does not see the host's writes to a segment", a);
	*begin = (struct loom_probe){.a = a, .b = b};
	for (int i = 0; i < 2; i++)
		if (pthread_create(&p[i].id, NULL, prober_main, &p[i]))
			return loom__skip(t, "the machine gives no more threads");
	uint64_t until = loom__now_ns() + 3 * LOOM__SECOND;
	while (__atomic_load_n(&first->reached, __ATOMIC_ACQUIRE) != LOOM_PROBE_ROUNDS && loom__now_ns() < until)
		sched_yield();
	int late = __atomic_load_n(&first->reached, __ATOMIC_ACQUIRE) != LOOM_PROBE_ROUNDS;
	__atomic_store_n(&ctl.stop, (uint32_t)late, __ATOMIC_RELAXED);
	pthread_join(p[0].id, NULL);
	pthread_join(p[1].id, NULL);
	if (late)
		return loom__fault(t, "devices %u and %u do not see each other's atomics in one segment", a, b);
	if (first->sum != 2ull * LOOM_PROBE_ADDS || first->swaps != 2 * LOOM_PROBE_ADDS)
		return loom__fault(t, "additions or compare-and-swaps of devices %u and %u in one segment are lost", a,
				   b);
	if (s->memory->host && memcmp((char *)s->memory->host + s->offset, first, sizeof(*first)))
		return loom__fault(t, "the host sees other bytes than the devices in one segment");
	return 0;
}

int loom__test_transport_coherence(struct loom__trial *t)
{
	struct loom__refdevices r;
	struct batch b = {.n = 5};
	void *self;
	LOOM__TRY(loom__instance_must(t, &self));
	loom__refdevices_init(&r, t, 3, 2);
	for (uint32_t i = 0; i < b.n; i++)
		b.want[i] = (struct loom_segment_want){.bytes = loom__align(sizeof(struct loom_probe), 64),
						       .owner = i < 4 ? (int32_t)i - 1 : -1,
						       .flags = i == 4 ? LOOM_MEMORY_HOST : 0};
	LOOM__TRY(make_right(t, self, &r, &b));
	for (uint32_t i = 0; i < b.n; i++)
		for (uint32_t d = 0; d < 3; d++)
			LOOM__TRY(probe(t, &r, &b.out[i], d, (d + 1) % 3));
	LOOM__TRY(give_back(t, self, &r, &b));
	loom__instance_destroy(t, self);
	return 0;
}

/* ---- several batches ------------------------------------------------------------------------ */

/* Returns a device's address of segment i; for a private segment, the owner's. */
static char *seen_by(const struct loom__refdevices *r, const struct batch *b, uint32_t i, uint32_t device)
{
	const struct loom_segment *s = &b->out[i];
	char *view = loom__refdevice_view(r, device, s->memory);
	return (view ? view : loom__refdevice_view(r, (uint32_t)s->owner, s->memory)) + s->offset;
}

static void paint(const struct loom__refdevices *r, const struct batch *b, unsigned colour)
{
	for (uint32_t i = 0; i < b->n; i++)
		memset(seen_by(r, b, i, i % r->table.count), (int)(colour + i), b->out[i].bytes);
}

static int painted(struct loom__trial *t, const struct loom__refdevices *r, const struct batch *b, unsigned colour)
{
	for (uint32_t i = 0; i < b->n; i++) {
		const unsigned char *at = (const unsigned char *)seen_by(r, b, i, (i + 1) % r->table.count);
		for (uint64_t k = 0; k < b->out[i].bytes; k++)
			if (at[k] != (unsigned char)(colour + i))
				return loom__fault(
				    t,
				    "a device does not see another one's writes to a segment, or segments of two calls "
				    "share memory");
	}
	return 0;
}

static int batches(struct loom__trial *t, uint64_t seed)
{
	enum { BATCHES = 6 };
	struct loom__refdevices r;
	struct loom__chance chance = loom__chance(seed);
	struct batch b[BATCHES];
	void *self;
	LOOM__TRY(loom__instance_must(t, &self));
	uint32_t devices = 1 + (uint32_t)loom__draw_below(&chance, 3);
	loom__say_case(t, seed, "%d calls of segments(), %u devices", BATCHES, devices);
	loom__refdevices_init(&r, t, devices, (uint32_t)loom__draw(&chance) & 7);
	for (unsigned i = 0; i < BATCHES; i++) {
		draw_wants(&b[i], devices, &chance);
		LOOM__TRY(make_right(t, self, &r, &b[i]));
		paint(&r, &b[i], 1 + 30 * i);
	}
	/* The batches are released in another order than made. */
	for (unsigned i = 0; i < BATCHES; i++) {
		unsigned at = i * 5 % BATCHES;
		LOOM__TRY(painted(t, &r, &b[at], 1 + 30 * at));
		LOOM__TRY(give_back(t, self, &r, &b[at]));
	}
	LOOM__TRY(all_given_back(t, &r));
	loom__instance_destroy(t, self);
	return 0;
}

int loom__test_transport_batches(struct loom__trial *t)
{
	for (uint64_t n = 0; n < 6; n++)
		LOOM__TRY(batches(t, t->seed + n));
	return 0;
}

int loom__test_transport_fuzz(struct loom__trial *t)
{
	uint64_t until = loom__now_ns() + t->fuzz_ns;
	for (uint64_t seed = t->seed; loom__now_ns() < until; seed++)
		LOOM__TRY(batches(t, seed));
	return 0;
}
