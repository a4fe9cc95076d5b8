/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the setups of test_sched_deterministic with the machine model of docs/races.md: no schedule may have a data
 * race, or a wrong result because of a stale load. Then weakens each memory order of the schedulers and detectors, one
 * at a time, and expects to notice it. RACES_SITES=1 prints a line for each order. */
#include "races.h"

static int races_explore(uint32_t n, void (*body)(uint32_t), enum loom__explore_mode mode, uint64_t seed,
			 uint64_t length, uint64_t limit);
static void races_ended(void);
#define TURNS_EXPLORE races_explore
#define TURNS_ENDED   races_ended
/* Each task writes a plain word. All workers read these words after their detector has reported the end, so an order
 * that is missing there is a race. */
static uint32_t races_noted[64];
#define TREE_NOTE(t) (races_noted[(t)->param[0] % COUNT(races_noted)] = 1)
#include "test_sched_deterministic.c"

#include "races_weaken.h"

static int races_explore(uint32_t n, void (*body)(uint32_t), enum loom__explore_mode mode, uint64_t seed,
			 uint64_t length, uint64_t limit)
{
	uint8_t device[RACE_FIBERS] = {0};
	uint32_t all = 0;
	/* Ranks access each other by RMA only if their devices are CPUs, on which all scopes mean the same. */
	int rma = turns_ranks.h[0]->p.trigger_dev != NULL;
	for (uint32_t r = 0; r < turns_ranks.n; r++)
		for (uint32_t w = 0; w < turns_ranks.h[r]->p.workers; w++)
			device[all++] = rma ? 0 : (uint8_t)(2 * r + turns_ranks.h[r]->rig.ctx[w].device);
	(void)mode, (void)limit;
	const char *fault = races_run(n, device, body, seed, length);
	turns_why = fault ? fault : turns_why;
	return fault != NULL;
}

static void races_ended(void)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < COUNT(races_noted); i++)
		sum += races_noted[i];
	if (sum > COUNT(races_noted))
		abort();
}

/* Explores more schedules of each setup each time, because most faults show soon in some setup. */
static void races_explore_more(void)
{
	static void (*const run[])(void) = {test_counter, test_hcounter, test_tree, test_ranks, test_pools};
	setenv("TURNS_STOP", "1", 1);
	for (turns_count = 5, turns_first = 0; turns_first < 155; turns_first += turns_count, turns_count *= 2)
		for (size_t i = 0; i < COUNT(run); i++)
			run[i]();
}

TEST(weakened)
{
	/* Superfluous: the taker of a lock releases nothing by taking it. term_counter: a worker that calls busy() calls
	 * idle() later, which releases, and done() acquires. term_hcounter: the same; and a worker sleeps only after the
	 * fence of eventcount_enter(). mailbox.dev.h: these loads use only the value of the word; the loads that pair with
	 * claims are those in mgws_range_moved() and mgws_proxy(). Open: docs/races.md. */
	static const struct races_known known[] = {
	    {"mgws_try_lock_queue", "cas_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"mgws_try_lock_list", "cas_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"mgws_try_lock", "cas_acq_rel_dev", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"term_counter_busy", "fetch_add_acq_rel_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"term_counter_busy", "fetch_add_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"term_counter_idle", "fetch_add_acq_rel_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"term_hcounter_busy", "fetch_add_acq_rel_dev", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"term_hcounter_busy", "fetch_add_acq_rel_dev", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"term_hcounter_idle", "fence_seq_cst_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"term_hcounter_idle", "fence_seq_cst_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"term_hcounter_idle", "fence_seq_cst_sys", RACE_SC, RACES_SUPERFLUOUS},
	    {"mgws_grant_range", "load_acquire_dev", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"mgws_request", "load_acquire_dev", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"mgws_mailbox_filled", "load_acquire_dev", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"sched_pool_claim", "fetch_add_release_sys", RACE_RELEASE, RACES_OPEN},
	    {"sched_pool_filled", "load_acquire_sys", RACE_ACQUIRE, RACES_OPEN},
	    {"sched_pool_search", "load_acquire_sys", RACE_ACQUIRE, RACES_OPEN},
	    {"mgws_proxy", "load_acquire_dev", RACE_ACQUIRE, RACES_OPEN},
	    {"mgws_stolen_count", "load_acquire_sys", RACE_ACQUIRE, RACES_OPEN},
	    {"mgws_range_moved", "load_acquire_dev", RACE_ACQUIRE, RACES_OPEN},
	    {"mgws_try_overflow", "store_release_sys", RACE_RELEASE, RACES_OPEN},
	    {"mgws_receive", "store_release_dev", RACE_RELEASE, RACES_OPEN},
	    {"mgws_grant_range", "fetch_add_acq_rel_dev", RACE_ACQUIRE, RACES_OPEN},
	    {"mgws_grant_range", "fetch_add_acq_rel_dev", RACE_RELEASE, RACES_OPEN},
	    {"mgws_claim_range", "fetch_add_acq_rel_dev", RACE_ACQUIRE, RACES_OPEN},
	    {"mgws_claim_range", "fetch_add_acq_rel_dev", RACE_RELEASE, RACES_OPEN},
	    {"mgws_lane_try_overflow", "store_release_sys", RACE_RELEASE,
	     RACES_UNREACHED},                                                     /* lanes with tasks of their own */
	    {"mgws_call_all", "store_release_dev", RACE_RELEASE, RACES_UNREACHED}, /* small samples of GPUs */
	};
	races_weaken(known, COUNT(known), races_explore_more);
}
