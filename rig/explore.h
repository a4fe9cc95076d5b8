/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule explorer: all workers are fibers of one thread, and at every atomic access (LOOM_YIELD) the explorer
 * chooses from a seed which of them runs on. A failure repeats from its seed.
 *
 * LOOM__EXPLORE_RANDOM: at each access another worker may run. LOOM__EXPLORE_PCT: by priorities, see
 * plugins/shared/explore/pct.h. A worker that waits (pause) gets the lowest priority. */
#ifndef LOOM_RIG_EXPLORE_H
#define LOOM_RIG_EXPLORE_H

#include <stdint.h>

enum { LOOM__EXPLORE_MAX = 64 };
enum loom__explore_mode { LOOM__EXPLORE_RANDOM, LOOM__EXPLORE_PCT };

/* Runs body(0) .. body(n - 1) to the end: 0, or -1 after `limit` accesses (a livelock) or when all that are left sleep
 * (a deadlock). `length`: how many accesses are expected; change points are drawn from these. */
int loom__explore(uint32_t n, void (*body)(uint32_t), enum loom__explore_mode mode, uint64_t seed, uint64_t length,
		  uint64_t limit);
/* Accesses of the schedule in progress. */
uint64_t loom__explore_steps(void);

/* For bodies; outside of loom__explore() they do nothing. A sleep has no spurious wake-ups: a lost one is a
 * deadlock. */
void loom__explore_yield(void);
void loom__explore_pause(void);
void loom__explore_sleep(uint32_t *word, uint32_t seen);
void loom__explore_wake(uint32_t *word, uint32_t most);

#endif
