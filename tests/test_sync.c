/* SPDX-License-Identifier: Apache-2.0 */
/* What `gpuloom validate` cannot ask of a sync plug-in (check-validate.sh), and applications do not (check-sync.sh): in
 * both isolations, counts, producers that are blocked, stops, launches again and again. */
#include <fcntl.h>

#include "sync_rig.h"

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

static int open_rig(const char *sync, const char *isolation, uint32_t workers, const struct loom_channel *channel,
		    uint32_t channels, void (*run)(struct loom_ctx *))
{
	char settings[128];
	snprintf(settings, sizeof(settings), "workers=%u oversubscribe=yes isolation=%s pin=no", workers, isolation);
	int rc = sync_rig_open(&rig, sync, 2, settings, channel, channels, run);
	if (rc)
		printf("  %s, %s: %s\n", sync, isolation, rig.r.err.text);
	if (!rc)
		rc = sync_rig_launch(&rig);
	if (rc)
		printf("  %s, %s: %s\n", sync, isolation, rig.r.err.text);
	return rc;
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
	uint32_t tags, words, late;
} job;

static int produce(struct loom_ctx *c, uint32_t tag, uint64_t *room)
{
	for (uint64_t i = 0; i < job.words; i++)
		room[i] = word_of(tag, i);
	return LOOM_CALL(sync, publish, c, 0, tag, room, 8 * job.words, 0);
}

static int consume(struct loom_ctx *c, uint32_t tag, uint64_t *wrong)
{
	const void *data = NULL;
	int rc = LOOM_CALL(sync, wait, c, 0, tag, 0, &data);
	for (uint64_t i = 0; !rc && i < job.words; i++)
		*wrong += ((const uint64_t *)data)[i] != word_of(tag, i);
	return rc ? rc : LOOM_CALL(sync, release, c, 0, tag);
}

/* Producer p makes the tags p, p + producers, ... */
static void stream(struct loom_ctx *c)
{
	static uint64_t rooms[SYNC_RIG_WORKERS][WORDS];
	int rc = 0;
	for (uint32_t tag = c->worker - c->first; tag < job.tags && !rc; tag += c->count) {
		if (c->device == job.late)
			spin_some(c, 20000);
		rc = c->device == 0 ? produce(c, tag, rooms[c->worker]) : consume(c, tag, &sync_row(c)->wrong);
	}
	sync_row(c)->done = rc == 0;
	sync_row(c)->code = rc;
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

static void run_stream(const char *sync, uint32_t slots, uint32_t words, uint32_t late)
{
	struct loom_channel k = {.slots = slots, .readers = 1, .from = 0, .to = 1, .item_bytes = 8 * words};
	job.tags = spins(sync) ? 9 : 96;
	job.words = words;
	job.late = late;
	for (size_t iso = 0; iso < ISOLATIONS; iso++) {
		say(sync, isolations[iso]);
		CU_ASSERT_EQUAL_FATAL(open_rig(sync, isolations[iso], 3, &k, 1, stream), 0);
		for (int sample = 0; sample < 2; sample++) {
			sync_rig_clear(&rig);
			int rc = sync_rig_sample(&rig);
			CU_ASSERT_EQUAL_FATAL(rc, 0);
			for (uint32_t w = 0; w < 6; w++) {
				CU_ASSERT_EQUAL(sync_rig_rows(&rig)[w].code, 0);
				CU_ASSERT_EQUAL(sync_rig_rows(&rig)[w].wrong, 0);
				CU_ASSERT_EQUAL(sync_rig_rows(&rig)[w].done, 1);
			}
			CU_ASSERT_EQUAL(sync_rig_metric(&rig, "sync_waits"), job.tags);
			CU_ASSERT_EQUAL(sync_rig_metric(&rig, "sync_publishes"), job.tags);
		}
		sync_rig_end(&rig);
	}
}

TEST(stream)
{
	for (size_t i = 0; i < EVERY; i++) {
		run_stream(every[i], 4, WORDS, i % 2);
		if (!spins(every[i]))
			run_stream(every[i], 7, 8, 1);
	}
}

/* ---- deadlines of producers: nobody releases the slot */
static void be_blocked(struct loom_ctx *c)
{
	uint64_t value = 1;
	void *at;
	if (c->worker != 0)
		return;
	sync_row(c)->code = LOOM_CALL(sync, publish, c, 0, 0, &value, 8, 10000000);
	int again = LOOM_CALL(sync, publish, c, 0, 1, &value, 8, 10000000);
	int place = LOOM_CALL(sync, reserve, c, 0, 1, 10000000, &at);
	sync_row(c)->wrong = again != LOOM_ETIMEDOUT || place != LOOM_ETIMEDOUT;
}

TEST(producer_deadline)
{
	struct loom_channel k = {.slots = 1, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	for (size_t i = 0; i < 2 * EVERY; i += STEP) {
		CU_ASSERT_EQUAL_FATAL(open_rig(every[i / 2], isolations[i % 2], 1, &k, 1, be_blocked), 0);
		sync_rig_clear(&rig);
		CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[0].code, 0);
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[0].wrong, 0);
		sync_rig_end(&rig);
	}
}

/* ---- stops */

static void wait_for_ever(struct loom_ctx *c)
{
	const void *data;
	__atomic_store_n(&sync_row(c)->done, 1, __ATOMIC_RELEASE);
	if (c->device == 0) {
		while (!loom_stopped(c))
			usleep(1000);
		return;
	}
	int rc = LOOM_CALL(sync, wait, c, 0, c->worker - c->first, 0, &data);
	int again = LOOM_CALL(sync, wait, c, 0, c->worker - c->first, 0, &data);
	sync_row(c)->wrong = rc != again;
	sync_row(c)->code = rc;
}

static void all_there(void)
{
	for (uint32_t w = 0; w < rig.r.layout.workers; w++)
		while (!__atomic_load_n(&sync_rig_rows(&rig)[w].done, __ATOMIC_ACQUIRE))
			usleep(100);
	usleep(20000); /* and asleep */
}

static const struct loom_channel unpublished = {.slots = 4, .readers = 1, .from = 0, .to = 1,
						.item_bytes = 8};

TEST(stop)
{
	for (size_t i = 0; i < 2 * EVERY; i += STEP) {
		CU_ASSERT_EQUAL_FATAL(open_rig(every[i / 2], isolations[i % 2], 3, &unpublished, 1,
					       wait_for_ever),
				      0);
		sync_rig_clear(&rig);
		CU_ASSERT_EQUAL_FATAL(sync_rig_start(&rig), 0);
		all_there();
		__atomic_store_n(&rig.r.shared->ctl.stop, 1u, __ATOMIC_RELAXED);
		rig.ops->interrupt(rig.self, &rig.r.layout, &rig.view, LOOM_EINTR, 0);
		CU_ASSERT_EQUAL_FATAL(sync_rig_wait(&rig, 5 * SECOND), 0);
		for (uint32_t w = 3; w < 6; w++) {
			CU_ASSERT_EQUAL(sync_rig_rows(&rig)[w].code, LOOM_EINTR);
			CU_ASSERT_EQUAL(sync_rig_rows(&rig)[w].wrong, 0);
		}
		sync_rig_end(&rig);
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

TEST(relaunch)
{
	struct loom_channel k = {.slots = 4, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	job = (typeof(job)){.tags = 12, .words = 1};
	for (size_t iso = 0; iso < ISOLATIONS; iso++) {
		size_t fds = 0, maps = 0;
		CU_ASSERT_EQUAL_FATAL(open_rig("sync_wic shards=4", isolations[iso], 2, &k, 1, stream), 0);
		for (int launch = 0; launch < 40; launch++) {
			sync_rig_clear(&rig);
			CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
			CU_ASSERT_EQUAL(loom__drive_retire(&rig.r, 10 * SECOND), 0);
			for (uint32_t w = 0; w < 4; w++)
				CU_ASSERT(sync_rig_rows(&rig)[w].done && !sync_rig_rows(&rig)[w].wrong);
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
		sync_rig_end(&rig);
	}
}

TEST_MAIN("sync", 60)
