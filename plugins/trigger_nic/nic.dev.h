/* SPDX-License-Identifier: Apache-2.0 */
/* What workers and the NIC share: the trigger FIFO of each device, completion slots, arrival words, and
 * the gate of kernel boundaries. Device code, common to all trigger plug-ins.
 *
 * A trigger is one 8-byte word whose store is its commit:
 *   bit 0      lap: 1 in the first pass over the ring, 0 in the second, ... so nobody clears slots
 *   bit 1      an argument stands in the slot of the same number
 *   bits 2-15  count
 *   bits 16-63 tag */
#ifndef TRIGGER_NIC_DEV_H
#define TRIGGER_NIC_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/trigger.h>
#endif

#define NIC_COUNT_MAX 0x3fffu

/* One completion slot: written by the NIC alone. */
struct nic_slot {
	uint64_t completed;
	int64_t failed; /* the first failure, an enum loom_err: stored before `completed` ever grows on */
	uint64_t at_ns; /* with stamp = yes: when the last one completed, CLOCK_MONOTONIC */
	uint64_t pad[5];
};
struct nic_arrival {
	uint64_t count;
	uint64_t at_ns;
	uint64_t pad[6];
};

/* A device's FIFO: tail and then `entries` words, then as many arguments. */
struct nic_fifo {
	uint64_t tail; /* how many words the NIC has taken */
	uint64_t pad[7];
};

/* Head of the global block; offsets are from here. */
struct nic_board {
	uint32_t entries; /* of a FIFO, a power of two; 0: this plug-in has none */
	uint32_t slots, arrivals;
	uint32_t recorded; /* fires that one worker may record in a kernel */
	uint64_t slot_at, arrival_at, fifo_at, fifo_bytes, gate_at, extra_at;
	uint64_t extra; /* entries of what stands at extra_at, a power of two or 0 */
	int64_t failed; /* the NIC itself, for waits that no slot ends */
	uint64_t pad[6];
};

/* Between a device and the host, where the host takes part in kernel boundaries. */
struct nic_gate {
	uint64_t ended; /* kernels that have ended; by the device */
	uint64_t pad0[7];
	uint64_t begun; /* ends that the host has dealt with */
	uint64_t pad1[7];
};

/* A device's own block. */
struct nic_device {
	uint64_t head; /* FIFO slots given to producers */
	uint64_t pad0[7];
	uint64_t tail; /* what was last seen of the NIC's */
	uint64_t pad1[7];
	uint64_t arrived; /* workers at the boundary */
	uint64_t pad2[7];
	uint64_t kernel; /* boundaries passed */
	uint64_t pad3[7];
	uint64_t launch_ns, teardown_ns;
	uint64_t pad4[6];
};

/* A worker's block where fires wait for the end of the kernel: `recorded` words of {tag, count}. */
struct nic_record {
	uint64_t fires;
	uint64_t pad[7];
};

LOOM_FN struct nic_board *nic_board(const struct loom_ctx *c)
{
	return (struct nic_board *)c->global[LOOM_TRIGGER];
}
LOOM_FN struct nic_device *nic_device(const struct loom_ctx *c)
{
	return (struct nic_device *)c->on_device[LOOM_TRIGGER];
}
LOOM_FN void *nic_at(const struct nic_board *b, uint64_t offset)
{
	return (char *)b + offset;
}
LOOM_FN uint64_t nic_lap(uint64_t n, uint32_t entries)
{
	return (n & entries) == 0;
}
LOOM_FN uint64_t nic_word(uint64_t tag, uint32_t count)
{
	return tag << 16 | (uint64_t)count << 2;
}

/* ---- the trigger FIFO ------------------------------------------------------------------------------ */

/* Takes slot n when the NIC has emptied it. 0 or LOOM_EINTR. */
LOOM_FN int nic_take_slot(struct loom_ctx *c, struct nic_fifo *f, uint32_t entries, uint64_t *n)
{
	struct nic_device *d = nic_device(c);
	*n = loom_fetch_add_relaxed_dev(&d->head, (uint64_t)1);
	/* Acquire: pairs with the release below by whichever worker saw the NIC's tail. */
	while (*n - loom_load_acquire_dev(&d->tail) >= entries) {
		/* Acquire: pairs with the NIC's release of tail. It has read the slot's last word. */
		uint64_t tail = loom_load_acquire_sys(&f->tail);
		/* Two workers may store out of order: a smaller tail only makes others look again. */
		loom_store_release_dev(&d->tail, tail);
		if (*n - tail < entries)
			break;
		if (loom_stopped(c))
			return LOOM_EINTR;
		loom_pause(c);
	}
	return 0;
}

LOOM_FN int nic_push(struct loom_ctx *c, uint64_t word, uint64_t argument)
{
	const struct nic_board *b = nic_board(c);
	struct nic_fifo *f =
		(struct nic_fifo *)nic_at(b, b->fifo_at + (uint64_t)c->device * b->fifo_bytes);
	uint64_t *words = (uint64_t *)(f + 1), n;
	int rc = nic_take_slot(c, f, b->entries, &n);
	if (rc)
		return rc;
	uint64_t i = n & (b->entries - 1);
	if (word & 2)
		words[b->entries + i] = argument;
	/* Release: pairs with the NIC's acquire of the word. The payload and the argument precede it. */
	loom_store_release_sys(&words[i], word | nic_lap(n, b->entries));
	return 0;
}

/* ---- completion and arrival ------------------------------------------------------------------------ */

LOOM_FN int64_t nic_completed(struct loom_ctx *c, uint32_t slot)
{
	const struct nic_board *b = nic_board(c);
	if (slot == 0 || slot >= b->slots)
		return LOOM_EINVAL;
	struct nic_slot *s = (struct nic_slot *)nic_at(b, b->slot_at) + slot;
	/* Acquire: pairs with the NIC's release. What the operation brought is visible. */
	uint64_t done = loom_load_acquire_sys(&s->completed);
	int64_t failed = (int64_t)loom_load_relaxed_sys((const uint64_t *)&s->failed);
	return failed ? failed : (int64_t)done;
}

LOOM_FN int64_t nic_arrived(struct loom_ctx *c, uint32_t index)
{
	const struct nic_board *b = nic_board(c);
	if (index == 0 || index >= b->arrivals)
		return LOOM_EINVAL;
	struct nic_arrival *a = (struct nic_arrival *)nic_at(b, b->arrival_at) + index;
	/* Acquire: pairs with the NIC's release; the data that were notified are visible. */
	uint64_t n = loom_load_acquire_sys(&a->count);
	int64_t failed = (int64_t)loom_load_relaxed_sys((const uint64_t *)&b->failed);
	return failed ? failed : (int64_t)n;
}

LOOM_FN uint64_t nic_arrived_at(struct loom_ctx *c, uint32_t index)
{
	const struct nic_board *b = nic_board(c);
	if (index == 0 || index >= b->arrivals)
		return 0;
	/* Stored before the count that its caller has seen. */
	return loom_load_relaxed_sys(&((struct nic_arrival *)nic_at(b, b->arrival_at) + index)->at_ns);
}

/* ---- kernel boundaries ----------------------------------------------------------------------------- */

LOOM_FN void nic_spend(struct loom_ctx *c, uint64_t ns)
{
	if (!ns)
		return;
	uint64_t until = loom_clock_ns(c) + ns;
	while (loom_clock_ns(c) < until && !loom_stopped(c))
		loom_pause(c);
}

/* The kernel of this device ends: 1 for the last worker's lane 0, after the teardown, 0 for all others.
 * *kernel is the number of the boundary. */
LOOM_FN int nic_kernel_end(struct loom_ctx *c, uint64_t *kernel)
{
	struct nic_device *d = nic_device(c);
	loom_barrier_lanes(c);
	if (c->lane != 0)
		return 0;
	*kernel = loom_load_relaxed_dev(&d->kernel);
	/* Each worker releases what it wrote; the last acquires it all, for the NIC or the host. */
	if (loom_fetch_add_acq_rel_dev(&d->arrived, (uint64_t)1) + 1 != c->count)
		return 0;
	nic_spend(c, d->teardown_ns);
	return 1;
}

/* The next kernel begins: called by the one who ended the last. */
LOOM_FN void nic_kernel_begin(struct loom_ctx *c, uint64_t kernel)
{
	struct nic_device *d = nic_device(c);
	nic_spend(c, d->launch_ns);
	loom_store_relaxed_dev(&d->arrived, (uint64_t)0);
	/* Release: pairs with the acquire in nic_kernel_await. */
	loom_store_release_dev(&d->kernel, kernel + 1);
}

/* All workers: until the next kernel has begun. */
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

/* A boundary that sends nothing: the mechanism needs none for that. */
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
	const struct nic_board *b = nic_board(c);
	struct nic_record *r = (struct nic_record *)c->own[LOOM_TRIGGER];
	uint64_t n = loom_fetch_add_relaxed_dev(&r->fires, (uint64_t)1);
	if (n >= b->recorded)
		return LOOM_EFULL;
	/* Plain: the boundary's add releases it, and its reader has acquired that. */
	((uint64_t *)(r + 1))[n] = word;
	return 0;
}

/* ---- ops that plug-ins share, under the names of one of them ---- */

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
	}

/* Where a fire is on its way at once: nothing waits for the end of a kernel. */
#define NIC_AT_ONCE(NAME)                                                                          \
	LOOM_FN int NAME##_boundary(struct loom_ctx *c)                                            \
	{                                                                                          \
		return nic_boundary(c);                                                            \
	}                                                                                          \
	LOOM_FN int NAME##_deliver(struct loom_ctx *c)                                             \
	{                                                                                          \
		(void)c;                                                                           \
		return 0;                                                                          \
	}

#endif
