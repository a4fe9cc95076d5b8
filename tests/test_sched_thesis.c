/* SPDX-License-Identifier: Apache-2.0 */
/* With the repair switched off the played schedules must find what the thesis's order loses: an owner
 * that refills its public queue while a thief still copies from an epoch before (its section 5.1). */
#define SCHED_MGWS_THESIS_ORDER

#include "turns_tree.h"

static void test_found(void)
{
	static const struct turns_setup setups[] = {
		{"local_queue=2 public_queue=4 idle=spin", 4, 1, 40, RANDOM, 0},
		{"local_queue=2 public_queue=4 idle=spin", 4, 1, 24, STAR, 0},
		{"local_queue=2 public_queue=4 idle=spin", 3, 1, 16, STAR, 0},
	};
	const uint64_t games = 20000;
	for (size_t i = 0; i < COUNT(setups); i++) {
		uint64_t right = turns_games(&setups[i], 0, games, 1);
		fprintf(stderr, "%s, %u workers, shape %d: the flaw showed in game %llu\n",
			setups[i].opts, setups[i].workers, (int)setups[i].shape,
			(unsigned long long)right);
		CU_ASSERT_TRUE(right < games);
	}
}

static const struct test all[] = {{"found", test_found}};
TEST_MAIN("sched_thesis", 120, all)
