/* SPDX-License-Identifier: Apache-2.0 */
/* The shared state of channels, the same for all sync plug-ins. Device code.
 *
 * A slot is two words that only grow: `full`, the number of published rounds, and `released`, the number of rounds that
 * all readers have released. Round r may be published when released == r, and read when full == r + 1. Both wrap at
 * 2^31; the top bit ends all waits on the word. */
#ifndef SYNC_SLOT_DEV_H
#define SYNC_SLOT_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/sync.h>
#endif

#define SYNC_POISON 0x80000000u
#define SYNC_ROUNDS 0x7fffffffu

/* Producers and consumers write different lines. */
struct sync_slot {
	uint32_t full;
	uint32_t sleepers; /* consumers that sleep on `full`, or are about to */
	uint32_t lock;     /* wic, mode = copy: protects all but `sleepers` and `blocked` */
	uint32_t pad0;
	uint64_t length;     /* wic, mode = copy: bytes of the last round that was published */
	uint32_t spoiled[2]; /* wic, mode = copy: the current page of even and of odd rounds holds no data */
	uint32_t pad1[8];
	uint32_t released;
	uint32_t blocked;      /* producers that sleep on `released`, or are about to */
	uint32_t done;         /* number of releases by readers, over all rounds */
	uint32_t companion[2]; /* wic: the current companion page of even and of odd rounds */
	uint32_t spent[2];     /* wic: 1: that page may have been placed */
	uint32_t used[2];      /* wic: companions that were placed since all were recycled */
	uint32_t pad2[7];
};

struct sync_channel {
	uint32_t slots, readers, from, to;
	uint64_t bytes;        /* bytes of an item */
	uint64_t stride;       /* bytes from one item to the next; not wic */
	uint64_t slot_at;      /* offset of struct sync_slot[slots] from the head */
	uint64_t data_at;      /* offset of the items; not wic */
	uint32_t died;         /* 1: poisoned because the device of its producers or consumers died */
	uint32_t pages;        /* wic: pages of an item */
	uint32_t companions;   /* wic: companion pages of a slot */
	uint32_t step;         /* wic: pages from one companion to the next */
	uint32_t run;          /* wic: pages of a slot */
	uint32_t group_at;     /* wic: its first group */
	uint32_t bit_at;       /* wic: its first bit; two bits a slot, in the order of all slots */
	uint32_t flag_at;      /* warp: offset of its flags in the block of each consumer */
	uint32_t first, count; /* warp: the workers of the consumers' device */
	/* non-coherent devices (gpu_wait.dev.h): enum sync_delivery; 0: consumers read items in place */
	uint32_t delivery;
	uint32_t unused;
	uint64_t word_at; /* non-coherent devices: offset of struct sync_flag_word[slots] from the head; else 0 */
	uint64_t copy_at; /* offset of the copies of items, in the block of the consumers' device */
	uint64_t done_at; /* offset there of each slot's number of releases */
};

/* The global block: head, channels, slots, items. */
struct sync_head {
	uint32_t channels;
	uint32_t setting[15];    /* settings of the plug-in; from index 10 on enum sync_setting */
	uint64_t raised_by_cpus; /* number of words that CPUs have changed: sync_store_rounds() */
	uint64_t pad[7];
};

/* The worker's block: the counts of lane 0 in this sample. */
#define SYNC_COUNTERS(X)                                                                                               \
	X(waits, "", "waits for an item")                                                                              \
	X(early, "", "of these: the item was published before")                                                        \
	X(polls, "", "polls of a word without success")                                                                \
	X(wait_ns, "ns", "time in wait")                                                                               \
	X(publishes, "", "items published")                                                                            \
	X(blocked_ns, "ns", "time in which producers waited for a free slot")                                          \
	X(transfer_ns, "ns", "time in which bytes were copied or pages placed")                                        \
	X(faults, "", "wic: loads from armed pages; they stall unless the page was placed just then")                  \
	X(fault_ns, "ns", "wic: time in these")                                                                        \
	X(alloc_ns, "ns", "wic: Interrupter, allocation of pages")                                                     \
	X(recycle_ns, "ns", "wic: Activator, recycling of pages")                                                      \
	X(recycles, "pages", "wic: pages recycled")                                                                    \
	X(eager, "", "wic: items that were published before their consumer waited")                                    \
	X(activations, "", "wic: consumers resumed by their producer")

struct sync_counters {
#define SYNC_COUNTER_FIELD(name, unit, text) uint64_t name;
	SYNC_COUNTERS(SYNC_COUNTER_FIELD)
#undef SYNC_COUNTER_FIELD
	uint64_t pad[2];
};

LOOM_FN struct sync_head *sync_head(const struct loom_ctx *c)
{
	return (struct sync_head *)c->global[LOOM_SYNC];
}

LOOM_FN struct sync_counters *sync_counters(const struct loom_ctx *c)
{
	return (struct sync_counters *)c->own[LOOM_SYNC];
}

/* Lane 0 counts. On a GPU the atomic add returns no value, so the lane does not wait for it. */
#ifdef LOOM_DEVICE_COMPILE
#define sync_add(c, what, n) ((void)loom_fetch_add_relaxed_dev(&sync_counters(c)->what, (uint64_t)(n)))
#else
#define sync_add(c, what, n) ((void)(sync_counters(c)->what += (n)))
#endif

LOOM_FN struct sync_channel *sync_channel(struct sync_head *h, uint32_t channel)
{
	return (struct sync_channel *)(h + 1) + channel;
}

/* A device's own block, if there is one, is preceded by the number of words that its workers have changed. */
#define SYNC_RAISED_BYTES 64u

/* Returns head and channels for reading: the copy in the device's block, since the originals may be behind a link. */
LOOM_FN struct sync_head *sync_local_head(const struct loom_ctx *c)
{
	char *block = (char *)c->on_device[LOOM_SYNC];
	return block ? (struct sync_head *)(block + SYNC_RAISED_BYTES) : sync_head(c);
}

LOOM_FN char *sync_item(struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	return (char *)h + k->data_at + tag % k->slots * k->stride;
}

LOOM_FN struct sync_slot *sync_slot(struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	return (struct sync_slot *)((char *)h + k->slot_at) + tag % k->slots;
}

LOOM_FN uint32_t sync_round(const struct sync_channel *k, uint32_t tag)
{
	return tag / k->slots;
}

/* Returns 1 if at least `count` rounds have passed according to `word`. */
LOOM_FN int sync_reached(uint32_t word, uint32_t count)
{
	return ((word - count) & SYNC_ROUNDS) <= SYNC_ROUNDS / 2;
}

/* Returns why a poisoned word or the stop word ends a wait. No poison reaches a GPU's memory, so a GPU reads the host's
 * words. */
LOOM_FN int sync_poisoned(const struct loom_ctx *c, const struct sync_channel *k)
{
	loom_fence_acquire_sys(); /* the fence pairs with the core, which stores `died` and then stops the run */
	uint32_t died = loom_load_acquire_sys(&LOOM_HOST_CTL(c)->died);
	int lost = died && (k->from == died - 1 || k->from == LOOM_ANY_DEVICE || k->to == died - 1);
	return lost || loom_load_relaxed_sys((uint32_t *)&k->died) ? LOOM_EDIED : LOOM_EINTR;
}

/* Polls a word. sync_acquire() then makes the item's bytes visible after the last poll: on a GPU an acquire invalidates
 * the L1 cache of the multiprocessor, so polls are relaxed and one fence follows. The fence pairs with the release of
 * publish, or of the last reader. */
#ifdef LOOM_DEVICE_COMPILE
LOOM_FN uint32_t sync_poll_word(const uint32_t *word)
{
	return loom_load_relaxed_sys(word);
}
LOOM_FN void sync_acquire(void)
{
	loom_fence_poll_sys();
}
#else
LOOM_FN uint32_t sync_poll_word(const uint32_t *word)
{
	return loom_load_acquire_sys(word);
}
LOOM_FN void sync_acquire(void)
{
}
#endif

/* Number of 16-byte loads that each lane of a copy has in flight. With many threads on a multiprocessor each has few
 * registers. With eight loads the compiler spills registers of waiting threads, which then resume later. */
#if defined(LOOM_BLOCKS) && LOOM_LANES * LOOM_WORKERS_PER_BLOCK * LOOM_BLOCKS > 512
enum { SYNC_LOADS = 1 };
#else
enum { SYNC_LOADS = 8 };
#endif

/* All lanes copy. Several loads are in flight if both sides are aligned to 16 bytes, since a load from host memory
 * takes a microsecond. Not inlined: the loads would take registers of waiting threads. */
LOOM_LEAF void sync_copy_by(uint32_t lane, uint32_t lanes, void *to, const void *from, uint64_t bytes)
{
#ifdef LOOM_DEVICE_COMPILE
	struct __attribute__((aligned(16))) two {
		uint64_t a, b;
	};
	uint64_t n = ((uint64_t)to | (uint64_t)from) % 16 ? 0 : bytes / 16;
	struct two *d = (struct two *)to, v[SYNC_LOADS];
	const struct two *s = (const struct two *)from;
	LOOM_NO_UNROLL
	for (uint64_t i = lane; i < n; i += SYNC_LOADS * (uint64_t)lanes) {
#pragma unroll
		for (uint32_t j = 0; j < SYNC_LOADS; j++)
			if (i + j * lanes < n)
				v[j] = s[i + j * lanes];
#pragma unroll
		for (uint32_t j = 0; j < SYNC_LOADS; j++)
			if (i + j * lanes < n)
				d[i + j * lanes] = v[j];
	}
	LOOM_NO_UNROLL
	for (uint64_t i = 16 * n + lane; i < bytes; i += lanes)
		((char *)to)[i] = ((const char *)from)[i];
#else
	(void)lanes;
	if (lane == 0)
		__builtin_memcpy(to, from, bytes);
#endif
}

LOOM_FN void sync_copy(const struct loom_ctx *c, void *to, const void *from, uint64_t bytes)
{
	sync_copy_by(c->lane, c->lanes, to, from, bytes);
}

/* Returns the result of a poll that loaded `now`. 0: reached. 1: keep waiting. LOOM_EDIED: the wait has failed, and
 * sync_poisoned() has the reason. */
LOOM_FN int sync_check(uint32_t now, uint32_t want, int stopped)
{
	if (now & SYNC_POISON)
		return LOOM_EDIED;
	return sync_reached(now, want) ? 0 : stopped ? LOOM_EDIED : 1;
}

/* sync_check() with the acquire and the stop word. */
LOOM_FN int sync_check_wait(const struct loom_ctx *c, uint32_t now, uint32_t want)
{
	int verdict = sync_check(now, want, 0);
	if (!verdict)
		sync_acquire();
	return verdict == 1 && loom_stopped(c) ? LOOM_EDIED : verdict;
}

#endif
