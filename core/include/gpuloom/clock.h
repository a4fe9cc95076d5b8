/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual time, for plug-ins that act beside the workers of simulated devices.
 *
 * Where time is real such a plug-in has a thread. Where layout->clock is set it has an agent instead: a function that is
 * called at times of that clock. Workers and agents run one at a time, in the order of their times. So an agent needs no lock
 * and no atomics; it must not wait. It costs no virtual time: the times that it returns say how long it takes. */
#ifndef GPULOOM_CLOCK_H
#define GPULOOM_CLOCK_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_NEVER UINT64_MAX
struct loom_agent; /* the device's own */

/* Returns the time of its next call; LOOM_NEVER: when it is woken. */
typedef uint64_t (*loom_agent_step)(void *arg, uint64_t now_ns);
/* Provided by a device, through its op clock(). All times are in ns of the virtual clock. */
struct loom_clock {
	size_t size;
	/* Inside step(): the current time. Between samples: the end of the last one. All samples start at the same time. */
	uint64_t (*now_ns)(const struct loom_clock *t);
	/* Between samples. step() is called at the start of each, and whenever the agent is due. `name` must stay. LOOM_ENOMEM. */
	int (*start)(const struct loom_clock *t, const char *name, loom_agent_step step, void *arg, struct loom_agent **agent);
	/* Between samples. NULL is legal. */
	void (*stop)(const struct loom_clock *t, struct loom_agent *agent);
	/* Inside a step(), of any agent of any rank: that agent is due at `at_ns`, if not before. */
	void (*wake)(const struct loom_clock *t, struct loom_agent *agent, uint64_t at_ns);
	/* Between samples: whenever a worker of this stack stores to these bytes, the agent is due `after_ns` later. One range
	 * per agent; the last call holds. LOOM_EFULL: too many agents of this stack watch. */
	int (*watch)(const struct loom_clock *t, struct loom_agent *agent, const void *from, uint64_t bytes, uint64_t after_ns);
	/* As start(), but between the ranks. It alone wakes agents of other ranks, by its time plus `distance_ns` or later, so ranks
	 * may run ahead of each other by as much. Their agents may wake it at any time. */
	int (*start_between)(const struct loom_clock *t, const char *name, loom_agent_step step, void *arg, uint64_t distance_ns,
			     struct loom_agent **agent);
};

#ifdef __cplusplus
}
#endif
#endif
