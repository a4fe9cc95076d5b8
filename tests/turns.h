/* SPDX-License-Identifier: Apache-2.0 */
/* The device layer's words for waiting, under a schedule that the test plays: rig/turns.h. Include before
 * gpuloom/dev/dev.h. One lane per worker. */
#ifndef LOOM_TEST_TURNS_H
#define LOOM_TEST_TURNS_H

#include <gpuloom/dev/ctx.h>

#include "rig/turns.h"

#define LOOM_YIELD() loom__turns_yield()
#define LOOM_OWN_SLEEP
static __attribute__((unused)) void loom_pause(const struct loom_ctx *c)
{
	(void)c;
	loom__turns_pause();
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
		loom__turns_sleep(word, seen);
}

static __attribute__((unused)) void loom_wake(const struct loom_ctx *c, uint32_t *word, uint32_t most)
{
	(void)c;
	loom__turns_wake(word, most);
}

#endif
