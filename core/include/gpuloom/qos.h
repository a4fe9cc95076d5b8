/* SPDX-License-Identifier: Apache-2.0 */
/* Service requests of workers to the host, and the policies that limit their cost (HISS).
 *
 * A worker posts a request, and continues or waits. On the host, the request takes the path of figure 1 of the paper.
 * An interrupt (2) starts the top half (3). The bottom half (4) reads and checks the request, and the worker thread (5)
 * serves it; then follows the completion (6). One qos plug-in of the pipeline, the leader, runs that path. All plug-ins
 * of the pipeline make decisions about the path, in the order of the conf. Each may only restrict what the plug-ins
 * before it allow: fewer requests, later times, or fewer cores. */
#ifndef GPULOOM_QOS_H
#define GPULOOM_QOS_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The services for workers (table I of the paper, and more). `buffer` and `handle` are numbers of grants of the
 * worker's tenant; `offset` and `bytes` must be within the buffer. X(name, short name, action; result, or minus an
 * errno) */
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
#define LOOM_REQUEST_BYTES_MAX (1ull << 30) /* a request with more bytes is rejected with -E2BIG */

/* A set of workers whose requests share a queue on the host. */
struct loom_tenant {
	char name[24];
	uint32_t first, count; /* first worker, and number of workers; a worker has at most one tenant */
	uint32_t outstanding;  /* limit on the requests of a worker in progress; a power of two */
	uint32_t weight;       /* share of service among tenants that all have requests; at least 1 */
	uint64_t reserved[3];  /* 0; see struct loom_opt */
};
#define LOOM_MAX_TENANTS 32

/* What requests of a tenant may name. The grants of each tenant are numbered from 0, in the order of the list. */
enum loom_grant_kind {
	LOOM_GRANT_BUFFER = 1, /* memory for READ, WRITE, MIGRATE, SEND */
	LOOM_GRANT_DEMAND,     /* whole pages, absent until FAULT fills them; also for MIGRATE */
	LOOM_GRANT_HEAP,       /* whole pages for ALLOC and FREE; also usable as a buffer */
	LOOM_GRANT_FILE,       /* a regular file, for READ and WRITE */
	LOOM_GRANT_SOCKET,     /* a connected socket, for SEND */
	LOOM_GRANT_PROCESS,    /* a pidfd, for SIGNAL */
};
struct loom_grant {
	uint32_t tenant;
	uint32_t kind;   /* enum loom_grant_kind */
	/* BUFFER, DEMAND, HEAP: start of the grant in memory that the host can access, or, if `device` is not 0, its
	 * offset in bytes in a block of that device. `bytes` is the size of the grant. */
	loom_ref at;
	uint64_t bytes;
	int fd;          /* FILE, SOCKET, PROCESS: descriptor of the workload, open while workers run */
	uint32_t access; /* FILE: LOOM_READ, LOOM_WRITE or both */
	uint64_t signals;    /* PROCESS: bit n - 1 allows signal n */
	const void *content; /* DEMAND: content of the pages, `bytes` bytes of host memory; NULL: zeros */
	/* DEMAND and HEAP for workers on GPUs: 1 plus the index of the device whose block contains the grant. The block
	 * is that of the workload, and must be LOOM_PLACE_DEVICE. A demand buffer in such a block has `frames` frames
	 * of one page each, from `at` on. FAULT fills a free frame with one page and returns the frame's offset in the
	 * grant, or -ENOMEM if no frame is free. MIGRATE removes pages from their frames, and FAULT brings them
	 * back. */
	uint32_t device, frames;
	uint64_t reserved[3]; /* 0; see struct loom_opt */
};

/* ---- deciding ----------------------------------------------------------------------------------- */

/* The design of the path. First the leader fills in its defaults. Then each plug-in may change them once. */
enum loom_qos_halves {
	LOOM_QOS_SPLIT = 0,  /* top half, bottom half and worker thread are three threads */
	LOOM_QOS_JOINED,     /* one thread is top half and bottom half (the paper's monolithic design) */
	LOOM_QOS_MONOLITHIC, /* one thread does all three */
};
enum loom_qos_order {
	LOOM_QOS_ARRIVAL = 0, /* requests of a tenant are served in the order of arrival */
	LOOM_QOS_SCAN,	      /* reads of a tenant are served in the order of their places in the file */
};
enum loom_qos_notify {
	LOOM_QOS_EVENTFD = 0,
	LOOM_QOS_POLL,	    /* no interrupts: the host polls */
	LOOM_QOS_INTERRUPT, /* interrupts of GPUs (interrupt.h) */
	LOOM_QOS_HYBRID,    /* the host polls while requests come, and waits for an interrupt when none come */
};
enum loom_qos_class { LOOM_QOS_NICE = 0, LOOM_QOS_FIFO, LOOM_QOS_OTHER, LOOM_QOS_IDLE };
struct loom_qos_path {
	size_t size;
	uint32_t halves, notify, sched_class;
	uint32_t mask;     /* 1: no interrupts while requests wait or are served */
	uint32_t batch;    /* number of requests that are served between two calls of the policies */
	uint32_t order;    /* order of service: enum loom_qos_order */
	uint64_t cores;    /* bit n: core n may serve requests; 0: all cores of the process may */
};

/* The state of a tenant's queue when a policy is called. */
struct loom_qos_queue {
	uint64_t waiting; /* requests that the bottom half has seen and that are not yet served */
	uint64_t served;  /* requests that were served so far */
	uint64_t cpu_ns;  /* CPU time spent on these requests so far */
	uint64_t oldest_ns; /* when the oldest waiting request was posted; 0: none, or not known */
	uint32_t weight, reserved;
};
struct loom_qos_load {
	size_t size;
	uint64_t now_ns; /* time on CLOCK_MONOTONIC */
	uint64_t cpu_ns; /* CPU time of all threads of the path so far, by the clocks of the threads */
	uint64_t body_ns; /* the part of cpu_ns that the services themselves took */
	uint64_t served, interrupts;
	uint64_t waiting;
	uint32_t machine; /* number of cores to which a share of CPU time refers */
	uint32_t tenants;
	const struct loom_qos_queue *tenant; /* [tenants]; the queues of the tenants */
	uint32_t vectors; /* number of cores that may take interrupts */
	uint32_t vector;  /* index in `core` of the calling thread's core, if the thread is bound to one */
	const uint32_t *core; /* [vectors]; core numbers in the operating system */
};

/* The device causes an interrupt when `count` requests wait, or `window_ns` after the first of them was posted. */
struct loom_qos_moderation {
	uint32_t count;
	uint32_t reserved;
	uint64_t window_ns;
};

/* A turn: the tenant that is served next, and how much of it. */
struct loom_qos_round {
	uint32_t tenant;
	uint32_t requests; /* largest number of requests to serve; 0: serve no tenant until retry_ns */
	uint64_t cpu_ns;   /* CPU time after which the turn ends early; 0: no limit */
	uint64_t retry_ns; /* when to call admit() again, on CLOCK_MONOTONIC */
	uint64_t slack_ns; /* how much later than retry_ns the call may be */
	/* expected time of the next call of admit() after retry_ns, or 0 if unknown; the host then sets the timer for it in
	 * advance, which costs less */
	uint64_t then_ns;
	/* bit t: a request of tenant t ends the turn, or the wait for retry_ns, at once; used while interrupts are
	 * masked */
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
	/* --- leading: a plug-in has all three ops or none, and has them only with device code. The core calls them on
	 * the first plug-in of the pipeline that has them. The core also calls need, init, collect, start and stop of
	 * the other plug-ins.
	 *
	 * lead() gets the pipeline, which contains the plug-in itself. Called before need(). tenants() gets the
	 * tenants, and copies them. Called after lead(), before need(). grants() gets the grants, and copies them.
	 * Called before start(), after memory is allocated. */
	int (*lead)(void *self, const struct loom_qos_stage *stage, uint32_t n, struct loom_error *err);
	int (*tenants)(void *self, const struct loom_layout *layout, const struct loom_tenant *tenant,
		       uint32_t n, struct loom_error *err);
	int (*grants)(void *self, const struct loom_grant *grant, uint32_t n, struct loom_error *err);
	/* --- deciding: each op may be NULL. It must not block. One thread of the path at a time calls it. */
	void (*arrange)(void *self, struct loom_qos_path *path);
	/* Called each time after the queues were emptied. */
	void (*interrupt)(void *self, const struct loom_qos_load *load, struct loom_qos_moderation *m);
	/* Selects the cores that take interrupts and run the path: bit i of *vectors is load->core[i]. Called at the
	 * start, and about every 10 ms. */
	void (*steer)(void *self, const struct loom_qos_load *load, uint64_t *vectors);
	/* Called before each turn, while requests wait. */
	void (*admit)(void *self, const struct loom_qos_load *load, struct loom_qos_round *turn);
	/* Called after each turn, with the number of requests that it served, and its CPU time by the clock of the
	 * serving thread. */
	void (*account)(void *self, const struct loom_qos_load *load, uint32_t tenant, uint32_t served,
			uint64_t cpu_ns);
};

struct loom_qos_dev {
	size_t size;
	/* Posts a copy of *request. One lane of a worker at a time may call it. Returns 0 and *id. Returns LOOM_EAGAIN
	 * if too many requests are outstanding, or LOOM_EINVAL if the worker belongs to no tenant. */
	int (*request)(struct loom_ctx *c, const struct loom_request *request, uint64_t *id);
	/* Waits for one of the last `outstanding` requests of this worker. Returns 0 and *result; then what the service
	 * wrote is visible. Returns LOOM_ETIMEDOUT after timeout_ns (0: as long as the run lasts), and LOOM_EINTR if
	 * the run was stopped. Returns LOOM_ENOENT if a later request has taken the place of this one. */
	int (*wait)(struct loom_ctx *c, uint64_t id, uint64_t timeout_ns, int64_t *result);
};

#ifdef __cplusplus
}
#endif
#endif
