/* SPDX-License-Identifier: Apache-2.0 */
/* Network triggers: the host posts operations ahead, and workers fire them (GPU-TN, sections 3 and 4).
 *
 * A fire adds to the counter of a tag. A post waits until the counter of its tag reaches a threshold. Posts of a
 * counter run in the order of their thresholds, even if the counter jumps. Posts with equal thresholds run in the order
 * of posting. A fire may come before its post or after it (3.2). Counters have 64 bits. Each sample starts with
 * counters of 0 and without posts, so wire() of the workload posts again. */
#ifndef GPULOOM_TRIGGER_H
#define GPULOOM_TRIGGER_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

enum loom_net_op {
	LOOM_NET_PUT = 1, /* copies `local` to `remote` */
	LOOM_NET_GET,     /* copies `remote` to `local` */
	LOOM_NET_SEND,    /* sends `local` to the LOOM_NET_RECV of the target that has the same `match` */
	LOOM_NET_RECV,    /* receives into `local`, from any rank */
	LOOM_NET_ADD,     /* adds each element of `local` to an element of `remote`, atomically */
	LOOM_NET_COUNT,   /* moves no data and completes at once; it joins or chains counters */
};
enum loom_net_type { LOOM_NET_U64 = 0, LOOM_NET_F32 };
enum {
	LOOM_NET_TARGET_FROM_FIRE = 1, /* the argument of the fire (GPU-TN, 3.4) gives the rank of the target */
	LOOM_NET_LOCAL_FROM_FIRE = 2,  /* the argument gives an offset that is added to `local`, up to post.window */
	LOOM_NET_REMOTE_FROM_FIRE = 4, /* the argument gives an offset that is added to `remote`, up to post.window */
};

/* The tags 1 to LOOM_TAG_MAX are for the workload. Each arrival word also has a tag, to which a notification of the
 * word adds. Posts may wait for such a tag. */
#define LOOM_TAG_MAX ((1ull << 47) - 1)
#define LOOM_TAG_ARRIVAL(index) (1ull << 47 | (uint64_t)(index))
/* The argument of a fire: a rank, and an offset in bytes. */
#define LOOM_ARGUMENT(target, offset) ((uint64_t)(target) << 48 | (uint64_t)(offset))

/* An operation that waits for its fires. Members that are not used must be 0. */
struct loom_trigger_post {
	size_t size;
	uint64_t tag;
	uint64_t threshold; /* counter value at which the operation runs; 0: it runs at once */
	uint64_t rearm;     /* 0: runs once; else runs again after each `rearm` further counts */
	uint32_t op;        /* the operation: enum loom_net_op */
	uint32_t target;    /* rank of the target */
	loom_ref local;     /* buffer in memory of this rank */
	loom_ref remote;    /* buffer in memory of the target, as a reference of that rank */
	uint64_t bytes;
	uint64_t match;  /* for SEND and RECV: a number that must be equal in both */
	uint64_t chain;  /* tag to which a successful completion adds 1; 0: none */
	uint32_t slot;   /* completion slot of this rank that counts completions; 0: none */
	uint32_t notify; /* arrival word that counts the data at the target (PUT, ADD) or at this rank (RECV); 0: none */
	uint32_t type;  /* for ADD: the type of the elements, enum loom_net_type */
	uint32_t flags; /* LOOM_NET_*_FROM_FIRE */
	/* limit on the offset of LOOM_NET_*_FROM_FIRE, in bytes */
	uint64_t window;
	/* 1: the caller makes promises that let the data travel together with their notification. A trigger may ignore
	 * this. The operation is a PUT, whose tag belongs to the workload and has no other post. `threshold` is not 0,
	 * and `rearm` is 0 or equal to it. No other post of any rank notifies `notify`. One worker of the target waits
	 * for every notification, and before it has seen one, the sender does not reach the threshold again. If the
	 * threshold is 1, one worker fires. It may fire again earlier; then the target may find the data of the later
	 * message. When the notification is seen, the data are complete, but other memory of the two ranks is not
	 * ordered. Fences on both sides order it. */
	uint32_t paired;
	uint32_t reserved;
};

/* Words of 64 bits between the kernels of a sample and the network, for devices that launch each kernel separately. The
 * members are offsets in bytes in the trigger's block for the stack. */
struct loom_edge {
	/* The device raises this word to the number of kernels that have ended. The trigger then sends the fires of
	 * these kernels. */
	uint64_t ended;
	uint64_t begun; /* the trigger raises this word to let the next kernel fire */
	uint64_t arrival, stride; /* arrival word i is at arrival + i * stride; negative: the network failed */
	uint32_t by_stream; /* 1: stream operations of the device raise and await these words; 0: the host does */
	uint32_t reserved;
};
/* A condition: arrival word `index` is at least `count`. */
struct loom_await {
	uint64_t index, count;
};
#define LOOM_AWAITS_MOST 8 /* limit on the conditions before one kernel */

/* Host half. Any thread may call post, even while workers run. */
struct loom_trigger_ops {
	LOOM_POLICY_OPS
	/* Posts an operation. *id is unique in the stack. Refuses an operation that can never run: with a wrong tag,
	 * slot, target, operation or memory. Returns LOOM_EFULL if every place is taken, and LOOM_ENOTSUP
	 * if the plug-in or its provider lacks the operation. Returns LOOM_EBUSY if the operation takes an argument
	 * (LOOM_NET_*_FROM_FIRE) from a fire that has already happened. */
	int (*post)(void *self, const struct loom_trigger_post *post, uint64_t *id,
		    struct loom_error *err);
	/* Waits until all operations that were fired are complete, also at their targets. Returns the first failure:
	 * LOOM_EIO if the argument of a fire was beyond the window of its post or named a rank that does not exist,
	 * LOOM_EFULL if fires were not counted because there were too many tags. No worker runs during the call,
	 * because the kernel has ended. */
	int (*flush)(void *self, uint64_t timeout_ns, struct loom_error *err);
	/* For operations that are posted later: returns 0 if post() can accept this operation, or the error that post()
	 * would always return. Takes no place in a table. NULL: only post() finds errors. */
	int (*check)(void *self, const struct loom_trigger_post *post, struct loom_error *err);
	/* Maps `bytes` of another rank's memory, and sets *at to the address, which is the same for all devices of this
	 * rank. Workers may load, store and use atomics of scope sys there without a post. Returns LOOM_ENOTSUP if they
	 * cannot access the memory. NULL: workers can access memory of other ranks by rma() at most. */
	int (*reach)(void *self, uint32_t rank, loom_ref ref, uint64_t bytes, uint64_t *at, struct loom_error *err);
	/* Called after start(). Fills in *out for a device. NULL: no fire waits for the end of a kernel. */
	void (*edge)(void *self, uint32_t device, struct loom_edge *out);
	/* Returns 1 if operations may use memory that the host cannot access, as source and target. NULL: they may
	 * not. */
	int (*anywhere)(void *self);
};

/* The selected trigger. The core passes it to wire() of a workload or barrier. */
struct loom_trigger {
	size_t size;
	const struct loom_trigger_ops *ops;
	void *self;
	uint32_t rank, ranks;
};

/* Macros for device code. Code for CPUs serves all jobs, and has both. A program for GPUs has LOOM_RANKS_SHARE if ranks
 * share tasks. It also has LOOM_RANKS_RMA if workers can access the memory of other ranks only by rma(). */
#ifndef LOOM_DEVICE_COMPILE
#define LOOM_RANKS_SHARE
#define LOOM_RANKS_RMA
#endif

/* An operation of a worker on the memory of another rank. */
struct loom_rma {
	/* LOOM_NET_GET: copies `bytes` from `remote` to `local`. LOOM_NET_ADD: adds `value` to the 64 bits at
	 * `remote`. */
	uint32_t op, rank;
	loom_ref remote, local;
	uint64_t bytes, value;
};

/* Device half. */
struct loom_trigger_dev {
	size_t size;
	/* Adds `count` (1 to 16383) to the counter of `tag`. Any lane may call it. The operation sends all that this
	 * lane has written, or has seen other lanes write before a barrier. So a work-group calls
	 * loom_barrier_lanes(c), and then lane 0 fires. The call waits while the FIFO is full. Returns 0, LOOM_EINTR if
	 * the run was stopped, or an error. */
	int (*fire)(struct loom_ctx *c, uint64_t tag, uint32_t count);
	/* Fires without ordering memory, for tags that send older data or no data. Costs less than fire() across a
	 * link. */
	int (*fire_relaxed)(struct loom_ctx *c, uint64_t tag, uint32_t count);
	/* Fires with LOOM_ARGUMENT(target, offset), for posts with LOOM_NET_*_FROM_FIRE. */
	int (*fire_with)(struct loom_ctx *c, uint64_t tag, uint64_t argument);
	/* Returns the number of operations that have completed in `slot`, or minus the first failure. The buffers of
	 * these operations are free. */
	int64_t (*completed)(struct loom_ctx *c, uint32_t slot);
	/* Returns how often arrival word `index` was notified, or minus the first failure. This number tells the
	 * receiver how much data it may read. */
	int64_t (*arrived)(struct loom_ctx *c, uint32_t index);
	/* Ends the kernel and begins its successor. Collective: all workers of the device call it equally often.
	 * Afterwards all earlier fires are on their way, whichever trigger is selected. A host that sends also waits for
	 * receives without `chain` that they start. Takes the device's time of a launch. Returns 0 or LOOM_EINTR. */
	int (*boundary)(struct loom_ctx *c);
	/* Is a boundary() if the trigger cannot send from within a kernel. Otherwise does nothing. */
	int (*deliver)(struct loom_ctx *c);
	/* For measurements: returns when `index` was last notified, on CLOCK_MONOTONIC, or 0 if it was never notified
	 * or if times are not recorded. */
	uint64_t (*arrived_at)(struct loom_ctx *c, uint32_t index);
	/* Remote access, if ranks share tasks; lane 0 calls it. The access is atomic with accesses of the CPUs of the
	 * other rank. It follows all that the worker did before, and precedes what the worker does next. LOOM_NET_ADD
	 * sets *was to the old value. If `was` is NULL, the call returns at once, and the addition completes later. If
	 * `ask` is NULL, the worker serves requests of other ranks; a scheduler calls this between tasks. If `ask` is
	 * NULL and `was` is not, the worker leaves, and serves no more requests in this sample. Returns 0, LOOM_EINTR
	 * if the run was stopped, or LOOM_EIO if the call has failed the run. NULL: not supported. */
	int (*rma)(struct loom_ctx *c, const struct loom_rma *ask, uint64_t *was);
	/* Does the same as a barrier of the lanes and one fire by lane 0. It is for mechanisms in which all lanes share
	 * the copying of the data. Collective. Returns the result of fire(), to all lanes. NULL: not supported; a
	 * program for GPUs then lacks the macro LOOM_TRIGGER_TOGETHER. */
	int (*fire_together)(struct loom_ctx *c, uint64_t tag);
	/* Waits until `index` was notified `n` times. It is for mechanisms in which all lanes share the copying of the
	 * data. Collective, and a barrier. Returns 1; LOOM_EINTR if the run was stopped; an error; or 0, which tells
	 * the caller to poll arrived() instead. NULL: not supported, as for fire_together. */
	int (*await_together)(struct loom_ctx *c, uint32_t index, uint64_t n);
};

#ifdef __cplusplus
}
#endif
#endif
