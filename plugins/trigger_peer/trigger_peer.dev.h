/* SPDX-License-Identifier: Apache-2.0 */
/* trigger_peer, device code. It works without a NIC. The lane whose fire reaches a threshold moves the data itself into
 * the memory of the other rank, and then raises the arrival word there. The host uses the same code to post, and to run
 * posts that are due at once.
 *
 * Each tag in use has a counter, which has the posts of the tag in the order of their thresholds. A fire adds to `work`
 * of the counter. The lane that finds 0 in `work` serves the counter: it takes what lanes have added, changes the posts
 * and runs the posts that are due. To end, the lane sets `work` from the value that it has taken to 0, by
 * compare-and-swap. The compare-and-swap fails if other lanes have added more; the lane then continues. So lanes that
 * only add do not wait, and operations of a counter never overlap. The host, and a fire with an argument, claim a
 * counter that no lane serves by setting `work` to PEER_CLAIM. Counters belong to one device, so their atomics have
 * device scope. Only the data and the arrival word go to other ranks.
 *
 * Paired posts (`paired` in trigger.h) take a shorter path. The record of such a post (struct peer_flat) is constant
 * while workers run, and has addresses in place of references. A paired post with threshold 1 needs no counter. The
 * data of a message travel as marked words (dev.h). A marked word has 8 bytes of data, and its mark is the number of
 * the message. All lanes that fire together store marked words. The first word goes into the cache line of the arrival
 * word, where the receiver polls. The other words go into the stage, a buffer of the receiver's rank. The receiver
 * copies the words from the stage to their place. So a message needs no release across the link. If the stage has no
 * room, the sender copies the data to their place, and then stores the arrival word with a release. */
#ifndef TRIGGER_PEER_DEV_H
#define TRIGGER_PEER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "../trigger_common/nic/nic.dev.h"
#endif

/* A segment or part of a rank, in the address space of this rank's workers. at: address, or 0 if the workers cannot
 * access the window. */
struct peer_window {
	uint64_t at, bytes;
};

/* Each rank has a window for each of its segments, then one for its arrival words and one for its stage. */
enum { PEER_ARRIVALS = 0, PEER_STAGE, PEER_PARTS };
#define PEER_WINDOWS(segments) ((segments) + PEER_PARTS)

/* Head of the block for the stack. Offsets of the other parts are in struct nic_shape, where `extra` is the number of
 * counters at extra_at, and in this struct. */
struct peer_head {
	int64_t failed; /* the first failure, an enum loom_err */
	uint64_t post_at, window_at; /* offsets of the posts and of the windows in the block */
	uint64_t posts; /* number of places for posts */
	uint32_t rank, ranks;
	uint32_t segments; /* number of segments for which each rank has windows */
	uint32_t stamp; /* 1: option stamp is set */
	uint64_t token; /* a random number, by which other ranks check that they have mapped this block */
	/* Offset of `flats` struct peer_flat, a hash table whose size is a power of two. An array of `flats` struct
	 * peer_flow follows. */
	uint64_t flat_at;
	uint64_t stage_at; /* offset of the stage */
	uint32_t flats, pad0;
	uint64_t pad[6];
};

/* A paired post, in a hash table by tag. Constant while workers run. */
struct peer_flat {
	uint64_t tag; /* 0: free */
	loom_ref local, remote;
	uint64_t line; /* address of the arrival word at the target; 0: the target is this rank */
	/* If `staged` is 1: address in the target's stage of the message's second word; if the target is this rank,
	 * offset of this word in the block. If `staged` is 0: address of the data's place; not used if the target is
	 * this rank. */
	uint64_t to;
	uint32_t words; /* number of words of 8 bytes */
	uint32_t threshold, slot, notify;
	uint32_t stage; /* if staged: offset of `to` from the start of the target's stage */
	uint16_t once;	/* 1: the post does not re-arm */
	uint16_t staged; /* 1: words go through the stage; 0: the sender copies the data to their place */
};
/* The progress of a paired post. It has the same index as its struct peer_flat. */
struct peer_flow {
	uint64_t counted; /* number of fires, if the threshold is more than 1 */
	uint64_t sent; /* number of messages sent */
	uint64_t pad[6];
};

/* The cache line of an arrival word, which starts as struct nic_arrival. The sender of paired messages writes the first
 * word of a message and its mark to `first`, by one store. Before its first message it writes `to`, `words` and
 * `stage`. */
struct peer_arrival {
	int64_t count;
	uint64_t at_ns;
	uint64_t first[2];
	uint64_t taken; /* number of messages that the receiver has copied to their destination */
	loom_ref to; /* place of the data in this rank */
	uint64_t words; /* number of words of a message; 0: no paired message has arrived */
	uint64_t stage; /* offset of the second word in this rank's stage */
};

enum { PEER_FREE = 0, PEER_WAITS };

/* A post that has no struct peer_flat. Indices of posts and counters start at 1; 0 stands for none. */
struct peer_post {
	uint64_t threshold, rearm;
	loom_ref local, remote;
	uint64_t bytes, window, chain;
	uint32_t op, target, slot, notify, type, flags;
	uint32_t next;	  /* index of the next post of the same counter */
	uint32_t counter; /* index of its counter; only the host writes this and `generation` */
	uint32_t generation;
	uint32_t state; /* PEER_FREE or PEER_WAITS */
};

struct peer_counter {
	uint64_t tag;  /* 0: free; set at most once in a sample */
	uint64_t work; /* 0: no lane serves the counter; else the sum that was added since a lane began to serve it */
	/* Only the lane that serves the counter uses the following members. */
	uint64_t taken; /* value of `work` up to which the lane has taken the added fires */
	uint64_t value; /* number of fires taken */
	uint64_t runs; /* number of operations run */
	uint32_t first, last; /* indices of the first and last post in the order of thresholds */
	uint32_t return_to; /* index of the counter whose chain triggered this counter, to be served after it; 0: none */
	uint32_t pad[3];
};
#define PEER_CLAIM (1ull << 63)
/* Value of completion slots and arrival words after a failure. Later increments may raise it. The cause is in
 * peer_head.failed. */
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

/* Returns the index of a tag's counter, which is created if needed, or 0 if there is no room. Lanes may search
 * concurrently. */
LOOM_FN uint32_t peer_find(const struct loom_ctx *c, uint64_t tag)
{
	uint64_t entries = nic_shape(c)->extra, i = (tag * 0x9e3779b97f4a7c15ull) >> 32;
	for (uint64_t n = 0; n < entries - entries / 8; n++, i++) {
		uint32_t at = (uint32_t)(i & (entries - 1)) + 1;
		uint64_t *have = &peer_counter(c, at)->tag, is = loom_load_relaxed_dev(have);
		/* Relaxed: the tag publishes no other data, because all members of the counter are 0 at first. */
		if (is == tag || (!is && (loom_cas_acq_rel_dev(have, &is, tag) || is == tag)))
			return at;
	}
	return 0;
}

/* Stores a failure, and ends all waits of this rank for arrivals. */
LOOM_FN void peer_fail(const struct loom_ctx *c, int code)
{
	const struct nic_shape *s = nic_shape(c);
	struct nic_arrival *a = (struct nic_arrival *)nic_at(c, s->arrival_at);
	uint64_t none = 0;
	/* Release: the stores pair with the acquire in nic_poll_word(). A lane that loads a negative word also sees the
	 * cause. */
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
	if (rank == h->rank) /* each device has its own addresses of this rank's memory */
		return c->segment[segment] ? (char *)loom_at(c, ref) : (char *)NULL;
	return w->at ? (char *)w->at + offset : (char *)NULL;
}

/* Copies data, in words if both sides are aligned. It loads PEER_WORDS words before it stores them, because in this way
 * the loads of a GPU overlap. Relaxed: the release in peer_run() orders the stores. */
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

/* Applies the argument of a fire to a copy of a post (GPU-TN, 3.4). Returns 1, or 0 if the post does not permit it. */
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

/* Moves the data of an operation. Returns 0, LOOM_EIO if the workers cannot access the memory, or LOOM_EINVAL if
 * elements of an addition are not aligned. */
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

/* Runs one operation and notifies its target. Returns 0 or an error. */
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
		/* Release at system scope: pairs with the acquire in nic_poll_word() at the target. This lane has
		 * stored the data. What other lanes wrote before their fires was acquired with `work`. */
		loom_fetch_add_release_sys((uint64_t *)&a[w->notify].count, (uint64_t)1);
	}
	return 0;
}

/* ---- counters and their posts ---------------------------------------------------------------------------- */

/* Inserts a post in the order of thresholds, behind posts with the same threshold. Called by the lane that serves the
 * counter. */
LOOM_FN void peer_insert(const struct loom_ctx *c, struct peer_counter *k, uint32_t at)
{
	struct peer_post *p = peer_post(c, at);
	uint32_t before = k->last;
	if (before && peer_post(c, before)->threshold > p->threshold) { /* rare, searches from the front */
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

/* Removes the first post of a counter, and inserts it again if it re-arms. *copy: the post as it was before the
 * removal. Returns 1 if the post does not re-arm, so that its place is free after the run. */
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

/* Runs the first post of a counter, which is due. argument: the argument of the fire, or 0. If the post has a chain,
 * its completion adds to the counter of that tag. If no lane serves that counter, the function returns its index, and
 * the caller must serve it. If a lane serves that counter, or if the post has no chain, it returns 0. */
LOOM_FN uint32_t peer_first(const struct loom_ctx *c, struct peer_counter *k, uint64_t argument)
{
	struct peer_post w;
	uint32_t at = k->first, next;
	int spent = peer_take(c, k, &w), rc = peer_run(c, &w, argument);
	if (w.slot && !rc)
		/* Release: pairs with the acquire in nic_poll_word(). The buffer was read before, or filled by a
		 * get. */
		loom_fetch_add_release_dev((uint64_t *)&peer_slot(c, w.slot)->completed, (uint64_t)1);
	else if (w.slot)
		loom_store_release_dev((uint64_t *)&peer_slot(c, w.slot)->completed, (uint64_t)PEER_FAILED);
	if (rc)
		peer_fail(c, rc);
	if (spent)
		/* Release: pairs with the acquire in free_post(). */
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

/* Takes n more of the fires that were added to `work`, up to the value `taken`. Called by the lane that serves the
 * counter. */
LOOM_FN void peer_add(struct peer_counter *k, uint64_t n, uint64_t taken)
{
	k->value = n > UINT64_MAX - k->value ? UINT64_MAX : k->value + n;
	k->taken = taken;
}

/* Runs all posts that are due, or become due during the call. Called by the lane that serves counter `bottom`, whose
 * `taken` is set. argument: the argument for posts of `bottom` that are due at its present value. */
LOOM_FN void peer_serve(const struct loom_ctx *c, uint32_t bottom, uint64_t argument)
{
	uint32_t at = bottom;
	peer_counter(c, bottom)->return_to = 0;
	while (at) {
		struct peer_counter *k = peer_counter(c, at);
		if (k->first && peer_post(c, k->first)->threshold <= k->value) {
			uint32_t next = peer_first(c, k, at == bottom ? argument : 0);
			if (next) { /* serves the triggered counter first, and then continues with this counter */
				peer_counter(c, next)->return_to = at;
				peer_add(peer_counter(c, next), 1, 1);
				at = next;
			}
			continue;
		}
		argument = at == bottom ? 0 : argument;
		/* Acquire: pairs with the releases of fires. What the lanes wrote before these fires is visible. */
		uint64_t work = loom_load_acquire_dev(&k->work);
		if (work != k->taken) {
			peer_add(k, work - k->taken, work);
			continue;
		}
		uint32_t return_to = k->return_to;
		/* Release: pairs with the acquire of `work` by the next lane that serves this counter. So that lane
		 * sees all changes of this lane to the posts. */
		if (loom_cas_acq_rel_dev(&k->work, &work, (uint64_t)0))
			at = return_to;
	}
}

/* Claims a counter, if no lane serves it. Returns 1 if the caller has claimed the counter and must serve it, else 0. */
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
	/* A relaxed load of the cause suffices: the caller has acquired the cause with the word, which peer_fail()
	 * released after the cause. */
	int64_t failed = n < PEER_FAILED / 2 ? (int64_t)loom_load_relaxed_sys((uint64_t *)&peer_head(c)->failed) : 0;
	return failed ? failed : n < PEER_FAILED / 2 ? LOOM_EIO : n;
}

/* ---- paired posts ---------------------------------------------------------------------------------------- */

/* Returns the index of the paired post of a tag, or PEER_NONE if there is none. The records are constant, so the
 * function uses plain loads, which a GPU caches. */
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

/* What a lane needs of a record between the stores of a message. The lane loads it before the barrier at which it waits
 * for the other lanes, because an acquire makes a GPU load constants from memory again. */
struct peer_way {
	const uint64_t *from; /* the data */
	uint64_t *first;      /* where the first word and its mark go, if staged */
	uint64_t *to;	      /* where the words behind it go, if staged; else the place of the data */
	struct peer_flow *flow;
	uint32_t words, threshold, once, staged; /* as in struct peer_flat */
};

LOOM_FN struct peer_arrival *peer_line(const struct loom_ctx *c, const struct peer_flat *f)
{
	return f->line ? (struct peer_arrival *)f->line : peer_arrival(c, f->notify);
}

LOOM_FN struct peer_way peer_way(const struct loom_ctx *c, uint32_t at)
{
	const struct peer_flat *f = peer_flat(c, at);
	void *own = f->staged ? nic_at(c, f->to) : (void *)loom_at(c, f->remote);
	struct peer_way w = {(const uint64_t *)loom_at(c, f->local),
			     peer_line(c, f)->first,
			     (uint64_t *)(f->line ? (void *)f->to : own),
			     peer_flow(c, at),
			     f->words,
			     f->threshold,
			     f->once,
			     f->staged};
	return w;
}

/* Counts n fires of a paired post. Returns the number of the message that the caller must send, or 0 if none is due.
 * *first: set to 1 if no message was sent before. */
LOOM_FN uint64_t peer_count(const struct peer_way *w, uint32_t n, uint32_t *first)
{
	/* Acquire and release: each lane releases its payload. The lane that sends sees the payloads of lanes that
	 * fired before. */
	uint64_t before = loom_fetch_add_acq_rel_dev(&w->flow->counted, (uint64_t)n), after = before + n;
	*first = before < w->threshold;
	if (w->once)
		return *first && after >= w->threshold;
	/* A 64-bit division takes a GPU five times as long. */
	uint64_t is = after >> 32 ? after / w->threshold : (uint32_t)after / w->threshold;
	return is * w->threshold > before ? is : 0;
}

/* Returns the number of the last message that `n` fires of a post with threshold 1 send, or 0 if they send none. *first:
 * as for peer_count(). */
LOOM_FN uint64_t peer_next(const struct peer_way *w, uint32_t n, uint32_t *first)
{
	uint64_t sent = w->flow->sent;
	*first = sent == 0;
	return w->once ? sent == 0 : sent + n;
}

/* Tells the receiver where the words of all messages go. Called by one lane, before it stores the first message. */
LOOM_FN void peer_introduce(const struct loom_ctx *c, const struct peer_flat *f)
{
	struct peer_arrival *a = peer_line(c, f);
	loom_store_relaxed_sys(&a->to, f->remote);
	loom_store_relaxed_sys(&a->stage, (uint64_t)f->stage);
	loom_store_relaxed_sys(&a->words, (uint64_t)f->words);
	/* Pairs with the fence in peer_take_in(). One fence suffices for all messages, because these words do not
	 * change. */
	loom_fence_release_sys();
}

/* PEER_BATCH: number of words of a long message that a lane loads before it stores the first of them, so that the loads
 * overlap. PEER_POLLS: number of words of a long message that a lane awaits at once. A GPU gives a thread of a worker of more
 * than 512 lanes at most 64 registers, so such a worker has fewer words under way. */
#if defined(LOOM_LANES) && LOOM_LANES > 512
#define PEER_BATCH 4u
#define PEER_POLLS 4u
#else
#define PEER_BATCH 8u
#define PEER_POLLS 4u
#endif
/* A message is short if each lane has at most so many words. Short messages have code of their own, because the
 * instructions for words that a lane does not have would delay them. */
#define PEER_SHORT 2u
#define PEER_MOST 8u /* not less than any of these numbers of words */

/* Loads this lane's words of a message: word i, and every lanes-th word behind it, at most `batch`. */
LOOM_FN void peer_load(const struct peer_way *w, uint32_t i, uint32_t lanes, uint32_t batch, uint64_t *word)
{
	for (uint32_t b = 0; b < batch; b++)
		if (i + b * lanes < w->words)
			word[b] = w->from[i + b * lanes];
}

/* Sends this lane's words of message n. Lanes share the words. word: what peer_load() has loaded for i = lane. */
LOOM_FN void peer_send(const struct peer_way *w, uint64_t n, uint32_t lane, uint32_t lanes, uint32_t batch,
		       uint64_t *word)
{
	LOOM_NO_UNROLL
	for (uint32_t i = lane; i < w->words;) {
		for (uint32_t b = 0; b < batch; b++) {
			uint32_t k = i + b * lanes;
			if (k < w->words && w->staged)
				loom_store_marked_sys(k ? w->to + 2 * (uint64_t)(k - 1) : w->first, word[b], n);
			else if (k < w->words)
				loom_store_relaxed_sys(w->to + k, word[b]);
		}
		i += batch * lanes;
		peer_load(w, i, lanes, batch, word);
	}
}

/* Ends the message that peer_send() has sent. Called by one lane, after all lanes have sent and called a barrier. */
LOOM_FN void peer_sent(const struct loom_ctx *c, uint32_t at, uint64_t n)
{
	const struct peer_flat *f = peer_flat(c, at);
	/* Release: pairs with the acquire in nic_poll_word() at the target. The data were stored by this lane, or by
	 * other lanes before the barrier. */
	if (!f->staged)
		loom_store_release_sys((uint64_t *)&peer_line(c, f)->count, n);
	/* Relaxed: if the threshold is more than 1, another lane may store the number of the next message. */
	loom_store_relaxed_dev(&peer_flow(c, at)->sent, n);
	if (!f->slot)
		return;
	uint64_t *completed = (uint64_t *)&peer_slot(c, f->slot)->completed;
#ifdef LOOM_DEVICE_COMPILE
	/* A relaxed store suffices. The buffer has been read, because a lane stores a word only after it has loaded the
	 * word. A release would wait until all stores have crossed the link. */
	loom_store_relaxed_dev(completed, n);
#else
	loom_store_release_dev(completed, n); /* pairs with the acquire in nic_poll_word() */
#endif
}

/* Fires a paired post `count` times. Called by one lane, which sends the whole message. */
LOOM_FN void peer_fire_flat(const struct loom_ctx *c, uint32_t at, uint32_t count)
{
	struct peer_way w = peer_way(c, at);
	uint64_t word[PEER_MOST] = {0};
	uint32_t first = 0;
	uint64_t n = w.threshold > 1 ? peer_count(&w, count, &first) : peer_next(&w, count, &first);
	if (!n)
		return;
	if (first && w.staged)
		peer_introduce(c, peer_flat(c, at));
	peer_load(&w, 0, 1, PEER_BATCH, word);
	peer_send(&w, n, 0, 1, PEER_BATCH, word);
	peer_sent(c, at, n);
}

/* Returns the place in this rank's stage of the words behind the first one. */
LOOM_FN const uint64_t *peer_stage(const struct loom_ctx *c, const struct peer_arrival *a)
{
	return (const uint64_t *)((char *)nic_at(c, peer_head(c)->stage_at) + a->stage);
}
/* Returns the place of the marked word k of a message. stage: the result of peer_stage(). */
LOOM_FN const uint64_t *peer_staged(const struct peer_arrival *a, const uint64_t *stage, uint64_t k)
{
	return k ? stage + 2 * (k - 1) : a->first;
}

/* Copies message `mark` to its destination, if all its words have arrived. Called by one lane of the receiver, which
 * has loaded `mark` from `first`. Returns the number of messages at their destination, or a negative error. */
LOOM_FN int64_t peer_take_in(struct loom_ctx *c, struct peer_arrival *a, uint64_t mark)
{
	uint64_t taken = a->taken, word;
	int64_t count = (int64_t)loom_load_relaxed_sys((uint64_t *)&a->count);
	if (count < 0)
		return peer_seen(c, count);
	if (mark == taken)
		return (int64_t)taken;
	if (!taken)
		loom_fence_acquire_sys(); /* pairs with the fence in peer_introduce(): the rest of the line has arrived */
	uint64_t words = loom_load_relaxed_sys(&a->words), *to = (uint64_t *)loom_at(c, loom_load_relaxed_sys(&a->to));
	const uint64_t *stage = peer_stage(c, a);
	for (uint64_t k = 0; k < words; k++) {
		if (loom_load_marked_sys(peer_staged(a, stage, k), &word) < mark)
			return (int64_t)taken; /* this word has not arrived yet */
		to[k] = word;
	}
	a->taken = mark;
	return (int64_t)mark;
}

/* ---- ops -------------------------------------------------------------------------------------------------- */

/* Fires a tag whose posts have no struct peer_flat. Called by one lane. It is large, so a GPU calls it. */
LOOM_FN int peer_fire_counter(struct loom_ctx *c, uint64_t tag, uint64_t count)
{
	uint32_t at = peer_find(c, tag);
	if (!at) {
		peer_fail(c, LOOM_EFULL);
		return 0;
	}
	/* Acquire and release: each lane releases its payload. If this lane serves the counter, it sees the payloads of
	 * lanes that fired before. */
	if (loom_fetch_add_acq_rel_dev(&peer_counter(c, at)->work, count) == 0) {
		peer_add(peer_counter(c, at), count, count);
		peer_serve(c, at, 0);
	}
	return 0;
}

LOOM_FN int trigger_peer_fire(struct loom_ctx *c, uint64_t tag, uint32_t count)
{
	if (!nic_may_fire(tag, count))
		return LOOM_EINVAL;
	struct loom_match peers = loom_match(tag);
	uint64_t sum = loom_match_sum(peers, count);
	if (!loom_match_leader(peers))
		return 0;
	uint32_t at = peer_flat_index(c, tag);
	if (at == PEER_NONE)
		LOOM_OUTLINED(peer_fire_counter, c, tag, sum);
	else
		peer_fire_flat(c, at, (uint32_t)sum);
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
	/* A lane claims and releases the counter in one iteration. If it released the counter in a later iteration,
	 * lanes of a wave that run in lock-step would deadlock. */
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
	return peer_head(c)->stamp ? nic_arrived_at(c, index) : 0;
}

/* ---- all lanes of a worker ---------------------------------------------------------------------------------- */

#define LOOM_TRIGGER_TOGETHER

/* Fires a paired post. batch: number of words that a lane loads at once, a constant. */
LOOM_FN void peer_fire_way(struct loom_ctx *c, const struct peer_way *w, uint32_t at, uint32_t batch)
{
	uint64_t n = 0, word[PEER_MOST] = {0};
	uint32_t first = 0;
	loom_barrier_lanes(c);
	if (w->threshold > 1) {
		if (c->lane == 0)
			n = peer_count(w, 1, &first);
		n = loom_from_lane0(c, n); /* also a barrier: what lane 0 has acquired becomes visible */
		if (n)
			peer_load(w, c->lane, c->lanes, batch, word);
	} else {
		/* If the post re-arms, a message is due in any case. So the words are loaded before its number is known,
		 * and these loads overlap. */
		peer_load(w, c->lane, c->lanes, batch, word);
		n = peer_next(w, 1, &first);
	}
	if (n && first && c->lane == 0 && w->staged)
		peer_introduce(c, peer_flat(c, at));
	if (n)
		peer_send(w, n, c->lane, c->lanes, batch, word);
	loom_barrier_lanes(c);
	if (n && c->lane == 0) /* the next call reads `sent` after its first barrier */
		peer_sent(c, at, n);
}

LOOM_FN int trigger_peer_fire_together(struct loom_ctx *c, uint64_t tag)
{
	uint32_t at = peer_flat_index(c, tag);
	uint64_t n = 0;
	if (at == PEER_NONE) {
		loom_barrier_lanes(c);
		if (c->lane == 0)
			n = (uint64_t)(int64_t)(nic_may_fire(tag, 1) ? (int)LOOM_OUTLINED(peer_fire_counter, c, tag, (uint64_t)1)
								     : LOOM_EINVAL);
		return (int)(int64_t)loom_from_lane0(c, n);
	}
	struct peer_way w = peer_way(c, at);
	if (w.words <= PEER_SHORT * c->lanes)
		peer_fire_way(c, &w, at, PEER_SHORT);
	else
		peer_fire_way(c, &w, at, PEER_BATCH);
	return 0;
}

/* How a wait for words has ended. */
enum { PEER_TAKEN = 1, PEER_STOPPED };

/* Waits until this lane's next words of message n have arrived: word i and every c->lanes-th word behind it, at most
 * `most`. Copies each to its place when it has arrived, and polls only words that are missing, because all polls share
 * the way to memory with the words that arrive. A lane without words polls the first word. words: number of words of the
 * message. `most` is a constant. */
LOOM_FN uint32_t peer_await_words(struct loom_ctx *c, const struct peer_arrival *a, const uint64_t *stage, uint64_t n,
				  uint32_t i, uint32_t words, uint32_t most, uint64_t *to)
{
	uint32_t missing = 0, idle = i >= words;
	for (uint32_t b = 0; b < most; b++)
		missing |= (uint32_t)(i + b * c->lanes < words || (idle && !b)) << b;
	for (uint32_t polls = 1;; polls++) {
		uint64_t word[PEER_MOST] = {0}, mark[PEER_MOST] = {0};
		for (uint32_t b = 0; b < most; b++)
			if (missing >> b & 1)
				mark[b] = loom_load_marked_sys(peer_staged(a, stage, idle ? 0 : i + b * c->lanes), &word[b]);
		for (uint32_t b = 0; b < most; b++)
			if (missing >> b & 1 && mark[b] >= n) {
				if (!idle)
					to[i + b * c->lanes] = word[b];
				missing &= ~(1u << b);
			}
		if (!missing)
			return PEER_TAKEN;
		/* Checks for failures rarely, as loom_net_await_late() does. */
		if (polls % 16 == 0 &&
		    ((int64_t)loom_load_relaxed_sys((const uint64_t *)&a->count) < 0 || loom_stopped(c)))
			return PEER_STOPPED;
#if defined(LOOM_REAL_GPU)
		if (polls % 16 == 0) /* polls pause rarely, because a pause takes half as long as a poll */
#endif
			loom_pause(c);
	}
}

LOOM_FN int trigger_peer_await_together(struct loom_ctx *c, uint32_t index, uint64_t n)
{
	struct peer_arrival *a = peer_arrival(c, index);
	/* The first message, which this worker has received, sets `words` if later messages are also staged. */
	if (n < 2 || index - 1 >= nic_shape(c)->arrivals - 1 || !a->words)
		return 0;
	uint32_t words = (uint32_t)a->words, how = PEER_TAKEN;
	uint64_t *to = (uint64_t *)loom_at(c, a->to);
	const uint64_t *stage = peer_stage(c, a);
	/* All lanes of a wave must wait (LOOM_WAVE). */
	if (words <= PEER_SHORT * c->lanes) {
		if (c->lane < words || c->lane < LOOM_WAVE)
			how = peer_await_words(c, a, stage, n, c->lane, words, PEER_SHORT, to);
	} else {
		LOOM_NO_UNROLL
		for (uint32_t i = c->lane; i < words && how == PEER_TAKEN; i += PEER_POLLS * c->lanes)
			how = peer_await_words(c, a, stage, n, i, words, PEER_POLLS, to);
	}
	if (loom_flag_from_lane0(c, how == PEER_TAKEN)) {
		if (c->lane == 0)
			a->taken = n;
		return 1;
	}
	int64_t failed = (int64_t)loom_load_relaxed_sys((const uint64_t *)&a->count);
	return failed < 0 ? (int)peer_seen(c, failed) : LOOM_EINTR;
}

NIC_RELAXED_IS_ORDERED(trigger_peer)
NIC_SENDS_AT_ONCE(trigger_peer)

#endif
