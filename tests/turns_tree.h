/* SPDX-License-Identifier: Apache-2.0 */
/* Task trees under a schedule that the test plays: the real device code of a scheduler and a detector,
 * with fields so narrow that they wrap within a run. */
#ifndef LOOM_TEST_TURNS_TREE_H
#define LOOM_TEST_TURNS_TREE_H

#define MGWS_ATTEMPT_BITS 3 /* wraps after 8 attempts */
#define MGWS_COUNT_BITS 5
/* The plug-in's host half looks at the marks of four times as many: the same line, for rings of up to 4. */
#define MGWS_POOL_SLOTS(public_queue) (public_queue)

#include "turns.h"

#include "tree.h"

#include "../plugins/sched_mgws/sched_mgws.dev.h"
#include "../plugins/sched_mgws/term_counter.dev.h"
#include "../plugins/sched_mgws/term_hcounter.dev.h"
#include "../plugins/sched_mgws/term_tree.dev.h"

static const struct loom_sched_dev turns_sched = {
	.size = sizeof(turns_sched), .run = sched_mgws_run, .spawn = sched_mgws_spawn, .wanted = sched_mgws_wanted};
#define TURNS_TERM(name, f)                                                                        \
	{#name, {.size = sizeof(struct loom_term_dev), .idle = name##_idle, .busy = name##_busy,   \
		 .done = name##_done, .flags = f}}
static const struct {
	const char *name;
	struct loom_term_dev dev;
} turns_term[] = {
	TURNS_TERM(term_counter, LOOM_TERM_RESTS),
	TURNS_TERM(term_hcounter, LOOM_TERM_RESTS),
	TURNS_TERM(term_tree, 0),
};

/* Games per setup. */
static __attribute__((unused)) uint64_t test_turns(void)
{
	const char *wish = getenv("TURNS_GAMES");
	return getenv("TURNS_SEED") ? 1 : wish ? strtoull(wish, NULL, 0) : 100;
}

struct turns_setup {
	const char *opts;
	uint32_t workers, initials, size;
	enum loom__shape shape;
	enum { ONE_DEVICE, TWO_CPUS, CPU_AND_GPU } apart; /* two devices share no word that both change */
};

static struct harness *turns_harness; /* of the game in progress */

static void turns_worker(uint32_t i)
{
	turns_harness->rig.ctx[i].sched->run(&turns_harness->rig.ctx[i]);
}

/* One game: 0, or what went wrong is in *err. */
static int turns_game(struct harness *h, uint32_t size, enum loom__turns_mode mode, uint64_t seed,
		      struct loom_error *err)
{
	harness_init(h);
	tree_reset();
	for (uint32_t w = 0; w < h->p.workers; w++) {
		h->rig.ctx[w].flags = 0;
		h->rig.ctx[w].random = loom__mix(seed * 8 + w + 1) | 1;
	}
	turns_harness = h;
	if (loom__turns_play(h->p.workers, turns_worker, mode, seed, 60 * size, 400000))
		return LOOM_FAIL(&fake_host, err, LOOM_ETIMEDOUT, "stuck after %llu steps",
				 (unsigned long long)loom__turns_steps());
	int rc = harness_check(h, err);
	return rc ? rc : tree_check(size, 1, err);
}

/* Trees with the device code of this program. */
static struct harness_params turns_params(size_t term, const char *opts, uint32_t initials, uint32_t size,
					  enum loom__shape shape, uint64_t seed)
{
	struct harness_params p = tree_params(initials, size, shape, seed);
	p.sched_opts = opts;
	p.term = turns_term[term].name;
	p.sched_dev = &turns_sched;
	p.term_dev = &turns_term[term].dev;
	return p;
}

static struct harness *turns_open(const struct turns_setup *s, size_t term, uint64_t seed)
{
	struct harness_params p = turns_params(term, s->opts, s->initials, s->size, s->shape, seed);
	p.workers = s->workers;
	p.apart = s->apart != ONE_DEVICE;
	p.second_kind = s->apart == CPU_AND_GPU ? LOOM_ON_GPU : 0;
	return harness_must(&p);
}

/* Plays until something goes wrong or `games` are over: how many were right. Says which seed was wrong. */
static uint64_t turns_games(const struct turns_setup *s, size_t term, uint64_t games, int expect_wrong)
{
	struct harness *h = turns_open(s, term, 1);
	struct loom_error err = {0};
	const char *only = getenv("TURNS_SEED");
	uint64_t seed = only ? strtoull(only, NULL, 0) : 0, first = seed;
	int rc = 0;
	for (; seed < first + (only ? 1 : games); seed++) {
		rc = turns_game(h, s->size, seed & 1 ? LOOM__TURNS_PRIORITIES : LOOM__TURNS_RANDOM, seed, &err);
		if (rc)
			break;
	}
	if (rc && !expect_wrong)
		fprintf(stderr, "%s, %s, %u workers, shape %d: seed %llu: %s (repeat: TURNS_SEED=%llu)\n",
			turns_term[term].name, s->opts, s->workers, (int)s->shape,
			(unsigned long long)seed, err.text, (unsigned long long)seed);
	harness_close(h);
	if (rc && getenv("TURNS_STOP")) /* who spoils the code on purpose has seen enough */
		exit(1);
	return seed - first;
}

#endif
