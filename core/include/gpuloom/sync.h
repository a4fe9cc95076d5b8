/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronisation: producers publish items of a channel, consumers wait for them (WIC, sections 3 to 5).
 *
 * An item has a tag, a number that counts from 0 within its channel and sample. The item with tag t is in slot t %
 * slots, in round t / slots. For each tag exactly one worker publishes. Exactly `readers` workers of the channel's
 * device wait for the item and release it, at any time. Rounds of a slot follow each other: publish() waits until all
 * readers have released the previous round. A reader releases one round of a slot before it waits for the next.
 *
 * The models of communication are conventions on top: unidirectional (one channel), alternating (one each way),
 * multiple (several tags per iteration), probabilistic (a producer skips a message, and both sides count the used
 * tags). */
#ifndef GPULOOM_SYNC_H
#define GPULOOM_SYNC_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_ANY_DEVICE 0xffffffffu

struct loom_channel {
	uint32_t slots;   /* items that may be in progress at once; at most 2^24 */
	uint32_t readers; /* consumers of each item; at least 1 */
	uint32_t from;    /* the device of the producers, or LOOM_ANY_DEVICE */
	uint32_t to;      /* the device of the consumers */
	uint64_t item_bytes;
};

struct loom_sync_ops {
	LOOM_POLICY_OPS
	/* Declares the workload's channels, once, after its need() and before this need(). The list is copied. */
	int (*channels)(void *self, const struct loom_layout *layout, const struct loom_channel *channel,
			uint32_t n, struct loom_error *err);
	/* While workers run: ends every current and later wait. `code` is LOOM_EINTR, which all waits then return, or
	 * LOOM_EDIED with the device whose workers are gone. Waits for items that only those could publish return
	 * LOOM_EDIED, others on that device's channels either code, all others LOOM_EINTR. May be repeated. */
	void (*interrupt)(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  int code, uint32_t device);
	/* The three hooks of struct loom_attachment (device.h). NULL: no action. */
	int (*attach)(void *self, const struct loom_space *space, struct loom_error *err);
	void (*ready)(void *self, uint32_t device);
	void (*detach)(void *self, uint32_t device);
};

/* Device half. All ops are collective over the lanes of a worker. `timeout_ns` bounds the wait; 0: as long as the run
 * lasts. They return 0, LOOM_ETIMEDOUT (the call may be repeated), LOOM_EDIED or LOOM_EINTR (see interrupt() of the
 * host half), or another error. After any but LOOM_ETIMEDOUT the channel must not be used in this sample. */
struct loom_sync_dev {
	size_t size;
	/* Waits until the slot of the tag is free, and sets *at to where its bytes may be written in place. */
	int (*reserve)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, void **at);
	/* Publishes the item with a copy of `bytes` bytes at `from`; NULL: they were written in place after reserve().
	 * Waits for the slot like reserve(). */
	int (*publish)(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from,
		       uint64_t bytes, uint64_t timeout_ns);
	/* Waits until the item is published. *data is valid until release(), and only for the published bytes: a load
	 * past them may never end. System calls must not read it. Other writes of the producer need not be visible. */
	int (*wait)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns,
		    const void **data);
	/* Waits for all of `n` tags at once; data[i] belongs to tag[i]. After an error no item counts as taken. */
	int (*wait_all)(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n,
			uint64_t timeout_ns, const void **data);
	/* Ends the caller's use of the item. The slot is free when all readers have released it. */
	int (*release)(struct loom_ctx *c, uint32_t channel, uint32_t tag);
};

#ifdef __cplusplus
}
#endif
#endif
