/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: memory, persistent workers, samples, and that every way out leaves nothing. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "validate/bench.h"
#include "validate/footprint.h"
#include "validate/tests.h"

static const char *const two[] = {"workers", "2", NULL};
static const char *const lanes[] = {"workers", "2", "lanes", "4", NULL};
static const char *const apart[] = {"workers", "2", "isolation", "process", NULL};
static const char *const crowd[] = {"workers", "13", "lanes", "3", NULL};

/* What runs on workers is ours, so the device must be able to run functions of this process. */
static int runs_ours(struct loom__trial *t)
{
	return t->plugin->caps & LOOM_CAP_DEVICE_IS_CPU
		   ? 0
		   : loom__skip(t, "it does not run tables of functions (LOOM_CAP_DEVICE_IS_CPU)");
}

static int open_with(struct loom__bench *b, struct loom__trial *t, uint32_t n,
		     const char *const *wish, void (*run)(struct loom_ctx *c))
{
	int verdict = runs_ours(t);
	if (!verdict)
		verdict = loom__bench_open(b, t, n, wish, NULL);
	return verdict ? verdict : loom__bench_furnish(b, run);
}

/* ---- shape and memory ---------------------------------------------------------------------------
 */

int loom__test_device_shape(struct loom__trial *t)
{
	struct loom__bench b;
	int verdict = loom__bench_open(&b, t, 1, NULL, NULL);
	if (verdict)
		return verdict;
	struct loom_device_shape again = {.name = "as it was"};
	const struct loom_device_shape *s = &b.shape[0];
	if (!s->workers || !s->lanes)
		return loom__fault(t, "shape() says %u workers and %u lanes", s->workers, s->lanes);
	if (s->kind != LOOM_ON_CPU && s->kind != LOOM_ON_GPU)
		return loom__fault(
		    t, "shape() says kind %u, which is neither LOOM_ON_CPU nor LOOM_ON_GPU",
		    s->kind);
	if (t->plugin->caps & LOOM_CAP_DEVICE_IS_CPU && s->kind != LOOM_ON_CPU)
		return loom__fault(t,
				   "it runs functions of this process, but its shape is no CPU's");
	if (b.ops->shape(b.self[0], &again, &b.err) || again.workers != s->workers ||
	    again.lanes != s->lanes || again.kind != s->kind || again.local_bytes != s->local_bytes)
		return loom__fault(t, "shape() does not answer the same when it is asked again");
	loom__bench_close(&b);
	return 0;
}

/* Host-visible memory: zeroed even where another memory was a moment ago, aligned, as large. */
static int try_memory(struct loom__bench *b, uint64_t bytes)
{
	struct loom_memory m = {.size = sizeof(m), .fd = -1, .device = -1};
	struct loom__trial *t = b->t;
	int code = b->ops->mem_alloc(b->self[0], bytes, LOOM_MEMORY_HOST, &m, &b->err);
	if (code)
		return loom__bench_must(b, "mem_alloc()", code);
	if (!m.host)
		return loom__fault(t, "mem_alloc() with LOOM_MEMORY_HOST gives no host view");
	if ((uintptr_t)m.host & 4095)
		return loom__fault(t, "mem_alloc() gives memory that is not page-aligned");
	if (m.bytes < bytes)
		return loom__fault(t, "mem_alloc() gives %llu of %llu bytes",
				   (unsigned long long)m.bytes, (unsigned long long)bytes);
	const unsigned char *at = m.host;
	for (uint64_t i = 0; i < bytes; i++)
		if (at[i])
			return loom__fault(
			    t, "mem_alloc() gives memory that is not zeroed (byte %llu of %llu)",
			    (unsigned long long)i, (unsigned long long)bytes);
	memset(m.host, 0xa5, bytes);
	for (uint32_t i = 1; i < b->n; i++) {
		code = b->ops->mem_map(b->self[i], &m, &b->err);
		if (code)
			return loom__bench_must(b, "mem_map()", code);
	}
	for (uint32_t i = 1; i < b->n; i++)
		b->ops->mem_unmap(b->self[i], &m);
	b->ops->mem_free(b->self[0], &m);
	return 0;
}

int loom__test_device_memory(struct loom__trial *t)
{
	static const uint64_t sizes[] = {1, 64, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1, 5 << 20};
	struct loom__footprint before;
	struct loom__bench b;
	char text[200];
	int verdict = loom__bench_open(&b, t, 2, two, NULL);
	for (int round = 0; round < 30 && !verdict; round++) {
		if (round == 5)
			loom__footprint_take(&before);
		for (size_t i = 0; i < LOOM__COUNT(sizes) && !verdict; i++)
			if (round < 2 || i != 7)
				verdict = try_memory(&b, sizes[i]);
	}
	if (verdict)
		return verdict;
	const char *differs = loom__footprint_settles(&before, 25, text, sizeof(text));
	loom__bench_close(&b);
	return differs ? loom__fault(t, "mem_alloc() and mem_free(), again and again: %s", differs)
		       : 0;
}

/* ---- samples ------------------------------------------------------------------------------------
 */

/* Numbers of checks, for the sentence. */
static const char *const ctx_checks[] = {
    "its number is not below the number of workers",
    "first and count are not those of its device",
    "its number lies outside of first .. first + count - 1",
    "its lane is not below the number of lanes",
    "c->own is not its block of the registry",
    "c->own is set for a kind that has no registry",
    "c->global is set for a kind that asked for none",
    "c->local is not aligned to 64 bytes",
    "c->local is not zeroed before the sample",
    "c->random is 0",
    "c->ctl is not the control block",
    "c->counters is missing",
};

static void note(struct loom_ctx *c)
{
	struct loom__bench_row *row = loom__bench_row(c);
	uint64_t *local = c->local[LOOM_TERM];
	uint64_t bad = 0;
	int ok[] = {
	    c->worker<c->workers, c->count> 0 && c->first + c->count <= c->workers,
	    c->worker >= c->first && c->worker < c->first + c->count,
	    c->lane < c->lanes,
	    c->own[LOOM_SCHED] == loom_public(c, LOOM_SCHED, c->worker),
	    c->own[LOOM_TERM] == NULL,
	    c->global[LOOM_TERM] == NULL,
	    local && c->local[LOOM_SCHED] && !((uintptr_t)c->local[LOOM_SCHED] & 63) &&
		!((uintptr_t)local & 63),
	    1,
	    c->random != 0,
	    c->ctl == loom_at(c, LOOM_REF(1, offsetof(struct loom__bench_shared, ctl))),
	    c->counters != NULL,
	};
	for (uint64_t i = 0; i < LOOM__COUNT(ok) && !bad; i++)
		bad = ok[i] ? 0 : i + 1;
	__atomic_add_fetch(&row->runs, 1, __ATOMIC_RELAXED);
	loom_barrier_lanes(c);
	if (c->lane == 0 && local) {
		bad = bad ? bad : *local || ((char *)c->local[LOOM_SCHED])[99] ? 9 : 0;
		*local = 1;
		((char *)c->local[LOOM_SCHED])[99] = 1;
		row->random = loom_random(c);
		row->pid = getpid();
		row->address = (uint64_t)(uintptr_t)row;
	}
	if (bad)
		__atomic_store_n(&row->bad, bad, __ATOMIC_RELAXED);
}

static int check_sample(struct loom__bench *b, uint32_t n, uint64_t go, uint64_t end)
{
	struct loom__trial *t = b->t;
	uint64_t last = 0;
	for (uint32_t d = 0; d < b->n; d++)
		for (uint32_t i = 0; i < b->shape[d].workers; i++) {
			uint32_t w = b->shape[d].first_worker + i;
			const struct loom_counters *k = &b->shared->counters[w];
			const struct loom__bench_row *row = &b->shared->row[w];
			uint64_t expect = (uint64_t)(n + 1) * b->shape[d].lanes;
			if (row->runs != expect)
				return loom__fault(
				    t,
				    "after sample %u, %llu lanes of worker %u have run in all, "
				    "where %llu should",
				    n, (unsigned long long)row->runs, w,
				    (unsigned long long)expect);
			if (row->bad)
				return loom__fault(t, "the context of worker %u is wrong: %s", w,
						   ctx_checks[row->bad - 1]);
			if (k->begin_ns && k->begin_ns < go)
				return loom__fault(t, "worker %u began before go()", w);
			if (k->end_ns < k->begin_ns)
				return loom__fault(t, "worker %u ended before it began", w);
			last = k->end_ns > last ? k->end_ns : last;
		}
	uint64_t now = loom__now_ns();
	if (end < go || end > now)
		return loom__fault(t, "wait() gives an end that lies outside of the sample");
	if (last && (end > last + LOOM__SECOND || last > now))
		return loom__fault(
		    t, "wait() and the counters disagree about when the last worker ended");
	return 0;
}

static int samples(struct loom__bench *b, uint32_t count)
{
	int verdict = 0;
	uint64_t end, random = 0;
	memset(b->shared->row, 0, sizeof(b->shared->row));
	int code = loom__bench_launch(b, LOOM_ENTRY_WORK);
	if (code)
		return loom__bench_must(b, "launch()", code);
	for (uint32_t n = 0; n < count && !verdict; n++) {
		code = loom__bench_ready(b, n);
		if (code)
			return loom__bench_must(b, "ready()", code);
		for (uint32_t w = 0; w < b->layout.workers; w++)
			if (b->shared->row[w].runs && n == 0)
				return loom__fault(b->t, "worker %u ran before go()", w);
		uint64_t go = loom__now_ns();
		code = loom__bench_go(b, n);
		for (uint32_t i = 0; !code && i < b->n; i++) {
			uint64_t until = loom__now_ns() + 10 * LOOM__SECOND;
			do
				code = b->ops->wait(b->self[i], LOOM__SECOND, &end, &b->err);
			while (code == LOOM_EAGAIN && loom__now_ns() < until);
			if (code)
				return loom__bench_must(
				    b, "wait()", code == LOOM_EAGAIN ? LOOM_ETIMEDOUT : code);
			verdict = i + 1 == b->n ? check_sample(b, n, go, end) : 0;
		}
		if (code)
			return loom__bench_must(b, "go()", code);
		if (!verdict && b->shared->row[0].random == random)
			verdict = loom__fault(b->t, "loom_random() starts alike in every sample");
		random = b->shared->row[0].random;
		if (n == 2)
			usleep(2000); /* long enough for workers to fall asleep */
	}
	code = loom__bench_retire(b, 5 * LOOM__SECOND);
	return verdict ? verdict : loom__bench_must(b, "retire()", code);
}

int loom__test_device_samples(struct loom__trial *t)
{
	static const char *const *const wishes[] = {NULL, two, apart};
	for (size_t i = 0; i < LOOM__COUNT(wishes); i++) {
		struct loom__bench b;
		uint64_t end;
		int verdict = open_with(&b, t, 1, wishes[i], note);
		if (!verdict)
			verdict = samples(&b, 5);
		if (verdict)
			return verdict;
		/* The same seed and sample give the same numbers, in another launch too. */
		uint64_t random = b.shared->row[0].random;
		int code = loom__bench_launch(&b, LOOM_ENTRY_WORK);
		for (uint32_t n = 0; n < 5 && !code; n++)
			code = loom__bench_sample(&b, n, &end);
		if (code)
			return loom__bench_must(&b, "a second launch", code);
		if (b.shared->row[0].random != random)
			return loom__fault(
			    t, "loom_random() is not reproduced by the same seed and sample");
		code = loom__bench_retire(&b, 5 * LOOM__SECOND);
		if (code)
			return loom__bench_must(&b, "retire()", code);
		loom__bench_close(&b);
	}
	return 0;
}

int loom__test_device_instances(struct loom__trial *t)
{
	static const char *const one[] = {"workers", "1", NULL};
	static const char *const one_apart[] = {"workers", "1", "isolation", "process", NULL};
	static const char *const *const wishes[] = {one, one_apart};
	for (size_t i = 0; i < LOOM__COUNT(wishes); i++) {
		struct loom__bench b;
		uint64_t end;
		int verdict = loom__bench_open(&b, t, 2, wishes[i], NULL);
		if (!verdict)
			verdict = loom__bench_furnish(
			    &b, t->plugin->caps & LOOM_CAP_DEVICE_IS_CPU ? note : NULL);
		if (verdict)
			return verdict;
		b.shared->probe = (struct loom_probe){.a = 0, .b = 1};
		int code = loom__bench_launch(&b, LOOM_ENTRY_PROBE);
		if (!code)
			code = loom__bench_sample(&b, 0, &end);
		int ended = loom__bench_retire(&b, 5 * LOOM__SECOND);
		if (code || ended)
			return loom__bench_must(&b, "the coherence probe on two instances",
						code ? code : ended);
		if (b.shared->probe.reached != LOOM_PROBE_ROUNDS ||
		    b.shared->probe.sum != 2ull * LOOM_PROBE_ADDS)
			return loom__fault(
			    t,
			    "atomics of two instances are not coherent: %u of %u rounds, %llu "
			    "of %llu additions",
			    b.shared->probe.reached, LOOM_PROBE_ROUNDS,
			    (unsigned long long)b.shared->probe.sum, 2ull * LOOM_PROBE_ADDS);
		if (t->plugin->caps & LOOM_CAP_DEVICE_IS_CPU)
			verdict = samples(&b, 3);
		if (verdict)
			return verdict;
		loom__bench_close(&b);
	}
	return 0;
}

/* ---- lanes --------------------------------------------------------------------------------------
 */

enum { MEETINGS = 300 };

/* Lanes write to slots of their own, meet, and each looks at its neighbour's. */
static void meet(struct loom_ctx *c)
{
	uint64_t *slot = (uint64_t *)(void *)((char *)c->global[LOOM_SCHED] +
					      offsetof(struct loom__bench_shared, slot) -
					      offsetof(struct loom__bench_shared, row)) +
			 (size_t)c->worker * LOOM__BENCH_LANES;
	struct loom__bench_row *row = loom__bench_row(c);
	uint64_t wrong = 0;
	for (uint64_t i = 0; i < MEETINGS; i++) {
		__atomic_store_n(&slot[c->lane], i * 100 + c->lane, __ATOMIC_RELAXED);
		loom_barrier_lanes(c);
		uint32_t next = (c->lane + 1) % c->lanes;
		wrong += __atomic_load_n(&slot[next], __ATOMIC_RELAXED) != i * 100 + next;
		wrong += loom_from_lane0(c, c->lane == 0 ? i : ~0ull) != i;
		wrong += loom_from_lane0(c, c->lane == 0 ? i + 7 : ~0ull) != i + 7;
	}
	__atomic_add_fetch(&row->wrong, wrong, __ATOMIC_RELAXED);
	__atomic_add_fetch(&row->runs, 1, __ATOMIC_RELAXED);
}

static int check_lanes(struct loom__bench *b, uint32_t samples_done)
{
	for (uint32_t w = 0; w < b->layout.workers; w++) {
		const struct loom__bench_row *row = &b->shared->row[w];
		if (row->wrong)
			return loom__fault(
			    b->t, "lanes of worker %u do not meet: %llu times one was ahead", w,
			    (unsigned long long)row->wrong);
		if (row->runs != (uint64_t)samples_done * b->shape[0].lanes)
			return loom__fault(
			    b->t, "%llu lanes of worker %u ran in %u samples, with %u lanes",
			    (unsigned long long)row->runs, w, samples_done, b->shape[0].lanes);
	}
	return 0;
}

static int lanes_test(struct loom__trial *t, const char *const *wish)
{
	struct loom__bench b;
	uint64_t end;
	int verdict = open_with(&b, t, 1, wish, meet);
	if (verdict)
		return verdict;
	int code = loom__bench_launch(&b, LOOM_ENTRY_WORK);
	for (uint32_t n = 0; n < 3 && !code; n++)
		code = loom__bench_sample(&b, n, &end);
	verdict = code ? loom__bench_must(&b, "a sample with lanes", code) : check_lanes(&b, 3);
	code = loom__bench_retire(&b, 5 * LOOM__SECOND);
	if (!verdict)
		verdict = loom__bench_must(&b, "retire()", code);
	if (!verdict)
		loom__bench_close(&b);
	return verdict;
}

int loom__test_device_lanes(struct loom__trial *t)
{
	if (!loom__row(t->plugin, "lanes"))
		return loom__skip(t, "it has no option 'lanes'");
	return lanes_test(t, lanes);
}

int loom__test_device_crowd(struct loom__trial *t)
{
	int verdict = lanes_test(t, crowd);
	for (int i = 0; i < 3 && !verdict; i++) {
		struct loom__bench b;
		verdict = open_with(&b, t, 1 + (uint32_t)i, crowd, note);
		if (!verdict)
			verdict = samples(&b, 4);
		if (!verdict)
			loom__bench_close(&b);
	}
	return verdict;
}

/* ---- ways out -----------------------------------------------------------------------------------
 */

static void until_stopped(struct loom_ctx *c)
{
	struct loom__bench_row *row = loom__bench_row(c);
	if (c->lane == 0) {
		row->pid = getpid();
		__atomic_store_n(&row->entered, 1, __ATOMIC_RELEASE);
	}
	while (!loom_stopped(c))
		loom_pause(c);
}

/* The others are done at once: who waits for the device must wait for the last. */
static void last_one_stays(struct loom_ctx *c)
{
	if (c->worker + 1 == c->workers)
		until_stopped(c);
	else if (c->lane == 0)
		__atomic_store_n(&loom__bench_row(c)->entered, 1, __ATOMIC_RELEASE);
}

/* 1: all workers have entered the sample within a second. */
static int all_entered(struct loom__bench *b)
{
	for (int i = 0; i < 10000; i++) {
		uint32_t n = 0;
		for (uint32_t w = 0; w < b->layout.workers; w++)
			n += __atomic_load_n(&b->shared->row[w].entered, __ATOMIC_ACQUIRE);
		if (n == b->layout.workers)
			return 1;
		usleep(100);
	}
	return 0;
}

static int start(struct loom__bench *b)
{
	memset(b->shared->row, 0, sizeof(b->shared->row));
	int code = loom__bench_launch(b, LOOM_ENTRY_WORK);
	if (!code)
		code = loom__bench_ready(b, 0);
	if (!code)
		code = loom__bench_go(b, 0);
	if (code)
		return loom__bench_must(b, "launch(), ready() and go()", code);
	return all_entered(b) ? 0
			      : loom__fault(b->t, "not all workers enter a sample within a second");
}

static void *nudge(void *arg)
{
	struct loom__bench *b = arg;
	usleep(50000); /* into the wait, most likely; before it does as well */
	b->ops->nudge(b->self[0]);
	return NULL;
}

/* Another thread's nudge ends a wait of five seconds. */
static int check_nudge(struct loom__bench *b)
{
	pthread_t thread;
	uint64_t end, begin = loom__now_ns();
	if (!LOOM_HAS(b->ops, nudge))
		return 0;
	if (pthread_create(&thread, NULL, nudge, b))
		return loom__fault(b->t, "no thread for nudge()");
	int code = b->ops->wait(b->self[0], 5 * LOOM__SECOND, &end, &b->err);
	uint64_t took = loom__now_ns() - begin;
	pthread_join(thread, NULL);
	if (code == LOOM_EAGAIN && took < 4 * LOOM__SECOND)
		return 0;
	return loom__fault(b->t, "wait() returns %d after %.1f s although nudge() was called, which ends it with "
				 "LOOM_EAGAIN",
			   code, (double)took / 1e9);
}

int loom__test_device_wait(struct loom__trial *t)
{
	static const char *const *const wishes[] = {two, apart};
	for (size_t i = 0; i < LOOM__COUNT(wishes); i++) {
		struct loom__bench b;
		uint64_t end, begin;
		int verdict = open_with(&b, t, 1, wishes[i], last_one_stays);
		if (!verdict)
			verdict = start(&b);
		if (verdict)
			return verdict;
		begin = loom__now_ns();
		int code = b.ops->wait(b.self[0], LOOM__SECOND / 50, &end, &b.err);
		uint64_t took = loom__now_ns() - begin;
		if (code != LOOM_EAGAIN)
			return loom__fault(
			    t,
			    "wait() returns %d while workers are at work, where LOOM_EAGAIN is due",
			    code);
		if (took > 2 * LOOM__SECOND)
			return loom__fault(t, "wait() of 20 ms takes %.1f s", (double)took / 1e9);
		verdict = check_nudge(&b);
		if (verdict)
			return verdict;
		__atomic_store_n(&b.shared->ctl.stop, 1u, __ATOMIC_RELAXED);
		for (int n = 0; n < 50 && code == LOOM_EAGAIN; n++)
			code = b.ops->wait(b.self[0], LOOM__SECOND / 10, &end, &b.err);
		if (code)
			return loom__fault(t, "wait() returns %d after the workers left", code);
		code = loom__bench_retire(&b, 5 * LOOM__SECOND);
		if (code)
			return loom__bench_must(&b, "retire()", code);
		loom__bench_close(&b);
	}
	return 0;
}

static int retire_at(struct loom__bench *b, int point)
{
	uint64_t end;
	memset(b->shared->row, 0, sizeof(b->shared->row));
	int code = loom__bench_launch(b, LOOM_ENTRY_WORK);
	if (!code && point > 0)
		code = loom__bench_ready(b, 0);
	if (!code && point > 1)
		code = loom__bench_go(b, 0);
	if (!code && point == 2) /* in mid-sample */
		all_entered(b);
	if (point >= 2)
		__atomic_store_n(&b->shared->ctl.stop, 1u, __ATOMIC_RELAXED);
	for (int n = 0; !code && point == 3; n++) { /* any worker that leaves may end a wait */
		code = b->ops->wait(b->self[0], LOOM__SECOND / 10, &end, &b->err);
		if (code != LOOM_EAGAIN || n == 50)
			break;
		code = 0;
	}
	if (code)
		return loom__bench_must(b, "a launch", code);
	uint64_t begin = loom__now_ns();
	code = loom__bench_retire(b, 5 * LOOM__SECOND);
	if (code)
		return loom__bench_must(b, "retire()", code);
	return loom__now_ns() - begin < 4 * LOOM__SECOND
		   ? 0
		   : loom__fault(b->t, "retire() takes seconds although all workers may leave");
}

static int ways_out(struct loom__trial *t, const char *const *wish, int rounds)
{
	static const char *const point[] = {"after launch()", "after ready()", "in mid-sample",
					    "after a sample"};
	struct loom__footprint before;
	struct loom__bench b;
	char text[200];
	int verdict = open_with(&b, t, 1, wish, until_stopped);
	for (int n = 0; n < rounds && !verdict; n++) {
		loom__say_case(t, t->seed, "retired %s", point[n % 4]);
		if (n == 4)
			loom__footprint_take(&before);
		verdict = retire_at(&b, n % 4);
	}
	if (verdict)
		return verdict;
	const char *differs =
	    loom__footprint_settles(&before, (size_t)rounds - 4, text, sizeof(text));
	if (differs)
		return loom__fault(t, "launches that were retired leave something: %s", differs);
	loom__bench_close(&b);
	return 0;
}

int loom__test_device_retire(struct loom__trial *t)
{
	int verdict = ways_out(t, two, 40);
	if (!verdict && loom__row(t->plugin, "isolation"))
		verdict = ways_out(t, apart, 24);
	return verdict;
}

int loom__test_device_launches(struct loom__trial *t)
{
	struct loom__footprint before;
	struct loom__bench b;
	char text[200];
	int verdict = open_with(&b, t, 2, two, note);
	for (int n = 0; n < 40 && !verdict; n++) {
		if (n == 5)
			loom__footprint_take(&before);
		verdict = samples(&b, 1 + (uint32_t)n % 3);
	}
	if (verdict)
		return verdict;
	const char *differs = loom__footprint_settles(&before, 35, text, sizeof(text));
	loom__bench_close(&b);
	return differs ? loom__fault(t, "launches leave something behind: %s", differs) : 0;
}

int loom__test_device_death(struct loom__trial *t)
{
	struct loom__bench b;
	uint64_t end;
	if (!loom__row(t->plugin, "isolation"))
		return loom__skip(t, "it has no option 'isolation'");
	int verdict = open_with(&b, t, 1, apart, until_stopped);
	if (!verdict)
		verdict = start(&b);
	if (verdict)
		return verdict;
	pid_t pid = b.shared->row[0].pid;
	if (pid == getpid())
		return loom__fault(t, "isolation = process runs workers in this process");
	kill(pid, SIGKILL);
	int code = LOOM_EAGAIN;
	for (int n = 0; n < 30 && code == LOOM_EAGAIN; n++)
		code = b.ops->wait(b.self[0], LOOM__SECOND / 10, &end, &b.err);
	if (code != LOOM_EDIED)
		return loom__fault(t,
				   "wait() returns %d after the workers' process was killed, where "
				   "LOOM_EDIED is due",
				   code);
	if (!b.err.text[0])
		return loom__fault(t,
				   "wait() says LOOM_EDIED without a sentence that says who died");
	__atomic_store_n(&b.shared->ctl.stop, 1u, __ATOMIC_RELAXED);
	code = loom__bench_retire(&b, 5 * LOOM__SECOND);
	if (code)
		return loom__bench_must(&b, "retire() of a dead process", code);
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		return loom__fault(t, "retire() leaves a child process behind");
	verdict = samples(&b, 0);
	loom__bench_close(&b);
	return verdict;
}

int loom__test_device_fuzz(struct loom__trial *t)
{
	uint64_t until = loom__now_ns() + t->fuzz_ns;
	if (runs_ours(t))
		return LOOM__SKIPPED;
	for (uint64_t seed = t->seed; loom__now_ns() < until; seed++) {
		struct loom__chance chance = loom__chance(seed);
		char workers[12], lane[12];
		snprintf(workers, sizeof(workers), "%u",
			 1 + (unsigned)loom__draw_below(&chance, 12));
		snprintf(lane, sizeof(lane), "%u", 1 + (unsigned)loom__draw_below(&chance, 4));
		const char *const wish[] = {
		    "workers", workers,     "lanes",
		    lane,      "isolation", loom__one_in(&chance, 4) ? "process" : "thread",
		    NULL};
		uint32_t n = 1 + (uint32_t)loom__draw_below(&chance, 3);
		struct loom__bench b;
		loom__say_case(t, seed, "%u devices, workers = %s, lanes = %s, isolation = %s", n,
			       workers, lane, wish[5]);
		int verdict = open_with(&b, t, n, wish, note);
		if (!verdict)
			verdict = samples(&b, (uint32_t)loom__draw_below(&chance, 5));
		if (verdict)
			return verdict;
		loom__bench_close(&b);
	}
	return 0;
}
