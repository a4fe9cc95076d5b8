/* SPDX-License-Identifier: Apache-2.0 */
/* All state of sched_mgws, and where it is. Device code.
 *
 *   struct mgws_global    the stack's block, one for all workers; if devices are non-coherent, one per device
 *   struct mgws_site      the device's block: constants
 *   struct mgws_queue     the worker's block: its public queue, which thieves change. The ring and the backlog follow
 *   struct sched_local    the private block: state that the lanes of a worker share (sched_common/queue.dev.h)
 *   struct sched_lane     one per lane: head and count of the local queue; registers on a GPU
 *   struct mgws_worker    the private block, after the local queue: state of lane 0
 *   struct mgws_lane      one per lane: the claimed block, and the indices of other rings; registers on a GPU
 *
 * struct mgws_meta describes a public queue. If a queue has one owner, this struct is in the owner's private block
 * (mgws_worker.own); if it has several, the struct is in the queue. Only mailbox.dev.h and ranks.dev.h have further
 * state. */
#ifndef SCHED_MGWS_STATE_DEV_H
#define SCHED_MGWS_STATE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../sched_common/queue.dev.h"
#endif

/* ---- shared by workers ----------------------------------------------------------------------- */

/* An overflow list: list.dev.h. */
struct mgws_list {
	uint32_t lock; /* 1: a worker holds the lock */
	uint32_t pad0[15];
	uint64_t count; /* number of tasks on the list; written with the lock held, polled without it */
	uint64_t taken; /* number of tasks taken from the list since the sample began; mgws_stolen_count() includes it */
	uint64_t pad1[6];
};

#define MGWS_LISTS 3u /* number of lists; LOOM_ON_* is the index of a list */

/* Distances to another rank: same host and NUMA node, same host, another host. */
enum { MGWS_SAME_NODE, MGWS_SAME_HOST, MGWS_OTHER_HOST };

/* The block that workers share. The slots of the lists follow, cfg.overflow_list slots for each list. The lists LOOM_ON_CPU
 * and LOOM_ON_GPU have slots only in a stack with both kinds of device. Behind the slots is the table of ranks.dev.h or the
 * state of mailbox.dev.h. Each non-coherent device has a struct mgws_global of its own; the stack's block then holds the
 * options and the mailboxes. Ranks that share tasks use `event` and `next` in the block of rank 0. If ranks reach each other
 * only by RMA, each rank uses the `event` and the `range` in its own block. */
struct mgws_global {
	struct sched_common common;
	uint64_t next;                    /* index of the next unclaimed task of the initial set, if it has no ranges */
	uint64_t range;                   /* the range of the initial set for this device or rank: claim.dev.h */
	uint64_t ranges;                  /* number of ranges that this device has received through mailboxes */
	uint64_t job;                     /* address of rank 0's block, as this rank reaches it; 0: this block itself */
	uint32_t within[MGWS_OTHER_HOST]; /* [distance]: number of remote workers at this or a smaller distance */
	uint64_t pad[3];
	struct mgws_list list[MGWS_LISTS];
};

/* The block of a device. All fields but `used_up` and `searching` are constant. */
struct mgws_site {
	uint32_t kind;  /* LOOM_ON_CPU or LOOM_ON_GPU */
	uint32_t other; /* the affinity of tasks that this device must not run */
	uint32_t pad[14];
	/* with cfg.spread: a bit for each device; 1: this device knows that the range of that device is used up */
	uint64_t used_up;
	uint64_t pad1[7];
	uint32_t searching; /* with cfg.noncoherent: number of this device's workers without tasks; a hint */
	uint32_t pad2[15];
	uint32_t first[LOOM_MAX_DEVICES]; /* [device]: its first worker */
};

/* ---- of a worker ----------------------------------------------------------------------------- */

/* Metadata of a public queue. Tasks have consecutive positions from the start of the sample on; the slot of a task is
 * position & mask. An epoch bit is 0 or 1 in turn: public.dev.h. */
struct mgws_meta {
	uint64_t word;       /* value of the queue's word at the start of this epoch; MGWS_NO_WORD: between epochs */
	uint64_t open;       /* number of tasks that this epoch offered at its start; 0: the queue is empty or closed */
	uint64_t tail, head; /* at the last publication: position of the oldest task, and of the newest task plus 1 */
	uint64_t begin[2];   /* [epoch bit]: oldest position that copies by thieves in epochs with this bit can read */
	uint64_t started[2]; /* [epoch bit]: number of tasks that thieves took in ended epochs with this bit */
	uint64_t published;  /* number of tasks put into the queue, from any source */
	uint64_t acquired;   /* number of tasks that owners took back */
	uint32_t epoch;      /* the epoch bit of this epoch */
	uint32_t mask;       /* number of slots - 1 */
	uint64_t pad[5];
};
#define MGWS_NO_WORD      (~0ull) /* a value that no queue's word has: locked, with the largest number of attempts */
#define MGWS_OPEN_UNKNOWN 1       /* value of mgws_worker.own.open if the queue has several owners: owners.dev.h */

/* A public queue. Each worker has one, in memory that all workers reach. The ring follows. */
struct mgws_queue {
	uint64_t word;   /* the word of public.dev.h; the owner stores it, and thieves add to it */
	uint32_t leader; /* the worker whose queue this worker uses; constant */
	uint32_t pad0;
	/* only with cfg.spread, and in the queue of a device's first worker: the part of the initial set that the device claims
	 * from, as end and next task (claim.dev.h) */
	uint64_t range;
	uint64_t pad1[5];
	uint64_t completed[2]; /* [epoch bit]: number of tasks that thieves have copied; thieves add to it */
	uint64_t moved;        /* with several owners: number of tasks stolen or acquired, for mgws_stolen_count() */
	uint32_t lock;         /* with several owners: the trylock; 1: an owner holds it */
	uint32_t pad2;
	/* For collect(): number of steals from other ranks; number of tasks that these steals took; number of these steals from
	 * ranks of this host. */
	uint64_t remote_steals, remote_tasks, host_steals;
	uint64_t pad3;
	struct mgws_meta meta; /* the metadata with several owners; a single owner stores a copy here for collect() */
};

/* A worker's state that only lane 0 uses. */
struct mgws_worker {
	struct mgws_meta own;   /* the metadata with a single owner */
	struct mgws_meta *meta; /* `own`, or the queue's metadata with several owners */
	struct mgws_queue *q;   /* the public queue that this worker uses */
	uint32_t distance; /* with victim = neighbour: number of the last victim minus that of this worker */
	uint32_t next;     /* the victim to try first, plus 1; 0: none */
	/* if transfer = id: number whose remainder by the number of slots is the slot at which the search for a free slot
	 * starts */
	uint32_t pool;
	/* For mailbox.dev.h. */
	uint32_t polled; /* the device whose request was polled last */
	/* a bit for each device; 1: the device has not yet taken the last grant that this worker made to it */
	uint64_t untaken;
	uint32_t request; /* the number of the request that was polled last */
	uint32_t grants;  /* number of grants that this worker has made */
	/* For ranks.dev.h. */
	uint32_t remote_last;   /* the remote victim that had tasks last time, plus 1; 0: none */
	uint32_t remote_steals; /* this member, remote_tasks and host_steals: as in struct mgws_queue */
	uint64_t remote_tasks;
	uint64_t progress_ns; /* time at which mgws_rma_progress() last served other ranks */
	uint32_t batch;       /* number of short tasks to run before the next call of mgws_rma_progress(), minus 1 */
	uint32_t wanted;      /* number of calls of sched_mgws_wanted() */
	uint32_t searches;    /* on GPUs: number of searches without a known remote victim, for mgws_rank_is_empty() */
	uint32_t host_steals;
	uint32_t neighbour; /* with victim = neighbour: the next remote victim, modulo their number */
	/* GO phase of a small sample (dev/ctx.h) in which this worker has not called the other workers; 0: none */
	uint32_t small;
	uint32_t begun; /* 1: this worker has run its part of a small sample */
	uint32_t checks; /* number of calls of mgws_checks_detector() */
	/* For mgws_limit_claim(): when this worker made its last guided claim of several tasks, and the size of the claim. */
	uint64_t claim_ns, claimed, pad;
};

/* Programs for GPUs have the code for small samples only with quick = yes in [device.gpu]. */
#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_GPU_QUICK)
#define MGWS_SMALL(c) 0
#define MGWS_BEGUN(c) 0
#else
#define MGWS_SMALL(c) (mgws_worker(c)->small)
#ifdef LOOM_DEVICE_COMPILE
#define MGWS_BEGUN(c) (mgws_worker(c)->begun)
#else
#define MGWS_BEGUN(c) ((c)->begun) /* scratchpad memory may hold anything before the scheduler has begun */
#endif
#endif

/* ---- of a lane ------------------------------------------------------------------------------- */

/* A block of initial tasks that the worker has claimed. A worker of one lane runs these tasks in place. A worker of several
 * lanes copies some tasks at a time into the local queue, so that its lanes wait for memory only once. */
struct mgws_block {
	uint64_t next, end; /* indices of the next initial task, and of the end of the block; equal in all lanes */
	/* Values that lane 0 has loaded last. word: the public queue's word; only GPUs load it. claimed: index of the next
	 * unclaimed initial task, or MGWS_ALL; on a GPU with ranges, the range. While initial tasks are unclaimed, the
	 * worker does not publish. */
	uint64_t word, claimed;
};
#define MGWS_ALL (~0ull) /* value of `claimed` if the whole set is claimed */

struct mgws_backlog {
	uint32_t head, count;
};
struct mgws_lane {
	struct mgws_block block;
	struct mgws_backlog backlog;
};
#define MGWS_REGISTER_WORDS 7 /* words of loom_ctx.regs in use */

/* Behind struct mgws_worker are the lanes, and a bit per victim (steal.dev.h). */
#define MGWS_LANES_BYTES(lanes) SCHED_PER_LANE(lanes, sizeof(struct mgws_lane))
#define MGWS_BITS_BYTES(workers) (((uint64_t)(workers) + 63u) / 64u * 8u)
#define MGWS_WORKER_BYTES(lanes, victims)                                                                              \
	(sizeof(struct mgws_worker) + MGWS_LANES_BYTES(lanes) + MGWS_BITS_BYTES(victims))

/* ---- access ---------------------------------------------------------------------------------- */

LOOM_FN const struct mgws_site *mgws_site(const struct loom_ctx *c)
{
	return (const struct mgws_site *)c->on_device[LOOM_SCHED];
}

/* mgws_kind() returns the kind of this device (LOOM_ON_*), mgws_other_kind() the affinity of tasks that it must not run. */
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

/* Returns the number of workers of other ranks that share tasks with this rank. */
LOOM_FN uint32_t mgws_remote_count(const struct loom_ctx *c)
{
	return SCHED_CFG(c, remote_workers) ? sched_common(c)->cfg.remote_workers : 0;
}

/* Returns the block that the workers of all ranks share; if they share none, the block of mgws_global(). */
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

LOOM_FN uint64_t *mgws_bits(const struct loom_ctx *c)
{
	return (uint64_t *)((char *)(mgws_worker(c) + 1) + MGWS_LANES_BYTES(c->lanes));
}

#endif
