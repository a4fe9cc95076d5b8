/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's end of the service path: request rings and doors. Device code.
 *
 * Each worker has a ring that it alone fills; the host alone empties it. The number of slots bounds what one worker can
 * have outstanding. A request is words in a slot, then a store of how many the worker has posted: its *told* word. An
 * answer is one word, with a bit that is 1 in the first pass over the ring, 0 in the second, ..., so nobody clears it.
 *
 * A GPU lies behind a link: a store is on its way at once, a load takes a round trip, and read-modify-writes of both
 * sides on one word are lost. So what crosses is stored by one side alone, and what only a worker needs is in its
 * *port*, in its device's memory. It loads answers and nothing else from the host.
 *
 * The host finds what is waiting through one bit per worker, which worker and host both change. With a GPU in the stack
 * (`plain`) it compares the told words instead. A GPU's workers may count what they post in their device's memory as well:
 * a word on which the host can sleep. A door is where the host waits for work, one per
 * core that takes interrupts. Host and worker meet there as Dekker's two processes do: the worker sets
 * its bit and looks whether the door is armed; the host arms the door and looks at the bits, each with a
 * full fence between the two. One of them sees the other. */
#ifndef QOS_SERVICE_DEV_H
#define QOS_SERVICE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/qos.h>
#endif

#define SSR_VECTORS 64u

struct ssr_slot {
	struct loom_request request;
	uint64_t posted_ns; /* 0: on a clock that the host does not share */
	uint64_t pad[2];
};

/* At the begin of a device's block; a port for each of its workers follows. */
struct ssr_near {
	uint64_t posted; /* requests of all workers, in all samples: see loom_interrupt */
	uint64_t pad[7];
};

/* A worker's end of its ring: near the worker, which alone uses it while it runs. The host fills it in before that. */
struct ssr_port {
	uint64_t head;     /* requests ever posted */
	uint64_t answered; /* so many, the first ones, are known to be answered */
	/* Constant. Places are bytes from the begin of the block for the stack. */
	uint64_t told_at, slot_at, answer_at;
	uint32_t slots, shift; /* slots = 1 << shift; 0: no tenant */
	uint32_t tenant;
	uint32_t plain; /* see above; then nobody is to be interrupted */
	uint32_t nap_ns; /* longest between two looks at an answer */
	uint32_t raises; /* 1: counts what it posts */
};

enum ssr_armed {
	SSR_SHUT = 0, /* the host knows already, or looks before it waits again */
	SSR_OPEN,     /* the host waits here and wants to be interrupted */
	SSR_WINDOW,   /* it was, and waits for the end of the window: at the count only */
};
struct ssr_door {
	uint32_t armed;   /* enum ssr_armed */
	uint32_t pending; /* posted since the last interrupt, while interrupts are moderated */
	int32_t event_fd, timer_fd;
	uint32_t rung; /* futex: counts, like the eventfd */
	uint32_t pad0;
	uint64_t interrupts;
	uint64_t pad1[4];
};

struct ssr_head {
	uint32_t notify;  /* enum loom_qos_notify */
	uint32_t vectors; /* doors in use */
	uint32_t every;   /* 1: each request tries to interrupt, not only a worker's first */
	uint32_t pad0;
	uint64_t bits_at;
	uint64_t pad1[5];
	/* The host stores these while workers run. */
	uint32_t count; /* moderation: interrupt at so many ... */
	uint32_t pad2;
	uint64_t window_ns; /* ... or after so long */
	uint64_t route;     /* bits of doors that take interrupts */
	uint64_t wake_mask;      /* bits of tenants that may ring at `bedside` */
	uint64_t pad3[4];
	uint32_t next; /* whose turn it is among several doors */
	uint32_t pad4[15];
	struct ssr_door door[SSR_VECTORS];
	/* Where whoever serves sleeps between turns, all doors shut: its own eventfd, however others ring. */
	struct ssr_door bedside;
};

LOOM_FN struct ssr_head *ssr_head(const struct loom_ctx *c)
{
	return (struct ssr_head *)c->global[LOOM_QOS];
}

LOOM_FN struct ssr_port *ssr_port(const struct loom_ctx *c)
{
	return (struct ssr_port *)((struct ssr_near *)c->on_device[LOOM_QOS] + 1) + (c->worker - c->first);
}

LOOM_FN uint64_t *ssr_bits(struct ssr_head *h, uint32_t worker)
{
	return (uint64_t *)((char *)h + h->bits_at) + worker / 64;
}

/* How many requests the worker has posted, modulo 2^32: it alone stores. */
LOOM_FN uint32_t *ssr_told(struct ssr_head *h, const struct ssr_port *p)
{
	return (uint32_t *)((char *)h + p->told_at);
}

LOOM_FN struct ssr_slot *ssr_slot(struct ssr_head *h, const struct ssr_port *p, uint64_t at)
{
	return (struct ssr_slot *)((char *)h + p->slot_at) + (at & (p->slots - 1));
}

/* The host alone stores: twice the result, and the lap in bit 0. At first 0. */
LOOM_FN uint64_t *ssr_answer(struct ssr_head *h, const struct ssr_port *p, uint64_t at)
{
	return (uint64_t *)((char *)h + p->answer_at) + (at & (p->slots - 1));
}

/* Bit 0 of the answer to request `at`. */
LOOM_FN uint64_t ssr_lap(uint64_t at, uint32_t shift)
{
	return (at >> shift & 1) ^ 1;
}

/* The interrupt itself. A GPU has none: the host polls the bits. */
#ifdef GPULOOM_DEV_CPU_H
#include <sys/timerfd.h>

/* A full one was rung and not heard yet. Otherwise a write may have been interrupted. */
LOOM_FN void ssr_ring_fd(int fd)
{
	uint64_t one = 1;
	for (int tries = 0; tries < 3 && write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN; tries++)
		;
}

LOOM_FN void ssr_raise(struct ssr_head *h, struct ssr_door *d)
{
	/* Whoever shuts the door interrupts: once per arming. */
	if (loom_load_relaxed_sys(&d->armed) == SSR_SHUT ||
	    loom_exchange_acq_rel_sys(&d->armed, (uint32_t)SSR_SHUT) == SSR_SHUT)
		return;
	loom_fetch_add_relaxed_sys(&d->interrupts, (uint64_t)1);
	if (h->notify == LOOM_QOS_FUTEX) {
		loom_fetch_add_acq_rel_sys(&d->rung, 1u);
		loom_futex_wake(&d->rung, 1, 0);
	} else if (h->notify == LOOM_QOS_EVENTFD) {
		ssr_ring_fd(d->event_fd);
	}
}

/* Below the count. An eventfd has the device's timer beside it, which the first request of a window
 * starts whether the door is open or not. Whoever waits for a futex keeps the window itself: any request
 * that finds the door open wakes it, not the first alone, for the first may have found it shut. */
LOOM_FN void ssr_raise_later(struct ssr_head *h, struct ssr_door *d, int first, uint64_t window_ns)
{
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(window_ns / 1000000000u),
					     .tv_nsec = (long)(window_ns % 1000000000u)}};
	if (h->notify != LOOM_QOS_EVENTFD) {
		if (loom_load_relaxed_sys(&d->armed) == SSR_OPEN)
			ssr_raise(h, d);
	} else if (first) {
		timerfd_settime(d->timer_fd, 0, &at, NULL);
	}
}

LOOM_FN void ssr_rouse(struct ssr_head *h, const struct ssr_port *p)
{
	struct ssr_door *d = &h->bedside;
	/* Acquire: pairs with the release of arming; `heed` was stored before. */
	if (loom_load_acquire_sys(&d->armed) == SSR_SHUT || !(loom_load_relaxed_sys(&h->wake_mask) >> p->tenant & 1) ||
	    loom_exchange_acq_rel_sys(&d->armed, (uint32_t)SSR_SHUT) == SSR_SHUT)
		return;
	ssr_ring_fd(d->event_fd);
}
#else
LOOM_FN void ssr_raise(struct ssr_head *h, struct ssr_door *d)
{
	(void)h, (void)d;
}
LOOM_FN void ssr_rouse(struct ssr_head *h, const struct ssr_port *p)
{
	(void)h, (void)p;
}
LOOM_FN void ssr_raise_later(struct ssr_head *h, struct ssr_door *d, int first, uint64_t window_ns)
{
	(void)h, (void)d, (void)first, (void)window_ns;
}
#endif

/* Interrupts are spread evenly over the doors that take them, as an interrupt controller does. */
LOOM_FN struct ssr_door *ssr_door(struct ssr_head *h)
{
	uint64_t route = loom_load_relaxed_sys(&h->route);
	if (!(route & (route - 1))) {
		uint32_t v = 0;
		while (v < SSR_VECTORS - 1 && !(route >> v & 1))
			v++;
		return &h->door[v];
	}
	uint32_t v = loom_fetch_add_relaxed_sys(&h->next, 1u) % h->vectors;
	while (!(route >> v & 1))
		v = (v + 1) % h->vectors;
	return &h->door[v];
}

LOOM_FN void ssr_interrupt(struct ssr_head *h)
{
	struct ssr_door *d = ssr_door(h);
	uint32_t count = loom_load_relaxed_sys(&h->count);
	uint64_t window = loom_load_relaxed_sys(&h->window_ns);
	if (!window) {
		ssr_raise(h, d);
		return;
	}
	/* Acq_rel: the host sets it to 0 before it looks at the bits, so what it does not see there
	 * counts from 0 again. */
	uint32_t pending = loom_fetch_add_acq_rel_sys(&d->pending, 1u) + 1;
	if (pending >= count)
		ssr_raise(h, d);
	else
		ssr_raise_later(h, d, pending == 1, window);
}

/* 1: the request that had the slot of request `at` before is answered. */
LOOM_FN int ssr_has_room(struct ssr_head *h, struct ssr_port *p, uint64_t at)
{
	uint64_t before = at - p->slots;
	if (at < p->slots || before < p->answered)
		return 1;
	/* Acquire: pairs with the release of the completion, which has read the request before. */
	if ((loom_load_acquire_sys(ssr_answer(h, p, at)) & 1) != ssr_lap(before, p->shift))
		return 0;
	p->answered += p->answered == before;
	return 1;
}

LOOM_FN int ssr_request(struct loom_ctx *c, const struct loom_request *request, uint64_t *id)
{
	struct ssr_head *h = ssr_head(c);
	struct ssr_port *p = ssr_port(c);
	uint64_t at = p->head;
	if (!p->slots)
		return LOOM_EINVAL;
	if (!ssr_has_room(h, p, at))
		return LOOM_EAGAIN;
	struct ssr_slot *slot = ssr_slot(h, p, at);
	slot->request = *request;
#ifdef GPULOOM_DEV_CPU_H
	slot->posted_ns = loom_clock_ns(c);
#endif
	/* Release: pairs with the acquire of the bottom half, which then reads the slot, and memory that it names. */
	loom_store_release_sys(ssr_told(h, p), (uint32_t)(at + 1));
	p->head = at + 1;
	*id = at;
	if (p->plain) {
		/* In no order with the told word: whoever wakes up too early looks again. */
		if (p->raises)
			loom_fetch_add_relaxed_dev(&((struct ssr_near *)c->on_device[LOOM_QOS])->posted, (uint64_t)1);
#ifdef GPULOOM_DEV_CPU_H /* others cannot rouse */
		/* Pairs with the fence in ssr_listen(): a server that went to sleep before it saw the word is roused. */
		loom_fence_seq_cst_sys();
		ssr_rouse(h, p);
#endif
		return 0;
	}
	uint64_t bit = 1ull << (c->worker & 63), *bits = ssr_bits(h, c->worker);
	/* Pairs with the fence after the host has cleared the bits: it sees the told word, or we the 0. */
	loom_fence_seq_cst_sys();
	if (!(loom_load_relaxed_sys(bits) & bit)) {
		loom_fetch_or_acq_rel_sys(bits, bit);
		/* Pairs with the fence after arming: the host sees the bit, or we the armed door. */
		loom_fence_seq_cst_sys();
	} else if (!h->every && !loom_load_relaxed_sys(&h->window_ns)) {
		return 0; /* whoever set it has seen to the interrupt */
	}
	ssr_interrupt(h);
	ssr_rouse(h, p);
	return 0;
}

/* How a worker waits. On the CPU it spins for as long as a quick service takes, then sleeps: an
 * accelerator's stalled wave costs the host nothing. A GPU's looks cross the link, which all its workers share: so the
 * more workers there are, the longer a nap may become. */
#ifdef GPULOOM_DEV_CPU_H
#define SSR_SPINS 2000u
#define SSR_LOOKS_PER_CLOCK 64u
LOOM_FN void ssr_pause(const struct loom_ctx *c, const struct ssr_port *p, uint32_t looks)
{
	(void)p;
	if (looks < SSR_SPINS)
		loom_pause(c);
	else /* as if each look so far had taken 4 us */
		loom_nap((uint64_t)(looks - SSR_SPINS + 1) * 4000, 0);
}
#else
#define SSR_LOOKS_PER_CLOCK 1u /* a look takes longer than to read the clock */
LOOM_FN void ssr_pause(const struct loom_ctx *c, const struct ssr_port *p, uint32_t looks)
{
	uint32_t ns = 16u << (looks < 12 ? looks : 12);
	(void)c;
	loom_nanosleep(ns < p->nap_ns ? ns : p->nap_ns);
}
#endif

/* The word that answers request `id`. */
LOOM_FN int ssr_await(struct loom_ctx *c, const struct ssr_port *p, uint64_t id, uint64_t timeout_ns, uint64_t *answer)
{
	const uint64_t *at = ssr_answer(ssr_head(c), p, id), want = ssr_lap(id, p->shift);
	uint64_t begin = 0;
	uint32_t looks = 0;
	/* Acquire: pairs with the release of the completion: what the service wrote. */
	while (((*answer = loom_load_acquire_sys(at)) & 1) != want) {
		if (loom_stopped(c))
			return LOOM_EINTR;
		if (timeout_ns && looks % SSR_LOOKS_PER_CLOCK == 0) {
			uint64_t now = loom_clock_ns(c);
			begin = begin ? begin : now;
			if (now - begin >= timeout_ns)
				return LOOM_ETIMEDOUT;
		}
		ssr_pause(c, p, ++looks);
	}
	return 0;
}

LOOM_FN int ssr_wait(struct loom_ctx *c, uint64_t id, uint64_t timeout_ns, int64_t *result)
{
	struct ssr_port *p = ssr_port(c);
	uint64_t answer = 0, head = p->head;
	if (!p->slots || id >= head)
		return LOOM_EINVAL;
	if (head - id > p->slots)
		return LOOM_ENOENT;
	loom_set_state(c, LOOM_STATE_SERVICE);
	int rc = ssr_await(c, p, id, timeout_ns, &answer);
	loom_set_state(c, LOOM_STATE_TASKS);
	if (rc)
		return rc;
	p->answered += p->answered == id;
	*result = (int64_t)answer >> 1;
	return 0;
}

/* LOOM_CALL finds a policy's functions by its name. */
#define SSR_DEVICE_HALF(policy)                                                                    \
	LOOM_FN int policy##_request(struct loom_ctx *c, const struct loom_request *request,       \
				     uint64_t *id)                                                 \
	{                                                                                          \
		return ssr_request(c, request, id);                                                \
	}                                                                                          \
	LOOM_FN int policy##_wait(struct loom_ctx *c, uint64_t id, uint64_t timeout_ns,            \
				  int64_t *result)                                                 \
	{                                                                                          \
		return ssr_wait(c, id, timeout_ns, result);                                        \
	}

#endif
