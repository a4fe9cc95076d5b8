/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual time, for plug-ins that act beside the workers of simulated devices. Where time is real, such a plug-in has a
 * thread. Where layout->clock is set, it has an agent instead: a function that is called at times of that clock.
 * Workers and agents run one at a time, in the order of their times. So an agent needs no lock and no atomics, and must
 * not wait. An agent costs no virtual time by itself: the times that it returns model its duration. */
#ifndef GPULOOM_CLOCK_H
#define GPULOOM_CLOCK_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_NEVER UINT64_MAX
struct loom_agent; /* private to the device */

/* An agent returns the time of its next call; LOOM_NEVER: it runs when another one wakes it. */
typedef uint64_t (*loom_agent_step)(void *arg, uint64_t now_ns);
/* A device provides this by its op clock(). All times are in ns of the virtual clock. */
struct loom_clock {
	size_t size;
	/* Returns the current time in a step(), else the end of the last sample. All samples start at the same time. */
	uint64_t (*now_ns)(const struct loom_clock *t);
	/* Between samples. The clock calls step() at the start of each sample and whenever the agent is due. `name`
	 * must stay valid. Returns 0 or LOOM_ENOMEM. */
	int (*start)(const struct loom_clock *t, const char *name, loom_agent_step step, void *arg, struct loom_agent **agent);
	void (*stop)(const struct loom_clock *t, struct loom_agent *agent); /* Between samples. `agent` may be NULL. */
	/* In a step() of any agent of any rank: makes `agent` due at `at_ns`, if it is not due before. */
	void (*wake)(const struct loom_clock *t, struct loom_agent *agent, uint64_t at_ns);
	/* Between samples: makes the agent due `after_ns` after any worker of this stack stores to these bytes. An
	 * agent has one range, that of the last call. Returns LOOM_EFULL when too many agents of this stack watch. */
	int (*watch)(const struct loom_clock *t, struct loom_agent *agent, const void *from, uint64_t bytes, uint64_t after_ns);
	/* Starts the agent between the ranks. Only this agent wakes agents of other ranks, `distance_ns` or more after
	 * its own time, so ranks may run ahead by as much. Agents of all ranks may wake this agent at any time. */
	int (*start_between)(const struct loom_clock *t, const char *name, loom_agent_step step, void *arg, uint64_t distance_ns,
			     struct loom_agent **agent);
};

#ifdef __cplusplus
}
#endif
#endif
