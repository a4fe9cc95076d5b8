/* SPDX-License-Identifier: Apache-2.0 */
/* Takes control of the schedule: all workers run on one thread, each on a stack of its own, and a seeded
 * player decides at every atomic access (LOOM_YIELD) who goes on. A failure repeats from its seed.
 *
 * Two ways to play. Random: at each access another worker may go on. By priorities (Burckhardt et al.,
 * "A randomized scheduler with probabilistic guarantees of finding bugs"): the runnable worker of highest
 * priority runs, and at a few accesses drawn in advance the running one falls to the lowest; this finds
 * what needs few but ill-timed changes. Who waits for others (pause) falls behind them. */
#ifndef LOOM_RIG_TURNS_H
#define LOOM_RIG_TURNS_H

#include <stdint.h>

enum { LOOM__TURNS_MAX = 64 };
enum loom__turns_mode { LOOM__TURNS_RANDOM, LOOM__TURNS_PRIORITIES };

/* Plays body(0) .. body(n - 1) to the end: 0, or -1 when it got stuck after `limit` accesses or because
 * all that are left sleep. Some `length` accesses are to be expected. */
int loom__turns_play(uint32_t n, void (*body)(uint32_t), enum loom__turns_mode mode, uint64_t seed, uint64_t length,
		     uint64_t limit);
/* Of the game in progress. */
uint64_t loom__turns_steps(void);

/* What bodies call; outside of a game they do nothing. Sleeps never end for no reason: a lost wake-up is a stuck
 * game. */
void loom__turns_yield(void);
void loom__turns_pause(void);
void loom__turns_sleep(uint32_t *word, uint32_t seen);
void loom__turns_wake(uint32_t *word, uint32_t most);

#endif
