/* SPDX-License-Identifier: Apache-2.0 */
/* Service requests of workers to the host, and the policies that bound what they cost (HISS).
 *
 * A worker posts a request and goes on or waits. On the host it takes the paper's path (figure 1): an
 * interrupt (2), the top half (3), the bottom half (4) that reads and checks it, the worker thread (5)
 * that serves it, and the completion (6). One qos plug-in of the conf's pipeline leads: it runs that
 * path. All plug-ins of the pipeline, the leader too, decide about it in the order of the conf; each
 * may only narrow what those before it left: fewer requests, later, on fewer cores. */
#ifndef GPULOOM_QOS_H
#define GPULOOM_QOS_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a worker may ask for (the paper's table I, and more). `buffer` and `handle` are numbers of
 * grants of the worker's own tenant; `offset` and `bytes` lie within the buffer.
 * X(name, short name, what it does and gives, or minus an errno of Linux) */
#define LOOM_SERVICE_MAP(X)                                                                        \
	X(NOTHING, nothing, "0: what the path itself costs")                                       \
	X(SIGNAL, signal, "sends signal `argument` to process `handle`; 0")                        \
	X(FAULT, fault, "makes the absent pages of demand buffer present; how many bytes were absent") \
	X(EVICT, evict, "makes pages of a demand buffer absent again; 0")                          \
	X(ALLOC, alloc, "`bytes` of heap `buffer`, zeroed, whole pages; their offset in the heap") \
	X(FREE, free, "gives what ALLOC gave at `offset` back; its bytes")                         \
	X(READ, read, "file `handle` at `argument` into the buffer; bytes, fewer at its end")      \
	X(WRITE, write, "the buffer into file `handle` at `argument`; bytes")                      \
	X(MIGRATE, migrate, "moves the buffer's pages to NUMA node `argument`; pages moved") \
	X(SEND, send, "sends the buffer to socket `handle`; bytes, -EAGAIN when it is full")

enum loom_service {
#define LOOM_SERVICE_ENUM(NAME, name, text) LOOM_SERVICE_##NAME,
	LOOM_SERVICE_MAP(LOOM_SERVICE_ENUM)
#undef LOOM_SERVICE_ENUM
	LOOM_SERVICES
};

struct loom_request {
	uint32_t service; /* enum loom_service */
	uint32_t handle;
	uint32_t buffer;
	uint32_t reserved;
	uint64_t offset, bytes;
	uint64_t argument;
};
#define LOOM_REQUEST_BYTES_MAX (1ull << 30) /* more is rejected with -E2BIG */

/* Some of the workers, whose requests share one queue on the host. */
struct loom_tenant {
	char name[24];
	uint32_t first, count; /* workers; no worker has two tenants */
	uint32_t outstanding;  /* requests of one worker under way at most: a power of two */
	uint32_t weight;       /* its share among tenants that all want more; at least 1 */
};
#define LOOM_MAX_TENANTS 32

/* What a tenant may name in its requests: grants are numbered from 0 per tenant, in their order. */
enum loom_grant_kind {
	LOOM_GRANT_BUFFER = 1, /* READ, WRITE, MIGRATE, SEND */
	LOOM_GRANT_DEMAND,     /* whole pages that are absent until a FAULT; MIGRATE */
	LOOM_GRANT_HEAP,       /* whole pages for ALLOC and FREE; also a buffer */
	LOOM_GRANT_FILE,       /* a regular file */
	LOOM_GRANT_SOCKET,     /* connected */
	LOOM_GRANT_PROCESS,    /* a pidfd */
};
struct loom_grant {
	uint32_t tenant;
	uint32_t kind;   /* enum loom_grant_kind */
	loom_ref at;     /* BUFFER, DEMAND, HEAP: in memory that the host sees; with `device` bytes from the start of a block */
	uint64_t bytes;
	int fd;          /* FILE, SOCKET, PROCESS: stays the workload's, open while workers run */
	uint32_t access; /* FILE: LOOM_READ | LOOM_WRITE */
	uint64_t signals;    /* PROCESS: bit n - 1 allows signal n */
	const void *content; /* DEMAND: what its pages hold, `bytes` of host memory; NULL: zeroes */
	/* DEMAND, HEAP: 1 plus the device in whose block of the workload (LOOM_PLACE_DEVICE) it lies, for workers on GPUs. Then a
	 * demand buffer has so many frames of a page at `at`. FAULT is of one page: it fills a frame, and gives where in the
	 * grant that begins; -ENOMEM when none is free. MIGRATE takes pages out of their frames; FAULT brings them back. */
	uint32_t device, frames;
};

/* ---- deciding ----------------------------------------------------------------------------------- */

/* How the path is built; the leader fills in its defaults, then each plug-in may change it, once. */
enum loom_qos_halves {
	LOOM_QOS_SPLIT = 0,  /* top half, bottom half and worker thread are three threads */
	LOOM_QOS_JOINED,     /* the top half does the bottom half's work (the paper's monolithic) */
	LOOM_QOS_MONOLITHIC, /* and serves the requests too: one thread */
};
enum loom_qos_order {
	LOOM_QOS_ARRIVAL = 0, /* a tenant's requests are served as they came */
	LOOM_QOS_SCAN,	      /* its reads in the order of their places in the file */
};
enum loom_qos_notify {
	LOOM_QOS_EVENTFD = 0,
	LOOM_QOS_FUTEX,
	LOOM_QOS_POLL,	    /* no interrupts */
	LOOM_QOS_INTERRUPT, /* of GPUs: interrupt.h */
	LOOM_QOS_HYBRID,    /* polls while requests come, and is interrupted when they come again */
};
enum loom_qos_class { LOOM_QOS_NICE = 0, LOOM_QOS_FIFO, LOOM_QOS_OTHER, LOOM_QOS_IDLE };
struct loom_qos_path {
	size_t size;
	uint32_t halves, notify, sched_class;
	uint32_t files;    /* 0: io_uring, 1: pread and pwrite */
	uint32_t mask;     /* 1: no interrupts while requests wait or are served */
	uint32_t batch;    /* requests that are served between two calls of the policies */
	uint64_t cores;    /* of the machine that may serve: bit n is core n; 0: all that we may use */
	uint32_t order;    /* enum loom_qos_order */
	uint32_t reserved;
};

/* The state of the queues at a call of a policy. */
struct loom_qos_queue {
	uint64_t waiting; /* posted and not yet served, as far as the bottom half has seen them */
	uint64_t served;  /* so far */
	uint64_t cpu_ns;  /* spent on its requests so far */
	uint64_t oldest_ns; /* when the first of those waiting was posted; 0: none, or not known */
	uint32_t weight, reserved;
};
struct loom_qos_load {
	size_t size;
	uint64_t now_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* CPU time of all threads of the path so far, by their clocks */
	uint64_t body_ns; /* the part of it between the first and last line of the services' code */
	uint64_t served, interrupts;
	uint64_t waiting;
	uint32_t machine; /* cores that a share of CPU time is a share of */
	uint32_t tenants;
	const struct loom_qos_queue *tenant; /* [tenants] */
	uint32_t vectors; /* cores that may take interrupts ... */
	uint32_t vector;  /* ... the core of the calling thread, if it is bound to one */
	const uint32_t *core; /* [vectors]: their numbers in the operating system */
};

/* When the device interrupts: at `count` waiting requests, or `window_ns` after the first of them. */
struct loom_qos_moderation {
	uint32_t count;
	uint32_t reserved;
	uint64_t window_ns;
};

/* The tenant that is served next. */
struct loom_qos_round {
	uint32_t tenant;
	uint32_t requests; /* most; 0: no tenant, until retry_ns */
	uint64_t cpu_ns;   /* ends the turn early when this much CPU time is spent; 0: does not */
	uint64_t retry_ns; /* CLOCK_MONOTONIC */
	uint64_t slack_ns; /* how much later that may become */
	uint64_t then_ns;  /* when the retry after that will be; setting its timer now costs less. 0: not known */
	uint64_t wake_mask;     /* bit t: a request of tenant t ends the turn, or the wait for retry_ns, at once. For a
			    * path that masks interrupts */
};

struct loom_qos_ops;
struct loom_qos_stage {
	const struct loom_qos_ops *ops;
	void *self;
	const char *name;
};

struct loom_qos_ops {
	LOOM_POLICY_OPS
	/* --- leading: all or none. The plug-in has device code then. ---
	 * The core calls these on the first plug-in of the pipeline that has them; need, init, collect,
	 * start and stop of the others are called as well, for what is their own.
	 *
	 * lead    the pipeline, with the caller's own place in it. Before need().
	 * tenants the tenants. After lead(), before need(). The list is copied.
	 * grants  what they may name. Before start(), memory in place. The list is copied. */
	int (*lead)(void *self, const struct loom_qos_stage *stage, uint32_t n, struct loom_error *err);
	int (*tenants)(void *self, const struct loom_layout *layout, const struct loom_tenant *tenant,
		       uint32_t n, struct loom_error *err);
	int (*grants)(void *self, const struct loom_grant *grant, uint32_t n, struct loom_error *err);
	/* --- deciding: each may be NULL. Never block; called by one thread of the path at a time. --- */
	void (*arrange)(void *self, struct loom_qos_path *path);
	/* After every drain of the queues. */
	void (*interrupt)(void *self, const struct loom_qos_load *load, struct loom_qos_moderation *m);
	/* Bits of vectors that take interrupts and run the path. At start and every 10 ms or so. */
	void (*steer)(void *self, const struct loom_qos_load *load, uint64_t *vectors);
	/* Before each turn; something waits. */
	void (*admit)(void *self, const struct loom_qos_load *load, struct loom_qos_round *turn);
	/* After each turn: what it served, and what it cost by the clock of the serving thread. */
	void (*account)(void *self, const struct loom_qos_load *load, uint32_t tenant, uint32_t served,
			uint64_t cpu_ns);
};

struct loom_qos_dev {
	size_t size;
	/* Posts a copy of *request, by one lane of a worker at a time. 0 and *id; LOOM_EAGAIN when too
	 * many are outstanding; LOOM_EINVAL when this worker belongs to no tenant. */
	int (*request)(struct loom_ctx *c, const struct loom_request *request, uint64_t *id);
	/* Waits for one of the last `outstanding` requests of this worker: 0 and *result, LOOM_ETIMEDOUT
	 * after timeout_ns (0: as long as the run lasts), LOOM_ENOENT when its place was used again,
	 * LOOM_EINTR when the run was stopped. What the service wrote is visible then. */
	int (*wait)(struct loom_ctx *c, uint64_t id, uint64_t timeout_ns, int64_t *result);
};

#ifdef __cplusplus
}
#endif
#endif
