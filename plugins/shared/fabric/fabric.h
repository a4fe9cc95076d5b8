/* SPDX-License-Identifier: Apache-2.0 */
/* One endpoint, and the memory of all ranks that it reaches: of a provider of libfabric, or of a network under virtual
 * time. Opening and sharing are collective over the ranks; the rest is called by one thread at a time. */
#ifndef TRIGGER_FABRIC_H
#define TRIGGER_FABRIC_H

#include <gpuloom/task.h>
#include <gpuloom/clock.h>
#include <gpuloom/trigger.h>

/* Providers keep their state in it while an operation is under way: it must not move. */
struct fabric_context {
	void *internal[8]; /* struct fi_context2 */
};

struct fabric_want {
	const char *provider; /* "auto", "tcp", or libfabric's own name with '+' for ';'; "sim" */
	const char *address;  /* of the interface; "": loopback when all ranks share a host */
	uint32_t trigger;     /* libfabric's own triggered operations are needed */
	uint32_t devices;     /* operations with memory that the host does not reach, too */
	uint32_t rma;	      /* ranks steal from each other, which shm is not for: see asks_start() */
	uint32_t sleep;	      /* its user sleeps until there is something to do */
	const struct net_model *net; /* of "sim" */
};

struct fabric_ops;
struct fabric {
	const struct fabric_ops *ops;
	const struct loom_host *host;
	char name[64]; /* the provider's */
	int fetches;   /* it adds atomically beside the CPUs of each rank, and says what was there */
	int fd;	       /* readable once there is something to do for poll(), if fabric_may_sleep() says so; -1: there is none */
};
int fabric_open(const struct loom_host *host, const struct fabric_want *want, struct fabric **fabric,
		struct loom_error *err);
void fabric_close(struct fabric *f); /* NULL is legal */
/* Closes the endpoint alone: no operation ends from here on, and the provider's threads touch no counter. */
void fabric_stop(struct fabric *f); /* NULL is legal */
const char *fabric_name(const struct fabric *f);

/* Registers this rank's segments and learns where those of the others are. Once. */
int fabric_share(struct fabric *f, const struct loom_segments *segments, struct loom_error *err);
/* `bytes` from `ref` are shared memory of `rank`; 0 or LOOM_EINVAL. */
int fabric_check(const struct fabric *f, uint32_t rank, loom_ref ref, uint64_t bytes);

/* 1: that memory of a device is reached through a copy in host memory, by puts, sends and receives alone. */
int fabric_staged(const struct fabric *f, uint32_t rank, loom_ref ref);

/* What can be done; 0, or LOOM_ENOTSUP. */
int fabric_can_add(const struct fabric *f, uint32_t type, uint64_t bytes);

struct fabric_io {
	uint32_t op; /* enum loom_net_op */
	uint32_t target;
	loom_ref local, remote; /* checked */
	uint64_t bytes;
	uint64_t match;
	uint32_t type;
	uint32_t notify; /* PUT: immediate data, 0: none */
	uint32_t fetch;	 /* ADD of 8 bytes, where it fetches: what was there goes behind `local` */
};
/* 0: under way, `context` comes back with an event. LOOM_EAGAIN: later. Else it failed: errno style in
 * *status. */
int fabric_start(struct fabric *f, const struct fabric_io *io, struct fabric_context *context,
		 int *status);
/* Eight bytes that only carry the immediate data: for operations that have none of their own. */
int fabric_notify(struct fabric *f, uint32_t target, uint32_t notify, struct fabric_context *context,
		  int *status);
void fabric_cancel(struct fabric *f, struct fabric_context *context); /* a receive under way */

/* Deferred work: operations that the provider itself holds back until a counter of its own has reached a
 * threshold (want->trigger). */
struct fabric_counter;
struct fabric_counter *fabric_counter_open(struct fabric *f); /* NULL: cannot */
void fabric_counter_close(struct fabric_counter *c);          /* NULL is legal; work that waits is lost */
void fabric_counter_add(struct fabric_counter *c, uint64_t n);
/* Completions, and *failed ones beside them. Makes progress. */
uint64_t fabric_counter_read(struct fabric_counter *c, uint64_t *failed);
struct fabric_work { /* must not move until it is complete; its address is the context of events */
	void *internal[48];
};
/* Runs once `fired` has reached `threshold`, and counts one in `done` then. No event says so: only failures
 * and the target's arrival come as events. Returns as fabric_start. */
int fabric_defer(struct fabric *f, const struct fabric_io *io, uint64_t threshold,
		 struct fabric_counter *fired, struct fabric_counter *done, struct fabric_work *work,
		 int *status);
/* 0: it will not run. Else LOOM_ENOTSUP: the provider cannot take work back. */
int fabric_undefer(struct fabric *f, struct fabric_work *work);

enum fabric_what { FABRIC_DONE = 1, FABRIC_FAILED, FABRIC_ARRIVED };
struct fabric_event {
	uint32_t what;
	int32_t status;                 /* FAILED: a positive FI_E* */
	struct fabric_context *context; /* DONE, FAILED */
	uint64_t notify;                /* ARRIVED */
};
/* Makes progress; up to `room` events. Negative: the completion queue itself failed. */
int fabric_poll(struct fabric *f, struct fabric_event *event, uint32_t room);
const char *fabric_strerror(int status);
int fabric_may_sleep(struct fabric *f); /* on its fd */

/* Under virtual time alone. Events come to this agent, which is woken for each; NULL: no more. */
void fabric_attach(struct fabric *f, const struct loom_clock *time, struct loom_agent *agent);
/* When the next event is due, LOOM_NEVER: none is under way to here. */
uint64_t fabric_due(const struct fabric *f);
/* A sample begins: what was under way is forgotten. */
void fabric_begin(struct fabric *f);

/* What stands behind these; those of virtual time may be NULL. */
struct fabric_ops {
	void (*stop)(struct fabric *f);
	void (*close)(struct fabric *f);
	int (*share)(struct fabric *f, const struct loom_segments *segments, struct loom_error *err);
	int (*check)(const struct fabric *f, uint32_t rank, loom_ref ref, uint64_t bytes);
	int (*staged)(const struct fabric *f, uint32_t rank, loom_ref ref); /* NULL: nothing is */
	int (*can_add)(const struct fabric *f, uint32_t type, uint64_t bytes);
	int (*start)(struct fabric *f, const struct fabric_io *io, struct fabric_context *context, int *status);
	int (*notify)(struct fabric *f, uint32_t target, uint32_t notify, struct fabric_context *context, int *status);
	void (*cancel)(struct fabric *f, struct fabric_context *context);
	int (*poll)(struct fabric *f, struct fabric_event *event, uint32_t room);
	int (*may_sleep)(struct fabric *f);
	void (*attach)(struct fabric *f, const struct loom_clock *time, struct loom_agent *agent);
	uint64_t (*due)(const struct fabric *f);
	void (*begin)(struct fabric *f);
};

static inline uint64_t fabric_type_bytes(uint32_t type)
{
	return type == LOOM_NET_U64 ? 8 : type == LOOM_NET_F32 ? 4 : 0;
}

#endif
