/* SPDX-License-Identifier: Apache-2.0 */
/* The device layer of GPUs for tests with the machine model (races.h): each lane of a worker is a fiber, and each
 * device has a scope of its own. Fences do only what their names say, as on HIP; a poll loop makes relaxed loads, and a
 * fence at its end, as on Hopper. */
#ifndef LOOM_TEST_RACES_GPU_H
#define LOOM_TEST_RACES_GPU_H

#include "races.h"

#define LOOM_OWN_POLL
#define loom_load_poll_dev(p) loom_load_relaxed_dev(p)
#define loom_fence_poll_dev() RACES_FENCE("fence_poll_dev", RACE_ACQUIRE, RACE_DEV)
#define loom_fence_poll_sys() RACES_FENCE("fence_poll_sys", RACE_ACQUIRE, RACE_SYS)

#include <gpuloom/dev/dev.h>

/* The lanes of a worker. A value of lane 0 has two slots in turn, because a lane may pass its next value before all
 * have read this one. */
struct races_block {
	uint32_t arrived, round;
	uint64_t slot[2];
	struct race_meeting meeting[2];
};
extern struct races_block races_block[RACE_FIBERS];

void races_lanes(const struct loom_ctx *c);
uint64_t races_from_lane0(struct loom_ctx *c, uint64_t v);

/* Device code that follows is that of GPUs. */
#define LOOM_DEVICE_COMPILE
#define loom_nanosleep(ns)         ((void)(ns), loom__explore_pause())
#define loom_barrier_lanes(c)      races_lanes(c)
#define loom_from_lane0(c, v)      races_from_lane0(c, v)
#define loom_word_from_lane0(c, v) ((uint32_t)races_from_lane0(c, v))
#define loom_flag_from_lane0(c, v) (races_from_lane0(c, v) != 0)

#endif
