/* SPDX-License-Identifier: Apache-2.0 */
/* Devices: memory, persistent workers, samples, and the release of everything after each kind of end. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conform/bench.h"
#include "conform/footprint.h"
#include "conform/tests.h"

static const char *const two[] = {"workers", "2", NULL};
static const char *const lanes[] = {"workers", "2", "lanes", "4", NULL};
static const char *const processes[] = {"workers", "2", "isolation", "process", NULL};
static const char *const many[] = {"workers", "13", "lanes", "3", NULL};

/* The tests run functions of this process on workers, so the device must be able to call them. */
static int runs_ours(struct loom__trial *t)
{
	return t->plugin->caps & LOOM_CAP_DEVICE_IS_CPU
		   ? 0
		   : loom__skip(t, "it does not run tables of functions (LOOM_CAP_DEVICE_IS_CPU)");
}

static struct loom__trial *trial_of(const struct loom__drive *b)
{
	return b->user;
}

int loom__bench_must(struct loom__drive *b, const char *what, int code)
{
	if (!code)
		return 0;
	LOOM__TRY(loom__judge_error(trial_of(b), what, code, &b->err));
	return loom__fault(trial_of(b), "%s fails: %s", what, b->err.text);
}

int loom__bench_open(struct loom__drive *b, struct loom__trial *t, uint32_t n, const char *const *set)
{
	*b = (struct loom__drive){.plugin = t->plugin, .user = t, .layout.seed = t->seed};
	while (b->n < n) {
		struct loom__settings s;
		if (loom__settings_create(t, &s))
			return loom__skip(t, "out of memory");
		/* Options with these usual names keep the device small enough for any machine. */
		loom__settings_name(t, &s, "oversubscribe", "yes");
		for (const char *const *w = set; w && w[0]; w += 2)
			loom__settings_name(t, &s, w[0], w[1]);
		int code = loom__drive_open(b, &t->host.table, n, s.opts);
		if (code && b->what[0] == 's')
			return loom__bench_must(b, "shape()", code);
		if (code) {
			LOOM__TRY(loom__judge_error(t, "create()", code, &b->err));
			return loom__skip(t, "%u instances, %s: %s", n, s.text.length ? s.text.at : "defaults",
					  b->err.text);
		}
		loom__text_free(&s.text);
		if (b->shape[b->n - 1].lanes > LOOM__BENCH_LANES)
			return loom__skip(t, "more than %d lanes", LOOM__BENCH_LANES);
	}
	return b->layout.workers > LOOM__BENCH_WORKERS
		   ? loom__skip(t, "%u workers are more than the suite's bench holds", b->layout.workers)
		   : 0;
}

/* Returns FAILED if the workers do not leave. */
static int retired(struct loom__drive *b)
{
	LOOM__TRY(loom__bench_must(b, "retire()", loom__drive_retire(b, 5 * LOOM__SECOND)));
	loom__drive_close(b);
	return 0;
}

/* Makes memory, registry and a program that runs `run`; NULL: no program, for the probe. */
static int furnish(struct loom__drive *b, void (*run)(struct loom_ctx *c))
{
	int code = loom__drive_memory(b);
	if (!code && !b->memory.host)
		return loom__fault(trial_of(b), "mem_alloc() with LOOM_MEMORY_HOST gives no host view");
	b->local_bytes[LOOM_SCHED] = 100;
	b->local_bytes[LOOM_TERM] = 8;
	if (!code && run)
		code = loom__drive_build(b, run);
	return loom__bench_must(b, b->what, code);
}

static int open_with(struct loom__drive *b, struct loom__trial *t, uint32_t n, const char *const *set,
		     void (*run)(struct loom_ctx *c))
{
	LOOM__TRY(runs_ours(t));
	LOOM__TRY(loom__bench_open(b, t, n, set));
	return furnish(b, run);
}

/* ---- shape and memory ----------------------------------------------------------------------- */

int loom__test_device_shape(struct loom__trial *t)
{
	struct loom__drive b;
	LOOM__TRY(loom__bench_open(&b, t, 1, NULL));
	struct loom_device_shape again = {.name = "as it was"};
	const struct loom_device_shape *s = &b.shape[0];
	if (!s->workers || !s->lanes)
		return loom__fault(t, "shape() says %u workers and %u lanes", s->workers, s->lanes);
	if (s->kind != LOOM_ON_CPU && s->kind != LOOM_ON_GPU)
		return loom__fault(t, "shape() says kind %u, which is neither LOOM_ON_CPU nor LOOM_ON_GPU", s->kind);
	if (t->plugin->caps & LOOM_CAP_DEVICE_IS_CPU && s->kind != LOOM_ON_CPU)
		return loom__fault(t, "it runs functions of this process, but its shape is no CPU's");
	if (s->flags & LOOM_SHAPE_KEEPS && !LOOM_EXTENSION_OF(b.ops, kept))
		return loom__fault(t, "shape() sets LOOM_SHAPE_KEEPS, but it lacks the extension kept");
	if (b.ops->shape(b.self[0], &again, &b.err) || again.workers != s->workers || again.lanes != s->lanes ||
	    again.kind != s->kind || again.local_bytes != s->local_bytes)
		return loom__fault(t, "shape() gives another answer in a second call");
	loom__drive_close(&b);
	return 0;
}

/* Host-visible memory must be zeroed, even after an earlier use, aligned and as large as requested. */
static int try_memory(struct loom__drive *b, uint64_t bytes)
{
	struct loom_memory m = {.size = sizeof(m), .fd = -1, .device = -1};
	struct loom__trial *t = trial_of(b);
	LOOM__TRY(
	    loom__bench_must(b, "mem_alloc()", b->ops->mem_alloc(b->self[0], bytes, LOOM_MEMORY_HOST, &m, &b->err)));
	if (!m.host)
		return loom__fault(t, "mem_alloc() with LOOM_MEMORY_HOST gives no host view");
	if ((uintptr_t)m.host & 4095)
		return loom__fault(t, "mem_alloc() gives memory that is not page-aligned");
	if (m.bytes < bytes)
		return loom__fault(t, "mem_alloc() gives %llu of %llu bytes", (unsigned long long)m.bytes,
				   (unsigned long long)bytes);
	const unsigned char *at = m.host;
	for (uint64_t i = 0; i < bytes; i++)
		if (at[i])
			return loom__fault(t, "mem_alloc() gives memory that is not zeroed (byte %llu of %llu)",
					   (unsigned long long)i, (unsigned long long)bytes);
	memset(m.host, 0xa5, bytes);
	for (uint32_t i = 1; i < b->n; i++)
		LOOM__TRY(loom__bench_must(b, "mem_map()", b->ops->mem_map(b->self[i], &m, &b->err)));
	for (uint32_t i = 1; i < b->n; i++)
		b->ops->mem_unmap(b->self[i], &m);
	b->ops->mem_free(b->self[0], &m);
	return 0;
}

int loom__test_device_memory(struct loom__trial *t)
{
	static const uint64_t sizes[] = {1, 64, 4095, 4096, 4097, 1 << 20, (1 << 20) + 1, 5 << 20};
	struct loom__footprint before;
	struct loom__drive b;
	LOOM__TRY(loom__bench_open(&b, t, 2, two));
	for (int round = 0; round < 30; round++) {
		if (round == 5)
			loom__footprint_take(&before);
		for (size_t i = 0; i < LOOM__COUNT(sizes); i++)
			if (round < 2 || i != 7)
				LOOM__TRY(try_memory(&b, sizes[i]));
	}
	LOOM__TRY(loom__judge_footprint(t, &before, 25, "mem_alloc() and mem_free(), again and again"));
	loom__drive_close(&b);
	return 0;
}

/* ---- samples -------------------------------------------------------------------------------- */

/* The message of each check that a worker makes of its context, by the number of the check. */
static const char *const ctx_checks[] = {
    "its number is not below the number of workers",
    "first and count are not those of its device",
    "its number is outside of first .. first + count - 1",
    "its lane is not below the number of lanes",
    "c->own is not its block of the registry",
    "c->own is set for a kind that has no registry",
    "c->global is set for a kind that requested none",
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
	    local && c->local[LOOM_SCHED] && !((uintptr_t)c->local[LOOM_SCHED] & 63) && !((uintptr_t)local & 63),
	    1,
	    c->random != 0,
	    c->ctl == loom_at(c, LOOM__DRIVE_REF(ctl)),
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

static int check_sample(struct loom__drive *b, uint32_t n, uint64_t go, uint64_t end)
{
	struct loom__trial *t = trial_of(b);
	uint64_t last = 0;
	for (uint32_t d = 0; d < b->n; d++)
		for (uint32_t i = 0; i < b->shape[d].workers; i++) {
			uint32_t w = b->shape[d].first_worker + i;
			const struct loom_counters *k = &b->shared->counters[w];
			const struct loom__bench_row *row = &loom__bench_board(b)->row[w];
			uint64_t expect = (uint64_t)(n + 1) * b->shape[d].lanes;
			if (row->runs != expect)
				return loom__fault(t,
						   "after sample %u, %llu lanes of worker %u have run in all, "
						   "where %llu should",
						   n, (unsigned long long)row->runs, w, (unsigned long long)expect);
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
		return loom__fault(t, "wait() gives an end outside of the sample");
	if (last && (end > last + LOOM__SECOND || last > now))
		return loom__fault(t, "wait() and the counters disagree about when the last worker ended");
	return 0;
}

/* `rested`: GO comes without READY. */
static int one_sample(struct loom__drive *b, uint32_t n, int rested)
{
	uint64_t end;
	if (!rested)
		LOOM__TRY(loom__bench_must(b, "ready()", loom__drive_ready(b, n)));
	b->shared->ctl.sample = n;
	for (uint32_t w = 0; w < b->layout.workers && n == 0; w++)
		if (loom__bench_board(b)->row[w].runs)
			return loom__fault(trial_of(b), "worker %u ran before go()", w);
	uint64_t go = loom__now_ns();
	LOOM__TRY(loom__bench_must(b, "go()", loom__drive_go(b, n)));
	for (uint32_t i = 0; i < b->n; i++) {
		uint64_t until = loom__now_ns() + 10 * LOOM__SECOND;
		int code;
		do
			code = b->ops->wait(b->self[i], LOOM__SECOND, &end, &b->err);
		while (code == LOOM_EAGAIN && loom__now_ns() < until);
		if (code == LOOM_EAGAIN)
			return loom__fault(trial_of(b), "wait() reports for 10 s that sample %u is running%s", n,
					   rested ? ", which began at go() without ready()" : "");
		LOOM__TRY(loom__bench_must(b, "wait()", code));
	}
	return check_sample(b, n, go, end);
}

static int samples(struct loom__drive *b, uint32_t count)
{
	const struct loom__bench_row *row = loom__bench_board(b)->row;
	uint64_t random = 0;
	memset(loom__bench_board(b)->row, 0, sizeof(loom__bench_board(b)->row));
	LOOM__TRY(loom__bench_must(b, "launch()", loom__drive_launch(b, LOOM_ENTRY_WORK)));
	for (uint32_t n = 0; n < count; n++) {
		LOOM__TRY(one_sample(b, n, 0));
		if (row->random == random)
			return loom__fault(trial_of(b), "loom_random() starts alike in every sample");
		random = row->random;
		if (n == 2)
			usleep(2000); /* long enough for workers to fall asleep */
	}
	return loom__bench_must(b, "retire()", loom__drive_retire(b, 5 * LOOM__SECOND));
}

int loom__test_device_samples(struct loom__trial *t)
{
	static const char *const *const sets[] = {NULL, two, processes};
	for (size_t i = 0; i < LOOM__COUNT(sets); i++) {
		struct loom__drive b;
		uint64_t end;
		LOOM__TRY(open_with(&b, t, 1, sets[i], note));
		LOOM__TRY(samples(&b, 5));
		/* The same seed and sample must give the same numbers in another launch too. */
		uint64_t random = loom__bench_board(&b)->row[0].random;
		int code = loom__drive_launch(&b, LOOM_ENTRY_WORK);
		for (uint32_t n = 0; n < 5 && !code; n++)
			code = loom__drive_sample(&b, n, &end);
		LOOM__TRY(loom__bench_must(&b, "a second launch", code));
		if (loom__bench_board(&b)->row[0].random != random)
			return loom__fault(t, "loom_random() is not reproduced by the same seed and sample");
		LOOM__TRY(retired(&b));
	}
	return 0;
}

static int check_states(struct loom__drive *b)
{
	uint32_t state[LOOM__BENCH_WORKERS];
	for (uint32_t i = 0; i < b->n && LOOM_HAS(b->ops, states); i++) {
		memset(state, 0xff, sizeof(state));
		LOOM__TRY(loom__bench_must(b, "states()", b->ops->states(b->self[i], state, b->shape[i].workers)));
		for (uint32_t w = 0; w < b->shape[i].workers; w++)
			if (state[w] >= LOOM_STATES)
				return loom__fault(
				    trial_of(b), "states() gives %u for worker %u, which is no enum loom_worker_state",
				    state[w], w);
	}
	return 0;
}

/* The setting is the text of a --set, so that a user can copy it. */
static int check_repeat(struct loom__drive *b)
{
	char text[400];
	if (!LOOM_HAS(b->ops, repeat))
		return 0;
	memset(text, 'x', sizeof(text));
	int length = b->ops->repeat(b->self[0], text, sizeof(text));
	if (!length || (length > 0 && (size_t)length < sizeof(text) && (size_t)length == strnlen(text, sizeof(text)) &&
			strchr(text, '=')))
		return 0;
	return loom__fault(trial_of(b),
			   "repeat() returns %d and '%.40s', where the length of SECTION.OPTION=VALUE is due", length,
			   text);
}

int loom__test_device_instances(struct loom__trial *t)
{
	static const char *const one[] = {"workers", "1", NULL};
	static const char *const one_process[] = {"workers", "1", "isolation", "process", NULL};
	static const char *const *const sets[] = {one, one_process};
	for (size_t i = 0; i < LOOM__COUNT(sets); i++) {
		struct loom__drive b;
		uint64_t end;
		int ours = (t->plugin->caps & LOOM_CAP_DEVICE_IS_CPU) != 0;
		LOOM__TRY(loom__bench_open(&b, t, 2, sets[i]));
		LOOM__TRY(furnish(&b, ours ? note : NULL));
		b.shared->probe = (struct loom_probe){.a = 0, .b = 1};
		int code = loom__drive_launch(&b, LOOM_ENTRY_PROBE);
		if (!code)
			code = loom__drive_ready(&b, 0);
		if (!code)
			code = loom__drive_go(&b, 0);
		if (!code) {
			LOOM__TRY(check_states(&b));
			code = loom__drive_wait(&b, 30 * LOOM__SECOND, &end);
		}
		if (!code)
			LOOM__TRY(check_repeat(&b));
		int ended = loom__drive_retire(&b, 5 * LOOM__SECOND);
		LOOM__TRY(loom__bench_must(&b, "the coherence probe on two instances", code ? code : ended));
		if (b.shared->probe.reached != LOOM_PROBE_ROUNDS || b.shared->probe.sum != 2ull * LOOM_PROBE_ADDS ||
		    b.shared->probe.swaps != 2 * LOOM_PROBE_ADDS)
			return loom__fault(t,
					   "atomics of two instances are not coherent: %u of %u rounds, %llu "
					   "of %llu additions, %u compare-and-swaps",
					   b.shared->probe.reached, LOOM_PROBE_ROUNDS,
					   (unsigned long long)b.shared->probe.sum, 2ull * LOOM_PROBE_ADDS,
					   b.shared->probe.swaps);
		if (ours)
			LOOM__TRY(samples(&b, 3));
		loom__drive_close(&b);
	}
	return 0;
}

/* ---- memory that the host cannot access ------------------------------------------------------ */

enum { HIDDEN_MARK = 0x51ab5 };

/* Registry and public blocks of the workers, in memory that may have no host address. */
struct hidden {
	loom_ref registry[LOOM__BENCH_WORKERS];
	uint64_t block[LOOM__BENCH_WORKERS][8];
};

static void note_hidden(struct loom_ctx *c)
{
	uint64_t *own = c->own[LOOM_SCHED];
	note(c);
	if (c->lane == 0 && !loom__bench_row(c)->bad)
		*own = *own == HIDDEN_MARK + c->worker ? HIDDEN_MARK - c->worker : 1;
}

/* The core writes to such memory before each GO. At launch() it was zero. */
int loom__test_device_hidden(struct loom__trial *t)
{
	struct hidden h;
	struct loom__drive b;
	struct loom_memory m = {.size = sizeof(m), .fd = -1, .device = -1};
	LOOM__TRY(open_with(&b, t, 1, two, note_hidden));
	LOOM__TRY(loom__bench_must(&b, "mem_alloc()",
				   b.ops->mem_alloc(b.self[0], sizeof(h), LOOM_MEMORY_PRIVATE, &m, &b.err)));
	m.device = 0;
	if (m.host)
		return loom__skip(t, "the host can access all memory of this device");
	if (!LOOM_HAS(b.ops, copy_in) || !LOOM_HAS(b.ops, copy_out))
		return loom__fault(
		    t, "mem_alloc() gives memory without a host address, but there is no copy_in() and copy_out()");
	b.segment[2] =
	    (struct loom_segment){.memory = &m, .bytes = sizeof(h), .owner = 0, .flags = LOOM_MEMORY_PRIVATE};
	b.registry[LOOM_SCHED] = LOOM_REF(2, offsetof(struct hidden, registry));
	memset(loom__bench_board(&b)->row, 0, sizeof(loom__bench_board(&b)->row));
	LOOM__TRY(loom__bench_must(&b, "launch()", loom__drive_launch(&b, LOOM_ENTRY_WORK)));
	for (uint32_t n = 0; n < 3; n++) {
		memset(&h, 0, sizeof(h));
		for (uint64_t w = 0; w < b.layout.workers; w++) { /* in another order in each sample */
			h.registry[w] = LOOM_REF(2, offsetof(struct hidden, block)) + 64 * ((w + n) % b.layout.workers);
			h.block[(w + n) % b.layout.workers][0] = HIDDEN_MARK + w;
		}
		LOOM__TRY(loom__bench_must(&b, "copy_in()", b.ops->copy_in(b.self[0], &m, 0, &h, sizeof(h), &b.err)));
		LOOM__TRY(one_sample(&b, n, 0));
		LOOM__TRY(loom__bench_must(&b, "copy_out()", b.ops->copy_out(b.self[0], &m, 0, &h, sizeof(h), &b.err)));
		for (uint64_t w = 0; w < b.layout.workers; w++)
			if (h.block[(w + n) % b.layout.workers][0] != HIDDEN_MARK - w)
				return loom__fault(
				    t, "in sample %u worker %llu does not use the contents that its block has at GO", n,
				    (unsigned long long)w);
	}
	LOOM__TRY(loom__bench_must(&b, "retire()", loom__drive_retire(&b, 5 * LOOM__SECOND)));
	b.ops->mem_free(b.self[0], &m);
	loom__drive_close(&b);
	return 0;
}

/* ---- lanes ---------------------------------------------------------------------------------- */

enum { MEETINGS = 300 };

/* Each lane writes to its slot, waits at the barrier of lanes, and checks its neighbour's slot. */
static void meet(struct loom_ctx *c)
{
	uint64_t *slot = ((struct loom__bench_board *)c->global[LOOM_SCHED])->slot[c->worker];
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

static int check_lanes(struct loom__drive *b, uint32_t samples_done)
{
	for (uint32_t w = 0; w < b->layout.workers; w++) {
		const struct loom__bench_row *row = &loom__bench_board(b)->row[w];
		if (row->wrong)
			return loom__fault(
			    trial_of(b),
			    "loom_barrier_lanes() does not synchronise the lanes of worker %u: %llu wrong values", w,
			    (unsigned long long)row->wrong);
		if (row->runs != (uint64_t)samples_done * b->shape[0].lanes)
			return loom__fault(trial_of(b), "%llu lanes of worker %u ran in %u samples, with %u lanes",
					   (unsigned long long)row->runs, w, samples_done, b->shape[0].lanes);
	}
	return 0;
}

static int lanes_test(struct loom__trial *t, const char *const *set)
{
	struct loom__drive b;
	uint64_t end;
	LOOM__TRY(open_with(&b, t, 1, set, meet));
	int code = loom__drive_launch(&b, LOOM_ENTRY_WORK);
	for (uint32_t n = 0; n < 3 && !code; n++)
		code = loom__drive_sample(&b, n, &end);
	LOOM__TRY(loom__bench_must(&b, "a sample with lanes", code));
	LOOM__TRY(check_lanes(&b, 3));
	return retired(&b);
}

/* LOOM_SHAPE_PERSISTENT: workers stay between samples, and GO alone starts them. */
int loom__test_device_persistent(struct loom__trial *t)
{
	static const char *const *const sets[] = {NULL, two, lanes};
	for (size_t i = 0; i < LOOM__COUNT(sets); i++) {
		struct loom__drive b;
		LOOM__TRY(open_with(&b, t, 1, sets[i], note));
		if (!(b.shape[0].flags & LOOM_SHAPE_PERSISTENT)) {
			loom__drive_close(&b);
			return loom__skip(t, "its workers do not rest (LOOM_SHAPE_PERSISTENT)");
		}
		memset(loom__bench_board(&b)->row, 0, sizeof(loom__bench_board(&b)->row));
		LOOM__TRY(loom__bench_must(&b, "launch()", loom__drive_launch(&b, LOOM_ENTRY_WORK)));
		for (uint32_t n = 0; n < 12; n++) {
			LOOM__TRY(one_sample(&b, n, n % 3 != 2));
			if (n % 4 == 1)
				usleep(2000); /* long enough for workers to fall asleep */
		}
		LOOM__TRY(retired(&b));
	}
	return 0;
}

int loom__test_device_lanes(struct loom__trial *t)
{
	return loom__row(t->plugin, "lanes") ? lanes_test(t, lanes) : loom__skip(t, "it has no option 'lanes'");
}

/* Executes some samples on n devices. */
static int run_some(struct loom__trial *t, uint32_t n, const char *const *set, uint32_t count)
{
	struct loom__drive b;
	LOOM__TRY(open_with(&b, t, n, set, note));
	LOOM__TRY(samples(&b, count));
	loom__drive_close(&b);
	return 0;
}

int loom__test_device_oversubscribed(struct loom__trial *t)
{
	LOOM__TRY(lanes_test(t, many));
	for (uint32_t n = 1; n <= 3; n++)
		LOOM__TRY(run_some(t, n, many, 4));
	return 0;
}

/* ---- ways out ------------------------------------------------------------------------------- */

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

/* All workers but one end at once: wait() must wait for that one. */
static void last_one_stays(struct loom_ctx *c)
{
	if (c->worker + 1 == c->workers)
		until_stopped(c);
	else if (c->lane == 0)
		__atomic_store_n(&loom__bench_row(c)->entered, 1, __ATOMIC_RELEASE);
}

/* Returns 1 when all workers have entered the sample within a second. */
static int all_entered(struct loom__drive *b)
{
	for (int i = 0; i < 10000; i++) {
		uint32_t n = 0;
		for (uint32_t w = 0; w < b->layout.workers; w++)
			n += __atomic_load_n(&loom__bench_board(b)->row[w].entered, __ATOMIC_ACQUIRE);
		if (n == b->layout.workers)
			return 1;
		usleep(100);
	}
	return 0;
}

static int start(struct loom__drive *b)
{
	memset(loom__bench_board(b)->row, 0, sizeof(loom__bench_board(b)->row));
	int code = loom__drive_launch(b, LOOM_ENTRY_WORK);
	if (!code)
		code = loom__drive_ready(b, 0);
	if (!code)
		code = loom__drive_go(b, 0);
	LOOM__TRY(loom__bench_must(b, "launch(), ready() and go()", code));
	return all_entered(b) ? 0 : loom__fault(trial_of(b), "not all workers enter a sample within a second");
}

static void *call_wake(void *arg)
{
	struct loom__drive *b = arg;
	usleep(50000); /* wake() mostly comes during the wait, but must also work before it */
	b->ops->wake(b->self[0]);
	return NULL;
}

/* A wake() of another thread must end a wait of five seconds. */
static int check_wake(struct loom__drive *b)
{
	pthread_t thread;
	uint64_t end, begin = loom__now_ns();
	if (!LOOM_HAS(b->ops, wake))
		return 0;
	if (pthread_create(&thread, NULL, call_wake, b))
		return loom__fault(trial_of(b), "no thread for wake()");
	int code = b->ops->wait(b->self[0], 5 * LOOM__SECOND, &end, &b->err);
	uint64_t took = loom__now_ns() - begin;
	pthread_join(thread, NULL);
	if (code == LOOM_EAGAIN && took < 4 * LOOM__SECOND)
		return 0;
	return loom__fault(trial_of(b),
			   "wait() returns %d after %.1f s although wake() was called, which ends it with "
			   "LOOM_EAGAIN",
			   code, (double)took / 1e9);
}

int loom__test_device_wait(struct loom__trial *t)
{
	static const char *const *const sets[] = {two, processes};
	for (size_t i = 0; i < LOOM__COUNT(sets); i++) {
		struct loom__drive b;
		uint64_t end, begin;
		LOOM__TRY(open_with(&b, t, 1, sets[i], last_one_stays));
		LOOM__TRY(start(&b));
		begin = loom__now_ns();
		int code = b.ops->wait(b.self[0], LOOM__SECOND / 50, &end, &b.err);
		uint64_t took = loom__now_ns() - begin;
		if (code != LOOM_EAGAIN)
			return loom__fault(t, "wait() returns %d while workers are at work, where LOOM_EAGAIN is due",
					   code);
		if (took > 2 * LOOM__SECOND)
			return loom__fault(t, "wait() of 20 ms takes %.1f s", (double)took / 1e9);
		LOOM__TRY(check_wake(&b));
		__atomic_store_n(&b.shared->ctl.stop, 1u, __ATOMIC_RELAXED);
		for (int n = 0; n < 50 && code == LOOM_EAGAIN; n++)
			code = b.ops->wait(b.self[0], LOOM__SECOND / 10, &end, &b.err);
		if (code)
			return loom__fault(t, "wait() returns %d after the workers left", code);
		LOOM__TRY(retired(&b));
	}
	return 0;
}

/* Retires a launch at this point of its life. took: the time of retire(), in ns. */
static int retire_at(struct loom__drive *b, int point, uint64_t *took)
{
	uint64_t end;
	memset(loom__bench_board(b)->row, 0, sizeof(loom__bench_board(b)->row));
	int code = loom__drive_launch(b, LOOM_ENTRY_WORK);
	if (!code && point > 0)
		code = loom__drive_ready(b, 0);
	if (!code && point > 1)
		code = loom__drive_go(b, 0);
	if (!code && point == 2) /* during the sample */
		all_entered(b);
	if (point >= 2)
		__atomic_store_n(&b->shared->ctl.stop, 1u, __ATOMIC_RELAXED);
	for (int n = 0; !code && point == 3; n++) { /* any worker that leaves may end a wait */
		code = b->ops->wait(b->self[0], LOOM__SECOND / 10, &end, &b->err);
		if (code != LOOM_EAGAIN || n == 50)
			break;
		code = 0;
	}
	LOOM__TRY(loom__bench_must(b, "a launch", code));
	uint64_t begin = loom__now_ns();
	LOOM__TRY(loom__bench_must(b, "retire()", loom__drive_retire(b, 5 * LOOM__SECOND)));
	*took = loom__now_ns() - begin;
	return 0;
}

/* On a busy machine, one retire() may take seconds because the workers get no core. Then the launch is repeated. */
static int retire_soon(struct loom__drive *b, int point)
{
	uint64_t took = UINT64_MAX;
	for (int tries = 0; tries < 4 && took > 4 * LOOM__SECOND; tries++)
		LOOM__TRY(retire_at(b, point, &took));
	return took <= 4 * LOOM__SECOND
		   ? 0
		   : loom__fault(trial_of(b), "retire() takes seconds although all workers may leave");
}

static int ways_out(struct loom__trial *t, const char *const *set, int rounds)
{
	static const char *const point[] = {"after launch()", "after ready()", "in mid-sample", "after a sample"};
	struct loom__footprint before;
	struct loom__drive b;
	LOOM__TRY(open_with(&b, t, 1, set, until_stopped));
	for (int n = 0; n < rounds; n++) {
		loom__say_case(t, t->seed, "retired %s", point[n % 4]);
		if (n == 4)
			loom__footprint_take(&before);
		LOOM__TRY(retire_soon(&b, n % 4));
	}
	LOOM__TRY(loom__judge_footprint(t, &before, (size_t)rounds - 4, "launches that were retired leave something"));
	loom__drive_close(&b);
	return 0;
}

int loom__test_device_retire(struct loom__trial *t)
{
	LOOM__TRY(ways_out(t, two, 40));
	return loom__row(t->plugin, "isolation") ? ways_out(t, processes, 24) : 0;
}

int loom__test_device_launches(struct loom__trial *t)
{
	struct loom__footprint before;
	struct loom__drive b;
	LOOM__TRY(open_with(&b, t, 2, two, note));
	for (uint32_t n = 0; n < 40; n++) {
		if (n == 5)
			loom__footprint_take(&before);
		LOOM__TRY(samples(&b, 1 + n % 3));
	}
	LOOM__TRY(loom__judge_footprint(t, &before, 35, "launches leave something behind"));
	loom__drive_close(&b);
	return 0;
}

int loom__test_device_death(struct loom__trial *t)
{
	struct loom__drive b;
	uint64_t end;
	if (!loom__row(t->plugin, "isolation"))
		return loom__skip(t, "it has no option 'isolation'");
	LOOM__TRY(open_with(&b, t, 1, processes, until_stopped));
	LOOM__TRY(start(&b));
	pid_t pid = loom__bench_board(&b)->row[0].pid;
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
		return loom__fault(t, "wait() returns LOOM_EDIED without a sentence that names what died");
	__atomic_store_n(&b.shared->ctl.stop, 1u, __ATOMIC_RELAXED);
	LOOM__TRY(loom__bench_must(&b, "retire() of a dead process", loom__drive_retire(&b, 5 * LOOM__SECOND)));
	if (waitpid(-1, NULL, WNOHANG) != -1 || errno != ECHILD)
		return loom__fault(t, "retire() leaves a child process behind");
	LOOM__TRY(samples(&b, 0));
	loom__drive_close(&b);
	return 0;
}

int loom__test_device_fuzz(struct loom__trial *t)
{
	uint64_t until = loom__now_ns() + t->fuzz_ns;
	if (runs_ours(t))
		return LOOM__SKIPPED;
	for (uint64_t seed = t->seed; loom__now_ns() < until; seed++) {
		struct loom__chance chance = loom__chance(seed);
		char workers[12], lane[12];
		snprintf(workers, sizeof(workers), "%u", 1 + (unsigned)loom__draw_below(&chance, 12));
		snprintf(lane, sizeof(lane), "%u", 1 + (unsigned)loom__draw_below(&chance, 4));
		const char *isolation = loom__one_in(&chance, 4) ? "process" : "thread";
		const char *const set[] = {"workers", workers, "lanes", lane, "isolation", isolation, NULL};
		uint32_t n = 1 + (uint32_t)loom__draw_below(&chance, 3);
		loom__say_case(t, seed, "%u devices, workers = %s, lanes = %s, isolation = %s", n, workers, lane,
			       set[5]);
		LOOM__TRY(run_some(t, n, set, (uint32_t)loom__draw_below(&chance, 5)));
	}
	return 0;
}
