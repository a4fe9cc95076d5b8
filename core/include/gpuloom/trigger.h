/* SPDX-License-Identifier: Apache-2.0 */
/* Network triggers: the host posts operations ahead, workers fire them (GPU-TN, sections 3 and 4).
 *
 * A fire counts towards a tag's counter. A post waits on one counter for one threshold; posts of a
 * counter run in the order of their thresholds, equal ones in the order of posting, also when the
 * counter jumps. Fire and post may come in either order (3.2). Counters are 64 bits wide and start
 * each sample at 0, with no posts: the workload's wire() posts again. */
#ifndef GPULOOM_TRIGGER_H
#define GPULOOM_TRIGGER_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

enum loom_net_op {
	LOOM_NET_PUT = 1, /* local -> remote */
	LOOM_NET_GET,     /* remote -> local */
	LOOM_NET_SEND,    /* local -> the target's receive with the same `match` */
	LOOM_NET_RECV,    /* into local, from any rank */
	LOOM_NET_ADD,     /* each element of remote += local, atomically */
	LOOM_NET_COUNT,   /* moves nothing: completes at once, to join or chain counters */
};
enum loom_net_type { LOOM_NET_U64 = 0, LOOM_NET_F32 };
enum {
	/* The fire supplies part of the operation (section 3.4), see LOOM_ARGUMENT: */
	LOOM_NET_TARGET_FROM_FIRE = 1,
	LOOM_NET_LOCAL_FROM_FIRE = 2,  /* bytes added to `local`, at most post.window */
	LOOM_NET_REMOTE_FROM_FIRE = 4, /* the same for `remote` */
};

/* Tags 1 to LOOM_TAG_MAX are the workload's; the arrival of a notification counts towards a tag of its
 * own, so that posts may wait for it. */
#define LOOM_TAG_MAX ((1ull << 47) - 1)
#define LOOM_TAG_ARRIVAL(index) (1ull << 47 | (uint64_t)(index))
/* What a fire may carry. */
#define LOOM_ARGUMENT(target, offset) ((uint64_t)(target) << 48 | (uint64_t)(offset))

/* An operation that waits. Zero what you do not use. */
struct loom_trigger_post {
	size_t size;
	uint64_t tag;
	uint64_t threshold; /* runs once the counter has reached it; 0: at once */
	uint64_t rearm;     /* 0: runs once; else again for every further `rearm` counts */
	uint32_t op;        /* enum loom_net_op */
	uint32_t target;    /* rank */
	loom_ref local;     /* buffer here */
	loom_ref remote;    /* buffer there, as a reference of that rank */
	uint64_t bytes;
	uint64_t match;  /* SEND and RECV */
	uint64_t chain;  /* tag that a successful completion counts one towards; 0: none */
	uint32_t slot;   /* completion slot that counts completions here; 0: none */
	uint32_t notify; /* PUT and ADD: arrival word that counts at the target, once the data is there;
			    0: none */
	uint32_t type;  /* ADD: enum loom_net_type */
	uint32_t flags; /* LOOM_NET_* */
	uint64_t window;
};

/* Where the ends of kernels meet the network, for devices that launch each by itself: 64-bit words in the trigger's block for
 * the stack, in bytes from its start. */
struct loom_edge {
	uint64_t ended; /* the device raises it to the number of kernels that have ended: what they fired is sent ... */
	uint64_t begun; /* ... and the trigger answers: the next may fire */
	uint64_t arrival, stride; /* arrival word i: how often it was notified; negative: the network failed */
	uint32_t by_stream; /* 1: the device's front end raises and awaits these. 0: the host does */
	uint32_t reserved;
};
/* Arrival word `index` is `count` or more. */
struct loom_await {
	uint64_t index, count;
};
#define LOOM_AWAITS_MOST 8 /* in front of one kernel */

/* Host half. post may be called from any thread, also while workers run. */
struct loom_trigger_ops {
	LOOM_POLICY_OPS
	/* LOOM_EFULL when every place is taken, LOOM_ENOTSUP when this plug-in or provider lacks the
	 * operation, LOOM_EBUSY when it takes an argument (LOOM_NET_*_FROM_FIRE) of a fire that has happened. *id is
	 * unique within the stack. */
	int (*post)(void *self, const struct loom_trigger_post *post, uint64_t *id,
		    struct loom_error *err);
	/* Waits until all that was fired is complete, also at its targets. The workers are parked: their
	 * kernel has ended. Gives the first failure. */
	int (*flush)(void *self, uint64_t timeout_ns, struct loom_error *err);
	/* What post() would refuse at any time, for operations that are posted later: 0, or an error in its
	 * words. Takes no place. NULL: post() alone tells. */
	int (*check)(void *self, const struct loom_trigger_post *post, struct loom_error *err);
	/* The address of `bytes` of another rank's memory for the workers of this one, which may load and store there without a post,
	 * by atomics of the scope of all: *at, in any address space of this rank's devices. LOOM_ENOTSUP: they do not reach it.
	 * NULL: no memory of other ranks, except by rma(). */
	int (*reach)(void *self, uint32_t rank, loom_ref ref, uint64_t bytes, uint64_t *at, struct loom_error *err);
	/* After start(). NULL: no fire waits for the end of a kernel. */
	void (*edge)(void *self, uint32_t device, struct loom_edge *out);
	/* 1: buffers that operations send from and to may be in memory that the host cannot access. NULL: they may not. */
	int (*anywhere)(void *self);
};

/* The selected trigger, as the core hands it to a workload. */
struct loom_trigger {
	size_t size;
	const struct loom_trigger_ops *ops;
	void *self;
	uint32_t rank, ranks;
};

/* Code for CPUs is for every job. A program for GPUs defines the first where ranks share tasks, and the second where workers
 * reach the memory of other ranks by rma() alone. */
#ifndef LOOM_DEVICE_COMPILE
#define LOOM_RANKS_SHARE
#define LOOM_RANKS_RMA
#endif

/* An operation of a worker on another rank's memory. */
struct loom_rma {
	uint32_t op, rank; /* LOOM_NET_GET: `bytes` of it to `local`. LOOM_NET_ADD: adds `value` to the 64 bits there */
	loom_ref remote, local;
	uint64_t bytes, value;
};

/* Device half. */
struct loom_trigger_dev {
	size_t size;
	/* Counts `count` (1 to 16383) towards `tag`. By any lane: all that this lane wrote, or has seen
	 * others write before a barrier, is sent with it. For a work-group: loom_barrier_lanes(c), then
	 * lane 0. Waits while the FIFO is full. 0, LOOM_EINTR when the run was stopped, or an error. */
	int (*fire)(struct loom_ctx *c, uint64_t tag, uint32_t count);
	/* The same, but orders nothing: for tags whose operations send what was there before, or nothing. Cheaper where
	 * memory lies across a link. */
	int (*fire_relaxed)(struct loom_ctx *c, uint64_t tag, uint32_t count);
	/* As fire, with LOOM_ARGUMENT(target, offset) for posts with LOOM_NET_*_FROM_FIRE. */
	int (*fire_with)(struct loom_ctx *c, uint64_t tag, uint64_t argument);
	/* How many operations completed in `slot`, their buffers free again; negative: the latched first
	 * failure. */
	int64_t (*completed)(struct loom_ctx *c, uint32_t slot);
	/* How often `index` was notified: that much data is here to be read. Negative as above. */
	int64_t (*arrived)(struct loom_ctx *c, uint32_t index);
	/* The kernel ends here and its successor begins. Collective over all workers of the device: each calls it
	 * equally often. Afterwards all that was fired before is on its way, under every mechanism. Costs what the
	 * device says that launches cost. 0 or LOOM_EINTR. */
	int (*boundary)(struct loom_ctx *c);
	/* A boundary where the mechanism cannot send from within a kernel; nothing where it can. */
	int (*deliver)(struct loom_ctx *c);
	/* When `index` was last notified, on CLOCK_MONOTONIC of this host; 0: never, or times are not
	 * kept. For measurements. */
	uint64_t (*arrived_at)(struct loom_ctx *c, uint32_t index);
	/* By lane 0 of a worker where tasks are shared: atomic beside the CPUs there, after all that the worker did and
	 * before what it does next. NULL: not supported. ADD gives what was there in *was; with NULL it returns at once, to be done later.
	 * Without `ask` the worker has time to serve requests of other ranks; a scheduler calls this between tasks. Without
	 * `ask` but with `was` the worker leaves: it serves no more in this sample.
	 * 0, LOOM_EINTR when the run was stopped, LOOM_EIO after it was failed. */
	int (*rma)(struct loom_ctx *c, const struct loom_rma *ask, uint64_t *was);
};

#ifdef __cplusplus
}
#endif
#endif
