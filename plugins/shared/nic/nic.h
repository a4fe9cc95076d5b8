/* SPDX-License-Identifier: Apache-2.0 */
/* The software NIC: a thread that takes triggers, counts them and runs the posts that become ready. The
 * trigger plug-ins are this NIC with as many ways in which a fire reaches it. */
#ifndef TRIGGER_NIC_H
#define TRIGGER_NIC_H

#include <pthread.h>

#include "../fabric/fabric.h"
#include "list.h"
#include "../simnet/simnet.h"
#include "nic.dev.h"

enum { NIC_SPIN, NIC_YIELD, NIC_SLEEP };
enum { NIC_COUNTS, NIC_DEVICE_COUNTS };
enum { NIC_HOST_MEMORY, NIC_DEVICE_MEMORY };

struct nic_opts {
	const char *provider, *address, *core;
	uint32_t posts, tags, slots, arrivals, fifo, flights;
	uint32_t wait, polls, counting, memory;
	uint64_t nap;
	uint8_t stamp;
	struct net_model net;
};

/* Places that a trigger has. As options: 0: as many as the workload says, and no fewer than without its word. */
struct nic_table {
	uint32_t posts, tags, slots, arrivals;
};
#define NIC_TABLE(o) ((struct nic_table){(o)->posts, (o)->tags, (o)->slots, (o)->arrivals})

/* Option rows of them; of S, a struct with these fields. */
#define NIC_TABLE_ROWS(S)                                                                          \
	LOOM_OPT(S, posts, LOOM_OPT_U32, "auto", \
			 "Operations that may be posted at once. auto: as many as the workload needs, at least 4096.", \
			 .max = 1 << 24, .section = "trigger", .flags = LOOM_OPT_AUTO), \
		LOOM_OPT(S, tags, LOOM_OPT_U32, "auto", \
				 "Tags in use at once, rounded up to a power of two, at least 16; an eighth is kept " \
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

/* The option rows of all that have a NIC. */
extern const char *const nic_waits[], *const nic_countings[], *const nic_memories[];
#define NIC_ROWS                                                                                   \
	LOOM_OPT(struct nic_opts, provider, LOOM_OPT_STR, "auto", \
			 "Provider of libfabric: shm, tcp, net, sockets, or its full name with + for ;. auto: the " \
			 "first that passes a test. sim: a simulated network, for simulated devices, where it is " \
			 "what auto selects.", .section = "trigger"), \
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
				 "Memory of the buffers of workloads, from and to which operations send. host: host " \
				 "memory. device: where the transport puts memory of devices; the NIC's thread " \
				 "copies data of a GPU.", .choices = nic_memories, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, flights, LOOM_OPT_U32, "256", \
				 "Operations in flight with the provider at once.", \
				 .min = 1, .max = 2048, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, wait, LOOM_OPT_ENUM, "yield", \
				 "How the NIC's thread waits for work. spin: polls. yield: yields its core between " \
				 "polls. nap: sleeps between polls, longer each time, or until it is woken, where the " \
				 "network can wake it.", \
				 .choices = nic_waits, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, polls, LOOM_OPT_U32, "64", \
				 "Polls without success before it yields or naps.", \
				 .max = 1 << 30, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, nap, LOOM_OPT_TIME, "20us", \
				 "wait = nap: the first sleep.", .min = 1000, .max = 1e9, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, core, LOOM_OPT_CPUS, "", \
				 "Cores of the NIC's thread. Empty: those of the process without the cores to which " \
				 "its other threads are bound, as workers are.", .section = "trigger"), \
		NIC_STAMP_ROW(struct nic_opts), NET_ROWS(struct nic_opts)

/* One operation with the provider. */
struct nic_flight {
	struct fabric_context context; /* first: events give its address */
	struct fabric_io io;
	uint64_t chain;
	uint64_t epoch; /* flights of an earlier sample only give their place back */
	uint32_t slot, notify;
	uint32_t post;
	uint32_t state; /* 0: free */
	uint32_t next;
};

struct nic;
struct asks;
struct asks_ops;

/* What sets one trigger plug-in apart. All are called with the lock held. */
struct nic_way {
	const char *name;
	int has_fifo, has_record, needs_trigger;
	int by_stream; /* kernels' ends are the front end's, not the host's */
	int adds; /* workers of all devices add to the same words */
	const char *counter; /* who counts, where a device cannot; NULL: it can */
	/* Bytes of what stands at extra_at, and how many entries that is; NULL: none. */
	uint64_t (*extra)(const struct nic *nic, uint64_t *entries);
	/* Blocks were cleared for a new sample. */
	void (*reset)(struct nic *nic);
	/* A post to be taken, beyond the list: 0 with *taken = 1 when the list shall not see it. */
	int (*post)(struct nic *nic, const struct loom_trigger_post *what, uint64_t *id, int *taken,
		    struct loom_error *err);
	/* The list has a new post that waits for `tag`. */
	void (*posted)(struct nic *nic, uint64_t tag);
	int (*cancel)(struct nic *nic, uint64_t id);
	/* A count from the network's side, before the list gets it: 1 when it is dealt with. */
	int (*count)(struct nic *nic, uint64_t tag, uint64_t n);
	/* Takes what workers fired; how much work it was. */
	uint32_t (*poll)(struct nic *nic);
	/* 1 when nothing that workers fired is left to be taken. Workers are parked: what they fired
	 * since the last boundary counts now. */
	int (*drained)(struct nic *nic);
	/* An event of an operation that is not in `flight`: 1 when it is this way's. status: 0, or what failed. */
	int (*event)(struct nic *nic, const void *context, int status);
	/* Operations under way that are not in `flying`. */
	int (*busy)(struct nic *nic);
	int (*start)(struct nic *nic, struct loom_error *err);
	void (*close)(struct nic *nic); /* `own` is there, the fabric open but for its endpoint */
};

struct nic {
	const struct loom_host *host;
	const struct nic_opts *opts;
	const struct nic_way *way;
	void *own; /* the way's */
	pthread_mutex_t lock;
	uint32_t want; /* host threads that want the lock: the NIC's thread lets them */
	uint32_t stop;
	int running, shared, placed; /* placed: its thread is where workers are not */
	pthread_t thread;
	/* Under virtual clock, in place of the thread; NULL: time is real. */
	const struct loom_clock *clock;
	struct loom_agent *agent;
	struct fabric *fabric;
	struct nic_table table;
	struct loom_net_need said; /* by the workload */
	struct list list;
	struct nic_flight *flight; /* [opts->flights] */
	uint32_t free_flight, flying, receiving;
	uint32_t first_notify; /* flights whose notification has to be sent yet */
	struct due held;       /* a run that the provider had no room for */
	int holding;
	struct asks *rma; /* ask.c; NULL: workers ask nothing */
	const struct asks_ops *asker;
	uint64_t epoch;
	uint32_t fifo; /* entries */
	struct nic_shape shape;
	char *base; /* the block for the stack; NULL: not yet */
	uint64_t bytes; /* of it */
	uint32_t rings;		 /* FIFOs of all devices */
	uint32_t next_ring;	 /* that is looked at next */
	struct nic_fifo **fifos; /* [rings] */
	uint64_t *cursor;	 /* [rings]: words taken */
	struct nic_record **record; /* [workers] */
	struct nic_tally *tally; /* [shape.tallies], as the device will have them; NULL: none */
	pthread_t preparer; /* who prepares samples: what it posts comes before workers run */
	uint32_t devices, workers;
	uint32_t first_worker[LOOM_MAX_DEVICES + 1];
	uint64_t fires, runs, arrivals; /* of this sample */
	int counts_arrivals;		/* there are posts that wait for some */
	/* With stamp = yes: when triggers were first and last taken, and how many were by the first time. */
	uint64_t first_ns, last_ns, first_fires;
	uint64_t cpu_ns; /* of the thread, when the sample began */
	/* How often a worker has looked in place of the thread, and as far as that has seen it. */
	uint32_t helps, helped;
	int status;                     /* the first failure, an enum loom_err */
	char failure[200];
};

/* nic.c: the engine. */
int nic_open(struct nic *nic, const struct loom_host *host, const struct nic_opts *opts,
	     const struct nic_way *way, struct loom_error *err);
void nic_close(struct nic *nic);
/* Tables for what the workload needs: 0 or LOOM_ENOMEM. Before anything is posted. */
int nic_size(struct nic *nic, const struct loom_layout *layout);
void nic_lock(struct nic *nic); /* by host threads */
void nic_unlock(struct nic *nic);
uint64_t nic_now(const struct nic *nic);  /* the clock of the devices */
uint32_t nic_step(struct nic *nic); /* one look at everything; 0: nothing to do. Locked */
void nic_count(struct nic *nic, uint64_t tag, uint64_t n, uint64_t argument);
void nic_count_arrivals(struct nic *nic); /* from now on, and those that have come */
/* Hands a run to the provider: 0, or LOOM_EAGAIN. */
int nic_run(struct nic *nic, const struct loom_trigger_post *what, uint32_t post, uint64_t argument);
/* An operation without immediate data is complete at `target`: tells it there, then completes here. 0, or
 * LOOM_EAGAIN. */
int nic_notify(struct nic *nic, const struct loom_trigger_post *what);
uint32_t nic_run_due(struct nic *nic);
int nic_backlog(const struct nic *nic); /* runs that wait for the provider: take no more triggers */
void nic_fail(struct nic *nic, int code, const char *fmt, ...) LOOM_PRINTF(3, 4);
void nic_complete(struct nic *nic, uint32_t slot, uint64_t chain, int status);
int nic_idle(struct nic *nic); /* nothing is under way but receives */
int nic_check(const struct nic *nic, const struct loom_trigger_post *what, struct loom_error *err);
int nic_no_place(const struct nic *nic, struct loom_error *err); /* LOOM_EFULL, of a post */

/* check.c: how many places, from what options and the workload say; what the latter said. */
struct nic_table nic_table(const struct nic_table *options, const struct loom_layout *layout, struct loom_net_need *said);
/* "raise tags: say trigger.tags = 16384 or more", in a buffer of this thread; `least`: with less it fails again. */
const char *nic_raise(const char *option, uint64_t least);
/* What these options must be, now that they do not do. */
uint64_t nic_more_tags(const struct nic_table *table, const struct loom_net_need *said);
uint64_t nic_more_posts(const struct nic_table *table, const struct loom_net_need *said);
/* LOOM_EBUSY: the fire that has its argument has been. */
int nic_too_late(const struct loom_host *host, const char *plugin, const struct loom_trigger_post *what, struct loom_error *err);
/* Whether a post can ever run, within what is told here. */
struct nic_bounds {
	const struct loom_host *host;
	const char *name; /* of the plug-in */
	const char *adder; /* who adds atomically */
	struct nic_table table;
	struct loom_net_need said; /* by the workload */
	const void *of;
	int (*reaches)(const void *of, uint32_t rank, loom_ref ref, uint64_t bytes);
	int (*adds)(const void *of, const struct loom_trigger_post *what);
};
int nic_check_bounds(const struct nic_bounds *b, const struct loom_trigger_post *what, struct loom_error *err);

/* tally.c: where the device counts. Locked: what its tallies are told of a post, or of counts from elsewhere, and what
 * comes too late for that. */
int nic_tally_post(struct nic *nic, const struct loom_trigger_post *what, struct loom_error *err);
int nic_tally_count(struct nic *nic, uint64_t tag, struct loom_error *err);
/* ask.c: one-sided operations for workers, where ranks share tasks. Collective: start. */
uint64_t asks_bytes(const struct nic *nic, uint32_t ranks, uint32_t workers); /* of the block */
int asks_start(struct nic *nic, const struct loom_segments *segments, struct loom_error *err);
void asks_close(struct nic *nic); /* the fabric is closed */
void asks_begin(struct nic *nic); /* a sample: the block was cleared */
/* bell.c. The place of a bell of this NIC, which workers ring by `fd` (-1: by its word alone); a place beyond the table's end
 * where that is full: workers then ring and do not help. Added before workers start, and removed when they have ended. */
uint32_t nic_bell_add(struct nic *nic, const struct nic_bell *bell, int fd);
void nic_bell_remove(uint32_t place);
int asks_wait(const struct nic *nic); /* a worker has asked, and that is not seen yet */
int asks_bell(const struct nic *nic); /* the descriptor that workers ring; -1: there is none ... */
void asks_heard(struct nic *nic);     /* ... and it is readable */
/* What the engine calls. */
struct asks_ops {
	uint32_t (*serve)(struct nic *nic);
	int (*busy)(const struct nic *nic);
	int (*event)(struct nic *nic, const void *context, int status); /* 1: it was theirs */
	int (*arrive)(struct nic *nic, uint64_t notify);		/* the same of a notification */
};

/* fifo.c, record.c: parts of several ways. */
uint32_t nic_poll_fifo(struct nic *nic);
int nic_drained_fifo(struct nic *nic);
uint32_t nic_take_records(struct nic *nic, uint32_t first, uint32_t workers);
uint32_t nic_poll_gates(struct nic *nic); /* the same for each device whose kernel has ended */

/* policy.c: the host half that all plug-ins share. */
int nic_policy_create(const struct loom_host *host, const void *opts, const struct nic_way *way,
		      void **self, struct loom_error *err);
void nic_policy_destroy(void *self);
int nic_policy_need(void *self, const struct loom_layout *layout, struct loom_need *need,
		    struct loom_error *err);
int nic_policy_init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		    struct loom_error *err);
int nic_policy_collect(void *self, const struct loom_layout *layout, const struct loom_view *view,
		       struct loom_report *report, struct loom_error *err);
int nic_policy_start(void *self, const struct loom_layout *layout, const struct loom_view *view,
		     const struct loom_segments *segments, struct loom_error *err);
void nic_policy_stop(void *self);
int nic_policy_post(void *self, const struct loom_trigger_post *post, uint64_t *id,
		    struct loom_error *err);
int nic_policy_cancel(void *self, uint64_t id, struct loom_error *err);
int nic_policy_flush(void *self, uint64_t timeout_ns, struct loom_error *err);
int nic_policy_room(void *self, uint32_t *posts);
int nic_policy_anywhere(void *self);
int nic_policy_constants(void *self, const struct loom_layout *layout, char *text, size_t room, struct loom_error *err);
int nic_policy_count(void *self, uint64_t tag, uint64_t n, struct loom_error *err);
int nic_policy_check(void *self, const struct loom_trigger_post *post, struct loom_error *err);
void nic_policy_edge(void *self, uint32_t device, struct loom_edge *out); /* of ways with nic_poll_gates() */

/* The device half of a plug-in whose code is NAME.dev.h over nic.dev.h; then ops beyond those that all have. */
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

extern const struct loom_known_leak nic_known_leaks[]; /* of libfabric: fabric_shm.c */

/* The tables and the descriptor of a plug-in whose device code is NAME.dev.h over nic.dev.h; then ops beyond those that
 * all have. */
#define NIC_PLUGIN(NAME, SUMMARY, WAY, ...)                                                        \
	static int NAME##_create(const struct loom_host *host, const void *opts, void **self,      \
				 struct loom_error *err)                                           \
	{                                                                                          \
		return nic_policy_create(host, opts, &(WAY), self, err);                           \
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
		.cancel = nic_policy_cancel,                                                       \
		.flush = nic_policy_flush,                                                         \
		.room = nic_policy_room,                                                           \
		.count = nic_policy_count,                                                         \
		.check = nic_policy_check,                                                         \
		.anywhere = nic_policy_anywhere,                                                   \
		.constants = nic_policy_constants,                                                 \
		__VA_ARGS__                                                                        \
	};                                                                                         \
	NIC_DEVICE_CODE(NAME, .rma = NAME##_rma);                                                  \
	static const struct loom_opt NAME##_rows[] = {NIC_ROWS, {.name = NULL}};                   \
	LOOM_PLUGIN_DEFINE(TRIGGER, #NAME, "0.1.0", "Apache-2.0", SUMMARY, .opts = NAME##_rows,    \
			   .opts_size = sizeof(struct nic_opts), .ops = &NAME##_ops,               \
			   .dev = &NAME##_code, .known_leaks = nic_known_leaks)

#endif
