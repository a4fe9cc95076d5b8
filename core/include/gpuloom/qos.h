/* SPDX-License-Identifier: Apache-2.0 */
/* Service requests of workers to the host, and the policies that bound their cost (HISS).
 *
 * A worker posts a request and continues or waits. The host takes the path of the paper's figure 1: an interrupt (2),
 * the top half (3), the bottom half (4) that reads and checks the request, the worker thread (5) that serves it, and
 * the completion (6). One qos plug-in of the pipeline, the leader, runs that path. All plug-ins of the pipeline decide
 * about the path in the order of the conf. Each may only restrict what those before it left: fewer requests, later, on
 * fewer cores. */
#ifndef GPULOOM_QOS_H
#define GPULOOM_QOS_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The services for workers (the paper's table I, and more). `buffer` and `handle` are numbers of grants of the worker's
 * tenant; `offset` and `bytes` must be within the buffer. X(name, short name, action and result, or minus an errno) */
#define LOOM_SERVICE_MAP(X)                                                                        \
	X(NOTHING, nothing, "does nothing, to measure the path; 0")                                       \
	X(SIGNAL, signal, "sends signal `argument` to process `handle`; 0")                        \
	X(FAULT, fault, "makes the absent pages of demand buffer present; how many bytes were absent") \
	X(EVICT, evict, "makes pages of a demand buffer absent again; 0")                          \
	X(ALLOC, alloc, "allocates `bytes` of heap `buffer`, zeroed whole pages; their offset") \
	X(FREE, free, "frees the ALLOC at `offset`; its bytes")                         \
	X(READ, read, "reads file `handle` at `argument` into the buffer; bytes, fewer at its end")      \
	X(WRITE, write, "writes the buffer to file `handle` at `argument`; bytes")                      \
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
#define LOOM_REQUEST_BYTES_MAX (1ull << 30) /* a larger one is rejected with -E2BIG */

/* A set of workers whose requests share one queue on the host. */
struct loom_tenant {
	char name[24];
	uint32_t first, count; /* workers; no worker has two tenants */
	uint32_t outstanding;  /* limit on the requests of one worker in progress: a power of two */
	uint32_t weight;       /* the share among tenants that all want more; at least 1 */
};
#define LOOM_MAX_TENANTS 32

/* What requests of a tenant may name. Grants of a tenant are numbered from 0 in their order. */
enum loom_grant_kind {
	LOOM_GRANT_BUFFER = 1, /* READ, WRITE, MIGRATE, SEND */
	LOOM_GRANT_DEMAND,     /* whole pages that are absent until FAULT fills them; MIGRATE */
	LOOM_GRANT_HEAP,       /* whole pages for ALLOC and FREE; also a buffer */
	LOOM_GRANT_FILE,       /* a regular file */
	LOOM_GRANT_SOCKET,     /* a connected socket */
	LOOM_GRANT_PROCESS,    /* a pidfd */
};
struct loom_grant {
	uint32_t tenant;
	uint32_t kind;   /* enum loom_grant_kind */
	/* BUFFER, DEMAND, HEAP: memory that the host can access; with `device` bytes from the start of a block */
	loom_ref at;
	uint64_t bytes;
	int fd;          /* FILE, SOCKET, PROCESS: the workload's descriptor, open while workers run */
	uint32_t access; /* FILE: LOOM_READ | LOOM_WRITE */
	uint64_t signals;    /* PROCESS: bit n - 1 allows signal n */
	const void *content; /* DEMAND: the content of the pages, `bytes` of host memory; NULL: zeroes */
	/* DEMAND, HEAP, for workers on GPUs: 1 plus the device whose block of the workload (LOOM_PLACE_DEVICE) contains
	 * the grant. A demand buffer then has `frames` frames of a page at `at`. FAULT fills a frame with one page and
	 * returns the frame's offset in the grant, or -ENOMEM when none is free. MIGRATE removes pages from their
	 * frames; FAULT brings them back. */
	uint32_t device, frames;
};

/* ---- deciding ----------------------------------------------------------------------------------- */

/* The design of the path. The leader fills in its defaults, then each plug-in may change them once. */
enum loom_qos_halves {
	LOOM_QOS_SPLIT = 0,  /* top half, bottom half and worker thread are three threads */
	LOOM_QOS_JOINED,     /* the top half does the bottom half's work (the paper's monolithic) */
	LOOM_QOS_MONOLITHIC, /* one thread does all three */
};
enum loom_qos_order {
	LOOM_QOS_ARRIVAL = 0, /* the requests of a tenant are served in order of arrival */
	LOOM_QOS_SCAN,	      /* the reads of a tenant are served in order of their places in the file */
};
enum loom_qos_notify {
	LOOM_QOS_EVENTFD = 0,
	LOOM_QOS_FUTEX,
	LOOM_QOS_POLL,	    /* no interrupts */
	LOOM_QOS_INTERRUPT, /* interrupts of GPUs: interrupt.h */
	LOOM_QOS_HYBRID,    /* polls while requests come, and waits for an interrupt when none do */
};
enum loom_qos_class { LOOM_QOS_NICE = 0, LOOM_QOS_FIFO, LOOM_QOS_OTHER, LOOM_QOS_IDLE };
struct loom_qos_path {
	size_t size;
	uint32_t halves, notify, sched_class;
	uint32_t files;    /* 0: io_uring, 1: pread and pwrite */
	uint32_t mask;     /* 1: no interrupts while requests wait or are served */
	uint32_t batch;    /* requests served between two calls of the policies */
	uint64_t cores;    /* cores of the machine that may serve: bit n is core n; 0: all that the process may use */
	uint32_t order;    /* enum loom_qos_order */
	uint32_t reserved;
};

/* The state of a queue when a policy is called. */
struct loom_qos_queue {
	uint64_t waiting; /* requests posted and not yet served, as far as the bottom half has seen them */
	uint64_t served;  /* requests served so far */
	uint64_t cpu_ns;  /* CPU time spent on the requests so far */
	uint64_t oldest_ns; /* when the first waiting request was posted; 0: none, or not known */
	uint32_t weight, reserved;
};
struct loom_qos_load {
	size_t size;
	uint64_t now_ns; /* CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* CPU time of all threads of the path so far, by their clocks */
	uint64_t body_ns; /* the part of cpu_ns between the first and last line of the services */
	uint64_t served, interrupts;
	uint64_t waiting;
	uint32_t machine; /* the number of cores that a share of CPU time refers to */
	uint32_t tenants;
	const struct loom_qos_queue *tenant; /* [tenants] */
	uint32_t vectors; /* the number of cores that may take interrupts */
	uint32_t vector;  /* the core of the calling thread, if the thread is bound to one */
	const uint32_t *core; /* [vectors]: their core numbers in the operating system */
};

/* The device interrupts at `count` waiting requests, or `window_ns` after the first of them. */
struct loom_qos_moderation {
	uint32_t count;
	uint32_t reserved;
	uint64_t window_ns;
};

/* The tenant that is served next. */
struct loom_qos_round {
	uint32_t tenant;
	uint32_t requests; /* the most to serve; 0: no tenant, until retry_ns */
	uint64_t cpu_ns;   /* the CPU time that ends the turn early; 0: no bound */
	uint64_t retry_ns; /* CLOCK_MONOTONIC */
	uint64_t slack_ns; /* how much later the retry may start */
	uint64_t then_ns;  /* the expected retry after retry_ns, 0 if unknown: setting its timer now costs less */
	/* bit t: a request of tenant t ends the turn, or the wait for retry_ns, at once; for masked interrupts */
	uint64_t wake_mask;
};

struct loom_qos_ops;
struct loom_qos_stage {
	const struct loom_qos_ops *ops;
	void *self;
	const char *name;
};

struct loom_qos_ops {
	LOOM_POLICY_OPS
	/* --- leading: all or none, only with device code. --- The core calls these on the first plug-in of the
	 * pipeline that has them. Need, init, collect, start and stop of the other plug-ins are called as well.
	 *
	 * lead    gets the pipeline, with the caller's own place in it. Before need().
	 * tenants gets the tenants, which it copies. After lead(), before need(). grants gets the grants, which it
	 * copies. Before start(), memory in place. */
	int (*lead)(void *self, const struct loom_qos_stage *stage, uint32_t n, struct loom_error *err);
	int (*tenants)(void *self, const struct loom_layout *layout, const struct loom_tenant *tenant,
		       uint32_t n, struct loom_error *err);
	int (*grants)(void *self, const struct loom_grant *grant, uint32_t n, struct loom_error *err);
	/* --- deciding: each may be NULL. Never block; called by one thread of the path at a time. --- */
	void (*arrange)(void *self, struct loom_qos_path *path);
	/* After every drain of the queues. */
	void (*interrupt)(void *self, const struct loom_qos_load *load, struct loom_qos_moderation *m);
	/* Selects the vectors, as bits, that take interrupts and run the path. At start and about every 10 ms. */
	void (*steer)(void *self, const struct loom_qos_load *load, uint64_t *vectors);
	/* Before each turn, while requests wait. */
	void (*admit)(void *self, const struct loom_qos_load *load, struct loom_qos_round *turn);
	/* After each turn: how many requests it served, and its cost by the clock of the serving thread. */
	void (*account)(void *self, const struct loom_qos_load *load, uint32_t tenant, uint32_t served,
			uint64_t cpu_ns);
};

struct loom_qos_dev {
	size_t size;
	/* Posts a copy of *request. One lane of a worker at a time may call it. Returns 0 and *id, LOOM_EAGAIN when too
	 * many are outstanding, or LOOM_EINVAL when this worker belongs to no tenant. */
	int (*request)(struct loom_ctx *c, const struct loom_request *request, uint64_t *id);
	/* Waits for one of the last `outstanding` requests of this worker. Returns 0 and *result, LOOM_ETIMEDOUT after
	 * timeout_ns (0: as long as the run lasts), LOOM_ENOENT when its place was used again, or LOOM_EINTR when the
	 * run was stopped. With 0, what the service wrote is visible. */
	int (*wait)(struct loom_ctx *c, uint64_t id, uint64_t timeout_ns, int64_t *result);
};

#ifdef __cplusplus
}
#endif
#endif
