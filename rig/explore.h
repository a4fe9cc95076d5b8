/* SPDX-License-Identifier: Apache-2.0 */
/* A schedule explorer. All workers are fibers of one thread. At every atomic access (LOOM_YIELD) the explorer chooses
 * from a seed the fiber that continues. The same seed repeats a failure.
 *
 * With LOOM__EXPLORE_RANDOM, each access may switch to another worker. LOOM__EXPLORE_PCT switches by priorities
 * (plugins/device_common/explore/pct.h), and a worker that waits (pause) gets the lowest one. LOOM__EXPLORE_STARVE is
 * LOOM__EXPLORE_RANDOM, but one worker does not run for some time, as if an access took very long. */
#ifndef LOOM_RIG_EXPLORE_H
#define LOOM_RIG_EXPLORE_H

#include <stdint.h>

#ifndef LOOM__EXPLORE_MAX
#define LOOM__EXPLORE_MAX 64
#endif
enum loom__explore_mode { LOOM__EXPLORE_RANDOM, LOOM__EXPLORE_PCT, LOOM__EXPLORE_STARVE };

/* Runs body(0) .. body(n - 1) to the end. Returns 0, or -1 after `limit` accesses (a livelock) or when all remaining
 * workers sleep (a deadlock). `length`: the expected number of accesses, among which change points are drawn. */
int loom__explore(uint32_t n, void (*body)(uint32_t), enum loom__explore_mode mode, uint64_t seed, uint64_t length,
		  uint64_t limit);
/* Ends the schedule, which then is stuck. */
void loom__explore_stop(void);
/* Ends the running worker, as if its body had returned. */
void loom__explore_leave(void);
/* Returns the number of accesses of the schedule in progress. */
uint64_t loom__explore_steps(void);
/* Returns the number of the running worker, or LOOM__EXPLORE_MAX outside of schedules. */
uint32_t loom__explore_now(void);

/* For bodies; elsewhere they do nothing. A sleep never ends spuriously, so a lost wake-up is a deadlock. */
void loom__explore_yield(void);
void loom__explore_pause(void);
void loom__explore_sleep(uint32_t *word, uint32_t seen);
void loom__explore_wake(uint32_t *word, uint32_t most);

#endif
