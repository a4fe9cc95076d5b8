/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_peer works without a NIC. The lane whose fire reaches a threshold moves the data itself, into the memory of
 * the other rank, and then raises the arrival word there. Device code. The host posts, and runs what is due at once, by
 * the same code. Each tag in use has a counter with its posts in the order of thresholds. A fire adds to `work` of the
 * counter. The lane that found 0 there serves the counter: only this lane takes what was added, changes the posts and
 * runs those that are due. It ends by resetting `work` to 0 from the value that it has taken, which fails if lanes have
 * added more meanwhile. So lanes that only add do not wait, and operations of a counter never overlap. The host, and a
 * fire with an argument, claim an idle counter by adding PEER_CLAIM. Counters are words of one device, with atomics of
 * device scope. Only the data, and then the arrival word, go to other ranks.
 *
 * Paired posts (`paired` in trigger.h) take a shorter path. Their records are constant while workers run, and have
 * addresses in place of references. Threshold 1 needs no counter. Data travel as marked words (dev.h): 8 bytes and the
 * number of the message, stored by all lanes that fire together. The first word goes into the line of the arrival word,
 * where the receiver polls. The other words go into the stage, a buffer of the receiver's rank, from which the receiver
 * copies them to their place. So a message needs no release across the link. A message without room in the stage is copied
 * to its place, before one release. */
#ifndef TRIGGER_PEER_DEV_H
#define TRIGGER_PEER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/nic/nic.dev.h"
#endif

/* A rank's segment in the address space of these workers. at = 0: unreachable. */
struct peer_window {
	uint64_t at, bytes;
};

/* Windows of each rank: its segments, then its arrival words and its stage. */
enum { PEER_ARRIVALS = 0, PEER_STAGE, PEER_PARTS };
#define PEER_WINDOWS(segments) ((segments) + PEER_PARTS)

/* Head of the block for the stack. struct nic_shape says where the rest is, with `extra` counters at extra_at; the
 * fields here do so for posts and windows. */
struct peer_head {
	int64_t failed; /* the first failure, an enum loom_err */
	uint64_t post_at, window_at; /* bytes from the start of the block */
	uint64_t posts;
	uint32_t rank, ranks;
	uint32_t segments; /* windows of segments of each rank: PEER_WINDOWS */
	uint32_t stamp;
	uint64_t token; /* lets other ranks check that they have mapped this block */
	/* struct peer_flat, `flats` of them, a power of two; as many struct peer_flow; the stage. */
	uint64_t flat_at;
	uint64_t stage_at;
	uint32_t flats, pad0;
	uint64_t pad[6];
};

/* A paired post; found by its tag. Constant while workers run. */
struct peer_flat {
	uint64_t tag; /* 0: free */
	loom_ref local, remote;
	uint64_t line; /* address of the arrival word at the target; 0: of the own rank */
	uint64_t to; /* address of the words behind the first, or of the place; of the own rank: offset in the block */
	uint32_t words; /* number of words of 8 bytes */
	uint32_t threshold, slot, notify;
	uint32_t stage; /* bytes from the start of the stage */
	uint16_t once;	/* 1: the post does not re-arm */
	uint16_t staged;
};
/* The progress of a post; has the index of the post. */
struct peer_flow {
	uint64_t counted; /* fires, if they need to be counted */
	uint64_t sent;
	uint64_t pad[6];
};

/* The line of an arrival word, as in struct nic_arrival. The sender of paired messages writes `first` and its mark
 * in one store; before its first message it writes where the words go. */
struct peer_arrival {
	int64_t count;
	uint64_t at_ns;
	uint64_t first[2];
	uint64_t taken; /* number of messages that are in their place; written by the receiver */
	loom_ref to;
	uint64_t words; /* 0: no paired message has arrived */
	uint64_t stage;
};

enum { PEER_FREE = 0, PEER_WAITS };

/* A post. Indices of posts and counters start at 1; 0 stands for none. */
struct peer_post {
	uint64_t threshold, rearm;
	loom_ref local, remote;
	uint64_t bytes, window, chain;
	uint32_t op, target, slot, notify, type, flags;
	uint32_t next;	  /* next post of its counter */
	uint32_t counter; /* written only by the host, as is the generation */
	uint32_t generation;
	uint32_t state;
};

struct peer_counter {
	uint64_t tag;  /* 0: free; set once in a sample */
	uint64_t work; /* 0: no lane serves the counter; otherwise the sum added since a lane began to serve it */
	/* State of the lane that serves the counter: */
	uint64_t taken; /* the part of `work` that it has taken */
	uint64_t value;
	uint64_t runs;
	uint32_t first, last; /* indices of posts */
	uint32_t return_to; /* the counter that has triggered this one, and is served after it */
	uint32_t pad[3];
};
#define PEER_CLAIM (1ull << 63)
/* Value of slots and arrival words after a failure; increments may follow. struct peer_head has the cause. */
#define PEER_FAILED (INT64_MIN / 2)

LOOM_FN struct peer_head *peer_head(const struct loom_ctx *c)
{
	return (struct peer_head *)c->global[LOOM_TRIGGER];
}
LOOM_FN struct peer_counter *peer_counter(const struct loom_ctx *c, uint32_t at)
{
	return (struct peer_counter *)nic_at(c, nic_shape(c)->extra_at) + (at - 1);
}
LOOM_FN struct peer_post *peer_post(const struct loom_ctx *c, uint32_t at)
{
	return (struct peer_post *)nic_at(c, peer_head(c)->post_at) + (at - 1);
}
LOOM_FN struct nic_slot *peer_slot(const struct loom_ctx *c, uint32_t slot)
{
	return (struct nic_slot *)nic_at(c, nic_shape(c)->slot_at) + slot;
}

/* Returns the counter of a tag, created if needed. 0: there is no room. Any number of lanes may search at once. */
LOOM_FN uint32_t peer_find(const struct loom_ctx *c, uint64_t tag)
{
	uint64_t entries = nic_shape(c)->extra, i = (tag * 0x9e3779b97f4a7c15ull) >> 32;
	for (uint64_t n = 0; n < entries - entries / 8; n++, i++) {
		uint32_t at = (uint32_t)(i & (entries - 1)) + 1;
		uint64_t *have = &peer_counter(c, at)->tag, is = loom_load_relaxed_dev(have);
		/* Relaxed: no other data are published with the tag, and all of the counter starts at 0. */
		if (is == tag || (!is && (loom_cas_acq_rel_dev(have, &is, tag) || is == tag)))
			return at;
	}
	return 0;
}

/* Ends all waits of this rank. */
LOOM_FN void peer_fail(const struct loom_ctx *c, int code)
{
	const struct nic_shape *s = nic_shape(c);
	struct nic_arrival *a = (struct nic_arrival *)nic_at(c, s->arrival_at);
	uint64_t none = 0;
	/* Release: pairs with the acquires in nic_poll_word(): a negative word implies the cause. */
	if (loom_cas_acq_rel_sys((uint64_t *)&peer_head(c)->failed, &none, (uint64_t)(int64_t)code))
		for (uint32_t i = 0; i < s->arrivals; i++)
			loom_store_release_sys((uint64_t *)&a[i].count, (uint64_t)PEER_FAILED);
}

/* ---- operations --------------------------------------------------------------------------------------- */

LOOM_FN const struct peer_window *peer_window(const struct loom_ctx *c, uint32_t rank, uint32_t segment)
{
	const struct peer_head *h = peer_head(c);
	return (const struct peer_window *)nic_at(c, h->window_at) + (uint64_t)rank * PEER_WINDOWS(h->segments) + segment;
}

/* Returns the address of `bytes` at `ref` of a rank, or NULL if these workers cannot access them. */
LOOM_FN char *peer_reach(const struct loom_ctx *c, uint32_t rank, loom_ref ref, uint64_t bytes)
{
	const struct peer_head *h = peer_head(c);
	uint32_t segment = LOOM_REF_SEGMENT(ref);
	uint64_t offset = LOOM_REF_OFFSET(ref);
	if (rank >= h->ranks || segment >= h->segments)
		return (char *)NULL;
	const struct peer_window *w = peer_window(c, rank, segment);
	if (offset > w->bytes || bytes > w->bytes - offset)
		return (char *)NULL;
	if (rank == h->rank) /* each device has addresses of its own */
		return c->segment[segment] ? (char *)loom_at(c, ref) : (char *)NULL;
	return w->at ? (char *)w->at + offset : (char *)NULL;
}

/* Moves whole words, several at once, since a GPU's loads then overlap. Relaxed: peer_run() orders them. */
#define PEER_WORDS 16u
LOOM_FN void peer_copy(char *to, const char *from, uint64_t bytes)
{
	uint64_t i = 0, word[PEER_WORDS];
	int whole = (((uintptr_t)to | (uintptr_t)from) & 7) == 0;
	for (; whole && i + sizeof(word) <= bytes; i += sizeof(word)) {
		for (uint32_t k = 0; k < PEER_WORDS; k++)
			word[k] = loom_load_relaxed_sys((const uint64_t *)(from + i) + k);
		for (uint32_t k = 0; k < PEER_WORDS; k++)
			loom_store_relaxed_sys((uint64_t *)(to + i) + k, word[k]);
	}
	for (; whole && i + 8 <= bytes; i += 8)
		loom_store_relaxed_sys((uint64_t *)(to + i), loom_load_relaxed_sys((const uint64_t *)(from + i)));
	for (; i < bytes; i++)
		to[i] = from[i];
}

LOOM_FN void peer_add_floats(uint32_t *to, const uint32_t *from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		union {
			uint32_t bits;
			float is;
		} add, sum;
		add.bits = from[i];
		uint32_t had = loom_load_relaxed_sys(&to[i]);
		do {
			sum.bits = had;
			sum.is += add.is;
		} while (!loom_cas_acq_rel_sys(&to[i], &had, sum.bits));
	}
}

/* Applies what a fire has supplied (GPU-TN, 3.4). Returns 0 if the post does not allow it. */
LOOM_FN int peer_apply(struct peer_post *w, uint64_t argument)
{
	uint64_t offset = argument & 0xffffffffffffull;
	if (w->flags & (LOOM_NET_LOCAL_FROM_FIRE | LOOM_NET_REMOTE_FROM_FIRE) && offset > w->window)
		return 0;
	if (w->flags & LOOM_NET_TARGET_FROM_FIRE)
		w->target = (uint32_t)(argument >> 48);
	if (w->flags & LOOM_NET_LOCAL_FROM_FIRE)
		w->local += offset;
	if (w->flags & LOOM_NET_REMOTE_FROM_FIRE)
		w->remote += offset;
	return 1;
}

/* Moves the data. Returns 0, LOOM_EIO for unreachable memory, or LOOM_EINVAL if elements to add are not aligned. */
LOOM_FN int peer_move(const struct loom_ctx *c, const struct peer_post *w)
{
	char *here = peer_reach(c, peer_head(c)->rank, w->local, w->bytes);
	char *there = peer_reach(c, w->target, w->remote, w->bytes);
	if (!here || !there)
		return LOOM_EIO;
	if (w->op == LOOM_NET_ADD && ((uintptr_t)here | (uintptr_t)there) % (w->type == LOOM_NET_F32 ? 4 : 8))
		return LOOM_EINVAL;
	if (w->op == LOOM_NET_PUT)
		peer_copy(there, here, w->bytes);
	else if (w->op == LOOM_NET_GET)
		peer_copy(here, there, w->bytes);
	else if (w->type == LOOM_NET_F32)
		peer_add_floats((uint32_t *)there, (const uint32_t *)here, w->bytes / 4);
	else
		for (uint64_t i = 0; i < w->bytes / 8; i++)
			loom_fetch_add_relaxed_sys((uint64_t *)there + i, ((const uint64_t *)here)[i]);
	return 0;
}

LOOM_FN struct nic_arrival *peer_arrivals(const struct loom_ctx *c, uint32_t rank, uint64_t *words)
{
	const struct peer_head *h = peer_head(c);
	const struct peer_window *w = peer_window(c, rank, h->segments);
	*words = w->bytes / sizeof(struct nic_arrival);
	return (struct nic_arrival *)(rank == h->rank ? nic_at(c, nic_shape(c)->arrival_at) : (void *)w->at);
}

/* Runs one operation. Returns 0, or the error if it failed. */
LOOM_FN int peer_run(const struct loom_ctx *c, struct peer_post *w, uint64_t argument)
{
	if (w->flags && !peer_apply(w, argument))
		return LOOM_EIO;
	int rc = w->op != LOOM_NET_COUNT ? peer_move(c, w) : 0;
	if (rc)
		return rc;
	if (w->notify) {
		uint64_t words;
		struct nic_arrival *a = peer_arrivals(c, w->target, &words);
		if (w->notify >= words)
			return LOOM_EIO;
		if (peer_head(c)->stamp)
			loom_store_relaxed_sys(&a[w->notify].at_ns, loom_clock_ns(c));
		/* Release at system scope: pairs with the acquire in nic_poll_word() at the target. The data, stored by
		 * this lane, precede it; other lanes' writes were acquired with `work` and copied. */
		loom_fetch_add_release_sys((uint64_t *)&a[w->notify].count, (uint64_t)1);
	}
	return 0;
}

/* ---- counters and their posts ---------------------------------------------------------------------------- */

/* Inserts a post in the order of thresholds, behind equal ones. Called by the lane that serves the counter. */
LOOM_FN void peer_insert(const struct loom_ctx *c, struct peer_counter *k, uint32_t at)
{
	struct peer_post *p = peer_post(c, at);
	uint32_t before = k->last;
	if (before && peer_post(c, before)->threshold > p->threshold) { /* rare: search from the front */
		before = 0;
		for (uint32_t i = k->first; peer_post(c, i)->threshold <= p->threshold; i = peer_post(c, i)->next)
			before = i;
	}
	p->next = before ? peer_post(c, before)->next : k->first;
	if (before)
		peer_post(c, before)->next = at;
	else
		k->first = at;
	if (!p->next)
		k->last = at;
}

/* Removes the first post, and inserts it again if it re-arms. Returns 1 if its place is free after the run. */
LOOM_FN int peer_take(const struct loom_ctx *c, struct peer_counter *k, struct peer_post *copy)
{
	uint32_t at = k->first;
	struct peer_post *p = peer_post(c, at);
	*copy = *p;
	k->first = p->next;
	if (!k->first)
		k->last = 0;
	k->runs++;
	/* A threshold beyond the counter's range is never reached. */
	if (!p->rearm || p->threshold + p->rearm < p->threshold)
		return 1;
	p->threshold += p->rearm;
	peer_insert(c, k, at);
	return 0;
}

/* Runs the first post, which is due. Returns the counter to which its completion adds, to serve it next, or 0. */
LOOM_FN uint32_t peer_first(const struct loom_ctx *c, struct peer_counter *k, uint64_t argument)
{
	struct peer_post w;
	uint32_t at = k->first, next;
	int spent = peer_take(c, k, &w), rc = peer_run(c, &w, argument);
	if (w.slot && !rc)
		/* Release: pairs with the acquire in nic_poll_word(). The buffer was read, or filled by a get. */
		loom_fetch_add_release_dev((uint64_t *)&peer_slot(c, w.slot)->completed, (uint64_t)1);
	else if (w.slot)
		loom_store_release_dev((uint64_t *)&peer_slot(c, w.slot)->completed, (uint64_t)PEER_FAILED);
	if (rc)
		peer_fail(c, rc);
	if (spent)
		/* Release: pairs with the host's acquire when it reuses the place. */
		loom_store_release_sys(&peer_post(c, at)->state, (uint32_t)PEER_FREE);
	if (!w.chain || rc)
		return 0;
	next = peer_find(c, w.chain);
	if (!next) {
		peer_fail(c, LOOM_EFULL);
		return 0;
	}
	return loom_fetch_add_acq_rel_dev(&peer_counter(c, next)->work, (uint64_t)1) == 0 ? next : 0;
}

/* Called by the lane that serves the counter. Takes n more of what was added to `work`, up to `taken`. */
LOOM_FN void peer_add(struct peer_counter *k, uint64_t n, uint64_t taken)
{
	k->value = n > UINT64_MAX - k->value ? UINT64_MAX : k->value + n;
	k->taken = taken;
}

/* Called by the lane that serves counter `bottom`, whose `taken` is set. Runs all posts that are due, or become due
 * meanwhile. argument: for posts due at the present value. */
LOOM_FN void peer_serve(const struct loom_ctx *c, uint32_t bottom, uint64_t argument)
{
	uint32_t at = bottom;
	peer_counter(c, bottom)->return_to = 0;
	while (at) {
		struct peer_counter *k = peer_counter(c, at);
		if (k->first && peer_post(c, k->first)->threshold <= k->value) {
			uint32_t next = peer_first(c, k, at == bottom ? argument : 0);
			if (next) { /* first the triggered counter, then the rest of this one */
				peer_counter(c, next)->return_to = at;
				peer_add(peer_counter(c, next), 1, 1);
				at = next;
			}
			continue;
		}
		argument = at == bottom ? 0 : argument;
		/* Acquire: pairs with the releases of fires; their lanes' earlier writes are visible. */
		uint64_t work = loom_load_acquire_dev(&k->work);
		if (work != k->taken) {
			peer_add(k, work - k->taken, work);
			continue;
		}
		uint32_t return_to = k->return_to;
		/* Release: the next lane that serves this counter acquires `work`, and sees the posts as this lane left
		 * them. */
		if (loom_cas_acq_rel_dev(&k->work, &work, (uint64_t)0))
			at = return_to;
	}
}

/* Claims a counter that no lane serves. Returns 1, or 0 if a lane serves it. */
LOOM_FN int peer_claim(struct peer_counter *k)
{
	uint64_t none = 0;
	if (!loom_cas_acq_rel_dev(&k->work, &none, PEER_CLAIM))
		return 0;
	k->taken = PEER_CLAIM;
	return 1;
}

LOOM_FN int64_t peer_seen(struct loom_ctx *c, int64_t n)
{
	/* Acquired with the word: see peer_fail. */
	int64_t failed = n < PEER_FAILED / 2 ? (int64_t)loom_load_relaxed_sys((uint64_t *)&peer_head(c)->failed) : 0;
	return failed ? failed : n < PEER_FAILED / 2 ? LOOM_EIO : n;
}

/* ---- paired posts ---------------------------------------------------------------------------------------- */

/* Index of the paired post of a tag; PEER_NONE: there is none. Plain loads, which a GPU caches, of constants. */
#define PEER_NONE 0xffffffffu
LOOM_FN uint32_t peer_flat_index(const struct loom_ctx *c, uint64_t tag)
{
	const struct peer_head *h = peer_head(c);
	const struct peer_flat *f = (const struct peer_flat *)nic_at(c, h->flat_at);
	uint32_t i = (uint32_t)((tag * 0x9e3779b97f4a7c15ull) >> 32);
	for (uint32_t n = 0; n < h->flats && f[i & (h->flats - 1)].tag; i++, n++)
		if (f[i & (h->flats - 1)].tag == tag)
			return i & (h->flats - 1);
	return PEER_NONE;
}
LOOM_FN struct peer_flat *peer_flat(const struct loom_ctx *c, uint32_t at)
{
	return (struct peer_flat *)nic_at(c, peer_head(c)->flat_at) + at;
}
LOOM_FN struct peer_flow *peer_flow(const struct loom_ctx *c, uint32_t at)
{
	return (struct peer_flow *)(peer_flat(c, 0) + peer_head(c)->flats) + at;
}
LOOM_FN struct peer_arrival *peer_arrival(const struct loom_ctx *c, uint32_t index)
{
	return (struct peer_arrival *)nic_at(c, nic_shape(c)->arrival_at) + index;
}

/* Counts n fires. Returns the number of the message that is due now; 0: none is. */
LOOM_FN uint64_t peer_count(const struct loom_ctx *c, uint32_t at, uint32_t n)
{
	const struct peer_flat *f = peer_flat(c, at);
	/* Release: the payload precedes it. Acquire, by the lane that sends: what other lanes wrote before. */
	uint64_t before = loom_fetch_add_acq_rel_dev(&peer_flow(c, at)->counted, (uint64_t)n), after = before + n;
	if (f->once)
		return before < f->threshold && after >= f->threshold;
	if (after >> 32)
		return after / f->threshold > before / f->threshold ? after / f->threshold : 0;
	uint32_t is = (uint32_t)after / f->threshold; /* a division of 64 bits takes a GPU five times as long */
	return is > (uint32_t)before / f->threshold ? is : 0;
}

/* The number of the message that `n` fires of a post with threshold 1 send last; 0: none. */
LOOM_FN uint64_t peer_next(const struct loom_ctx *c, uint32_t at, uint32_t n)
{
	uint64_t sent = peer_flow(c, at)->sent;
	return peer_flat(c, at)->once ? sent == 0 : sent + n;
}

/* Words that a lane loads before it stores the first: the loads overlap. */
#define PEER_BATCH 4u

/* Sends this lane's words of message n. */
LOOM_FN void peer_send(const struct loom_ctx *c, const struct peer_flat *f, uint64_t n, uint32_t lane, uint32_t lanes)
{
	const uint64_t *from = (const uint64_t *)loom_at(c, f->local);
	struct peer_arrival *a = f->line ? (struct peer_arrival *)f->line : peer_arrival(c, f->notify);
	uint64_t *to = (uint64_t *)(f->line ? (char *)f->to :
				    f->staged ? (char *)nic_at(c, f->to) : (char *)loom_at(c, f->remote));
	if (n == 1 && lane == 0 && f->staged) {
		loom_store_relaxed_sys(&a->to, f->remote);
		loom_store_relaxed_sys(&a->stage, (uint64_t)f->stage);
		loom_store_relaxed_sys(&a->words, (uint64_t)f->words);
		/* Once for all messages. Pairs with the fence in peer_take_in. */
		loom_fence_release_sys();
	}
	for (uint32_t i = lane; i < f->words; i += PEER_BATCH * lanes) {
		uint64_t word[PEER_BATCH] = {0};
		for (uint32_t b = 0; b < PEER_BATCH; b++)
			if (i + b * lanes < f->words)
				word[b] = from[i + b * lanes];
		for (uint32_t b = 0; b < PEER_BATCH; b++) {
			uint32_t k = i + b * lanes;
			if (k < f->words && f->staged)
				loom_store_marked_sys(k ? to + 2 * (uint64_t)(k - 1) : a->first, word[b], n);
			else if (k < f->words)
				loom_store_relaxed_sys(to + k, word[b]);
		}
	}
}

/* Ends what peer_send() began: by one lane, after all lanes have sent and met. */
LOOM_FN void peer_sent(const struct loom_ctx *c, uint32_t at, uint64_t n)
{
	const struct peer_flat *f = peer_flat(c, at);
	struct peer_arrival *a = f->line ? (struct peer_arrival *)f->line : peer_arrival(c, f->notify);
	/* Release: pairs with the acquire in nic_poll_word at the target. The data precede it: this lane stored them, or
	 * has met the lanes that did. */
	if (!f->staged)
		loom_store_release_sys((uint64_t *)&a->count, n);
	peer_flow(c, at)->sent = n;
	if (!f->slot)
		return;
	uint64_t *completed = (uint64_t *)&peer_slot(c, f->slot)->completed;
#ifdef LOOM_DEVICE_COMPILE
	/* The buffer has been read: a lane issues no store before it has the value. A release would wait until all
	 * stores have crossed the link. */
	loom_store_relaxed_dev(completed, n);
#else
	loom_store_release_dev(completed, n); /* pairs with the acquire in nic_poll_word */
#endif
}

/* By one lane that fires. */
LOOM_FN void peer_fire_flat(const struct loom_ctx *c, uint32_t at, uint32_t count)
{
	uint64_t n = peer_flat(c, at)->threshold > 1 ? peer_count(c, at, count) : peer_next(c, at, count);
	if (!n)
		return;
	peer_send(c, peer_flat(c, at), n, 0, 1);
	peer_sent(c, at, n);
}

LOOM_FN const uint64_t *peer_staged(const struct loom_ctx *c, const struct peer_arrival *a, uint64_t k)
{
	return k ? (const uint64_t *)((char *)nic_at(c, peer_head(c)->stage_at) + a->stage) + 2 * (k - 1) : a->first;
}

/* By one lane of the receiver, which has seen a mark: puts message `mark` in its place. Returns the number of messages
 * that are in their place, or minus a failure. */
LOOM_FN int64_t peer_take_in(struct loom_ctx *c, struct peer_arrival *a, uint64_t mark)
{
	uint64_t taken = a->taken, word;
	int64_t count = (int64_t)loom_load_relaxed_sys((uint64_t *)&a->count);
	if (count < 0)
		return peer_seen(c, count);
	if (mark == taken)
		return (int64_t)taken;
	if (!taken)
		loom_fence_acquire_sys(); /* pairs with the fence in peer_send: the rest of the line is there */
	uint64_t words = loom_load_relaxed_sys(&a->words), *to = (uint64_t *)loom_at(c, loom_load_relaxed_sys(&a->to));
	for (uint64_t k = 0; k < words; k++) {
		if (loom_load_marked_sys(peer_staged(c, a, k), &word) < mark)
			return (int64_t)taken; /* not yet */
		to[k] = word;
	}
	a->taken = mark;
	return (int64_t)mark;
}

/* ---- ops -------------------------------------------------------------------------------------------------- */

LOOM_FN int trigger_peer_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (!nic_may_fire(tag, count))
		return LOOM_EINVAL;
	struct loom_match peers = loom_match(tag);
	uint64_t sum = loom_match_sum(peers, count);
	if (!loom_match_leader(peers))
		return 0;
	uint32_t flat = peer_flat_index(c, tag), at = 0;
	if (flat != PEER_NONE) {
		peer_fire_flat(c, flat, sum);
		return 0;
	}
	at = peer_find(c, tag);
	if (!at) {
		peer_fail(c, LOOM_EFULL);
		return 0;
	}
	/* Release: the payload precedes it. Acquire, to serve: other lanes' writes before their fires. */
	if (loom_fetch_add_acq_rel_dev(&peer_counter(c, at)->work, sum) == 0) {
		peer_add(peer_counter(c, at), sum, sum);
		peer_serve(c, at, 0);
	}
	return 0;
}

LOOM_FN int trigger_peer_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)
{
	if (tag - 1 >= LOOM_TAG_MAX)
		return LOOM_EINVAL;
	uint32_t at = peer_find(c, tag);
	if (!at) {
		peer_fail(c, LOOM_EFULL);
		return 0;
	}
	/* Under lock-step execution a lane must claim and release the counter in one iteration, or lanes deadlock. */
	for (int served = 0; !served;) {
		struct peer_counter *k = peer_counter(c, at);
		served = peer_claim(k);
		if (served) {
			k->value += k->value < UINT64_MAX;
			peer_serve(c, at, argument);
		} else if (loom_stopped(c)) {
			return LOOM_EINTR;
		} else {
			loom_pause(c);
		}
	}
	return 0;
}

LOOM_FN int64_t trigger_peer_completed(struct loom_ctx *c, uint32_t slot)
{
	return peer_seen(c, nic_completed(c, slot));
}

LOOM_FN int64_t trigger_peer_arrived(struct loom_ctx *c, uint32_t index)
{
	uint64_t word, mark = 0;
	struct peer_arrival *a = peer_arrival(c, index);
	if (index - 1 < nic_shape(c)->arrivals - 1)
		mark = loom_load_marked_sys(a->first, &word);
	if (!mark)
		return peer_seen(c, nic_arrived(c, index));
	struct loom_match together = loom_match((uint64_t)(uintptr_t)a);
	int64_t n = loom_match_leader(together) ? peer_take_in(c, a, mark) : 0;
	return (int64_t)loom_match_broadcast(together, (uint64_t)n);
}

LOOM_FN uint64_t trigger_peer_arrived_at(struct loom_ctx *c, uint32_t index)
{
	return nic_arrived_at(c, index);
}

/* ---- all lanes of a worker ---------------------------------------------------------------------------------- */

#define LOOM_TRIGGER_TOGETHER

LOOM_FN int trigger_peer_fire_together(struct loom_ctx *c, uint64_t tag)
{
	uint32_t at = peer_flat_index(c, tag);
	uint64_t n = 0;
	loom_barrier_lanes(c);
	if (at == PEER_NONE) {
		if (c->lane == 0)
			n = (uint64_t)(int64_t)trigger_peer_fire(c, tag, 1);
		return (int)(int64_t)loom_from_lane0(c, n);
	}
	if (peer_flat(c, at)->threshold > 1) {
		if (c->lane == 0)
			n = peer_count(c, at, 1);
		n = loom_from_lane0(c, n); /* also passes on what lane 0 has acquired */
	} else {
		n = peer_next(c, at, 1);
	}
	if (n)
		peer_send(c, peer_flat(c, at), n, c->lane, c->lanes);
	loom_barrier_lanes(c);
	if (n && c->lane == 0) /* other lanes read `sent` next after a barrier */
		peer_sent(c, at, n);
	return 0;
}

/* How a lane waits for its next words; lane 0 reports for all. */
enum { PEER_TAKEN = 1, PEER_STOPPED };

/* Waits until n has been reached by this lane's words from word i on, at most PEER_BATCH of them. */
LOOM_FN uint32_t peer_await_words(struct loom_ctx *c, const struct peer_arrival *a, uint64_t n, uint64_t i, uint64_t words,
				  uint64_t *word)
{
	for (uint32_t polls = 1;; polls++) {
		uint32_t missing = 0;
		for (uint32_t b = 0; b < PEER_BATCH; b++)
			if (i + b * c->lanes < words)
				missing |= loom_load_marked_sys(peer_staged(c, a, i + b * c->lanes), &word[b]) < n;
		if (!missing)
			return PEER_TAKEN;
		/* Rarely, as in loom_net_await_late(). */
		if (polls % 16 == 0 &&
		    ((int64_t)loom_load_relaxed_sys((const uint64_t *)&a->count) < 0 || loom_stopped(c)))
			return PEER_STOPPED;
#if defined(LOOM_DEVICE_COMPILE) && !defined(LOOM_SIM)
		if (polls % 16 == 0) /* a pause is half as long as what a poll waits for */
#endif
			loom_pause(c);
	}
}

LOOM_FN int trigger_peer_await_together(struct loom_ctx *c, uint32_t index, uint64_t n)
{
	struct peer_arrival *a = peer_arrival(c, index);
	/* The first message says whether there are more of its kind, which this worker has acquired with it. */
	if (n < 2 || index - 1 >= nic_shape(c)->arrivals - 1 || !a->words)
		return 0;
	uint64_t words = a->words, *to = (uint64_t *)loom_at(c, a->to);
	uint32_t how = PEER_TAKEN;
	/* All lanes of a wave run the loop, see LOOM_WAVE; those without a word poll the first one. */
	for (uint64_t i = c->lane; (i < words || (i == c->lane && i < LOOM_WAVE)) && how == PEER_TAKEN;
	     i += PEER_BATCH * c->lanes) {
		uint64_t word[PEER_BATCH] = {0};
		how = peer_await_words(c, a, n, i < words ? i : 0, i < words ? words : 1, word);
		for (uint32_t b = 0; b < PEER_BATCH && how == PEER_TAKEN; b++)
			if (i + b * c->lanes < words)
				to[i + b * c->lanes] = word[b];
	}
	if (c->lane == 0)
		a->taken = how == PEER_TAKEN ? n : a->taken;
	how = loom_word_from_lane0(c, how);
	if (how == PEER_TAKEN)
		return 1;
	int64_t failed = (int64_t)loom_load_relaxed_sys((const uint64_t *)&a->count);
	return failed < 0 ? (int)peer_seen(c, failed) : LOOM_EINTR;
}

NIC_RELAXED_IS_ORDERED(trigger_peer)
NIC_SENDS_AT_ONCE(trigger_peer)

#endif
