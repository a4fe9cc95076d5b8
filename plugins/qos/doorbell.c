/* SPDX-License-Identifier: Apache-2.0 */
/* Doorbells, by which requests notify the path. The path's threads wait for requests here. */
#include <errno.h>
#include "lib/fd.h"
#include "lib/poll.h"
#include <limits.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "service.h"

static int stopped(const struct service *s)
{
	return __atomic_load_n(&s->stop, __ATOMIC_ACQUIRE) != 0;
}

static struct timespec until_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
				 .tv_nsec = (long)(ns % 1000000000u)};
}

static void set_slack(struct qos_thread *t, uint64_t ns)
{
	ns = ns ? ns : 1; /* 0 would select the default of 50 us */
	if (t->slack_ns != ns && !prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0))
		t->slack_ns = ns;
}

int qos_doorbells_open(struct service *s, struct loom_error *err)
{
	for (uint32_t v = 0; v < QOS_VECTORS; v++)
		s->event_fd[v] = s->timer_fd[v] = -1;
	s->awake_fd = loom_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (s->awake_fd < 0)
		return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL, "%s: cannot make an eventfd: %s", s->name,
				 strerror(errno));
	if (!qos_is_polled(s)) {
		s->server_fd = loom_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		if (s->server_fd < 0)
			return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL, "%s: cannot make an eventfd: %s", s->name,
					 strerror(errno));
	}
	for (uint32_t v = 0; v < s->vectors && s->path.notify == LOOM_QOS_EVENTFD; v++) {
		/* Non-blocking, so that a worker does not hang if the counter is full and no thread reads it. */
		s->event_fd[v] = loom_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		s->timer_fd[v] = loom_fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
		if (s->event_fd[v] < 0 || s->timer_fd[v] < 0)
			return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL, "%s: cannot make a doorbell: %s", s->name,
					 strerror(errno));
	}
	return 0;
}

void qos_doorbells_close(struct service *s)
{
	for (uint32_t v = 0; v < QOS_VECTORS; v++) {
		if (s->event_fd[v] >= 0)
			close(s->event_fd[v]);
		if (s->timer_fd[v] >= 0)
			close(s->timer_fd[v]);
		s->event_fd[v] = s->timer_fd[v] = -1;
	}
	if (s->awake_fd >= 0)
		close(s->awake_fd);
	if (s->server_fd >= 0)
		close(s->server_fd);
	s->awake_fd = s->server_fd = -1;
}

void qos_doorbells_arm(struct service *s, uint64_t vectors)
{
	for (uint32_t v = 0; v < s->vectors; v++)
		if (vectors >> v & 1)
			__atomic_store_n(&s->head->doorbell[v].armed, (uint32_t)QOS_ARMED, __ATOMIC_RELAXED);
	/* Pairs with the fence in qos_request(), which follows the worker's store of its bit. */
	loom_fence_seq_cst_sys();
}

void qos_doorbells_disarm(struct service *s)
{
	for (uint32_t v = 0; v < s->vectors; v++)
		__atomic_store_n(&s->head->doorbell[v].armed, (uint32_t)QOS_DISARMED, __ATOMIC_RELAXED);
}

int qos_posted(struct service *s)
{
	for (uint32_t w = 0; w < s->workers; w += 64)
		if (qos_posted_from(s, w))
			return 1;
	return 0;
}

int qos_posted_by(struct service *s, uint64_t tenants)
{
	for (uint32_t w = 0; w < s->workers; w += 64) {
		uint64_t bits = qos_posted_from(s, w);
		for (; bits; bits &= bits - 1) {
			uint32_t worker = w + (uint32_t)__builtin_ctzll(bits);
			if (worker < s->workers && tenants >> s->ring[worker].tenant & 1)
				return 1;
		}
	}
	return 0;
}

void qos_wake_arm(struct service *s, uint64_t tenants)
{
	if (!tenants || s->server_fd < 0)
		return;
	__atomic_store_n(&s->head->wake_mask, tenants, __ATOMIC_RELAXED);
	/* Release: pairs with the acquire in qos_wake_server(), so that a worker that sees an armed doorbell sees wake_mask. */
	__atomic_store_n(&s->head->server_doorbell.armed, (uint32_t)QOS_ARMED, __ATOMIC_RELEASE);
	/* Pairs with the fences in qos_request() and in qos_wake_server_for_queued(). */
	loom_fence_seq_cst_sys();
}

void qos_wake_disarm(struct service *s)
{
	/* If a worker saw the doorbell armed and rings it after this store, it only ends the next sleep early. */
	__atomic_store_n(&s->head->server_doorbell.armed, (uint32_t)QOS_DISARMED, __ATOMIC_RELAXED);
}

int qos_has_request_of(struct service *s, uint64_t tenants)
{
	for (uint32_t i = 0; tenants >> i && i < s->tenants; i++)
		if (tenants >> i & 1 && qos_queue_waiting(&s->tenant[i].queue))
			return 1;
	return tenants && qos_posted_by(s, tenants);
}

void qos_wake_server_for_queued(struct service *s)
{
	struct qos_doorbell *d = &s->head->server_doorbell;
	/* Pairs with the fence in qos_wake_arm(): this thread sees the doorbell armed, or the serving thread sees the queued
	 * requests. */
	loom_fence_seq_cst_sys();
	if (__atomic_load_n(&d->armed, __ATOMIC_ACQUIRE) == QOS_DISARMED ||
	    !qos_has_request_of(s, __atomic_load_n(&s->head->wake_mask, __ATOMIC_RELAXED)) ||
	    __atomic_exchange_n(&d->armed, (uint32_t)QOS_DISARMED, __ATOMIC_ACQ_REL) == QOS_DISARMED)
		return;
	qos_signal_fd(s->server_fd);
}

/* ---- waiting ------------------------------------------------------------------------------------- */

static void wait_eventfd(struct service *s, uint32_t v, struct qos_doorbell *d)
{
	struct pollfd on[2] = {{.fd = s->event_fd[v], .events = POLLIN},
			       {.fd = s->timer_fd[v], .events = POLLIN}};
	uint64_t n;
	while (poll_or_nap(on, s->timed ? 2 : 1, NULL) < 0 && errno == EINTR)
		;
	for (int i = 0; i < 2; i++)
		if (on[i].revents && read(on[i].fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
			return;
	if (s->timed && on[1].revents)
		__atomic_fetch_add(&d->interrupts, 1, __ATOMIC_RELAXED);
}

static uint32_t rung_of(const struct qos_doorbell *d)
{
	return __atomic_load_n(&d->rings, __ATOMIC_ACQUIRE);
}

/* Waits for a ring if GPUs interrupt all cores in turn. Otherwise one top half polls the rings until a request is there, with
 * naps that get longer while no request arrives. */
#define POLL_SPINS 512
#define POLL_NAP_LEAST_NS 10000u
#define POLL_NAP_MOST_NS 1000000u
/* Time to poll before the host uses interrupts of GPUs: about the latency of an interrupt, because an interrupt costs more than
 * to poll for this time. */
#define HYBRID_NS 100000u
static void wait_polling(struct service *s, struct qos_thread *t, struct qos_doorbell *d)
{
	int poll_only = s->path.notify == LOOM_QOS_POLL, sleeps = s->path.notify == LOOM_QOS_INTERRUPT;
	uint64_t nap = POLL_NAP_LEAST_NS, since = 0;
	uint32_t polls = 0, rings;
	/* Loads `rings` before the other words. So either this thread sees the words that were stored before a ring, or the
	 * ring ends its sleep. */
	while (rings = rung_of(d), !stopped(s)) {
		if (!qos_is_spread(s) && qos_poller(s) != t->vector) {
			loom_futex_sleep(&d->rings, rings, 0, 0);
			continue;
		}
		if (__atomic_load_n(&s->server_polls, __ATOMIC_ACQUIRE)) {
			loom_futex_sleep(&s->server_polls, 1, 0, FUTEX_PRIVATE_FLAG);
			continue;
		}
		/* The first condition is also true if the doorbell was rung for another reason than a request. */
		if (rings != t->acknowledged || (!qos_is_spread(s) && qos_posted(s)))
			break;
		if (qos_is_spread(s)) {
			loom_futex_sleep(&d->rings, rings, 0, 0);
			continue;
		}
		if (polls++ < POLL_SPINS && !sleeps) {
			loom_relax();
			continue;
		}
		uint64_t now = qos_now();
		if (!poll_only && !__atomic_load_n(&s->interrupts_failed, __ATOMIC_ACQUIRE)) {
			since = since ? since : now;
			if (!sleeps && now - since < HYBRID_NS) {
				loom_relax();
				continue;
			}
			qos_interrupts_arm(s);
			loom_futex_sleep(&d->rings, rings, 0, 0);
			continue;
		}
		qos_sleep(t, now + nap, nap / 4);
		nap = nap * 5 / 4 < POLL_NAP_MOST_NS ? nap * 5 / 4 : POLL_NAP_MOST_NS;
	}
	t->acknowledged = rings;
	uint64_t window = __atomic_load_n(&s->head->window_ns, __ATOMIC_RELAXED);
	if (window && !stopped(s))
		qos_sleep(t, qos_now() + window, 1);
}

int qos_doorbell_wait(struct qos_thread *t)
{
	struct service *s = t->s;
	struct qos_doorbell *d = &s->head->doorbell[t->vector];
	if (stopped(s))
		return 0;
	if (s->path.notify == LOOM_QOS_EVENTFD)
		wait_eventfd(s, t->vector, d);
	else
		wait_polling(s, t, d);
	/* Pairs with the add in qos_notify_host(). The caller loads the bits later, so requests that it does not see among
	 * these bits are counted from 0. */
	__atomic_exchange_n(&d->pending, 0, __ATOMIC_ACQ_REL);
	return !stopped(s);
}

void qos_doorbells_ring_all(struct service *s)
{
	for (uint32_t v = 0; v < s->vectors; v++) {
		struct qos_doorbell *d = &s->head->doorbell[v];
		__atomic_fetch_add(&d->rings, 1, __ATOMIC_ACQ_REL);
		loom_futex_wake(&d->rings, INT_MAX, 0); /* not private: workers may be in another process */
		if (s->event_fd[v] >= 0)
			qos_signal_fd(s->event_fd[v]);
	}
}

/* ---- sleeping between rounds ---- */

/* Waits until the server doorbell rings, qos_keep_awake() is called, the timer expires, or the time `most` has passed. */
static void wait_server(struct service *s, int timer_fd, const struct timespec *most)
{
	uint64_t n;
	struct pollfd on[3] = {{.fd = s->server_fd, .events = POLLIN},
			       {.fd = s->awake_fd, .events = POLLIN},
			       {.fd = timer_fd, .events = POLLIN}};
	poll_or_nap(on, timer_fd < 0 ? 2 : 3, most);
	if (on[0].revents && read(s->server_fd, &n, sizeof(n)) < 0)
		return; /* another read has reset the counter */
}

void qos_sleep(struct qos_thread *t, uint64_t until_ns, uint64_t slack_ns)
{
	uint64_t now = qos_now();
	struct timespec most = until_of(until_ns > now ? until_ns - now : 0);
	set_slack(t, slack_ns);
	wait_server(t->s, -1, &most);
}

/* To set a timer directly before a sleep programs the core's clock, which takes longer than falling asleep in a virtual
 * machine. To set a timer while an earlier timer is pending programs nothing, because the kernel programs the clock anyway
 * when the earlier timer ends. So two timers alternate, and each sleep sets the timer for the sleep after it. */
void qos_sleep_ahead(struct qos_thread *t, uint64_t until_ns, uint64_t then_ns)
{
	struct service *s = t->s;
	uint64_t near = (then_ns - until_ns) / 4;
	int k = t->ahead_ns[0] + near > until_ns && t->ahead_ns[0] < until_ns + near ? 0 : 1;
	if (t->ahead_fd[0] < 0)
		for (int i = 0; i < 2; i++)
			t->ahead_fd[i] = loom_fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	if (t->ahead_fd[0] < 0 || t->ahead_fd[1] < 0) {
		qos_sleep(t, until_ns, 1);
		return;
	}
	struct itimerspec at = {.it_value = until_of(until_ns)};
	if (t->ahead_ns[k] + near <= until_ns || t->ahead_ns[k] >= until_ns + near) {
		timerfd_settime(t->ahead_fd[k], TFD_TIMER_ABSTIME, &at, NULL);
		t->ahead_ns[k] = until_ns;
	}
	at.it_value = until_of(then_ns);
	timerfd_settime(t->ahead_fd[!k], TFD_TIMER_ABSTIME, &at, NULL);
	t->ahead_ns[!k] = then_ns;
	wait_server(s, t->ahead_fd[k], NULL);
}

void qos_keep_awake(struct service *s, int awake)
{
	uint64_t n;
	if (awake)
		qos_signal_fd(s->awake_fd);
	else if (read(s->awake_fd, &n, sizeof(n)) < 0)
		return; /* the counter was already 0 */
}
