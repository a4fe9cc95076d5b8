/* SPDX-License-Identifier: Apache-2.0 */
/* An endpoint, and the memory of all ranks that it can access. A back end is a table of ops: libfabric (this folder) or
 * a simulated network (shared/simnet). Opening and share() are collective over the ranks. Only one thread at a time
 * calls the other ops. */
#ifndef LOOM_SHARED_FABRIC_H
#define LOOM_SHARED_FABRIC_H

#include <gpuloom/task.h>
#include <gpuloom/clock.h>
#include <gpuloom/trigger.h>

/* State of the back end for an operation in flight. Its address must not change. */
struct fabric_context {
	void *internal[8]; /* struct fi_context2 */
};

struct fabric_want {
	const char *provider; /* "auto", "tcp", or libfabric's own name with '+' for ';' */
	const char *address;  /* address of the interface; "": loopback if all ranks share a host */
	uint32_t trigger;     /* 1: libfabric's own triggered operations are needed */
	uint32_t devices;     /* 1: operations also use device memory that the host cannot access */
	uint32_t rma;	      /* 1: workers access the memory of other ranks, which excludes shm: nic_rma_start() */
	uint32_t sleep;	      /* 1: the engine sleeps while it is idle */
};

struct fabric_io {
	uint32_t op; /* enum loom_net_op */
	uint32_t target;
	loom_ref local, remote; /* already checked */
	uint64_t bytes;
	uint64_t match;
	uint32_t type;
	uint32_t notify; /* PUT: immediate data; 0: none */
	uint32_t fetch;	 /* ADD of 8 bytes, if fabric.fetches: the old value is stored behind `local` */
};

enum fabric_what { FABRIC_DONE = 1, FABRIC_FAILED, FABRIC_ARRIVED };
struct fabric_event {
	uint32_t what;
	int32_t status;                 /* set for FAILED: a positive FI_E* */
	struct fabric_context *context; /* set for DONE and FAILED */
	uint64_t notify;                /* set for ARRIVED */
};

struct fabric {
	const struct fabric_ops *ops;
	const struct loom_host *host;
	char name[64]; /* name of the provider */
	int fetches;   /* 1: adds are atomic, also with those of CPUs, and return the old value */
	int fd;	       /* readable when poll() has work, if may_sleep() permits sleep; -1: none */
};

/* start() and notify() return 0 for an operation in flight; an event with `context` follows. LOOM_EAGAIN: no room,
 * retry. Otherwise the operation has failed, and *status is a positive errno. */
struct fabric_ops {
	/* Closes only the endpoint. No operation ends afterwards, and the provider's threads change no counter. */
	void (*stop)(struct fabric *f);
	void (*close)(struct fabric *f);
	/* Registers the segments of this rank and collects those of the others. Called once. */
	int (*share)(struct fabric *f, const struct loom_segments *segments, struct loom_error *err);
	/* Returns 0 if `bytes` at `ref` are shared memory of `rank`, else LOOM_EINVAL. */
	int (*check)(const struct fabric *f, uint32_t rank, loom_ref ref, uint64_t bytes);
	/* Returns 1 if that device memory is accessed through a copy in host memory, by PUT, SEND and RECV only. NULL:
	 * none is. */
	int (*staged)(const struct fabric *f, uint32_t rank, loom_ref ref);
	int (*can_add)(const struct fabric *f, uint32_t type, uint64_t bytes); /* returns 0 or LOOM_ENOTSUP */
	int (*start)(struct fabric *f, const struct fabric_io *io, struct fabric_context *context, int *status);
	/* Puts 8 bytes with immediate data, for operations that cannot carry it. */
	int (*notify)(struct fabric *f, uint32_t target, uint32_t notify, struct fabric_context *context, int *status);
	void (*cancel)(struct fabric *f, struct fabric_context *context); /* cancels a receive in flight */
	/* Makes progress. Returns up to `room` events, or a negative number if the completion queue has failed. */
	int (*poll)(struct fabric *f, struct fabric_event *event, uint32_t room);
	int (*may_sleep)(struct fabric *f); /* whether to sleep on its fd, if it has one */
	/* NULL, except under virtual time. attach: events wake this agent; NULL: none. due: returns when the next event
	 * of this rank is due, or LOOM_NEVER. begin: begins a sample; operations in flight are forgotten. */
	void (*attach)(struct fabric *f, const struct loom_clock *time, struct loom_agent *agent);
	uint64_t (*due)(const struct fabric *f);
	void (*begin)(struct fabric *f);
};

/* The back end over libfabric. */
int fabric_ofi_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric,
		    struct loom_error *err);
const char *fabric_strerror(int status);
extern const struct loom_known_leak fabric_known_leaks[]; /* leaks of libfabric: fabric_shm.c */

/* fabric_work.c: deferred work. libfabric itself defers an operation until one of its counters has reached a threshold
 * (want->trigger). */
struct fabric_counter;
struct fabric_counter *fabric_counter_open(struct fabric *f); /* returns NULL on failure */
void fabric_counter_close(struct fabric_counter *c);          /* NULL is legal; pending work is lost */
void fabric_counter_add(struct fabric_counter *c, uint64_t n);
/* Makes progress. Returns the number of completions, and of *failed operations. */
uint64_t fabric_counter_read(struct fabric_counter *c, uint64_t *failed);
struct fabric_work { /* a work must not move until it is complete; events have its address as context */
	void *internal[48];
};
/* Defers an operation until `fired` has reached `threshold`; then it runs and adds one to `done`. Only a failure, and
 * the arrival at the target, are events. Returns the same as start(). */
int fabric_defer(struct fabric *f, const struct fabric_io *io, uint64_t threshold, struct fabric_counter *fired,
		 struct fabric_counter *done, struct fabric_work *work, int *status);

static inline uint64_t fabric_type_bytes(uint32_t type)
{
	return type == LOOM_NET_U64 ? 8 : type == LOOM_NET_F32 ? 4 : 0;
}

#endif
