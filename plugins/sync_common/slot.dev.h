/* SPDX-License-Identifier: Apache-2.0 */
/* The shared state of channels, which is the same for all sync plug-ins. Device code.
 *
 * The state of a slot is two words that only grow. `full` is the number of published rounds. `released` is the number
 * of rounds that all readers have released. Round r may be published when released == r, and read when full == r + 1.
 * Both numbers wrap at 2^31. The top bit of a word, the poison bit, ends all waits on it. */
#ifndef SYNC_SLOT_DEV_H
#define SYNC_SLOT_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/sync.h>
#endif

#define SYNC_POISON 0x80000000u
#define SYNC_ROUNDS 0x7fffffffu

/* The words of producers and the words of consumers are in different cache lines. */
struct sync_slot {
	uint32_t full;
	uint32_t sleepers; /* number of consumers that sleep on `full` or are about to */
	uint32_t lock;     /* wic, mode = copy: a lock for all members except `sleepers` and `blocked` */
	uint32_t pad0;
	uint64_t length;     /* wic, mode = copy: size of the item that was published last */
	uint32_t spoiled[2]; /* wic, mode = copy: 1 if the current page of even or odd rounds holds no data */
	uint32_t pad1[8];
	uint32_t released;
	uint32_t blocked;      /* number of producers that sleep on `released` or are about to */
	uint32_t done;         /* number of releases by readers, over all rounds */
	uint32_t companion[2]; /* wic: index of the current companion page of even and of odd rounds */
	uint32_t spent[2];     /* wic: 1 if this companion page may have been placed */
	uint32_t used[2];      /* wic: number of companion pages that were placed since all were recycled */
	uint32_t pad2[7];
};

struct sync_channel {
	/* Number of slots; of readers of each item; index of the device of the producers, and of the consumers. */
	uint32_t slots, readers, from, to;
	uint64_t bytes;      /* bytes of an item */
	uint64_t stride;     /* bytes from one item to the next; not used by wic */
	uint64_t slot_at;    /* offset of struct sync_slot[slots] from the head */
	uint64_t data_at;    /* offset of the items from the head, or in the blocks of workers; not used by wic */
	uint32_t died;       /* 1: poisoned because the device of its producers or consumers died */
	uint32_t pages;      /* wic: number of pages of an item */
	uint32_t companions; /* wic: number of companion pages of a slot */
	uint32_t step;       /* wic: number of pages from one companion to the next */
	uint32_t run;        /* wic: number of pages of a slot */
	uint32_t group_at;   /* wic: index of the channel's first struct wic_group */
	/* Wic: index of the channel's first bit in DAB and PFQ (wic.h); each slot has two bits. */
	uint32_t bit_at;
	/* sync_warp with coherent devices: the flags are in blocks of workers of the consumers' device. first: the worker whose
	 * block has the first flags. homes: number of these blocks; 0: flags and items are in the block for the stack. Each
	 * has 1 << shift flags. near: 1: the items are in these blocks, too. */
	uint32_t first, homes, shift, near;
	uint32_t delivery; /* enum sync_delivery (gpu_wait.dev.h), or 0 if consumers read items in place */
	uint64_t word_at;  /* offset of struct sync_flag_word[] in these blocks or from the head; 0: there are none */
	uint64_t copy_at;  /* offset of the copies of items in the block of the consumers' device */
	uint64_t done_at;  /* offset in the same block of an array of uint32_t: for each slot its number of releases */
};

/* The head of the block for the stack. Channels, slots and items follow. */
struct sync_head {
	uint32_t channels;
	uint32_t setting[15];    /* settings of the plug-in; from index 10 on enum sync_setting */
	uint64_t raised_by_cpus; /* number of words that CPUs have changed: sync_store_rounds() */
	uint32_t ended;          /* sync_warp: 1: interrupt() has ended all waits */
	uint32_t unused;
	uint64_t pad[6];
};

/* The metrics that lane 0 counts in a sample, with units and texts. The worker's block has one struct sync_counters. */
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

/* Adds n to a counter; called by lane 0. On a GPU this is an atomic add without a result, so the lane does not wait for
 * the add. */
#ifdef LOOM_DEVICE_COMPILE
#define sync_add(c, what, n) ((void)loom_fetch_add_relaxed_dev(&sync_counters(c)->what, (uint64_t)(n)))
#else
#define sync_add(c, what, n) ((void)(sync_counters(c)->what += (n)))
#endif

LOOM_FN struct sync_channel *sync_channel(struct sync_head *h, uint32_t channel)
{
	return (struct sync_channel *)(h + 1) + channel;
}

/* Bytes at the start of a device's block, if it has one. They hold the number of words that its workers have
 * changed. */
#define SYNC_RAISED_BYTES 64u

/* Returns head and channels for reading. It returns the copy in the device's block, if there is one, because the
 * originals may be across a link. */
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

/* Returns 1 if `word` counts at least `count` rounds. */
LOOM_FN int sync_reached(uint32_t word, uint32_t count)
{
	return ((word - count) & SYNC_ROUNDS) <= SYNC_ROUNDS / 2;
}

/* Returns the channel in the block for the stack, which interrupt() marks. local: the same channel in the block of the
 * worker's device, if the device has a copy. */
LOOM_FN const struct sync_channel *sync_marked_channel(const struct loom_ctx *c, const struct sync_channel *local)
{
	return (const struct sync_channel *)((char *)sync_head(c) + ((char *)local - (char *)sync_local_head(c)));
}

/* Returns why a wait ended by poison or by the stop word: LOOM_EDIED or LOOM_EINTR. A GPU reads the host's words,
 * because the host does not write poison into a GPU's memory. k: the channel in the block for the stack. */
LOOM_FN int sync_poisoned(const struct loom_ctx *c, const struct sync_channel *k)
{
	loom_fence_acquire_sys(); /* pairs with the core, which stores `died` before it stops the run */
	uint32_t died = loom_load_acquire_sys(&LOOM_HOST_CTL(c)->died);
	int lost = died && (k->from == died - 1 || k->from == LOOM_ANY_DEVICE || k->to == died - 1);
	return lost || loom_load_relaxed_sys((uint32_t *)&k->died) ? LOOM_EDIED : LOOM_EINTR;
}

/* sync_poll_word() polls a word. After the last poll, sync_acquire() makes the item visible. On a GPU, an acquire
 * invalidates the L1 cache of the multiprocessor, so polls are relaxed loads and one fence follows. The fence pairs
 * with the release in publish() or in release(). */
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

/* Number of 16-byte loads that each lane of a copy has in flight. If a multiprocessor has many threads, each has few
 * registers. Eight loads would then make the compiler spill registers of waiting threads, which would resume later. */
#if defined(LOOM_BLOCKS) && LOOM_LANES * LOOM_WORKERS_PER_BLOCK * LOOM_BLOCKS > 512
enum { SYNC_LOADS = 1 };
#else
enum { SYNC_LOADS = 8 };
#endif

/* Copies bytes; called by all lanes. If both addresses are aligned to 16 bytes, a lane has several loads in flight,
 * because a load from host memory takes a microsecond. The function is not inlined, because its loads would take
 * registers of waiting threads. */
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

/* Returns the result of a poll that has loaded `now`. 0: the word has reached `want`. 1: keep waiting. LOOM_EDIED: the
 * wait has failed, and sync_poisoned() returns why. */
LOOM_FN int sync_check(uint32_t now, uint32_t want, int stopped)
{
	if (now & SYNC_POISON)
		return LOOM_EDIED;
	return sync_reached(now, want) ? 0 : stopped ? LOOM_EDIED : 1;
}

/* As sync_check(), and also acquires the item and checks the stop word. */
LOOM_FN int sync_check_wait(const struct loom_ctx *c, uint32_t now, uint32_t want)
{
	int verdict = sync_check(now, want, 0);
	if (!verdict)
		sync_acquire();
	return verdict == 1 && loom_stopped(c) ? LOOM_EDIED : verdict;
}

#endif
