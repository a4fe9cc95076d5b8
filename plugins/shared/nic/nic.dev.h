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
	int64_t completed; /* how many; or the first failure, an enum loom_err, which stays */
	uint64_t at_ns; /* with stamp = yes: when the last one completed, CLOCK_MONOTONIC */
	uint64_t pad[6];
};
struct nic_arrival {
	int64_t count; /* how many; or the failure of the NIC itself, which stays */
	uint64_t at_ns;
	uint64_t pad[6];
};

/* A FIFO: tail and then `entries` words, then as many arguments. Those of a device follow each other. */
struct nic_fifo {
	uint64_t tail; /* how many words the NIC has taken */
	uint64_t pad[7];
};

/* Between a device and the host, where the host takes part in kernel boundaries. */
struct nic_gate {
	uint64_t ended; /* kernels that have ended; by the device */
	uint64_t pad0[7];
	uint64_t begun; /* ends that the host has dealt with */
	uint64_t pad1[7];
};

/* What stands where in the block for the stack, which is host memory: bytes from its start. Constant. The NIC has it,
 * and each device has a copy in its own memory. */
struct nic_shape {
	uint32_t entries; /* of a FIFO, a power of two; 0: this plug-in has none */
	uint32_t slots, arrivals;
	uint32_t recorded; /* fires that one worker may record in a kernel */
	uint64_t slot_at, arrival_at, fifo_at, fifo_bytes, gate_at, extra_at;
	uint64_t extra; /* entries of what stands at extra_at, a power of two or 0 */
	uint64_t far; /* of this device: enum nic_far */
	/* Tags that the device counts, from 0, and where in its block their tallies stand. 0: the NIC counts all. */
	uint64_t tallies, tally_at;
	uint64_t ask_at; /* what workers ask of other ranks: a struct nic_bell, a struct nic_ask per worker; 0: nothing */
	uint64_t pad[1];
};
/* How a device's workers lie to the host. */
enum nic_far {
	NIC_NEAR = 0, /* in the same memory */
	NIC_FEW,      /* across a link, each with a FIFO of its own */
	NIC_MANY,     /* across a link, with one FIFO; they share what one of them has seen of the host's words */
};

/* A slot or an arrival word as the workers of a device last saw it. */
struct nic_seen {
	int64_t value;
	uint64_t looking; /* 1: one of them reads the host's word */
};

/* The producers' side of a FIFO: in the device's block; of NIC_FEW in the worker's private memory. */
struct nic_ring {
	uint64_t head; /* slots given to producers */
	uint64_t pad0[7];
	uint64_t tail; /* what was last seen of the NIC's */
	uint64_t looking; /* 1: one worker reads that */
	uint64_t pad1[6];
};

/* The fires of a tag that its device counts; by tag. */
struct nic_tally {
	uint64_t every; /* the NIC is told of multiples of it alone; 0 and 1: of each fire. Below 2^30, constant while workers run */
	uint64_t value;
	uint64_t pad[6];
};

/* A device's own block, in its own memory; then a ring; then, of NIC_MANY, a struct nic_seen for all slots and
 * arrival words; then the tallies. */
struct nic_device {
	struct nic_shape shape;
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
	return (struct nic_ring *)(d->shape.far == NIC_FEW ? c->local[LOOM_TRIGGER] : (void *)(d + 1));
}
/* Where the counter of a tag stands, in the list of the host and in tables that devices look into. Fibonacci hashing: tags are mostly
 * consecutive. Eight such stay together, as they are mostly counted one after the other. */
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
 * On a GPU the words lie across a link: a store is on its way at once, a load takes a round trip. So the head is near,
 * and so is what was last seen of the tail; a producer only stores. Near means the device's memory or, as even a load
 * from there waits for the store before it, a worker's private one. */

/* Until the NIC has emptied slot n. One worker looks across the link for all. 0 or LOOM_EINTR. */
LOOM_FN int nic_await_slot(struct loom_ctx *c, struct nic_ring *d, const uint64_t *tail, uint32_t entries, uint64_t n)
{
	for (;;) {
		if (loom_load_relaxed_dev(&d->looking) == 0 && loom_exchange_acq_rel_dev(&d->looking, (uint64_t)1) == 0) {
			/* Acquire: pairs with the NIC's release of tail. It has read the words before. */
			uint64_t seen = loom_load_acquire_sys(tail);
			/* Release, both: pair with the acquires of tail here and of looking above. */
			loom_store_release_dev(&d->tail, seen);
			loom_store_release_dev(&d->looking, (uint64_t)0);
		}
		if (n - loom_load_acquire_dev(&d->tail) < entries)
			return 0;
		if (loom_stopped(c))
			return LOOM_EINTR;
		loom_pause(c);
	}
}

/* Takes slot n, once the NIC, whose tail that is, has emptied it. */
LOOM_FN int nic_take_slot(struct loom_ctx *c, const uint64_t *tail, uint32_t entries, uint64_t *n)
{
	struct nic_ring *ring = nic_ring(c);
	*n = loom_take_ticket_dev(&ring->head);
	/* The store into the slot must not pass this load of a tail behind which the NIC has read. */
	return *n - loom_load_guard_dev(&ring->tail) < entries ? 0 : nic_await_slot(c, ring, tail, entries, *n);
}

/* `ordered`: what this lane wrote before is sent with it. */
LOOM_FN int nic_push(struct loom_ctx *c, uint64_t word, uint64_t argument, int ordered)
{
	const struct nic_shape *s = nic_shape(c);
	uint32_t own = s->far == NIC_FEW ? c->worker - c->first : 0;
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
		/* Release: pairs with the NIC's acquire of the word. The payload and the argument precede it. */
		loom_store_release_sys(&words[i], word);
	else
		loom_store_relaxed_sys(&words[i], word);
	return 0;
}

/* Whether the device counts this tag, and of n more fires how many the NIC is to be told now. Whoever crosses a multiple
 * tells of the fires since the last one, those of others too, and sends what those wrote. Constant in a program for GPUs that do
 * not count: one load more before each store takes a quarter of the rate. */
#if defined(LOOM_DEVICE_COMPILE) && !defined(NIC_TALLIES)
#define nic_counts(c, tag) 0
#define nic_due(c, tag, n, ordered) (n)
#else
LOOM_FN struct nic_tally *nic_tally(const struct loom_ctx *c, uint64_t tag)
{
	return (struct nic_tally *)((char *)nic_device(c) + nic_shape(c)->tally_at) + tag;
}

LOOM_FN int nic_counts(const struct loom_ctx *c, uint64_t tag)
{
	return tag < nic_shape(c)->tallies && nic_tally(c, tag)->every > 1;
}

LOOM_FN uint32_t nic_due(struct loom_ctx *c, uint64_t tag, uint32_t n, int *ordered)
{
	if (!nic_counts(c, tag))
		return n;
	struct nic_tally *t = nic_tally(c, tag);
	uint64_t every = t->every;
	/* Release: pairs with the acquire of the one who crosses the next multiple. */
	uint64_t before = *ordered ? loom_fetch_add_acq_rel_dev(&t->value, (uint64_t)n) :
				     loom_fetch_add_relaxed_dev(&t->value, (uint64_t)n);
	uint64_t since = before % every + n;
	if (since < every)
		return 0;
	if (!*ordered)
		(void)loom_load_acquire_dev(&t->value); /* pairs with the releases of those who ordered theirs */
	*ordered = 1;
	return (uint32_t)(since - since % every);
}
#endif

/* Lanes that fire the same tag at the same time make one trigger. */
LOOM_FN int nic_fire(struct loom_ctx *c, uint64_t tag, uint32_t count, int ordered)
{
	struct loom_match peers = loom_match(tag);
	uint32_t left = loom_match_sum(peers, count);
	int rc = 0;
	if (loom_match_leader(peers))
		for (left = nic_due(c, tag, left, &ordered); left && !rc;) {
			uint32_t n = left < NIC_COUNT_MAX ? left : NIC_COUNT_MAX;
			rc = nic_push(c, nic_word(tag, n), 0, ordered);
			left -= n;
		}
	return (int)(int64_t)loom_match_broadcast(peers, (uint64_t)(int64_t)rc);
}

/* ---- completion and arrival ------------------------------------------------------------------------ */

/* A word that the NIC counts up, number `i` of all. */
LOOM_FN int64_t nic_see(struct loom_ctx *c, const int64_t *word, uint32_t i)
{
	struct nic_device *d = nic_device(c);
	/* Acquire: pairs with the NIC's release. What the operation brought is visible. */
	if (d->shape.far != NIC_MANY)
		return (int64_t)loom_load_acquire_sys((const uint64_t *)word);
	struct nic_seen *n = (struct nic_seen *)((struct nic_ring *)(d + 1) + 1) + i;
	/* Of the lanes that look together, one. */
	if (loom_match_leader(loom_match((uint64_t)(uintptr_t)word)) && loom_load_relaxed_dev(&n->looking) == 0 &&
	    loom_exchange_acq_rel_dev(&n->looking, (uint64_t)1) == 0) {
		uint64_t seen = loom_load_acquire_sys((const uint64_t *)word);
		/* Release, both: pair with the acquires of value below and of looking above, and pass on what the acquire
		 * of the NIC's word brought. */
		loom_store_release_dev((uint64_t *)&n->value, seen);
		loom_store_release_dev(&n->looking, (uint64_t)0);
	}
	return (int64_t)loom_load_acquire_dev((const uint64_t *)&n->value);
}

LOOM_FN int64_t nic_completed(struct loom_ctx *c, uint32_t slot)
{
	const struct nic_shape *s = nic_shape(c);
	if (slot == 0 || slot >= s->slots)
		return LOOM_EINVAL;
	return nic_see(c, &((struct nic_slot *)nic_at(c, s->slot_at) + slot)->completed, slot);
}

LOOM_FN int64_t nic_arrived(struct loom_ctx *c, uint32_t index)
{
	const struct nic_shape *s = nic_shape(c);
	if (index == 0 || index >= s->arrivals)
		return LOOM_EINVAL;
	return nic_see(c, &((struct nic_arrival *)nic_at(c, s->arrival_at) + index)->count, s->slots + index);
}

LOOM_FN uint64_t nic_arrived_at(struct loom_ctx *c, uint32_t index)
{
	const struct nic_shape *s = nic_shape(c);
	if (index == 0 || index >= s->arrivals)
		return 0;
	/* Stored before the count that its caller has seen. */
	return loom_load_relaxed_sys(&((struct nic_arrival *)nic_at(c, s->arrival_at) + index)->at_ns);
}

/* ---- what workers ask of other ranks' memory ---------------------------------------------------------
 *
 * A worker writes what it wants into a place of its own and counts `asked` up; the NIC does it and counts `answered` up. */

struct nic_bell {
	uint32_t rings;	 /* the NIC's thread sleeps on it, or on an eventfd ... */
	uint32_t asleep; /* ... and says so here */
	uint32_t place;	 /* in the table of bell.c. Other ranks may write here: no address, no descriptor */
	uint32_t pad0;
	uint64_t pad[6];
};
struct nic_ask {
	uint32_t asked;  /* by the worker, as all of this line */
	uint32_t sleeps; /* 1: it sleeps on `answered` */
	uint32_t op, rank;
	loom_ref remote, local;
	uint64_t bytes;
	uint64_t pad0[3];
	uint64_t value, was; /* operand and result: next to each other */
	uint32_t answered;   /* by the NIC */
	int32_t status;	     /* 0, or how an operation failed */
	uint64_t pad1[5];
};

#ifdef LOOM_RANKS_RMA
#ifdef GPULOOM_DEV_CPU_H
#define NIC_ASK_SPIN_NS 5000u
#define NIC_ASK_HELP_NS 50000u /* then others may have the core: ranks that share it */
#define NIC_ASK_SLEEP_NS 1000000u /* in case that the run is stopped */

/* bell.c: a worker of the NIC's process looks in place of the NIC's thread, so that no other thread needs its core. 0: it
 * is of another process. */
int nic_help(const struct nic_bell *bell);

/* Such a worker will not look again: the NIC's thread sleeps no longer on its account. */
void nic_leave(struct nic_bell *bell);

/* What wakes the NIC's thread from poll(); -1: nothing. */
int nic_bell_fd(const struct nic_bell *bell);

/* Between two looks for the answer, of which `seen` is the last one's. */
LOOM_FN void nic_rest(struct loom_ctx *c, struct nic_bell *bell, struct nic_ask *a, uint32_t seen, uint64_t *since)
{
	uint64_t now = loom_clock_ns(c);
	*since = *since ? *since : now;
	if (nic_help(bell)) {
		if (now - *since > NIC_ASK_HELP_NS)
			loom_cpu_yield();
		return;
	}
	if (now - *since < NIC_ASK_SPIN_NS) {
		loom_pause(c);
		return;
	}
	loom_store_relaxed_sys(&a->sleeps, 1u);
	/* Either the NIC sees that this worker sleeps, or the sleep ends at once: the word has changed. */
	loom_fence_seq_cst_sys();
	loom_sleep_on(c, &a->answered, seen, NIC_ASK_SLEEP_NS);
	loom_store_relaxed_sys(&a->sleeps, 0u);
}

/* Where the NIC's thread sleeps. */
LOOM_FN void nic_ring_bell(struct loom_ctx *c, struct nic_bell *bell)
{
	uint64_t one = 1;
	int fd;
	if (nic_help(bell))
		return;
	loom_fence_seq_cst_sys(); /* as above, with the sides changed: pairs with the fence in nap() */
	if (!loom_load_relaxed_sys(&bell->asleep))
		return;
	loom_fetch_add_relaxed_sys(&bell->rings, 1u);
	fd = nic_bell_fd(bell);
	if (fd < 0 || write(fd, &one, sizeof(one)) != sizeof(one))
		loom_wake(c, &bell->rings, 1);
}
#else /* simulated: nobody sleeps, and a store wakes the NIC */
#define nic_help(bell) ((void)(bell))
#define nic_leave(bell) ((void)(bell))
#define nic_rest(c, bell, a, seen, since) ((void)(seen), (void)(since), loom_pause(c))
#define nic_ring_bell(c, bell) ((void)0)
#endif

/* Until this worker's last wish is done. */
LOOM_FN int nic_await_answer(struct loom_ctx *c, struct nic_bell *bell, struct nic_ask *a)
{
	uint64_t since = 0;
	uint32_t seen;
	/* Acquire: pairs with the release in answer(); what the operation brought is here. */
	while ((seen = loom_load_acquire_sys(&a->answered)) != a->asked) {
		if (loom_stopped(c))
			return LOOM_EINTR;
		nic_rest(c, bell, a, seen, &since);
	}
	if (!a->status)
		return 0;
	loom_worker_fail(c, LOOM_EIO, a->rank);
	return LOOM_EIO;
}

LOOM_FN int nic_do_ask(struct loom_ctx *c, const struct loom_rma *ask, uint64_t *was)
{
	struct nic_bell *bell = (struct nic_bell *)nic_at(c, nic_shape(c)->ask_at);
	struct nic_ask *a = (struct nic_ask *)(bell + 1) + c->worker;
	int rc;
	if (!ask) {
		if (was)
			nic_leave(bell);
		else
			(void)nic_help(bell);
		return 0;
	}
	rc = nic_await_answer(c, bell, a);
	if (rc)
		return rc;
	a->op = ask->op;
	a->rank = ask->rank;
	a->remote = ask->remote;
	a->local = ask->local;
	a->bytes = ask->bytes;
	a->value = ask->value;
	/* Release: pairs with the NIC's acquire. */
	loom_store_release_sys(&a->asked, a->asked + 1);
	nic_ring_bell(c, bell);
	if (!was && ask->op == LOOM_NET_ADD)
		return 0;
	rc = nic_await_answer(c, bell, a);
	if (!rc && was)
		*was = a->was;
	return rc;
}

#define NIC_ASK(NAME)                                                                              \
	LOOM_FN int NAME##_rma(struct loom_ctx *c, const struct loom_rma *ask, uint64_t *was)      \
	{                                                                                          \
		return nic_do_ask(c, ask, was);                                                    \
	}
#else
#define NIC_ASK(NAME)
#endif

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
LOOM_FN void nic_kernel_next(struct loom_ctx *c, uint64_t kernel)
{
	struct nic_device *d = nic_device(c);
	loom_store_relaxed_dev(&d->arrived, (uint64_t)0);
	/* Release: pairs with the acquire in nic_kernel_await. */
	loom_store_release_dev(&d->kernel, kernel + 1);
}

/* The same after its launch. */
LOOM_FN void nic_kernel_begin(struct loom_ctx *c, uint64_t kernel)
{
	nic_spend(c, nic_device(c)->launch_ns);
	nic_kernel_next(c, kernel);
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
	struct nic_record *r = (struct nic_record *)c->own[LOOM_TRIGGER];
	uint64_t n = loom_fetch_add_relaxed_dev(&r->fires, (uint64_t)1);
	if (n >= nic_shape(c)->recorded)
		return LOOM_EFULL;
	/* Plain: the boundary's add releases it, and its reader has acquired that. */
	((uint64_t *)(r + 1))[n] = word;
	return 0;
}

/* ---- ops that plug-ins share, under the names of one of them ---- */

LOOM_FN int nic_may_fire(uint64_t tag, uint32_t count)
{
	return tag - 1 < LOOM_TAG_MAX && count - 1 < NIC_COUNT_MAX;
}

/* fire_with() where an argument has no way to the NIC. */
#define NIC_NO_ARGUMENT(policy)                                                                    \
	LOOM_FN int policy##_fire_with(struct loom_ctx *c, uint64_t tag, uint64_t argument)        \
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
	NIC_ASK(NAME)

/* A fire without order is none the cheaper: it waits for the kernel's end, or is an atomic addition anyway. */
#define NIC_RELAXED_IS_ORDERED(policy)                                                             \
	LOOM_FN int policy##_fire_relaxed(struct loom_ctx *c, uint64_t tag, uint32_t count)        \
	{                                                                                          \
		return policy##_fire(c, tag, count);                                               \
	}

/* Nothing is sent before the kernel ends. */
#define NIC_AT_END(policy)                                                                         \
	NIC_RELAXED_IS_ORDERED(policy)                                                             \
	LOOM_FN int policy##_deliver(struct loom_ctx *c)                                           \
	{                                                                                          \
		return policy##_boundary(c);                                                       \
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
