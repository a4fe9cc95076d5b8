/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's end of the service path: request rings and doorbells. Device code.
 *
 * Each worker has a ring: the worker is its only producer, the host its only consumer. The number of slots bounds the
 * requests that a worker can have outstanding. The worker stores a request into a slot, then the number of requests
 * posted: its published count. An answer is one word with a phase bit, which is 1 in the first pass over the ring, 0 in
 * the second, and so on. So the word need not be cleared.
 *
 * A GPU is behind a link: a store is sent at once, a load takes a round trip, and concurrent read-modify-writes of both
 * sides on one word are lost. So every word that crosses the link has one writer, and words that only the worker needs
 * are in its port, in device memory. From the host the worker loads only answers.
 *
 * The host finds pending requests by one bit per worker, which worker and host both change. With a GPU in the stack
 * (`by_count`) it compares the published counts instead. A GPU's workers may also count their posts in device memory,
 * in a word on which the host can sleep. The host waits at a doorbell, one per core that takes interrupts. Host and
 * worker synchronise there as in Dekker's algorithm. The worker sets its bit and checks whether the doorbell is armed;
 * the host arms the doorbell and checks the bits; each has a full fence in between. So at least one sees the other's
 * store. */
#ifndef QOS_SERVICE_DEV_H
#define QOS_SERVICE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/qos.h>
#endif

#define QOS_VECTORS 64u

struct qos_slot {
	struct loom_request request;
	uint64_t posted_ns; /* 0: the worker's clock differs from the host's */
	uint64_t pad[2];
};

/* At the start of a device's block. A port for each of its workers follows. */
struct qos_device_block {
	uint64_t posted; /* requests of all workers, in all samples: loom_interrupt */
	uint64_t pad[7];
};

/* A worker's end of its ring, in device memory. The host fills it in before a sample; then only this worker uses it. */
struct qos_port {
	uint64_t head;     /* requests posted so far */
	uint64_t answered; /* number of requests, from the first on, that are known to be answered */
	/* Constant. Offsets are in bytes from the start of the stack's block. */
	uint64_t published_at, slot_at, answer_at;
	uint32_t slots, shift; /* slots = 1 << shift; 0: no tenant */
	uint32_t tenant;
	uint32_t by_count; /* as above: the worker rings no doorbell */
	uint32_t nap_ns; /* longest nap between two polls of an answer */
	uint32_t counts_posted; /* 1: the worker counts its posts in qos_device_block */
};

enum qos_armed {
	QOS_DISARMED = 0, /* the host is already notified, or checks before it waits again */
	QOS_ARMED,     /* the host waits here for an interrupt */
	QOS_ARMED_WINDOW,   /* the host was interrupted, and waits for the end of the window, or for the count */
};
struct qos_doorbell {
	uint32_t armed;   /* enum qos_armed */
	uint32_t pending; /* requests since the last interrupt, while interrupts are moderated */
	int32_t event_fd, timer_fd;
	uint32_t rings; /* futex: counts rings, as the eventfd does */
	uint32_t pad0;
	uint64_t interrupts;
	uint64_t pad1[4];
};

struct qos_head {
	uint32_t notify;  /* enum loom_qos_notify */
	uint32_t vectors; /* doorbells in use */
	uint32_t every;   /* 1: each request tries to interrupt, not only a worker's first */
	uint32_t pad0;
	uint64_t bits_at;
	uint64_t pad1[5];
	/* The host stores these while workers run. */
	uint32_t count; /* moderation: number of requests that cause an interrupt */
	uint32_t pad2;
	uint64_t window_ns; /* moderation: time after which an interrupt follows */
	uint64_t route;     /* bits of doorbells that take interrupts */
	uint64_t wake_mask;      /* bits of tenants whose requests ring `server_doorbell` */
	uint64_t pad3[4];
	uint32_t next; /* used for round robin over several doorbells */
	uint32_t pad4[15];
	struct qos_doorbell doorbell[QOS_VECTORS];
	/* The serving thread sleeps here between rounds, while all other doorbells are disarmed. This doorbell has an
	 * eventfd of its own, whatever `notify` is. */
	struct qos_doorbell server_doorbell;
};

LOOM_FN struct qos_head *qos_head(const struct loom_ctx *c)
{
	return (struct qos_head *)c->global[LOOM_QOS];
}

LOOM_FN struct qos_port *qos_port(const struct loom_ctx *c)
{
	return (struct qos_port *)((struct qos_device_block *)c->on_device[LOOM_QOS] + 1) + (c->worker - c->first);
}

LOOM_FN uint64_t *qos_bits(struct qos_head *h, uint32_t worker)
{
	return (uint64_t *)((char *)h + h->bits_at) + worker / 64;
}

/* Returns the number of requests that the worker has posted, modulo 2^32. Only the worker stores it. */
LOOM_FN uint32_t *qos_published(struct qos_head *h, const struct qos_port *p)
{
	return (uint32_t *)((char *)h + p->published_at);
}

LOOM_FN struct qos_slot *qos_slot(struct qos_head *h, const struct qos_port *p, uint64_t at)
{
	return (struct qos_slot *)((char *)h + p->slot_at) + (at & (p->slots - 1));
}

/* Returns an answer: twice the result, plus the phase in bit 0. Only the host stores it. Initially 0. */
LOOM_FN uint64_t *qos_answer(struct qos_head *h, const struct qos_port *p, uint64_t at)
{
	return (uint64_t *)((char *)h + p->answer_at) + (at & (p->slots - 1));
}

/* Returns bit 0 of the answer to request `at`. */
LOOM_FN uint64_t qos_phase(uint64_t at, uint32_t shift)
{
	return (at >> shift & 1) ^ 1;
}

/* Sends the interrupt. A GPU has none: the host polls. */
#ifdef GPULOOM_DEV_CPU_H
#include <sys/timerfd.h>

/* EAGAIN: the counter is full, so a notification is pending. Any other failure may be an interrupted write. */
LOOM_FN void qos_signal_fd(int fd)
{
	uint64_t one = 1;
	for (int tries = 0; tries < 3 && write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN; tries++)
		;
}

LOOM_FN void qos_doorbell_ring(struct qos_head *h, struct qos_doorbell *d)
{
	/* The worker that disarms the doorbell interrupts, so there is one interrupt per arming. */
	if (loom_load_relaxed_sys(&d->armed) == QOS_DISARMED ||
	    loom_exchange_acq_rel_sys(&d->armed, (uint32_t)QOS_DISARMED) == QOS_DISARMED)
		return;
	loom_fetch_add_relaxed_sys(&d->interrupts, (uint64_t)1);
	if (h->notify == LOOM_QOS_FUTEX) {
		loom_fetch_add_acq_rel_sys(&d->rings, 1u);
		loom_futex_wake(&d->rings, 1, 0);
	} else if (h->notify == LOOM_QOS_EVENTFD) {
		qos_signal_fd(d->event_fd);
	}
}

/* Called below the count. An eventfd has a timer beside it, which the first request of a window starts whether or not
 * the doorbell is armed. With a futex the host measures the window. Every request that finds the doorbell armed then
 * wakes the top half, because the first one may have found it disarmed. */
LOOM_FN void qos_doorbell_ring_later(struct qos_head *h, struct qos_doorbell *d, int first, uint64_t window_ns)
{
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(window_ns / 1000000000u),
					     .tv_nsec = (long)(window_ns % 1000000000u)}};
	if (h->notify != LOOM_QOS_EVENTFD) {
		if (loom_load_relaxed_sys(&d->armed) == QOS_ARMED)
			qos_doorbell_ring(h, d);
	} else if (first) {
		timerfd_settime(d->timer_fd, 0, &at, NULL);
	}
}

LOOM_FN void qos_wake_server(struct qos_head *h, const struct qos_port *p)
{
	struct qos_doorbell *d = &h->server_doorbell;
	/* Acquire: pairs with the release in qos_wake_arm(); `wake_mask` was stored before. */
	if (loom_load_acquire_sys(&d->armed) == QOS_DISARMED ||
	    !(loom_load_relaxed_sys(&h->wake_mask) >> p->tenant & 1) ||
	    loom_exchange_acq_rel_sys(&d->armed, (uint32_t)QOS_DISARMED) == QOS_DISARMED)
		return;
	qos_signal_fd(d->event_fd);
}
#else
LOOM_FN void qos_doorbell_ring(struct qos_head *h, struct qos_doorbell *d)
{
	(void)h, (void)d;
}
LOOM_FN void qos_wake_server(struct qos_head *h, const struct qos_port *p)
{
	(void)h, (void)p;
}
LOOM_FN void qos_doorbell_ring_later(struct qos_head *h, struct qos_doorbell *d, int first, uint64_t window_ns)
{
	(void)h, (void)d, (void)first, (void)window_ns;
}
#endif

/* Spreads interrupts evenly over the doorbells that take them, as an interrupt controller does. */
LOOM_FN struct qos_doorbell *qos_doorbell(struct qos_head *h)
{
	uint64_t route = loom_load_relaxed_sys(&h->route);
	if (!(route & (route - 1))) {
		uint32_t v = 0;
		while (v < QOS_VECTORS - 1 && !(route >> v & 1))
			v++;
		return &h->doorbell[v];
	}
	uint32_t v = loom_fetch_add_relaxed_sys(&h->next, 1u) % h->vectors;
	while (!(route >> v & 1))
		v = (v + 1) % h->vectors;
	return &h->doorbell[v];
}

LOOM_FN void qos_notify_host(struct qos_head *h)
{
	struct qos_doorbell *d = qos_doorbell(h);
	uint32_t count = loom_load_relaxed_sys(&h->count);
	uint64_t window = loom_load_relaxed_sys(&h->window_ns);
	if (!window) {
		qos_doorbell_ring(h, d);
		return;
	}
	/* Acq_rel: the host sets the count to 0 before it loads the bits, so requests that it does not see there are
	 * counted from 0 again. */
	uint32_t pending = loom_fetch_add_acq_rel_sys(&d->pending, 1u) + 1;
	if (pending >= count)
		qos_doorbell_ring(h, d);
	else
		qos_doorbell_ring_later(h, d, pending == 1, window);
}

/* Returns 1 if the previous request in the slot of request `at` is answered. */
LOOM_FN int qos_has_room(struct qos_head *h, struct qos_port *p, uint64_t at)
{
	uint64_t before = at - p->slots;
	if (at < p->slots || before < p->answered)
		return 1;
	/* Acquire: pairs with the release of the completion, which has read the previous request. */
	if ((loom_load_acquire_sys(qos_answer(h, p, at)) & 1) != qos_phase(before, p->shift))
		return 0;
	p->answered += p->answered == before;
	return 1;
}

LOOM_FN int qos_request(struct loom_ctx *c, const struct loom_request *request, uint64_t *id)
{
	struct qos_head *h = qos_head(c);
	struct qos_port *p = qos_port(c);
	uint64_t at = p->head;
	if (!p->slots)
		return LOOM_EINVAL;
	if (!qos_has_room(h, p, at))
		return LOOM_EAGAIN;
	struct qos_slot *slot = qos_slot(h, p, at);
	slot->request = *request;
#ifdef GPULOOM_DEV_CPU_H
	slot->posted_ns = loom_clock_ns(c);
#endif
	/* Release: pairs with the acquire of the bottom half, which then reads the slot and its memory. */
	loom_store_release_sys(qos_published(h, p), (uint32_t)(at + 1));
	p->head = at + 1;
	*id = at;
	if (p->by_count) {
		/* Not ordered with the published count: a host thread that wakes up too early waits again. */
		if (p->counts_posted)
			loom_fetch_add_relaxed_dev(&((struct qos_device_block *)c->on_device[LOOM_QOS])->posted,
						   (uint64_t)1);
#ifdef GPULOOM_DEV_CPU_H /* only CPUs can wake the server */
		/* Pairs with the fence in qos_wake_arm(): a server that slept before it saw the count is woken. */
		loom_fence_seq_cst_sys();
		qos_wake_server(h, p);
#endif
		return 0;
	}
	uint64_t bit = 1ull << (c->worker & 63), *bits = qos_bits(h, c->worker);
	/* Pairs with the fence after the host has cleared the bits: the host sees the count, or the worker the 0. */
	loom_fence_seq_cst_sys();
	if (!(loom_load_relaxed_sys(bits) & bit)) {
		loom_fetch_or_acq_rel_sys(bits, bit);
		/* Pairs with the fence after arming: the host sees the bit, or this worker sees the doorbell armed. */
		loom_fence_seq_cst_sys();
	} else if (!h->every && !loom_load_relaxed_sys(&h->window_ns)) {
		return 0; /* the request that set the bit has rung the doorbell */
	}
	qos_notify_host(h);
	qos_wake_server(h, p);
	return 0;
}

/* How a worker waits. On a CPU it spins for as long as a quick service takes, then sleeps, as a stalled wave takes no
 * CPU time. Polls of a GPU cross the link, which all its workers share: the more workers, the longer the naps. */
#ifdef GPULOOM_DEV_CPU_H
#define QOS_SPINS 2000u
#define QOS_POLLS_PER_CLOCK 64u
LOOM_FN void qos_pause(const struct loom_ctx *c, const struct qos_port *p, uint32_t polls)
{
	(void)p;
	if (polls < QOS_SPINS)
		loom_pause(c);
	else /* as if each poll so far had taken 4 us */
		loom_nap((uint64_t)(polls - QOS_SPINS + 1) * 4000, 0);
}
#else
#define QOS_POLLS_PER_CLOCK 1u /* a poll takes longer than a read of the clock */
LOOM_FN void qos_pause(const struct loom_ctx *c, const struct qos_port *p, uint32_t polls)
{
	uint32_t ns = 16u << (polls < 12 ? polls : 12);
	(void)c;
	loom_nanosleep(ns < p->nap_ns ? ns : p->nap_ns);
}
#endif

/* Waits for the answer to request `id`. */
LOOM_FN int qos_await(struct loom_ctx *c, const struct qos_port *p, uint64_t id, uint64_t timeout_ns, uint64_t *answer)
{
	const uint64_t *at = qos_answer(qos_head(c), p, id), want = qos_phase(id, p->shift);
	uint64_t begin = 0;
	uint32_t polls = 0;
	/* Acquire: pairs with the release of the completion; makes the service's writes visible. */
	while (((*answer = loom_load_acquire_sys(at)) & 1) != want) {
		if (loom_stopped(c))
			return LOOM_EINTR;
		if (timeout_ns && polls % QOS_POLLS_PER_CLOCK == 0) {
			uint64_t now = loom_clock_ns(c);
			begin = begin ? begin : now;
			if (now - begin >= timeout_ns)
				return LOOM_ETIMEDOUT;
		}
		qos_pause(c, p, ++polls);
	}
	return 0;
}

LOOM_FN int qos_wait(struct loom_ctx *c, uint64_t id, uint64_t timeout_ns, int64_t *result)
{
	struct qos_port *p = qos_port(c);
	uint64_t answer = 0, head = p->head;
	if (!p->slots || id >= head)
		return LOOM_EINVAL;
	if (head - id > p->slots)
		return LOOM_ENOENT;
	loom_set_state(c, LOOM_STATE_SERVICE);
	int rc = qos_await(c, p, id, timeout_ns, &answer);
	loom_set_state(c, LOOM_STATE_TASKS);
	if (rc)
		return rc;
	p->answered += p->answered == id;
	*result = (int64_t)answer >> 1;
	return 0;
}

/* LOOM_CALL makes the names of a policy's functions from the policy's name. */
#define QOS_DEVICE_HALF(policy)                                                                    \
	LOOM_FN int policy##_request(struct loom_ctx *c, const struct loom_request *request,       \
				     uint64_t *id)                                                 \
	{                                                                                          \
		return qos_request(c, request, id);                                                \
	}                                                                                          \
	LOOM_FN int policy##_wait(struct loom_ctx *c, uint64_t id, uint64_t timeout_ns,            \
				  int64_t *result)                                                 \
	{                                                                                          \
		return qos_wait(c, id, timeout_ns, result);                                        \
	}

#endif
