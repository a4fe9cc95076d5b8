/* SPDX-License-Identifier: Apache-2.0 */
/* A world: the simulated devices of one stack, their virtual clock, and the thread that plays their workers.
 *
 * The host's thread and the world's meet at `order`, `idle` and `rings`, futex words. While order == idle the world
 * rests, and the host's thread may touch all of it. */
#ifndef GPULOOM_SIM_WORLD_H
#define GPULOOM_SIM_WORLD_H

#include <gpuloom/dev/sim.h>
#include <gpuloom/device.h>
#include <pthread.h>

#include "fiber.h"

#define WORLD_RANGES 1024
#define WORLD_KEEP 512

struct sim_worker {
	struct fiber fiber;
	struct loom_ctx ctx;
	char keep[WORLD_KEEP]; /* a program's context is longer */
	struct loom_counters unseen; /* for a launch without counters: the probe */
	struct sim_member *device;
	uint64_t due, turn; /* when it goes on, and its turn among those who do so then */
	uint64_t priority;  /* schedule = random: see world_play() */
	uint64_t waited;    /* when it last waited for others */
	uint32_t seat;      /* in world.live */
	uint32_t reserved;
};

/* A device as its world sees it. */
struct sim_member {
	const char *name;
	int32_t index; /* in the world */
	uint32_t cost[LOOM_SIM_COST_COUNT];
	uint64_t launch_ns, teardown_ns;
	/* Of a launch. */
	uint32_t launched, workers, left;
	struct sim_worker *worker; /* [workers] */
	struct loom_ctl *ctl;      /* the device's own copy */
	void *local;               /* the workers' private blocks, zeroed before each sample */
	uint64_t local_bytes;
	void (*run)(struct loom_ctx *c);
	uint32_t done; /* release: the sample is over here, and took: */
	uint64_t took_ns;
};

enum world_schedule { WORLD_TIME, WORLD_RANDOM, WORLD_PRIORITIES };

struct world {
	struct loom_sim sim; /* first: what programs see */
	const struct loom_host *host;
	struct world *next;
	uint32_t instances, members;
	struct sim_member *member[LOOM_MAX_DEVICES];
	uint64_t stall_ns, limit_ns; /* of virtual time */
	enum world_schedule schedule;
	uint64_t seed, schedule_seed;
	char *program; /* the text that was compiled last */
	void (*work)(struct loom_ctx *c);

	struct { /* memory by owner */
		struct loom_sim_range at;
		uint32_t uses;
	} range[WORLD_RANGES];
	uint32_t ranges;

	/* The sample in progress. */
	struct sim_worker **live; /* [lives]: a heap by (due, turn), or in no order */
	uint32_t lives, room;
	struct sim_worker *running;
	struct fiber home, *from;
	uint64_t turn, steps, random, low, change[4];
	uint64_t check_at; /* when to look again for a standstill */

	pthread_t thread;
	uint32_t launched, armed;
	uint32_t order, idle, rings; /* see above; acquire and release */
	uint32_t nudged, halt, leave;
	uint32_t failed; /* release: `why` says it, and the sample has no end */
	char why[700];
};

/* The world of a stack, which all of its devices join; the last one to leave ends it. 0 or an error. */
int world_join(const struct loom_host *host, uint32_t instances, struct sim_member *m, struct world **world,
	       struct loom_error *err);
void world_leave(struct world *w, struct sim_member *m);

/* Memory of an owner, as often as it is named. 0 or LOOM_EFULL. */
int world_add_range(struct world *w, const void *begin, uint64_t bytes, int32_t owner);
void world_drop_range(struct world *w, const void *begin);
void world_find(struct loom_sim *sim, uintptr_t address); /* for programs */

/* A member takes part from now on, in a launch with these words of the host: 0 or errno. The thread is there as long as
 * anybody does. */
int world_start(struct world *w, struct sim_member *m, struct loom_ctl *ctl, uint64_t seed);
void world_end(struct world *w, struct sim_member *m);
/* Begins a sample, when all devices that are launched have said so. */
void world_go(struct world *w);
void world_ring(struct world *w);

/* play.c: one sample, from the first worker's begin to the last one's end, on the world's thread. There are two
 * kinds of random schedules. Either at each access another worker may go on. Or the one with the
 * highest priority does (Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding bugs"); at
 * a few accesses drawn in advance it falls to the lowest, which finds what needs few but ill-timed changes. Who waits
 * for others falls behind them. */
void world_play(struct world *w);
/* describe.c: into w->why, what is wrong with a sample, and who does what in it. */
enum world_fault { WORLD_STANDS_STILL, WORLD_TOO_LONG, WORLD_ENDED_EARLY };
void world_describe(struct world *w, enum world_fault fault);

#endif
