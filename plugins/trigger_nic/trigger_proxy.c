/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of trigger_proxy. A host thread takes descriptors that devices have built, counts them, and sends. The
 * trigger list counts fires and queues runs, as it does in the other plug-ins with a NIC. If the descriptor was built
 * from the post that becomes due, the operation is taken from the descriptor. Otherwise, for example if the fire
 * preceded the post, the operation is taken from the post. */
#include "../trigger_common/nic/nic.h"
#include "trigger_proxy.dev.h"

#define BATCH 64u

struct proxy_state {
	struct loom_trigger_post what; /* if is_stalled: an operation for which the provider had no room */
	uint32_t post;		       /* index of its post in nic.list */
	int is_stalled;
};

static struct proxy_entry *table(const struct nic *nic)
{
	return (struct proxy_entry *)(nic->base + nic->shape.extra_at);
}

static struct proxy_ring *ring(const struct nic *nic, uint32_t device)
{
	return (struct proxy_ring *)((char *)(table(nic) + nic->shape.extra) + device * proxy_ring_bytes(nic->fifo));
}

static uint64_t proxy_extra(const struct nic *nic, uint64_t *entries)
{
	*entries = (uint64_t)nic->list.mask + 1;
	return *entries * sizeof(struct proxy_entry) + nic->devices * proxy_ring_bytes(nic->fifo);
}

static int proxy_start(struct nic *nic, struct loom_error *err)
{
	if (!nic->own)
		nic->own = nic->host->alloc(nic->host, sizeof(struct proxy_state));
	return nic->own ? 0 : LOOM_FAIL(nic->host, err, LOOM_ENOMEM, "trigger_proxy: out of memory");
}

static void proxy_reset(struct nic *nic)
{
	((struct proxy_state *)nic->own)->is_stalled = 0;
}

/* ---- the table of the next posts ---------------------------------------------------------------------- */

static uint64_t id_of(const struct nic *nic, uint32_t post)
{
	return (uint64_t)nic->list.post[post].generation << 32 | post;
}

/* Writes the next post of a counter to the table from which devices build descriptors, or clears the counter's entry in
 * this table. */
static void proxy_publish(struct nic *nic, uint32_t counter)
{
	const struct list_counter *c = &nic->list.counter[counter];
	struct proxy_entry *e = &table(nic)[counter];
	uint64_t word[PROXY_BUILT] = {0};
	if (c->first != LIST_NONE) {
		const struct loom_trigger_post *w = &nic->list.post[c->first].what;
		word[PROXY_ID] = id_of(nic, c->first);
		word[PROXY_OP] = (uint64_t)w->target << 32 | (uint64_t)w->flags << 16 | w->type << 8 | w->op;
		word[PROXY_LOCAL] = w->local;
		word[PROXY_REMOTE] = w->remote;
		word[PROXY_BYTES] = w->bytes;
		word[PROXY_SLOTS] = (uint64_t)w->notify << 32 | w->slot;
	}
	if (e->tag == c->tag && e->word[PROXY_ID] == word[PROXY_ID])
		return;
	__atomic_store_n(&e->version, e->version + 1, __ATOMIC_RELAXED);
	/* Each store is a release: it pairs with the fence in proxy_read_entry(). So a device that loads a new word
	 * also sees the odd version. */
	for (uint32_t k = 0; k < PROXY_BUILT; k++)
		__atomic_store_n(&e->word[k], word[k], __ATOMIC_RELEASE);
	/* Release: pairs with the acquires in proxy_read_entry(). */
	__atomic_store_n(&e->version, e->version + 1, __ATOMIC_RELEASE);
	__atomic_store_n(&e->tag, c->tag, __ATOMIC_RELEASE);
}

static void proxy_posted(struct nic *nic, uint64_t tag)
{
	uint32_t counter = tag > LOOM_TAG_MAX ? LIST_NONE : list_find(&nic->list, tag);
	if (counter != LIST_NONE)
		proxy_publish(nic, counter);
}

/* ---- descriptors -------------------------------------------------------------------------------------- */

/* Decodes a descriptor into a post, and checks it, because a device wrote it. Returns 0 if the post cannot run. */
static int decode(const struct nic *nic, const uint64_t *word, uint32_t post, struct loom_trigger_post *w)
{
	const struct loom_trigger_post *posted = &nic->list.post[post].what;
	*w = *posted;
	w->op = word[PROXY_OP] & 0xff;
	w->type = word[PROXY_OP] >> 8 & 0xff;
	w->target = (uint32_t)(word[PROXY_OP] >> 32);
	w->local = word[PROXY_LOCAL];
	w->remote = word[PROXY_REMOTE];
	w->bytes = word[PROXY_BYTES];
	w->slot = (uint32_t)word[PROXY_SLOTS];
	w->notify = (uint32_t)(word[PROXY_SLOTS] >> 32);
	w->flags = 0; /* the device has already applied the argument */
	int remote = w->op == LOOM_NET_PUT || w->op == LOOM_NET_GET || w->op == LOOM_NET_ADD;
	if (w->op != posted->op || w->type != posted->type || w->slot >= nic->table.slots)
		return 0;
	if ((posted->flags & LOOM_NET_LOCAL_FROM_FIRE && w->local - posted->local > posted->window) ||
	    (posted->flags & LOOM_NET_REMOTE_FROM_FIRE && w->remote - posted->remote > posted->window))
		return 0;
	return w->op == LOOM_NET_COUNT ||
	       (w->target < nic->host->ranks &&
		!nic_fabric_check(nic, nic->host->rank, w->local, w->bytes) &&
		!(remote && nic_fabric_check(nic, w->target, w->remote, w->bytes)));
}

/* Runs the operations that a descriptor has made due, in the order of the queue. */
static void run(struct nic *nic, const uint64_t *word)
{
	struct proxy_state *own = nic->own;
	struct list_run due;
	while (!own->is_stalled && list_next(&nic->list, &due)) {
		struct loom_trigger_post w;
		if (word[PROXY_ID] != id_of(nic, due.post)) {
			nic->stalled = due;
			nic->is_stalled = 1;
			nic_run_due(nic);
			return; /* the next nic_run_due() runs the rest of the queue */
		}
		if (!decode(nic, word, due.post, &w)) {
			nic_fail(nic, LOOM_EIO, "a descriptor from the device names no operation, rank or memory");
			list_done(&nic->list, due.post);
			continue;
		}
		own->is_stalled = nic_run(nic, &w, due.post, 0) == LOOM_EAGAIN;
		own->what = w;
		own->post = due.post;
	}
}

static void take(struct nic *nic, const uint64_t *word)
{
	uint64_t tag = word[PROXY_COMMIT] >> 16;
	nic_count(nic, tag, word[PROXY_COMMIT] >> 2 & NIC_COUNT_MAX, word[PROXY_ARGUMENT]);
	if (!list_queued(&nic->list))
		return;
	run(nic, word);
	proxy_posted(nic, tag);
}

static int committed(const struct nic *nic, uint32_t device, const uint64_t **word)
{
	uint64_t n = nic->cursor[device];
	*word = (const uint64_t *)(ring(nic, device) + 1) + (n & (nic->fifo - 1)) * PROXY_WORDS;
	/* Acquire: pairs with the release in proxy_send(). */
	return (__atomic_load_n(&(*word)[PROXY_COMMIT], __ATOMIC_ACQUIRE) & 1) == nic_lap(n, nic->fifo);
}

static uint32_t proxy_poll(struct nic *nic)
{
	struct proxy_state *own = nic->own;
	uint32_t work = 0;
	if (own->is_stalled)
		own->is_stalled = nic_run(nic, &own->what, own->post, 0) == LOOM_EAGAIN;
	for (uint32_t d = 0; d < nic->devices; d++) {
		uint64_t begin = nic->cursor[d];
		const uint64_t *word;
		while (nic->cursor[d] - begin < BATCH && !own->is_stalled && !nic_backlog(nic) &&
		       committed(nic, d, &word)) {
			take(nic, word);
			nic->cursor[d]++;
		}
		if (nic->cursor[d] == begin)
			continue;
		/* Release: pairs with the acquire in nic_await_slot(). */
		__atomic_store_n(&ring(nic, d)->tail, nic->cursor[d], __ATOMIC_RELEASE);
		work += (uint32_t)(nic->cursor[d] - begin);
	}
	nic->fires += work;
	return work;
}

static int proxy_busy(struct nic *nic)
{
	return ((const struct proxy_state *)nic->own)->is_stalled;
}

static int proxy_drained(struct nic *nic)
{
	const uint64_t *word;
	for (uint32_t d = 0; d < nic->devices; d++)
		if (committed(nic, d, &word))
			return 0;
	return 1;
}

static const struct nic_ops proxy = {.name = "trigger_proxy",
				     .extra = proxy_extra,
				     .reset = proxy_reset,
				     .posted = proxy_posted,
				     .poll = proxy_poll,
				     .drained = proxy_drained,
				     .busy = proxy_busy,
				     .start = proxy_start};

NIC_PLUGIN(trigger_proxy, "GPU host networking: workers write whole descriptors, a host thread sends", proxy)
