/* SPDX-License-Identifier: Apache-2.0 */
/* A network endpoint, and the memory of all ranks that it can access. A back end is a table of ops, either over
 * libfabric (this folder) or over a simulated network (trigger_common/simnet). Opening and share() are collective over the
 * ranks. Only one thread at a time calls the other ops. */
#ifndef LOOM_SHARED_FABRIC_H
#define LOOM_SHARED_FABRIC_H

#include <gpuloom/task.h>
#include <gpuloom/clock.h>
#include <gpuloom/trigger.h>

/* State that the back end keeps for an operation in flight. Its address must not change. */
struct fabric_context {
	void *internal[8]; /* struct fi_context2 */
};

struct fabric_want {
	const char *provider; /* "auto", "tcp", or libfabric's name of a provider with '+' in place of ';' */
	const char *address;  /* address of the interface; "": loopback if all ranks are on one host */
	uint32_t devices;     /* 1: operations also use device memory that the host cannot access */
	/* 1: workers access the memory of other ranks (nic_rma_start()). If it is 1, provider = auto does not choose
	 * shm. */
	uint32_t rma;
	uint32_t sleep;	      /* 1: the NIC engine sleeps while it is idle, so a descriptor is needed */
	uint32_t staged;      /* 1: data of GPUs always pass through copies in host memory */
	uint64_t piece;	      /* larger puts of such data are split into pieces of this size */
};

struct fabric_io {
	uint32_t op; /* enum loom_net_op */
	uint32_t target;
	loom_ref local, remote; /* the caller has checked both */
	uint64_t bytes;
	uint64_t match;
	uint32_t type;
	uint32_t notify; /* for PUT: number of the target's arrival word, sent as immediate data; 0: none */
	/* 1: an ADD of 8 bytes stores the old value in the 8 bytes after `local`. Only if fabric.fetches is 1. */
	uint32_t fetch;
};

enum fabric_what { FABRIC_DONE = 1, FABRIC_FAILED, FABRIC_ARRIVED };
struct fabric_event {
	uint32_t what;
	int32_t status;                 /* for FABRIC_FAILED: a positive FI_E* code */
	struct fabric_context *context; /* for FABRIC_DONE and FABRIC_FAILED */
	uint64_t notify;                /* for FABRIC_ARRIVED: number of the arrival word */
};

struct fabric {
	const struct fabric_ops *ops;
	const struct loom_host *host;
	char name[64]; /* name of the provider */
	int fetches;   /* 1: adds are also atomic with adds of CPUs, and can return the old value */
	/* descriptor that is readable when poll() has work; a thread may sleep on it if may_sleep() returns 1; -1: none */
	int fd;
	/* Sums over all copies of device memory: their number, the time from start to end, and the part of it that calls
	 * which start copies have taken. */
	uint64_t copies, copy_ns, start_ns;
};

/* start() and notify() return 0 for an operation in flight. An event with `context` follows when it ends. LOOM_EAGAIN:
 * there was no room, so call again. Other codes mean that the operation has failed, and *status is a positive errno. */
struct fabric_ops {
	void (*close)(struct fabric *f);
	/* Registers the segments of this rank, and collects the keys of the other ranks' segments. Called once. */
	int (*share)(struct fabric *f, const struct loom_segments *segments, struct loom_error *err);
	/* Returns 0 if the `bytes` at `ref` are in a shared segment of `rank`, else LOOM_EINVAL. */
	int (*check)(const struct fabric *f, uint32_t rank, loom_ref ref, uint64_t bytes);
	/* Returns 1 if this device memory is accessed through a copy in host memory. Only PUT, SEND and RECV can use
	 * staged memory of another rank. NULL: no memory is staged. */
	int (*staged)(const struct fabric *f, uint32_t rank, loom_ref ref);
	int (*can_add)(const struct fabric *f, uint32_t type, uint64_t bytes); /* returns 0 or LOOM_ENOTSUP */
	int (*start)(struct fabric *f, const struct fabric_io *io, struct fabric_context *context, int *status);
	/* Notifies `target` by a put of 8 bytes with immediate data, after operations that cannot carry such data. */
	int (*notify)(struct fabric *f, uint32_t target, uint32_t notify, struct fabric_context *context, int *status);
	void (*cancel)(struct fabric *f, struct fabric_context *context); /* cancels a receive in flight */
	/* Makes progress. Returns the number of events, at most `room`. Returns a negative number if the completion
	 * queue has failed. */
	int (*poll)(struct fabric *f, struct fabric_event *event, uint32_t room);
	int (*may_sleep)(struct fabric *f); /* returns 1 if sleep on the descriptor is allowed */
	/* Only under virtual time, else NULL. attach: sets the agent that events wake; NULL: none. due: returns when
	 * the next event of this rank is due, or LOOM_NEVER. begin: begins a sample, and forgets operations in
	 * flight. */
	void (*attach)(struct fabric *f, const struct loom_clock *time, struct loom_agent *agent);
	uint64_t (*due)(const struct fabric *f);
	void (*begin)(struct fabric *f);
};

/* The back end over libfabric. */
int fabric_ofi_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric,
		    struct loom_error *err);
const char *fabric_strerror(int status);

static inline uint64_t fabric_type_bytes(uint32_t type)
{
	return type == LOOM_NET_U64 ? 8 : type == LOOM_NET_F32 ? 4 : 0;
}

#endif
