/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/stats.h"

#include <math.h>

#include <gpuloom/error.h>

#include "lib/random.h"

uint64_t loom__stats_random(struct loom__stats_rng *rng)
{
	return loom__random(&rng->state);
}

uint64_t loom__stats_below(struct loom__stats_rng *rng, uint64_t n)
{
	/* `spare` is 2^64 mod n. Values below it are drawn again, so that all remainders are equally likely. */
	uint64_t spare = -n % n, value;
	do
		value = loom__stats_random(rng);
	while (value < spare);
	return value % n;
}

double loom__stats_unit(struct loom__stats_rng *rng)
{
	return (double)(loom__stats_random(rng) >> 11) * 0x1p-53;
}

size_t loom__stats_block_order(uint64_t seed, uint64_t block, enum loom__stats_order order,
			       unsigned variants, unsigned *slots)
{
	struct loom__stats_rng rng = {seed};
	rng.state = loom__stats_random(&rng) ^ block;
	rng.state = loom__stats_random(&rng);
	for (unsigned i = 0; i < variants; i++) {
		unsigned j = (unsigned)loom__stats_below(&rng, i + 1);
		if (j < i)
			slots[i] = slots[j];
		slots[j] = i;
	}
	if (order == LOOM__STATS_RANDOM)
		return variants;
	for (unsigned i = 0; i < variants; i++)
		slots[2 * variants - 1 - i] = slots[i];
	return 2 * (size_t)variants;
}
