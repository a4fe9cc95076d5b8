/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the real code of sched_mgws, sched_counter, sched_plan and the detectors under thousands of schedules that a
 * seed repeats. Every task must run once, and no worker may leave early or sleep forever. TURNS_SEED=n runs one
 * schedule of each setup. */
#include "turns_tree.h"

#include "../plugins/sched_counter/sched_counter.dev.h"
#include "../plugins/sched_plan/sched_plan.dev.h"

/* With spin = 0 a worker without tasks sleeps at once, so the schedule does not depend on the clock. */
#define PARK " wait=sleep spin=0"

static const struct turns_setup setups[] = {
	{"local_queue=2 public_queue=4" PARK, 4, 1, 24, BINARY, 0},
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
	{"local_queue=2 public_queue=4 victim=near" PARK, 4, 1, 24, STAR, 0},
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
	int rma; /* 1 if ranks access each other's memory by RMA, 0 for loads and stores */
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
	p.noncoherent = s->noncoherent != ONE_DEVICE;
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

/* Tests the schedulers that keep spawned tasks in a pool. */
TEST(pools)
{
	static const struct loom_sched_dev counter = {sizeof(counter), sched_counter_run, sched_counter_spawn,
						      sched_counter_wanted, NULL};
	static const struct loom_sched_dev plan = {sizeof(plan), sched_plan_run, sched_plan_spawn, sched_plan_wanted, NULL};
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
		p.noncoherent = s->noncoherent != ONE_DEVICE;
		turns_ranks = (struct ranks){.n = 1, .h = {harness_must(&p)}};
		turns_games(s->size, p.sched, s->opts, s->shape);
	}
}

TEST_MAIN("sched_deterministic", 120)
