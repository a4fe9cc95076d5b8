/* SPDX-License-Identifier: Apache-2.0 */
/* Doors: where the path waits for requests. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>

#include "service.h"
#include "lib/fd.h"

static int stopped(const struct service *s)
{
	return __atomic_load_n(&s->stop, __ATOMIC_ACQUIRE) != 0;
}

static struct timespec until_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
				 .tv_nsec = (long)(ns % 1000000000u)};
}

static void set_slack(struct ssr_thread *t, uint64_t ns)
{
	ns = ns ? ns : 1; /* 0 would mean the default, 50 us */
	if (t->slack_ns != ns && !prctl(PR_SET_TIMERSLACK, ns, 0, 0, 0))
		t->slack_ns = ns;
}

int ssr_doors_open(struct service *s, struct loom_error *err)
{
	for (uint32_t v = 0; v < SSR_VECTORS; v++)
		s->event_fd[v] = s->timer_fd[v] = -1;
	s->awake_fd = loom_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (s->awake_fd < 0)
		return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL, "%s: no eventfd: %s", s->name,
				 strerror(errno));
	if (!ssr_is_watched(s)) {
		s->bedside_fd = loom_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		if (s->bedside_fd < 0)
			return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL, "%s: no eventfd: %s", s->name,
					 strerror(errno));
	}
	for (uint32_t v = 0; v < s->vectors && s->path.notify == LOOM_QOS_EVENTFD; v++) {
		/* Not blocking for the device, which must not hang on a bell that is never heard. */
		s->event_fd[v] = loom_fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
		s->timer_fd[v] = loom_fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
		if (s->event_fd[v] < 0 || s->timer_fd[v] < 0)
			return LOOM_FAIL(s->host, err, LOOM_EUNAVAIL, "%s: no doorbell: %s", s->name,
					 strerror(errno));
	}
	return 0;
}

void ssr_doors_close(struct service *s)
{
	for (uint32_t v = 0; v < SSR_VECTORS; v++) {
		if (s->event_fd[v] >= 0)
			close(s->event_fd[v]);
		if (s->timer_fd[v] >= 0)
			close(s->timer_fd[v]);
		s->event_fd[v] = s->timer_fd[v] = -1;
	}
	if (s->awake_fd >= 0)
		close(s->awake_fd);
	if (s->bedside_fd >= 0)
		close(s->bedside_fd);
	s->awake_fd = s->bedside_fd = -1;
}

void ssr_doors_arm(struct service *s, uint64_t vectors)
{
	for (uint32_t v = 0; v < s->vectors; v++)
		if (vectors >> v & 1)
			__atomic_store_n(&s->head->door[v].armed, (uint32_t)SSR_OPEN, __ATOMIC_RELAXED);
	/* Pairs with the worker's fence after it has set its bit. */
	loom_fence_seq_cst_sys();
}

void ssr_doors_shut(struct service *s)
{
	for (uint32_t v = 0; v < s->vectors; v++)
		__atomic_store_n(&s->head->door[v].armed, (uint32_t)SSR_SHUT, __ATOMIC_RELAXED);
}

int ssr_posted(struct service *s)
{
	for (uint32_t w = 0; w < s->workers; w += 64)
		if (ssr_posted_from(s, w))
			return 1;
	return 0;
}

int ssr_posted_by(struct service *s, uint64_t tenants)
{
	for (uint32_t w = 0; w < s->workers; w += 64) {
		uint64_t bits = ssr_posted_from(s, w);
		for (; bits; bits &= bits - 1) {
			uint32_t worker = w + (uint32_t)__builtin_ctzll(bits);
			if (worker < s->workers && tenants >> s->source[worker].tenant & 1)
				return 1;
		}
	}
	return 0;
}

void ssr_listen(struct service *s, uint64_t tenants)
{
	if (!tenants || s->bedside_fd < 0)
		return;
	__atomic_store_n(&s->head->wake_mask, tenants, __ATOMIC_RELAXED);
	/* Release: whoever sees it armed sees whom it is for. */
	__atomic_store_n(&s->head->bedside.armed, (uint32_t)SSR_OPEN, __ATOMIC_RELEASE);
	/* Pairs with the worker's fence after it has set its bit, and with the one in ssr_rouse_server(). */
	loom_fence_seq_cst_sys();
}

void ssr_listen_end(struct service *s)
{
	/* One that rings all the same, for it found the door open, ends the next sleep: early, no harm. */
	__atomic_store_n(&s->head->bedside.armed, (uint32_t)SSR_SHUT, __ATOMIC_RELAXED);
}

int ssr_came(struct service *s, uint64_t tenants)
{
	for (uint32_t i = 0; tenants >> i && i < s->tenants; i++)
		if (tenants >> i & 1 && ssr_queue_waiting(&s->tenant[i].queue))
			return 1;
	return tenants && ssr_posted_by(s, tenants);
}

void ssr_rouse_server(struct service *s)
{
	struct ssr_door *d = &s->head->bedside;
	/* Pairs with the fence in ssr_listen(): we see it armed, or it sees what we have queued. */
	loom_fence_seq_cst_sys();
	if (__atomic_load_n(&d->armed, __ATOMIC_ACQUIRE) == SSR_SHUT ||
	    !ssr_came(s, __atomic_load_n(&s->head->wake_mask, __ATOMIC_RELAXED)) ||
	    __atomic_exchange_n(&d->armed, (uint32_t)SSR_SHUT, __ATOMIC_ACQ_REL) == SSR_SHUT)
		return;
	ssr_ring_fd(s->bedside_fd);
}

/* ---- waiting ------------------------------------------------------------------------------------- */

static void wait_eventfd(struct service *s, uint32_t v, struct ssr_door *d)
{
	struct pollfd on[2] = {{.fd = s->event_fd[v], .events = POLLIN},
			       {.fd = s->timer_fd[v], .events = POLLIN}};
	uint64_t n;
	while (poll(on, s->timed ? 2 : 1, -1) < 0 && errno == EINTR)
		;
	for (int i = 0; i < 2; i++)
		if (on[i].revents && read(on[i].fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
			return;
	if (s->timed && on[1].revents)
		__atomic_fetch_add(&d->interrupts, 1, __ATOMIC_RELAXED);
}

/* The end of the window, or its count. A futex has no timer of the device's: the top half keeps the time.
 * Only a door that is still shut says that we wait for the count; one that was armed anew meanwhile
 * rings for any request, which is early but not lost. */
static void wait_window(struct service *s, struct ssr_thread *t, struct ssr_door *d, uint64_t window)
{
	uint32_t shut = SSR_SHUT, rung;
	uint64_t until = ssr_now() + window;
	__atomic_compare_exchange_n(&d->armed, &shut, (uint32_t)SSR_WINDOW, 0, __ATOMIC_ACQ_REL,
				    __ATOMIC_RELAXED);
	/* A count that is reached between this look and the sleep, unseen by either side, waits for the end
	 * of the window. */
	while ((rung = __atomic_load_n(&d->rung, __ATOMIC_ACQUIRE)) == t->heard && !stopped(s) &&
	       __atomic_load_n(&d->pending, __ATOMIC_RELAXED) <
		       __atomic_load_n(&s->head->count, __ATOMIC_RELAXED)) {
		set_slack(t, 1);
		if (loom_futex_sleep(&d->rung, rung, until, 0))
			break;
	}
	t->heard = rung;
}

static void wait_futex(struct service *s, struct ssr_thread *t, struct ssr_door *d)
{
	uint32_t rung;
	while ((rung = __atomic_load_n(&d->rung, __ATOMIC_ACQUIRE)) == t->heard && !stopped(s))
		loom_futex_sleep(&d->rung, rung, 0, 0);
	t->heard = rung;
	uint64_t window = __atomic_load_n(&s->head->window_ns, __ATOMIC_RELAXED);
	if (window && !stopped(s))
		wait_window(s, t, d, window);
}

static uint32_t rung_of(const struct ssr_door *d)
{
	return __atomic_load_n(&d->rung, __ATOMIC_ACQUIRE);
}

/* Looks often while requests come, and ever more seldom when none do. */
#define POLL_SPINS 512
#define POLL_NAP_LEAST_NS 10000u
#define POLL_NAP_MOST_NS 1000000u
#define HYBRID_NS 100000u /* about what an interrupt of a GPU takes: more could be lost by it than by looks */
static void wait_watching(struct service *s, struct ssr_thread *t, struct ssr_door *d)
{
	int polls = s->path.notify == LOOM_QOS_POLL, sleeps = s->path.notify == LOOM_QOS_INTERRUPT;
	uint64_t nap = POLL_NAP_LEAST_NS, since = 0;
	uint32_t looks = 0, rung;
	/* First: what is told before the doors are rung is seen below, or ends the sleep. */
	while (rung = rung_of(d), !stopped(s)) {
		if (ssr_watcher(s) != t->vector) {
			loom_futex_sleep(&d->rung, rung, 0, 0);
			continue;
		}
		if (__atomic_load_n(&s->looks, __ATOMIC_ACQUIRE)) {
			loom_futex_sleep(&s->looks, 1, 0, FUTEX_PRIVATE_FLAG);
			continue;
		}
		if (ssr_posted(s) || rung != t->heard) /* or there is something to look after, whatever the workers say */
			break;
		if (looks++ < POLL_SPINS && !sleeps) {
			loom_relax();
			continue;
		}
		uint64_t now = ssr_now();
		if (!polls && !__atomic_load_n(&s->deaf, __ATOMIC_ACQUIRE)) {
			since = since ? since : now;
			if (!sleeps && now - since < HYBRID_NS) {
				loom_relax();
				continue;
			}
			ssr_alarms_arm(s);
			loom_futex_sleep(&d->rung, rung, 0, 0);
			continue;
		}
		ssr_sleep(t, now + nap, nap / 4);
		nap = nap * 5 / 4 < POLL_NAP_MOST_NS ? nap * 5 / 4 : POLL_NAP_MOST_NS;
	}
	t->heard = rung;
	uint64_t window = __atomic_load_n(&s->head->window_ns, __ATOMIC_RELAXED);
	if (window && !stopped(s))
		ssr_sleep(t, ssr_now() + window, 1);
}

int ssr_door_wait(struct ssr_thread *t)
{
	struct service *s = t->s;
	struct ssr_door *d = &s->head->door[t->vector];
	if (stopped(s))
		return 0;
	if (s->path.notify == LOOM_QOS_EVENTFD)
		wait_eventfd(s, t->vector, d);
	else if (s->path.notify == LOOM_QOS_FUTEX)
		wait_futex(s, t, d);
	else
		wait_watching(s, t, d);
	/* Before the bits are read: what is posted from here on counts from 0 again. */
	__atomic_exchange_n(&d->pending, 0, __ATOMIC_ACQ_REL);
	return !stopped(s);
}

void ssr_doors_ring(struct service *s)
{
	for (uint32_t v = 0; v < s->vectors; v++) {
		struct ssr_door *d = &s->head->door[v];
		__atomic_fetch_add(&d->rung, 1, __ATOMIC_ACQ_REL);
		loom_futex_wake(&d->rung, INT_MAX, 0); /* not private: workers may be another process */
		if (s->event_fd[v] >= 0)
			ssr_ring_fd(s->event_fd[v]);
	}
}

/* ---- sleeping between turns -------------------------------------------------------------------- */

/* Until something rings, the service stops or drops what waits, or time is up. */
static void wait_here(struct service *s, int timer_fd, const struct timespec *most)
{
	uint64_t n;
	struct pollfd on[3] = {{.fd = s->bedside_fd, .events = POLLIN},
			       {.fd = s->awake_fd, .events = POLLIN},
			       {.fd = timer_fd, .events = POLLIN}};
	ppoll(on, timer_fd < 0 ? 2 : 3, most, NULL);
	if (on[0].revents && read(s->bedside_fd, &n, sizeof(n)) < 0)
		return; /* heard already */
}

void ssr_sleep(struct ssr_thread *t, uint64_t until_ns, uint64_t slack_ns)
{
	uint64_t now = ssr_now();
	struct timespec most = until_of(until_ns > now ? until_ns - now : 0);
	set_slack(t, slack_ns);
	wait_here(t->s, -1, &most);
}

/* A sleep whose timer is set when it begins programs the core's clock for it, which in a virtual machine
 * costs more than falling asleep. A timer that is set while an earlier one runs programs nothing: when the
 * earlier one ends, the kernel programs whatever comes next anyway. So two take turns, and each sleep sets
 * the timer of the one after it. */
void ssr_sleep_ahead(struct ssr_thread *t, uint64_t until_ns, uint64_t then_ns)
{
	struct service *s = t->s;
	uint64_t near = (then_ns - until_ns) / 4;
	int k = t->ahead_ns[0] + near > until_ns && t->ahead_ns[0] < until_ns + near ? 0 : 1;
	if (t->ahead_fd[0] < 0)
		for (int i = 0; i < 2; i++)
			t->ahead_fd[i] = loom_fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	if (t->ahead_fd[0] < 0 || t->ahead_fd[1] < 0) {
		ssr_sleep(t, until_ns, 1);
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
	wait_here(s, t->ahead_fd[k], NULL);
}

void ssr_awake(struct service *s, int awake)
{
	uint64_t n;
	if (awake)
		ssr_ring_fd(s->awake_fd);
	else if (read(s->awake_fd, &n, sizeof(n)) < 0)
		return; /* it is as it should be */
}
