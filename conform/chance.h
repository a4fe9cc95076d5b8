/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that a seed repeats. */
#ifndef LOOM_VALIDATE_CHANCE_H
#define LOOM_VALIDATE_CHANCE_H

#include <stdint.h>

#include "lib/random.h"

struct loom__chance {
	uint64_t state;
};

static inline struct loom__chance loom__chance(uint64_t seed)
{
	struct loom__chance c = {seed};
	loom__random(&c.state); /* skips the first number, so that recorded seeds keep their meaning */
	return c;
}

static inline uint64_t loom__draw(struct loom__chance *c)
{
	return loom__random(&c->state);
}

/* Returns a nearly uniform number in [0, n), n > 0. */
static inline uint64_t loom__draw_below(struct loom__chance *c, uint64_t n)
{
	return loom__draw(c) % n;
}

/* Returns 1 once in n calls, on average. */
static inline int loom__one_in(struct loom__chance *c, uint64_t n)
{
	return loom__draw_below(c, n) == 0;
}

#endif
