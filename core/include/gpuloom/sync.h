/* SPDX-License-Identifier: Apache-2.0 */
/* Synchronisation: producers publish items of a channel, consumers wait for them (WIC, sections 3 to 5).
 *
 * An item has a tag, a number that counts from 0 within its channel and sample. The item with tag t
 * is in slot t % slots, in round t / slots. For each tag exactly one worker publishes, and exactly
 * `readers` workers of the channel's device wait for it and release it, as early or late as they like.
 * A slot's rounds follow each other: publish() waits until the round before is released by all its
 * readers, and a reader releases one round of a slot before it waits for the next.
 *
 * The models of communication are conventions on top: unidirectional (one channel), alternating (one
 * each way), multiple (several tags per iteration), probabilistic (a producer skips a message, and
 * both sides count the tags that were used). */
#ifndef GPULOOM_SYNC_H
#define GPULOOM_SYNC_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LOOM_ANY_DEVICE 0xffffffffu

struct loom_channel {
	uint32_t slots;   /* items that may be under way at once; at most 2^24 */
	uint32_t readers; /* consumers of each item; at least 1 */
	uint32_t from;    /* the device of its producers, or LOOM_ANY_DEVICE */
	uint32_t to;      /* the device of its consumers */
	uint64_t item_bytes;
};

struct loom_sync_ops {
	LOOM_POLICY_OPS
	/* Says which channels the workload uses: once, after the workload's need() and before need().
	 * The list is copied. */
	int (*channels)(void *self, const struct loom_layout *layout, const struct loom_channel *channel,
			uint32_t n, struct loom_error *err);
	/* While workers run: ends every wait that is under way or yet to come. `code` is LOOM_EINTR, which all
	 * waits then give; or LOOM_EDIED with the device whose workers are gone: waits for items that only they
	 * could publish give LOOM_EDIED, other waits on that device's channels LOOM_EDIED or LOOM_EINTR, and all
	 * others LOOM_EINTR. May be called more than once. */
	void (*interrupt)(void *self, const struct loom_layout *layout, const struct loom_view *view,
			  int code, uint32_t device);
	/* The three of struct loom_attachment, device.h. NULL: nothing to do there. */
	int (*attach)(void *self, const struct loom_space *space, struct loom_error *err);
	void (*ready)(void *self, uint32_t device);
	void (*detach)(void *self, uint32_t device);
};

/* Device half. All ops are collective over the lanes of a worker. `timeout_ns` is how long the call may
 * wait; 0: as long as the run lasts. They give 0, LOOM_ETIMEDOUT (the call may be repeated), LOOM_EDIED or
 * LOOM_EINTR (as interrupt() of the host half says), or another error of enum loom_err. After any error but
 * LOOM_ETIMEDOUT the channel is of no use in this sample. */
struct loom_sync_dev {
	size_t size;
	/* Waits until the tag's slot is free, and says where its bytes may be written in place. */
	int (*reserve)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, void **at);
	/* Makes the item available. The first `bytes` bytes at `from` are copied; NULL: they were written
	 * in place after reserve(). Waits for the slot like reserve(). */
	int (*publish)(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from,
		       uint64_t bytes, uint64_t timeout_ns);
	/* Waits until the item is available. *data is valid until release(), and only as far as the
	 * bytes that were published: a load past them may never end. No system call may read there:
	 * copy the bytes first. Nothing else that the producer wrote is promised to be seen. */
	int (*wait)(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns,
		    const void **data);
	/* The same for all of `n` tags, in one wait: data[i] belongs to tag[i]. After an error none of
	 * them counts as taken. */
	int (*wait_all)(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n,
			uint64_t timeout_ns, const void **data);
	/* The caller has read the item. When all readers have said so, the slot is free. */
	int (*release)(struct loom_ctx *c, uint32_t channel, uint32_t tag);
};

#ifdef __cplusplus
}
#endif
#endif
