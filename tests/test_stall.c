/* SPDX-License-Identifier: Apache-2.0 */
/* Tests sched_mgws and term_counter with workers that stall at random before atomic accesses, so long that all other
 * workers run on. For example, a thief stalls while it copies tasks, or an owner stalls while its queue is closed. So
 * the test finds faults that need two rare events at once. */
static void stall(void);
#define LOOM_YIELD() stall()

#include "tree.h"
#include "lib/random.h"

#include "../plugins/sched_mgws/sched_mgws.dev.h"
#include "../plugins/term/term_counter.dev.h"

static int stalled;

static void stall(void)
{
	static uint64_t threads;
	static __thread uint64_t state;
	if (!state)
		state = loom__mix64(__atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED)) | 1;
	xorshift(&state);
	__atomic_store_n(&stalled, 1, __ATOMIC_RELAXED);
	if (state % 128 == 0)
		usleep((useconds_t)(state >> 32) % 200);
	else if (state % 32 == 0)
		sched_yield();
}

static const struct loom_sched_dev sched = {
	.size = sizeof(sched), .run = sched_mgws_run, .spawn = sched_mgws_spawn, .wanted = sched_mgws_wanted};
static const struct loom_term_dev term = {.size = sizeof(term),
					  .idle = term_counter_idle,
					  .busy = term_counter_busy,
					  .done = term_counter_done};

static const struct {
	const char *opts;
	uint32_t workers, lanes, size;
	enum loom__shape shape;
	uint32_t rounds;
} setups[] = {
	{"local_queue=2 public_queue=4", 4, 1, 200, BINARY, 60},
	{"local_queue=2 public_queue=4", 4, 1, 40, COMB, 60},
	{"local_queue=2 public_queue=8", 6, 1, 150, STAR, 200},
	{"local_queue=2 public_queue=8", 6, 1, 400, RANDOM, 100},
	{"local_queue=4 public_queue=16", 4, 1, 200, STAR, 60},
	{"local_queue=2 public_queue=1 in_place_depth=0", 3, 1, 30, STAR, 60},
	{"local_queue=2 public_queue=1 in_place_depth=0", 2, 1, 6, STAR, 2000},
	{"local_queue=2 public_queue=2 in_place_depth=0", 4, 1, 100, RANDOM, 60},
	{"local_queue=2 public_queue=4", 3, 2, 60, BINARY, 60},
	{"local_queue=2 public_queue=8 owners=2", 6, 1, 150, STAR, 60},
	{"local_queue=2 public_queue=4 owners=4 attempts=damping", 4, 1, 200, RANDOM, 60},
	{"local_queue=2 public_queue=8 transfer=id", 6, 1, 150, STAR, 60},
	{"local_queue=2 public_queue=4 transfer=id owners=2", 4, 2, 100, BINARY, 30},
	{"local_queue=2 public_queue=4 spin=0", 6, 1, 150, RANDOM, 60},
};

TEST(stalls)
{
	for (size_t k = 0; k < COUNT(setups); k++) {
		struct harness *h =
			open_tree("sched_mgws", setups[k].opts, setups[k].workers, setups[k].lanes,
				  1, setups[k].size, setups[k].shape, k);
		h->rig.want.table[LOOM_SCHED] = &sched;
		h->rig.want.table[LOOM_TERM] = &term;
		for (uint32_t i = 0; i < setups[k].rounds; i++)
			CU_ASSERT_EQUAL(run_tree(h, setups[k].size), 0);
		harness_close(h);
	}
	CU_ASSERT(stalled); /* shows that the code compiled into this test has run, not the plug-in's */
}

TEST_MAIN("stall", 120)
