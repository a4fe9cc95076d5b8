/* SPDX-License-Identifier: Apache-2.0 */
/* A world: simulated devices, their virtual clock, and the thread that plays their workers. The devices of a stack are a
 * crew. A world has one crew, or one for each rank where the ranks of a job are threads of one process.
 *
 * Host threads and the world's meet at `order`, `idle` and `rings`, futex words. While order == idle the world rests;
 * a host thread may then touch what belongs to its crew, and with `lock` what all have in common. */
#ifndef GPULOOM_SIM_WORLD_H
#define GPULOOM_SIM_WORLD_H

#include <gpuloom/device.h>
#include <gpuloom/clock.h>
#include <pthread.h>

#include "../shared/compose/sim.h"
#include "fiber.h"
#include "lib/heap.h"

#define WORLD_KEEP 512
#define WORLD_WATCHES 4

/* Who is to go on at a time: a worker or an agent. */
struct sim_turn {
	uint64_t priority; /* schedule = random: see world_play() */
	uint32_t seat;	   /* in its queue; HEAP_NO_SLOT: an agent that sleeps */
	uint32_t is_agent;
	struct sim_crew *crew; /* its own */
};
struct sim_worker {
	struct sim_turn at; /* first */
	struct fiber fiber;
	struct sim_member *device;
	const uint32_t *cost;	    /* the device's, or another one's with the same */
	int32_t index;		    /* the device's */
	uint64_t waited;	    /* when it last waited for others */
	struct loom_sim_near near;
	struct loom_ctx ctx;
	char keep[WORLD_KEEP]; /* a program's context is longer */
	struct loom_counters unseen; /* for a launch without counters: the probe */
};

struct loom_agent {
	struct sim_turn at; /* first */
	uint64_t (*step)(void *arg, uint64_t now_ns);
	void *arg;
	const char *name;
	struct loom_agent *next; /* of its crew */
	uint64_t after_ns;	 /* from a store that it watches to its step */
};

/* A device as its world sees it. */
struct sim_member {
	const char *name;
	int32_t index; /* in its crew */
	uint32_t cost[LOOM_SIM_COST_COUNT];
	uint64_t launch_ns, teardown_ns;
	struct sim_crew *crew;
	/* Of a launch. */
	uint32_t launched, workers, left;
	struct sim_worker *worker; /* [workers] */
	struct loom_ctl *ctl;      /* the device's own copy */
	void *local;               /* the workers' private blocks, zeroed before each sample */
	uint64_t local_bytes;
	void (*run)(struct loom_ctx *c);
	uint64_t took_ns; /* the last sample */
};

#define SIM_WARM 3

/* The devices of one stack. */
struct sim_crew {
	struct loom_clock clock; /* first: what plug-ins see */
	uint32_t number;       /* from 0: in world.places */
	struct heap live;      /* schedule = clock: its workers and agents */
	uint64_t after_ns;     /* the least of what agents that watch have said; LOOM_NEVER: none does */
	const void *warm[SIM_WARM]; /* what it goes on with: a worker, its stack, an agent's memory */
	struct world *world;
	const struct loom_host *host;
	struct sim_crew *next;
	uint32_t members, left;
	struct sim_member *member[LOOM_MAX_DEVICES]; /* [members]; NULL: it has left */
	struct loom_ctl *ctl; /* the host's */
	uint32_t shares;      /* tasks with the other ranks */
	uint64_t ended;       /* a worker left the sample, though nobody told it to stop; `shares`: of any rank */
	struct sim_range {    /* memory by owner */
		struct loom_sim_range at;
		uint32_t uses;
	} *range;
	uint32_t ranges, room;
	struct loom_agent *agents;
	struct sim_watch {
		struct loom_agent *agent; /* NULL: free */
		uintptr_t begin, bytes;
	} watch[WORLD_WATCHES];
};

enum world_schedule { WORLD_TIME, WORLD_RANDOM, WORLD_PRIORITIES };

struct world {
	struct loom_sim sim; /* first: what programs see */
	const void *job;     /* its ranks', or the host table of its only crew */
	struct world *next;
	pthread_mutex_t lock;  /* recursive: a crew holds it through the launch of a probe */
	uint32_t expected;     /* devices of all crews */
	uint32_t joined;       /* as many have come */
	uint32_t shared;       /* by ranks */
	uint32_t settled;      /* schedule, stall_ns, limit_ns and cost are chosen */
	uint32_t cost[LOOM_SIM_COST_COUNT]; /* of the first device */
	struct sim_crew *crew;	 /* in the order of ranks */
	struct sim_crew *between; /* its agents are between the ranks; NULL: there are none */
	uint64_t distance;	  /* what one rank does reaches no other one before so many ns */
	struct sim_crew *looked; /* whose host was last heard */
	uint64_t stall_ns, limit_ns; /* of virtual time */
	enum world_schedule schedule;
	uint64_t seed, schedule_seed;
	char *program; /* the text that was compiled last */
	void (*work)(struct loom_ctx *c);

	/* The sample in progress. */
	struct heap live; /* schedule = time: crews; else workers and agents, in no order */
	uint32_t *places; /* [crews]: their seats, side by side: theirs are thousands of lines */
	struct sim_crew *playing; /* its workers and agents go on, until others are due at `limit` */
	uint64_t limit;
	struct sim_worker *running;
	struct fiber home, *from;
	uint32_t over; /* nobody goes on, though some are live */
	uint64_t turn, steps, random, low, change[4];
	struct sim_turn *late; /* a random schedule: it does not go on from one step to another, ... */
	uint64_t late_from, late_until; /* ... those */
	uint64_t check_at; /* when to look again for a standstill */

	pthread_t thread;
	const struct sim_crew *probing; /* its probe is launched, and nothing else; NULL: none */
	uint32_t launched, armed;
	uint32_t probed, probe_armed; /* the same of a probe */
	uint32_t order, idle, rings; /* see above; acquire and release */
	uint32_t halt, leave;
	uint32_t stops; /* a host waits for workers that it has told to stop */
	uint32_t failed; /* the sample has no end: `why` says it */
	char why[700];
};

/* The world of a stack or job, which all of its devices join; the last one to leave ends it. 0 or an error. */
int world_join(const struct loom_host *host, uint32_t instances, struct sim_member *m, struct world **world,
	       struct loom_error *err);
void world_leave(struct world *w, struct sim_member *m);

/* Memory of an owner, as often as it is named. 0 or LOOM_ENOMEM. */
int world_add_range(struct sim_crew *c, const void *begin, uint64_t bytes, int32_t owner);
void world_drop_range(struct sim_crew *c, const void *begin);
void world_find(struct loom_sim *sim, uintptr_t address); /* for programs */

/* A member takes part from now on, in a launch with these words of the host: 0 or errno. The thread is there as long as
 * anybody does. A probe is the crew's own affair: others wait until it has ended. */
int world_start(struct world *w, struct sim_member *m, struct loom_ctl *ctl, uint64_t seed, int probe);
void world_end(struct world *w, struct sim_member *m);
/* Begins a sample, when all devices of all crews have said so. */
uint32_t world_go(struct world *w); /* w->idle when it has ended */
void world_ring(struct world *w);
/* turns.c: who is live. Room for all workers and agents: 0 or ENOMEM, while the world rests. */
int turns_make_room(struct world *w);
void turns_enter(struct world *w, struct sim_turn *who, uint64_t due);
void turns_quit(struct world *w, struct sim_turn *who);
/* An agent is due at that time, if not before. */
void turns_wake(struct world *w, struct loom_agent *a, uint64_t at_ns);
/* schedule = time. The first of the crew that is played goes on at `due` instead. */
void turns_again(struct world *w, uint64_t due);
/* Who is due, in the crew that is played; where others are first, in the one that is due first, which is played from now on.
 * NULL: nobody is live. */
struct sim_turn *turns_next(struct world *w);
/* How far who is first may go on alone. */
uint64_t turns_horizon(const struct world *w);

/* agent.c */
void agents_open(struct sim_crew *c); /* fills c->clock */
void agents_close(struct sim_crew *c);
/* Where no watched byte is in between, the part of *range around `address`; or a watched range. */
void agents_clip(const struct sim_crew *c, uintptr_t address, struct loom_sim_range *range);
void agents_stored(struct loom_sim *sim, uint32_t watched); /* for programs */

/* play.c: one sample, from the first worker's begin to the last one's end, on the world's thread. There are two
 * kinds of random schedules. Either at each access another worker may go on. Or the one with the
 * highest priority does (Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding bugs"); at
 * a few accesses drawn in advance it falls to the lowest, which finds what needs few but ill-timed changes. Who waits
 * for others falls behind them. */
void world_play(struct world *w);
/* describe.c: into w->why, what is wrong with a sample, and who does what in it. */
enum world_fault { WORLD_STANDS_STILL, WORLD_TOO_LONG, WORLD_ENDED_EARLY, WORLD_HALTED };
void world_describe(struct world *w, enum world_fault fault);

#endif
