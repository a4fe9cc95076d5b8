/* SPDX-License-Identifier: Apache-2.0 */
/* A sound channel, two words per slot, with places for a fault.
 * A fixture defines NAME and one hook, the fault, before it includes this. */
#ifndef LOOM_BROKEN_SYNC_H
#define LOOM_BROKEN_SYNC_H

#ifndef REACHED /* when a wait is over */
#define REACHED(word, want) ((word) == (want))
#endif
#ifndef LATE /* when a deadline has passed */
#define LATE(c, until) (loom_clock_ns(c) >= (until))
#endif
#ifndef STOPPED /* whether the run was stopped */
#define STOPPED(ended, c) ((ended) || loom_stopped(c))
#endif
#ifndef COPIED /* how much of an item is copied */
#define COPIED(bytes) (bytes)
#endif
#ifndef RELEASED /* what one release counts for */
#define RELEASED(k) 1u
#endif

#include <gpuloom/plugin.h>
#include <gpuloom/sync.h>
#include <string.h>

#include <gpuloom/dev/dev.h>
#include <gpuloom/sync.h>

struct b_slot {
	uint32_t full; /* rounds that were published */
	uint32_t pad0[15];
	uint32_t released; /* readers, of all rounds, that have released */
	uint32_t pad1[15];
};

struct b_channel {
	uint32_t slots, readers, from, pad;
	uint64_t stride;           /* from one item to the next */
	uint64_t slot_at, data_at; /* from the begin of the block */
};

/* The block for the stack; `channels` of the above follow. */
struct block {
	uint32_t channels;
	uint32_t ended; /* minus an enum loom_err once interrupt() came; 0: none */
	uint32_t ended_device;
	uint32_t pad[13];
};

LOOM_FN struct b_channel *b_channel(const struct loom_ctx *c, uint32_t channel)
{
	return (struct b_channel *)((struct block *)c->global[LOOM_SYNC] + 1) + channel;
}

LOOM_FN struct b_slot *b_slot(const struct loom_ctx *c, const struct b_channel *k, uint32_t tag)
{
	return (struct b_slot *)((char *)c->global[LOOM_SYNC] + k->slot_at) + tag % k->slots;
}

LOOM_FN char *b_data(const struct loom_ctx *c, const struct b_channel *k, uint32_t tag)
{
	return (char *)c->global[LOOM_SYNC] + k->data_at + tag % k->slots * k->stride;
}

/* Lane 0: until *word is `want`. Equality is enough: no slot moves on before its caller. */
LOOM_FN int b_await(struct loom_ctx *c, uint32_t *word, uint32_t want, uint64_t until_ns,
		    const struct b_channel *k)
{
	struct block *head = (struct block *)c->global[LOOM_SYNC];
	/* Acquire: pairs with the release of publish() or release(). */
	while (!REACHED(loom_load_acquire_sys(word), want)) {
		uint32_t ended = loom_load_acquire_sys(&head->ended);
		if (ended == (uint32_t)-LOOM_EDIED &&
		    k->from == loom_load_relaxed_sys(&head->ended_device))
			return LOOM_EDIED;
		if (STOPPED(ended, c))
			return LOOM_EINTR;
		if (until_ns && LATE(c, until_ns))
			return LOOM_ETIMEDOUT;
		loom_pause(c);
	}
	return 0;
}

LOOM_FN uint64_t b_until(struct loom_ctx *c, uint64_t timeout_ns)
{
	return timeout_ns ? loom_clock_ns(c) + timeout_ns : 0;
}

/* All lanes: lane 0 waits, all learn how it ended. */
LOOM_FN int b_free(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns)
{
	struct b_channel *k = b_channel(c, channel);
	uint64_t code = 0;
	if (c->lane == 0)
		code = (uint64_t) - (int64_t)b_await(c, &b_slot(c, k, tag)->released,
						     tag / k->slots * k->readers,
						     b_until(c, timeout_ns), k);
	return -(int)loom_from_lane0(c, code);
}

LOOM_FN int b_reserve(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns,
		      void **at)
{
	*at = b_data(c, b_channel(c, channel), tag);
	return b_free(c, channel, tag, timeout_ns);
}

LOOM_FN int b_publish(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from,
		      uint64_t bytes, uint64_t timeout_ns)
{
	struct b_channel *k = b_channel(c, channel);
	char *to = b_data(c, k, tag);
	int code = b_free(c, channel, tag, timeout_ns);
	if (code)
		return code;
	for (uint64_t i = c->lane; from && i < COPIED(bytes); i += c->lanes)
		to[i] = ((const char *)from)[i];
	loom_barrier_lanes(c);
	if (c->lane == 0) /* release: the item, written by all lanes, is there */
		loom_store_release_sys(&b_slot(c, k, tag)->full, tag / k->slots + 1);
	return 0;
}

LOOM_FN int b_wait_all(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n,
		       uint64_t timeout_ns, const void **data)
{
	struct b_channel *k = b_channel(c, channel);
	uint64_t code = 0;
	if (c->lane == 0) {
		uint64_t until = b_until(c, timeout_ns);
		for (uint32_t i = 0; i < n && !code; i++)
			code = (uint64_t) - (int64_t)b_await(c, &b_slot(c, k, tag[i])->full,
							     tag[i] / k->slots + 1, until, k);
	}
	code = loom_from_lane0(c, code);
	for (uint32_t i = 0; i < n && !code; i++)
		data[i] = b_data(c, k, tag[i]);
	return -(int)code;
}

LOOM_FN int b_wait(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns,
		   const void **data)
{
	return b_wait_all(c, channel, &tag, 1, timeout_ns, data);
}

LOOM_FN int b_release(struct loom_ctx *c, uint32_t channel, uint32_t tag)
{
	struct b_channel *k = b_channel(c, channel);
	loom_barrier_lanes(c); /* all lanes have read it */
	if (c->lane == 0)
		loom_fetch_add_release_sys(&b_slot(c, k, tag)->released, RELEASED(k));
	return 0;
}

struct instance {
	const struct loom_host *host;
	struct loom_channel *channel; /* [channels] */
	uint32_t channels;
};

static int create(const struct loom_host *host, const void *opts, void **self,
		  struct loom_error *err)
{
	struct instance *i = host->alloc(host, sizeof(*i));
	(void)opts;
	if (!i)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, NAME ": out of memory");
	i->host = host;
	*self = i;
	return 0;
}

static void destroy(void *self)
{
	struct instance *i = self;
	if (!i)
		return;
	i->host->free(i->host, i->channel);
	i->host->free(i->host, i);
}

static int channels(void *self, const struct loom_layout *layout,
		    const struct loom_channel *channel, uint32_t n, struct loom_error *err)
{
	struct instance *i = self;
	struct loom_channel *copy = i->host->alloc(i->host, n * sizeof(*copy));
	(void)layout;
	if (!copy)
		return LOOM_FAIL(i->host, err, LOOM_ENOMEM, NAME ": out of memory");
	if (n)
		memcpy(copy, channel, n * sizeof(*copy));
	i->host->free(i->host, i->channel);
	i->channel = copy;
	i->channels = n;
	return 0;
}

/* Where everything lies; into *head when it is not NULL. Gives the bytes. */
static uint64_t lay_out(const struct instance *i, struct block *head)
{
	uint64_t at = (sizeof(*head) + i->channels * sizeof(struct b_channel) + 63) & ~63ull;
	for (uint32_t n = 0; n < i->channels; n++) {
		const struct loom_channel *want = &i->channel[n];
		struct b_channel k = {.slots = want->slots,
				      .readers = want->readers,
				      .from = want->from,
				      .stride = (want->item_bytes + 63) & ~63ull,
				      .slot_at = at};
		k.data_at = at + k.slots * sizeof(struct b_slot);
		at = k.data_at + k.slots * k.stride;
		if (head)
			((struct b_channel *)(head + 1))[n] = k;
	}
	return at;
}

static int need(void *self, const struct loom_layout *layout, struct loom_need *need,
		struct loom_error *err)
{
	(void)layout, (void)err;
	need->global = lay_out(self, NULL);
	return 0;
}

static int init(void *self, const struct loom_layout *layout, const struct loom_view *view,
		struct loom_error *err)
{
	struct instance *i = self;
	struct block *head = view->global;
	(void)layout, (void)err;
	*head = (struct block){.channels = i->channels};
	lay_out(i, head);
	for (uint32_t n = 0; n < i->channels; n++) {
		const struct b_channel *k = (const struct b_channel *)(head + 1) + n;
		memset((char *)head + k->slot_at, 0, k->slots * sizeof(struct b_slot));
	}
	return 0;
}

/* While workers run: ends every wait. */
static void interrupt(void *self, const struct loom_layout *layout, const struct loom_view *view,
		      int code, uint32_t device)
{
	struct block *head = view->global;
	(void)self, (void)layout;
	__atomic_store_n(&head->ended_device, device, __ATOMIC_RELAXED);
	/* Release: pairs with the acquire in await, which reads the device afterwards. */
	__atomic_store_n(&head->ended, (uint32_t)-code, __ATOMIC_RELEASE);
}

static const struct loom_sync_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .destroy = destroy,
    .need = need,
    .init = init,
    .channels = channels,
    .interrupt = interrupt,
};
static const struct loom_sync_dev cpu = {
    .size = sizeof(cpu),
    .reserve = b_reserve,
    .publish = b_publish,
    .wait = b_wait,
    .wait_all = b_wait_all,
    .release = b_release,
};
static const struct loom_device_code dev = {
    .size = sizeof(dev),
    .cpu = &cpu,
};

LOOM_PLUGIN_DEFINE(SYNC, NAME, "0.1.0", "Apache-2.0", "consumers that look until the item is there",
		   .ops = &ops, .dev = &dev)

#endif
