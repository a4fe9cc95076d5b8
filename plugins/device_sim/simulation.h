/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation: simulated devices, their virtual clock, and the thread that runs their workers. The devices of a
 * stack are a group. A simulation has one group, or one per rank where the ranks of a job are threads of one
 * process.
 *
 * Host threads and the thread of the simulation synchronise by `command`, `completed` and `notifications`, futex
 * words. While command == completed the simulation is idle: a host thread may then access what belongs to its group
 * and, with `lock`, what all have in common. */
#ifndef GPULOOM_SIM_SIMULATION_H
#define GPULOOM_SIM_SIMULATION_H

#include <gpuloom/device.h>
#include <gpuloom/clock.h>
#include <pthread.h>

#include "../shared/compose/sim.h"
#include "lib/heap.h"
#include "../shared/explore/fiber.h"
#include "../shared/explore/pct.h"

#define SIM_REGISTER_BYTES 512
#define SIM_WATCHES        4

/* An entity: a worker or an agent. */
struct sim_entity {
	uint64_t priority; /* schedule = random: see run.c */
	uint32_t slot;     /* in its queue; HEAP_NO_SLOT: an agent that sleeps */
	uint32_t is_agent;
	struct sim_group *group;
};
struct sim_worker {
	struct sim_entity at; /* must be first */
	struct fiber fiber;
	struct sim_member *device;
	const uint32_t *cost; /* of the device, or of another one with equal costs */
	int32_t index;        /* of the device */
	uint64_t waited_at;   /* when it last waited for another entity */
	struct loom_sim_recent recent;
	struct loom_ctx ctx;
	char regs[SIM_REGISTER_BYTES]; /* the words that a composed program appends to its context */
	struct loom_counters unseen;   /* of a launch without counters: the probe */
};

struct loom_agent {
	struct sim_entity at; /* must be first */
	uint64_t (*step)(void *arg, uint64_t now_ns);
	void *arg;
	const char *name;
	struct loom_agent *next; /* of its group */
	uint64_t after_ns;       /* from a store to watched memory to the step */
};

/* A device, as the simulation sees it. */
struct sim_member {
	const char *name;
	int32_t index; /* in its group */
	uint32_t cost[LOOM_SIM_COST_COUNT];
	uint64_t launch_ns, teardown_ns;
	struct sim_group *group;
	/* Of a launch. */
	uint32_t launched, workers, left;
	struct sim_worker *worker; /* [workers] */
	struct loom_ctl *ctl;      /* the device's copy of the host's words */
	void *local;               /* the workers' private blocks, zeroed before each sample */
	uint64_t local_bytes;
	void (*run)(struct loom_ctx *c);
	uint64_t took_ns; /* of the last sample */
};

#define SIM_WARM 3

/* The devices of one stack. */
struct sim_group {
	struct loom_clock clock; /* must be first */
	uint32_t number;         /* index in simulation.group_slot */
	struct heap live;        /* schedule = time: its workers and agents */
	uint64_t after_ns;       /* least delay from a store to the step of an agent that watches; LOOM_NEVER: no agent
				  * watches */
	const void *warm[SIM_WARM]; /* what it accesses first when it runs again: a worker, its stack, memory of an
				     * agent */
	struct simulation *simulation;
	const struct loom_host *host;
	struct sim_group *next;
	uint32_t members, left;
	struct sim_member *member[LOOM_MAX_DEVICES]; /* [members]; NULL: it has left */
	struct loom_ctl *ctl;                        /* the host's */
	uint32_t shares;                             /* tasks with other ranks */
	uint64_t ended;    /* a worker exited without a stop request; with `shares`: a worker of any rank */
	struct sim_range { /* memory by owner */
		struct loom_sim_range at;
		uint32_t uses;
	} * range;
	uint32_t ranges, room;
	struct loom_agent *agents;
	struct sim_watch {
		struct loom_agent *agent; /* NULL: free */
		uintptr_t begin, bytes;
	} watch[SIM_WATCHES];
};

enum schedule { SCHEDULE_TIME, SCHEDULE_RANDOM, SCHEDULE_PCT };

struct simulation {
	struct loom_sim sim; /* must be first */
	const void *job;     /* of its ranks; else the host table of the only group */
	struct simulation *next;
	pthread_mutex_t lock;               /* recursive: a group holds it through the launch of a probe */
	uint32_t expected;                  /* devices of all groups */
	uint32_t joined;                    /* devices that have joined */
	uint32_t shared;                    /* by the ranks of a job */
	uint32_t configured;                /* schedule, stall_ns, limit_ns and cost are set */
	uint32_t cost[LOOM_SIM_COST_COUNT]; /* of the first device */
	struct sim_group *group;            /* in the order of ranks */
	struct sim_group *between;          /* agents between the ranks, as a network; NULL: none */
	uint64_t lookahead;                 /* what one rank does reaches others no earlier than after so many ns */
	struct sim_group *polled;           /* the group whose host words were polled last */
	uint64_t stall_ns, limit_ns;        /* of virtual time */
	enum schedule schedule;
	uint64_t seed, schedule_seed;
	char *program; /* the text that was compiled last */
	void (*work)(struct loom_ctx *c);

	/* The sample in progress. */
	struct heap live;         /* schedule = time: groups; else workers and agents, in no order */
	uint32_t *group_slot;     /* [groups]: index of each in `live`, in an array for the cache */
	struct sim_group *active; /* its entities run until the LBTS */
	uint64_t lbts;            /* lower bound on the time stamps of what other groups can send to it */
	struct sim_worker *running;
	struct fiber home, *from;
	uint32_t over; /* ended by a fault, with live entities */
	struct pct pct;
	uint64_t turn;                        /* entries of heaps so far */
	struct sim_entity *delayed;           /* random schedules: this entity does not run ... */
	uint64_t delayed_from, delayed_until; /* ... between these steps */
	uint64_t check_at;                    /* when to check for a stall again */

	pthread_t thread;
	const struct sim_group *probing; /* the group whose probe is launched; NULL: none */
	uint32_t launched, armed;
	uint32_t probed, probe_armed;               /* the same, of a probe */
	uint32_t command, completed, notifications; /* see above; acquire and release */
	uint32_t halt, leave;
	uint32_t stop_requested; /* a host waits for workers after it set the stop flag */
	uint32_t failed;         /* the sample failed: `why` is the error text */
	char why[700];
};

/* The simulation of a stack or job, which all of its devices join; the last one to leave frees it. 0 or an error. */
int simulation_join(const struct loom_host *host, uint32_t instances, struct sim_member *m,
		    struct simulation **simulation, struct loom_error *err);
void simulation_leave(struct simulation *s, struct sim_member *m);

/* Registers memory of an owner; counted. 0 or LOOM_ENOMEM. */
int memory_add_range(struct sim_group *g, const void *begin, uint64_t bytes, int32_t owner);
void memory_drop_range(struct sim_group *g, const void *begin);
void memory_find_range(struct loom_sim *sim, uintptr_t address); /* op of loom_sim */

/* A member takes part from now on, with these words of the host: 0 or errno. The thread runs while there are
 * members. A probe excludes the other groups until it has ended. */
int simulation_start(struct simulation *s, struct sim_member *m, struct loom_ctl *ctl, uint64_t seed, int probe);
void simulation_end(struct simulation *s, struct sim_member *m);
/* Starts a sample once all devices of all groups have called it. Returns the value of `completed` at its end. */
uint32_t simulation_go(struct simulation *s);
void simulation_notify(struct simulation *s);
/* queue.c. Reserves memory for all workers and agents, while the simulation is idle: 0 or ENOMEM. */
int queue_reserve(struct simulation *s);
void queue_insert(struct simulation *s, struct sim_entity *e, uint64_t due);
void queue_remove(struct simulation *s, struct sim_entity *e);
/* Schedules an agent at that time, if it is not due earlier. */
void queue_wake(struct simulation *s, struct loom_agent *a, uint64_t at_ns);
/* schedule = time: the running entity is due at `due` from now on. */
void queue_reschedule(struct simulation *s, uint64_t due);
/* The next entity: of the active group up to its LBTS, then of the group that is due first, which becomes active.
 * NULL: none is live. */
struct sim_entity *queue_next(struct simulation *s);
/* Horizon: the earliest entity may run until this time without a switch. */
uint64_t queue_horizon(const struct simulation *s);

/* agent.c */
void agents_open(struct sim_group *g); /* fills group->clock */
void agents_close(struct sim_group *c);
/* Cuts *range to the part around `address` without watched bytes, or to a watched range. */
void agents_clip(const struct sim_group *g, uintptr_t address, struct loom_sim_range *range);
void agents_stored(struct loom_sim *sim, uint32_t watched); /* op of loom_sim */

/* run.c: one sample, on the thread of the simulation. In a random schedule another entity may run at each access:
 * any entity, or the choice of PCT (plugins/shared/explore/pct.h). */
void simulation_run(struct simulation *s);
/* describe.c: writes the fault and the state of all workers to `why`. */
enum fault { FAULT_STALL, FAULT_LIMIT, FAULT_ENDED_EARLY, FAULT_HALTED };
void simulation_describe(struct simulation *s, enum fault fault);

#endif
