/* SPDX-License-Identifier: Apache-2.0 */
/* Runs task trees under the schedule explorer. The test compiles the real device code of a scheduler and a detector,
 * with fields so narrow that they wrap within a run. */
#ifndef LOOM_TEST_TURNS_TREE_H
#define LOOM_TEST_TURNS_TREE_H

#define MGWS_ATTEMPT_BITS 3 /* the counter of attempts wraps after 8 attempts */
#define MGWS_COUNT_BITS   5
/* A pool has as many slots as the ring, although the plug-in's host half allocates four times as many. With rings of up
 * to 4 slots, the layout is the same. */
#define MGWS_POOL_SLOTS(public_queue) (public_queue)

#include "turns.h"

#include "ranks.h"
#include "lib/random.h"

#include "../plugins/sched_mgws/sched_mgws.dev.h"
#include "../plugins/term/term_counter.dev.h"
#include "../plugins/term/term_hcounter.dev.h"
#include "../plugins/term/term_tree.dev.h"

static uint64_t turns_first, turns_count; /* the seeds of turns_games(), if turns_count is not 0 */
/* The test defines these functions. turns_explore() runs a schedule, and returns NULL or the fault in words.
 * turns_ended() is called when a detector has reported the end to a worker. */
static const char *turns_explore(uint32_t n, void (*body)(uint32_t), uint64_t seed, uint64_t length);
static void turns_ended(void);

static const struct loom_sched_dev turns_sched = {
    .size = sizeof(turns_sched), .run = sched_mgws_run, .spawn = sched_mgws_spawn, .wanted = sched_mgws_wanted};
#define TURNS_DONE(name)                                                                                               \
	static int turns_##name##_done(struct loom_ctx *c, uint64_t stolen_out)                                        \
	{                                                                                                              \
		int done = name##_done(c, stolen_out);                                                                 \
		if (done)                                                                                              \
			turns_ended();                                                                                 \
		return done;                                                                                           \
	}
TURNS_DONE(term_counter)
TURNS_DONE(term_hcounter)
TURNS_DONE(term_tree)
#define TURNS_TERM(name, f)                                                                                            \
	{                                                                                                              \
#name,                                                                                                 \
		{                                                                                                      \
			.size = sizeof(struct loom_term_dev), .idle = name##_idle, .busy = name##_busy,                \
			.done = turns_##name##_done, .flags = f                                                        \
		}                                                                                                      \
	}
static const struct {
	const char *name;
	struct loom_term_dev dev;
} turns_term[] = {
    TURNS_TERM(term_counter, LOOM_TERM_MAY_SLEEP),
    TURNS_TERM(term_hcounter, LOOM_TERM_MAY_SLEEP),
    TURNS_TERM(term_tree, 0),
};

/* Returns the number of schedules per setup. */
static __attribute__((unused)) uint64_t test_turns(void)
{
	const char *games = getenv("TURNS_GAMES");
	return getenv("TURNS_SEED") ? 1 : games ? strtoull(games, NULL, 0) : 100;
}

struct turns_setup {
	const char *opts;
	uint32_t workers, initials, size;
	enum loom__shape shape;
	enum { TOGETHER, ALONE, TWO_CPUS, CPU_AND_GPU } noncoherent; /* ALONE: one device; from TWO_CPUS on, the two devices are non-coherent */
};

static struct ranks turns_ranks; /* the ranks of the current schedule, or one rank if tasks are not shared */

static void turns_worker(uint32_t i)
{
	uint32_t r = 0;
	for (; i >= turns_ranks.h[r]->p.workers; r++)
		i -= turns_ranks.h[r]->p.workers;
	turns_ranks.h[r]->rig.ctx[i].sched->run(&turns_ranks.h[r]->rig.ctx[i]);
}

/* Runs one schedule. Returns 0, or a code and the failure in *err. */
static int turns_game(uint32_t size, uint64_t seed, struct loom_error *err)
{
	uint32_t workers = 0;
	ranks_init(&turns_ranks);
	for (uint32_t r = 0; r < turns_ranks.n; r++)
		for (uint32_t w = 0; w < turns_ranks.h[r]->p.workers; w++, workers++) {
			turns_ranks.h[r]->rig.ctx[w].flags = 0;
			turns_ranks.h[r]->rig.ctx[w].random = loom__mix64(seed * 8 + workers + 1) | 1;
		}
	const char *fault = turns_explore(workers, turns_worker, seed, 60 * size);
	if (fault)
		return LOOM_FAIL(&fake_host, err, LOOM_ETIMEDOUT, "%s after %llu steps", fault,
				 (unsigned long long)loom__explore_steps());
	return ranks_check(&turns_ranks, size, err);
}

/* Explores schedules of turns_ranks up to the first failure, whose seed and setup it reports. Then closes
 * turns_ranks. */
static void turns_games(uint32_t size, const char *what, const char *opts, enum loom__shape shape)
{
	struct loom_error err = {0};
	const char *only = getenv("TURNS_SEED");
	uint64_t first = only ? strtoull(only, NULL, 0) : turns_first, seed = first;
	int rc = 0;
	for (; seed < first + (turns_count ? turns_count : test_turns()) && !rc; seed += !rc)
		rc = turns_game(size, seed, &err);
	if (rc)
		fprintf(stderr, "%s, %s, %u workers, %u ranks, shape %d: seed %llu: %s (repeat: TURNS_SEED=%llu)\n",
			what, opts, turns_ranks.h[0]->p.workers, turns_ranks.n, (int)shape, (unsigned long long)seed,
			err.text, (unsigned long long)seed);
	CU_ASSERT_EQUAL(rc, 0);
	ranks_close(&turns_ranks);
	if (rc && getenv("TURNS_STOP")) /* mutation testing needs only the first failure */
		exit(1);
}

/* Returns the parameters of trees with the device code of this program. */
static struct harness_params turns_params(size_t term, const char *opts, uint32_t initials, uint32_t size,
					  enum loom__shape shape)
{
	struct harness_params p = tree_params(initials, size, shape, 1);
	p.sched_opts = opts;
	p.term = turns_term[term].name;
	p.sched_dev = &turns_sched;
	p.term_dev = &turns_term[term].dev;
	return p;
}

#endif
