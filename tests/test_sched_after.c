/* SPDX-License-Identifier: Apache-2.0 */
/* Tests loom_last() and loom_last_noncoherent() on threads. Exactly one of several tasks must find that it is the last,
 * and must see the writes of all others. tests/check-mutants.sh plants faults. */
#include <gpuloom/dev/dev.h>
#include <string.h>

#include "support.h"

enum { WORKERS = 6, ROUNDS = 20000 };

static struct {
	uint64_t pending;
	uint64_t result[WORKERS]; /* not atomic, so that ThreadSanitizer checks the order of the accesses */
	uint64_t last;
} rounds[ROUNDS];
static struct loom_onebit_lock turns[LOOM_MAX_DEVICES];
static uint32_t lock[LOOM_MAX_DEVICES][LOOM_ONEBIT_LOCAL_BYTES / 4];
static struct loom_ctl ctl;
static struct loom_ctx ctx[WORKERS];
static uint64_t wrong;

static void *worker(void *arg)
{
	struct loom_ctx *c = arg;
	for (uint64_t r = 0; r < ROUNDS; r++) {
		rounds[r].result[c->worker] = r + c->worker;
		if (!(c->devices > 1 ? loom_last_noncoherent(c, turns, &rounds[r].pending)
				     : loom_last(c, &rounds[r].pending)))
			continue;
		rounds[r].last++;
		for (uint32_t w = 0; w < c->workers; w++)
			if (rounds[r].result[w] != r + w)
				__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void play(uint32_t devices, uint32_t workers)
{
	memset(rounds, 0, sizeof(rounds));
	wrong = 0;
	for (uint64_t r = 0; r < ROUNDS; r++)
		rounds[r].pending = workers;
	for (uint32_t w = 0; w < workers; w++) {
		ctx[w] = (struct loom_ctx){.worker = w,
					   .workers = workers,
					   .device = w % devices,
					   .devices = devices,
					   .lanes = 1,
					   .flags = LOOM_CTX_OVERSUBSCRIBED,
					   .ctl = &ctl};
		ctx[w].on_device[LOOM_WORKLOAD] = lock[w % devices];
	}
	in_threads(worker, ctx, sizeof(*ctx), workers);
	uint64_t not_once = 0;
	for (uint64_t r = 0; r < ROUNDS; r++)
		not_once += rounds[r].last != 1;
	if (wrong || not_once)
		printf("%u devices, %u workers: %llu results were not seen, %llu rounds did not end once\n", devices,
		       workers, (unsigned long long)wrong, (unsigned long long)not_once);
	CU_ASSERT_EQUAL(wrong, 0);
	CU_ASSERT_EQUAL(not_once, 0);
}

TEST(shared)
{
	play(1, 1);
	play(1, 2);
	play(1, WORKERS);
}

TEST(noncoherent)
{
	play(2, 2);
	play(2, WORKERS);
	play(3, WORKERS);
}

/* A task that waits in loom_last_noncoherent() returns when the run is stopped. */
TEST(stopped)
{
	uint64_t pending = 1;
	for (uint32_t d = 0; d < 2; d++) {
		struct loom_ctx c = {.device = d, .devices = 2, .lanes = 1, .ctl = &ctl};
		c.on_device[LOOM_WORKLOAD] = lock[d];
		turns[1 - d].wants = 1;
		ctl.stop = 1;
		CU_ASSERT_EQUAL(loom_onebit_lock_acquire(&c, turns), 0);
		CU_ASSERT_EQUAL(loom_last_noncoherent(&c, turns, &pending), 0);
		ctl.stop = turns[1 - d].wants = 0;
		CU_ASSERT_EQUAL(turns[d].wants, 0);
	}
	CU_ASSERT_EQUAL(pending, 1);
}

TEST_MAIN("sched_after", 0)
