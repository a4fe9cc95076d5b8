/* SPDX-License-Identifier: Apache-2.0 */
/* Network triggers: the host posts operations ahead, workers fire them (GPU-TN, sections 3 and 4).
 *
 * A fire adds to the counter of a tag. A post waits until one counter reaches its threshold. Posts of a counter run in
 * the order of their thresholds, also when the counter jumps; equal ones in the order of posting. Fire and post may
 * come in either order (3.2). Counters are 64 bits wide. Each sample starts with counters of 0 and no posts: wire() of
 * the workload posts again. */
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
	LOOM_NET_SEND,    /* local -> the receive at the target with the same `match` */
	LOOM_NET_RECV,    /* into local, from any rank */
	LOOM_NET_ADD,     /* each element of remote += local, atomically */
	LOOM_NET_COUNT,   /* moves nothing: completes at once, to join or chain counters */
};
enum loom_net_type { LOOM_NET_U64 = 0, LOOM_NET_F32 };
enum {
	LOOM_NET_TARGET_FROM_FIRE = 1, /* The fire supplies part of the operation (section 3.4) by LOOM_ARGUMENT: */
	LOOM_NET_LOCAL_FROM_FIRE = 2,  /* bytes added to `local`, at most post.window */
	LOOM_NET_REMOTE_FROM_FIRE = 4, /* bytes added to `remote`, at most post.window */
};

/* Tags 1 to LOOM_TAG_MAX belong to the workload. An arriving notification adds to a tag of its own, for which posts may
 * wait. */
#define LOOM_TAG_MAX ((1ull << 47) - 1)
#define LOOM_TAG_ARRIVAL(index) (1ull << 47 | (uint64_t)(index))
/* The argument of a fire. */
#define LOOM_ARGUMENT(target, offset) ((uint64_t)(target) << 48 | (uint64_t)(offset))

/* An operation that waits. Unused members must be 0. */
struct loom_trigger_post {
	size_t size;
	uint64_t tag;
	uint64_t threshold; /* the counter value at which the operation runs; 0: at once */
	uint64_t rearm;     /* 0: runs once; else again after every further `rearm` counts */
	uint32_t op;        /* enum loom_net_op */
	uint32_t target;    /* rank */
	loom_ref local;     /* buffer of this rank */
	loom_ref remote;    /* buffer of the target, as a reference of that rank */
	uint64_t bytes;
	uint64_t match;  /* SEND and RECV */
	uint64_t chain;  /* tag to which a successful completion adds one; 0: none */
	uint32_t slot;   /* completion slot that counts completions of this rank; 0: none */
	uint32_t notify; /* PUT and ADD: arrival word of the target that counts once the data is there; 0: none */
	uint32_t type;  /* ADD: enum loom_net_type */
	uint32_t flags; /* LOOM_NET_* */
	uint64_t window;
	/* 1: promises that let data travel together with their notification; may be ignored. PUT, by a tag of the
	 * workload for which nothing else is posted; threshold > 0, and rearm is 0 or the threshold. No other post of
	 * any rank notifies `notify`. One worker of the target awaits every notification, and before that the sender
	 * does not reach the threshold again. With threshold 1 one worker fires; it may fire again earlier, and then
	 * the target may find the data of the later message. Nothing but the data, which are complete when the
	 * notification is seen, is ordered between the two ranks; fences on both sides order the rest. */
	uint32_t paired;
	uint32_t reserved;
};

/* Words of 64 bits by which ends of kernels meet the network, for devices that launch each kernel by itself: offsets in
 * bytes into the trigger's block for the stack. */
struct loom_edge {
	/* The device raises this word to the number of kernels that have ended, whose fires are then sent. */
	uint64_t ended;
	uint64_t begun; /* the trigger raises this word to let the next kernel fire */
	uint64_t arrival, stride; /* arrival word i counts notifications; negative: the network failed */
	uint32_t by_stream; /* 1: the front end of the device raises and awaits these words. 0: the host does */
	uint32_t reserved;
};
/* A condition: arrival word `index` is `count` or more. */
struct loom_await {
	uint64_t index, count;
};
#define LOOM_AWAITS_MOST 8 /* limit on the conditions in front of one kernel */

/* Host half. Any thread may call post, also while workers run. */
struct loom_trigger_ops {
	LOOM_POLICY_OPS
	/* Posts an operation; *id is unique within the stack. LOOM_EFULL: every place is taken. LOOM_ENOTSUP: plug-in
	 * or provider lack it. LOOM_EBUSY: a fire whose argument it takes (LOOM_NET_*_FROM_FIRE) has happened. */
	int (*post)(void *self, const struct loom_trigger_post *post, uint64_t *id,
		    struct loom_error *err);
	/* Waits until all that was fired is complete, also at its targets, and returns the first failure. The workers
	 * are parked: their kernel has ended. */
	int (*flush)(void *self, uint64_t timeout_ns, struct loom_error *err);
	/* For operations that are posted later: returns 0, or the error, with its text, by which post() would refuse
	 * this one at any time. Takes no place. NULL: only post() finds out. */
	int (*check)(void *self, const struct loom_trigger_post *post, struct loom_error *err);
	/* Maps `bytes` of another rank's memory at *at, in any address space of this rank's devices. Workers may load,
	 * store and use atomics of scope sys there without a post. LOOM_ENOTSUP: they do not reach it. NULL: workers
	 * reach memory of other ranks by rma() at most. */
	int (*reach)(void *self, uint32_t rank, loom_ref ref, uint64_t bytes, uint64_t *at, struct loom_error *err);
	/* After start(). NULL: no fire waits for the end of a kernel. */
	void (*edge)(void *self, uint32_t device, struct loom_edge *out);
	/* Returns 1 when operations may send from and to memory that the host cannot access. NULL: they may not. */
	int (*anywhere)(void *self);
};

/* The selected trigger, which the core passes to a workload. */
struct loom_trigger {
	size_t size;
	const struct loom_trigger_ops *ops;
	void *self;
	uint32_t rank, ranks;
};

/* Code for CPUs serves every job. A program for GPUs defines the first where ranks share tasks, and the second where
 * workers reach the memory of other ranks by rma() alone. */
#ifndef LOOM_DEVICE_COMPILE
#define LOOM_RANKS_SHARE
#define LOOM_RANKS_RMA
#endif

/* An operation of a worker on the memory of another rank. */
struct loom_rma {
	/* LOOM_NET_GET: copies `bytes` to `local`. LOOM_NET_ADD: adds `value` to the 64 bits there */
	uint32_t op, rank;
	loom_ref remote, local;
	uint64_t bytes, value;
};

/* Device half. */
struct loom_trigger_dev {
	size_t size;
	/* Adds `count` (1 to 16383) to `tag`. Any lane may call it: the operation sends all that this lane wrote, or
	 * has seen others write before a barrier. A work-group calls loom_barrier_lanes(c), then fires by lane 0. Waits
	 * while the FIFO is full. Returns 0, LOOM_EINTR when the run was stopped, or an error. */
	int (*fire)(struct loom_ctx *c, uint64_t tag, uint32_t count);
	/* Fires without ordering memory, for tags that send older data or none. Cheaper across a link. */
	int (*fire_relaxed)(struct loom_ctx *c, uint64_t tag, uint32_t count);
	/* Fires with LOOM_ARGUMENT(target, offset), for posts with LOOM_NET_*_FROM_FIRE. */
	int (*fire_with)(struct loom_ctx *c, uint64_t tag, uint64_t argument);
	/* Returns how many operations completed in `slot`, which frees their buffers, or minus the first failure. */
	int64_t (*completed)(struct loom_ctx *c, uint32_t slot);
	/* Returns how often `index` was notified, so how much data is readable, or minus the first failure. */
	int64_t (*arrived)(struct loom_ctx *c, uint32_t index);
	/* Ends the kernel and begins its successor. Collective: all workers of the device call it equally often.
	 * Afterwards all earlier fires are on their way, under every mechanism. Costs what the device declares for
	 * launches. Returns 0 or LOOM_EINTR. */
	int (*boundary)(struct loom_ctx *c);
	/* Is a boundary() where the mechanism cannot send from within a kernel, and does nothing where it can. */
	int (*deliver)(struct loom_ctx *c);
	/* For measurements: returns when `index` was last notified, on CLOCK_MONOTONIC; 0: never, or not recorded. */
	uint64_t (*arrived_at)(struct loom_ctx *c, uint32_t index);
	/* Remote access where ranks share tasks, by lane 0: atomic with the CPUs there, after all that the worker did
	 * and before what it does next. ADD sets *was to the old value; with `was` NULL it returns at once and
	 * completes later. Without `ask` the worker serves requests of other ranks; a scheduler calls that between
	 * tasks. Without `ask` but with `was` the worker leaves, and serves no more in this sample. Returns 0,
	 * LOOM_EINTR when the run was stopped, or LOOM_EIO after it was failed. NULL: not supported. */
	int (*rma)(struct loom_ctx *c, const struct loom_rma *ask, uint64_t *was);
	/* As a barrier of the lanes and one fire by lane 0, where all lanes can share the copy of the data. Collective.
	 * Returns as fire(), the same in all lanes. NULL: not supported. A program for GPUs then lacks the macro
	 * LOOM_TRIGGER_TOGETHER. */
	int (*fire_together)(struct loom_ctx *c, uint64_t tag);
	/* Waits until `index` was notified `n` times, as all lanes can share the copy of the data. Collective, also a
	 * barrier. Returns 1; LOOM_EINTR when the run was stopped; an error; or 0: poll by arrived() instead. NULL: as
	 * fire_together. */
	int (*await_together)(struct loom_ctx *c, uint32_t index, uint64_t n);
};

#ifdef __cplusplus
}
#endif
#endif
