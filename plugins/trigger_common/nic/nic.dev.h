/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that workers and the NIC share: the trigger FIFO of each device, completion slots, arrival words, and the
 * words of kernel boundaries. This is device code of all trigger plug-ins with a NIC.
 *
 * A trigger is one 8-byte word, and the store of this word publishes the trigger:
 *   bit 0      lap: 1 in the first pass over the ring, 0 in the second, and so on, so that slots need no clearing
 *   bit 1      1: the trigger has an argument, in the argument slot with the same index
 *   bits 2-15  count
 *   bits 16-63 tag */
#ifndef NIC_DEV_H
#define NIC_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/trigger.h>

#include "lib/eventcount.h"

#include "bell.h"
#endif

#define NIC_COUNT_MAX 0x3fffu

/* The counters of completion slots and arrival words. Only the NIC adds to them. A negative value is an enum loom_err:
 * the first failure, which stays. at_ns: time of the last count on CLOCK_MONOTONIC, recorded only if `stamp` is yes. */
struct nic_slot {
	int64_t completed;
	uint64_t at_ns;
	uint64_t pad[6];
};
struct nic_arrival {
	int64_t count;
	uint64_t at_ns;
	uint64_t pad[6];
};

/* A FIFO consists of this head, then `entries` trigger words, then `entries` arguments. The FIFOs of a device are
 * consecutive. */
struct nic_fifo {
	uint64_t tail; /* number of words that the NIC has taken */
	uint64_t pad[7];
};

/* The two words by which a device and the host synchronise at kernel boundaries. */
struct nic_kernel_ends {
	uint64_t ended; /* written by the device: the number of its kernels that have ended */
	uint64_t pad0[7];
	uint64_t begun; /* written by the host: the number of these kernel ends that it has handled */
	uint64_t pad1[7];
};

/* Layout of the block for the stack, which is in host memory. All fields are constant while workers run; fields *_at
 * are offsets in bytes. The NIC has the original of this struct, and each device has a copy in its own memory. */
struct nic_shape {
	uint32_t entries; /* entries of a FIFO, a power of two; 0: no FIFOs */
	uint32_t slots, arrivals;
	uint32_t recorded; /* number of fires that one worker may record per kernel */
	uint64_t slot_at, arrival_at, fifo_at, fifo_bytes, ends_at, extra_at;
	uint64_t extra; /* number of entries of the plug-in's own part at extra_at, a power of two or 0 */
	uint64_t link; /* enum nic_link of the device that has this copy; not set in the NIC's original */
	uint64_t rma_at; /* offset of a struct nic_bell and, after it, one struct nic_rma per worker; 0: none */
	uint64_t pad[3];
};
/* How the workers of a device reach the host's memory. */
enum nic_link {
	NIC_LINK_NONE = 0, /* no GPU: host memory is the device's own memory */
	NIC_LINK_FEW,      /* a GPU, across a link, with few workers: each has a FIFO */
	NIC_LINK_MANY,     /* a GPU, across a link: one FIFO, and one worker at a time polls the host's words for all */
};

/* A copy of a completion slot or an arrival word, in the device's memory. */
struct nic_cached {
	int64_t value;
	uint64_t polling; /* 1: a worker is loading the host's word */
};

/* The state of the producers of a FIFO. It is in the device's block, or in the worker's scratchpad memory if link is
 * NIC_LINK_FEW. */
struct nic_ring {
	uint64_t head; /* number of slots that producers have reserved */
	uint64_t pad0[7];
	uint64_t tail; /* a copy of nic_fifo.tail, which may be behind it */
	uint64_t polling; /* 1: a worker is loading nic_fifo.tail */
	uint64_t pad1[6];
};

/* The block of a device, in its own memory. A struct nic_ring follows. Then, if link is NIC_LINK_MANY, comes a struct
 * nic_cached for each completion slot and each arrival word. */
struct nic_device {
	struct nic_shape shape;
	uint64_t arrived; /* number of workers that have arrived at the kernel boundary */
	uint64_t pad2[7];
	uint64_t kernel; /* number of kernel boundaries that the device has passed */
	uint64_t pad3[7];
	uint64_t launch_ns, teardown_ns;
	uint64_t pad4[6];
};

/* A worker's block for fires that wait for the end of the kernel. `recorded` trigger words follow, of which the first
 * `fires` are set. */
struct nic_record {
	uint64_t fires;
	uint64_t pad[7];
};

LOOM_FN struct nic_device *nic_device(const struct loom_ctx *c)
{
	return (struct nic_device *)c->on_device[LOOM_TRIGGER];
}
LOOM_FN const struct nic_shape *nic_shape(const struct loom_ctx *c)
{
	return &nic_device(c)->shape;
}
LOOM_FN void *nic_at(const struct loom_ctx *c, uint64_t offset)
{
	return (char *)c->global[LOOM_TRIGGER] + offset;
}
LOOM_FN struct nic_ring *nic_ring(struct loom_ctx *c)
{
	struct nic_device *d = nic_device(c);
	return (struct nic_ring *)(d->shape.link == NIC_LINK_FEW ? c->local[LOOM_TRIGGER] : (void *)(d + 1));
}
/* Returns a hash of a tag. Its low bits are the index of the tag's counter in the host's list and in tables that
 * devices search. The function is Fibonacci hashing, which suits consecutive tags, because most tags are consecutive.
 * Groups of eight consecutive tags stay adjacent, because the tags of a group are usually counted one after the
 * other. */
LOOM_FN uint64_t nic_hash(uint64_t tag)
{
	return ((((tag >> 3) * 0x9e3779b97f4a7c15ull) >> 32) << 3 | (tag & 7)) & 0xffffffffull;
}
LOOM_FN uint64_t nic_lap(uint64_t n, uint32_t entries)
{
	return (n & entries) == 0;
}
LOOM_FN uint64_t nic_word(uint64_t tag, uint32_t count)
{
	return tag << 16 | (uint64_t)count << 2;
}

/* ---- the trigger FIFO ------------------------------------------------------------------------------
 *
 * A GPU reaches the words of the FIFO across a link. The GPU does not wait for a store, but a load takes a round trip.
 * So a producer only stores to the FIFO, and keeps the head and a copy of the tail in the device's memory. With
 * NIC_LINK_FEW the head and the copy are in the worker's scratchpad memory, because even a load from the device's memory
 * would wait for the last store of the worker. */

/* Waits until slot n is empty, because the NIC has taken its previous word. One worker at a time loads the NIC's tail
 * across the link. Returns 0 or LOOM_EINTR. */
LOOM_FN int nic_await_slot(struct loom_ctx *c, struct nic_ring *d, const uint64_t *tail, uint32_t entries, uint64_t n)
{
	for (;;) {
		if (loom_load_relaxed_dev(&d->polling) == 0 &&
		    loom_exchange_acq_rel_dev(&d->polling, (uint64_t)1) == 0) {
			/* Acquire: pairs with the NIC's release of the tail. The NIC reads the words before. */
			uint64_t seen = loom_load_acquire_sys(tail);
			/* Both stores are releases. The first pairs with the acquire of d->tail below, the second with
			 * the acquire in the exchange above. */
			loom_store_release_dev(&d->tail, seen);
			loom_store_release_dev(&d->polling, (uint64_t)0);
		}
		if (n - loom_load_acquire_dev(&d->tail) < entries)
			return 0;
		if (loom_stopped(c))
			return LOOM_EINTR;
		loom_pause(c);
	}
}

/* Reserves the next slot, waits until it is empty, and returns its number in *n. tail: the tail that the NIC writes.
 * Returns 0 or LOOM_EINTR. */
LOOM_FN int nic_take_slot(struct loom_ctx *c, const uint64_t *tail, uint32_t entries, uint64_t *n)
{
	struct nic_ring *ring = nic_ring(c);
	*n = loom_take_ticket_dev(&ring->head);
	/* A guarded load, because the store into the slot must not be executed before this load. */
	return *n - loom_load_guard_dev(&ring->tail) < entries ? 0 : nic_await_slot(c, ring, tail, entries, *n);
}

/* Pushes a trigger. ordered: 1 if earlier writes of this lane must be visible before the trigger. */
LOOM_FN int nic_push(struct loom_ctx *c, uint64_t word, uint64_t argument, int ordered)
{
	const struct nic_shape *s = nic_shape(c);
	uint32_t own = s->link == NIC_LINK_FEW ? c->worker - c->first : 0;
	struct nic_fifo *f = (struct nic_fifo *)nic_at(c, s->fifo_at + own * s->fifo_bytes);
	uint64_t *words = (uint64_t *)(f + 1), n;
	uint32_t entries = s->entries;
	int rc = nic_take_slot(c, &f->tail, entries, &n);
	if (rc)
		return rc;
	uint64_t i = n & (entries - 1);
	if (word & 2)
		words[entries + i] = argument;
	word |= nic_lap(n, entries);
	if (ordered || word & 2)
		/* Release: pairs with the acquire in poll_one(). The payload and the argument are written before. */
		loom_store_release_sys(&words[i], word);
	else
		loom_store_relaxed_sys(&words[i], word);
	return 0;
}

/* Fires a tag. Lanes that fire the same tag at the same time push one trigger with the sum of their counts. */
LOOM_FN int nic_fire(struct loom_ctx *c, uint64_t tag, uint32_t count, int ordered)
{
	struct loom_match peers = loom_match(tag);
	uint32_t left = loom_match_sum(peers, count);
	int rc = 0;
	if (loom_match_leader(peers))
		while (left && !rc) {
			uint32_t n = left < NIC_COUNT_MAX ? left : NIC_COUNT_MAX;
			rc = nic_push(c, nic_word(tag, n), 0, ordered);
			left -= n;
		}
	return (int)(int64_t)loom_match_broadcast(peers, (uint64_t)(int64_t)rc);
}

/* ---- completion and arrival ------------------------------------------------------------------------ */

/* Loads a word that the NIC increments. i: index of the word; completion slots come first, then arrival words. */
LOOM_FN int64_t nic_poll_word(struct loom_ctx *c, const int64_t *word, uint32_t i)
{
	struct nic_device *d = nic_device(c);
	/* Acquire: pairs with the release in nic_complete() or arrive(), which follows the data. */
	if (d->shape.link != NIC_LINK_MANY)
		return (int64_t)loom_load_acquire_sys((const uint64_t *)word);
	struct nic_cached *n = (struct nic_cached *)((struct nic_ring *)(d + 1) + 1) + i;
	/* Of the lanes that poll this word at the same time, one loads the NIC's word. */
	if (loom_match_leader(loom_match((uint64_t)(uintptr_t)word)) && loom_load_relaxed_dev(&n->polling) == 0 &&
	    loom_exchange_acq_rel_dev(&n->polling, (uint64_t)1) == 0) {
		uint64_t seen = loom_load_acquire_sys((const uint64_t *)word);
		/* Both stores are releases: they pair with the acquire of `value` below and the acquire in the exchange
		 * above. So the data that the load of the NIC's word made visible are also visible to these readers. */
		loom_store_release_dev((uint64_t *)&n->value, seen);
		loom_store_release_dev(&n->polling, (uint64_t)0);
	}
	return (int64_t)loom_load_acquire_dev((const uint64_t *)&n->value);
}

LOOM_FN int64_t nic_completed(struct loom_ctx *c, uint32_t slot)
{
	const struct nic_shape *s = nic_shape(c);
	if (slot == 0 || slot >= s->slots)
		return LOOM_EINVAL;
	return nic_poll_word(c, &((struct nic_slot *)nic_at(c, s->slot_at) + slot)->completed, slot);
}

LOOM_FN int64_t nic_arrived(struct loom_ctx *c, uint32_t index)
{
	const struct nic_shape *s = nic_shape(c);
	if (index == 0 || index >= s->arrivals)
		return LOOM_EINVAL;
	return nic_poll_word(c, &((struct nic_arrival *)nic_at(c, s->arrival_at) + index)->count, s->slots + index);
}

LOOM_FN uint64_t nic_arrived_at(struct loom_ctx *c, uint32_t index)
{
	const struct nic_shape *s = nic_shape(c);
	if (index == 0 || index >= s->arrivals)
		return 0;
	/* A relaxed load suffices: the NIC stores the time before the count, and the caller has loaded the count. */
	return loom_load_relaxed_sys(&((struct nic_arrival *)nic_at(c, s->arrival_at) + index)->at_ns);
}

/* ---- remote memory access --------------------------------------------------------------------------
 *
 * A worker writes an operation into its own struct nic_rma and increments `issued`. When the NIC has performed the
 * operation, it stores the new value of `issued` to `completed`. */

struct nic_bell {
	/* An eventcount (lib/eventcount.h). The NIC's thread sleeps on this word, or in poll() on an eventfd. */
	uint32_t rings;
	uint32_t asleep; /* 1: the NIC's thread sleeps */
	uint32_t place;  /* index into the table of bell.c; not an address, because other ranks may write to this memory */
	uint32_t pad0;
	uint64_t pad[6];
};
struct nic_rma {
	uint32_t issued; /* number of operations issued; the worker writes this word and the rest of the cache line */
	uint32_t sleeps; /* 1: the worker sleeps on `completed` */
	uint32_t op, rank;
	loom_ref remote, local;
	uint64_t bytes;
	uint64_t pad0[3];
	uint64_t value, was; /* the operand of an add; the old value of the word, which the provider stores here */
	uint32_t completed;  /* number of operations completed; the NIC writes it */
	int32_t status;	     /* 0, or the provider's error of a failed operation */
	uint64_t pad1[5];
};

#ifdef LOOM_RANKS_RMA
#ifdef GPULOOM_DEV_CPU_H
#define NIC_RMA_SPIN_NS 5000u
#define NIC_RMA_HELP_NS 50000u /* time after which a waiting worker yields its core, which other ranks may share */
#define NIC_RMA_SLEEP_NS 1000000u /* longest sleep, after which the worker checks whether the run is stopped */

/* Waits between two polls for the completion. seen: the value of a->completed that the last poll loaded. *since: time
 * at which the wait began, or 0. */
LOOM_FN void nic_rest(struct loom_ctx *c, struct nic_bell *bell, struct nic_rma *a, uint32_t seen, uint64_t *since)
{
	uint64_t now = loom_clock_ns(c);
	*since = *since ? *since : now;
	if (nic_help(bell)) {
		if (now - *since > NIC_RMA_HELP_NS)
			loom_cpu_yield();
		return;
	}
	if (now - *since < NIC_RMA_SPIN_NS) {
		loom_pause(c);
		return;
	}
	(void)eventcount_enter_single(&a->completed, &a->sleeps);
	loom_sleep_on(c, &a->completed, seen, NIC_RMA_SLEEP_NS);
	eventcount_leave_single(&a->sleeps);
}

LOOM_FN void nic_ring_bell(struct loom_ctx *c, struct nic_bell *bell)
{
	int fd;
	if (nic_help(bell))
		return;
	fd = nic_bell_fd(bell);
	if (fd < 0)
		eventcount_advance(c, &bell->rings, &bell->asleep, 1);
	else if (eventcount_has_waiters(&bell->asleep)) /* the thread may be in poll(), because it also waits for the network */
		eventcount_fd_notify(fd);
}
#else /* simulated devices: no thread sleeps, and a store wakes the NIC */
#define nic_help(bell) ((void)(bell))
#define nic_leave(bell) ((void)(bell))
#define nic_rest(c, bell, a, seen, since) ((void)(seen), (void)(since), loom_pause(c))
#define nic_ring_bell(c, bell) ((void)0)
#endif

/* Waits until this worker's last operation is complete. */
LOOM_FN int nic_rma_await(struct loom_ctx *c, struct nic_bell *bell, struct nic_rma *a)
{
	uint64_t since = 0;
	uint32_t seen;
	/* Acquire: pairs with the release in finish() of rma.c. The data of the operation are written before. */
	while ((seen = loom_load_acquire_sys(&a->completed)) != a->issued) {
		if (loom_stopped(c))
			return LOOM_EINTR;
		nic_rest(c, bell, a, seen, &since);
	}
	if (!a->status)
		return 0;
	loom_worker_fail(c, LOOM_EIO, a->rank);
	return LOOM_EIO;
}

LOOM_FN int nic_rma_do(struct loom_ctx *c, const struct loom_rma *what, uint64_t *was)
{
	struct nic_bell *bell = (struct nic_bell *)nic_at(c, nic_shape(c)->rma_at);
	struct nic_rma *a = (struct nic_rma *)(bell + 1) + c->worker;
	int rc;
	if (!what) {
		if (was)
			nic_leave(bell);
		else
			(void)nic_help(bell);
		return 0;
	}
	rc = nic_rma_await(c, bell, a);
	if (rc)
		return rc;
	a->op = what->op;
	a->rank = what->rank;
	a->remote = what->remote;
	a->local = what->local;
	a->bytes = what->bytes;
	a->value = what->value;
	/* Release: pairs with the acquire in issued() of rma.c. */
	loom_store_release_sys(&a->issued, a->issued + 1);
	nic_ring_bell(c, bell);
	if (!was && what->op == LOOM_NET_ADD)
		return 0;
	rc = nic_rma_await(c, bell, a);
	if (!rc && was)
		*was = a->was;
	return rc;
}

#define NIC_RMA(NAME)                                                                              \
	LOOM_FN int NAME##_rma(struct loom_ctx *c, const struct loom_rma *what, uint64_t *was)      \
	{                                                                                          \
		return nic_rma_do(c, what, was);                                                   \
	}
#else
#define NIC_RMA(NAME)
#endif

/* ---- kernel boundaries ----------------------------------------------------------------------------- */

LOOM_FN void nic_wait_ns(struct loom_ctx *c, uint64_t ns)
{
	if (!ns)
		return;
	uint64_t until = loom_clock_ns(c) + ns;
	while (loom_clock_ns(c) < until && !loom_stopped(c))
		loom_pause(c);
}

/* Ends the kernel of this device. Called by all workers. Returns 1 to lane 0 of the worker that arrives last, after the
 * teardown time, and 0 to every other lane. *kernel is set only on lane 0: the number of the boundary. */
LOOM_FN int nic_kernel_end(struct loom_ctx *c, uint64_t *kernel)
{
	struct nic_device *d = nic_device(c);
	loom_barrier_lanes(c);
	if (c->lane != 0)
		return 0;
	*kernel = loom_load_relaxed_dev(&d->kernel);
	/* Each worker releases its writes. The last worker acquires them, and can pass them on. */
	if (loom_fetch_add_acq_rel_dev(&d->arrived, (uint64_t)1) + 1 != c->count)
		return 0;
	nic_wait_ns(c, d->teardown_ns);
	return 1;
}

/* Begins the next kernel. Called by the lane to which nic_kernel_end() returned 1. */
LOOM_FN void nic_kernel_next(struct loom_ctx *c, uint64_t kernel)
{
	struct nic_device *d = nic_device(c);
	loom_store_relaxed_dev(&d->arrived, (uint64_t)0);
	/* Release: pairs with the acquire in nic_kernel_await(). */
	loom_store_release_dev(&d->kernel, kernel + 1);
}

/* Begins the next kernel after the time that its launch takes. */
LOOM_FN void nic_kernel_begin(struct loom_ctx *c, uint64_t kernel)
{
	nic_wait_ns(c, nic_device(c)->launch_ns);
	nic_kernel_next(c, kernel);
}

/* Waits until the next kernel has begun. Called by all workers. */
LOOM_FN int nic_kernel_await(struct loom_ctx *c, uint64_t kernel)
{
	struct nic_device *d = nic_device(c);
	uint64_t stopped = 0;
	if (c->lane == 0)
		while (loom_load_acquire_dev(&d->kernel) == kernel && !stopped) {
			stopped = (uint64_t)loom_stopped(c);
			loom_pause(c);
		}
	return loom_from_lane0(c, stopped) ? LOOM_EINTR : 0;
}

/* The boundary of a mechanism that sends at each fire. The boundary itself sends nothing. */
LOOM_FN int nic_boundary(struct loom_ctx *c)
{
	uint64_t kernel = 0;
	if (nic_kernel_end(c, &kernel))
		nic_kernel_begin(c, kernel);
	return nic_kernel_await(c, kernel);
}

/* ---- fires that wait for the end of the kernel ------------------------------------------------------ */

LOOM_FN int nic_record(struct loom_ctx *c, uint64_t word)
{
	struct nic_record *r = (struct nic_record *)c->own[LOOM_TRIGGER];
	uint64_t n = loom_fetch_add_relaxed_dev(&r->fires, (uint64_t)1);
	if (n >= nic_shape(c)->recorded)
		return LOOM_EFULL;
	/* A plain store: the atomic add in nic_kernel_end() releases it, and the reader has acquired that add. */
	((uint64_t *)(r + 1))[n] = word;
	return 0;
}

/* ---- ops that plug-ins share ------------------------------------------------------------------------- */

LOOM_FN int nic_may_fire(uint64_t tag, uint32_t count)
{
	return tag - 1 < LOOM_TAG_MAX && count - 1 < NIC_COUNT_MAX;
}

/* For mechanisms in which an unordered fire is not cheaper, because every fire is an atomic add, or waits for the
 * kernel's end. */
#define NIC_RELAXED_IS_ORDERED(NAME)                                                               \
	LOOM_FN int NAME##_fire_relaxed(struct loom_ctx *c, uint64_t tag, uint32_t count)          \
	{                                                                                          \
		return NAME##_fire(c, tag, count);                                                 \
	}

/* For mechanisms where, in addition, a fire cannot carry an argument. */
#define NIC_FIRE_ALONE(NAME)                                                                       \
	NIC_RELAXED_IS_ORDERED(NAME)                                                               \
	LOOM_FN int NAME##_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)          \
	{                                                                                          \
		(void)c, (void)tag, (void)argument;                                                \
		return LOOM_ENOTSUP;                                                               \
	}

#define NIC_READS(NAME)                                                                            \
	LOOM_FN int64_t NAME##_completed(struct loom_ctx *c, uint32_t slot)                        \
	{                                                                                          \
		return nic_completed(c, slot);                                                     \
	}                                                                                          \
	LOOM_FN int64_t NAME##_arrived(struct loom_ctx *c, uint32_t index)                         \
	{                                                                                          \
		return nic_arrived(c, index);                                                      \
	}                                                                                          \
	LOOM_FN uint64_t NAME##_arrived_at(struct loom_ctx *c, uint32_t index)                     \
	{                                                                                          \
		return nic_arrived_at(c, index);                                                   \
	}                                                                                          \
	NIC_RMA(NAME)

/* For mechanisms that send operations when the kernel ends. The plug-in defines NAME##_boundary(). */
#define NIC_AT_END(NAME)                                                                           \
	NIC_READS(NAME)                                                                            \
	LOOM_FN int NAME##_deliver(struct loom_ctx *c)                                             \
	{                                                                                          \
		return NAME##_boundary(c);                                                         \
	}

/* For mechanisms that send operations at each fire, so that a boundary sends nothing. */
#define NIC_SENDS_AT_ONCE(NAME)                                                                    \
	LOOM_FN int NAME##_boundary(struct loom_ctx *c)                                            \
	{                                                                                          \
		return nic_boundary(c);                                                            \
	}                                                                                          \
	LOOM_FN int NAME##_deliver(struct loom_ctx *c)                                             \
	{                                                                                          \
		(void)c;                                                                           \
		return 0;                                                                          \
	}
#define NIC_AT_ONCE(NAME)                                                                          \
	NIC_READS(NAME)                                                                            \
	NIC_SENDS_AT_ONCE(NAME)

#endif
