/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the functions of the device layer that wait by those of the schedule explorer (rig/explore.h). A test
 * includes this file before gpuloom/dev/dev.h, and has one lane per worker. */
#ifndef LOOM_TEST_TURNS_H
#define LOOM_TEST_TURNS_H

#include <gpuloom/dev/ctx.h>

#include "rig/explore.h"

#define LOOM_YIELD() loom__explore_yield()
#define LOOM_OWN_SLEEP
static __attribute__((unused)) void loom_pause(const struct loom_ctx *c)
{
	(void)c;
	loom__explore_pause();
}

static __attribute__((unused)) void loom_yield(const struct loom_ctx *c)
{
	loom_pause(c);
}

static __attribute__((unused)) void loom_sleep_on(const struct loom_ctx *c, uint32_t *word, uint32_t seen,
						  uint64_t most_ns)
{
	if (most_ns < 10000000)
		loom_pause(c);
	else
		loom__explore_sleep(word, seen);
}

static __attribute__((unused)) void loom_wake(const struct loom_ctx *c, uint32_t *word, uint32_t most)
{
	(void)c;
	loom__explore_wake(word, most);
}

#endif
