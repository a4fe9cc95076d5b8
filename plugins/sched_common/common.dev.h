/* SPDX-License-Identifier: Apache-2.0 */
/* The start of a scheduler's block for the stack. Device code. */
#ifndef SCHED_COMMON_DEV_H
#define SCHED_COMMON_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/sched.h>
#include <gpuloom/term.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>

#include "options.dev.h"
#endif

/* The eventcount of the stack's idle workers (lib/eventcount.h), in a cache line of its own. */
struct sched_event {
	uint32_t word, waiters, waking;
	uint32_t pad[13];
};

struct sched_common {
	struct sched_config cfg; /* constant while workers run */
	char pad[64 - sizeof(struct sched_config) % 64];
	struct sched_event event;
};

LOOM_FN struct sched_common *sched_common(const struct loom_ctx *c)
{
	return (struct sched_common *)c->global[LOOM_SCHED];
}

/* Reads an option. In a GPU's program the options are constants: sched_constants() in schedulers.h. */
#ifdef SCHED_CONSTANTS
#define SCHED_CFG(c, option) SCHED_IS_##option
#else
#define SCHED_CFG(c, option) (sched_common(c)->cfg.option)
#endif
/* The condition for code that a rare option needs. On a CPU the code is always compiled. A GPU's program has it only if
 * the option is set. */
#ifdef SCHED_CONSTANTS
#define SCHED_MAY(selected) (selected)
#else
#define SCHED_MAY(selected) 1
#endif
#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SINGLE_LANE)
/* the value for which the functions that are not inlined in a GPU's program are compiled */
#define SCHED_GRANULARITY(c) SCHED_WORKER
#else
#define SCHED_GRANULARITY(c) SCHED_CFG(c, granularity)
#endif

#endif
