/* SPDX-License-Identifier: Apache-2.0 */
/* What begins the global block of both schedulers. Device code. */
#ifndef SCHED_COMMON_DEV_H
#define SCHED_COMMON_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/sched.h>
#include <gpuloom/term.h>
#include <gpuloom/workload.h>
#endif

/* Who runs a task: all lanes of a worker together, or one lane of several that run a task each. */
enum sched_grain { SCHED_WORKER, SCHED_LANE };
enum sched_idle { SCHED_SPIN, SCHED_YIELD, SCHED_PARK };

/* The options. Constant while workers run. */
struct sched_config {
	uint32_t local_queue, public_queue, in_place_depth, claim;
	uint64_t spill;
	uint64_t spin_ns, park_ns; /* how long an idle worker spins, and then sleeps at most */
	uint32_t idle;             /* enum sched_idle */
	uint32_t owners, overflow, victim, transfer, priorities;
	uint32_t bias; /* of 2^32: how often a victim is one of the same device */
	uint32_t mixed; /* the stack has devices of several kinds */
	uint32_t grain;
	uint32_t backlog; /* slots; 0: none */
	uint32_t apart; /* no word is changed by two devices: tasks travel by mail */
	uint32_t afar;  /* and queues give to other devices, too */
	uint64_t pad[5];
};

/* For the stack; a line of its own. */
struct sched_bell {
	uint32_t rings;    /* the word that sleepers sleep on */
	uint32_t sleepers; /* workers that sleep or are about to */
	uint32_t waking;   /* a ring is on its way to one of them */
	uint32_t pad[13];
};

struct sched_common {
	struct sched_config cfg;
	struct sched_bell bell;
};

LOOM_FN struct sched_common *sched_common(const struct loom_ctx *c)
{
	return (struct sched_common *)c->global[LOOM_SCHED];
}

/* An option. A program composed for a GPU has them as constants: see sched_constants() in host.h. */
#ifdef SCHED_CONSTANTS
#define SCHED_CFG(c, option) SCHED_IS_##option
#else
#define SCHED_CFG(c, option) (sched_common(c)->cfg.option)
#endif
#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_ALONE)
#define SCHED_GRAIN(c) SCHED_WORKER /* what the program's out-of-line code is made for */
#else
#define SCHED_GRAIN(c) SCHED_CFG(c, grain)
#endif

#endif
