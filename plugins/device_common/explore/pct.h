/* SPDX-License-Identifier: Apache-2.0 */
/* PCT, probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatte: "A randomized scheduler with
 * probabilistic guarantees of finding bugs", ASPLOS 2010). The runnable entity (worker or agent) with the highest
 * priority runs. At a few steps, drawn in advance, the running entity gets the lowest priority of all. This finds
 * errors that need few switches, but at unlikely moments. In this implementation an entity that waits for another
 * entity also gets the lowest priority, which is an extension of PCT. Without this extension a loop that polls would
 * never end.
 *
 * rig/explore.c schedules the workers of tests with PCT. plugins/device_sim schedules the workers of a simulation. */
#ifndef GPULOOM_SHARED_PCT_H
#define GPULOOM_SHARED_PCT_H

#include <stdint.h>

#define PCT_CHANGES 4
/* After so many steps in a row, an entity gets the lowest priority. It may poll without a pause, as sync_poll does on a GPU,
 * and the entity for which it waits would never run. */
#define PCT_ROW 1024u

struct pct {
	uint64_t random; /* state of the random generator, never 0 */
	uint64_t step;   /* number of steps so far */
	uint64_t lowest; /* the lowest priority so far, which pct_lower() returned last */
	uint64_t change[PCT_CHANGES];
};

static inline void pct_start(struct pct *p, uint64_t seed)
{
	*p = (struct pct){.random = seed | 1, .lowest = 1ull << 32};
}

/* Returns a random number from 0 to `below` - 1, by xorshift. */
static inline uint64_t pct_draw(struct pct *p, uint64_t below)
{
	p->random ^= p->random << 13;
	p->random ^= p->random >> 7;
	p->random ^= p->random << 17;
	return (p->random >> 11) % below;
}

/* Returns a random priority for a new entity. It is above all priorities that pct_lower() returns. */
static inline uint64_t pct_priority(struct pct *p)
{
	return (1ull << 33) + pct_draw(p, 1u << 20);
}

static inline uint64_t pct_lower(struct pct *p)
{
	return --p->lowest;
}

static inline int pct_is_change(const struct pct *p)
{
	int is = 0;
	for (int i = 0; i < PCT_CHANGES; i++)
		is |= p->change[i] == p->step;
	return is;
}

#endif
