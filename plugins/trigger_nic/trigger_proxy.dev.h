/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_proxy: GPU host networking: the device counts, builds a whole descriptor of 64 bytes and hands it
 * to a thread of the host, which sends (GPU-TN, section 1). Device code.
 *
 * The descriptors to copy from are in a hash table by tag, which the host fills as operations are posted:
 * so a fire before its post finds nothing. A tag is counted by devices or by the network, not by both. */
#ifndef TRIGGER_PROXY_DEV_H
#define TRIGGER_PROXY_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "nic.dev.h"
#endif

enum {
	PROXY_OP,
	PROXY_LOCAL,
	PROXY_REMOTE,
	PROXY_BYTES,
	PROXY_MATCH,
	PROXY_CHAIN,
	PROXY_SLOTS,
	PROXY_COMMIT,
	PROXY_WORDS
};
/* word PROXY_OP: target << 32 | flags << 16 | type << 8 | op; PROXY_SLOTS: notify << 32 | slot;
 * PROXY_COMMIT: lap */

struct proxy_entry {
	uint64_t tag; /* stored last by the host; 0: free */
	uint64_t count, threshold, rearm, window;
	uint64_t pad[3];
	uint64_t word[PROXY_WORDS];
};

#define PROXY_RING 256u

/* At extra_at: `extra` entries, then one ring per device like a FIFO, of descriptors. */
struct proxy_ring {
	uint64_t tail;
	uint64_t pad[7];
	uint64_t word[PROXY_RING][PROXY_WORDS];
};
#define PROXY_RING_BYTES sizeof(struct proxy_ring)

LOOM_FN uint64_t proxy_hash(uint64_t tag)
{
	return (tag * 0x9e3779b97f4a7c15ull) >> 32;
}

LOOM_FN struct proxy_ring *proxy_ring(const struct nic_board *b, uint32_t device)
{
	uint64_t rings = b->extra_at + b->extra * sizeof(struct proxy_entry);
	return (struct proxy_ring *)nic_at(b, rings + (uint64_t)device * PROXY_RING_BYTES);
}

/* How many of threshold, threshold + rearm, ... are in (before, after]. */
LOOM_FN uint64_t proxy_crossed(uint64_t before, uint64_t after, uint64_t threshold, uint64_t rearm)
{
	if (after < threshold)
		return 0;
	if (!rearm)
		return before < threshold;
	uint64_t reached = (after - threshold) / rearm + 1;
	return reached - (before < threshold ? 0 : (before - threshold) / rearm + 1);
}

LOOM_FN int proxy_send(struct loom_ctx *c, const struct proxy_entry *e, uint64_t argument)
{
	const struct nic_board *b = nic_board(c);
	struct proxy_ring *r = proxy_ring(b, c->device);
	uint64_t n, flags = e->word[PROXY_OP] >> 16 & 0xffff, offset = argument & 0xffffffffffffull;
	int rc = nic_take_slot(c, (struct nic_fifo *)r, PROXY_RING, &n);
	if (rc)
		return rc;
	uint64_t *to = r->word[n & (PROXY_RING - 1)];
	for (uint32_t i = 0; i < PROXY_COMMIT; i++)
		to[i] = e->word[i];
	if (flags & LOOM_NET_TARGET_FROM_FIRE)
		to[PROXY_OP] = (to[PROXY_OP] & 0xffffffffu) | (argument >> 48) << 32;
	if (flags & LOOM_NET_LOCAL_FROM_FIRE)
		to[PROXY_LOCAL] += offset;
	if (flags & LOOM_NET_REMOTE_FROM_FIRE)
		to[PROXY_REMOTE] += offset;
	/* Past the window: the host refuses a descriptor without operation. */
	if (flags & (LOOM_NET_LOCAL_FROM_FIRE | LOOM_NET_REMOTE_FROM_FIRE) && offset > e->window)
		to[PROXY_OP] &= ~(uint64_t)0xff;
	/* Release: pairs with the host's acquire; the descriptor and the payload are before it. */
	loom_store_release_sys(&to[PROXY_COMMIT], nic_lap(n, PROXY_RING));
	return 0;
}

LOOM_FN int proxy_count(struct loom_ctx *c, uint64_t tag, uint32_t count, uint64_t argument)
{
	const struct nic_board *b = nic_board(c);
	struct proxy_entry *table = (struct proxy_entry *)nic_at(b, b->extra_at);
	int found = LOOM_ENOENT, rc = 0;
	for (uint64_t i = proxy_hash(tag), n = 0; n < b->extra && !rc; i++, n++) {
		struct proxy_entry *e = &table[i & (b->extra - 1)];
		/* Acquire: pairs with the host's release of the tag; the entry is complete. */
		uint64_t have = loom_load_acquire_sys(&e->tag);
		if (!have)
			break;
		if (have != tag)
			continue;
		found = 0;
		/* Acquire and release: the last to arrive sends what all before it wrote. */
		uint64_t before = loom_fetch_add_acq_rel_sys(&e->count, (uint64_t)count);
		uint64_t runs = proxy_crossed(before, before + count, e->threshold, e->rearm);
		for (; runs && !rc; runs--)
			rc = proxy_send(c, e, argument);
	}
	return rc ? rc : found;
}

LOOM_FN int trigger_proxy_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (tag - 1 >= LOOM_TAG_MAX || count - 1 >= NIC_COUNT_MAX)
		return LOOM_EINVAL;
	return proxy_count(c, tag, count, 0);
}

LOOM_FN int trigger_proxy_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)
{
	if (tag - 1 >= LOOM_TAG_MAX)
		return LOOM_EINVAL;
	return proxy_count(c, tag, 1, argument);
}

LOOM_FN int64_t trigger_proxy_completed(struct loom_ctx *c, uint32_t slot)
{
	return nic_completed(c, slot);
}

LOOM_FN int64_t trigger_proxy_arrived(struct loom_ctx *c, uint32_t index)
{
	return nic_arrived(c, index);
}

LOOM_FN int trigger_proxy_boundary(struct loom_ctx *c)
{
	return nic_boundary(c);
}

LOOM_FN int trigger_proxy_deliver(struct loom_ctx *c)
{
	(void)c;
	return 0;
}

LOOM_FN uint64_t trigger_proxy_arrived_at(struct loom_ctx *c, uint32_t index)
{
	return nic_arrived_at(c, index);
}

#endif
