/* SPDX-License-Identifier: Apache-2.0 */
/* Virtual time, for plug-ins that do work on the host while workers run. In real time, such a plug-in has a thread. If
 * layout->clock is set, it has an agent instead: a function that the simulation calls at times of this clock. Workers
 * and agents run one at a time, in the order of their times. So an agent needs no lock and no atomics, and must not
 * wait. A call takes no virtual time; an agent models its duration by the times that it returns. */
#ifndef GPULOOM_CLOCK_H
#define GPULOOM_CLOCK_H

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_NEVER UINT64_MAX
struct loom_agent; /* private to the device */

/* Returns the time of the agent's next call. LOOM_NEVER: the agent is called when wake() or a store (see watch()) makes
 * it due. */
typedef uint64_t (*loom_agent_step)(void *arg, uint64_t now_ns);
/* A device provides its clock by the op clock(). All times are in ns of the virtual clock. */
struct loom_clock {
	size_t size;
	/* Inside a step(), returns the current time; elsewhere, the end of the last sample. All samples start at the
	 * same time. */
	uint64_t (*now_ns)(const struct loom_clock *t);
	/* Makes an agent; called between samples. The clock calls step() at the start of each sample and whenever the
	 * agent is due. `name` must stay valid. Returns 0 or LOOM_ENOMEM. */
	int (*start)(const struct loom_clock *t, const char *name, loom_agent_step step, void *arg, struct loom_agent **agent);
	void (*stop)(const struct loom_clock *t, struct loom_agent *agent); /* between samples; `agent` may be NULL */
	/* Called in a step() of any agent of any rank. Makes `agent` due at `at_ns`, or earlier if it is due
	 * earlier. */
	void (*wake)(const struct loom_clock *t, struct loom_agent *agent, uint64_t at_ns);
	/* Called between samples. Makes the agent due `after_ns` after a worker of this stack has stored to one of the
	 * `bytes` bytes at `from`. Another call replaces this range. Returns LOOM_EFULL if too many agents of this
	 * stack watch memory. */
	int (*watch)(const struct loom_clock *t, struct loom_agent *agent, const void *from, uint64_t bytes, uint64_t after_ns);
	/* Starts the agent that acts between the ranks. Only this agent wakes agents of other ranks. It wakes them
	 * `distance_ns` or more after its own time, so a rank may run ahead of another by up to `distance_ns`. Agents
	 * of all ranks may wake this agent at any time. */
	int (*start_between)(const struct loom_clock *t, const char *name, loom_agent_step step, void *arg, uint64_t distance_ns,
			     struct loom_agent **agent);
};

#ifdef __cplusplus
}
#endif
#endif
