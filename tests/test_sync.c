/* SPDX-License-Identifier: Apache-2.0 */
/* Tests behaviour of sync plug-ins that neither `gpuloom validate` (check-validate.sh) nor applications (check-sync.sh)
 * cover: both isolations, counters, the end of waits without interrupt(), and repeated launches. */
#include "conform/footprint.h"
#include "sync_rig.h"

static const char *const every[] = {
    "sync_poll",
    "sync_poll probe=atomic",
    "sync_poll transfer=demand",
    "sync_poll transfer=push",
    "sync_backoff wait=spin",
    "sync_backoff wait=yield",
    "sync_backoff wait=nap",
    "sync_warp",
    "sync_futex",
    "sync_futex polls=50",
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
/* ThreadSanitizer observes only one process. It would report accesses whose order depends on another process. */
#ifdef __SANITIZE_THREAD__
#define ISOLATIONS 1
#else
#define ISOLATIONS 2
#endif
#define STEP (3 - ISOLATIONS) /* the step of loops over i that use isolations[i % 2] */

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

/* ---- items, which device 0 publishes and device 1 reads; check-sync.sh tests larger items */

enum { TAGS = 12 };

/* Producer p publishes the tags p, p + producers, ... */
static void stream(struct loom_ctx *c)
{
	struct sync_row *row = sync_row(c);
	const void *data;
	int rc = 0;
	for (uint32_t tag = c->worker - c->first; tag < TAGS && !rc; tag += c->count) {
		uint64_t word = (tag + 1) * 0x9e3779b97f4a7c15ull;
		if (c->device == 0) {
			rc = LOOM_CALL(sync, publish, c, 0, tag, &word, 8, 0);
			continue;
		}
		rc = LOOM_CALL(sync, wait, c, 0, tag, 0, &data);
		row->wrong += !rc && *(const uint64_t *)data != word;
		rc = rc ? rc : LOOM_CALL(sync, release, c, 0, tag);
	}
	row->done = rc == 0;
}

/* Runs a sample in which all items arrive. */
static void streams(uint32_t workers)
{
	sync_rig_clear(&rig);
	CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
	for (uint32_t w = 0; w < workers; w++)
		CU_ASSERT(sync_rig_rows(&rig)[w].done && !sync_rig_rows(&rig)[w].wrong);
	CU_ASSERT_EQUAL(sync_rig_metric(&rig, "sync_waits"), TAGS);
	CU_ASSERT_EQUAL(sync_rig_metric(&rig, "sync_publishes"), TAGS);
}

TEST(stream)
{
	struct loom_channel k = {.slots = 4, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	for (size_t i = 0; i < 2 * EVERY; i += STEP) {
		CU_ASSERT_EQUAL_FATAL(open_rig(every[i / 2], isolations[i % 2], 3, &k, 1, stream), 0);
		streams(6);
		streams(6);
		sync_rig_end(&rig);
	}
}

/* ---- where flags are */

/* With sync_warp, an item of 8 bytes is in a flag in the memory of the consumers' device, so that its workers poll
 * their own memory. A larger item is there, too. */
enum { NEAR_MARK = 0x5eed1234 };
static void publish_one(struct loom_ctx *c)
{
	uint64_t item[8];
	for (int i = 0; i < 8; i++)
		item[i] = NEAR_MARK * 0x100000001ull;
	if (c->worker == 0)
		sync_row(c)->code = LOOM_CALL(sync, publish, c, 0, 0, item, sync_row(c)->id, 0);
}

static int has_mark(const void *block, uint64_t bytes)
{
	uint32_t mark = NEAR_MARK;
	return memmem(block, bytes, &mark, sizeof(mark)) != NULL;
}

TEST(near)
{
	for (uint64_t bytes = 8; bytes <= 64; bytes += 56) {
		struct loom_channel k = {.slots = 4, .readers = 1, .from = 0, .to = 1, .item_bytes = bytes};
		struct loom_need need = {.size = sizeof(need)};
		CU_ASSERT_EQUAL_FATAL(open_rig("sync_warp", "thread", 2, &k, 1, publish_one), 0);
		CU_ASSERT_EQUAL_FATAL(rig.ops->need(rig.self, &rig.r.layout, &need, &rig.r.err), 0);
		sync_rig_clear(&rig);
		sync_rig_rows(&rig)[0].id = (int64_t)bytes;
		CU_ASSERT_EQUAL_FATAL(sync_rig_sample(&rig), 0);
		CU_ASSERT_EQUAL(sync_rig_rows(&rig)[0].code, 0);
		CU_ASSERT(has_mark(rig.worker_block[2], need.worker) || has_mark(rig.worker_block[3], need.worker));
		CU_ASSERT(!has_mark(rig.view.global, need.global));
		sync_rig_end(&rig);
	}
}

/* ---- a death of which the host does not tell */

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
	usleep(20000); /* by then the consumers sleep */
}

static const struct loom_channel unpublished = {.slots = 4, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};

/* After the death of a worker, consumers end by the words of struct loom_ctl, although the host does not call
 * interrupt(), as on a GPU. */
TEST(death)
{
	static const char *const plugin[] = {"sync_poll", "sync_poll probe=atomic", "sync_backoff", "sync_warp"};
	for (size_t i = 0; i < 4 * ISOLATIONS; i++) {
		CU_ASSERT_EQUAL_FATAL(open_rig(plugin[i % 4], isolations[i / 4], 3, &unpublished, 1, wait_for_ever), 0);
		sync_rig_clear(&rig);
		CU_ASSERT_EQUAL_FATAL(sync_rig_start(&rig), 0);
		all_there();
		__atomic_store_n(&rig.r.shared->ctl.died, 1u, __ATOMIC_RELEASE);
		__atomic_store_n(&rig.r.shared->ctl.stop, 1u, __ATOMIC_RELAXED);
		CU_ASSERT_EQUAL_FATAL(sync_rig_wait(&rig, 5 * SECOND), 0);
		for (uint32_t w = 3; w < 6; w++)
			CU_ASSERT_EQUAL(sync_rig_rows(&rig)[w].code, LOOM_EDIED);
		sync_rig_end(&rig);
	}
}

/* ---- launches leave no descriptor, thread or mapping behind */

TEST(relaunch)
{
	struct loom_channel k = {.slots = 4, .readers = 1, .from = 0, .to = 1, .item_bytes = 8};
	for (size_t iso = 0; iso < ISOLATIONS; iso++) {
		struct loom__footprint before;
		char text[200];
		CU_ASSERT_EQUAL_FATAL(open_rig("sync_wic shards=4", isolations[iso], 2, &k, 1, stream), 0);
		for (int launch = 0; launch < 40; launch++) {
			streams(4);
			CU_ASSERT_EQUAL(loom__drive_retire(&rig.r, 10 * SECOND), 0);
			if (launch == 4)
				loom__footprint_take(&before);
			CU_ASSERT_EQUAL_FATAL(sync_rig_launch(&rig), 0);
		}
		CU_ASSERT_EQUAL(loom__drive_retire(&rig.r, 10 * SECOND), 0);
		CU_ASSERT_PTR_NULL(loom__footprint_settles(&before, 35, text, sizeof(text)));
		sync_rig_close(&rig);
	}
}

TEST_MAIN("sync", 60)
