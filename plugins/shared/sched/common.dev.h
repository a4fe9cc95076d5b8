/* SPDX-License-Identifier: Apache-2.0 */
/* The start of the schedulers' global block. Device code. */
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

/* The eventcount of the stack's idle workers (lib/eventcount.h), in a line of its own. */
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

/* Reads an option. A program composed for a GPU has the options as constants: sched_constants() in schedulers.h. */
#ifdef SCHED_CONSTANTS
#define SCHED_CFG(c, option) SCHED_IS_##option
#else
#define SCHED_CFG(c, option) (sched_common(c)->cfg.option)
#endif
/* Encloses code for a rare option: always in a CPU's plug-in; in a GPU's program only if the option is set. */
#ifdef SCHED_CONSTANTS
#define SCHED_MAY(selected) (selected)
#else
#define SCHED_MAY(selected) 1
#endif
#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SINGLE_LANE)
#define SCHED_GRANULARITY(c) SCHED_WORKER /* out-of-line code of the program is compiled for this value */
#else
#define SCHED_GRANULARITY(c) SCHED_CFG(c, granularity)
#endif

#endif
