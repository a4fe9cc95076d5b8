/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronisation: an item that was published is seen whole by each of its readers, once per round,
 * whoever comes first; waits end at their deadline, when the run is stopped, when a device dies.
 *
 * Device 0 produces, device 1 consumes. Tag t is published by producer t % producers and read by
 * `readers` consumers that follow each other round the ring. */
#include <gpuloom/sync.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "validate/rig.h"
#include "validate/tests.h"

enum { MOST_BYTES = 8192, MOST_AT_ONCE = 16 };

enum mode {
	NONE = 0,
	IN_PLACE = 1,
	SLOW_PRODUCERS = 2,
	SLOW_CONSUMERS = 4,
	AT_ONCE = 8,
	MUTE = 16
};

struct desk {
	uint64_t trial, rough;
	uint32_t tags, slots, readers, mode;
	uint32_t at_once, pad;
	uint64_t bytes;
	uint64_t ended; /* workers whose wait gave `expect`, when the run is stopped */
	int64_t expect;
};

static const struct loom_sync_dev *dev(const struct loom__trial *t)
{
	return t->plugin->dev->cpu;
}

static struct desk *desk_of(const struct loom_ctx *c)
{
	return c->global[LOOM_WORKLOAD];
}

LOOM_PRINTF(2, 3)
static void fault(const struct loom_ctx *c, const char *fmt, ...)
{
	char text[500];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	loom__fault((struct loom__trial *)(uintptr_t)desk_of(c)->trial, "%s", text);
	__atomic_store_n(&c->ctl->stop, 1u, __ATOMIC_RELAXED);
}

static void slow(struct loom_ctx *c, int now)
{
	struct timespec pause = {.tv_nsec = 300000};
	if (now && c->lane == 0)
		nanosleep(&pause, NULL);
	if (desk_of(c)->rough)
		loom__dawdle(c);
}

static unsigned char byte_of(uint32_t tag, uint64_t i)
{
	return (unsigned char)loom__mix((uint64_t)tag << 20 | i);
}

/* Sizes differ from item to item, odd ones too. */
static uint64_t bytes_of(const struct desk *k, uint32_t tag)
{
	return tag % 3 == 0 ? k->bytes : 1 + loom__mix(tag) % k->bytes;
}

/* ---- producers ----------------------------------------------------------------------------------
 */

static int publish(struct loom_ctx *c, uint32_t tag)
{
	struct desk *k = desk_of(c);
	uint64_t n = bytes_of(k, tag);
	unsigned char copy[MOST_BYTES];
	void *at = copy;
	int code = 0;
	if (k->mode & IN_PLACE)
		code = c->sync->reserve(c, 0, tag, 0, &at);
	if (code)
		return code;
	if (!at) {
		fault(c, "reserve() gives no place for tag %u", tag);
		return LOOM_EINTR;
	}
	for (uint64_t i = 0; i < n; i++)
		if (at == copy || i % c->lanes == c->lane)
			((unsigned char *)at)[i] = byte_of(tag, i);
	code = c->sync->publish(c, 0, tag, k->mode & IN_PLACE ? NULL : copy, n, 0);
	memset(copy, 0xee, n); /* `from` is copied: it may change after the call */
	return code;
}

static void produce(struct loom_ctx *c)
{
	struct desk *k = desk_of(c);
	for (uint32_t tag = c->worker - c->first; tag < k->tags; tag += c->count) {
		slow(c, k->mode & SLOW_PRODUCERS);
		int code = publish(c, tag);
		if (code && !loom_stopped(c))
			fault(c, "publish() of tag %u returns %d", tag, code);
		if (code)
			return;
	}
}

/* ---- consumers ----------------------------------------------------------------------------------
 */

static int mine(const struct loom_ctx *c, const struct desk *k, uint32_t tag)
{
	uint32_t me = c->worker - c->first;
	return (me + c->count - tag % c->count) % c->count < k->readers;
}

static int check(struct loom_ctx *c, uint32_t tag, const void *data)
{
	uint64_t n = bytes_of(desk_of(c), tag);
	const unsigned char *at = data;
	for (uint64_t i = c->lane; i < n; i += c->lanes)
		if (at[i] != byte_of(tag, i)) {
			fault(c,
			      "worker %u reads a wrong byte %llu of %llu in the item with tag %u: "
			      "it is not the one "
			      "that was published",
			      c->worker, (unsigned long long)i, (unsigned long long)n, tag);
			return 1;
		}
	return 0;
}

static void consume(struct loom_ctx *c)
{
	struct desk *k = desk_of(c);
	uint32_t tag[MOST_AT_ONCE], n = 0;
	const void *data[MOST_AT_ONCE];
	for (uint32_t next = 0; next < k->tags || n;) {
		for (; next < k->tags && n < k->at_once; next++)
			if (mine(c, k, next))
				tag[n++] = next;
		if (!n)
			return;
		slow(c, k->mode & SLOW_CONSUMERS);
		int code = k->mode & AT_ONCE ? c->sync->wait_all(c, 0, tag, n, 0, data)
					     : c->sync->wait(c, 0, tag[0], 0, &data[0]);
		if (code && !loom_stopped(c))
			fault(c, "wait() for tag %u returns %d", tag[0], code);
		if (code)
			return;
		for (uint32_t i = 0; i < n; i++) {
			if (check(c, tag[i], data[i]))
				return;
			slow(c, 0);
			code = c->sync->release(c, 0, tag[i]);
			if (code)
				fault(c, "release() of tag %u returns %d", tag[i], code);
		}
		n = 0;
	}
}

static void body(struct loom_ctx *c)
{
	if (c->device == 0)
		produce(c);
	else
		consume(c);
}

/* ---- a run --------------------------------------------------------------------------------------
 */

struct traffic {
	uint32_t producers, consumers, lanes, slots, readers, tags, mode, at_once;
	uint64_t bytes, seed;
};

static int channels(void *arg, void *self, const struct loom_layout *layout, struct loom_error *err)
{
	const struct traffic *f = arg;
	const struct loom_plugin *p = (const struct loom_plugin *)(uintptr_t)f->seed;
	const struct loom_sync_ops *ops = p->ops;
	const struct loom_channel one = {
	    .slots = f->slots, .readers = f->readers, .from = 0, .to = 1, .item_bytes = f->bytes};
	return ops->channels(self, layout, &one, 1, err);
}

static int open_desk(struct loom__rig *r, struct loom__trial *t, const struct traffic *f,
		     struct loom__settings *s)
{
	struct traffic arg = *f;
	struct loom__rig_want want = {.devices = 2,
				      .workers = f->producers + f->consumers,
				      .first = f->producers,
				      .lanes = f->lanes,
				      .seed = f->seed,
				      .open = 1,
				      .before_need = channels,
				      .arg = &arg};
	char text[300];
	if (!dev(t))
		return loom__skip(t, "it has no code for the CPU");
	arg.seed = (uint64_t)(uintptr_t)t->plugin; /* the hook needs the table, and no seed */
	want.bytes[LOOM_WORKLOAD] = sizeof(struct desk);
	want.table[LOOM_SYNC] = dev(t);
	int verdict = loom__rig_open(r, t, &want, s);
	if (verdict == LOOM__REFUSED && !s)
		return loom__fault(
		    t, "it refuses a channel of %u slots, %u readers and items of %llu bytes",
		    f->slots, f->readers, (unsigned long long)f->bytes);
	if (!verdict)
		loom__say_case(t, f->seed, "%u slots, %u readers, items of %llu bytes, %s",
			       f->slots, f->readers, (unsigned long long)f->bytes,
			       loom__rig_text(r, text, sizeof(text)));
	return verdict;
}

static struct desk *lay(struct loom__rig *r, const struct traffic *f)
{
	struct desk *k = loom__rig_block(r, LOOM_WORKLOAD);
	*k = (struct desk){.trial = (uint64_t)(uintptr_t)r->t,
			   .rough = (uint64_t)r->t->rough,
			   .tags = f->tags,
			   .slots = f->slots,
			   .readers = f->readers,
			   .mode = f->mode,
			   .at_once = f->mode & AT_ONCE ? f->at_once : 1,
			   .bytes = f->bytes};
	return k;
}

static int flow(struct loom__trial *t, const struct traffic *f, struct loom__settings *s,
		int samples)
{
	struct loom__rig r;
	int verdict = open_desk(&r, t, f, s);
	if (verdict)
		return verdict;
	for (int n = 0; n < samples && !verdict; n++) {
		lay(&r, f);
		verdict = loom__rig_init(&r);
		int late = verdict ? 0 : loom__rig_run(&r, body, 10 * LOOM__SECOND);
		if (!verdict)
			verdict = loom__faulted(t);
		if (!verdict && late)
			verdict = loom__fault(
			    t, "lost wake-up: after 10 s not all items have come through");
		if (!verdict)
			verdict = loom__rig_check(&r);
	}
	loom__rig_close(&r);
	return verdict;
}

/* ---- tests --------------------------------------------------------------------------------------
 */

static int sizes(struct loom__trial *t, uint32_t mode)
{
	static const uint64_t bytes[] = {1, 8, 64, 100, 4096, 5000};
	int verdict = 0;
	for (size_t i = 0; i < LOOM__COUNT(bytes) && !verdict; i++) {
		struct traffic f = {.producers = 1,
				    .consumers = 1,
				    .lanes = 1,
				    .slots = 1 + (uint32_t)i * 3,
				    .readers = 1,
				    .tags = 60,
				    .mode = mode,
				    .bytes = bytes[i],
				    .seed = t->seed};
		verdict = flow(t, &f, NULL, 2);
	}
	return verdict;
}

int loom__test_sync_before(struct loom__trial *t)
{
	return sizes(t, SLOW_CONSUMERS);
}

int loom__test_sync_after(struct loom__trial *t)
{
	return sizes(t, SLOW_PRODUCERS);
}

int loom__test_sync_in_place(struct loom__trial *t)
{
	return sizes(t, IN_PLACE);
}

int loom__test_sync_many(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t i = 0; i < 8 && !verdict; i++) {
		struct traffic f = {.producers = 1 + i % 3,
				    .consumers = 1 + i / 2,
				    .lanes = 1,
				    .slots = 4 + i,
				    .tags = 200,
				    .mode = i % 2 ? AT_ONCE : NONE,
				    .bytes = 48 + i,
				    .seed = t->seed};
		f.readers = i % 2 ? f.consumers : 1 + f.consumers / 2;
		f.at_once = 1 + i / 2;
		verdict = flow(t, &f, NULL, 2);
	}
	return verdict;
}

int loom__test_sync_lanes(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t i = 0; i < 3 && !verdict; i++) {
		struct traffic f = {.producers = 1,
				    .consumers = 2,
				    .lanes = 3,
				    .slots = 2,
				    .readers = 2,
				    .tags = 40,
				    .mode = i == 1   ? IN_PLACE
					    : i == 2 ? AT_ONCE
						     : NONE,
				    .at_once = 2,
				    .bytes = 333,
				    .seed = t->seed};
		verdict = flow(t, &f, NULL, 1);
	}
	return verdict;
}

/* The consumer's deadline passes; then the item comes, and the repeated wait has it. */
static void deadline_body(struct loom_ctx *c)
{
	const uint64_t limit = LOOM__SECOND / 50;
	const void *data;
	struct timespec pause = {.tv_nsec = 120000000};
	if (c->device == 0) {
		nanosleep(&pause, NULL);
		if (publish(c, 0))
			fault(c, "publish() fails after a consumer's deadline");
		return;
	}
	uint64_t begin = loom__now_ns();
	int code = c->sync->wait(c, 0, 0, limit, &data);
	uint64_t took = loom__now_ns() - begin;
	if (code != LOOM_ETIMEDOUT)
		fault(c,
		      "wait() with a deadline of 20 ms returns %d after %.0f ms, where nothing was "
		      "published",
		      code, (double)took / 1e6);
	else if (took < limit * 9 / 10 || took > 50 * limit)
		fault(c, "wait() with a deadline of 20 ms ends after %.0f ms", (double)took / 1e6);
	if (code != LOOM_ETIMEDOUT)
		return;
	code = c->sync->wait(c, 0, 0, 5 * LOOM__SECOND, &data);
	if (code)
		fault(c, "wait() that is repeated after its deadline returns %d", code);
	else if (!check(c, 0, data))
		c->sync->release(c, 0, 0);
}

int loom__test_sync_deadline(struct loom__trial *t)
{
	struct traffic f = {.producers = 1,
			    .consumers = 1,
			    .lanes = 1,
			    .slots = 1,
			    .readers = 1,
			    .tags = 1,
			    .bytes = 64,
			    .seed = t->seed};
	struct loom__rig r;
	int verdict = open_desk(&r, t, &f, NULL);
	for (int n = 0; n < 3 && !verdict; n++) {
		lay(&r, &f);
		verdict = loom__rig_init(&r);
		int late = verdict ? 0 : loom__rig_run(&r, deadline_body, 6 * LOOM__SECOND);
		if (!verdict)
			verdict = loom__faulted(t);
		if (!verdict && late)
			verdict = loom__fault(t, "wait() does not end at its deadline");
	}
	if (!verdict)
		loom__rig_close(&r);
	return verdict;
}

/* Consumers wait for what never comes, producers for slots that are never freed. */
static void endless_body(struct loom_ctx *c)
{
	struct desk *k = desk_of(c);
	const void *data;
	int code = 0;
	if (c->device == 0) {
		if (k->mode & MUTE)
			return; /* the dead publish nothing */
		for (uint32_t tag = 0; tag < k->slots + 1 && !code; tag++)
			code = publish(c, tag);
	} else if (k->mode & MUTE) {
		code = c->sync->wait(c, 0, 0, 0, &data);
	} else {
		code = c->sync->wait(c, 0, k->slots, 0, &data);
	}
	if (code == k->expect)
		__atomic_add_fetch(&k->ended, c->lane == 0, __ATOMIC_RELAXED);
	else
		fault(c,
		      "worker %u of device %u waits for what never comes, and gets %d in place of "
		      "%lld (%s)",
		      c->worker, c->device, code, (long long)k->expect,
		      loom_strerror((int)k->expect));
}

int loom__test_sync_stop(struct loom__trial *t)
{
	struct traffic f = {.producers = 1,
			    .consumers = 2,
			    .lanes = 1,
			    .slots = 2,
			    .readers = 2,
			    .tags = 1,
			    .bytes = 64,
			    .seed = t->seed};
	struct loom__rig r;
	int verdict = open_desk(&r, t, &f, NULL);
	for (int n = 0; n < 3 && !verdict; n++) {
		struct desk *k = lay(&r, &f);
		k->expect = LOOM_EINTR;
		verdict = loom__rig_init(&r);
		if (!verdict && !loom__rig_run(&r, endless_body, LOOM__SECOND / 20) &&
		    !loom__faulted(t))
			verdict = loom__fault(
			    t, "waits end although nothing came and nobody stopped the run");
		if (!verdict)
			verdict = loom__faulted(t);
	}
	if (!verdict)
		loom__rig_close(&r);
	return verdict;
}

static void device_dies(struct loom__rig *r)
{
	loom__rig_interrupt(r, LOOM_EDIED, 0);
}

int loom__test_sync_died(struct loom__trial *t)
{
	const struct loom_sync_ops *ops = t->plugin->ops;
	struct traffic f = {.producers = 1,
			    .consumers = 2,
			    .lanes = 1,
			    .slots = 2,
			    .readers = 2,
			    .tags = 1,
			    .mode = MUTE,
			    .bytes = 64,
			    .seed = t->seed};
	struct loom__rig r;
	if (!LOOM_HAS(ops, interrupt))
		return loom__skip(t, "it has no interrupt()");
	int verdict = open_desk(&r, t, &f, NULL);
	for (int n = 0; n < 3 && !verdict; n++) {
		struct desk *k = lay(&r, &f);
		k->expect = LOOM_EDIED;
		r.want.midway = device_dies;
		r.want.midway_ns = LOOM__SECOND / 20;
		verdict = loom__rig_init(&r);
		int late = verdict ? 0 : loom__rig_run(&r, endless_body, 3 * LOOM__SECOND);
		if (!verdict)
			verdict = loom__faulted(t);
		if (!verdict && late)
			verdict = loom__fault(
			    t, "waits do not end when interrupt() says that the producers' device "
			       "died");
	}
	if (!verdict)
		loom__rig_close(&r);
	return verdict;
}

int loom__test_sync_rough(struct loom__trial *t)
{
	int verdict = 0;
	for (uint32_t i = 0; i < 12 && !verdict; i++) {
		struct traffic f = {.producers = 1 + i % 4,
				    .consumers = 2 + i % 5,
				    .lanes = i % 6 == 5 ? 2 : 1,
				    .slots = 1 + i,
				    .tags = 80,
				    .mode = i % 3 == 1 ? IN_PLACE : NONE,
				    .bytes = 32 + 5 * i,
				    .seed = t->seed + i};
		f.readers = 1 + i % f.consumers;
		verdict = flow(t, &f, NULL, 1);
	}
	return verdict;
}

int loom__test_sync_fuzz(struct loom__trial *t)
{
	uint64_t until = loom__now_ns() + t->fuzz_ns;
	for (uint64_t seed = t->seed; loom__now_ns() < until; seed++) {
		struct loom__chance chance = loom__chance(seed);
		struct loom__settings s;
		struct traffic f = {.producers = 1 + (uint32_t)loom__draw_below(&chance, 3),
				    .lanes = loom__one_in(&chance, 5) ? 2 : 1,
				    .slots = 1 + (uint32_t)loom__draw_below(&chance, 20),
				    .tags = (uint32_t)loom__draw_below(&chance, 100),
				    .mode = (uint32_t)loom__draw_below(&chance, 2) * IN_PLACE,
				    .bytes = 1 + loom__draw_below(&chance, MOST_BYTES),
				    .seed = seed};
		f.consumers = f.producers + (uint32_t)loom__draw_below(&chance, 2);
		f.readers = 1 + (uint32_t)loom__draw_below(&chance, f.consumers);
		if (loom__settings_create(t, &s))
			return loom__skip(t, "out of memory");
		loom__settings_random(t, &s, &chance);
		t->rough = loom__one_in(&chance, 3);
		int verdict = flow(t, &f, &s, 1);
		if (verdict && verdict != LOOM__REFUSED)
			return verdict;
	}
	return 0;
}
