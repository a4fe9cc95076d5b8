/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of every sync plug-in, in both isolations: items arrive whole, once and in order, whoever
 * comes first; deadlines, stops and deaths end every wait. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "sync_rig.h"

__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
	return "die_after_fork=0";
}

static const char *const every[] = {
	"sync_poll",
	"sync_poll probe=atomic",
	"sync_backoff how=pause",
	"sync_backoff how=yield",
	"sync_backoff how=sleep",
	"sync_warp",
	"sync_futex",
	"sync_futex spin=50",
	"sync_wic",
	"sync_wic mode=copy",
	"sync_wic eager=no",
	"sync_wic eager=no mode=copy",
	"sync_wic companions=2",
	"sync_wic activate=monitor",
	"sync_wic activate=monitor mode=copy shards=4",
};
#define EVERY (sizeof(every) / sizeof(every[0]))
static const char *const isolations[] = {"thread", "process"};
/* ThreadSanitizer sees one process: between two, it would take an order that it does not see for a race. */
#ifdef __SANITIZE_THREAD__
#define ISOLATIONS 1
#else
#define ISOLATIONS 2
#endif
#define STEP (3 - ISOLATIONS) /* over isolations[i % 2] */

static struct sync_rig rig;

/* What the workers leave behind. */
struct row {
	uint64_t wrong, done;
	int64_t code;
	uint64_t took_ns;
	int64_t pid;
};
static struct row *row_of(const struct loom_ctx *c)
{
	return (struct row *)c->global[LOOM_SCHED] + c->worker;
}
static struct row *board(void)
{
	return (struct row *)rig.r.shared->board;
}

static int open_rig(const char *sync, const char *isolation, uint32_t workers, uint32_t lanes,
		    const struct loom_channel *channel, uint32_t channels, void (*run)(struct loom_ctx *))
{
	char settings[128];
	snprintf(settings, sizeof(settings), "workers=%u lanes=%u oversubscribe=yes isolation=%s pin=no",
		 workers, lanes, isolation);
	int rc = sync_rig_open(&rig, sync, 2, settings, channel, channels, run);
	if (rc)
		printf("  %s, %s: %s\n", sync, isolation, rig.r.err.text);
	if (!rc)
		rc = sync_rig_launch(&rig);
	if (rc)
		printf("  %s, %s: %s\n", sync, isolation, rig.r.err.text);
	return rc;
}

static void close_rig(void)
{
	CU_ASSERT_EQUAL(rig_retire(&rig.r, 10 * SECOND), 0);
	sync_rig_close(&rig);
}

/* ---- items: device 0 makes them, device 1 reads them */

static uint64_t word_of(uint32_t tag, uint64_t i)
{
	return (tag + 1) * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull;
}

static uint32_t spin_some(struct loom_ctx *c, uint32_t most)
{
	uint32_t n = loom_random_below(c, most), sum = 0;
	for (uint32_t i = 0; i < n; i++)
		sum += (uint32_t)(loom_random(c) & 1);
	return sum;
}

#define WORDS 700u /* more than a page, and not a multiple of one */

static struct {
	uint32_t tags, words, in_place, late, readers;
} job;

/* Collective over lanes. */
static int produce(struct loom_ctx *c, uint32_t tag, uint64_t *room)
{
	void *at = room;
	int rc = 0;
	if (job.in_place)
		rc = LOOM_CALL(sync, reserve, c, 0, tag, 0, &at);
	if (rc)
		return rc;
	for (uint64_t i = c->lane; i < job.words; i += c->lanes)
		((uint64_t *)at)[i] = word_of(tag, i);
	return LOOM_CALL(sync, publish, c, 0, tag, job.in_place ? NULL : at, 8 * job.words, 0);
}

static int consume(struct loom_ctx *c, uint32_t tag, uint64_t *wrong)
{
	const void *data = NULL;
	int rc = LOOM_CALL(sync, wait, c, 0, tag, 0, &data);
	for (uint64_t i = c->lane; !rc && i < job.words; i += c->lanes)
		*wrong += ((const uint64_t *)data)[i] != word_of(tag, i);
	return rc ? rc : LOOM_CALL(sync, release, c, 0, tag);
}

/* Producer p makes the tags p, p + producers, ...; with several readers every consumer reads all. */
static void stream(struct loom_ctx *c)
{
	static uint64_t rooms[RIG_WORKERS][WORDS];
	uint64_t wrong = 0;
	int rc = 0;
	int all = c->device == 1 && job.readers > 1;
	uint32_t step = all ? 1 : c->count;
	for (uint32_t tag = all ? 0 : c->worker - c->first; tag < job.tags && !rc; tag += step) {
		if (c->device == job.late)
			spin_some(c, 20000);
		rc = c->device == 0 ? produce(c, tag, rooms[c->worker]) : consume(c, tag, &wrong);
	}
	__atomic_fetch_add(&row_of(c)->wrong, wrong, __ATOMIC_RELAXED);
	if (c->lane == 0) {
		row_of(c)->done = rc == 0;
		row_of(c)->code = rc;
	}
}

static void say(const char *sync, const char *isolation)
{
	if (getenv("SYNC_TEST_VERBOSE"))
		printf("  %s, %s\n", sync, isolation);
}

/* Spinning takes whole slices of the scheduler from those who are waited for. */
static int spins(const char *sync)
{
	return !strncmp(sync, "sync_poll", 9) || !strcmp(sync, "sync_backoff how=pause");
}

static void run_stream(const char *sync, uint32_t slots, uint32_t readers, uint32_t lanes, uint32_t words,
		       uint32_t in_place, uint32_t late)
{
	struct loom_channel k = {.slots = slots, .readers = readers, .from = 0, .to = 1,
				 .item_bytes = 8 * words};
	job.tags = spins(sync) ? 9 : 96;
	job.words = words;
	job.in_place = in_place;
	job.late = late;
	job.readers = readers;
	for (size_t iso = 0; iso < ISOLATIONS; iso++) {
		say(sync, isolations[iso]);
		CU_ASSERT_EQUAL_FATAL(open_rig(sync, isolations[iso], 3, lanes, &k, 1, stream), 0);
		for (int sample = 0; sample < 2; sample++) {
			memset(board(), 0, sizeof(struct row) * RIG_WORKERS);
			int rc = sync_rig_sample(&rig);
			CU_ASSERT_EQUAL_FATAL(rc, 0);
			for (uint32_t w = 0; w < 6; w++) {
				CU_ASSERT_EQUAL(board()[w].code, 0);
				CU_ASSERT_EQUAL(board()[w].wrong, 0);
				CU_ASSERT_EQUAL(board()[w].done, 1);
			}
			double expected = readers > 1 ? 3.0 * job.tags : job.tags;
			CU_ASSERT_EQUAL(sync_rig_metric(&rig, "sync_waits"), expected);
			CU_ASSERT_EQUAL(sync_rig_metric(&rig, "sync_publishes"), job.tags);
		}
		close_rig();
	}
}

static void test_stream(void)
{
	for (size_t i = 0; i < EVERY; i++) {
		run_stream(every[i], 4, 1, 1, WORDS, 0, i % 2);
		if (!spins(every[i]))
			run_stream(every[i], 7, 1, 1, 8, 0, 1);
	}
}
static void test_in_place(void)
{
	for (size_t i = 0; i < EVERY; i++)
		run_stream(every[i], 33, 1, 1, WORDS, 1, i % 2);
}
static void test_many_readers(void)
{
	for (size_t i = 0; i < EVERY; i++) {
		run_stream(every[i], 5, 3, 1, 64, 0, i % 2);
		if (!spins(every[i]))
			run_stream(every[i], 1, 3, 1, WORDS, i % 2, 0);
	}
}
static void test_lanes(void)
{
	for (size_t i = 0; i < EVERY; i++)
		run_stream(every[i], 3, 1, 2, WORDS, i % 2, 0);
}

/* ---- ping-pong: one slot each way, the shortest of all alternations */

static void alternate(struct loom_ctx *c)
{
	uint64_t value = 0;
	const void *data;
	int rc = 0;
	if (c->worker != c->first)
		return;
	for (uint32_t tag = 0; tag < job.tags && !rc; tag++) {
		if (c->device == 0) {
			value++;
			rc = LOOM_CALL(sync, publish, c, 0, tag, &value, 8, 0);
		}
		if (!rc)
			rc = LOOM_CALL(sync, wait, c, !c->device, tag, 0, &data);
		if (rc)
			break;
		value = *(const uint64_t *)data;
		LOOM_CALL(sync, release, c, !c->device, tag);
		if (c->device == 1) {
			value *= 3;
			rc = LOOM_CALL(sync, publish, c, 1, tag, &value, 8, 0);
		}
	}
	row_of(c)->code = rc;
	row_of(c)->took_ns = value;
}

static void test_alternate(void)
{
	/* Channel 0 to device 1, channel 1 to device 0. */
	struct loom_channel k[2] = {{.slots = 1, .readers = 1, .from = 0, .to = 1, .item_bytes = 8},
				    {.slots = 1, .readers = 1, .from = 1, .to = 0, .item_bytes = 8}};
	uint64_t expect = 0;
	job.tags = 300;
	for (uint32_t i = 0; i < job.tags; i++)
		expect = (expect + 1) * 3;
	for (size_t i = 0; i < 2 * EVERY; i += STEP) {
		CU_ASSERT_EQUAL_FATAL(open_rig(every[i / 2], isolations[i % 2], 1, 1, k, 2, alternate), 0);
		CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
		CU_ASSERT_EQUAL(board()[0].code, 0);
		CU_ASSERT_EQUAL(board()[0].took_ns, expect);
		close_rig();
	}
}

/* ---- sets of tags: any subset may come first */

static void gather(struct loom_ctx *c)
{
	uint32_t tag[12], n = 12;
	const void *data[12];
	int rc = 0;
	for (uint32_t round = 0; round < job.tags && !rc; round++) {
		if (c->device == 0) {
			uint64_t value[2];
			for (uint32_t i = c->worker; i < n && !rc; i += c->count) {
				uint32_t t = round * n + (i * 7 + round) % n;
				value[0] = word_of(t, 0);
				value[1] = t;
				spin_some(c, 3000);
				rc = LOOM_CALL(sync, publish, c, 0, t, value, sizeof(value), 0);
			}
		} else if (c->worker == c->first) {
			for (uint32_t i = 0; i < n; i++)
				tag[i] = round * n + n - 1 - i;
			rc = LOOM_CALL(sync, wait_all, c, 0, tag, n, 0, data);
			for (uint32_t i = 0; i < n && !rc; i++) {
				const uint64_t *v = data[i];
				row_of(c)->wrong += v[0] != word_of(tag[i], 0) || v[1] != tag[i];
				LOOM_CALL(sync, release, c, 0, tag[i]);
			}
		}
	}
	row_of(c)->code = rc;
}

static void test_wait_all(void)
{
	struct loom_channel k = {.slots = 12, .readers = 1, .from = 0, .to = 1, .item_bytes = 16};
	for (size_t i = 0; i < 2 * EVERY; i += STEP) {
		job.tags = spins(every[i / 2]) ? 2 : 20; /* rounds */
		CU_ASSERT_EQUAL_FATAL(open_rig(every[i / 2], isolations[i % 2], 2, 1, &k, 1, gather), 0);
		memset(board(), 0, sizeof(struct row) * RIG_WORKERS);
		CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
		for (uint32_t w = 0; w < 4; w++) {
			CU_ASSERT_EQUAL(board()[w].code, 0);
			CU_ASSERT_EQUAL(board()[w].wrong, 0);
		}
		close_rig();
	}
}

/* ---- deadlines: a wait that passes its own may be repeated, and then gets the item. They may come late, never
 * early, and the item comes after three of them, however slow everything is. */

static void be_late(struct loom_ctx *c)
{
	uint64_t value = 42, *passed = &row_of(c)[c->device == 0].done; /* deadlines, in the consumer's row */
	const void *data;
	if (c->worker != c->first)
		return;
	for (uint32_t tag = 0; tag < 3; tag++) {
		if (c->device == 0) {
			while (__atomic_load_n(passed, __ATOMIC_ACQUIRE) < 3 * (tag + 1) && !loom_stopped(c))
				usleep(1000);
			row_of(c)->code = LOOM_CALL(sync, publish, c, 0, tag, &value, 8, 0);
			continue;
		}
		uint64_t begin = loom_clock_ns(c);
		int rc;
		for (uint32_t i = 0; (rc = LOOM_CALL(sync, wait, c, 0, tag, 5000000, &data)) == LOOM_ETIMEDOUT; i++) {
			uint64_t now = loom_clock_ns(c);
			row_of(c)->wrong += now - begin < 5000000;
			begin = now;
			if (i < 3)
				__atomic_fetch_add(passed, 1, __ATOMIC_RELEASE);
		}
		row_of(c)->code = rc;
		if (!rc)
			row_of(c)->wrong += *(const uint64_t *)data != 42;
		LOOM_CALL(sync, release, c, 0, tag);
	}
}

static void test_deadline(void)
{
	struct loom_channel k = {.slots = 2, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	for (size_t i = 0; i < 2 * EVERY; i += STEP) {
		CU_ASSERT_EQUAL_FATAL(open_rig(every[i / 2], isolations[i % 2], 1, 1, &k, 1, be_late), 0);
		memset(board(), 0, sizeof(struct row) * RIG_WORKERS);
		CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
		CU_ASSERT_EQUAL(board()[1].code, 0);
		CU_ASSERT_EQUAL(board()[1].wrong, 0);
		CU_ASSERT_EQUAL(board()[1].done, 9);
		close_rig();
	}
}

/* The producer's side of the same: nobody releases the slot. */
static void be_blocked(struct loom_ctx *c)
{
	uint64_t value = 1;
	void *at;
	if (c->worker != 0)
		return;
	row_of(c)->code = LOOM_CALL(sync, publish, c, 0, 0, &value, 8, 10000000);
	int again = LOOM_CALL(sync, publish, c, 0, 1, &value, 8, 10000000);
	int place = LOOM_CALL(sync, reserve, c, 0, 1, 10000000, &at);
	row_of(c)->wrong = again != LOOM_ETIMEDOUT || place != LOOM_ETIMEDOUT;
}

static void test_producer_deadline(void)
{
	struct loom_channel k = {.slots = 1, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	for (size_t i = 0; i < 2 * EVERY; i += STEP) {
		CU_ASSERT_EQUAL_FATAL(open_rig(every[i / 2], isolations[i % 2], 1, 1, &k, 1, be_blocked), 0);
		memset(board(), 0, sizeof(struct row) * RIG_WORKERS);
		CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
		CU_ASSERT_EQUAL(board()[0].code, 0);
		CU_ASSERT_EQUAL(board()[0].wrong, 0);
		close_rig();
	}
}

/* ---- stops and deaths */

static void wait_for_ever(struct loom_ctx *c)
{
	const void *data;
	row_of(c)->pid = getpid();
	__atomic_store_n(&row_of(c)->done, 1, __ATOMIC_RELEASE);
	if (c->device == 0) {
		while (!loom_stopped(c))
			usleep(1000);
		return;
	}
	int rc = LOOM_CALL(sync, wait, c, 0, c->worker - c->first, 0, &data);
	int again = LOOM_CALL(sync, wait, c, 0, c->worker - c->first, 0, &data);
	row_of(c)->wrong = rc != again;
	row_of(c)->code = rc;
}

static void all_there(void)
{
	for (uint32_t w = 0; w < rig.r.layout.workers; w++)
		while (!__atomic_load_n(&board()[w].done, __ATOMIC_ACQUIRE))
			usleep(100);
	usleep(20000); /* and asleep */
}

static const struct loom_channel unpublished = {.slots = 4, .readers = 1, .from = 0, .to = 1,
						.item_bytes = 8};

static void test_stop(void)
{
	for (size_t i = 0; i < 2 * EVERY; i += STEP) {
		CU_ASSERT_EQUAL_FATAL(open_rig(every[i / 2], isolations[i % 2], 3, 1, &unpublished, 1,
					       wait_for_ever),
				      0);
		memset(board(), 0, sizeof(struct row) * RIG_WORKERS);
		CU_ASSERT_EQUAL_FATAL(sync_rig_start(&rig), 0);
		all_there();
		__atomic_store_n(&rig.r.shared->ctl.stop, 1u, __ATOMIC_RELAXED);
		rig.ops->interrupt(rig.self, &rig.r.layout, &rig.view, LOOM_EINTR, 0);
		CU_ASSERT_EQUAL_FATAL(sync_rig_wait(&rig, 5 * SECOND), 0);
		for (uint32_t w = 3; w < 6; w++) {
			CU_ASSERT_EQUAL(board()[w].code, LOOM_EINTR);
			CU_ASSERT_EQUAL(board()[w].wrong, 0);
		}
		close_rig();
	}
}

/* SIGKILL takes the producers away: the host learns it, and the consumers in the other process get
 * LOOM_EDIED. */
static void test_dead_producer(void)
{
	for (size_t i = 0; i < EVERY; i++) {
		CU_ASSERT_EQUAL_FATAL(open_rig(every[i], "process", 3, 1, &unpublished, 1, wait_for_ever), 0);
		memset(board(), 0, sizeof(struct row) * RIG_WORKERS);
		CU_ASSERT_EQUAL_FATAL(sync_rig_start(&rig), 0);
		all_there();
		CU_ASSERT_EQUAL_FATAL(kill((pid_t)board()[0].pid, SIGKILL), 0);
		uint64_t end;
		int rc;
		while ((rc = rig.r.ops->wait(rig.r.self[0], SECOND, &end, &rig.r.err)) == LOOM_EAGAIN)
			;
		CU_ASSERT_EQUAL_FATAL(rc, LOOM_EDIED);
		rig.ops->interrupt(rig.self, &rig.r.layout, &rig.view, LOOM_EDIED, 0);
		CU_ASSERT_EQUAL_FATAL(rig.r.ops->wait(rig.r.self[1], 5 * SECOND, &end, &rig.r.err), 0);
		for (uint32_t w = 3; w < 6; w++) {
			CU_ASSERT_EQUAL(board()[w].code, LOOM_EDIED);
			CU_ASSERT_EQUAL(board()[w].wrong, 0);
		}
		rig_retire(&rig.r, 10 * SECOND);
		sync_rig_close(&rig);
	}
}

/* ---- launches leave no descriptor, thread or mapping behind */

static size_t lines(const char *path)
{
	size_t n = 0;
	int ch;
	FILE *f = fopen(path, "re");
	while (f && (ch = fgetc(f)) != EOF)
		n += ch == '\n';
	if (f)
		fclose(f);
	return n;
}

static size_t descriptors(void)
{
	size_t n = 0;
	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void test_relaunch(void)
{
	struct loom_channel k = {.slots = 4, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	job = (typeof(job)){.tags = 12, .words = 1, .readers = 1};
	for (size_t iso = 0; iso < ISOLATIONS; iso++) {
		size_t fds = 0, maps = 0;
		CU_ASSERT_EQUAL_FATAL(open_rig("sync_wic shards=4", isolations[iso], 2, 1, &k, 1, stream), 0);
		for (int launch = 0; launch < 40; launch++) {
			memset(board(), 0, sizeof(struct row) * RIG_WORKERS);
			CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
			CU_ASSERT_EQUAL(rig_retire(&rig.r, 10 * SECOND), 0);
			for (uint32_t w = 0; w < 4; w++)
				CU_ASSERT(board()[w].done && !board()[w].wrong);
			if (launch == 4) {
				fds = descriptors();
				maps = lines("/proc/self/maps");
			}
			if (launch > 4) {
				CU_ASSERT_EQUAL(descriptors(), fds);
				/* The sanitizers' own and the C library's may come and go. */
				CU_ASSERT(lines("/proc/self/maps") < maps + 20);
			}
			CU_ASSERT_EQUAL_FATAL(sync_rig_launch(&rig), 0);
		}
		close_rig();
	}
}

static const struct test tests[] = {
	{"stream", test_stream},
	{"in_place", test_in_place},
	{"many_readers", test_many_readers},
	{"lanes", test_lanes},
	{"alternate", test_alternate},
	{"wait_all", test_wait_all},
	{"deadline", test_deadline},
	{"producer_deadline", test_producer_deadline},
	{"stop", test_stop},
	{"dead_producer", test_dead_producer},
	{"relaunch", test_relaunch},
};

TEST_MAIN("sync", 60, tests)
