/* SPDX-License-Identifier: Apache-2.0 */
/* sync_wic on the CPU: declarations that its files share, and how a wait works.
 *
 * An item's bytes are in a file that all address spaces map, the staging pages. A page of the consumers' PCM is at the
 * same place of the file. Consumers have a second mapping of PCM, which is armed: a load there stalls until the page is
 * placed. Three rules make a wait (mode = in_place):
 *   1. A producer increments `full`, then loads `sleepers`, and places the page if there are any. A consumer increments
 *      `sleepers`, then loads `full`, and loads from the armed page if the item is not published.
 *   2. Only `full` says that the item is published. A thread that wants a consumer to check (deadline, stop) places its
 *      page. So a page may be placed without a reason, also by a late producer.
 *   3. A consumer whose page is placed without an item arms it again, and loads `full` once more. If the item was
 *      published in between, another reader may have stalled, and no thread would end that stall. So the consumer
 *      places the page.
 * No lock is needed. With mode = copy a page belongs to the consumer and must hold the right bytes, so a slot's lock
 * protects every change of its pages: wic_activate.c.
 *
 * Even and odd rounds of a slot use one half each of its companion pages. So the page of a round is known as soon as
 * the round before the last is released. A consumer that is early for a round does not wait for the other readers of
 * the previous round.
 *
 * A GPU has no such faults. Items and flags to and from its workers are those of gpu_wait.dev.h. If a GPU publishes an
 * item for a CPU, the Monitor of that device forwards it, as a producer would: it copies the item onto the staging page
 * and announces it.
 *
 * All processes share the global block: channels and slots (slot.dev.h), groups of pages, a record and a segment tree
 * per device, the data availability bitmap. The process that runs a device's workers has a private struct wic_space
 * with the mapping of its PCM pages, the descriptors, the stalls and the Monitor. struct wic is constant after the host
 * has filled it in, before any fork. */
#ifndef WIC_H
#define WIC_H

#include <pthread.h>

#include "../shared/sync/listener.h"
#include "../shared/sync/sleep.h"
#include "pcm.h"
#include "uffd.h"

#define WIC_BATCH          16u /* workers whose requests share one allocation (WIC, section 5.3) */
#define WIC_COMPANIONS_MAX 16u /* limit on the companion pages of a slot */
#define WIC_SHARD_WORKERS  8u
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

/* Registration information: the pages of WIC_BATCH consecutive slots. A slot's pages are consecutive, too. An item
 * starts on one of its slot's companion pages, of which the first half is for even rounds. Rounds that stall use the
 * pages of their half in turn, so a page is armed again while the others are in use. The paper has two pages. In place,
 * consumers stall on an item's first page only, and read the plain mapping. There the rest of an item overlaps the
 * pages where the next companions start, so that companions are adjacent. With mode = copy each companion has all pages
 * of an item. */
struct wic_group {
	uint32_t page; /* the first page + 1; 0: not allocated */
	uint32_t channel, first, slots;
};

struct wic_device {
	uint64_t base;       /* base of its armed pages, in the address space of its workers */
	uint64_t space;      /* struct wic_space *, valid in that address space */
	uint32_t generation; /* generation of its descriptors, incremented by each launch */
	uint32_t lock;       /* lock of the segment tree */
	uint64_t pid;        /* process with that address space */
	uint32_t allowed;    /* 1: the Monitor may work */
	uint32_t working;    /* 1: the Monitor works */
	uint64_t monitor_ns; /* CPU time of the Monitor in this sample; the Monitor alone adds, while it works */
	uint64_t pad[2];
};

struct wic {
	struct sync sync; /* first member */
	const struct wic_opts *o;
	struct listener listener;
	uint64_t gpus; /* one bit for each GPU */
	uint32_t devices, groups, slots;
	uint32_t pages;                                                     /* pages of each device, a power of two */
	uint32_t companions;                                                /* companion pages of a slot */
	uint32_t shards[LOOM_MAX_DEVICES];                                  /* powers of two */
	uint64_t devices_at, groups_at, owners_at, trees_at, dab_at, bytes; /* offsets in the global block */
	uint64_t file_bytes;
	int file;                         /* file with the staging pages of all devices */
	int monitor_fd[LOOM_MAX_DEVICES]; /* eventfd that wakes the Monitor of a device */
	int socket[LOOM_MAX_DEVICES][2];  /* sockets for descriptors of other address spaces: the device reads [0] */
	struct wic_space *space;          /* [devices] */
	uint32_t needs_messages;          /* 1: the Monitor reads faults, because not every producer ends them */
};

/* A consumer in a stalled load, or about to be. The Monitor may read it while it changes, and then places a page
 * without need. */
struct wic_stall {
	uint32_t active, channel, tag, pad0;
	uint64_t until_ns; /* deadline; 0: none */
	uint64_t pad1[5];
};

struct wic_route {
	uint32_t generation; /* generation of fd[], when all have been received */
	uint32_t incoming;   /* generation of those received so far */
	uint32_t shards;     /* how many have been received; 0: fd[] belongs to an address space of this process */
	int *fd;             /* [shards] */
};

struct wic_space {
	struct wic *wic;
	uint32_t device, first, workers;
	struct sync_head *head; /* NULL: not attached */
	const struct loom_ctl *ctl;
	char *pcm;     /* armed pages, where consumers stall */
	char *staging; /* the file: producers write here, and consumers read published items here */
	int *uffd;     /* [shards] */
	uint32_t opened;
	struct wic_stall *stall; /* [workers] */
	struct wic_route route[LOOM_MAX_DEVICES];
	uint32_t route_lock;
	/* State of the Monitor. */
	pthread_t monitor;
	uint64_t *pfq; /* pending faults queue; its bits have the same positions as in the DAB */
	uint64_t pfq_words;
	uint64_t next_ns;    /* when the Monitor wakes up next */
	uint32_t *forwarded; /* [slots]: number of rounds that it has forwarded from GPUs */
	uint32_t quit, began;
};

static inline int wic_is_gpu(const struct wic *w, uint32_t device)
{
	return (int)(w->gpus >> device & 1);
}

/* A spin lock in memory that several processes may share, held for microseconds. wic_lock() returns 0, or LOOM_EINTR if
 * the run was stopped: the holder may have been killed, and the lock stays taken. */
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
/* Returns the group + 1 of a page of a device. Used only by a Monitor that reads faults. */
static inline uint32_t *wic_owner(const struct wic *w, struct sync_head *h, uint32_t device, uint32_t page)
{
	return (uint32_t *)((char *)h + w->owners_at) + (uint64_t)device * w->pages + page;
}
static inline struct pcm_node *wic_tree(const struct wic *w, struct sync_head *h, uint32_t device)
{
	return (struct pcm_node *)((char *)h + w->trees_at + device * pcm_bytes(w->pages));
}
/* Returns 1 if the tag's round is an odd one of its slot. */
static inline uint32_t wic_half(const struct sync_channel *k, uint32_t tag)
{
	return sync_round(k, tag) & 1;
}
/* Returns the tag of a slot in its first round that is not released, or in the round after that: whichever is odd
 * (half = 1) or even (half = 0). */
static inline uint32_t wic_current(const struct sync_channel *k, const struct sync_slot *s, uint32_t slot,
				   uint32_t half)
{
	uint32_t round = __atomic_load_n(&s->released, __ATOMIC_ACQUIRE) & SYNC_ROUNDS;
	return (round + ((round ^ half) & 1)) * k->slots + slot;
}
/* Returns the bit of a slot's even or odd rounds in DAB (the item is published) and PFQ (a consumer is stalled). */
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
/* Returns the descriptors of another device's PCM, or NULL if that device has ended. */
const struct wic_route *wic_route(struct wic_space *sp, uint32_t device);

/* wic_pages.c: Interrupter */
/* Returns the first page of the slot, which is its companion 0, or PCM_NONE if PCM is full. */
uint32_t wic_pages(struct wic_space *sp, const struct sync_channel *k, uint32_t tag);
/* Returns the current companion page of the tag's round. The page is valid from the release of the round before the
 * last to the release of this round. */
static inline uint32_t wic_turn(const struct sync_channel *k, const struct sync_slot *s, uint32_t first, uint32_t tag)
{
	uint32_t half = wic_half(k, tag);
	return first + (half * k->companions / 2 + __atomic_load_n(&s->companion[half], __ATOMIC_RELAXED)) * k->step;
}
/* Cache colouring: items smaller than their page start at different offsets, so that they use different cache sets. */
static inline uint64_t wic_colour(const struct sync_channel *k, uint32_t tag)
{
	uint64_t lines = (k->pages * UFFD_PAGE - k->bytes) / 64;
	return tag % k->slots % (lines + 1) * 64;
}
/* Returns where the item's bytes are written, and may be read. first: from wic_pages(). */
static inline void *wic_staging(const struct wic_space *sp, const struct sync_channel *k, const struct sync_slot *s,
				uint32_t first, uint32_t tag)
{
	uint32_t page = sp->wic->o->mode == WIC_IN_PLACE ? wic_turn(k, s, first, tag) : first;
	return sp->staging + ((uint64_t)k->to * sp->wic->pages + page) * UFFD_PAGE + wic_colour(k, tag);
}

/* wic_activate.c */
/* Publishes the item: increments `full`. Consumers are resumed now, or later by the Monitor. Returns 1 if a consumer
 * waits or has waited, 0 if none, or an error. */
int wic_announce(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s, uint32_t first, uint32_t tag,
		 uint64_t bytes);
/* Called by the Monitor. If the item of that half's open round is published, resumes its consumers and returns 1. */
int wic_activate(struct wic_space *sp, const struct sync_channel *k, uint32_t slot, uint32_t half);
/* Ends the stalls on the page of that slot and half without data. */
void wic_end_stall(struct wic_space *sp, const struct sync_channel *k, uint32_t slot, uint32_t half);
/* Called after a stalled load. Returns the item if it is published, else NULL; then the next load stalls again. */
const void *wic_check_item(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s, uint32_t tag,
			   uint32_t first);
/* Called when the last reader has released the round. Frees the slot for its next round, which has an armed page.
 * Returns the number of pages that were recycled for that. */
uint64_t wic_free_slot(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s, uint32_t tag);

/* wic_monitor.c */
int wic_monitor_start(struct wic_space *sp); /* returns 0 or errno */
void wic_monitor_stop(struct wic_space *sp);
/* Between samples a Monitor is paused, so that init() may change shared memory, and wic_ready() the Monitor's own. No
 * consumer is stalled then. Returns 0, or LOOM_EDIED if the Monitor was killed while it worked. */
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
/* Called by the Monitor, on behalf of a GPU that has published the tag. */
void wic_forward(struct wic_space *sp, const struct sync_channel *k, uint32_t tag);

#endif
