/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronisation: producers publish items of a channel, and consumers wait for them (WIC, sections 3 to 5).
 *
 * An item has a tag, a number that counts from 0 in its channel and sample. The item with tag t is in slot t % slots,
 * in round t / slots. Exactly one worker publishes each tag. Exactly `readers` workers of the channel's consumer device
 * wait for the item and release it, at any time. The rounds of a slot follow each other: publish() waits until all
 * readers have released the round before. A reader releases a round of a slot before it waits for the next round.
 *
 * The paper's models of communication use these ops: unidirectional (one channel), alternating (one channel for each
 * direction), multiple (several tags per iteration), probabilistic (a producer skips a message, and both sides count
 * the tags that were used). */
#ifndef GPULOOM_SYNC_H
#define GPULOOM_SYNC_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_ANY_DEVICE 0xffffffffu

struct loom_channel {
	uint32_t slots;   /* number of items that may be in progress at once; at most 2^24 */
	uint32_t readers; /* number of consumers of each item; at least 1 */
	uint32_t from;    /* index of the producers' device, or LOOM_ANY_DEVICE */
	uint32_t to;      /* index of the consumers' device */
	uint64_t item_bytes;
	uint64_t reserved[2]; /* 0; see struct loom_opt */
};

struct loom_sync_ops {
	LOOM_POLICY_OPS
	/* Declares the workload's channels once, after the workload's need() and before that of this policy. The list
	 * is copied. */
	int (*channels)(void *self, const struct loom_layout *layout, const struct loom_channel *channel,
			uint32_t n, struct loom_error *err);
	/* Called while workers run. Ends every current and later wait. If `code` is LOOM_EINTR, all waits return it. If
	 * `code` is LOOM_EDIED, the workers of `device` are gone. In this case, waits for items that only these workers
	 * can publish return LOOM_EDIED, and all other waits on channels of `device` return one of the two codes. Waits
	 * on channels of other devices return LOOM_EINTR. The call may be repeated. */
	void (*interrupt)(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  int code, uint32_t device);
	/* The three hooks of struct loom_attachment (device.h). A NULL hook does nothing. */
	int (*attach)(void *self, const struct loom_space *space, struct loom_error *err);
	void (*ready)(void *self, uint32_t device);
	void (*detach)(void *self, uint32_t device);
};

/* Device half. All ops are collective over the lanes of a worker. `timeout_ns` limits the wait; 0 means as long as the
 * run lasts. The ops return 0, LOOM_ETIMEDOUT (the call may be repeated), LOOM_EDIED or LOOM_EINTR (see interrupt() of
 * the host half), or another error. After errors other than LOOM_ETIMEDOUT, the channel must not be used again in this
 * sample. */
struct loom_sync_dev {
	size_t size;
	/* Waits until the slot of the tag is free. Sets *at to the address at which the item may be written in
	 * place. */
	int (*reserve)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, void **at);
	/* Publishes the item, as a copy of `bytes` bytes at `from`. If `from` is NULL, the item was written in place
	 * after reserve(). Waits for the slot as reserve() does. */
	int (*publish)(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from,
		       uint64_t bytes, uint64_t timeout_ns);
	/* Waits until the item is published. *data is valid until release(), for the published bytes only: a load of
	 * bytes after them may never end. System calls must not read the item. Other writes of the producer need not be
	 * visible. */
	int (*wait)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns,
		    const void **data);
	/* Waits for all `n` tags at the same time; data[i] belongs to tag[i]. After an error, no item counts as
	 * received. */
	int (*wait_all)(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n,
			uint64_t timeout_ns, const void **data);
	/* Ends the caller's use of the item. The slot is free after all readers have released it. */
	int (*release)(struct loom_ctx *c, uint32_t channel, uint32_t tag);
};

#ifdef __cplusplus
}
#endif
#endif
