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
	uint64_t pad[7];
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

#endif
