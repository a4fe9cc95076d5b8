/* SPDX-License-Identifier: Apache-2.0 */
/* sync_wic on the CPU: declarations that its files share, and how a wait works.
 *
 * Producers write items to the staging pages: a file that all address spaces map. PCM, the pages of the communication
 * medium (WIC), is a part of this file for each device. The consumers of a device have a second mapping of its part, whose
 * pages can be armed. A load from an armed page stalls until a thread places the page, which maps it for the consumers. A
 * wait has three rules (mode = in_place):
 *   1. A producer increments `full`, then loads `sleepers`, and places the page if consumers sleep. A consumer increments
 *      `sleepers`, then loads `full`, and loads from the armed page if the item is not published.
 *   2. Only `full` says that the item is published. A thread also places a page to make a consumer check for its deadline
 *      or a stop, and a late producer may place a page of a later round. So a placed page does not imply an item.
 *   3. A consumer whose page is placed without an item arms the page again, and then loads `full` once more. If the item
 *      was published in between, another reader may have stalled after the page was armed, and no thread would end
 *      its stall. So the consumer places the page if it finds the item published.
 * These rules need no lock. With mode = copy a page belongs to the consumer and must hold the right bytes. So a slot's lock
 * protects every change of its pages: wic_activate.c.
 *
 * Even and odd rounds of a slot each use one half of its companion pages (struct wic_group). So the page of a round is known
 * when the round before the previous one is released. So a consumer that is early for a round need not wait for other readers
 * of the previous round.
 *
 * A GPU has no page faults that a plug-in can use. gpu_wait.dev.h has the items and flags of channels with GPUs. If a GPU
 * publishes an item for a CPU, the Monitor of the CPU's device forwards it, as a producer would: it copies the item to the
 * staging page and announces it.
 *
 * All processes share the stack's block. It has the channels and slots (slot.dev.h), groups of pages, a record and a
 * segment tree per device, and the data availability bitmap (DAB). The process that runs a device's workers has a private
 * struct wic_space with the mapping of its PCM pages, the descriptors, the stalls and the Monitor. struct wic is constant
 * after the host has filled it in, before any fork. */
#ifndef WIC_H
#define WIC_H

#include <pthread.h>

#include "../sync_common/listener.h"
#include "../sync_common/sleep.h"
#include "pcm.h"
#include "uffd.h"

#define WIC_BATCH          16u /* number of slots whose pages are allocated together (WIC, section 5.3) */
#define WIC_COMPANIONS_MAX 16u /* limit on the number of companion pages of a slot */
#define WIC_SHARD_WORKERS  8u /* workers per shard if shards = auto; a shard is the part of PCM of one descriptor */
#define WIC_SHARDS_MAX     1024u

enum { WIC_COPY, WIC_IN_PLACE };
enum { WIC_BY_PRODUCER, WIC_BY_MONITOR };

struct wic_opts {
	uint32_t pages;
	uint32_t companions;
	uint32_t shards;
	uint32_t mode;
	uint8_t eager;
	uint32_t activate, notify;
};

/* The pages of WIC_BATCH consecutive slots, which the paper calls registration information. The pages of one slot are also
 * consecutive. The item of a round starts on one of its slot's companion pages; the first half of the companion pages is for
 * even rounds. Rounds that stall use the pages of their half in turn, so that several pages can be armed again at once. The
 * paper has two pages per slot. If mode = in_place, consumers stall only on an item's first page, and read the item in the
 * mapping that is never armed. So companions are adjacent pages, and the rest of an item may overlap the next companions. If
 * mode = copy, each companion has all pages of an item. */
struct wic_group {
	uint32_t page; /* the first page + 1; 0: not allocated */
	uint32_t channel, first, slots; /* the channel, its first slot in the group, and the number of slots */
};

struct wic_device {
	uint64_t base;       /* address of the device's PCM pages that can be armed, in its workers' address space */
	uint64_t space;      /* struct wic_space * of the device, valid in this address space */
	uint32_t generation; /* number of launches so far, which is the generation of the device's descriptors */
	uint32_t lock;       /* protects the segment tree: wic_lock() */
	uint64_t pid;        /* the process with this address space */
	uint32_t allowed;    /* 1: the Monitor may work */
	uint32_t working;    /* 1: the Monitor works */
	uint64_t monitor_ns; /* CPU time of the Monitor in this sample; while the Monitor works, only it adds to this time */
	uint64_t pad[2];
};

struct wic {
	struct sync sync; /* the first member, because common code gets `self` as a struct sync * */
	const struct wic_opts *o;
	struct listener listener;
	uint64_t gpus; /* a bit for each device; 1: a GPU */
	uint32_t devices, groups, slots;
	uint32_t pages;                                                     /* PCM pages of each device, a power of two */
	uint32_t companions;                                                /* number of companion pages of a slot */
	uint32_t shards[LOOM_MAX_DEVICES];                                  /* [device]: number of shards, a power of two */
	uint64_t devices_at, groups_at, owners_at, trees_at, dab_at, bytes; /* offsets in the stack's block, and its size */
	uint64_t file_bytes;
	int file;                         /* file with the staging pages of all devices */
	int monitor_fd[LOOM_MAX_DEVICES]; /* [device]: eventfd that wakes its Monitor */
	/* [device]: a socket pair; other devices send their descriptors to [1], and this device receives them from [0] */
	int socket[LOOM_MAX_DEVICES][2];
	struct wic_space *space;          /* [device] */
	uint32_t needs_messages;          /* 1: the Monitor reads page faults, because not every producer ends them */
};

/* The stall of a consumer. The Monitor may read this struct while it changes. As a result, the Monitor may place a page without
 * need, which does no harm. */
struct wic_stall {
	uint32_t active, channel, tag, pad0; /* active: 1: the consumer is in a stalled load, or about to be */
	uint64_t until_ns;                   /* deadline; 0: none */
	uint64_t pad1[5];
};

/* The userfaultfd descriptors of another device, as this device has received them. */
struct wic_route {
	uint32_t generation; /* generation of the descriptors in fd[]; set when all of them have been received */
	uint32_t incoming;   /* generation of the descriptors received so far */
	uint32_t shards;     /* number of descriptors received; 0: fd[] has the descriptors of another device of this process */
	int *fd;             /* [shard] */
};

/* The state of a device that is private to the process with its workers. */
struct wic_space {
	struct wic *wic;
	uint32_t device, first, workers;
	struct sync_head *head; /* the stack's block; NULL: wic_attach() was not called */
	const struct loom_ctl *ctl;
	char *pcm;     /* the device's pages that can be armed: consumers stall here */
	char *staging; /* mapping of the whole file: producers write here, and consumers read published items here */
	int *uffd;     /* [shard]: userfaultfd descriptor */
	uint32_t opened; /* number of open descriptors in uffd[] */
	struct wic_stall *stall; /* [worker of the device] */
	struct wic_route route[LOOM_MAX_DEVICES]; /* [device] */
	uint32_t route_lock;                      /* protects the routes and the next field */
	uint32_t truncated;                       /* 1: a message has come without all its descriptors */
	/* The next fields are the state of the Monitor. */
	pthread_t monitor;
	uint64_t *pfq; /* pending faults queue (PFQ): a bitmap with the same index as the DAB */
	uint64_t pfq_words;
	uint64_t next_ns;    /* time at which the Monitor wakes up next; UINT64_MAX: only if notified */
	uint32_t *forwarded; /* [slot of all channels]: last value of the GPU's `full` that the Monitor has forwarded */
	uint32_t quit;
};

static inline int wic_is_gpu(const struct wic *w, uint32_t device)
{
	return (int)(w->gpus >> device & 1);
}

/* A spin lock in memory that several processes may share. A thread holds it for microseconds. wic_lock() returns 0. It
 * returns LOOM_EINTR without the lock if the run was stopped, because the holder of the lock may have been killed. */
static inline __attribute__((warn_unused_result)) int wic_lock(const struct loom_ctl *ctl, uint32_t *lock)
{
	uint32_t spins = 0;
	/* Acquire: pairs with the release in wic_unlock(). */
	while (__atomic_exchange_n(lock, 1u, __ATOMIC_ACQUIRE)) {
		if (++spins % 64 == 0) {
			loom_cpu_yield();
			if (spins > 1u << 16 && __atomic_load_n(&ctl->stop, __ATOMIC_RELAXED))
				return LOOM_EINTR;
		}
		loom_relax();
	}
	return 0;
}
static inline void wic_unlock(uint32_t *lock)
{
	__atomic_store_n(lock, 0u, __ATOMIC_RELEASE);
}

static inline struct wic_device *wic_device(const struct wic *w, struct sync_head *h, uint32_t device)
{
	return (struct wic_device *)((char *)h + w->devices_at) + device;
}
static inline struct wic_group *wic_group(const struct wic *w, struct sync_head *h, uint32_t group)
{
	return (struct wic_group *)((char *)h + w->groups_at) + group;
}
/* Returns the word with the group of a device's page, plus 1; 0: none. Only a Monitor that reads faults needs it. */
static inline uint32_t *wic_owner(const struct wic *w, struct sync_head *h, uint32_t device, uint32_t page)
{
	return (uint32_t *)((char *)h + w->owners_at) + (uint64_t)device * w->pages + page;
}
static inline struct pcm_node *wic_tree(const struct wic *w, struct sync_head *h, uint32_t device)
{
	return (struct pcm_node *)((char *)h + w->trees_at + device * pcm_bytes(w->pages));
}
/* Returns 1 if the tag's round in its slot is odd, 0 if it is even. */
static inline uint32_t wic_half(const struct sync_channel *k, uint32_t tag)
{
	return sync_round(k, tag) & 1;
}
/* Returns the slot's tag in one of its two open rounds: the first round that is not released, and the round after it.
 * half: 0: selects the open round with an even number; 1: the open round with an odd number. */
static inline uint32_t wic_current(const struct sync_channel *k, const struct sync_slot *s, uint32_t slot,
				   uint32_t half)
{
	uint32_t round = __atomic_load_n(&s->released, __ATOMIC_ACQUIRE) & SYNC_ROUNDS;
	return (round + ((round ^ half) & 1)) * k->slots + slot;
}
/* Returns the index in DAB and PFQ of the bit for the tag's slot and half (even or odd rounds). In the DAB the bit means that
 * the item is published, in the PFQ that a consumer is stalled. */
static inline uint64_t wic_bit(const struct sync_channel *k, uint32_t tag)
{
	return k->bit_at + tag % k->slots * 2 + wic_half(k, tag);
}
static inline uint64_t wic_words(const struct wic *w)
{
	return (2ull * w->slots + 63) / 64;
}
static inline uint64_t *wic_dab(const struct wic *w, struct sync_head *h, uint64_t bit)
{
	return (uint64_t *)((char *)h + w->dab_at) + bit / 64;
}
static inline uint32_t wic_shard(const struct wic *w, uint32_t device, uint32_t page)
{
	return page / (w->pages / w->shards[device]);
}

/* wic_space.c */
int wic_attach(void *self, const struct loom_space *space, struct loom_error *err);
void wic_ready(void *self, uint32_t device);
void wic_detach(void *self, uint32_t device);

/* wic_descriptors.c */
int wic_open_sockets(struct wic *w); /* returns 0 or errno */
void wic_close_sockets(struct wic *w);
int wic_send_descriptors(const struct wic_space *sp, uint32_t generation); /* returns 0 or errno */
void wic_drop_descriptors(struct wic_space *sp);
void wic_wake_monitor(const struct wic *w, uint32_t device);
/* Returns the descriptors of another device's PCM, or NULL if that device has ended or sp->truncated is 1. */
const struct wic_route *wic_route(struct wic_space *sp, uint32_t device);

/* wic_pages.c: the Interrupter */
/* Returns the first page of the slot, which is its companion 0, or PCM_NONE if PCM is full. */
uint32_t wic_pages(struct wic_space *sp, const struct sync_channel *k, uint32_t tag);
/* Returns the current companion page of the tag's round. The result is valid if the round two rounds earlier is released and
 * this round is not. */
static inline uint32_t wic_turn(const struct sync_channel *k, const struct sync_slot *s, uint32_t first, uint32_t tag)
{
	uint32_t half = wic_half(k, tag);
	return first + (half * k->companions / 2 + __atomic_load_n(&s->companion[half], __ATOMIC_RELAXED)) * k->step;
}
/* Cache colouring: returns the offset of the item on its first page. Items that are smaller than their pages start at
 * different offsets, so that they use different cache sets. */
static inline uint64_t wic_colour(const struct sync_channel *k, uint32_t tag)
{
	uint64_t lines = (k->pages * UFFD_PAGE - k->bytes) / 64;
	return tag % k->slots % (lines + 1) * 64;
}
/* Returns the address at which the producer writes the item, and consumers may read it. first: result of wic_pages(). */
static inline void *wic_staging(const struct wic_space *sp, const struct sync_channel *k, const struct sync_slot *s,
				uint32_t first, uint32_t tag)
{
	uint32_t page = sp->wic->o->mode == WIC_IN_PLACE ? wic_turn(k, s, first, tag) : first;
	return sp->staging + ((uint64_t)k->to * sp->wic->pages + page) * UFFD_PAGE + wic_colour(k, tag);
}

/* wic_activate.c */
/* Publishes the item: increments `full`. This call or later the Monitor resumes the consumers. Returns 1 if a consumer
 * waits, 0 if none does, or an error. */
int wic_announce(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s, uint32_t first, uint32_t tag,
		 uint64_t bytes);
/* Called by the Monitor. half: selects one of the slot's two open rounds, as in wic_current(). If the item of this round is
 * published, resumes its consumers and returns 1. Else returns 0. */
int wic_activate(struct wic_space *sp, const struct sync_channel *k, uint32_t slot, uint32_t half);
/* Ends the stalls on the page of that slot and half, although the item may not be published. */
void wic_end_stall(struct wic_space *sp, const struct sync_channel *k, uint32_t slot, uint32_t half);
/* Called after a stalled load. Returns the item if it is published. Else arms the page again and returns NULL. */
const void *wic_check_item(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s, uint32_t tag,
			   uint32_t first);
/* Called when the last reader has released the round. Frees the slot for its next round, which gets an armed page. Returns the
 * number of pages that the call has recycled, which means that it has armed them for another use. */
uint64_t wic_free_slot(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s, uint32_t tag);

/* wic_monitor.c */
int wic_monitor_start(struct wic_space *sp); /* returns 0 or errno */
void wic_monitor_stop(struct wic_space *sp);
/* Pauses the Monitor between samples, when no consumer is stalled. Then init() may change shared memory, and wic_ready() may
 * change the Monitor's private state. Returns 0, or LOOM_EDIED if the Monitor was killed while it worked. */
int wic_pause_monitor(struct wic_device *d);
void wic_resume_monitor(const struct wic *w, uint32_t device, struct wic_device *d);

/* wic_channel.c */
int wic_reserve(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, void **at);
int wic_publish(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from, uint64_t bytes,
		uint64_t timeout_ns);
int wic_wait(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, const void **data);
int wic_wait_all(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n, uint64_t timeout_ns,
		 const void **data);
int wic_release(struct loom_ctx *c, uint32_t channel, uint32_t tag);
/* Called by the Monitor. Publishes the tag's item for consumers on this device, after a GPU has published it. */
void wic_forward(struct wic_space *sp, const struct sync_channel *k, uint32_t tag);

#endif
