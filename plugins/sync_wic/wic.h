/* SPDX-License-Identifier: Apache-2.0 */
/* sync_wic on the CPU: what its files share.
 *
 * Shared by all processes, in the global block: channels and slots (slot.dev.h), groups of pages, one
 * record and one segment tree per device, the data availability bitmap. Private to the process that
 * runs a device's workers: struct wic_space with the mapping of its PCM pages, the descriptors, the
 * stalls and the Monitor. Written by the host before any fork and constant afterwards: struct wic. */
#ifndef WIC_H
#define WIC_H

#include <pthread.h>

#include "host.h"
#include "park.h"
#include "pcm.h"
#include "uffd.h"

#define WIC_BATCH 16u       /* workers whose requests share one allocation (WIC, section 5.3) */
#define WIC_SIDES_MAX 16u
#define WIC_SHARD_WORKERS 64u
#define WIC_SHARDS_MAX 1024u

enum { WIC_COPY, WIC_IN_PLACE };
enum { WIC_BY_PRODUCER, WIC_BY_MONITOR };

struct wic_opts {
	uint32_t pages;
	uint32_t companions;
	uint32_t shards;
	uint32_t mode;
	uint8_t eager;
	uint32_t activate;
};

/* Registration information: the pages of WIC_BATCH slots that follow each other, once per side: rounds take
 * turns with the sides, so a page is recycled while its companions are in use. The paper has two sides. */
struct wic_group {
	uint32_t page;     /* the first, plus 1; 0: not allocated */
	uint32_t channel, first, slots;
	uint32_t lock;     /* held while pages are recycled */
	uint16_t dirty[WIC_SIDES_MAX]; /* per side: slots whose pages were read and not yet recycled */
	uint32_t pad[3];
};

struct wic_device {
	uint64_t base;       /* of its PCM pages, in the space of its workers */
	uint64_t space;      /* struct wic_space *, valid in that space */
	uint32_t generation; /* of its descriptors: rises with every launch */
	uint32_t lock;       /* of the segment tree */
	uint64_t pid;        /* of that space */
	uint64_t pad[4];
};

struct wic {
	struct sync sync; /* first */
	const struct wic_opts *o;
	uint32_t devices, groups, slots;
	uint32_t pages;                     /* per device, a power of two */
	uint32_t sides;                     /* per slot, a power of two */
	uint32_t shards[LOOM_MAX_DEVICES]; /* powers of two */
	uint64_t devices_at, groups_at, owners_at, trees_at, dab_at, bytes; /* in the global block */
	uint64_t file_bytes;
	int file;                         /* staging: where producers write; in_place: the pages too */
	int bell[LOOM_MAX_DEVICES];       /* eventfd: the Monitor of a device has something to do */
	int mail[LOOM_MAX_DEVICES][2];    /* descriptors from other spaces: [0] is read by the device */
	struct wic_space *space;          /* [devices] */
	uint32_t needs_messages;          /* the Monitor reads faults: not all are placed eagerly */
};

/* A consumer in a stalled load, or about to be. Locked by the consumer and by the Monitor. */
struct wic_stall {
	uint32_t lock, active, expired;
	uint32_t page, tag;
	const struct sync_channel *k;
	uint64_t until_ns; /* 0: none */
	uint64_t pad[3];
};

struct wic_route {
	uint32_t generation; /* of fd[], once they are complete */
	uint32_t incoming;   /* of those that have come so far */
	uint32_t shards;     /* how many have; 0: they are those of a space in this process */
	int *fd; /* [shards] */
};

struct wic_space {
	struct wic *wic;
	uint32_t device, first, workers;
	struct sync_head *head; /* NULL: not attached */
	const struct loom_ctl *ctl;
	char *pcm;     /* consumers load here */
	char *staging; /* producers write here */
	int *uffd;     /* [shards] */
	uint32_t opened;
	struct wic_stall *stall; /* [workers] */
	char *bounce;            /* [workers] pages: the tail of an item that is no whole page */
	struct wic_route route[LOOM_MAX_DEVICES];
	uint32_t route_lock;
	/* the Monitor */
	pthread_t monitor;
	pthread_mutex_t busy; /* held by the Monitor while it works */
	uint64_t *pfq;        /* pending faults, a bit per slot and side, as in the DAB */
	uint64_t pfq_words;
	uint64_t next_ns; /* the deadline that it sleeps for */
	uint32_t quit, began;
	uint64_t messages, duplicates, activated; /* of this sample */
};

/* A spin lock in memory that several processes may share; held for microseconds. */
static inline void wic_lock(const struct loom_ctl *ctl, uint32_t *lock)
{
	uint32_t spins = 0;
	/* Acquire: pairs with the release in wic_unlock. The stop word ends it when the holder was killed. */
	while (__atomic_exchange_n(lock, 1u, __ATOMIC_ACQUIRE)) {
		if (++spins % 64 == 0) {
			sched_yield();
			if (spins > 1u << 16 && __atomic_load_n(&ctl->stop, __ATOMIC_RELAXED))
				return;
		}
		loom_relax();
	}
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
/* Which group has a page: plus 1, per device and page. */
static inline uint32_t *wic_owner(const struct wic *w, struct sync_head *h, uint32_t device, uint32_t page)
{
	return (uint32_t *)((char *)h + w->owners_at) + (uint64_t)device * w->pages + page;
}
static inline struct pcm_node *wic_tree(const struct wic *w, struct sync_head *h, uint32_t device)
{
	return (struct pcm_node *)((char *)h + w->trees_at + device * pcm_bytes(w->pages));
}
/* The bit of a slot's side in DAB and PFQ. */
static inline uint32_t wic_side(const struct wic *w, uint32_t round)
{
	return round & (w->sides - 1);
}
static inline uint64_t wic_bit(const struct wic *w, const struct sync_channel *k, uint32_t tag)
{
	return ((uint64_t)k->bit_at + tag % k->slots) * w->sides + wic_side(w, sync_round(k, tag));
}
static inline uint64_t *wic_dab(const struct wic *w, struct sync_head *h, uint64_t bit)
{
	return (uint64_t *)((char *)h + w->dab_at) + bit / 64;
}
static inline uint32_t wic_shard(const struct wic *w, uint32_t device, uint32_t page)
{
	return page / (w->pages / w->shards[device]);
}
static inline void *wic_staging(const struct wic_space *sp, const struct sync_channel *k, uint32_t page,
				uint32_t tag)
{
	uint64_t at = sp->wic->o->mode == WIC_IN_PLACE ?
			      ((uint64_t)k->to * sp->wic->pages + page) * UFFD_PAGE :
			      k->data_at + tag % k->slots * k->stride;
	return sp->staging + at;
}

/* wic_space.c */
int wic_attach(void *self, const struct loom_space *space, struct loom_error *err);
void wic_ready(void *self, uint32_t device);
void wic_detach(void *self, uint32_t device);
int wic_open_mail(struct wic *w); /* 0 or errno */
void wic_close_mail(struct wic *w);
/* The descriptors of another device's PCM: NULL when it has gone. */
const struct wic_route *wic_route(struct wic_space *sp, uint32_t device);

/* wic_pages.c: Interrupter (allocation) and the recycling half of the Activator */
/* The first page of the item, or PCM_NONE when PCM is full. */
uint32_t wic_pages(struct wic_space *sp, const struct sync_channel *k, uint32_t tag);
/* The last reader of `tag` is done: its pages wait to be recycled; when the slot's next round needs a page
 * that waits, all that wait in the group are. How many pages were. */
uint64_t wic_recycle(struct wic_space *sp, const struct sync_channel *k, uint32_t tag);

/* wic_activate.c */
/* Puts the `bytes` of `tag` on its pages, from the caller's `from` (whole pages when padded), and resumes
 * who waits for them; *resumed when somebody did. Page 0 comes last: with it the item is there. */
int wic_activate(struct wic_space *sp, const struct sync_channel *k, uint32_t tag, const void *from,
		 uint64_t bytes, int padded, char *bounce, int *resumed);
/* The same where Monitor and producer may both come: holds `serve`, so that the round cannot be released
 * and its page come to serve another one, and does nothing when the item was placed before. */
int wic_activate_once(struct wic_space *sp, const struct sync_channel *k, uint32_t tag, const void *from,
		      uint64_t bytes, int *resumed);
/* Ends the stall of those who wait for `tag` without data. */
void wic_poison(struct wic_space *sp, const struct sync_channel *k, uint32_t tag, uint32_t page);
/* A consumer came out of a stall without data: the page can stall again. */
void wic_arm_again(struct wic_space *sp, const struct sync_channel *k, uint32_t tag, uint32_t page);

/* wic_monitor.c */
int wic_monitor_start(struct wic_space *sp); /* 0 or errno */
void wic_monitor_stop(struct wic_space *sp);
void wic_ring(const struct wic *w, uint32_t device);

/* wic_channel.c */
int wic_reserve(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, void **at);
int wic_publish(struct loom_ctx *c, uint32_t channel, uint32_t tag, const void *from, uint64_t bytes,
		uint64_t timeout_ns);
int wic_wait(struct loom_ctx *c, uint32_t channel, uint32_t tag, uint64_t timeout_ns, const void **data);
int wic_wait_all(struct loom_ctx *c, uint32_t channel, const uint32_t *tag, uint32_t n,
		 uint64_t timeout_ns, const void **data);
int wic_release(struct loom_ctx *c, uint32_t channel, uint32_t tag);

#endif
