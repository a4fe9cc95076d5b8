/* SPDX-License-Identifier: Apache-2.0 */
/* A stack: the plug-ins of a plan, opened, connected, and with their memory. */
#ifndef LOOM_STACK_H
#define LOOM_STACK_H

#include <gpuloom/interrupt.h>
#include <gpuloom/barrier.h>
#include <gpuloom/device.h>
#include <gpuloom/dev/trace.h>
#include <gpuloom/gpuloom.h>
#include <gpuloom/qos.h>
#include <gpuloom/sched.h>
#include <gpuloom/sync.h>
#include <gpuloom/term.h>
#include <gpuloom/transport.h>
#include <gpuloom/trigger.h>
#include <gpuloom/workload.h>
#include <sys/types.h>

#include "stack/host.h"
#include "stack/plan.h"

/* One opened policy or workload, with its blocks as the host sees them. */
struct loom__policy {
	const struct loom__choice *choice;
	const struct loom_policy_ops *ops; /* the common head of every policy's table */
	void *self;
	struct loom_need need;
	struct loom_view view;
	void **device_blocks, **worker_blocks; /* what view points at */
	loom_ref global;
	loom_ref *copy;      /* [devices]: this device's copy of the global block; 0: none */
	loom_ref *on_device; /* [devices] */
	loom_ref *registry;  /* [devices]: where this device's replica of the registry is */
	int started;         /* its host threads run */
	struct loom_remote_blocks *remote; /* [ranks] where ranks share tasks, with lists of workers' blocks; else NULL */
	void **remote_worker;
};

/* What a device reads about a launch; valid until the launch is retired. */
struct loom__orders {
	struct loom_launch launch;
	struct loom_chain chain;
	loom_ref global[LOOM_KINDS], on_device[LOOM_KINDS], registry[LOOM_KINDS];
	uint64_t local_bytes[LOOM_KINDS];
};

struct loom__device {
	const struct loom__choice *choice;
	const struct loom_device_ops *ops;
	void *self;
};

struct loom__rank_size {
	uint32_t workers, devices;
};

/* A collective of the program that embeds the stack. */
struct loom__call {
	uint64_t floats;
	int64_t root;	  /* -1: a sum */
	uint64_t refused; /* this rank rejects it, with a message: the others then fail, too */
};

struct loom_stack {
	pid_t owner; /* the process that opened it: a fork of it has a copy that must not touch workers or their memory */
	struct loom__plan plan;
	struct loom__host host;
	struct loom__device *device;   /* [layout.devices] */
	struct loom_device_shape *shape;
	struct loom_layout layout;
	struct loom_interrupts interrupts; /* what it names */
	const struct loom_device_ops **device_ops; /* the same as arrays, for the transport */
	void **device_self;
	struct loom_devices devices;
	const struct loom_transport_ops *transport;
	void *transport_self;
	struct loom__policy *policy;
	size_t policies;
	const struct loom_plugin *selected[LOOM_KINDS]; /* policies by kind, for build() */
	/* Segments, index 0 unused. A segment that the host cannot see has an image here. */
	struct loom_segment segment[LOOM_MAX_SEGMENTS];
	char *image[LOOM_MAX_SEGMENTS];
	uint32_t group[LOOM_MAX_SEGMENTS]; /* segments of one transport call are released together */
	uint32_t segments, groups;
	/* Task functions by tag: the workload's, then the embedder's. */
	struct loom_task_entry *task;
	uint32_t tasks, workload_tasks;
	struct loom_program_source *source; /* [sources] */
	struct loom_program_ir *ir;	    /* [irs] */
	uint32_t sources, irs;
	/* The embedder's initial set for the next run. */
	struct loom_task *submitted;
	size_t submitted_count, submitted_room;
	/* composed: the devices' code has all task functions. prepared: the memory below is valid. */
	int composed, prepared, broken;
	loom_ref ctl_ref, counters_ref, initial_ref;
	loom_ref initial_copy[LOOM_MAX_DEVICES]; /* a device's own; 0: none */
	uint64_t initial_room;
	uint64_t digest; /* of the initial set; see loom__ranks_digest() */
	struct loom__call call; /* in progress; zeros where none is */
	uint64_t trace_room, trace_every; /* see loom__trace_bytes */
	loom_ref trace_ref;
	struct loom_ctl *ctl;
	struct loom_counters *counters; /* [layout.workers], the host's view */
	int launched; /* the workers exist and wait for their next sample, unless: */
	int running;  /* loom_stack_start() has begun one, which loom_stack_wait() ends */
	int stuck;    /* workers still run after a stop */
	struct loom__rank_size *rank; /* [layout.ranks] where ranks share tasks; else NULL */
	uint32_t most_workers;	      /* of a rank */
	struct loom_counters *all_counters; /* see loom__ranks_counters() */
	struct pollfd *watch; /* [ranks], see loom__ranks_watch() */
	struct loom_net_need net; /* of workload and barrier together */
	uint32_t in_turns;    /* bit d: device d is time-sliced between ranks, LOOM_SHAPE_TIME_SLICED */
	uint32_t turns_with;  /* a rank that shares such a device */
	int warned;	      /* of that */
	int connected; /* policies of all ranks have each other's blocks */
	int stays;    /* workers may stay launched between runs: that costs nothing, and GO without READY starts them */
	struct loom__orders *orders; /* [layout.devices], of the last launch */
	struct loom_attachment attachment; /* of the launch: the sync plug-in's, if it has one */
	uint64_t samples_done; /* of this launch */
	void *about; /* what core/run keeps for its results; dropped at the end */
	void (*about_drop)(void *about);
	uint32_t stop_requests; /* atomic: see loom_stack_stop */
	/* Called by the thread that waits while a sample runs, once a second and whenever it wakes; with several
	 * devices 50 times a second. May be NULL. */
	void (*beat)(void *arg, const struct loom_stack *s, uint64_t since_ns);
	void *beat_arg;
	/* The same while a workload verifies a sample, of which `done`, 0 to 1, is over. */
	void (*progress)(void *arg, const struct loom_stack *s, uint64_t since_ns, double done);
	uint64_t verify_ns; /* when that began */
	uint64_t until_ns;  /* when [run] time_limit is over; 0: there is none */
	int closes;	 /* the run is the last one of the stack, whatever comes of it */
	uint64_t run_ns; /* when a run of the workload was asked for, with its set-up; 0: none */
	uint64_t begin_ns, deadline_ns; /* of the sample in progress */
	uint64_t end_ns; /* when the last worker left it, of the devices that have ended so far */
};

/* Takes over *plan. */
int loom__stack_open(struct loom__plan *plan, const struct loom_stack_params *params,
		     struct loom_stack **stack, struct loom_error *err);

/* Reads the devices' shapes: at first, and again once their code is composed. */
int loom__stack_shape(struct loom_stack *s, struct loom_error *err);

/* Composes the device code, once and after task functions were added; allocates all blocks and fills the initial
 * set of a workload, once. */
int loom__stack_prepare(struct loom_stack *s, struct loom_error *err);

void *loom__host_at(struct loom_stack *s, loom_ref ref);

/* Bytes of one worker's trace buffer; 0: none is wanted. */
static inline uint64_t loom__trace_bytes(const struct loom_stack *s)
{
	return s->trace_room ? sizeof(struct loom_trace) + s->trace_room * sizeof(struct loom_event) : 0;
}

/* The trace buffer of a worker, as the host sees it; only where traces are wanted. */
static inline struct loom_trace *loom__trace_of(struct loom_stack *s, uint32_t worker)
{
	char *first = loom__host_at(s, s->trace_ref);
	return (struct loom_trace *)(first + worker * loom__trace_bytes(s));
}

/* job.c: starts the persistent workers, unless they are there, and ends them. */
int loom__stack_launch(struct loom_stack *s, struct loom_error *err);
int loom__stack_retire(struct loom_stack *s, struct loom_error *err);
/* 0 in the process that opened the stack. LOOM_EBUSY in a fork of it. */
int loom__stack_own(const struct loom_stack *s, struct loom_error *err);
/* The same, and no run is in progress, and no worker of an earlier run is left: only then may memory be changed that
 * workers read. LOOM_EBUSY. */
int loom__stack_is_idle(struct loom_stack *s, struct loom_error *err);
/* The initial set: room for so many tasks, wherever devices read them; and from the place that all see to the
 * copies. */
int loom__initial_room(struct loom_stack *s, uint64_t tasks, struct loom_error *err);
void loom__initial_copy(struct loom_stack *s);
/* prepare.c: what was submitted is the initial set. */
int loom__initial_take(struct loom_stack *s, struct loom_error *err);

/* A non-coherent GPU has copies of what is constant in its own memory: it reads nothing of that over the link. */
static inline int loom__wants_copies(const struct loom_stack *s, uint32_t device)
{
	return s->layout.noncoherent && s->shape[device].kind == LOOM_ON_GPU;
}

/* memory.c: segments and the host's way to them. */
int loom__segments_add(struct loom_stack *s, const struct loom_segment_want *want, uint32_t n,
		       uint32_t *first, struct loom_error *err);
void loom__segments_release_last(struct loom_stack *s);
/* As struct loom_segments has it. */
int loom__segment_copy(void *stack, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		       struct loom_error *err);
/* The three of struct loom_segments for memory of devices that other ranks share. */
int loom__memory_key(void *stack, uint32_t segment, struct loom_memory_key *key, struct loom_error *err);
int loom__memory_open(void *stack, uint32_t device, const struct loom_memory_key *key, uint64_t *at, struct loom_error *err);
void loom__memory_close(void *stack, uint32_t device, uint64_t at);
/* Copies images into the devices, or back; nothing to do where all memory is visible to the host. */
int loom__images_copy(struct loom_stack *s, int in, struct loom_error *err);

/* sync.c: the channels for the sync plug-in, and interrupt() of all policies. Its attachments go to *out (room for one): how many. */
int loom__sync_channels(struct loom_stack *s, struct loom_error *err);
uint32_t loom__sync_attachments(struct loom_stack *s, struct loom_attachment *out);
void loom__interrupt(struct loom_stack *s, int code, uint32_t device);

/* qos.c: the pipeline of qos plug-ins, the tenants, and what these may name. */
#define LOOM__QOS_STAGES 16
int loom__qos_open(struct loom_stack *s, struct loom_error *err);
int loom__qos_tenants(struct loom_stack *s, struct loom_error *err);
int loom__qos_grants(struct loom_stack *s, struct loom_error *err);

/* policies.c: interrupts, which policies find in the layout. */
void loom__interrupts_offer(struct loom_stack *s);

/* probe.c: the coherence probe over all pairs of devices and all placements. */
int loom__stack_probe(struct loom_stack *s, struct loom_error *err);

/* gate.c: one execution, from s->begin_ns to s->end_ns on CLOCK_MONOTONIC. `alone`: GO without READY, where
 * s->stays. */
int loom__gate_begin(struct loom_stack *s, int alone, uint64_t timeout_ns, struct loom_error *err);
/* Until the last worker has left it: 0. LOOM_EAGAIN at `until`. LOOM_ETIMEDOUT, LOOM_EINTR (a stop request, the
 * second one for a workload's) and LOOM_EDIED leave the stack to be retired. */
int loom__gate_end(struct loom_stack *s, uint64_t until, struct loom_error *err);
/* Stops the sample in progress and waits a moment until its workers have left: 1 when they have. */
int loom__gate_cancel(struct loom_stack *s);
/* The opened plug-in of a kind, the first one of a pipeline; NULL: none. */
struct loom__policy *loom__policy_of(struct loom_stack *s, enum loom_kind kind);
/* Host threads of policies, which run from before the launch until after its end. */
int loom__policies_start(struct loom_stack *s, struct loom_error *err);
void loom__policies_stop(struct loom_stack *s);
/* net.c. 1: there are several ranks, and the workload has a barrier of the scope of all. */
int loom__barrier_spans_ranks(struct loom_stack *s);
/* Network operations of a sample: posted by barrier and workload; later complete, here and at their targets. */
int loom__wire(struct loom_stack *s, struct loom_error *err);
int loom__flush(struct loom_stack *s, uint64_t timeout_ns, struct loom_error *err);
/* ranks.c: where [run] tasks = shared and there are several ranks: whether what the conf selects can share them; how many
 * workers the others have, once the device code is composed; where their blocks are, once the policies have started.
 * Otherwise nothing. */
int loom__ranks_share(struct loom_stack *s, struct loom_error *err);
uint64_t loom__ranks_conf(const struct loom_stack *s); /* a digest of the plug-ins that are selected */
int loom__ranks_size(struct loom_stack *s, struct loom_error *err);
int loom__ranks_reach(struct loom_stack *s, struct loom_error *err);
/* Of the initial set, where ranks share it: all must have the same. */
uint64_t loom__ranks_digest(const struct loom_stack *s, const struct loom_task *tasks, uint64_t n);
/* What the workers counted, those of all ranks that share tasks, rank by rank: layout.workers + layout.remote_workers of them.
 * Valid until the next call. */
int loom__ranks_counters(struct loom_stack *s, const struct loom_counters **all, struct loom_error *err);
/* A barrier of all ranks: afterwards `stop` is set if it was in any rank, and ns is the largest. `tasks` must be the same, and so
 * must the collective that a program calls. */
struct loom__agreed {
	uint64_t stop, ns, tasks;
	struct loom__call call;
};
int loom__ranks_agree(struct loom_stack *s, struct loom__agreed *mine, struct loom_error *err);
/* watch.c: finds out once, by the first allgather of a stack, which processes of this host are the other ranks, whether
 * these share a device of this one, and that all ranks have the plug-ins of one conf. Then: a warning of shared devices;
 * LOOM_EDIED when a rank has ended since; the end of the watch. */
int loom__ranks_watch(struct loom_stack *s, struct loom_error *err);
void loom__ranks_warn(struct loom_stack *s);
int loom__ranks_lost(struct loom_stack *s, struct loom_error *err);
void loom__ranks_unwatch(struct loom_stack *s);
/* The first failure that a worker latched, in words; 0 when there is none. */
int loom__worker_failure(struct loom_stack *s, struct loom_error *err);
/* "cpu:0: 1 in tasks (0), 3 looking for work (1-3)" of each device; nothing where that is not known. */
void loom__whereabouts(const struct loom_stack *s, struct loom__text *out);

#endif
