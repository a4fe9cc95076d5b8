/* SPDX-License-Identifier: Apache-2.0 */
/* A simulation: simulated devices, their virtual clock, and the thread that runs their workers. The devices of a stack
 * are a group. A simulation has one group, or one per rank if the ranks of a job are threads of one process.
 *
 * Host threads and the thread of the simulation synchronise by the futex words `command`, `completed` and
 * `notifications`. While command == completed the simulation is idle. A host thread may then access the state of its
 * group and, with `lock`, the state that all groups share. */
#ifndef GPULOOM_SIM_SIMULATION_H
#define GPULOOM_SIM_SIMULATION_H

#include <gpuloom/device.h>
#include <gpuloom/clock.h>
#include <pthread.h>

#include <gpuloom/dev/sim.h>
#include "lib/heap.h"
#include "../device_common/explore/fiber.h"
#include "../device_common/explore/pct.h"

#define SIM_REGISTER_BYTES 512
#define SIM_WATCHES        4

/* An entity: a worker or an agent. */
struct sim_entity {
	uint64_t priority; /* used by random schedules (run.c) */
	uint32_t slot;     /* position in its queue; HEAP_NO_SLOT: an agent that sleeps is in no queue */
	uint32_t is_agent;
	struct sim_group *group;
};
struct sim_worker {
	struct sim_entity at; /* first member */
	struct fiber fiber;
	struct sim_member *device;
	const uint32_t *cost; /* costs of the device, or of another one with equal costs */
	int32_t index;        /* index of the device */
	uint64_t waited_at;   /* virtual time of its last wait for another entity */
	/* memory = weak: its number in the model, a word that its tasks write, and its last load or change */
	uint32_t number, mark;
	const struct race_site *site;
	struct loom_sim_recent recent;
	struct loom_ctx ctx;
	char regs[SIM_REGISTER_BYTES]; /* the words that struct loom_ctx has in addition in a composed program */
	struct loom_counters unseen;   /* counters for a launch without counters, which is the probe */
};

struct loom_agent {
	struct sim_entity at; /* first member */
	uint64_t (*step)(void *arg, uint64_t now_ns);
	void *arg;
	const char *name;
	struct loom_agent *next; /* next agent of the group */
	uint64_t after_ns;       /* delay in ns from a store to watched memory to the agent's step */
};

/* The part of a device that the simulation uses. */
struct sim_member {
	const char *name;
	int32_t index; /* index in its group */
	uint32_t cost[LOOM_SIM_COST_COUNT];
	uint64_t launch_ns, teardown_ns;
	struct sim_group *group;
	/* State of a launch. */
	uint32_t launched, workers, left;
	struct sim_worker *worker; /* [workers] */
	struct loom_ctl *ctl;      /* the device's copy of the host's control words */
	void *local;               /* the workers' private blocks, zeroed before each sample */
	uint64_t local_bytes;
	void (*run)(struct loom_ctx *c);
	uint64_t took_ns; /* virtual duration of the last sample */
};

#define SIM_WARM 3

/* The devices of one stack. */
struct sim_group {
	struct loom_clock clock; /* first member */
	uint32_t number;         /* index in simulation.group_slot */
	struct heap live;        /* with schedule = time: workers and agents of the group, by due time */
	uint64_t after_ns;       /* shortest delay in ns from a store to a watching agent's step; LOOM_NEVER: none */
	const void *warm[SIM_WARM]; /* the memory that its next run accesses first: a worker, its stack, data of an agent */
	struct simulation *simulation;
	const struct loom_host *host;
	struct sim_group *next;
	uint32_t members, left;
	struct sim_member *member[LOOM_MAX_DEVICES]; /* [members]; NULL: the member has left */
	struct loom_ctl *ctl;                        /* control words of the host */
	uint32_t shares;                             /* 1: the rank shares tasks with other ranks */
	uint64_t ended;    /* 1: a worker exited without a stop request; with `shares`, a worker of any rank */
	struct sim_range { /* ranges of memory, each with one owner */
		struct loom_sim_range at;
		uint32_t uses;
	} * range;
	uint32_t ranges, room;
	struct loom_agent *agents;
	struct sim_watch {
		struct loom_agent *agent; /* NULL: the entry is free */
		uintptr_t begin, bytes;
	} watch[SIM_WATCHES];
};

enum schedule { SCHEDULE_TIME, SCHEDULE_RANDOM, SCHEDULE_PCT };

struct simulation {
	struct loom_sim sim; /* first member */
	const void *job;     /* the job to which the ranks belong; without ranks, the host table of the only group */
	struct simulation *next;
	pthread_mutex_t lock;               /* recursive, because a group also holds it while its probe runs */
	uint32_t expected;                  /* number of devices of all groups */
	uint32_t joined;                    /* number of devices that have joined */
	uint32_t shared;                    /* 1: the ranks of a job share the simulation */
	uint32_t configured;                /* 1: schedule, stall_ns, limit_ns and cost are set */
	uint32_t cost[LOOM_SIM_COST_COUNT]; /* costs of the first device, which devices with equal costs use */
	struct sim_group *group;            /* list of groups in the order of ranks */
	struct sim_group *between;          /* group of the agents between the ranks, such as a network; NULL: there are none */
	uint64_t lookahead;                 /* delay in ns after which an effect of one rank can reach others */
	struct sim_group *polled;           /* the group whose host words were polled last */
	uint64_t stall_ns, limit_ns;        /* limits in virtual time */
	uint32_t weak; /* 1: the machine model performs all accesses */
	enum schedule schedule;
	uint64_t seed, schedule_seed;
	char *program; /* the text that was compiled last */
	void (*work)(struct loom_ctx *c);

	/* State of the sample in progress. */
	struct heap live;         /* with schedule = time: groups by due time; else workers and agents, in no order */
	uint32_t *group_slot;     /* [groups]: index of each group in `live`; a separate array uses fewer cache lines */
	struct sim_group *active; /* the group whose entities run, up to the time `lbts` */
	/* LBTS: the lower bound on the time stamps of effects that other groups can still have on the active group. */
	uint64_t lbts;
	struct sim_worker *running;
	struct fiber home, *from;
	uint32_t over; /* 1: a fault ended the sample while entities were live */
	struct pct pct;
	uint64_t resumed_at;                  /* pct.step when the running worker began to run */
	uint64_t turn;                        /* number of entries into heaps */
	struct sim_entity *delayed;           /* random schedules: the entity that is delayed between two steps; NULL: none */
	uint64_t delayed_from, delayed_until; /* numbers of these two steps, as in pct.step */
	uint64_t check_at;                    /* virtual time of the next check for a stall */

	pthread_t thread;
	const struct sim_group *probing; /* the group whose probe is launched; NULL: none */
	uint32_t launched, armed;
	uint32_t probed, probe_armed;               /* like `launched` and `armed`, for probes */
	uint32_t command, completed, notifications; /* futex words: see the top of this file */
	uint32_t halt, leave;
	uint32_t stop_requested; /* 1: a host waits for workers after it has set the stop flag */
	int failed;              /* the error of a failed sample, of which `why` has the text, or 0 */
	char why[1200];
};

/* Joins the simulation of a stack or job, as all of its devices do. The last device to leave frees it. Returns 0 or an
 * error. */
int simulation_join(const struct loom_host *host, uint32_t instances, struct sim_member *m,
		    struct simulation **simulation, struct loom_error *err);
void simulation_leave(struct simulation *s, struct sim_member *m);

/* Registers memory of an owner. Repeated registrations of the same memory are counted. Returns 0 or LOOM_ENOMEM. */
int memory_add_range(struct sim_group *g, const void *begin, uint64_t bytes, int32_t owner);
void memory_drop_range(struct sim_group *g, const void *begin);
void memory_find_range(struct loom_sim *sim, uintptr_t address); /* an op of loom_sim */

/* Makes a member take part in samples. ctl: the host's control words. Returns 0 or errno. The thread runs while there
 * are such members. A probe excludes the other groups until it has ended. */
int simulation_start(struct simulation *s, struct sim_member *m, struct loom_ctl *ctl, uint64_t seed, int probe);
void simulation_end(struct simulation *s, struct sim_member *m);
/* Starts a sample when all devices of all groups have called it. Returns the value of `completed` at its end. */
uint32_t simulation_go(struct simulation *s);
void simulation_notify(struct simulation *s);
/* queue.c. queue_reserve() reserves memory for all workers and agents, while the simulation is idle. Returns 0 or
 * ENOMEM. */
int queue_reserve(struct simulation *s);
void queue_insert(struct simulation *s, struct sim_entity *e, uint64_t due);
void queue_remove(struct simulation *s, struct sim_entity *e);
/* Makes an agent due at `at_ns`, if it is not due earlier. */
void queue_wake(struct simulation *s, struct loom_agent *a, uint64_t at_ns);
/* With schedule = time: makes the running entity due at `due`. */
void queue_reschedule(struct simulation *s, uint64_t due);
/* Returns the next entity. This is the first entity of the active group, if it is due before the LBTS. Otherwise the
 * group that is due first becomes active, and its first entity is returned. NULL: no entity is live. */
struct sim_entity *queue_next(struct simulation *s);
/* Returns the horizon, which is the time until which the earliest entity may run without a switch. */
uint64_t queue_horizon(const struct simulation *s);

/* agent.c */
void agents_open(struct sim_group *g); /* fills group->clock */
void agents_close(struct sim_group *c);
/* Cuts *range to the part around `address` that is not watched. If `address` is in watched memory, cuts it to that
 * memory. */
void agents_clip(const struct sim_group *g, uintptr_t address, struct loom_sim_range *range);
void agents_stored(struct loom_sim *sim, uint32_t watched); /* an op of loom_sim */

/* run.c: runs one sample on the thread of the simulation. In a random schedule, another entity may run at each access.
 * It is drawn from all entities, or chosen by PCT (plugins/device_common/explore/pct.h). */
void simulation_run(struct simulation *s);
/* model.c. The model is in use between model_begin() and model_end(), which makes a race the fault of the sample.
 * model_where() appends the place of the last load or change, and returns its length. */
extern const struct loom_sim_memory model_memory;
void model_begin(struct simulation *s, uint64_t seed);
int model_ends(const struct simulation *s); /* returns 1 if there was a race, so that the sample may end */
void model_end(struct simulation *s);
int model_where(const struct sim_worker *x, char *text, size_t room);
/* describe.c: writes the fault and the states of the workers to s->why. */
enum fault { FAULT_STALL, FAULT_LIMIT, FAULT_ENDED_EARLY, FAULT_HALTED };
void simulation_describe(struct simulation *s, enum fault fault);

#endif
