/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronisation: each reader gets each published item complete, once per round, whether it waits before or after
 * publish(). Waits end at their deadline, when the run is stopped, and when a device dies.
 *
 * Device 0 produces, device 1 consumes. Producer t % producers publishes tag t. Its readers are `readers` consecutive
 * consumers, from consumer t % consumers on, in a cycle. */
#include <fcntl.h>
#include <gpuloom/sync.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "conform/stand.h"
#include "conform/tests.h"
#include "lib/random.h"

enum { MOST_BYTES = 8192, MOST_AT_ONCE = 16 };

enum mode { NONE = 0, IN_PLACE = 1, SLOW_PRODUCERS = 2, SLOW_CONSUMERS = 4, AT_ONCE = 8, NO_ITEMS = 16 };

struct state {
	uint64_t trial, rough;
	uint32_t tags, slots, readers, mode;
	uint32_t at_once, pad;
	uint64_t at_ns, late_ns[64]; /* tests of delays: the time of publish() or of a wait; delays by tag */
	uint64_t without_ns;         /* how long the thread `consumer` was without a core before publish() */
	pid_t consumer;
	uint64_t bytes;
	uint64_t ended; /* workers whose wait returned `expect` */
	int64_t expect;
};

static struct state *state_of(const struct loom_ctx *c)
{
	return c->global[LOOM_WORKLOAD];
}

#define fault(c, ...) loom__fault_stop(c, state_of(c)->trial, __VA_ARGS__)

static void slow(struct loom_ctx *c, int now)
{
	struct timespec pause = {.tv_nsec = 300000};
	if (now && c->lane == 0)
		nanosleep(&pause, NULL);
	if (state_of(c)->rough)
		loom__dawdle(c);
}

static unsigned char byte_of(uint32_t tag, uint64_t i)
{
	return (unsigned char)loom__mix64((uint64_t)tag << 20 | i);
}

/* Sizes differ from item to item, and some are odd. */
static uint64_t bytes_of(const struct state *k, uint32_t tag)
{
	return tag % 3 == 0 ? k->bytes : 1 + loom__mix64(tag) % k->bytes;
}

/* ---- producers ------------------------------------------------------------------------------ */

static int publish(struct loom_ctx *c, uint32_t tag)
{
	struct state *k = state_of(c);
	uint64_t n = bytes_of(k, tag);
	unsigned char copy[MOST_BYTES];
	void *at = copy;
	int code = 0;
	if (k->mode & IN_PLACE)
		code = c->sync->reserve(c, 0, tag, 0, &at);
	if (code)
		return code;
	if (!at) {
		fault(c, "reserve() gives no address for tag %u", tag);
		return LOOM_EINTR;
	}
	for (uint64_t i = 0; i < n; i++)
		if (at == copy || i % c->lanes == c->lane)
			((unsigned char *)at)[i] = byte_of(tag, i);
	code = c->sync->publish(c, 0, tag, k->mode & IN_PLACE ? NULL : copy, n, 0);
	memset(copy, 0xee, n); /* publish() must have copied the data by now */
	return code;
}

static void produce(struct loom_ctx *c)
{
	struct state *k = state_of(c);
	for (uint32_t tag = c->worker - c->first; tag < k->tags; tag += c->count) {
		slow(c, k->mode & SLOW_PRODUCERS);
		int code = publish(c, tag);
		if (code && !loom_stopped(c))
			fault(c, "publish() of tag %u returns %d", tag, code);
		if (code)
			return;
	}
}

/* ---- consumers ------------------------------------------------------------------------------ */

static int mine(const struct loom_ctx *c, const struct state *k, uint32_t tag)
{
	uint32_t me = c->worker - c->first;
	return (me + c->count - tag % c->count) % c->count < k->readers;
}

static int check(struct loom_ctx *c, uint32_t tag, const void *data)
{
	uint64_t n = bytes_of(state_of(c), tag);
	const unsigned char *at = data;
	loom__note_read(data, n);
	for (uint64_t i = c->lane; i < n; i += c->lanes)
		if (at[i] != byte_of(tag, i)) {
			fault(c,
			      "worker %u reads a wrong byte %llu of %llu in the item with tag %u: another one was "
			      "published",
			      c->worker, (unsigned long long)i, (unsigned long long)n, tag);
			return 1;
		}
	return 0;
}

static void consume(struct loom_ctx *c)
{
	struct state *k = state_of(c);
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

/* ---- a run ---------------------------------------------------------------------------------- */

struct traffic {
	uint32_t producers, consumers, lanes, slots, readers, tags, mode, at_once;
	uint64_t bytes, seed;
	const void *ops; /* the ops of the plug-in under test */
};

static int channels(void *arg, void *self, const struct loom_layout *layout, struct loom_error *err)
{
	const struct traffic *f = arg;
	const struct loom_sync_ops *ops = f->ops;
	const struct loom_channel one = {
	    .slots = f->slots, .readers = f->readers, .from = 0, .to = 1, .item_bytes = f->bytes};
	return ops->channels(self, layout, &one, 1, err);
}

static int open_state(struct loom__rig *r, struct loom__trial *t, const struct traffic *f, struct loom__settings *s)
{
	struct traffic arg = *f;
	struct loom__rig_want want = {.devices = 2,
				      .workers = f->producers + f->consumers,
				      .first = f->producers,
				      .lanes = f->lanes,
				      .seed = f->seed,
				      .before_need = channels,
				      .arg = &arg};
	char text[300];
	arg.ops = t->plugin->ops;
	want.bytes[LOOM_WORKLOAD] = sizeof(struct state);
	LOOM__TRY(loom__stand_open(r, t, &want, s));
	r->want.arg = NULL;
	loom__say_case(t, f->seed, "%u slots, %u readers, items of %llu bytes, %s", f->slots, f->readers,
		       (unsigned long long)f->bytes, loom__stand_text(r, text, sizeof(text)));
	return 0;
}

static struct state *prepare(struct loom__rig *r, const struct traffic *f)
{
	struct state *k = loom__rig_block(r, LOOM_WORKLOAD);
	*k = (struct state){.trial = (uint64_t)(uintptr_t)loom__trial_of(r),
			    .rough = (uint64_t)loom__trial_of(r)->rough,
			    .tags = f->tags,
			    .slots = f->slots,
			    .readers = f->readers,
			    .mode = f->mode,
			    .at_once = f->mode & AT_ONCE ? f->at_once : 1,
			    .bytes = f->bytes};
	return k;
}

static int flow(struct loom__trial *t, const struct traffic *f, struct loom__settings *s, int samples)
{
	struct loom__rig r;
	LOOM__TRY(open_state(&r, t, f, s));
	while (samples-- > 0) {
		prepare(&r, f);
		LOOM__TRY(
		    loom__stand_run(&r, body, 10 * LOOM__SECOND, "lost wake-up: not all items have been received"));
		LOOM__TRY(loom__stand_check(&r));
	}
	loom__stand_close(&r);
	return 0;
}

#define FLOW(samples, ...) flow(t, &(struct traffic){__VA_ARGS__}, NULL, samples)

/* ---- tests ---------------------------------------------------------------------------------- */

static int sizes(struct loom__trial *t, uint32_t mode)
{
	static const uint64_t bytes[] = {1, 8, 64, 100, 4096, 5000};
	for (size_t i = 0; i < LOOM__COUNT(bytes); i++)
		LOOM__TRY(FLOW(2, .producers = 1, .consumers = 1, .lanes = 1, .slots = 1 + (uint32_t)i * 3,
			       .readers = 1, .tags = 60, .mode = mode, .bytes = bytes[i], .seed = t->seed));
	return 0;
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
	for (uint32_t i = 0; i < 8; i++) {
		struct traffic f = {.producers = 1 + i % 3,
				    .consumers = 1 + i / 2,
				    .lanes = 1,
				    .slots = 4 + i,
				    .tags = 100,
				    .mode = i % 2 ? AT_ONCE : NONE,
				    .at_once = 1 + i / 2,
				    .bytes = 48 + i,
				    .seed = t->seed};
		f.readers = i % 2 ? f.consumers : 1 + f.consumers / 2;
		LOOM__TRY(flow(t, &f, NULL, 2));
	}
	return 0;
}

int loom__test_sync_lanes(struct loom__trial *t)
{
	static const uint32_t mode[] = {NONE, IN_PLACE, AT_ONCE};
	for (uint32_t i = 0; i < 3; i++)
		LOOM__TRY(FLOW(1, .producers = 1, .consumers = 2, .lanes = 3, .slots = 2, .readers = 2, .tags = 40,
			       .mode = mode[i], .at_once = 2, .bytes = 333, .seed = t->seed));
	return 0;
}

/* One item from one producer to one consumer. */
static const struct traffic few = {
    .producers = 1, .consumers = 1, .lanes = 1, .slots = 1, .readers = 1, .tags = 1, .bytes = 64};

/* The consumer's deadline passes. Then the item is published, and the repeated wait must return it. */
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
	state_of(c)->at_ns = took;
	if (took < limit * 9 / 10 || (code && code != LOOM_ETIMEDOUT) || (!code && took < 5 * limit)) {
		fault(c, "wait() with a deadline of 20 ms returns %d after %.0f ms, where nothing was published", code,
		      (double)took / 1e6);
		return;
	}
	if (!code) { /* the thread ran so late that the item was there */
		c->sync->release(c, 0, 0);
		return;
	}
	code = c->sync->wait(c, 0, 0, 5 * LOOM__SECOND, &data);
	if (code)
		fault(c, "wait() that is repeated after its deadline returns %d", code);
	else if (!check(c, 0, data))
		c->sync->release(c, 0, 0);
}

/* The shortest of several waits counts, because a busy machine delays some of them, but not all. */
int loom__test_sync_deadline(struct loom__trial *t)
{
	enum { DEADLINES = 5 };
	struct loom__rig r;
	uint64_t least = ~0ull;
	LOOM__TRY(open_state(&r, t, &few, NULL));
	for (int n = 0; n < DEADLINES; n++) {
		struct state *k = prepare(&r, &few);
		LOOM__TRY(loom__stand_run(&r, deadline_body, 6 * LOOM__SECOND, "wait() does not end at its deadline"));
		least = k->at_ns < least ? k->at_ns : least;
	}
	if (least > LOOM__SECOND / 10)
		return loom__fault(t, "wait() with a deadline of 20 ms ends after %.0f ms or more",
				   (double)least / 1e6);
	loom__stand_close(&r);
	return 0;
}

/* The only slot is never released. So the producer's second item finds no place, however often it tries. */
static void full_body(struct loom_ctx *c)
{
	const uint64_t limit = LOOM__SECOND / 100;
	void *at;
	if (c->device)
		return;
	uint64_t word = 1;
	int code[] = {c->sync->publish(c, 0, 0, &word, 8, limit), c->sync->publish(c, 0, 1, &word, 8, limit),
		      c->sync->reserve(c, 0, 1, limit, &at), c->sync->publish(c, 0, 1, &word, 8, limit)};
	for (size_t i = 0; i < LOOM__COUNT(code) && !loom_stopped(c); i++)
		if (code[i] != (i ? LOOM_ETIMEDOUT : 0))
			fault(c, "%s() with a deadline of 10 ms returns %d (%s), where the slot %s",
			      i == 2 ? "reserve" : "publish", code[i], loom_strerror(code[i]),
			      i ? "is never released" : "is free");
}

int loom__test_sync_full(struct loom__trial *t)
{
	struct loom__rig r;
	LOOM__TRY(open_state(&r, t, &few, NULL));
	prepare(&r, &few);
	LOOM__TRY(
	    loom__stand_run(&r, full_body, 2 * LOOM__SECOND,
			    "publish() and reserve() of a slot that is never released do not end at their deadline"));
	loom__stand_close(&r);
	return 0;
}

/* ---- delays ------------------------------------------------------------------------------------
 * A consumer must get an item soon after publish(), however long it has waited. Time in which its thread was runnable
 * without a core does not count, because other programs used the core. The third-best of several tries counts: a busy
 * machine delays some tries, but a consumer that naps delays nearly all. */

enum { TRIES = 36, SOON_MS = 5 };

static const unsigned wait_ms[] = {2, 23, 47};

/* Returns how long a thread was runnable without a core, or 0 where the kernel does not count it. */
static uint64_t without_core_ns(pid_t thread)
{
	char path[64], text[64] = "";
	unsigned long long ran = 0, without = 0;
	snprintf(path, sizeof path, "/proc/%d/schedstat", (int)thread);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, text, sizeof text - 1);
	close(fd);
	return n > 0 && sscanf(text, "%llu %llu", &ran, &without) == 2 ? without : 0;
}

static void soon_body(struct loom_ctx *c)
{
	struct state *k = state_of(c);
	const void *data;
	for (uint32_t tag = 0; tag < TRIES; tag++) {
		unsigned ms = wait_ms[tag % LOOM__COUNT(wait_ms)];
		if (c->device == 0) {
			uint32_t ready;
			/* Acquire: pairs with the release of the consumer that is about to wait. */
			while ((ready = __atomic_load_n(&k->pad, __ATOMIC_ACQUIRE)) != tag + 1 && !loom_stopped(c))
				loom_pause(c);
			nanosleep(&(struct timespec){.tv_nsec = ms * 1000000l}, NULL);
			/* What the consumer waited for a core before does not make the item late. */
			k->without_ns = without_core_ns(k->consumer);
			__atomic_store_n(&k->at_ns, loom__now_ns(), __ATOMIC_RELEASE);
			if (publish(c, tag))
				return;
		} else {
			k->consumer = (pid_t)syscall(SYS_gettid);
			__atomic_store_n(&k->pad, tag + 1, __ATOMIC_RELEASE);
			if (c->sync->wait(c, 0, tag, 0, &data))
				return;
			uint64_t late = loom__now_ns() - __atomic_load_n(&k->at_ns, __ATOMIC_ACQUIRE);
			uint64_t without = without_core_ns(k->consumer) - k->without_ns;
			k->late_ns[tag] = late > without ? late - without : 0;
			if (check(c, tag, data) || c->sync->release(c, 0, tag))
				return;
		}
	}
}

int loom__test_sync_soon(struct loom__trial *t)
{
	struct loom__rig r;
	LOOM__TRY(open_state(&r, t, &few, NULL));
	struct state *k = prepare(&r, &few);
	LOOM__TRY(loom__stand_run(&r, soon_body, 20 * LOOM__SECOND, "lost wake-up: not all items have been received"));
	for (uint32_t which = 0; which < LOOM__COUNT(wait_ms); which++) {
		uint32_t soon = 0;
		uint64_t least = ~0ull;
		for (uint32_t tag = which; tag < TRIES; tag += LOOM__COUNT(wait_ms)) {
			soon += k->late_ns[tag] < SOON_MS * 1000000ull;
			least = k->late_ns[tag] < least ? k->late_ns[tag] : least;
		}
		if (soon < 3)
			return loom__fault(
			    t,
			    "late wake-up: a consumer that has waited for %u ms receives an item %.1f ms "
			    "or more after it was published",
			    wait_ms[which], (double)least / 1e6);
	}
	loom__stand_close(&r);
	return 0;
}

/* Consumers wait for an item that is never published; producers wait for slots that are never released. */
static void endless_body(struct loom_ctx *c)
{
	struct state *k = state_of(c);
	const void *data;
	int code = 0;
	if (c->device == 0) {
		if (k->mode & NO_ITEMS)
			return; /* producers of the device that dies publish nothing */
		for (uint32_t tag = 0; tag < k->slots + 1 && !code; tag++)
			code = publish(c, tag);
	} else if (k->mode & NO_ITEMS) {
		code = c->sync->wait(c, 0, 0, 0, &data);
	} else {
		code = c->sync->wait(c, 0, k->slots, 0, &data);
	}
	if (code == k->expect)
		__atomic_add_fetch(&k->ended, c->lane == 0, __ATOMIC_RELAXED);
	else
		fault(c, "worker %u of device %u waits without end, and its wait returns %d in place of %lld (%s)",
		      c->worker, c->device, code, (long long)k->expect, loom_strerror((int)k->expect));
}

int loom__test_sync_stop(struct loom__trial *t)
{
	struct traffic f = few;
	struct loom__rig r;
	f.consumers = f.slots = f.readers = 2;
	LOOM__TRY(open_state(&r, t, &f, NULL));
	for (int n = 0; n < 3; n++) {
		prepare(&r, &f)->expect = LOOM_EINTR;
		LOOM__TRY(loom__stand_init(&r));
		int stopped = loom__rig_run(&r, endless_body, LOOM__SECOND / 20);
		LOOM__TRY(loom__faulted(t));
		if (!stopped)
			return loom__fault(t, "waits end although nothing was published and the run was not stopped");
	}
	loom__stand_close(&r);
	return 0;
}

static void device_dies(struct loom__rig *r)
{
	loom__rig_interrupt(r, LOOM_EDIED, 0);
}

int loom__test_sync_died(struct loom__trial *t)
{
	const struct loom_sync_ops *ops = t->plugin->ops;
	struct traffic f = few;
	struct loom__rig r;
	if (!LOOM_HAS(ops, interrupt))
		return loom__skip(t, "it has no interrupt()");
	f.consumers = f.slots = f.readers = 2;
	f.mode = NO_ITEMS;
	LOOM__TRY(open_state(&r, t, &f, NULL));
	r.want.midway = device_dies;
	r.want.midway_ns = LOOM__SECOND / 20;
	for (int n = 0; n < 3; n++) {
		prepare(&r, &f)->expect = LOOM_EDIED;
		LOOM__TRY(
		    loom__stand_run(&r, endless_body, 3 * LOOM__SECOND,
				    "waits do not end after interrupt() has reported that the producers' device died"));
	}
	loom__stand_close(&r);
	return 0;
}

int loom__test_sync_rough(struct loom__trial *t)
{
	for (uint32_t i = 0; i < 12; i++) {
		struct traffic f = {.producers = 1 + i % 4,
				    .consumers = 2 + i % 5,
				    .lanes = i % 6 == 5 ? 2 : 1,
				    .slots = 1 + i,
				    .tags = 80,
				    .mode = i % 3 == 1 ? IN_PLACE : NONE,
				    .bytes = 32 + 5 * i,
				    .seed = t->seed + i};
		f.readers = 1 + i % f.consumers;
		LOOM__TRY(flow(t, &f, NULL, 1));
	}
	return 0;
}

static int fuzz(struct loom__trial *t, uint64_t seed, struct loom__chance *chance, struct loom__settings *s)
{
	struct traffic f = {.producers = 1 + (uint32_t)loom__draw_below(chance, 3),
			    .lanes = loom__one_in(chance, 5) ? 2 : 1,
			    .slots = 1 + (uint32_t)loom__draw_below(chance, 20),
			    .tags = (uint32_t)loom__draw_below(chance, 100),
			    .mode = (uint32_t)loom__draw_below(chance, 2) * IN_PLACE,
			    .bytes = 1 + loom__draw_below(chance, MOST_BYTES),
			    .seed = seed};
	f.consumers = f.producers + (uint32_t)loom__draw_below(chance, 2);
	f.readers = 1 + (uint32_t)loom__draw_below(chance, f.consumers);
	return flow(t, &f, s, 1);
}

int loom__test_sync_fuzz(struct loom__trial *t)
{
	return loom__fuzz(t, fuzz, 0);
}
