/* SPDX-License-Identifier: Apache-2.0 */
/* Transports: segments as they were wanted, seen alike by all devices, given back whole. */
#include <gpuloom/dev/probe.h>
#include <gpuloom/transport.h>
#include <pthread.h>
#include <string.h>

#include "validate/footprint.h"
#include "validate/instance.h"
#include "validate/refdevice.h"
#include "validate/settings.h"
#include "validate/tests.h"

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

/* Sizes that a stack really wants, and some that nobody would. */
static void wish(struct batch *b, uint32_t devices, struct loom__chance *chance)
{
	static const uint64_t sizes[] = {64, 128, 192, 4096, 4160, 65536, 1 << 20, (1 << 20) + 64};
	b->n = 2 + devices + (uint32_t)loom__draw_below(chance, MOST - 2 - LOOM__REF_DEVICES);
	for (uint32_t i = 0; i < b->n; i++)
		b->want[i] = (struct loom_segment_want){
		    .bytes = sizes[loom__draw_below(chance, LOOM__COUNT(sizes))],
		    .owner = (int32_t)loom__draw_below(chance, devices + 1) - 1,
		    .flags = loom__one_in(chance, 3) ? LOOM_MEMORY_HOST : 0};
	b->want[0] =
	    (struct loom_segment_want){.bytes = 256, .owner = -1, .flags = LOOM_MEMORY_HOST};
}

static int make(struct loom__trial *t, void *self, struct loom__refdevices *r, struct batch *b)
{
	struct loom_error err = {0};
	memset(b->out, 0, sizeof(b->out));
	int code = ops(t)->segments(self, &r->table, b->want, b->n, b->out, &err);
	if (!code)
		return loom__faulted(t);
	int verdict = loom__judge_error(t, "segments()", code, &err);
	if (!verdict && (code == LOOM_EUNAVAIL || code == LOOM_ENOTSUP || code == LOOM_EINVAL))
		return loom__skip(t, "it does not serve the suite's %u devices: %s", r->table.count,
				  err.text);
	return verdict ? verdict : loom__fault(t, "segments() fails: %s", err.text);
}

static int overlap(const struct loom_segment *a, const struct loom_segment *b)
{
	return a->memory == b->memory && a->offset < b->offset + b->bytes &&
	       b->offset < a->offset + a->bytes;
}

static int check_one(struct loom__trial *t, const struct loom__refdevices *r, const struct batch *b,
		     uint32_t i)
{
	const struct loom_segment *s = &b->out[i];
	const struct loom_segment_want *w = &b->want[i];
	const struct loom_memory *m = s->memory;
	if (!m)
		return loom__fault(t, "segment %u has no memory", i);
	if (s->bytes < w->bytes)
		return loom__fault(t, "segment %u has %llu of %llu bytes", i,
				   (unsigned long long)s->bytes, (unsigned long long)w->bytes);
	if (s->offset > m->bytes || s->bytes > m->bytes - s->offset)
		return loom__fault(
		    t, "segment %u reaches beyond its memory: offset %llu, %llu bytes of %llu", i,
		    (unsigned long long)s->offset, (unsigned long long)s->bytes,
		    (unsigned long long)m->bytes);
	if (s->owner != w->owner)
		return loom__fault(t, "segment %u belongs to %d, where %d was wanted", i, s->owner,
				   w->owner);
	if (w->flags & LOOM_MEMORY_HOST && !m->host)
		return loom__fault(
		    t, "segment %u was wanted with LOOM_MEMORY_HOST, but the host cannot see it",
		    i);
	if (s->offset & 63 || (uintptr_t)m->host & 63)
		return loom__fault(t, "segment %u is not aligned to 64 bytes", i);
	if (m->device < -1 || m->device >= (int32_t)r->table.count)
		return loom__fault(t,
				   "the memory of segment %u says device %d, which does not exist",
				   i, m->device);
	for (uint32_t d = 0; d < r->table.count; d++) {
		const char *view = loom__refdevice_view(r, d, m);
		if (!view)
			return loom__fault(
			    t, "the memory of segment %u is not mapped into device %u", i, d);
		for (uint64_t k = 0; k < s->bytes; k++)
			if (view[s->offset + k])
				return loom__fault(t, "segment %u is not zeroed (byte %llu)", i,
						   (unsigned long long)k);
		for (uint32_t n = 0; n < r->device[d].maps; n++)
			if (r->device[d].map[n].memory == m &&
			    r->device[d].map[n].owned != (m->device == (int32_t)d))
				return loom__fault(t,
						   "the memory of segment %u lies on device %u, "
						   "but says device %d",
						   i, d, m->device);
	}
	for (uint32_t k = 0; k < i; k++)
		if (overlap(s, &b->out[k]))
			return loom__fault(t, "segments %u and %u overlap", k, i);
	return 0;
}

static int check(struct loom__trial *t, const struct loom__refdevices *r, const struct batch *b)
{
	int verdict = 0;
	for (uint32_t i = 0; i < b->n && !verdict; i++)
		verdict = check_one(t, r, b, i);
	return verdict;
}

static int give_back(struct loom__trial *t, void *self, struct loom__refdevices *r, struct batch *b)
{
	ops(t)->release(self, &r->table, b->out, b->n);
	return loom__faulted(t);
}

static int all_given_back(struct loom__trial *t, const struct loom__refdevices *r)
{
	uint32_t maps = loom__refdevices_maps(r);
	return maps ? loom__fault(t, "release() leaves %u memories allocated or mapped on devices",
				  maps)
		    : 0;
}

/* ---- tests --------------------------------------------------------------------------------------
 */

static int round_trip(struct loom__trial *t, uint32_t devices, uint32_t blind, uint64_t seed)
{
	struct loom__refdevices r;
	struct loom__chance chance = loom__chance(seed);
	struct batch b;
	void *self;
	int verdict = loom__instance_must(t, &self);
	if (verdict)
		return verdict;
	loom__say_case(t, seed, "%u devices, %s", devices,
		       blind ? "some hide their memory" : "all visible");
	loom__refdevices_init(&r, t, devices, blind);
	wish(&b, devices, &chance);
	verdict = make(t, self, &r, &b);
	if (!verdict)
		verdict = check(t, &r, &b);
	if (!verdict)
		verdict = give_back(t, self, &r, &b);
	if (!verdict)
		verdict = all_given_back(t, &r);
	if (!verdict)
		loom__instance_destroy(t, self);
	return verdict;
}

int loom__test_transport_segments(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t devices = 1; devices <= LOOM__REF_DEVICES && !verdict; devices++)
		for (uint64_t n = 0; n < 6 && !verdict; n++)
			verdict = round_trip(t, devices, 0, t->seed + n);
	return verdict;
}

int loom__test_transport_placement(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t blind = 1; blind < 8 && !verdict; blind++)
		verdict = round_trip(t, 3, blind, t->seed + blind);
	return verdict;
}

int loom__test_transport_release(struct loom__trial *t)
{
	enum { WARM_UP = 5, ROUNDS = 40 };
	struct loom__footprint before;
	char text[200];
	for (int n = 0; n < WARM_UP + ROUNDS; n++) {
		if (n == WARM_UP)
			loom__footprint_take(&before);
		int verdict = round_trip(t, 2, (uint32_t)n & 3, t->seed);
		if (verdict)
			return verdict;
		if (t->host.live)
			return loom__fault(
			    t, "%llu blocks of host->alloc() stay after release() and destroy()",
			    (unsigned long long)t->host.live);
	}
	const char *differs = loom__footprint_settles(&before, ROUNDS, text, sizeof(text));
	return differs
		   ? loom__fault(t, "after segments() and release(), %d times: %s", ROUNDS, differs)
		   : 0;
}

/* No wish, no work. */
static int nothing(struct loom__trial *t)
{
	struct loom__refdevices r;
	struct batch b = {.n = 0};
	void *self;
	int verdict = loom__instance_must(t, &self);
	if (verdict)
		return verdict;
	loom__refdevices_init(&r, t, 2, 0);
	verdict = make(t, self, &r, &b);
	if (!verdict)
		verdict = give_back(t, self, &r, &b);
	if (!verdict)
		loom__instance_destroy(t, self);
	return verdict;
}

/* The n-th call to a device, or of host->alloc(), fails. 1: it was not reached. */
static int fail_once(struct loom__trial *t, uint32_t d, uint32_t at, int *reached)
{
	struct loom__refdevices r;
	struct loom__chance chance = loom__chance(t->seed);
	struct loom_error err = {0};
	struct batch b;
	void *self;
	int verdict = loom__instance_must(t, &self);
	if (verdict)
		return verdict;
	uint64_t live = t->host.live;
	loom__refdevices_init(&r, t, 3, 4);
	wish(&b, 3, &chance);
	memset(b.out, 0, sizeof(b.out));
	if (d < 3)
		r.device[d].refuse_in = at;
	else
		loom__watchhost_refuse(&t->host, at);
	loom__say_case(t, t->seed,
		       d < 3 ? "call %u of mem_alloc() or mem_map() of device %u fails"
			     : "host->alloc() number %u fails",
		       at, d);
	int code = ops(t)->segments(self, &r.table, b.want, b.n, b.out, &err);
	*reached = d < 3 ? r.device[d].refused != 0 : t->host.refused != 0;
	loom__watchhost_refuse(&t->host, 0);
	if (loom__faulted(t))
		return LOOM__FAILED;
	if (code && !*reached)
		return loom__skip(t, "segments() fails by itself: %s", err.text);
	if (code) {
		verdict = loom__judge_error(t, "segments()", code, &err);
		if (!verdict && loom__refdevices_maps(&r))
			verdict =
			    loom__fault(t, "segments() fails and leaves %u memories on devices",
					loom__refdevices_maps(&r));
		if (!verdict && t->host.live != live)
			verdict = loom__fault(
			    t, "segments() fails and leaves blocks of host->alloc() behind");
	} else if (*reached && d < 3) {
		verdict = loom__fault(
		    t, "segments() says that all is well although device %u refused", d);
	} else {
		verdict = give_back(t, self, &r, &b);
	}
	if (!verdict)
		loom__instance_destroy(t, self);
	return verdict;
}

int loom__test_transport_failing(struct loom__trial *t)
{
	int verdict = nothing(t);
	for (uint32_t d = 0; d <= 3 && !verdict; d++) {
		int reached = 1;
		for (uint32_t at = 1; at < 60 && reached && !verdict; at++)
			verdict = fail_once(t, d, at, &reached);
	}
	return verdict;
}

/* ---- coherence ----------------------------------------------------------------------------------
 */

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

static int probe(struct loom__trial *t, const struct loom__refdevices *r,
		 const struct loom_segment *s, uint32_t a, uint32_t b)
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
					     .flags = LOOM_CTX_CROWDED,
					     .ctl = &ctl}};
		first = first ? first : p[i].probe;
	}
	/* Where the host takes part, it begins. */
	struct loom_probe *begin =
	    s->memory->host ? (void *)((char *)s->memory->host + s->offset) : first;
	*begin = (struct loom_probe){.a = a, .b = b, .sum = 7};
	if (first->a != a || first->b != b || first->sum != 7)
		return loom__fault(
		    t, "what the host writes into a segment is not what device %u sees there", a);
	*begin = (struct loom_probe){.a = a, .b = b};
	for (int i = 0; i < 2; i++)
		if (pthread_create(&p[i].id, NULL, prober_main, &p[i]))
			return loom__skip(t, "the machine gives no more threads");
	uint64_t until = loom__now_ns() + 3 * LOOM__SECOND;
	while (__atomic_load_n(&first->reached, __ATOMIC_ACQUIRE) != LOOM_PROBE_ROUNDS &&
	       loom__now_ns() < until)
		sched_yield();
	int late = __atomic_load_n(&first->reached, __ATOMIC_ACQUIRE) != LOOM_PROBE_ROUNDS;
	__atomic_store_n(&ctl.stop, (uint32_t)late, __ATOMIC_RELAXED);
	pthread_join(p[0].id, NULL);
	pthread_join(p[1].id, NULL);
	if (late)
		return loom__fault(
		    t, "devices %u and %u do not see each other's atomics in one segment", a, b);
	if (first->sum != 2ull * LOOM_PROBE_ADDS)
		return loom__fault(t, "additions of devices %u and %u in one segment are lost", a,
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
	int verdict = loom__instance_must(t, &self);
	if (verdict)
		return verdict;
	loom__refdevices_init(&r, t, 3, 2);
	for (uint32_t i = 0; i < b.n; i++)
		b.want[i] =
		    (struct loom_segment_want){.bytes = (sizeof(struct loom_probe) + 63) & ~63ull,
					       .owner = i < 4 ? (int32_t)i - 1 : -1,
					       .flags = i == 4 ? LOOM_MEMORY_HOST : 0};
	verdict = make(t, self, &r, &b);
	if (!verdict)
		verdict = check(t, &r, &b);
	for (uint32_t i = 0; i < b.n && !verdict; i++)
		for (uint32_t d = 0; d < 3 && !verdict; d++)
			verdict = probe(t, &r, &b.out[i], d, (d + 1) % 3);
	if (!verdict)
		verdict = give_back(t, self, &r, &b);
	if (!verdict)
		loom__instance_destroy(t, self);
	return verdict;
}

/* ---- several batches ----------------------------------------------------------------------------
 */

static void paint(const struct loom__refdevices *r, const struct batch *b, unsigned colour)
{
	for (uint32_t i = 0; i < b->n; i++)
		memset(loom__refdevice_view(r, i % r->table.count, b->out[i].memory) +
			   b->out[i].offset,
		       (int)(colour + i), b->out[i].bytes);
}

static int painted(struct loom__trial *t, const struct loom__refdevices *r, const struct batch *b,
		   unsigned colour)
{
	for (uint32_t i = 0; i < b->n; i++) {
		const unsigned char *at = (const unsigned char *)loom__refdevice_view(
		    r, (i + 1) % r->table.count, b->out[i].memory);
		for (uint64_t k = 0; k < b->out[i].bytes; k++)
			if (at[b->out[i].offset + k] != (unsigned char)(colour + i))
				return loom__fault(
				    t, "what one device wrote into a segment is not what another "
				       "reads there, or segments of two calls share memory");
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
	int verdict = loom__instance_must(t, &self);
	if (verdict)
		return verdict;
	uint32_t devices = 1 + (uint32_t)loom__draw_below(&chance, 3);
	loom__say_case(t, seed, "%d calls of segments(), %u devices", BATCHES, devices);
	loom__refdevices_init(&r, t, devices, (uint32_t)loom__draw(&chance) & 7);
	for (unsigned i = 0; i < BATCHES && !verdict; i++) {
		wish(&b[i], devices, &chance);
		verdict = make(t, self, &r, &b[i]);
		if (!verdict)
			verdict = check(t, &r, &b[i]);
		if (!verdict)
			paint(&r, &b[i], 1 + 30 * i);
	}
	/* Released in another order than made. */
	for (unsigned i = 0; i < BATCHES && !verdict; i++) {
		unsigned at = i * 5 % BATCHES;
		verdict = painted(t, &r, &b[at], 1 + 30 * at);
		if (!verdict)
			verdict = give_back(t, self, &r, &b[at]);
	}
	if (!verdict)
		verdict = all_given_back(t, &r);
	if (!verdict)
		loom__instance_destroy(t, self);
	return verdict;
}

int loom__test_transport_batches(struct loom__trial *t)
{
	int verdict = 0;
	for (uint64_t n = 0; n < 6 && !verdict; n++)
		verdict = batches(t, t->seed + n);
	return verdict;
}

int loom__test_transport_fuzz(struct loom__trial *t)
{
	uint64_t until = loom__now_ns() + t->fuzz_ns;
	int verdict = 0;
	for (uint64_t seed = t->seed; loom__now_ns() < until && !verdict; seed++)
		verdict = batches(t, seed);
	return verdict;
}
