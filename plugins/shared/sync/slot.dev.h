/* SPDX-License-Identifier: Apache-2.0 */
/* The shared state of channels: the same for all sync plug-ins. Device code.
 *
 * A slot is two words that only grow: `full`, the rounds that were published, and `released`, the
 * rounds that all readers have released. Round r may be published when released == r, and read when
 * full == r + 1. Both wrap at 2^31; the top bit says that waiting is of no use any more. */
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
	uint32_t sleepers; /* consumers that wait, or are about to: plug-ins that park */
	uint32_t lock;     /* wic, mode = copy: covers the two lines but for the sleepers */
	uint32_t pad0;
	uint64_t length;     /* wic, mode = copy: bytes of the last round that was published */
	uint32_t spoiled[2]; /* wic, mode = copy: the page whose turn it is in that half holds no data */
	uint32_t pad1[8];
	uint32_t released;
	uint32_t blocked; /* producers that wait */
	uint32_t done;    /* readers, of all rounds, that have released */
	uint32_t side[2];  /* wic: the companion page whose turn it is, of even and of odd rounds */
	uint32_t spent[2]; /* wic: that page may have been placed */
	uint32_t used[2];  /* wic: companions that were, since all were recycled */
	uint32_t pad2[7];
};

struct sync_channel {
	uint32_t slots, readers, from, to;
	uint64_t bytes;    /* of an item */
	uint64_t stride;   /* from one item to the next; not wic */
	uint64_t slot_at;  /* struct sync_slot[slots], from the head */
	uint64_t data_at;  /* items; not wic */
	uint32_t died;     /* 1: poisoned because the device of its producers died */
	uint32_t pages;    /* wic: of an item */
	uint32_t sides;    /* wic: companion pages of a slot, */
	uint32_t step;     /* wic: how far each is from the one before, */
	uint32_t run;      /* wic: and pages of all of the slot's items */
	uint32_t group_at; /* wic: first of its groups */
	uint32_t bit_at;   /* wic: of its slots, two each, in the order of all slots */
	uint32_t flag_at;  /* warp: its flags in each consumer's block */
	uint32_t first, count; /* warp: workers of the device of its consumers */
	uint32_t brings;   /* where devices are non-coherent (wave.dev.h): how an item comes to where its consumers compute, */
	uint32_t unused;
	uint64_t word_at;  /* struct wave_word[slots], from the head; 0: they are not apart; */
	uint64_t near_at;  /* and in the block of its consumers' device: copies of items, */
	uint64_t done_at;  /* and how many readers have released */
};

/* The global block: head, channels, slots, items. */
struct sync_head {
	uint32_t channels;
	uint32_t setting[15]; /* of the plug-in */
	uint64_t by_cpus;     /* words that CPUs have raised: wave.dev.h */
	uint64_t pad[7];
};

/* The worker's block: what lane 0 counted in this sample. */
#define SYNC_TALLY_MAP(X)                                                                          \
	X(waits, "", "items that were waited for")                                                 \
	X(early, "", "of these: items that were there before")                                     \
	X(polls, "", "looks at a word in vain")                                                    \
	X(wait_ns, "ns", "time in wait")                                                           \
	X(publishes, "", "items published")                                                        \
	X(blocked_ns, "ns", "time in which a producer waited for a free slot")                     \
	X(transfer_ns, "ns", "time in which bytes were copied or pages placed")                    \
	X(faults, "", "wic: loads from armed pages, which stall unless the page was placed just then")                                                   \
	X(fault_ns, "ns", "wic: time in these")                                            \
	X(alloc_ns, "ns", "wic: Interrupter, allocation of pages")                                 \
	X(recycle_ns, "ns", "wic: Activator, recycling of pages")                                  \
	X(recycles, "pages", "wic: pages recycled")                                                \
	X(eager, "", "wic: items that were published before their consumer came")                  \
	X(activations, "", "wic: consumers resumed by their producer")

struct sync_tally {
#define SYNC_TALLY_FIELD(name, unit, text) uint64_t name;
	SYNC_TALLY_MAP(SYNC_TALLY_FIELD)
#undef SYNC_TALLY_FIELD
	uint64_t pad[2];
};

LOOM_FN struct sync_head *sync_head(const struct loom_ctx *c)
{
	return (struct sync_head *)c->global[LOOM_SYNC];
}

LOOM_FN struct sync_tally *sync_tally(const struct loom_ctx *c)
{
	return (struct sync_tally *)c->own[LOOM_SYNC];
}

/* Lane 0 counts. On a GPU nobody waits for the sum. */
#ifdef LOOM_DEVICE_COMPILE
#define sync_tell(c, what, n) ((void)loom_fetch_add_relaxed_dev(&sync_tally(c)->what, (uint64_t)(n)))
#else
#define sync_tell(c, what, n) ((void)(sync_tally(c)->what += (n)))
#endif

LOOM_FN struct sync_channel *sync_channel(struct sync_head *h, uint32_t channel)
{
	return (struct sync_channel *)(h + 1) + channel;
}

/* In front of a device's own block, where there is one: how many words its workers have raised. */
#define SYNC_NEAR_BYTES 64u

/* Head and channels for reading: a device with a block of its own has a copy there, since the others may lie behind a
 * link. */
LOOM_FN struct sync_head *sync_known(const struct loom_ctx *c)
{
	char *near = (char *)c->on_device[LOOM_SYNC];
	return near ? (struct sync_head *)(near + SYNC_NEAR_BYTES) : sync_head(c);
}

LOOM_FN struct sync_slot *sync_slot(struct sync_head *h, const struct sync_channel *k, uint32_t tag)
{
	return (struct sync_slot *)((char *)h + k->slot_at) + tag % k->slots;
}

LOOM_FN uint32_t sync_round(const struct sync_channel *k, uint32_t tag)
{
	return tag / k->slots;
}

/* `word` says that `count` rounds have passed, or more. */
LOOM_FN int sync_reached(uint32_t word, uint32_t count)
{
	return ((word - count) & SYNC_ROUNDS) <= SYNC_ROUNDS / 2;
}

/* Why a poisoned word, or the stop word, ends this wait. No poison reaches a GPU's memory: the host's words tell
 * there. */
LOOM_FN int sync_poisoned(const struct loom_ctx *c, const struct sync_channel *k)
{
	loom_fence_acquire_sys(); /* the core says who died, and then stops the run */
	uint32_t died = loom_load_acquire_sys(&LOOM_HOST_CTL(c)->died);
	int lost = died && (k->from == died - 1 || k->from == LOOM_ANY_DEVICE || k->to == died - 1);
	return lost || loom_load_relaxed_sys((uint32_t *)&k->died) ? LOOM_EDIED : LOOM_EINTR;
}

/* A look at a word, and, behind the one that found it, what makes the bytes visible. On a GPU each acquire throws
 * the multiprocessor's cache away, so only the last look is one. Pairs with the release of publish, or of the last
 * reader. */
#ifdef LOOM_DEVICE_COMPILE
LOOM_FN uint32_t sync_glance(const uint32_t *word)
{
	return loom_load_relaxed_sys(word);
}
LOOM_FN void sync_saw(void)
{
	loom_fence_poll_sys();
}
#else
LOOM_FN uint32_t sync_glance(const uint32_t *word)
{
	return loom_load_acquire_sys(word);
}
LOOM_FN void sync_saw(void)
{
}
#endif

/* How many loads of 16 bytes each lane of a copy has under way. On a multiprocessor with many threads each of them has few
 * registers: with eight loads the compiler spills what a waiting thread needs, and that thread goes on later. */
#if defined(LOOM_BLOCKS) && LOOM_LANES * LOOM_WORKERS_PER_BLOCK * LOOM_BLOCKS > 512
enum { SYNC_AT_ONCE = 1 };
#else
enum { SYNC_AT_ONCE = 8 };
#endif

/* Copies by all lanes. Several loads at once where both are aligned to 16 bytes: from the host's memory each takes a
 * microsecond. It is called, not inlined: else these loads took the registers of those who wait. */
LOOM_LEAF void sync_copy_by(uint32_t lane, uint32_t lanes, void *to, const void *from, uint64_t bytes)
{
#ifdef LOOM_DEVICE_COMPILE
	struct __attribute__((aligned(16))) two {
		uint64_t a, b;
	};
	uint64_t n = ((uint64_t)to | (uint64_t)from) % 16 ? 0 : bytes / 16;
	struct two *d = (struct two *)to, v[SYNC_AT_ONCE];
	const struct two *s = (const struct two *)from;
	LOOM_NO_UNROLL
	for (uint64_t i = lane; i < n; i += SYNC_AT_ONCE * (uint64_t)lanes) {
#pragma unroll
		for (uint32_t j = 0; j < SYNC_AT_ONCE; j++)
			if (i + j * lanes < n)
				v[j] = s[i + j * lanes];
#pragma unroll
		for (uint32_t j = 0; j < SYNC_AT_ONCE; j++)
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

/* What a look says that saw `now`: 0 reached, LOOM_EDIED: it is over, sync_poisoned() knows why; or 1: go on. */
LOOM_FN int sync_verdict(uint32_t now, uint32_t want, int stopped)
{
	if (now & SYNC_POISON)
		return LOOM_EDIED;
	return sync_reached(now, want) ? 0 : stopped ? LOOM_EDIED : 1;
}

/* The same of a wait. */
LOOM_FN int sync_judge(const struct loom_ctx *c, uint32_t now, uint32_t want)
{
	int verdict = sync_verdict(now, want, 0);
	if (!verdict)
		sync_saw();
	return verdict == 1 && loom_stopped(c) ? LOOM_EDIED : verdict;
}

#endif
