/* SPDX-License-Identifier: Apache-2.0 */
/* The worker's end of the service path: request rings and doorbells. Device code.
 *
 * Each worker has a ring. The worker is its only producer, and the host is its only consumer. A worker can have as many
 * outstanding requests as the ring has slots. The worker stores a request into a slot, and then stores its published count:
 * the number of requests posted so far. An answer is one word with a phase bit. This bit is 1 in the first pass over the
 * ring, 0 in the second, and so on. So the word need not be cleared between two passes.
 *
 * Between a GPU and the host there is a link. A store to host memory is sent at once, but a load takes a round trip. If both
 * sides make read-modify-writes on one word at the same time, one may be lost. So every word that crosses the link has one
 * writer, and words that only the worker needs are in its port, in device memory. From host memory a GPU's worker loads only
 * answers.
 *
 * The host finds pending requests by a bit per worker, which both the worker and the host change. With a GPU in the stack
 * (`by_count`) the host compares the published counts instead. A GPU's workers may also count their posts in a word in device
 * memory, on which the host can sleep. The host waits at doorbells, one per core that takes interrupts. Host and worker
 * synchronise at a doorbell as in Dekker's algorithm. The worker sets its bit, and then checks whether the doorbell is armed.
 * The host arms the doorbell, and then checks the bits. Both execute a full fence between the two steps, so at least one of
 * them sees the other's store. */
#ifndef QOS_SERVICE_DEV_H
#define QOS_SERVICE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#include <gpuloom/qos.h>
#endif

#define QOS_VECTORS 64u

struct qos_slot {
	struct loom_request request;
	uint64_t posted_ns; /* time of the post; 0: unknown, because the worker's clock differs from the host's */
	uint64_t pad[2];
};

/* The start of a device's block. A port for each worker of the device follows. */
struct qos_device_block {
	uint64_t posted; /* number of requests that all workers have posted in all samples; the interrupt waits on it */
	uint64_t pad[7];
};

/* A worker's end of its ring, in device memory. The host fills it in before a sample. During the sample only this
 * worker uses it. */
struct qos_port {
	uint64_t head;     /* number of requests posted so far */
	uint64_t answered; /* all requests before this number are known to be answered */
	/* Constant fields. Offsets are in bytes from the start of the stack's block. */
	uint64_t published_at, slot_at, answer_at;
	uint32_t slots, shift; /* slots = 1 << shift; slots = 0: the worker belongs to no tenant */
	uint32_t tenant;
	uint32_t by_count; /* 1: the host compares published counts, so the worker sets no bit and rings no doorbell */
	uint32_t nap_ns; /* longest nap between two polls of an answer */
	uint32_t counts_posted; /* 1: the worker counts its posts in qos_device_block */
};

enum qos_armed {
	QOS_DISARMED = 0, /* the host was notified, or will check for requests before it waits again */
	QOS_ARMED,     /* the host waits here for an interrupt */
};
struct qos_doorbell {
	uint32_t armed;   /* enum qos_armed */
	uint32_t pending; /* number of requests since the last interrupt, while interrupts are moderated */
	int32_t event_fd, timer_fd;
	uint32_t rings; /* number of rings by the host's own threads so far; a futex */
	uint32_t pad0;
	uint64_t interrupts; /* number of interrupts in this sample, for the metrics */
	uint64_t pad1[4];
};

struct qos_head {
	uint32_t notify;  /* enum loom_qos_notify */
	uint32_t vectors; /* number of doorbells in use */
	uint32_t every;   /* 1: each request tries to interrupt, not only the request that sets the worker's bit */
	uint32_t pad0;
	uint64_t bits_at; /* offset of the workers' bits from the start of this struct, in bytes */
	uint64_t pad1[5];
	/* The host stores these while workers run. */
	uint32_t count; /* moderation: number of requests that cause an interrupt */
	uint32_t pad2;
	uint64_t window_ns; /* moderation: longest time from the first request to the interrupt; 0: no moderation */
	uint64_t route;     /* a bit per doorbell; 1: it takes interrupts */
	uint64_t wake_mask;      /* a bit per tenant; 1: its requests ring `server_doorbell` */
	uint64_t pad3[4];
	uint32_t next; /* number of requests so far, for round robin over several doorbells */
	uint32_t pad4[15];
	struct qos_doorbell doorbell[QOS_VECTORS];
	/* The serving thread sleeps at this doorbell between rounds, while all other doorbells are disarmed. It uses an
	 * eventfd with any value of `notify`. */
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

/* Returns the worker's published count: the number of requests that it has posted, modulo 2^32. Only the worker stores it. */
LOOM_FN uint32_t *qos_published(struct qos_head *h, const struct qos_port *p)
{
	return (uint32_t *)((char *)h + p->published_at);
}

LOOM_FN struct qos_slot *qos_slot(struct qos_head *h, const struct qos_port *p, uint64_t at)
{
	return (struct qos_slot *)((char *)h + p->slot_at) + (at & (p->slots - 1));
}

/* Returns the word for the answer to request number `at`: 2 * the result + the phase bit. Only the host stores it. It is 0
 * at the start of a sample. */
LOOM_FN uint64_t *qos_answer(struct qos_head *h, const struct qos_port *p, uint64_t at)
{
	return (uint64_t *)((char *)h + p->answer_at) + (at & (p->slots - 1));
}

/* Returns the phase bit of the answer to request number `at`. */
LOOM_FN uint64_t qos_phase(uint64_t at, uint32_t shift)
{
	return (at >> shift & 1) ^ 1;
}

/* The next functions send interrupts. On a GPU they do nothing, and the host polls. */
#ifdef GPULOOM_DEV_CPU_H
#include <sys/timerfd.h>

/* Adds 1 to the eventfd. EAGAIN means that its counter is full, so that a notification is pending. After another failure,
 * such as an interrupted write, tries again. */
LOOM_FN void qos_signal_fd(int fd)
{
	uint64_t one = 1;
	for (int tries = 0; tries < 3 && write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN; tries++)
		;
}

LOOM_FN void qos_doorbell_ring(struct qos_head *h, struct qos_doorbell *d)
{
	/* Only the worker that disarms the doorbell interrupts, so there is one interrupt each time the host arms it. */
	if (loom_load_relaxed_sys(&d->armed) == QOS_DISARMED ||
	    loom_exchange_acq_rel_sys(&d->armed, (uint32_t)QOS_DISARMED) == QOS_DISARMED)
		return;
	loom_fetch_add_relaxed_sys(&d->interrupts, (uint64_t)1);
	if (h->notify == LOOM_QOS_EVENTFD)
		qos_signal_fd(d->event_fd);
}

/* Called by the first request of a window, while fewer requests are pending than cause an interrupt. Starts a timer, at which
 * the top half also waits, even if the doorbell is disarmed. */
LOOM_FN void qos_doorbell_ring_later(struct qos_head *h, struct qos_doorbell *d, uint64_t window_ns)
{
	struct itimerspec at = {.it_value = {.tv_sec = (time_t)(window_ns / 1000000000u),
					     .tv_nsec = (long)(window_ns % 1000000000u)}};
	if (h->notify == LOOM_QOS_EVENTFD)
		timerfd_settime(d->timer_fd, 0, &at, NULL);
}

LOOM_FN void qos_wake_server(struct qos_head *h, const struct qos_port *p)
{
	struct qos_doorbell *d = &h->server_doorbell;
	/* Acquire: pairs with the release in qos_wake_arm(), which has stored `wake_mask` before. */
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
LOOM_FN void qos_doorbell_ring_later(struct qos_head *h, struct qos_doorbell *d, uint64_t window_ns)
{
	(void)h, (void)d, (void)window_ns;
}
#endif

/* Returns a doorbell that takes interrupts. Uses these doorbells in turn, as an interrupt controller does. */
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
	/* Acquire and release: pairs with the exchange in qos_doorbell_wait(). The host sets `pending` to 0 before it loads the
	 * bits, so requests that it does not see among these bits are counted from 0. */
	uint32_t pending = loom_fetch_add_acq_rel_sys(&d->pending, 1u) + 1;
	if (pending >= count)
		qos_doorbell_ring(h, d);
	else if (pending == 1)
		qos_doorbell_ring_later(h, d, window);
}

/* Returns 1 if the slot for request number `at` is free: if the slot's previous request is answered. */
LOOM_FN int qos_has_room(struct qos_head *h, struct qos_port *p, uint64_t at)
{
	uint64_t before = at - p->slots;
	if (at < p->slots || before < p->answered)
		return 1;
	/* Acquire: pairs with the release in completion.c; before this release, the host has read the slot's previous
	 * request. */
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
	/* Release: pairs with the acquire in bottom_half.c, after which the host reads the slot and the request's memory. */
	loom_store_release_sys(qos_published(h, p), (uint32_t)(at + 1));
	p->head = at + 1;
	*id = at;
	if (p->by_count) {
		/* Relaxed, so this add is not ordered with the published count. A host thread that wakes too early
		 * waits again. */
		if (p->counts_posted)
			loom_fetch_add_relaxed_dev(&((struct qos_device_block *)c->on_device[LOOM_QOS])->posted,
						   (uint64_t)1);
#ifdef GPULOOM_DEV_CPU_H /* only a CPU's worker can wake the serving thread */
		/* Pairs with the fence in qos_wake_arm(): the serving thread sees the count, or this worker sees the doorbell
		 * armed. */
		loom_fence_seq_cst_sys();
		qos_wake_server(h, p);
#endif
		return 0;
	}
	uint64_t bit = 1ull << (c->worker & 63), *bits = qos_bits(h, c->worker);
	/* Pairs with the fence in qos_fill(): the host sees the published count, or this worker sees its bit cleared. */
	loom_fence_seq_cst_sys();
	if (!(loom_load_relaxed_sys(bits) & bit)) {
		loom_fetch_or_acq_rel_sys(bits, bit);
		/* Pairs with the fence in qos_doorbells_arm(): the host sees the bit, or this worker sees an armed doorbell. */
		loom_fence_seq_cst_sys();
	} else if (!h->every && !loom_load_relaxed_sys(&h->window_ns)) {
		return 0; /* an earlier request has set the bit and rung the doorbell */
	}
	qos_notify_host(h);
	qos_wake_server(h, p);
	return 0;
}

/* Pauses a worker between two polls. On a CPU the worker spins for as long as a quick service takes, and then naps, so that
 * it takes no CPU time. On a GPU polls cross the link, which all workers share, so naps are longer with more workers. */
#ifdef GPULOOM_DEV_CPU_H
#define QOS_SPINS 2000u
#define QOS_POLLS_PER_CLOCK 64u
LOOM_FN void qos_pause(const struct loom_ctx *c, const struct qos_port *p, uint32_t polls)
{
	(void)p;
	if (polls < QOS_SPINS)
		loom_pause(c);
	else /* on a GPU, estimates the time waited from the number of polls: 4 us for each */
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

/* Waits for the answer to request `id`. *answer: set to the answer's word. */
LOOM_FN int qos_await(struct loom_ctx *c, const struct qos_port *p, uint64_t id, uint64_t timeout_ns, uint64_t *answer)
{
	const uint64_t *at = qos_answer(qos_head(c), p, id), want = qos_phase(id, p->shift);
	uint64_t begin = 0;
	uint32_t polls = 0;
	/* Acquire: pairs with the release in completion.c, so that the service's writes are visible. */
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

/* Defines the device half of a plug-in. LOOM_CALL calls a policy's functions by names made from the name of the policy. */
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
