/* SPDX-License-Identifier: Apache-2.0 */
/* The software NIC takes triggers, counts them, and runs the posts that become ready. Trigger plug-ins with a NIC
 * differ in how a fire reaches it (struct nic_ops). */
#ifndef LOOM_SHARED_NIC_H
#define LOOM_SHARED_NIC_H

#include <pthread.h>

#include "../fabric/fabric.h"
#include "trigger_list.h"
#include "../simnet/simnet.h"
#include "nic.dev.h"

enum { NIC_SPIN, NIC_YIELD, NIC_SLEEP };
enum { NIC_COUNTS, NIC_DEVICE_COUNTS };
enum { NIC_HOST_MEMORY, NIC_DEVICE_MEMORY };

struct nic_opts {
	const char *provider, *address, *core;
	uint32_t posts, tags, slots, arrivals, fifo, in_flight;
	uint32_t wait, polls, counting, memory;
	uint64_t nap;
	uint8_t stamp;
	struct simnet_model net;
};

/* Table sizes. As an option, 0 means as many as the workload needs, and at least the default. */
struct nic_table {
	uint32_t posts, tags, slots, arrivals;
};
#define NIC_TABLE(o) ((struct nic_table){(o)->posts, (o)->tags, (o)->slots, (o)->arrivals})

/* The option rows of these sizes, for a struct S with these fields. */
#define NIC_TABLE_ROWS(S)                                                                          \
	LOOM_OPT(S, posts, LOOM_OPT_U32, "auto", \
			 "Operations that may be posted at once. auto: as many as the workload needs, at least 4096.", \
			 .max = 1 << 24, .section = "trigger", .flags = LOOM_OPT_AUTO), \
		LOOM_OPT(S, tags, LOOM_OPT_U32, "auto", \
				 "Tags in use at once, rounded up to a power of two, at least 16. An eighth stays " \
				 "free. auto: as many as the workload needs, at least 8192.", \
				 .max = 1 << 24, .section = "trigger", .flags = LOOM_OPT_AUTO), \
		LOOM_OPT(S, slots, LOOM_OPT_U32, "auto", \
				 "Completion slots; number 0 is not used. auto: as many as the workload needs, at " \
				 "least 1024.", .max = 1 << 20, .section = "trigger", .flags = LOOM_OPT_AUTO), \
		LOOM_OPT(S, arrivals, LOOM_OPT_U32, "auto", \
				 "Arrival words for notifications; number 0 is not used. auto: as many as the " \
				 "workload needs, at least 1024.", .max = 1 << 20, .section = "trigger", .flags = LOOM_OPT_AUTO)
#define NIC_STAMP_ROW(S)                                                                           \
	LOOM_OPT(S, stamp, LOOM_OPT_BOOL, "no", \
			 "Whether completions and arrivals carry the time, for measurements.", .section = "trigger")

/* The option rows of every plug-in with a NIC. */
extern const char *const nic_waits[], *const nic_countings[], *const nic_memories[];
#define NIC_ROWS                                                                                   \
	LOOM_OPT(struct nic_opts, provider, LOOM_OPT_STR, "auto", \
			 "Provider of libfabric: shm, tcp, net, sockets, or its full name with + for ;. auto: the " \
			 "first provider that passes a test, or sim for simulated devices. sim: a simulated network " \
			 "for simulated devices.", .section = "trigger"), \
		LOOM_OPT(struct nic_opts, address, LOOM_OPT_STR, "", \
				 "Address of the network interface. Empty: loopback when all ranks share a host, " \
				 "else selected by the provider.", .section = "trigger"), \
		NIC_TABLE_ROWS(struct nic_opts),                                                   \
		LOOM_OPT(struct nic_opts, fifo, LOOM_OPT_U32, "1024", \
				 "Entries of each trigger FIFO, rounded up to a power of two.", \
				 .min = 2, .max = 1 << 24, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, counting, LOOM_OPT_ENUM, "nic", \
				 "What counts the fires of a tag. nic: the NIC, to which each fire is a store. " \
				 "device (gputn, one device): workers count in the device's memory, and one stores " \
				 "to the NIC when an operation's threshold is reached.", \
				 .choices = nic_countings, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, memory, LOOM_OPT_ENUM, "host", \
				 "Memory of the workloads' buffers, which operations read and write. host: host " \
				 "memory. device: where the transport puts memory of devices; the NIC's thread " \
				 "copies data of a GPU.", .choices = nic_memories, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, in_flight, LOOM_OPT_U32, "256", \
				 "Most operations that are in flight with the provider.", \
				 .min = 1, .max = 2048, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, wait, LOOM_OPT_ENUM, "yield", \
				 "How the NIC's thread waits for work. spin: polls. yield: yields its core between " \
				 "polls. nap: sleeps between polls, longer each time; it sleeps until woken if the " \
				 "network can wake it.", \
				 .choices = nic_waits, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, polls, LOOM_OPT_U32, "64", \
				 "Polls without success before the NIC's thread yields or naps.", \
				 .max = 1 << 30, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, nap, LOOM_OPT_TIME, "20us", \
				 "wait = nap: duration of the first " \
				 "sleep.", .min = 1000, .max = 1e9, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, core, LOOM_OPT_CPUS, "", \
				 "Cores of the NIC's thread. Empty: the cores of the process without those to which " \
				 "its other threads, such as workers, are bound.", .section = "trigger"), \
		NIC_STAMP_ROW(struct nic_opts), NET_ROWS(struct nic_opts)

/* A request is free, an operation in flight, or a notification that follows an operation. */
struct nic_request {
	struct fabric_context context; /* first member: events carry its address */
	struct fabric_io io;
	uint64_t chain;
	uint64_t epoch; /* a request of an earlier sample is only released */
	uint32_t slot, notify;
	uint32_t post;
	uint32_t state; /* 0: free */
	uint32_t next;
};

struct nic;
struct nic_rma_state;

/* How fires reach the NIC, which differs between trigger plug-ins. Every op is called with the lock held. Ops without a
 * default are mandatory. */
struct nic_ops {
	const char *name;
	int has_fifo, has_record, needs_trigger;
	int by_stream; /* the device's front end handles kernel ends, not the host */
	int adds; /* workers of all devices add to the same words */
	const char *counter; /* the part that counts if a device cannot; NULL: a device can */
	const char *no_argument; /* why a fire cannot supply part of an operation; NULL: it can */
	/* Returns the bytes of the plug-in's own part at extra_at, and its entries. NULL: the plug-in has none. */
	uint64_t (*extra)(const struct nic *nic, uint64_t *entries);
	/* Called when a sample begins and the blocks are cleared. */
	void (*reset)(struct nic *nic);
	/* Called before the list gets a post. *taken = 1: the plug-in keeps the post itself. */
	int (*post)(struct nic *nic, const struct loom_trigger_post *what, uint64_t *id, int *taken,
		    struct loom_error *err);
	/* Called when the list has a new post with this tag. */
	void (*posted)(struct nic *nic, uint64_t tag);
	/* Called for a count by the NIC itself, before the list gets it. */
	void (*count)(struct nic *nic, uint64_t tag, uint64_t n);
	/* Takes the fires of workers. Returns the amount of work done. */
	uint32_t (*poll)(struct nic *nic);
	/* Returns 1 when every fire has been taken. Workers are parked; fires recorded since a boundary count now. */
	int (*drained)(struct nic *nic);
	/* Handles an event whose context is not in nic.request. Returns 1 if it is the plug-in's. status: 0 or the
	 * failure. */
	int (*event)(struct nic *nic, const void *context, int status);
	/* Returns whether operations are in flight that nic.in_flight does not count. */
	int (*busy)(struct nic *nic);
	int (*start)(struct nic *nic, struct loom_error *err);
	void (*close)(struct nic *nic); /* called while `own` exists; the fabric is open, its endpoint is closed */
};

struct nic {
	const struct loom_host *host;
	const struct nic_opts *opts;
	const struct nic_ops *ops;
	void *own; /* state of the plug-in */
	pthread_mutex_t lock;
	uint32_t waiters; /* number of host threads that wait for the lock; the engine thread yields to them */
	uint32_t stop;
	int running, shared, placed; /* placed: the engine thread has been moved off the workers' cores */
	pthread_t thread;
	/* Under virtual time an agent replaces the thread. The clock is NULL under real time. */
	const struct loom_clock *clock;
	struct loom_agent *agent;
	int steps; /* 1: the agent has taken a step in this sample */
	struct fabric *fabric;
	struct nic_table table;
	struct loom_net_need needs; /* needs of the workload */
	struct trigger_list list;
	struct nic_request *request; /* [opts->in_flight] */
	uint32_t free_request, in_flight, receiving;
	uint32_t first_notify; /* first of the requests whose notification is not sent yet */
	struct list_run stalled; /* a run for which the provider had no room */
	int is_stalled;
	struct nic_rma_state *rma; /* state of rma.c; NULL: workers do not access the memory of other ranks */
	const struct nic_rma_ops *rma_ops;
	uint64_t epoch; /* number of the sample */
	uint32_t fifo; /* entries of a FIFO */
	struct nic_shape shape;
	char *base; /* the block for the stack; NULL: not allocated yet */
	uint64_t bytes; /* size of that block */
	uint32_t rings;		 /* number of FIFOs of all devices */
	uint32_t next_ring;	 /* the FIFO to poll next */
	struct nic_fifo **fifos; /* [rings] */
	uint64_t *cursor;	 /* [rings]: number of words taken */
	struct nic_record **record; /* [workers] */
	struct nic_dev_counter *dev_counter; /* [shape.counted], for the device; NULL: none */
	pthread_t preparer; /* the thread that prepares samples: it posts before workers run */
	uint32_t devices, workers;
	uint32_t first_worker[LOOM_MAX_DEVICES + 1];
	uint64_t fires, runs, arrivals; /* counts of this sample */
	int counts_arrivals;		/* some posts wait for arrivals */
	/* With stamp = yes: when triggers were first and last taken, and how many at the first time. */
	uint64_t first_ns, last_ns, first_fires;
	uint64_t cpu_ns; /* CPU time of the thread when the sample began */
	/* Steps that workers took for the engine thread, and how many of them the thread has seen. */
	uint32_t helps, helped;
	int status;                     /* the first failure, an enum loom_err */
	char failure[200];
};

/* backend.c. rma: workers access the memory of other ranks. */
int nic_open_fabric(struct nic *nic, int rma, struct loom_error *err);
int nic_is_simulated(const struct nic *nic);

/* engine.c: matches fires with posts, hands operations to the fabric and completes them. */
int nic_open(struct nic *nic, const struct loom_host *host, const struct nic_opts *opts, const struct nic_ops *ops,
	     struct loom_error *err);
void nic_close(struct nic *nic);
/* Sizes the tables by the options and the workload, before anything is posted. Returns 0 or LOOM_ENOMEM. */
int nic_size(struct nic *nic, const struct loom_layout *layout);
void nic_lock(struct nic *nic); /* called by host threads */
void nic_unlock(struct nic *nic);
uint64_t nic_now(const struct nic *nic); /* the clock of the devices */
uint32_t nic_step(struct nic *nic); /* lock held: polls everything once; returns 0 if idle */
void nic_count(struct nic *nic, uint64_t tag, uint64_t n, uint64_t argument);
void nic_count_arrivals(struct nic *nic); /* counts arrivals from now on, and those that have already happened */
/* Passes a run to the provider. Returns 0 or LOOM_EAGAIN. */
int nic_run(struct nic *nic, const struct loom_trigger_post *what, uint32_t post, uint64_t argument);
/* For an operation without immediate data that is complete at `target`: notifies the target, then completes here.
 * Returns 0 or LOOM_EAGAIN. */
int nic_notify(struct nic *nic, const struct loom_trigger_post *what);
uint32_t nic_run_due(struct nic *nic);
int nic_backlog(const struct nic *nic); /* runs wait for the provider, so no more triggers are taken */
void nic_fail(struct nic *nic, int code, const char *fmt, ...) LOOM_PRINTF(3, 4);
void nic_complete(struct nic *nic, uint32_t slot, uint64_t chain, int status);
int nic_idle(struct nic *nic); /* nothing is in flight but receives */
int nic_check(const struct nic *nic, const struct loom_trigger_post *what, struct loom_error *err);
int nic_full(const struct nic *nic, struct loom_error *err); /* the error LOOM_EFULL of a post */
static inline int nic_fabric_check(const struct nic *nic, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	return nic->fabric->ops->check(nic->fabric, rank, ref, bytes);
}

/* thread.c runs the engine in a thread, or under virtual time in an agent. */
int nic_start_thread(struct nic *nic, struct loom_error *err);
int nic_start_agent(struct nic *nic, const struct loom_layout *layout, struct loom_error *err);
void nic_policy_stop(void *self); /* the host op */
void nic_place_thread(struct nic *nic); /* keeps the thread off the workers' cores, once workers run */
uint64_t nic_thread_cpu_ns(const struct nic *nic); /* CPU time since the thread started */

/* check.c: returns table sizes from the options and the needs of the workload, and these needs. */
struct nic_table nic_table(const struct nic_table *options, const struct loom_layout *layout,
			   struct loom_net_need *needs);
/* Returns "raise tags: set trigger.gputn.tags = 16384 or more", in a thread-local buffer. least: the smallest value
 * that suffices. */
const char *nic_raise(const char *option, uint64_t least);
/* Return values of these options that suffice. */
uint64_t nic_more_tags(const struct nic_table *table, const struct loom_net_need *needs);
uint64_t nic_more_posts(const struct nic_table *table, const struct loom_net_need *needs);
/* Returns LOOM_EBUSY: the fire that carries the post's argument has already happened. */
int nic_too_late(const struct loom_host *host, const char *plugin, const struct loom_trigger_post *what,
		 struct loom_error *err);
/* Bounds within which nic_check_post() checks whether a post can run. */
struct nic_bounds {
	const struct loom_host *host;
	const char *name; /* name of the plug-in */
	const char *adder; /* the part that performs atomic additions */
	struct nic_table table;
	struct loom_net_need needs; /* needs of the workload */
	const void *of;
	int (*reaches)(const void *of, uint32_t rank, loom_ref ref, uint64_t bytes);
	int (*adds)(const void *of, const struct loom_trigger_post *what);
};
int nic_check_bounds(const struct nic_bounds *b, const struct loom_trigger_post *what, struct loom_error *err);

/* dev_counter.c, counting = device: sets what the device's counters must report for a post. Fails if the post is too
 * late for that. Called with the lock held. */
int nic_dev_counter_post(struct nic *nic, const struct loom_trigger_post *what, struct loom_error *err);

/* rma.c: one-sided operations of workers, where ranks share tasks. nic_rma_start() is collective. */
uint64_t nic_rma_bytes(const struct nic *nic, uint32_t ranks, uint32_t workers); /* size of the block */
int nic_rma_start(struct nic *nic, const struct loom_segments *segments, struct loom_error *err);
void nic_rma_close(struct nic *nic); /* called when the fabric is closed */
void nic_rma_begin(struct nic *nic); /* called when a sample begins and the block is cleared */
int nic_rma_pending(const struct nic *nic); /* a worker has issued an operation that is not taken yet */
int nic_rma_bell(const struct nic *nic); /* the descriptor by which workers wake the thread, or -1 */
void nic_rma_drain_bell(struct nic *nic); /* called when that descriptor is readable */
/* Functions of rma.c that the engine calls. */
struct nic_rma_ops {
	uint32_t (*serve)(struct nic *nic);
	int (*busy)(const struct nic *nic);
	int (*event)(struct nic *nic, const void *context, int status); /* returns 1 if the event belongs to rma.c */
	int (*arrive)(struct nic *nic, uint64_t notify);		/* returns 1 if it belongs to rma.c */
};

/* bell.c. nic_bell_add() returns the table index of a bell of this NIC; workers ring it by `fd`, or with -1 by its word
 * alone. If the table is full, the index is beyond its end: workers then ring and do not help. A bell is added before
 * workers start, and removed after they end. */
uint32_t nic_bell_add(struct nic *nic, const struct nic_bell *bell, int fd);
void nic_bell_remove(uint32_t place);

/* fifo.c takes fires from FIFOs, and fires that workers recorded until the end of a kernel. */
uint32_t nic_poll_fifo(struct nic *nic);
int nic_drained_fifo(struct nic *nic);
uint32_t nic_take_records(struct nic *nic, uint32_t first, uint32_t workers);
uint32_t nic_poll_kernel_ends(struct nic *nic); /* takes the records of each device whose kernel has ended */

/* policy.c: the host ops that all plug-ins with a NIC share. */
int nic_policy_create(const struct loom_host *host, const void *opts, const struct nic_ops *ops, void **self,
		      struct loom_error *err);
void nic_policy_destroy(void *self);
int nic_policy_need(void *self, const struct loom_layout *layout, struct loom_need *need, struct loom_error *err);
int nic_policy_init(void *self, const struct loom_layout *layout, const struct loom_view *view, struct loom_error *err);
int nic_policy_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_report *report, struct loom_error *err);
int nic_policy_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     const struct loom_segments *segments, struct loom_error *err);
int nic_policy_post(void *self, const struct loom_trigger_post *post, uint64_t *id, struct loom_error *err);
int nic_policy_flush(void *self, uint64_t timeout_ns, struct loom_error *err);
int nic_policy_anywhere(void *self);
int nic_policy_constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err);
int nic_policy_check(void *self, const struct loom_trigger_post *post, struct loom_error *err);
void nic_policy_edge(void *self, uint32_t device, struct loom_edge *out); /* for plug-ins with nic_poll_kernel_ends() */

/* The device half of a plug-in whose code is NAME.dev.h over nic.dev.h. Additional ops follow. */
#define NIC_DEVICE_CODE(NAME, ...)                                                                 \
	static const struct loom_trigger_dev NAME##_cpu = {                                        \
		.size = sizeof(struct loom_trigger_dev),                                           \
		.fire = NAME##_fire,                                                               \
		.fire_relaxed = NAME##_fire_relaxed,                                               \
		.fire_with = NAME##_fire_with,                                                     \
		.completed = NAME##_completed,                                                     \
		.arrived = NAME##_arrived,                                                         \
		.boundary = NAME##_boundary,                                                       \
		.deliver = NAME##_deliver,                                                         \
		.arrived_at = NAME##_arrived_at,                                                   \
		__VA_ARGS__                                                                        \
	};                                                                                         \
	LOOM_DEVICE_CODE(NAME##_code, NAME##_cpu, #NAME ".dev.h", LOOM_CODE_FILE("nic.dev.h") LOOM_CODE_FILE(#NAME ".dev.h"), \
			 .flags = LOOM_CODE_VIRTUAL)

/* The tables and the descriptor of a plug-in with a NIC. Additional host ops follow. */
#define NIC_PLUGIN(NAME, SUMMARY, OPS, ...)                                                        \
	static int NAME##_create(const struct loom_host *host, const void *opts, void **self,      \
				 struct loom_error *err)                                           \
	{                                                                                          \
		return nic_policy_create(host, opts, &(OPS), self, err);                           \
	}                                                                                          \
	static const struct loom_trigger_ops NAME##_ops = {                                        \
		.size = sizeof(struct loom_trigger_ops),                                           \
		.create = NAME##_create,                                                           \
		.destroy = nic_policy_destroy,                                                     \
		.need = nic_policy_need,                                                           \
		.init = nic_policy_init,                                                           \
		.collect = nic_policy_collect,                                                     \
		.start = nic_policy_start,                                                         \
		.stop = nic_policy_stop,                                                           \
		.post = nic_policy_post,                                                           \
		.flush = nic_policy_flush,                                                         \
		.check = nic_policy_check,                                                         \
		.anywhere = nic_policy_anywhere,                                                   \
		.constants = nic_policy_constants,                                                 \
		__VA_ARGS__                                                                        \
	};                                                                                         \
	NIC_DEVICE_CODE(NAME, .rma = NAME##_rma);                                                  \
	static const struct loom_opt NAME##_rows[] = {NIC_ROWS, {.name = NULL}};                   \
	LOOM_PLUGIN_DEFINE(TRIGGER, #NAME, "0.1.0", "Apache-2.0", SUMMARY, .opts = NAME##_rows,    \
			   .opts_size = sizeof(struct nic_opts), .ops = &NAME##_ops,               \
			   .dev = &NAME##_code, .known_leaks = fabric_known_leaks)

#endif
