/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_proxy: the host's thread takes descriptors that devices built, and sends. Host half. */
#include "nic.h"
#include "trigger_proxy.dev.h"

#define BATCH 64u

static struct proxy_entry *table(const struct nic *nic)
{
	return (struct proxy_entry *)((char *)nic->board + nic->board->extra_at);
}

/* At most half full, so that probes stay short and end. */
static uint64_t proxy_extra(const struct nic *nic, uint64_t *entries)
{
	*entries = 2;
	while (*entries < 2ull * nic->opts->posts)
		*entries *= 2;
	return *entries * sizeof(struct proxy_entry) + (uint64_t)nic->devices * PROXY_RING_BYTES;
}

static int proxy_post(struct nic *nic, const struct loom_trigger_post *w, uint64_t *id, int *taken,
		      struct loom_error *err)
{
	uint64_t mask = nic->board->extra - 1, i = proxy_hash(w->tag);
	(void)id, (void)taken;
	/* The list sees the post too: it counts what comes from the network, and how many there are. */
	if (w->tag > LOOM_TAG_MAX || w->threshold == 0)
		return 0;
	if (!nic->list.room)
		return 0; /* the list refuses it in words */
	while (table(nic)[i & mask].tag)
		if ((++i & mask) == (proxy_hash(w->tag) & mask))
			return LOOM_FAIL(nic->host, err, LOOM_EFULL,
					 "trigger_proxy: the table of descriptors is full: raise posts");
	struct proxy_entry *e = &table(nic)[i & mask];
	e->count = 0;
	e->threshold = w->threshold;
	e->rearm = w->rearm;
	e->window = w->window;
	e->word[PROXY_OP] = (uint64_t)w->target << 32 | (uint64_t)w->flags << 16 | w->type << 8 | w->op;
	e->word[PROXY_LOCAL] = w->local;
	e->word[PROXY_REMOTE] = w->remote;
	e->word[PROXY_BYTES] = w->bytes;
	e->word[PROXY_MATCH] = w->match;
	e->word[PROXY_CHAIN] = w->chain;
	e->word[PROXY_SLOTS] = (uint64_t)w->notify << 32 | w->slot;
	/* Release: pairs with the acquire in proxy_count. */
	__atomic_store_n(&e->tag, w->tag, __ATOMIC_RELEASE);
	return 0;
}

static int proxy_cancel(struct nic *nic, uint64_t id)
{
	uint32_t i = (uint32_t)id;
	const struct post *p = i < nic->list.posts ? &nic->list.post[i] : NULL;
	if (p && p->state == POST_WAITS && p->what.tag <= LOOM_TAG_MAX && p->what.threshold)
		return LOOM_ENOTSUP; /* a device may be copying it */
	return list_cancel(&nic->list, id);
}

/* 0, or LOOM_EAGAIN. */
static int send_one(struct nic *nic, const uint64_t *word)
{
	struct loom_trigger_post w = {
		.op = word[PROXY_OP] & 0xff,
		.type = word[PROXY_OP] >> 8 & 0xff,
		.target = (uint32_t)(word[PROXY_OP] >> 32),
		.local = word[PROXY_LOCAL],
		.remote = word[PROXY_REMOTE],
		.bytes = word[PROXY_BYTES],
		.match = word[PROXY_MATCH],
		.chain = word[PROXY_CHAIN],
		.slot = (uint32_t)word[PROXY_SLOTS],
		.notify = (uint32_t)(word[PROXY_SLOTS] >> 32),
	};
	/* A device wrote it: believe nothing. */
	int far = w.op == LOOM_NET_PUT || w.op == LOOM_NET_GET || w.op == LOOM_NET_ADD;
	int bad = w.op < LOOM_NET_PUT || w.op > LOOM_NET_COUNT || w.slot >= nic->opts->slots;
	if (!bad && w.op != LOOM_NET_COUNT)
		bad = w.target >= nic->host->ranks ||
		      fabric_check(nic->fabric, nic->host->rank, w.local, w.bytes) ||
		      (far && fabric_check(nic->fabric, w.target, w.remote, w.bytes));
	if (bad) {
		nic_fail(nic, LOOM_EIO, "a descriptor from the device names no operation, rank or memory");
		return 0;
	}
	return nic_run(nic, &w, LIST_NONE, 0);
}

static uint32_t proxy_poll(struct nic *nic)
{
	uint32_t work = 0;
	for (uint32_t d = 0; d < nic->devices; d++) {
		struct proxy_ring *r = proxy_ring(nic->board, d);
		uint64_t begin = nic->cursor[d];
		while (nic->cursor[d] - begin < BATCH) {
			const uint64_t *word = r->word[nic->cursor[d] & (PROXY_RING - 1)];
			/* Acquire: pairs with the release in proxy_send. */
			uint64_t lap = __atomic_load_n(&word[PROXY_COMMIT], __ATOMIC_ACQUIRE);
			if (lap != nic_lap(nic->cursor[d], PROXY_RING) || send_one(nic, word))
				break;
			nic->cursor[d]++;
		}
		if (nic->cursor[d] == begin)
			continue;
		/* Release: pairs with the acquire in nic_take_slot. */
		__atomic_store_n(&r->tail, nic->cursor[d], __ATOMIC_RELEASE);
		work += (uint32_t)(nic->cursor[d] - begin);
	}
	nic->fires += work;
	return work;
}

static int proxy_drained(struct nic *nic)
{
	for (uint32_t d = 0; d < nic->devices; d++) {
		const uint64_t *word = proxy_ring(nic->board, d)->word[nic->cursor[d] & (PROXY_RING - 1)];
		if (__atomic_load_n(&word[PROXY_COMMIT], __ATOMIC_ACQUIRE) == nic_lap(nic->cursor[d], PROXY_RING))
			return 0;
	}
	return 1;
}

static const struct nic_way proxy = {.name = "trigger_proxy",
				     .extra = proxy_extra,
				     .post = proxy_post,
				     .cancel = proxy_cancel,
				     .poll = proxy_poll,
				     .drained = proxy_drained};

NIC_PLUGIN(trigger_proxy, "GPU host networking: workers write whole descriptors, a host thread sends", proxy)
