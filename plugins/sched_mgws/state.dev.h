/* SPDX-License-Identifier: Apache-2.0 */
/* All state of sched_mgws, and where it is. Device code.
 *
 *   struct mgws_global    the stack's block, one for all workers; one per device where devices are non-coherent
 *   struct mgws_site      the device's block: constants
 *   struct mgws_queue     the worker's block: its public queue, which thieves change. The ring and the backlog follow
 *   struct sched_local    the private block: what the lanes of a worker share (shared/sched/queue.dev.h)
 *   struct sched_lane     one per lane: head and count of the local queue; registers on a GPU
 *   struct mgws_worker    the private block, after the local queue: lane 0's state between tasks
 *   struct mgws_lane      one per lane: the claimed block, the backlog's indices; registers on a GPU
 *
 * struct mgws_meta describes a public queue. With one owner it is in that worker's private block (mgws_worker.own),
 * with several in the queue. Further state belongs to mailbox.dev.h and ranks.dev.h alone. */
#ifndef SCHED_MGWS_STATE_DEV_H
#define SCHED_MGWS_STATE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sched/queue.dev.h"
#endif

/* ---- shared by workers ----------------------------------------------------------------------- */

/* A list of tasks for which queues have no room: list.dev.h. */
struct mgws_list {
	uint32_t lock;
	uint32_t pad0[15];
	uint64_t count; /* written with the lock held, polled without it */
	uint64_t taken; /* tasks ever taken; each worker's `stolen_out` includes them */
	uint64_t pad1[6];
};

#define MGWS_LISTS 3u /* indexed by LOOM_ON_* */

/* Distance to another rank. */
enum { MGWS_SAME_NODE, MGWS_SAME_HOST, MGWS_OTHER_HOST };

/* Slots of the lists follow, cfg.overflow_list for each. The lists of LOOM_ON_CPU and LOOM_ON_GPU have slots only in a
 * stack with both kinds of device. Then comes the table of ranks.dev.h or the state of mailbox.dev.h. Each non-coherent
 * device has a block like this; the stack's block then holds the options and the mailboxes. Ranks that share tasks use
 * the eventcount and `next` of rank 0. Ranks that reach each other only by RMA have an eventcount and a range each. */
struct mgws_global {
	struct sched_common common;
	uint64_t next;                    /* the next task of the initial set */
	uint64_t range;                   /* the part of the initial set for this device or rank: claim.dev.h */
	uint64_t ranges;                  /* number of ranges that came through mailboxes */
	uint64_t job;                     /* address of rank 0's block in this rank; 0: this is the block */
	uint32_t within[MGWS_OTHER_HOST]; /* number of workers of other ranks up to each distance */
	uint64_t pad[3];
	struct mgws_list list[MGWS_LISTS];
};

/* The block of a device; constant. */
struct mgws_site {
	uint32_t kind;  /* LOOM_ON_CPU or LOOM_ON_GPU */
	uint32_t other; /* the affinity that excludes this device */
	uint32_t pad[14];
	/* cfg.spread, not constant: a bit for each device whose range this device has seen used up */
	uint64_t used_up;
	uint64_t pad1[7];
	uint32_t first[LOOM_MAX_DEVICES]; /* worker of each device */
};

/* ---- of a worker ----------------------------------------------------------------------------- */

/* Metadata of a public queue. A position counts tasks since the sample's start; a task's slot is position & mask. */
struct mgws_meta {
	uint64_t word;       /* the word published in this epoch, or MGWS_NO_WORD */
	uint64_t open;       /* tasks published in this epoch; 0: none can be left */
	uint64_t tail, head; /* the oldest task, and one past the newest, at the last publication */
	uint64_t begin[2];   /* no copy with this epoch bit reads in front of this position */
	uint64_t started[2]; /* tasks taken in ended epochs, per epoch bit */
	uint64_t published;  /* tasks put into the queue, from any source */
	uint64_t acquired;   /* tasks that owners took back */
	uint32_t epoch;
	uint32_t mask;
	uint64_t pad[5];
};
#define MGWS_NO_WORD      (~0ull) /* never a queue's word: locked, with all attempts made */
#define MGWS_OPEN_UNKNOWN 1       /* value of mgws_worker.own.open with several owners: judge by the queue's word */

/* One for each worker, in memory that all workers reach. The ring follows. */
struct mgws_queue {
	uint64_t word;   /* the owner stores, thieves add */
	uint32_t leader; /* the worker whose queue this worker uses; constant */
	uint32_t pad0;
	uint64_t range; /* cfg.spread: of the device, whose first worker this is: claim.dev.h */
	uint64_t pad1[5];
	uint64_t completed[2]; /* tasks copied, per epoch bit; thieves add */
	uint64_t moved;        /* several owners: tasks stolen or acquired, for mgws_stolen_count() */
	uint32_t lock;         /* several owners: trylock */
	uint32_t pad2;
	/* For collect(): steals from other ranks, their tasks, and steals from ranks of this host. */
	uint64_t remote_steals, remote_tasks, host_steals;
	uint64_t pad3;
	struct mgws_meta meta; /* used by several owners; a single owner stores it for collect() */
};

/* State of lane 0. */
struct mgws_worker {
	struct mgws_meta own;   /* used by a single owner */
	struct mgws_meta *meta; /* `own`, or the queue's metadata */
	struct mgws_queue *q;
	uint32_t distance; /* victim = neighbour: distance of the last victim */
	uint32_t next;     /* the victim to try first, plus 1; 0: none */
	uint32_t pool;     /* transfer = id: where the search for a free slot of the pool starts */
	/* For mailbox.dev.h. */
	uint32_t polled;  /* the device whose request was polled last */
	uint64_t untaken; /* one bit for each device that has not yet taken this worker's grant */
	uint64_t grants;  /* number of grants that this worker made */
	/* For ranks.dev.h. */
	uint32_t remote_last;   /* the remote victim that had tasks last time, plus 1; 0: none */
	uint32_t remote_steals; /* counted for collect(), as in the queue */
	uint64_t remote_tasks;
	uint64_t progress_ns; /* time of the last progress call */
	uint32_t batch;       /* short tasks between two reads of the clock, minus 1 */
	uint32_t wanted;      /* calls of wanted() */
	uint32_t searches;    /* searches without success, counted for mgws_checks_detector() */
	uint32_t host_steals;
	uint32_t neighbour; /* victim = neighbour: the next remote victim */
	uint32_t pad[9];
};

/* ---- of a lane ------------------------------------------------------------------------------- */

/* The claimed block of the initial set. A worker of one lane runs its tasks in place. Several lanes copy some at a time
 * into the local queue, so that they wait for the memory once. */
struct mgws_block {
	uint64_t next, end; /* equal in every lane */
	/* Values of lane 0's last poll: the public queue's word (GPUs), and how far the set is claimed (MGWS_ALL: all
	 * of it). Nothing is published while initial tasks are unclaimed. */
	uint64_t word, claimed;
};
#define MGWS_ALL (~0ull)

/* Indices of another ring of this worker: the backlog, or the tasks of high or low priority. */
enum { MGWS_HIGH, MGWS_LOW, MGWS_LEVELS };
struct mgws_level {
	uint32_t head, count;
};
struct mgws_lane {
	struct mgws_block block;
	struct mgws_level backlog;
	struct mgws_level level[MGWS_LEVELS];
};
#define MGWS_REGISTER_WORDS(priorities) ((priorities) ? 9 : 7) /* words of loom_ctx.regs; the levels come last */

/* struct mgws_worker is followed by the lanes, the rings of priorities.dev.h, and a bit per victim (steal.dev.h). */
#define MGWS_LANES_BYTES(lanes) SCHED_PER_LANE(lanes, sizeof(struct mgws_lane))
#define MGWS_RINGS_BYTES(priorities, local_queue)                                                                      \
	((priorities) ? (uint64_t)MGWS_LEVELS * (local_queue) * sizeof(struct loom_task) : 0)
#define MGWS_BITS_BYTES(workers) (((uint64_t)(workers) + 63u) / 64u * 8u)
#define MGWS_WORKER_BYTES(lanes, priorities, local_queue, victims)                                                     \
	(sizeof(struct mgws_worker) + MGWS_LANES_BYTES(lanes) + MGWS_RINGS_BYTES(priorities, local_queue) +            \
	 MGWS_BITS_BYTES(victims))

/* ---- access ---------------------------------------------------------------------------------- */

LOOM_FN const struct mgws_site *mgws_site(const struct loom_ctx *c)
{
	return (const struct mgws_site *)c->on_device[LOOM_SCHED];
}

/* The kind of this device (LOOM_ON_*), and the affinity that excludes it. */
LOOM_FN uint32_t mgws_kind(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)c;
	return LOOM_ON_GPU;
#else
	return mgws_site(c)->kind;
#endif
}

LOOM_FN uint32_t mgws_other_kind(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	(void)c;
	return LOOM_ON_CPU;
#else
	return mgws_site(c)->other;
#endif
}

LOOM_FN struct mgws_global *mgws_find_global(const struct loom_ctx *c)
{
	return SCHED_CFG(c, noncoherent)
		   ? (struct mgws_global *)((char *)c->on_device[LOOM_SCHED] + sizeof(struct mgws_site))
		   : (struct mgws_global *)c->global[LOOM_SCHED];
}

#ifdef SCHED_CONSTANTS
#define mgws_global(c) mgws_find_global(c)
#else
LOOM_FN struct mgws_global *mgws_global(const struct loom_ctx *c)
{
	return (struct mgws_global *)sched_local(c)->global;
}
#endif

/* Returns the number of workers of other ranks. */
LOOM_FN uint32_t mgws_remote_count(const struct loom_ctx *c)
{
	return SCHED_CFG(c, remote_workers) ? sched_common(c)->cfg.remote_workers : 0;
}

/* Returns the block that the workers of all ranks share. */
#if defined(SCHED_CONSTANTS) && !(SCHED_IS_remote_workers && !SCHED_IS_rma)
#define mgws_job(c) mgws_find_global(c)
#elif defined(SCHED_CONSTANTS)
LOOM_FN struct mgws_global *mgws_job(const struct loom_ctx *c)
{
	struct mgws_global *own = mgws_find_global(c);
	return own->job ? (struct mgws_global *)(uintptr_t)own->job : own;
}
#else
LOOM_FN struct mgws_global *mgws_job(const struct loom_ctx *c)
{
	return (struct mgws_global *)sched_local(c)->job;
}
#endif
#define mgws_event(c) (&mgws_job(c)->common.event)

LOOM_FN struct loom_task *mgws_list_slots(const struct loom_ctx *c, uint32_t which)
{
	return (struct loom_task *)(mgws_global(c) + 1) + which * SCHED_CFG(c, overflow_list);
}

LOOM_FN struct mgws_worker *mgws_worker(const struct loom_ctx *c)
{
	return (struct mgws_worker *)sched_private(c);
}

LOOM_FN struct mgws_lane *mgws_lane(const struct loom_ctx *c)
{
#ifdef LOOM_DEVICE_COMPILE
	return (struct mgws_lane *)&c->regs[SCHED_REGS_OWN];
#else
	return (struct mgws_lane *)(mgws_worker(c) + 1) + c->lane;
#endif
}

LOOM_FN char *mgws_behind_lanes(const struct loom_ctx *c)
{
	return (char *)(mgws_worker(c) + 1) + MGWS_LANES_BYTES(c->lanes);
}

LOOM_FN uint64_t *mgws_bits(const struct loom_ctx *c)
{
	return (uint64_t *)(mgws_behind_lanes(c) +
			    MGWS_RINGS_BYTES(SCHED_CFG(c, priorities), SCHED_CFG(c, local_queue)));
}

#endif
