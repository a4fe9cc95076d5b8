/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the code of sched_mgws, sched_counter, sched_plan, the detectors and the collectives of CPUs under thousands of
 * schedules with the machine model of docs/races.md. Every task must run once, no worker may leave early or sleep
 * forever, and no schedule may have a data race, or a wrong result because of a stale load. Then weakens each memory
 * order, one at a time, and expects to notice it. TURNS_SEED=n runs one schedule of each setup; RACES_SITES=1 prints a
 * line for each order. */
#include "races.h"

/* Each task writes a plain word. All workers read these words after their detector has reported the end, so an order
 * that is missing there is a race. */
static uint32_t races_noted[64];
#define TREE_NOTE(t) (races_noted[(t)->param[0] % COUNT(races_noted)] = 1)
#include "turns_tree.h"

#include "../plugins/sched_counter/sched_counter.dev.h"
#include "../plugins/sched_plan/sched_plan.dev.h"

#include "races_weaken.h"
#include "races_comm.h"

static const char *turns_explore(uint32_t n, void (*body)(uint32_t), uint64_t seed, uint64_t length)
{
	uint8_t device[RACE_FIBERS] = {0};
	uint32_t all = 0;
	/* Ranks access each other by RMA only if their devices are CPUs, on which all scopes mean the same. */
	int rma = turns_ranks.h[0]->p.trigger_dev != NULL;
	for (uint32_t r = 0; r < turns_ranks.n; r++)
		for (uint32_t w = 0; w < turns_ranks.h[r]->p.workers; w++)
			device[all++] = rma ? 0 : (uint8_t)(2 * r + turns_ranks.h[r]->rig.ctx[w].device);
	return races_run(n, device, body, seed, length);
}

static void turns_ended(void)
{
	uint32_t sum = 0;
	for (uint32_t i = 0; i < COUNT(races_noted); i++)
		sum += races_noted[i];
	if (sum > COUNT(races_noted))
		abort();
}

/* With spin = 0 a worker without tasks sleeps at once, so the schedule does not depend on the clock. */
#define PARK " wait=sleep spin=0"

static const struct turns_setup setups[] = {
    {"local_queue=2 public_queue=4" PARK, 4, 1, 24, BINARY, 0},
    {"local_queue=2 public_queue=4" PARK, 3, 1, 24, BINARY, ALONE},
    {"local_queue=2 public_queue=4" PARK, 4, 1, 24, STAR, 0},
    {"local_queue=2 public_queue=4" PARK, 3, 3, 20, RANDOM, 0},
    {"local_queue=2 public_queue=4 attempts=damping" PARK, 5, 1, 40, STAR, 0},
    {"local_queue=2 public_queue=2 in_place_depth=0 victim=neighbour" PARK, 3, 1, 16, STAR, 0},
    {"local_queue=2 public_queue=1 in_place_depth=0" PARK, 2, 1, 10, STAR, 0},
    {"local_queue=2 public_queue=2 in_place_depth=0 backlog=4" PARK, 3, 1, 24, STAR, 0},
    {"local_queue=4 public_queue=1 in_place_depth=0 backlog=2" PARK, 3, 3, 20, RANDOM, 0},
    {"local_queue=2 public_queue=4 owners=2" PARK, 4, 1, 24, BINARY, 0},
    {"local_queue=2 public_queue=4 owners=4 attempts=damping" PARK, 5, 1, 24, STAR, 0},
    {"local_queue=2 public_queue=4 owners=2 in_place_depth=0" PARK, 3, 2, 20, COMB, 0},
    {"local_queue=2 public_queue=4 transfer=id" PARK, 4, 1, 24, BINARY, 0},
    {"local_queue=2 public_queue=4 transfer=id in_place_depth=1" PARK, 4, 1, 40, STAR, 0},
    {"local_queue=2 public_queue=4 transfer=id owners=2" PARK, 4, 6, 24, STAR, 0},
    {"local_queue=2 public_queue=2 transfer=id in_place_depth=1" PARK, 3, 1, 20, RANDOM, 0},
    {"local_queue=2 public_queue=4" PARK, 4, 1, 24, LAZY, 0},
    {"local_queue=2 public_queue=1 in_place_depth=0" PARK, 3, 2, 20, LAZY, 0},
    {"local_queue=2 public_queue=4 owners=2 transfer=id" PARK, 4, 1, 24, LAZY, 0},
    /* If no worker sleeps, tasks stay longer with the workers that spawned them. So more tasks overflow or are left
     * to co-owners. */
    {"local_queue=2 public_queue=1 in_place_depth=0 wait=spin", 2, 1, 10, STAR, 0},
    {"local_queue=2 public_queue=2 in_place_depth=0 victim=neighbour wait=spin", 3, 1, 16, STAR, 0},
    {"local_queue=2 public_queue=4 owners=2 wait=spin", 4, 1, 24, BINARY, 0},
    {"local_queue=2 public_queue=4 owners=2 in_place_depth=0 wait=yield", 3, 2, 20, COMB, 0},
    {"local_queue=2 public_queue=4 victim=biased bias=0.5 claim=fixed claim_size=2" PARK, 4, 12, 24, COMB, 0},
    {"local_queue=4 public_queue=2 claim=queues" PARK, 3, 16, 24, RANDOM, 0},
    {"local_queue=2 public_queue=4 claim=queues owners=2 wait=spin", 4, 20, 24, STAR, 0},
    {"local_queue=2 public_queue=2 claim=queues transfer=id in_place_depth=0" PARK, 3, 12, 24, CHAIN, 0},
};

/* Two devices exchange tasks through mailboxes. */
static const struct turns_setup noncoherent_setups[] = {
    {"local_queue=2 public_queue=4" PARK, 2, 1, 24, BINARY, TWO_CPUS},
    {"local_queue=4 public_queue=4" PARK, 4, 1, 30, STAR, TWO_CPUS},
    {"local_queue=4 public_queue=4" PARK, 3, 16, 24, COMB, TWO_CPUS},
    {"local_queue=4 public_queue=2 claim=fixed claim_size=1" PARK, 4, 24, 24, CHAIN, TWO_CPUS},
    {"local_queue=2 public_queue=4 transfer=id" PARK, 4, 2, 30, RANDOM, TWO_CPUS},
    {"local_queue=4 public_queue=2 claim=queues" PARK, 4, 24, 24, COMB, TWO_CPUS},
    {"local_queue=2 public_queue=4 owners=2 victim=neighbour" PARK, 5, 3, 24, BINARY, TWO_CPUS},
    {"local_queue=2 public_queue=2 in_place_depth=0" PARK, 3, 2, 20, STAR, TWO_CPUS},
    {"local_queue=4 public_queue=4 wait=spin", 4, 9, 40, RANDOM, TWO_CPUS},
    {"local_queue=4 public_queue=4 victim=none wait=spin", 4, 9, 40, BINARY, TWO_CPUS},
    {"local_queue=8 public_queue=4 wait=yield", 2, 2, 40, STAR, TWO_CPUS},
    {"local_queue=4 public_queue=1 in_place_depth=0 backlog=4" PARK, 3, 3, 24, RANDOM, TWO_CPUS},
    {"local_queue=4 public_queue=4" PARK, 4, 2, 30, LAZY, TWO_CPUS},
    /* One worker of the GPU is a proxy worker. */
    {"local_queue=2 public_queue=4" PARK, 4, 1, 30, BINARY, CPU_AND_GPU},
    {"local_queue=4 public_queue=4 wait=spin", 4, 9, 40, RANDOM, CPU_AND_GPU},
    {"local_queue=4 public_queue=2 owners=2" PARK, 6, 24, 24, COMB, CPU_AND_GPU},
    {"local_queue=4 public_queue=4 transfer=id" PARK, 5, 2, 40, STAR, CPU_AND_GPU},
    {"local_queue=2 public_queue=1 in_place_depth=0 backlog=4" PARK, 4, 3, 30, LAZY, CPU_AND_GPU},
};

/* Setups of ranks that share tasks and access each other's memory. */
static const struct ranks_setup {
	const char *opts;
	uint32_t n, workers[RANKS_MOST], initials, size;
	enum loom__shape shape;
	int rma;     /* 1 if ranks access each other's memory by RMA, 0 for loads and stores */
	size_t term; /* the index of the detector in turns_term */
} ranks_setups[] = {
    {"local_queue=2 public_queue=4" PARK, 2, {1, 1}, 1, 24, BINARY, 0, 1},
    {"local_queue=2 public_queue=4" PARK, 2, {1, 1}, 12, 24, STAR, 0, 1},
    {"local_queue=2 public_queue=4" PARK, 3, {1, 1, 1}, 1, 24, STAR, 0, 1},
    {"local_queue=2 public_queue=4" PARK, 2, {2, 1}, 2, 24, COMB, 0, 1},
    {"local_queue=2 public_queue=2 in_place_depth=0" PARK, 2, {1, 2}, 1, 16, STAR, 0, 1},
    {"local_queue=2 public_queue=4 claim=fixed claim_size=2 attempts=damping" PARK, 3, {1, 2, 1}, 9, 24, RANDOM, 0, 1},
    {"local_queue=2 public_queue=1 in_place_depth=0 backlog=4 victim=neighbour" PARK,
     3,
     {1, 1, 1},
     1,
     20,
     RANDOM,
     0,
     1},
    {"local_queue=2 public_queue=4" PARK, 4, {1, 1, 1, 1}, 1, 24, STAR, 0, 1},
    {"local_queue=2 public_queue=2 in_place_depth=0" PARK, 4, {1, 1, 1, 1}, 1, 12, COMB, 0, 1},
    {"local_queue=2 public_queue=4 victim=local" PARK, 2, {2, 2}, 6, 24, BINARY, 0, 1},
    {"local_queue=2 public_queue=4" PARK, 2, {1, 1}, 1, 24, LAZY, 0, 1},
    {"local_queue=2 public_queue=4 wait=spin", 2, {2, 2}, 1, 24, BINARY, 0, 1},
    {"local_queue=4 public_queue=4 wait=yield victim=biased", 4, {1, 1, 1, 1}, 3, 30, LAZY, 0, 2},
    {"local_queue=2 public_queue=4 wait=spin", 2, {1, 1}, 1, 24, BINARY, 1, 1},
    {"local_queue=2 public_queue=4 wait=spin", 3, {1, 1, 1}, 9, 24, STAR, 1, 1},
    {"local_queue=2 public_queue=2 in_place_depth=0 wait=yield", 3, {1, 2, 1}, 2, 24, RANDOM, 1, 1},
    {"local_queue=2 public_queue=4 wait=spin", 3, {1, 1, 1}, 9, 24, STAR, 1, 2},
    {"local_queue=2 public_queue=2 wait=yield", 4, {1, 1, 1, 1}, 1, 16, COMB, 1, 2},
};

static void play_one(const struct turns_setup *s, size_t term)
{
	struct harness_params p = turns_params(term, s->opts, s->initials, s->size, s->shape);
	p.workers = s->workers;
	p.noncoherent = s->noncoherent >= TWO_CPUS;
	p.one_device = s->noncoherent == ALONE;
	p.second_kind = s->noncoherent == CPU_AND_GPU ? LOOM_ON_GPU : 0;
	turns_ranks = (struct ranks){.n = 1, .h = {harness_must(&p)}};
	turns_games(s->size, turns_term[term].name, s->opts, s->shape);
}

static void play(size_t term)
{
	for (size_t i = 0; i < COUNT(setups); i++)
		play_one(&setups[i], term);
	for (size_t i = 0; term && i < COUNT(noncoherent_setups); i++)
		play_one(&noncoherent_setups[i], term);
}

TEST(counter)
{
	play(0);
}

TEST(hcounter)
{
	play(1);
}

TEST(tree)
{
	play(2);
}

TEST(ranks)
{
	uint64_t crossed = 0;
	for (size_t i = 0; i < COUNT(ranks_setups); i++) {
		const struct ranks_setup *s = &ranks_setups[i];
		struct harness_params p = turns_params(s->term, s->opts, s->initials, s->size, s->shape);
		p.trigger_dev = s->rma ? &ranks_network : NULL;
		ranks_open(&turns_ranks, &p, s->n, s->workers);
		turns_games(s->size, "ranks", s->opts, s->shape);
		crossed += turns_ranks.crossed;
	}
	CU_ASSERT_TRUE(crossed > 0 || test_turns() == 1);
}

/* Some tasks have lists for themselves. */
static uint64_t races_cost(struct loom_ctx *c, const struct loom_task *t)
{
	(void)c;
	return t->param[0] % 5 ? 1 + t->param[0] % 3 : 1000;
}

/* Tests the schedulers that keep spawned tasks in a pool. */
TEST(pools)
{
	static const struct loom_sched_dev counter = {sizeof(counter), sched_counter_run, sched_counter_spawn,
						      sched_counter_wanted, NULL};
	static const struct loom_sched_dev plan = {sizeof(plan), sched_plan_run, sched_plan_spawn, sched_plan_wanted,
						   NULL};
	static const struct loom_workload_dev costly = {.size = sizeof(costly), .cost = races_cost};
	static const struct {
		const char *name;
		const struct loom_sched_dev *dev;
		struct turns_setup s;
	} pools[] = {
	    {"sched_counter", &counter, {PARK, 3, 1, 24, BINARY, 0}},
	    {"sched_counter", &counter, {"pool=6 local_queue=2 in_place_depth=0" PARK, 4, 1, 20, STAR, 0}},
	    {"sched_counter", &counter, {"chunk=3 pool=20" PARK, 3, 7, 30, RANDOM, 0}},
	    {"sched_counter", &counter, {"pool=4 wait=spin", 3, 2, 24, LAZY, 0}},
	    {"sched_plan", &plan, {"costs=equal" PARK, 3, 9, 24, COMB, 0}},
	    {"sched_plan", &plan, {"costs=equal pool=5" PARK, 4, 6, 24, STAR, 0}},
	    {"sched_plan", &plan, {"costs=equal wait=yield", 2, 12, 24, BINARY, 0}},
	    {"sched_plan", &plan, {"costs=declared" PARK, 3, 9, 12, RANDOM, 0}},
	    {"sched_plan", &plan, {"costs=declared" PARK, 4, 14, 20, COMB, TWO_CPUS}},
	    {"sched_plan", &plan, {"costs=equal" PARK, 4, 20, 30, RANDOM, TWO_CPUS}},
	};
	for (size_t i = 0; i < COUNT(pools) * COUNT(turns_term); i++) {
		const struct turns_setup *s = &pools[i % COUNT(pools)].s;
		size_t term = i / COUNT(pools);
		struct harness_params p = turns_params(term, s->opts, s->initials, s->size, s->shape);
		if (s->noncoherent && !term) /* term_counter needs one word that both devices change */
			continue;
		p.sched = pools[i % COUNT(pools)].name;
		p.sched_dev = pools[i % COUNT(pools)].dev;
		p.workers = s->workers;
		p.noncoherent = s->noncoherent >= TWO_CPUS;
		p.costs = LOOM_COSTS_OF_WORKLOAD;
		p.workload_dev = &costly;
		turns_ranks = (struct ranks){.n = 1, .h = {harness_must(&p)}};
		turns_games(s->size, p.sched, s->opts, s->shape);
	}
}

/* Explores collectives of CPUs. Each rank is a device. */
static void races_collectives(uint64_t first, uint64_t count)
{
	static const uint8_t device[] = {0, 1, 2};
	for (uint64_t seed = first; seed < first + count; seed++) {
		comm_begin(2 + seed / 2 % 2, 1);
		const char *fault = races_run(comm.ranks, device, comm_body, seed, 600);
		CU_ASSERT_PTR_NULL(fault);
		if (fault)
			fprintf(stderr, "collectives, seed %llu: %s\n", (unsigned long long)seed, fault);
		if (fault && getenv("TURNS_STOP"))
			exit(1);
	}
}

TEST(collectives)
{
	races_collectives(0, 200);
}

/* Explores more schedules of each setup each time, because most faults show soon in some setup. */
static void races_explore_more(void)
{
	static void (*const run[])(void) = {test_counter, test_hcounter, test_tree, test_ranks, test_pools};
	setenv("TURNS_STOP", "1", 1);
	for (turns_count = 5, turns_first = 0; turns_first < 155; turns_first += turns_count, turns_count *= 2)
		for (size_t i = 0; i < COUNT(run); i++)
			run[i]();
	races_collectives(0, 200);
}

TEST(weakened)
{
	/* Superfluous: the taker of a lock releases nothing by taking it. term_counter: a worker that calls busy()
	 * calls idle() later, which releases, and done() acquires. term_hcounter: the same; and a worker sleeps only
	 * after the fence of eventcount_enter(). mailbox.dev.h: these loads use only the value of the word; the loads
	 * that pair with claims are those in mgws_range_moved() and mgws_proxy(). Open: docs/races.md. */
	static const struct races_known known[] = {
	    {"mgws_try_lock_queue", "cas_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"mgws_try_lock_list", "cas_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"mgws_try_lock", "cas_acq_rel_dev", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"term_counter_busy", "fetch_add_acq_rel_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"term_counter_busy", "fetch_add_acq_rel_sys", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"term_counter_idle", "fetch_add_acq_rel_sys", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"term_hcounter_busy", "fetch_add_acq_rel_dev", RACE_ACQUIRE, RACES_SUPERFLUOUS},
	    {"term_hcounter_busy", "fetch_add_acq_rel_dev", RACE_RELEASE, RACES_SUPERFLUOUS},
	    {"term_hcounter_busy", "load_acquire_dev", RACE_ACQUIRE, RACES_OPEN},
	    {"term_hcounter_busy", "fetch_add_release_dev", RACE_RELEASE, RACES_OPEN},
	    {"term_hcounter_idle", "fetch_add_acq_rel_dev", RACE_ACQUIRE, RACES_SUPERFLUOUS}, /* the cas follows */
	    {"term_hcounter_idle", "cas_acq_rel_dev", RACE_ACQUIRE, RACES_SUPERFLUOUS},       /* the add acquires */
	    {"term_hcounter_idle", "cas_acq_rel_dev", RACE_RELEASE, RACES_SUPERFLUOUS},       /* the add releases */
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
	    /* Ranks make equal calls, and none of them dies or closes. The trees have no joins; test_races_net runs
	       loom_last(). */
	    {"loom_comm_gives_up", "load_acquire_sys", RACE_ACQUIRE, RACES_UNREACHED},
	    {"loom_comm_announce", "store_release_sys", RACE_RELEASE, RACES_UNREACHED},
	    {"loom_comm_compare", "load_acquire_sys", RACE_ACQUIRE, RACES_UNREACHED},
	    {"loom_last", "fetch_add_acq_rel_sys", RACE_ACQUIRE, RACES_UNREACHED},
	    {"loom_last", "fetch_add_acq_rel_sys", RACE_RELEASE, RACES_UNREACHED},
	    {"loom_last", "load_acquire_sys", RACE_ACQUIRE, RACES_UNREACHED},
	};
	races_weaken(known, COUNT(known), races_explore_more);
}

TEST_MAIN("races", 120)
