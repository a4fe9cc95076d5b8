/* SPDX-License-Identifier: Apache-2.0 */
/* A stack: the plug-ins of a plan, after they were opened and connected, with their memory. */
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
#include <poll.h>
#include <sys/types.h>

#include "stack/host.h"
#include "stack/plan.h"

/* A policy or workload of the stack, with its blocks as the host accesses them. */
struct loom__policy {
	const struct loom__choice *choice;
	const struct loom_policy_ops *ops; /* the ops with which the tables of all policies begin */
	void *self;
	struct loom_need need;
	struct loom_view view;
	void **device_blocks, **worker_blocks; /* the arrays to which `view` points */
	loom_ref global;
	loom_ref *copy;      /* [devices]; the device's copy of the block for the stack, or 0 */
	loom_ref *on_device; /* [devices]; the block for the device, or 0 */
	loom_ref *registry;  /* [devices]; the device's copy of the registry, or 0 */
	int started;         /* 1: start() has succeeded, and stop() must be called */
	/* If ranks share tasks: the blocks in each rank, and the addresses of all ranks' worker blocks. Else NULL. */
	struct loom_remote_blocks *remote;
	void **remote_worker;
};

/* Largest initial set that GPUs copy from host memory themselves. For a set of this size, a copy by the host takes
 * longer. */
#define LOOM__SMALL_SET 1024u

/* What a device reads about a launch. It is valid until the launch is retired. */
struct loom__orders {
	struct loom_launch launch;
	struct loom_chain chain;
	loom_ref global[LOOM_KINDS_MAX], on_device[LOOM_KINDS_MAX], registry[LOOM_KINDS_MAX];
	uint64_t local_bytes[LOOM_KINDS_MAX];
};

struct loom__device {
	const struct loom__choice *choice;
	const struct loom_device_ops *ops;
	void *self;
	/* Its extensions; NULL: it lacks them. */
#define LOOM__EXTENSION_MEMBER(name) const struct loom_device_##name *name;
	LOOM_EXTENSION_MAP(LOOM__EXTENSION_MEMBER)
};

struct loom__rank_size {
	uint32_t workers, devices;
};

/* A part of core/run that uses the stack, as a communicator does. loom_stack_close() calls leave(), which takes the
 * guest off the list. */
struct loom__guest {
	struct loom__guest *next;
	void (*leave)(struct loom__guest *guest);
};

/* The parts of a stack. Each has one owner, the only file that changes its members; others call functions of that file
 * (tests/check-layers.sh). */

/* Segments by number; number 0 is unused. A segment that the host cannot access has an image in host memory.
 * Owner: memory.c */
struct loom__memory {
	struct loom_segment segment[LOOM_MAX_SEGMENTS];
	char *image[LOOM_MAX_SEGMENTS];
	struct loom_memory pinned[LOOM_MAX_SEGMENTS];   /* an image that its device has mapped; host is NULL: it has not */
	struct loom_memory *adopted[LOOM_MAX_SEGMENTS]; /* memory that loom_stack_adopt() has added, or NULL */
	int32_t adopter[LOOM_MAX_SEGMENTS]; /* index of the device that has this memory; -1: host memory */
	uint32_t group[LOOM_MAX_SEGMENTS];  /* number of the transport call that made the segment */
	uint32_t segments, groups;
	struct loom_memory none; /* memory of segments that were released */
};

/* Task functions by tag: first those of the workload, then those of the embedding program. Owner: embed.c */
struct loom__code {
	struct loom_task_entry *task;
	uint32_t tasks;
	loom_task_fn *helper; /* the function of communicators, which has the tag `tasks`; NULL: there was none */
	struct loom_program_source *source; /* [sources]; source of the embedding program */
	struct loom_program_ir *ir;	    /* [irs]; IR of the embedding program */
	uint32_t sources, irs;
};

/* The initial set of the next run. Owner: initial.c */
struct loom__initial {
	struct loom_task *submitted; /* tasks from the embedding program */
	size_t count, submitted_room;
	loom_ref ref;
	loom_ref copy[LOOM_MAX_DEVICES]; /* [device]; copy of the set in the device's memory; 0: none */
	uint64_t room;
	uint64_t held;   /* size of the largest set for which the policies have memory */
	uint64_t digest; /* loom__ranks_digest() of the set */
	int small;       /* 1: before each sample, devices copy the set from `ref` */
};

/* The other ranks, if ranks share tasks. Owner: ranks.c */
struct loom__ranks {
	struct loom__rank_size *size; /* [layout.ranks]; NULL: ranks share no tasks */
	uint32_t most_workers;	      /* number of workers of the largest rank */
	struct loom_counters *counters; /* counters of all ranks, by loom__ranks_counters() */
	int connected; /* 1: connect() has given policies the blocks of the other ranks */
};

/* Owner: watch.c */
struct loom__processes {
	struct pollfd *process; /* [ranks]; the processes that loom__ranks_lost() polls */
	uint32_t in_turns;   /* bit d: device d has LOOM_SHAPE_TIME_SLICED, because another rank uses it */
	uint32_t turns_with; /* a rank that uses one of the devices of `in_turns`, too */
	int warned;	     /* 1: loom__ranks_warn() was called */
};

/* The workers of the last launch. Owner: job.c */
struct loom__launch {
	int launched; /* 1: workers exist; between samples they wait for the next sample */
	int captured; /* 1: some samples of this launch are in graphs of the program; loom_stack_stop() reads it */
	int stuck;    /* 1: workers have not left after a stop */
	int stays;    /* 1: workers may stay launched between runs at no cost, and GO starts them without READY */
	struct loom_attachment attachment; /* hooks of the sync plug-in for the launch */
	uint64_t number; /* number of launches of this stack */
};

/* Samples in streams of the program. Owner: enqueue.c */
struct loom__streams {
	uint64_t enqueued; /* number of samples in streams since the last loom_stack_wait() */
	struct loom__slots *slots; /* tasks of the samples in streams and graphs */
};

/* The sample in progress. Owner: sample.c */
struct loom__timing {
	uint64_t begin_ns, deadline_ns;
	uint64_t stalled_ns; /* time for which this process was stopped, or had no core */
	uint64_t end_ns;     /* latest end, of the devices that have ended it so far */
	uint64_t done;       /* number of samples since the launch */
};

/* The run in progress. Owners: engine.c, open.c */
struct loom__run {
	int running; /* 1: loom_stack_start() has begun a run that loom_stack_wait() has not ended */
	int closes;  /* 1: the caller closes the stack after this run, whatever its result */
	/* During a sample, the waiting thread calls this whenever it wakes: with one device, at least 10 times a second,
	 * with several devices about 50 times a second. May be NULL. */
	void (*beat)(void *arg, const struct loom_stack *s, uint64_t since_ns);
	void *arg;
	/* Called while a workload verifies a sample. `done` is the finished part, from 0 to 1. */
	void (*progress)(void *arg, const struct loom_stack *s, uint64_t since_ns, double done);
	uint64_t begin_ns;  /* when the run of a workload was requested, before its set-up, in ns; 0: no run */
	uint64_t verify_ns; /* when the verification in progress began, in ns */
	uint64_t until_ns;  /* when [run] time_limit ends, in ns; 0: no limit */
	int watched; /* 1: samples during which a device was throttled are repeated */
	double joules; /* [run] joules = yes: sum of the energy counters before a sample; after it, the consumption */
};

struct loom_stack {
	pid_t owner; /* the process that opened the stack; a fork of it must not touch workers or their memory */
	/* A page whose first word is 1, and which the kernel clears in a fork. Loading it takes less time than getpid().
	 * NULL: the kernel cannot do this. */
	uint32_t *unforked;
	struct loom__plan plan;
	struct loom__host host;
	struct loom_layout layout;
	struct loom_interrupts interrupts; /* the struct to which layout.interrupts points */
	struct loom_devices devices;
	const struct loom_transport_ops *transport;
	void *transport_self;
	struct loom__policy *policy;
	size_t policies;
	const struct loom_plugin *selected[LOOM_KINDS_MAX]; /* [kind]; for qos, the leader of the pipeline */
	struct loom__memory memory;
	struct loom__code code;
	struct loom__initial initial;
	struct loom__ranks ranks;
	struct loom__processes watch;
	struct loom__launch launch;
	struct loom__streams streams;
	struct loom__timing sample;
	struct loom__run run;
	struct loom__guest *guests;
	/* composed: the code of the devices has all task functions. prepared: the references below are valid. broken: the
	 * set-up has failed. */
	int composed, prepared, broken;
	loom_ref ctl_ref, counters_ref;
	struct loom_ctl *ctl;
	struct loom_counters *counters; /* [layout.workers]; in host memory, or an image */
	struct {
		uint64_t room, every; /* events per buffer (0: no trace); one task in `every` is recorded */
		loom_ref ref;
	} trace;
	struct loom_net_need net; /* what workload and barrier together need of the trigger */
	struct loom__resets *resets; /* the words that devices reset (reset.c); NULL: the host calls init() for each sample */
	void *about; /* data of core/run for results; about_drop() frees it with the stack */
	void (*about_drop)(void *about);
	uint32_t stop_requests; /* number of stop requests; loom_stack_stop() adds to it by an atomic */
	uint64_t open_ns; /* when the stack was opened, in ns */
	struct loom__device device[LOOM_MAX_DEVICES]; /* the opened devices */
	struct loom_device_shape shape[LOOM_MAX_DEVICES];
	const struct loom_device_ops *device_ops[LOOM_MAX_DEVICES]; /* ops and instances of the devices, for the transport */
	void *device_self[LOOM_MAX_DEVICES];
	struct loom__orders orders[LOOM_MAX_DEVICES]; /* what devices read about the launch */
};

/* Opens a stack. *plan belongs to the stack afterwards. */
int loom__stack_open(struct loom__plan *plan, const struct loom_stack_params *params,
		     struct loom_stack **stack, struct loom_error *err);

/* Reads the shapes of the devices. Called after they are opened, and again after their code is composed. */
int loom__stack_shape(struct loom_stack *s, struct loom_error *err);

/* Composes the device code before the first run and after task functions were added. Before the first run, also
 * allocates the blocks and writes a workload's initial set. */
int loom__stack_prepare(struct loom_stack *s, struct loom_error *err);

void *loom__host_at(struct loom_stack *s, loom_ref ref);

/* Returns the size of a worker's trace buffer in bytes, or 0 without a trace. */
static inline uint64_t loom__trace_bytes(const struct loom_stack *s)
{
	return s->trace.room ? sizeof(struct loom_trace) + s->trace.room * sizeof(struct loom_event) : 0;
}

/* Returns the host's address of a worker's trace buffer. Call it only if there is a trace. */
static inline struct loom_trace *loom__trace_of(struct loom_stack *s, uint32_t worker)
{
	char *first = loom__host_at(s, s->trace.ref);
	return (struct loom_trace *)(first + worker * loom__trace_bytes(s));
}

/* job.c: the first function starts the workers, if they are not running; the second ends them. */
int loom__stack_launch(struct loom_stack *s, struct loom_error *err);
int loom__stack_retire(struct loom_stack *s, struct loom_error *err);
/* A sample of this launch is in a graph of the program from now on. */
void loom__launch_captures(struct loom_stack *s);
/* embed.c. loom__code_help() adds the function of communicators. loom__code_list() fills the parts of *program that list
 * task functions. */
void loom__code_help(struct loom_stack *s, loom_task_fn *help);
int loom__code_list(struct loom_stack *s, struct loom_program *program, struct loom_error *err);
/* The first function notes that this process owns the stack; the second frees the note. */
void loom__stack_note_process(struct loom_stack *s);
void loom__stack_forget_process(struct loom_stack *s);
/* Returns 0 in the process that opened the stack, and LOOM_EBUSY in a fork of it. */
int loom__stack_own(const struct loom_stack *s, struct loom_error *err);
/* Returns 0 if memory that workers read may be changed: this process has opened the stack, no run is in progress, and
 * no worker of an earlier run is left. Otherwise returns LOOM_EBUSY, or LOOM_EINVAL if the set-up failed. */
int loom__stack_is_idle(struct loom_stack *s, struct loom_error *err);
/* initial.c. Makes room for an initial set of `tasks` tasks, wherever devices read the set. */
int loom__initial_room(struct loom_stack *s, uint64_t tasks, struct loom_error *err);
/* The set was written at s->initial.ref: copies it to the devices, and notes its digest. */
void loom__initial_written(struct loom_stack *s);
/* Makes the submitted tasks the initial set. loom__initial_begun() then removes them from the submitted ones. */
int loom__initial_take(struct loom_stack *s, struct loom_error *err);
void loom__initial_begun(struct loom_stack *s);
/* Works like loom_stack_submit(), but also takes the tag of s->code.helper. */
int loom__submit(struct loom_stack *s, const struct loom_task *tasks, size_t n, struct loom_error *err);
/* Makes room for an initial set of `tasks` tasks, if possible, even if fewer were submitted. Stores the result in
 * s->initial.held. */
void loom__initial_hold(struct loom_stack *s, uint64_t tasks);
/* memory.c: segments, and the host's access to them. */
int loom__segments_add(struct loom_stack *s, const struct loom_segment_want *want, uint32_t n,
		       uint32_t *first, struct loom_error *err);
void loom__segments_release_last(struct loom_stack *s);
/* Memory of the program. loom__segment_spare() finds the number of a segment for it, one that was released or a new one. No
 * part of the memory may be adopted already, because releasing one of two segments would unmap the part for both.
 * loom__segment_own() makes it that segment; it frees `m` later. loom__segment_disown() releases the segment; no worker
 * may be launched. */
int loom__segment_spare(const struct loom_stack *s, const char *at, size_t bytes, uint32_t *segment, struct loom_error *err);
void loom__segment_own(struct loom_stack *s, uint32_t segment, struct loom_memory *m, int32_t adopter);
void loom__segment_disown(struct loom_stack *s, uint32_t segment);
/* The functions for the members `copy`, `start_copy` and `copy_ended` of struct loom_segments. */
int loom__segment_copy(void *stack, uint32_t segment, uint64_t offset, void *host, uint64_t bytes, int in,
		       struct loom_error *err);
int loom__segment_start_copy(void *stack, uint32_t segment, uint64_t offset, uint64_t other, uint64_t bytes, uint32_t how,
			     uint64_t *number, struct loom_error *err);
int loom__segment_copy_ended(void *stack, uint32_t segment, uint32_t how, uint64_t number);
/* Frees all images, but leaves them mapped in devices, which belong to another process. */
void loom__images_forget(struct loom_stack *s);
/* Copies images into the devices if `in` is 1, and out of them if it is 0. Does nothing if the host can access all
 * memory. */
int loom__images_copy(struct loom_stack *s, int in, struct loom_error *err);

/* reset.c. loom__may_keep() returns 1 if the stack has GPUs, runs submitted tasks, and needs no work of the host for a
 * sample. If it does, loom__resets_make() lists once what devices must reset, and copies all images.
 * loom__resets_of() returns the list of a device, and the number of its entries in *count. loom__resets_apply() does
 * the host's part before each sample, in place of init(). */
int loom__may_keep(const struct loom_stack *s);
int loom__resets_make(struct loom_stack *s, struct loom_error *err);
loom_ref loom__resets_of(const struct loom_stack *s, uint32_t device, uint64_t *count);
int loom__resets_apply(struct loom_stack *s, struct loom_error *err);
/* The first function returns 1 if the host has a part in the resets. The second returns 1 if values depend on the
 * number of initial tasks. */
int loom__resets_by_host(const struct loom_stack *s);
int loom__resets_vary(const struct loom_stack *s);
void loom__resets_drop(struct loom_stack *s);

/* sync.c. loom__sync_channels() gives the sync plug-in the workload's channels. loom__sync_attachments() stores the
 * sync plug-in's hooks in *out, and returns their number, 0 or 1. loom__interrupt() ends the waits of the sync plug-in
 * and the workload. */
int loom__sync_channels(struct loom_stack *s, struct loom_error *err);
uint32_t loom__sync_attachments(struct loom_stack *s, struct loom_attachment *out);
void loom__interrupt(struct loom_stack *s, int code, uint32_t device);

/* qos.c: these functions give the qos plug-ins their pipeline, the tenants and the grants. */
#define LOOM__QOS_STAGES 16
int loom__qos_open(struct loom_stack *s, struct loom_error *err);
int loom__qos_tenants(struct loom_stack *s, struct loom_error *err);
int loom__qos_grants(struct loom_stack *s, struct loom_error *err);

/* policies.c. loom__policy_need() asks a policy how much memory it needs, and checks the answer. loom__needs_hold() checks
 * that the memory of the policies, which was sized for the first run, suffices for s->layout.initial_tasks tasks. */
int loom__policy_need(struct loom_stack *s, const struct loom__policy *p, struct loom_need *need, struct loom_error *err);
int loom__needs_hold(struct loom_stack *s, struct loom_error *err);
/* Stores the functions for interrupts in the layout, where policies find them. */
void loom__interrupts_offer(struct loom_stack *s);

/* probe.c: probes the coherence of all pairs of devices, in all kinds of memory. */
int loom__stack_probe(struct loom_stack *s, struct loom_error *err);

/* sample.c: executes a sample, from s->sample.begin_ns to s->sample.end_ns on CLOCK_MONOTONIC. If `alone` is 1, the core sends GO
 * without READY before it, which requires s->launch.stays. */
int loom__sample_begin(struct loom_stack *s, int alone, uint64_t timeout_ns, struct loom_error *err);
/* Ends the device's wait in progress, or the next one. Signal handlers may call it. */
void loom__stack_wake(struct loom_stack *s);
/* Clears the control words, before a launch. */
void loom__sample_reset(struct loom_stack *s);
/* Waits until the last worker has left the sample. Returns LOOM_EAGAIN if the sample is still in progress at `until`.
 * After LOOM_ETIMEDOUT, LOOM_EDIED and LOOM_EINTR (one stop request; for a workload, two), the caller must retire the
 * stack. */
int loom__sample_end(struct loom_stack *s, uint64_t until, struct loom_error *err);
/* Stops the sample in progress, and waits briefly for its workers. Returns 1 if they have left. */
int loom__sample_cancel(struct loom_stack *s);
/* Returns the policy of a kind, or NULL. Of several qos plug-ins, returns the first. */
struct loom__policy *loom__policy_of(struct loom_stack *s, enum loom_kind kind);
/* Start and stop the host threads of policies. loom__policies_start() is called before the launch, and
 * loom__policies_stop() after the launch has ended. */
int loom__policies_start(struct loom_stack *s, struct loom_error *err);
void loom__policies_stop(struct loom_stack *s);
/* net.c: returns 1 if there are several ranks, and the workload's barrier spans them. */
int loom__barrier_spans_ranks(struct loom_stack *s);
/* The first function lets barrier and workload post the network operations of a sample. The second waits until these
 * operations are complete, also at their targets. */
int loom__wire(struct loom_stack *s, struct loom_error *err);
int loom__flush(struct loom_stack *s, uint64_t timeout_ns, struct loom_error *err);
/* ranks.c. These functions do nothing if ranks do not share tasks ([run] tasks = shared). loom__ranks_share() checks
 * that the selected plug-ins can share tasks. loom__ranks_size() counts the workers of other ranks, after device code
 * was composed. loom__ranks_reach() finds the blocks of other ranks, after policies have started. */
int loom__ranks_share(struct loom_stack *s, struct loom_error *err);
uint64_t loom__ranks_conf(const struct loom_stack *s); /* returns a digest of the selected plug-ins */
int loom__ranks_size(struct loom_stack *s, struct loom_error *err);
int loom__ranks_reach(struct loom_stack *s, struct loom_error *err);
/* Returns a digest of the initial set. It must be the same on all ranks that share the set. */
uint64_t loom__ranks_digest(const struct loom_stack *s, const struct loom_task *tasks, uint64_t n);
/* Gathers the counters of all ranks that share tasks, rank by rank, for layout.workers + layout.remote_workers workers.
 * *all is valid until the next call. */
int loom__ranks_counters(struct loom_stack *s, const struct loom_counters **all, struct loom_error *err);
/* A barrier of all ranks. Afterwards `stop` has the bits that any rank has set, and `ns` is the largest of all ranks.
 * `tasks`, the digest of the initial set, must be the same on all ranks. */
struct loom__agreed {
	uint64_t stop, ns, tasks;
};
int loom__ranks_agree(struct loom_stack *s, struct loom__agreed *mine, struct loom_error *err);
/* watch.c. In the first call for a stack, loom__ranks_watch() finds by an allgather which ranks are processes of this
 * host, and which of them use the same device. It also checks that all ranks have selected the same plug-ins.
 * loom__ranks_warn() warns of shared devices. loom__ranks_lost() returns LOOM_EDIED if a watched rank has ended.
 * loom__ranks_unwatch() ends the watch. */
int loom__ranks_watch(struct loom_stack *s, struct loom_error *err);
struct peer;
/* Fills *watch with the process of rank r, which is near. If the process cannot be watched, warns, and poll() skips the
 * entry. Returns LOOM_EDIED if the process has ended. */
int loom__watch_rank(struct loom_stack *s, uint32_t r, const struct peer *process, struct pollfd *watch,
		     struct loom_error *err);
void loom__ranks_warn(struct loom_stack *s);
int loom__ranks_lost(struct loom_stack *s, struct loom_error *err);
void loom__ranks_unwatch(struct loom_stack *s);
/* Reports the first failure that a worker has recorded. Returns 0 if there is none. */
int loom__worker_failure(struct loom_stack *s, struct loom_error *err);
/* Appends what the workers of each device do, such as "cpu:0: 1 in tasks (0), 3 looking for work (1-3)". Appends
 * nothing for a device of which this is unknown. */
void loom__whereabouts(const struct loom_stack *s, struct loom__text *out);

#endif
