/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of races_gpu.h, for one file of a program. */
#ifndef LOOM_TEST_RACES_LANES_H
#define LOOM_TEST_RACES_LANES_H

#include "races_gpu.h"

struct races_block races_block[RACE_FIBERS];

/* The lanes of a worker are consecutive fibers. */
static struct races_block *races_block_of(const struct loom_ctx *c)
{
	return &races_block[loom__explore_now() - c->lane];
}

__attribute__((no_sanitize("thread"))) void races_lanes(const struct loom_ctx *c)
{
	struct races_block *b = races_block_of(c);
	uint32_t round = b->round;
	if (c->lanes == 1)
		return;
	loom__explore_yield();
	race_arrive(&b->meeting[round % 2]);
	if (++b->arrived == c->lanes) {
		b->arrived = 0;
		b->meeting[(round + 1) % 2] = (struct race_meeting){0}; /* all lanes have left it */
		b->round++;
	}
	while (b->round == round)
		loom__explore_pause();
	race_leave(&b->meeting[round % 2]);
}

__attribute__((no_sanitize("thread"))) uint64_t races_from_lane0(struct loom_ctx *c, uint64_t v)
{
	uint32_t turn = c->turn;
	c->turn = turn ^ 1;
	if (c->lane == 0)
		races_block_of(c)->slot[turn] = v;
	races_lanes(c);
	return races_block_of(c)->slot[turn];
}

#endif
