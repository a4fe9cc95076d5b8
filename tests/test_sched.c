/* SPDX-License-Identifier: Apache-2.0 */
/* Stresses the schedulers' device code. Each task runs exactly once with an intact record, for any shape of the task
 * tree and any queue sizes, lanes and number of threads. */
#include "tree.h"
#include "lib/random.h"

struct setup {
	const char *sched, *opts;
	uint32_t workers, lanes;
	const char *term;
	uint32_t noncoherent; /* 1 if the workers are on two non-coherent devices */
	uint32_t gpu;   /* 1: the second device behaves like a GPU, with affinity lists */
};
static const struct setup setups[] = {
	{"sched_mgws", "local_queue=2 public_queue=1", 4, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=2 in_place_depth=0", 4, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=2 in_place_depth=3 claim=fixed claim_size=1", 3, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=1 backlog=1", 4, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=2 backlog=8 in_place_depth=0", 5, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=4 public_queue=2 backlog=64 in_place_depth=1 transfer=id", 4, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=8 public_queue=8", 5, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=8 public_queue=8 in_place_depth=0", 2, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=256", 4, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=64 public_queue=2", 4, 1, NULL, 0, 0},
	{"sched_mgws", "", 1, 1, NULL, 0, 0},
	{"sched_mgws", "", 3, 1, NULL, 0, 0},
	{"sched_static", "local_queue=2", 4, 1, NULL, 0, 0},
	{"sched_static", "local_queue=2 in_place_depth=0 overflow_list=262144", 3, 1, NULL, 0, 0},
	{"sched_static", "local_queue=8 in_place_depth=2 overflow_list=262144", 2, 1, NULL, 0, 0},
	{"sched_static", "", 1, 1, NULL, 0, 0},
	{"sched_counter", "", 4, 1, NULL, 0, 0},
	{"sched_counter", "chunk=7 pool=100 local_queue=2", 4, 1, "term_tree", 0, 0},
	{"sched_counter", "pool=0 local_queue=2 in_place_depth=0 overflow_list=262144", 3, 1, "term_hcounter", 0, 0},
	{"sched_counter", "pool=1 spin=0", 3, 1, NULL, 0, 0},
	{"sched_counter", "wait=yield", 2, 1, "term_tree", 0, 0},
	{"sched_counter", "wait=spin pool=500", 1, 1, NULL, 0, 0},
	{"sched_plan", "", 4, 1, NULL, 0, 0},
	{"sched_plan", "costs=equal pool=64 local_queue=4", 5, 1, "term_tree", 0, 0},
	{"sched_plan", "costs=measured steal=none spin=0", 3, 1, "term_hcounter", 0, 0},
	{"sched_plan", "pool=0 in_place_depth=2 overflow_list=262144", 2, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=2 owners=2", 5, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=4 public_queue=8 owners=4 in_place_depth=0", 4, 1, "term_tree", 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=4 transfer=id", 4, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=8 public_queue=1 transfer=id in_place_depth=1", 3, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=4 public_queue=8 transfer=id owners=2 attempts=damping", 6, 1,
	 "term_hcounter", 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=8 attempts=damping victim=neighbour", 4, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=8 victim=biased bias=0.5 spin=0", 5, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=8 victim=local", 5, 1, "term_tree", 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=8 victim=none", 3, 1, "term_hcounter", 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=8 wait=spin claim=fixed claim_size=7", 3, 1, "term_tree", 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=8 wait=yield", 3, 1, "term_hcounter", 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=2", 3, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=4 public_queue=8 claim=queues", 4, 1, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=1 claim=queues in_place_depth=0 victim=none", 3, 1, "term_tree", 0, 0},
	{"sched_mgws", "local_queue=4 public_queue=4 claim=queues owners=2 transfer=id", 5, 1, "term_hcounter", 0, 0},
	{"sched_static", "local_queue=8 wait=yield", 3, 1, "term_tree", 0, 0},
	{"sched_host", "batch=2 returns=2", 4, 1, NULL, 0, 0},
	{"sched_host", "batch=8 returns=4", 1, 1, "term_tree", 0, 0},
	{"sched_host", "", 3, 1, "term_hcounter", 0, 0},
};
static const struct setup lane_setups[] = {
	{"sched_mgws", "local_queue=2 public_queue=4 owners=2", 4, 2, NULL, 0, 0},
	{"sched_mgws", "local_queue=4 public_queue=4 transfer=id", 2, 3, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=2", 2, 4, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=2 in_place_depth=0", 2, 4, NULL, 0, 0},
	{"sched_mgws", "local_queue=2 public_queue=2 in_place_depth=0 backlog=4", 2, 4, NULL, 0, 0},
	{"sched_mgws", "local_queue=4 public_queue=1 in_place_depth=0 backlog=16", 3, 3, NULL, 0, 0},
	{"sched_mgws", "local_queue=8 public_queue=8 in_place_depth=1", 3, 3, NULL, 0, 0},
	{"sched_mgws", "local_queue=4 public_queue=8 claim=queues", 3, 3, NULL, 0, 0},
	{"sched_static", "local_queue=2 in_place_depth=1", 2, 4, NULL, 0, 0},
	{"sched_host", "batch=4 returns=2", 2, 4, NULL, 0, 0},
	{"sched_counter", "pool=20 local_queue=2 in_place_depth=1", 2, 4, NULL, 0, 0},
	{"sched_counter", "chunk=3", 3, 3, "term_tree", 0, 0},
	{"sched_plan", "", 2, 4, NULL, 0, 0},
	{"sched_plan", "pool=10 local_queue=2 in_place_depth=0", 3, 2, "term_hcounter", 0, 0},
	{"sched_static", "", 2, 3, NULL, 0, 0},
};

static const struct setup noncoherent_setups[] = {
	{"sched_mgws", "local_queue=2 public_queue=2", 4, 1, "term_hcounter", 1, 0},
	{"sched_mgws", "local_queue=4 public_queue=4 in_place_depth=0", 3, 1, "term_tree", 200, 0},
	{"sched_mgws", "local_queue=8 public_queue=8 claim=fixed claim_size=3 spin=0", 5, 1, "term_hcounter", 500, 0},
	{"sched_mgws", "local_queue=4 public_queue=4 transfer=id owners=2 wait=yield", 4, 1, "term_hcounter", 2, 0},
	{"sched_mgws", "local_queue=8 public_queue=2 victim=none", 4, 1, "term_tree", 100, 0},
	{"sched_mgws", "local_queue=4 public_queue=4 backlog=8", 2, 2, "term_hcounter", 1, 0},
	{"sched_mgws", "local_queue=4 public_queue=4", 4, 2, "term_tree", 40, 1},
	{"sched_mgws", "local_queue=2 public_queue=2 attempts=damping wait=spin", 4, 1, "term_hcounter", 7, 1},
	{"sched_mgws", "local_queue=4 public_queue=4 claim=queues", 4, 2, "term_tree", 90, 1},
	{"sched_host", "batch=4 returns=8", 4, 1, "term_hcounter", 30, 1},
	{"sched_plan", "pool=50", 4, 1, "term_hcounter", 300, 0},
	{"sched_plan", "spin=0", 5, 1, "term_tree", 40, 0},
};

/* Sanitizers make the test ten times as slow, so it runs each setup with fewer seeds and tasks. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SEEDS 208u
#define SIZE 600u
#else
#define SEEDS 1040u
#define SIZE 3000u
#endif

/* Runs the same stack twice. Returns the number of tasks that moved from one worker to another. */
static uint64_t grow(const struct setup *s, uint32_t initials, uint32_t size, uint64_t shape, uint64_t seed)
{
	struct harness_params p = tree_params(initials, size, (enum loom__shape)(shape % SHAPES), seed);
	p.sched = s->sched;
	p.sched_opts = s->opts;
	p.term = s->term;
	p.workers = s->workers;
	p.lanes = s->lanes;
	p.noncoherent = s->noncoherent > 0;
	p.second_kind = s->gpu ? LOOM_ON_GPU : 0;
	struct harness *h = harness_must(&p);
	CU_ASSERT_EQUAL(run_tree(h, size), 0);
	CU_ASSERT_EQUAL(run_tree(h, size), 0);
	uint64_t stolen = harness_sum(h).stolen_in;
	harness_close(h);
	return stolen;
}

TEST(seeds)
{
	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		uint32_t size = SIZE + (uint32_t)(loom__mix64(seed) % 100);
		uint32_t initials = 1 + (uint32_t)(seed % 3 == 0 ? loom__mix64(seed) % size : seed % 2);
		grow(&setups[seed % COUNT(setups)], initials, size, seed / COUNT(setups), seed);
	}
}

TEST(lanes)
{
	for (uint64_t seed = 0; seed < SEEDS / 26; seed++)
		grow(&lane_setups[seed % COUNT(lane_setups)], seed % 3 ? 1 : 20, 150, seed / COUNT(lane_setups), seed);
}

TEST(noncoherent)
{
	uint64_t crossed = 0;
	for (uint64_t seed = 0; seed < SEEDS / 2; seed++) {
		const struct setup *s = &noncoherent_setups[seed % COUNT(noncoherent_setups)];
		uint32_t size = SIZE + (uint32_t)(loom__mix64(seed) % 100);
		crossed += grow(s, s->noncoherent, size, seed / COUNT(noncoherent_setups), seed);
	}
	CU_ASSERT_TRUE(crossed > 0);
}

/* Runs 5,000 tasks on one worker and returns the counters, which show what the worker does when its queues overflow. */
static struct loom_counters ladder(const char *sched, const char *opts, enum loom__shape shape,
				   int expect)
{
	struct harness *h = open_tree(sched, opts, 1, 1, 1, 5000, shape, 7);
	CU_ASSERT_EQUAL(run_tree(h, 5000), expect);
	struct loom_counters sum = harness_sum(h);
	harness_close(h);
	return sum;
}

TEST(mgws_overflow)
{
	struct loom_counters n = ladder("sched_mgws", "", CHAIN, 0);
	CU_ASSERT_TRUE(n.in_place == 0 && n.overflowed == 0);
	n = ladder("sched_mgws", "local_queue=8 public_queue=8", STAR, 0);
	CU_ASSERT_TRUE(n.published > 0 && n.acquired > 0 && n.in_place > 4900 && n.overflowed == 0);
	n = ladder("sched_mgws", "local_queue=8 public_queue=8 in_place_depth=0", STAR, 0);
	CU_ASSERT_TRUE(n.in_place == 0 && n.overflowed > 4900 && n.refilled == n.overflowed);
	n = ladder("sched_mgws", "local_queue=2 public_queue=1 in_place_depth=2", RANDOM, 0);
	CU_ASSERT_TRUE(n.in_place > 0 && n.overflowed > 0 && n.refilled == n.overflowed);
	n = ladder("sched_mgws", "local_queue=8 public_queue=8 in_place_depth=0 overflow_list=10", STAR,
		   LOOM_EFULL);
	CU_ASSERT_EQUAL(n.overflowed, 10);
	ladder("sched_mgws", "local_queue=8 public_queue=8 in_place_depth=0 overflow_list=0", STAR,
	       LOOM_EFULL);
}

/* With claim = queues, a claim fills half of the local queue and the whole public queue. A worker gets each of its
 * other tasks from its public queue. */
TEST(mgws_claim_queues)
{
	static const char *const opts[] = {"local_queue=8 public_queue=16 claim=queues", "local_queue=8 public_queue=16"};
	for (uint32_t lanes = 1; lanes <= 3; lanes += 2)
		for (size_t i = 0; i < COUNT(opts); i++) {
			/* 60 tasks that spawn nothing, in claims of 4 + 16 */
			struct harness *h = open_tree("sched_mgws", opts[i], 1, lanes, 60, 60, STAR, 7);
			CU_ASSERT_EQUAL(run_tree(h, 60), 0);
			struct loom_counters n = harness_sum(h);
			harness_close(h);
			CU_ASSERT_EQUAL(n.claimed, 60);
			CU_ASSERT_EQUAL(n.acquired, n.published);
			/* By default the only worker publishes at most a few tasks of each claim. */
			CU_ASSERT_TRUE(i ? n.published < 48 : n.published >= 48);
		}
}

TEST(static_overflow)
{
	struct loom_counters n = ladder("sched_static", "", CHAIN, 0);
	CU_ASSERT_TRUE(n.in_place == 0 && n.overflowed == 0);
	n = ladder("sched_static", "local_queue=8", STAR, 0);
	CU_ASSERT_TRUE(n.in_place > 4900 && n.overflowed == 0);
	n = ladder("sched_static", "local_queue=8 in_place_depth=0", STAR, 0);
	CU_ASSERT_TRUE(n.in_place == 0 && n.overflowed > 4900 && n.refilled == n.overflowed);
	ladder("sched_static", "local_queue=8 in_place_depth=0 overflow_list=9", STAR, LOOM_EFULL);
}

/* Counters show the tasks that are put into the pool and taken from it. If the pool is full, a task stays with the
 * worker that spawned it. */
TEST(pool)
{
	static const char *const scheds[] = {"sched_counter", "sched_plan"};
	for (size_t i = 0; i < COUNT(scheds); i++) {
		struct loom_counters n = ladder(scheds[i], "", STAR, 0);
		CU_ASSERT_TRUE(n.published == 4999 && n.acquired == 4999 && n.in_place == 0);
		n = ladder(scheds[i], "pool=100 local_queue=8", STAR, 0);
		CU_ASSERT_TRUE(n.published == 100 && n.acquired == 100 && n.in_place > 4800);
		n = ladder(scheds[i], "pool=0 local_queue=8 in_place_depth=0", STAR, 0);
		CU_ASSERT_TRUE(n.published == 0 && n.overflowed > 4900 && n.refilled == n.overflowed);
		ladder(scheds[i], "pool=7 local_queue=8 in_place_depth=0 overflow_list=9", STAR, LOOM_EFULL);
	}
}

/* A failing worker ends the other workers, whatever they do. */
TEST(full_stops_all)
{
	struct harness *h =
		open_tree("sched_mgws", "local_queue=2 public_queue=1 in_place_depth=0 overflow_list=4", 4,
			  1, 1, 5000, STAR, 3);
	CU_ASSERT_EQUAL(run_tree(h, 5000), LOOM_EFULL);
	harness_close(h);
	h = open_tree("sched_static", "local_queue=2 in_place_depth=0 overflow_list=8", 2, 4, 4, 5000, STAR,
		      3);
	CU_ASSERT_EQUAL(run_tree(h, 5000), LOOM_EFULL);
	harness_close(h);
	/* If each lane runs a task of its own, lanes cannot wait for the host. If all lanes of a worker run one task
	 * together, the worker can wait. */
	h = open_tree("sched_host", "returns=16 granularity=lane", 2, 4, 1, 5000, STAR, 3);
	CU_ASSERT_EQUAL(run_tree(h, 5000), LOOM_EFULL);
	harness_close(h);
	h = open_tree("sched_host", "returns=16", 2, 4, 1, 500, STAR, 3);
	CU_ASSERT_EQUAL(run_tree(h, 500), 0);
	harness_close(h);
}

/* A static split is contiguous, and shares differ by at most one task. */
TEST(static_shares)
{
	struct harness *h = open_tree("sched_static", "", 4, 1, 10, 10, STAR, 1);
	CU_ASSERT_EQUAL(run_tree(h, 10), 0);
	for (uint32_t w = 0; w < 4; w++)
		CU_ASSERT_EQUAL(h->rig.counters[w].executed, w < 2 ? 3 : 2);
	harness_close(h);
}

/* Without costs, the lists of sched_plan are the same shares as a static split. sched_counter hands out all tasks. */
TEST(counter_and_plan_shares)
{
	struct harness *h = open_tree("sched_plan", "steal=none", 4, 1, 10, 10, STAR, 1);
	CU_ASSERT_EQUAL(run_tree(h, 10), 0);
	for (uint32_t w = 0; w < 4; w++)
		CU_ASSERT_TRUE(h->rig.counters[w].executed == (w < 2 ? 3 : 2) && h->rig.counters[w].stolen_out == 0);
	harness_close(h);
	h = open_tree("sched_counter", "chunk=4", 3, 1, 10, 10, STAR, 1);
	CU_ASSERT_EQUAL(run_tree(h, 10), 0);
	CU_ASSERT_EQUAL(harness_sum(h).claimed, 10);
	harness_close(h);
}

TEST(steals_happen)
{
	uint64_t stolen = 0;
	/* On a busy machine, one worker often ends before the next one starts. */
	for (int i = 0; i < 5000 && !stolen; i++) {
		struct harness *h = open_tree("sched_mgws", "", 4, 1, 1, MOST, BINARY, 1);
		CU_ASSERT_EQUAL(run_tree(h, MOST), 0);
		struct loom_counters n = harness_sum(h);
		CU_ASSERT_TRUE(n.steals <= n.stolen_in && n.steals <= n.steal_attempts);
		stolen = n.stolen_in;
		harness_close(h);
	}
	CU_ASSERT_TRUE(stolen > 0);
}

TEST(refusals)
{
	static const char *const wrong[][3] = {{"sched_mgws", "local_queue=3", "power of two"},
					       {"sched_mgws", "backlog=3", "power of two"},
					       {"sched_mgws", "owners=3", "1, 2 or 4"},
					       {"sched_static", "local_queue=33", "power of two"},
					       {"sched_counter", "local_queue=33", "power of two"},
					       {"sched_plan", "local_queue=33", "power of two"},
					       {"sched_host", "batch=3", "power of two"}};
	for (size_t i = 0; i < COUNT(wrong); i++)
		harness_refused(&(struct harness_params){.sched = wrong[i][0], .sched_opts = wrong[i][1], .workers = 1},
				LOOM_EINVAL, wrong[i][2]);
	/* A GPU needs two workers, because its only worker would have to run tasks and be the proxy worker. */
	harness_refused(
	    &(struct harness_params){
		.term = "term_hcounter", .noncoherent = 1, .second_kind = LOOM_ON_GPU, .workers = 2},
	    LOOM_ENOTSUP, "needs two");
	harness_refused(&(struct harness_params){.sched = "sched_counter", .term = "term_hcounter", .noncoherent = 1, .workers = 2},
			LOOM_ENOTSUP, "cannot add to the same word");
	harness_refused(&(struct harness_params){.sched = "sched_plan", .second_kind = LOOM_ON_GPU, .workers = 2},
			LOOM_ENOTSUP, "devices of one kind");
}

/* Words that all workers of one device poll are in the memory of this device, and not in host memory. */
TEST(places)
{
	struct harness_params p = {.task = tasks, .tasks = 2, .workers = 1};
	struct harness *h = harness_must(&p);
	CU_ASSERT_EQUAL(h->rig.part[LOOM_SCHED].need.global_place, LOOM_PLACE_DEVICE);
	CU_ASSERT_EQUAL(h->rig.part[LOOM_TERM].need.global_place, LOOM_PLACE_DEVICE);
	harness_close(h);
	p.workers = 4;
	p.noncoherent = 1;
	p.term = "term_hcounter";
	h = harness_must(&p);
	CU_ASSERT_EQUAL(h->rig.part[LOOM_SCHED].need.device_place, LOOM_PLACE_DEVICE);
	CU_ASSERT_EQUAL(h->rig.part[LOOM_TERM].need.device_place, LOOM_PLACE_DEVICE);
	CU_ASSERT_EQUAL(h->rig.part[LOOM_SCHED].need.global_place, LOOM_PLACE_ANY); /* the mailboxes */
	harness_close(h);
}

/* A task with an unregistered tag ends the run with an error. The tag must not be used as an index. */
TEST(unknown_tag)
{
	static const char *const scheds[] = {"sched_mgws", "sched_static", "sched_host", "sched_counter", "sched_plan"};
	const struct loom_task initial = {.tag = 7};
	for (size_t i = 0; i < COUNT(scheds); i++) {
		struct loom_error err = {0};
		struct harness *h = harness_must(&(struct harness_params){.sched = scheds[i],
									  .task = tasks,
									  .tasks = 2,
									  .initial = &initial,
									  .initials = 1,
									  .workers = 2,
									  .seed = 1});
		CU_ASSERT_EQUAL(harness_run(h, &err), LOOM_ENOENT);
		CU_ASSERT_EQUAL(h->rig.ctl->failed_info, 7);
		harness_close(h);
	}
}

TEST_MAIN("sched", 120)
