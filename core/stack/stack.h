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
	const struct loom_policy_ops *ops; /* the common part of the policy's table */
	void *self;
	struct loom_need need;
	struct loom_view view;
	void **device_blocks, **worker_blocks; /* the arrays of view */
	loom_ref global;
	loom_ref *copy;      /* [devices]: the copy of the global block; 0: none */
	loom_ref *on_device; /* [devices] */
	loom_ref *registry;  /* [devices]: the copy of the registry */
	int started;         /* start() has succeeded */
	/* [ranks] with the blocks of their workers, where ranks share tasks; else NULL */
	struct loom_remote_blocks *remote;
	void **remote_worker;
};

/* Number of tasks up to which GPUs copy the initial set from host memory. A copy by the host takes longer for such a
 * set. */
#define LOOM__SMALL_SET 1024u

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

/* A collective of the embedding program. */
struct loom__call {
	uint64_t floats;
	int64_t root;	  /* -1: a sum; else the rank that broadcasts */
	uint64_t refused; /* 1: this rank rejects the call with a message, and the other ranks then fail, too */
};

struct loom_stack {
	pid_t owner; /* the process that opened the stack: a fork must not touch workers or their memory */
	struct loom__plan plan;
	struct loom__host host;
	struct loom__device *device;   /* [layout.devices] */
	struct loom_device_shape *shape;
	struct loom_layout layout;
	uint64_t *costs; /* layout.costs */
	struct loom_interrupts interrupts; /* what layout.interrupts points to */
	const struct loom_device_ops **device_ops; /* the devices as arrays, for the transport */
	void **device_self;
	struct loom_devices devices;
	const struct loom_transport_ops *transport;
	void *transport_self;
	struct loom__policy *policy;
	size_t policies;
	const struct loom_plugin *selected[LOOM_KINDS]; /* policies by kind, for build() */
	/* Segments; index 0 is unused. A segment that the host cannot access has an image. */
	struct loom_segment segment[LOOM_MAX_SEGMENTS];
	char *image[LOOM_MAX_SEGMENTS];
	struct loom_memory no_memory;	   /* released segments point to this memory */
	struct loom_memory *adopted[LOOM_MAX_SEGMENTS]; /* memory of the program: loom_stack_adopt(); NULL: the stack's own */
	int32_t adopter[LOOM_MAX_SEGMENTS];		/* the device that has this memory; -1: the host */
	uint32_t group[LOOM_MAX_SEGMENTS]; /* segments of one transport call, which are released together */
	uint32_t segments, groups;
	/* Task functions by tag: those of the workload, then those of the embedding program. */
	struct loom_task_entry *task;
	uint32_t tasks, workload_tasks;
	struct loom_program_source *source; /* [sources] */
	struct loom_program_ir *ir;	    /* [irs] */
	uint32_t sources, irs;
	struct loom_task *submitted; /* The initial set of the next run, from the embedding program. */
	size_t submitted_count, submitted_room;
	/* composed: the devices' code has all task functions. prepared: the memory below is valid. */
	int composed, prepared, broken;
	loom_ref ctl_ref, counters_ref, initial_ref;
	loom_ref initial_copy[LOOM_MAX_DEVICES]; /* [device]: its copy of the initial set, in its own memory; 0: none */
	uint64_t initial_room;
	int initial_small; /* devices copy the set from initial_ref, where the host writes it */
	uint64_t digest; /* digest of the initial set: loom__ranks_digest() */
	struct loom__call call; /* the collective in progress, else zeros */
	uint64_t trace_room, trace_every; /* values from which loom__trace_bytes() computes the size */
	loom_ref trace_ref;
	struct loom_ctl *ctl;
	struct loom_counters *counters; /* [layout.workers], at the host's address */
	int launched; /* workers exist, and wait for their next sample unless `running` */
	uint64_t enqueued; /* samples in a stream of the program whose end loom_stack_wait() has not returned */
	int captured;	   /* 1: some samples are in graphs */
	struct loom__slots *slots; /* the tasks of samples in streams and graphs */
	int running;  /* a run that loom_stack_start() has begun and loom_stack_wait() ends */
	int stuck;    /* workers still run after a stop */
	struct loom__rank_size *rank; /* [layout.ranks] where ranks share tasks; else NULL */
	uint32_t most_workers;	      /* the number of workers of the largest rank */
	struct loom_counters *all_counters; /* result of loom__ranks_counters() */
	struct pollfd *watch; /* [ranks], for loom__ranks_watch() */
	struct loom_net_need net; /* the needs of workload and barrier, added */
	uint32_t in_turns;    /* bit d: device d is time-sliced between ranks, LOOM_SHAPE_TIME_SLICED */
	uint32_t turns_with;  /* a rank that shares such a device */
	int warned;	      /* the warning about shared devices has been logged */
	int connected; /* policies of all ranks know each other's blocks */
	struct loom__resets *resets; /* reset.c: devices reset the memory of policies; NULL: init() and copies for each sample */
	int unkept;		     /* 1: init() of these policies does not allow resets by devices */
	uint32_t resets_made;
	uint64_t held; /* the largest initial set that policies were asked about */
	int stays;    /* workers may stay launched between runs, at no cost, and GO starts them without READY */
	struct loom__orders *orders; /* [layout.devices], of the last launch */
	struct loom_attachment attachment; /* hooks of the sync plug-in for the launch, if it has some */
	uint64_t launches;     /* number of launches of this stack */
	uint64_t samples_done; /* number of samples since the launch */
	void *about; /* data of core/run for its results; dropped with the stack */
	void (*about_drop)(void *about);
	uint32_t stop_requests; /* atomic: loom_stack_stop() adds to it */
	/* During a sample the waiting thread calls this once a second and whenever it wakes; with several devices 50
	 * times a second. May be NULL. */
	void (*beat)(void *arg, const struct loom_stack *s, uint64_t since_ns);
	void *beat_arg;
	/* Called while a workload verifies a sample: `done`, 0 to 1, is the finished part. */
	void (*progress)(void *arg, const struct loom_stack *s, uint64_t since_ns, double done);
	uint64_t verify_ns; /* the start of the verification in progress */
	uint64_t until_ns;  /* the end of [run] time_limit; 0: no limit */
	int closes;	 /* the stack is closed after this run, whatever its result */
	uint64_t run_ns; /* when the run of a workload was requested, before its set-up; 0: no run */
	uint64_t begin_ns, deadline_ns; /* times of the sample in progress */
	uint64_t end_ns; /* when the last worker left the sample, over the devices that have ended so far */
};

/* Opens a stack and takes ownership of *plan. */
int loom__stack_open(struct loom__plan *plan, const struct loom_stack_params *params,
		     struct loom_stack **stack, struct loom_error *err);

/* Reads the devices' shapes: at first, and again after their code is composed. */
int loom__stack_shape(struct loom_stack *s, struct loom_error *err);

/* Composes the device code at first and after new task functions. Allocates blocks and fills a workload's initial set
 * once. */
int loom__stack_prepare(struct loom_stack *s, struct loom_error *err);

void *loom__host_at(struct loom_stack *s, loom_ref ref);

/* Returns the size of one worker's trace buffer in bytes; 0: no trace. */
static inline uint64_t loom__trace_bytes(const struct loom_stack *s)
{
	return s->trace_room ? sizeof(struct loom_trace) + s->trace_room * sizeof(struct loom_event) : 0;
}

/* Returns the host's address of a worker's trace buffer; only with a trace. */
static inline struct loom_trace *loom__trace_of(struct loom_stack *s, uint32_t worker)
{
	char *first = loom__host_at(s, s->trace_ref);
	return (struct loom_trace *)(first + worker * loom__trace_bytes(s));
}

/* job.c: starts the persistent workers, unless they are running, and ends them. */
int loom__stack_launch(struct loom_stack *s, struct loom_error *err);
int loom__stack_retire(struct loom_stack *s, struct loom_error *err);
/* Returns 0 in the process that opened the stack, LOOM_EBUSY in a fork of it. */
int loom__stack_own(const struct loom_stack *s, struct loom_error *err);
/* Returns 0 in the process that opened the stack if no run is in progress and no worker of an earlier run is left, else
 * LOOM_EBUSY. Memory that workers read may be changed only if the result is 0. */
int loom__stack_is_idle(struct loom_stack *s, struct loom_error *err);
/* Makes room for an initial set of this size wherever devices read the set; copies the set to the devices. */
int loom__initial_room(struct loom_stack *s, uint64_t tasks, struct loom_error *err);
void loom__initial_copy(struct loom_stack *s);
/* prepare.c: makes the submitted tasks the initial set. */
int loom__initial_take(struct loom_stack *s, struct loom_error *err);
/* Makes room for more tasks than were submitted, if that is possible. s->held has the number. */
void loom__initial_hold(struct loom_stack *s, uint64_t tasks);

/* memory.c: segments, and the host's access to them. */
int loom__segments_add(struct loom_stack *s, const struct loom_segment_want *want, uint32_t n,
		       uint32_t *first, struct loom_error *err);
void loom__segments_release_last(struct loom_stack *s);
/* Makes the segment of adopted memory a place that loom_stack_adopt() uses again. No worker is launched. */
void loom__segment_disown(struct loom_stack *s, uint32_t segment);
/* The function for the member `copy` of struct loom_segments. */
int loom__segment_copy(void *stack, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		       struct loom_error *err);
/* Copies images into the devices, or back. Does nothing if the host can access all memory. */
int loom__images_copy(struct loom_stack *s, int in, struct loom_error *err);

/* reset.c. loom__may_keep() returns 1 if the stack has GPUs, runs submitted tasks, and needs the host for no sample. Then
 * loom__resets_make() prepares, once, that devices reset memory, and copies all images. loom__resets_of() returns the list of
 * a device, with `count` entries. loom__resets_apply() does on the host, before each sample, what replaces init(). */
int loom__may_keep(const struct loom_stack *s);
int loom__resets_make(struct loom_stack *s, struct loom_error *err);
loom_ref loom__resets_of(const struct loom_stack *s, uint32_t device, uint64_t *count);
/* Returns 1 if the number of initial tasks has grown so that other resets must be made. */
int loom__resets_grow(struct loom_stack *s, struct loom_error *err);
int loom__resets_apply(struct loom_stack *s, struct loom_error *err);
/* The first returns 1 if the host has a part in the resets, the second if values depend on the number of initial
 * tasks. */
int loom__resets_by_host(const struct loom_stack *s);
int loom__resets_vary(const struct loom_stack *s);
void loom__resets_drop(struct loom_stack *s);

/* sync.c: the channels for the sync plug-in, and interrupt() of all policies. The sync plug-in's attachments go to
 * *out, which has room for one; returns how many. */
int loom__sync_channels(struct loom_stack *s, struct loom_error *err);
uint32_t loom__sync_attachments(struct loom_stack *s, struct loom_attachment *out);
void loom__interrupt(struct loom_stack *s, int code, uint32_t device);

/* qos.c: the pipeline of qos plug-ins, the tenants and their grants. */
#define LOOM__QOS_STAGES 16
int loom__qos_open(struct loom_stack *s, struct loom_error *err);
int loom__qos_tenants(struct loom_stack *s, struct loom_error *err);
int loom__qos_grants(struct loom_stack *s, struct loom_error *err);

/* policies.c: interrupts, which policies find in the layout. */
void loom__interrupts_offer(struct loom_stack *s);

/* probe.c: the coherence probe over all pairs of devices and all placements. */
int loom__stack_probe(struct loom_stack *s, struct loom_error *err);

/* gate.c: one execution, from s->begin_ns to s->end_ns on CLOCK_MONOTONIC. With `alone`, which requires
 * s->stays, the core sends GO without READY before it. */
int loom__gate_begin(struct loom_stack *s, int alone, uint64_t timeout_ns, struct loom_error *err);
/* Waits until the last worker has left the sample. LOOM_EAGAIN: it is still in progress at `until`. LOOM_ETIMEDOUT,
 * LOOM_EINTR (a stop request, for a workload the second one) and LOOM_EDIED: the caller must retire the stack. */
int loom__gate_end(struct loom_stack *s, uint64_t until, struct loom_error *err);
/* Stops the sample in progress and waits briefly for its workers. Returns 1 when they have left. */
int loom__gate_cancel(struct loom_stack *s);
/* Returns the opened plug-in of a kind, the first one of a pipeline, or NULL. */
struct loom__policy *loom__policy_of(struct loom_stack *s, enum loom_kind kind);
/* Host threads of policies, which run from before the launch until after its end. */
int loom__policies_start(struct loom_stack *s, struct loom_error *err);
void loom__policies_stop(struct loom_stack *s);
/* net.c: returns 1 when there are several ranks and the workload's barrier spans them all. */
int loom__barrier_spans_ranks(struct loom_stack *s);
/* Network operations of a sample: barrier and workload post them; later they complete, here and at their targets. */
int loom__wire(struct loom_stack *s, struct loom_error *err);
int loom__flush(struct loom_stack *s, uint64_t timeout_ns, struct loom_error *err);
/* ranks.c: for several ranks with [run] tasks = shared, else no action. Checks that the selected plug-ins can share
 * tasks; counts the workers of other ranks, once device code is composed; finds their blocks, once policies have
 * started. */
int loom__ranks_share(struct loom_stack *s, struct loom_error *err);
uint64_t loom__ranks_conf(const struct loom_stack *s); /* a digest of the selected plug-ins */
int loom__ranks_size(struct loom_stack *s, struct loom_error *err);
int loom__ranks_reach(struct loom_stack *s, struct loom_error *err);
/* Returns a digest of the initial set, which must be the same on all ranks that share it. */
uint64_t loom__ranks_digest(const struct loom_stack *s, const struct loom_task *tasks, uint64_t n);
/* Gathers the counters of the workers of all ranks that share tasks, rank by rank: layout.workers +
 * layout.remote_workers of them. Valid until the next call. */
int loom__ranks_counters(struct loom_stack *s, const struct loom_counters **all, struct loom_error *err);
/* A barrier of all ranks. Afterwards `stop` is set if any rank set it, and ns is the largest one. `tasks`, and a
 * collective that the program calls, must be the same on all ranks. */
struct loom__agreed {
	uint64_t stop, ns, tasks;
	struct loom__call call;
};
int loom__ranks_agree(struct loom_stack *s, struct loom__agreed *mine, struct loom_error *err);
/* watch.c: the first allgather of a stack finds which processes of this host are other ranks and which of them share a
 * device with this one. It also checks that all ranks have the plug-ins of one conf. Then follow: a warning of shared
 * devices; LOOM_EDIED when a rank has ended since; the end of the watch. */
int loom__ranks_watch(struct loom_stack *s, struct loom_error *err);
void loom__ranks_warn(struct loom_stack *s);
int loom__ranks_lost(struct loom_stack *s, struct loom_error *err);
void loom__ranks_unwatch(struct loom_stack *s);
/* Words the first failure that a worker has recorded; returns 0 when there is none. */
int loom__worker_failure(struct loom_stack *s, struct loom_error *err);
/* Appends "cpu:0: 1 in tasks (0), 3 looking for work (1-3)" for each device, or nothing where that is unknown. */
void loom__whereabouts(const struct loom_stack *s, struct loom__text *out);

#endif
