/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_proxy, device code. GPU host networking: each fire is a descriptor of 64 bytes that the device builds. A host
 * thread takes it, counts it and sends (GPU-TN, section 1). The device builds a descriptor from a table, indexed by
 * tag, which the host fills when operations are posted. If the table has no entry for the tag, the descriptor has only
 * the tag, and the host takes the operation from the post. */
#ifndef TRIGGER_PROXY_DEV_H
#define TRIGGER_PROXY_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../trigger_common/nic/nic.dev.h"
#endif

/* The words of a descriptor. PROXY_COMMIT is a trigger word (nic.dev.h). PROXY_OP is target << 32 | flags << 16 | type
 * << 8 | op. */
enum {
	PROXY_ID, /* id of the post from which the descriptor was built; 0: the descriptor has only the tag */
	PROXY_OP,
	PROXY_LOCAL,
	PROXY_REMOTE,
	PROXY_BYTES,
	PROXY_SLOTS, /* notify << 32 | slot */
	PROXY_BUILT,
	PROXY_ARGUMENT = PROXY_BUILT,
	PROXY_COMMIT,
	PROXY_WORDS
};

/* An entry of the table, which is a hash table of nic_shape.extra entries at nic_shape.extra_at. */
struct proxy_entry {
	uint64_t tag;     /* stored once per sample by the host; 0: free */
	uint64_t version; /* odd: the host is writing the entry */
	uint64_t word[PROXY_BUILT];
};

/* The head of a ring of descriptors. After the table, there is one ring for each device. */
struct proxy_ring {
	uint64_t tail; /* number of descriptors that the host has taken */
	uint64_t pad[7];
};

LOOM_FN uint64_t proxy_ring_bytes(uint64_t entries)
{
	return sizeof(struct proxy_ring) + entries * PROXY_WORDS * sizeof(uint64_t);
}

/* Copies the table's entry of a tag into word[0 .. PROXY_BUILT - 1]. word[PROXY_ID] is 0 if there is no entry, or if
 * the host was writing the entry. */
LOOM_FN void proxy_read_entry(const struct loom_ctx *c, uint64_t tag, uint64_t *word)
{
	const struct nic_shape *s = nic_shape(c);
	struct proxy_entry *table = (struct proxy_entry *)nic_at(c, s->extra_at);
	word[PROXY_ID] = 0;
	for (uint64_t i = nic_hash(tag), n = 0; n < s->extra; i++, n++) {
		struct proxy_entry *e = &table[i & (s->extra - 1)];
		/* Acquire: pairs with the host's release of the tag. */
		uint64_t have = loom_load_acquire_sys(&e->tag);
		if (!have)
			return;
		if (have != tag)
			continue;
		/* Acquire: pairs with the release of the even version in proxy_publish(), which follows the words. */
		uint64_t version = loom_load_acquire_sys(&e->version);
		for (uint32_t k = 0; k < PROXY_BUILT; k++)
			word[k] = loom_load_relaxed_sys(&e->word[k]);
		/* Acquire fence: pairs with the releases of the words in proxy_publish(), which follow the odd version.
		 * So if a loaded word is new, the load below returns another version. */
		loom_fence_acquire_sys();
		if (version & 1 || loom_load_relaxed_sys(&e->version) != version)
			word[PROXY_ID] = 0;
		return;
	}
}

/* Applies the argument of a fire to a descriptor, on the device: dynamic communication (GPU-TN, 3.4). */
LOOM_FN void proxy_apply(uint64_t *word, uint64_t argument)
{
	uint64_t flags = word[PROXY_OP] >> 16 & 0xffff, offset = argument & 0xffffffffffffull;
	if (flags & LOOM_NET_TARGET_FROM_FIRE)
		word[PROXY_OP] = (word[PROXY_OP] & 0xffffffffu) | (argument >> 48) << 32;
	if (flags & LOOM_NET_LOCAL_FROM_FIRE)
		word[PROXY_LOCAL] += offset;
	if (flags & LOOM_NET_REMOTE_FROM_FIRE)
		word[PROXY_REMOTE] += offset;
}

LOOM_FN int proxy_send(struct loom_ctx *c, uint64_t trigger, uint64_t argument)
{
	const struct nic_shape *s = nic_shape(c);
	uint64_t rings = s->extra_at + s->extra * sizeof(struct proxy_entry);
	struct proxy_ring *r =
		(struct proxy_ring *)nic_at(c, rings + c->device * proxy_ring_bytes(s->entries));
	uint64_t word[PROXY_BUILT], n;
	proxy_read_entry(c, trigger >> 16, word);
	if (trigger & 2 && word[PROXY_ID])
		proxy_apply(word, argument);
	int rc = nic_take_slot(c, &r->tail, s->entries, &n);
	if (rc)
		return rc;
	uint64_t *to = (uint64_t *)(r + 1) + (n & (s->entries - 1)) * PROXY_WORDS;
	for (uint32_t k = 0; k < PROXY_BUILT; k++)
		to[k] = word[k];
	to[PROXY_ARGUMENT] = argument;
	/* Release: pairs with the acquire in committed(). The descriptor and the payload are written before. */
	loom_store_release_sys(&to[PROXY_COMMIT], trigger | nic_lap(n, s->entries));
	return 0;
}

LOOM_FN int trigger_proxy_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (!nic_may_fire(tag, count))
		return LOOM_EINVAL;
	return proxy_send(c, nic_word(tag, count), 0);
}

LOOM_FN int trigger_proxy_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)
{
	if (tag - 1 >= LOOM_TAG_MAX)
		return LOOM_EINVAL;
	return proxy_send(c, nic_word(tag, 1) | 2, argument);
}

NIC_RELAXED_IS_ORDERED(trigger_proxy)
NIC_AT_ONCE(trigger_proxy)

#endif
