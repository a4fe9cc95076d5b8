/* SPDX-License-Identifier: Apache-2.0 */
/* The software NIC takes triggers, counts them, and runs the posts whose thresholds are reached. Each trigger plug-in
 * with a NIC has a struct nic_ops, which says how fires reach the NIC. */
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
enum { NIC_DIRECT_COPIES, NIC_STAGED_COPIES };

struct nic_opts {
	const char *provider, *address, *core;
	uint32_t posts, tags, slots, arrivals, fifo, in_flight;
	uint32_t wait, polls, memory, copies;
	uint64_t nap, piece;
	uint8_t stamp;
	struct simnet_model net;
};

/* Sizes of the NIC's tables, in entries. In the options, 0 stands for auto. */
struct nic_table {
	uint32_t posts, tags, slots, arrivals;
};
#define NIC_TABLE(o) ((struct nic_table){(o)->posts, (o)->tags, (o)->slots, (o)->arrivals})

/* The option rows for the sizes in struct nic_table. S: an options struct with fields of the same names. */
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
extern const char *const nic_waits[], *const nic_memories[], *const nic_copies[];
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
		LOOM_OPT(struct nic_opts, memory, LOOM_OPT_ENUM, "host", \
				 "Memory of the workloads' buffers, which operations read and write. host: host " \
				 "memory. device: where the transport puts memory of devices; the NIC's thread " \
				 "copies data of a GPU.", .choices = nic_memories, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, copies, LOOM_OPT_ENUM, "auto", \
				 "memory = device: how the NIC's thread copies data between GPUs. auto: directly if " \
				 "one GPU reaches the other, else staged. staged: through host memory.", \
				 .choices = nic_copies, .section = "trigger"), \
		LOOM_OPT(struct nic_opts, piece, LOOM_OPT_SIZE, "128KiB", \
				 "memory = device: size of the pieces in which a put is staged.", \
				 .min = 4096, .max = 1ull << 30, .section = "trigger"), \
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

/* One request to the provider. A request is free, is an operation in flight, or is the notification that is sent after
 * an operation. */
struct nic_request {
	struct fabric_context context; /* first member: events carry its address */
	struct fabric_io io;
	uint64_t chain; /* tag to which a successful completion adds one; 0: none */
	/* value of nic.sample when the request was taken: a request of an earlier sample counts nothing when it ends */
	uint64_t sample;
	uint64_t began_ns; /* with stamp = yes: when the operation was started */
	uint32_t slot, notify; /* completion slot, 0: none; arrival word to notify after the operation, 0: none */
	uint32_t post;	       /* index in nic.list, or LIST_NONE */
	uint32_t state;	       /* enum in engine.c; 0: free */
	uint32_t next;	       /* index of the next request after free_request or first_notify, or LIST_NONE */
	uint32_t awaited;      /* 1: counts in nic.awaited */
};

struct nic;
struct nic_rma_state;

/* The ops by which a trigger plug-in passes fires to the NIC. Only poll() and drained() are mandatory. extra() and
 * start() are called while the engine does not run. The caller of the other ops holds nic.lock; only the agent,
 * which runs the engine under virtual time, does not hold it. */
struct nic_ops {
	const char *name;
	int has_fifo, has_record;
	int by_stream; /* 1: the front end of the device reports ends of kernels to the NIC; 0: the host does */
	const char *no_argument; /* error text that says why a fire cannot supply part of an operation; NULL: it can */
	/* Returns the size in bytes of the plug-in's own part at shape.extra_at, and in *entries the number of its
	 * entries. NULL: the plug-in has no such part. */
	uint64_t (*extra)(const struct nic *nic, uint64_t *entries);
	/* Called when a sample begins and the blocks are cleared. */
	void (*reset)(struct nic *nic);
	/* Called after a post with this tag was added to nic.list. */
	void (*posted)(struct nic *nic, uint64_t tag);
	/* Takes the fires of workers. Returns 0 if there were none, else a positive number. */
	uint32_t (*poll)(struct nic *nic);
	/* Returns 1 when every fire has been taken. Called when no worker runs, so it also takes the fires that workers
	 * recorded for the end of their kernel. */
	int (*drained)(struct nic *nic);
	/* Returns 1 if the plug-in has operations in flight or waiting that nic.in_flight does not count. */
	int (*busy)(struct nic *nic);
	int (*start)(struct nic *nic, struct loom_error *err);
};

struct nic {
	const struct loom_host *host;
	const struct nic_opts *opts;
	const struct nic_ops *ops;
	void *own; /* state of the plug-in, allocated by its start() */
	pthread_mutex_t lock;
	uint32_t waiters; /* number of host threads that wait for the lock; the engine thread yields to them */
	uint32_t stop;
	int running, shared, placed; /* placed: 1 as soon as the engine thread keeps off the workers' cores */
	pthread_t thread;
	/* Under virtual time an agent replaces the thread. The clock is NULL under real time. */
	const struct loom_clock *clock;
	struct loom_agent *agent;
	int steps; /* 1: the agent has taken a step since the last flush */
	struct fabric *fabric;
	struct nic_table table;
	struct loom_net_need needs; /* what the workload needs of the network */
	struct trigger_list list;
	struct nic_request *request; /* [opts->in_flight] */
	/* Index of the first free request; number of requests in use; number of requests in use that are receives or
	 * belong to earlier samples. */
	uint32_t free_request, in_flight, receiving;
	/* Number of receives in flight that fires have started and that start no other operation. A host that sends at
	 * the end of a kernel waits for them before it launches the next one, as in MPI_Waitall(). */
	uint32_t awaited;
	uint64_t taken[LOOM_MAX_DEVICES]; /* number of kernel ends of each device whose fires have been taken */
	uint32_t first_notify; /* index of the first request whose notification is not sent yet, or LIST_NONE */
	struct list_run stalled; /* if is_stalled: a run for which the provider had no room */
	int is_stalled;
	struct nic_rma_state *rma; /* state of rma.c; NULL: workers do not access the memory of other ranks */
	const struct nic_rma_ops *rma_ops;
	uint64_t sample; /* number of samples begun */
	uint32_t fifo; /* entries of a FIFO, a power of two */
	struct nic_shape shape;
	char *base; /* the block for the stack; NULL: not allocated yet */
	uint64_t bytes; /* size of that block */
	uint32_t rings;		 /* number of FIFOs of all devices */
	uint32_t next_ring;	 /* index of the FIFO to poll next */
	struct nic_fifo **fifos; /* [rings] */
	uint64_t *cursor;	 /* [rings]: number of words taken from each FIFO in this sample */
	struct nic_record **record; /* [workers]: recorded fires of each worker, if ops->has_record */
	uint32_t devices, workers;
	uint32_t first_worker[LOOM_MAX_DEVICES + 1]; /* [devices + 1]; the last element is `workers` */
	uint64_t fires, runs, arrivals; /* in this sample: fires taken, operations run, notifications arrived */
	int counts_arrivals;		/* 1: arrivals are also counted in `list`, because a post waits for one */
	/* With stamp = yes: the times at which polls first and last found triggers, and the value of `fires` at the
	 * first time. */
	uint64_t first_ns, last_ns, first_fires;
	/* With stamp = yes: number of operations that have completed, and the sum of their times. */
	uint64_t timed, timed_ns;
	/* Values when the sample began: CPU time of the engine thread, and the sums of struct fabric. */
	uint64_t cpu_ns, copy_ns, start_ns;
	/* Number of engine steps that workers have taken for the engine thread; value of `helps` that the thread saw
	 * last. */
	uint32_t helps, helped;
	int status;                     /* the first failure, an enum loom_err */
	char failure[200];
};

/* backend.c. rma: 1 if workers access the memory of other ranks. */
int nic_open_fabric(struct nic *nic, int rma, struct loom_error *err);
int nic_is_simulated(const struct nic *nic);

/* engine.c matches fires with posts, passes due operations to the fabric, and completes them. */
int nic_open(struct nic *nic, const struct loom_host *host, const struct nic_opts *opts, const struct nic_ops *ops,
	     struct loom_error *err);
void nic_close(struct nic *nic);
/* Sizes the tables by the options and the workload's needs, before any post. Returns 0 or LOOM_ENOMEM. */
int nic_size(struct nic *nic, const struct loom_layout *layout);
void nic_lock(struct nic *nic); /* called by host threads */
void nic_unlock(struct nic *nic);
uint64_t nic_now(const struct nic *nic); /* virtual time, or the host's clock */
uint32_t nic_step(struct nic *nic); /* polls everything once; returns 0 if idle. The agent or a lock holder calls it */
void nic_count(struct nic *nic, uint64_t tag, uint64_t n, uint64_t argument);
void nic_count_arrivals(struct nic *nic); /* posts may wait for arrivals afterwards; arrivals from before the call count, too */
/* Passes a run to the provider. post: index in nic.list, or LIST_NONE. Returns 0, or LOOM_EAGAIN if the provider has no
 * room. */
int nic_run(struct nic *nic, const struct loom_trigger_post *what, uint32_t post, uint64_t argument);
/* For an operation without immediate data that is complete at its target: notifies the target, then completes the
 * operation here. Returns 0 or LOOM_EAGAIN. */
int nic_notify(struct nic *nic, const struct loom_trigger_post *what);
uint32_t nic_run_due(struct nic *nic);
int nic_backlog(const struct nic *nic); /* returns 1 if due runs wait for the provider; the caller must then take no triggers */
void nic_fail(struct nic *nic, int code, const char *fmt, ...) LOOM_PRINTF(3, 4);
void nic_complete(struct nic *nic, uint32_t slot, uint64_t chain, int status);
int nic_idle(struct nic *nic); /* returns 1 if nothing is in flight or due, except receives */
int nic_check(const struct nic *nic, const struct loom_trigger_post *what, struct loom_error *err);
int nic_full(const struct nic *nic, struct loom_error *err); /* reports LOOM_EFULL for a post that found no room */
static inline int nic_fabric_check(const struct nic *nic, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	return nic->fabric->ops->check(nic->fabric, rank, ref, bytes);
}

/* thread.c runs the engine in a thread, or in an agent under virtual time. */
int nic_start_thread(struct nic *nic, struct loom_error *err);
int nic_start_agent(struct nic *nic, const struct loom_layout *layout, struct loom_error *err);
void nic_policy_stop(void *self); /* the host op stop() */
void nic_place_thread(struct nic *nic); /* called when workers run: keeps the thread off the cores of the workers */
uint64_t nic_thread_cpu_ns(const struct nic *nic); /* CPU time since the thread started */

/* check.c. nic_table() returns table sizes from the options and the workload's needs, and sets *needs to these
 * needs. */
struct nic_table nic_table(const struct nic_table *options, const struct loom_layout *layout,
			   struct loom_net_need *needs);
/* Returns a hint like "raise tags: set trigger.tags = 16384 or more", in a thread-local buffer. least: the smallest
 * value that suffices. */
const char *nic_raise(const char *option, uint64_t least);
/* Return a value of option tags or posts that suffices. */
uint64_t nic_more_tags(const struct nic_table *table, const struct loom_net_need *needs);
uint64_t nic_more_posts(const struct nic_table *table, const struct loom_net_need *needs);
/* Reports LOOM_EBUSY, because the fire that should supply the post's argument has already happened. */
int nic_too_late(const struct loom_host *host, const char *plugin, const struct loom_trigger_post *what,
		 struct loom_error *err);
/* What nic_check_bounds() compares a post with. */
struct nic_bounds {
	const struct loom_host *host;
	const char *name; /* name of the plug-in */
	const char *adder; /* name of the component that performs atomic additions, for messages */
	struct nic_table table;
	struct loom_net_need needs; /* what the workload needs of the network */
	const void *of; /* passed to the functions below */
	int (*reaches)(const void *of, uint32_t rank, loom_ref ref, uint64_t bytes);
	int (*adds)(const void *of, const struct loom_trigger_post *what);
};
int nic_check_bounds(const struct nic_bounds *b, const struct loom_trigger_post *what, struct loom_error *err);

/* rma.c: one-sided operations of workers, for ranks that share tasks. nic_rma_start() is collective over ranks. */
uint64_t nic_rma_bytes(const struct nic *nic, uint32_t ranks, uint32_t workers); /* bytes at shape.rma_at */
int nic_rma_start(struct nic *nic, const struct loom_segments *segments, struct loom_error *err);
void nic_rma_close(struct nic *nic); /* called after the fabric was closed */
void nic_rma_begin(struct nic *nic); /* called when a sample begins, after the block was cleared */
int nic_rma_pending(const struct nic *nic); /* returns 1 if the NIC has not taken a worker's operation yet */
int nic_rma_bell(const struct nic *nic); /* the eventfd by which workers wake the thread, or -1 */
void nic_rma_drain_bell(struct nic *nic); /* called when the bell's descriptor is readable */
/* Functions of rma.c that the engine calls. */
struct nic_rma_ops {
	uint32_t (*serve)(struct nic *nic);
	int (*busy)(const struct nic *nic);
	int (*event)(struct nic *nic, const void *context, int status); /* returns 1 if the event belongs to rma.c */
	int (*arrive)(struct nic *nic, uint64_t notify); /* returns 1 if the notification belongs to rma.c */
};

/* bell.c. A bell is the doorbell by which workers wake the NIC's thread. nic_bell_add() returns the index of a bell of
 * this NIC in the table of bells. Workers ring it through the eventfd `fd` or, if `fd` is -1, only by the word in the
 * bell. If the table is full, the index is beyond the end of the table; workers then ring by the word, and cannot help.
 * A bell is added before workers start, and removed after they end. */
uint32_t nic_bell_add(struct nic *nic, const struct nic_bell *bell, int fd);
void nic_bell_remove(uint32_t place);

/* fifo.c takes fires from FIFOs, and fires that workers recorded for the end of their kernel. */
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
int nic_policy_check(void *self, const struct loom_trigger_post *post, struct loom_error *err);
void nic_policy_edge(void *self, uint32_t device, struct loom_edge *out); /* for users of nic_poll_kernel_ends() */

/* Defines the device half of plug-in NAME, whose code is NAME.dev.h and nic.dev.h. Additional device ops follow. */
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

/* Defines the tables and the descriptor of plug-in NAME, which has a NIC. Additional host ops follow. */
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
		__VA_ARGS__                                                                        \
	};                                                                                         \
	NIC_DEVICE_CODE(NAME, .rma = NAME##_rma);                                                  \
	static const struct loom_opt NAME##_rows[] = {NIC_ROWS, {.name = NULL}};                   \
	LOOM_PLUGIN_DEFINE(TRIGGER, #NAME, "0.1.0", "Apache-2.0", SUMMARY, .opts = NAME##_rows,    \
			   .opts_size = sizeof(struct nic_opts), .ops = &NAME##_ops,               \
			   .dev = &NAME##_code)

#endif
