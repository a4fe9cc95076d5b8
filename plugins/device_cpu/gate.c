/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/fd.h"

#include "lib/eventcount.h"
#include "lib/poll.h"

#define GO_NS 2000 /* how long a lane polls for GO before it yields its core between polls */

int gate_open(struct gate *g, int process)
{
	/* A forked child inherits these words at the same address. The memory is freed with the last mapping. */
	void *p = mmap(NULL, sizeof(*g->words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (p == MAP_FAILED)
		return errno;
	/* A wait for a process must also end with the process, so poll() waits for an eventfd and a pidfd. */
	int event_fd = process ? eventcount_fd_open() : -1;
	if (process && event_fd < 0) {
		int code = errno;
		munmap(p, sizeof(*g->words));
		return code;
	}
	g->words = p;
	g->event_fd = event_fd;
	return 0;
}

void gate_close(struct gate *g)
{
	if (!g->words)
		return;
	munmap(g->words, sizeof(*g->words));
	if (g->event_fd >= 0)
		close(g->event_fd);
	g->words = NULL;
}

/* Called after a change of a condition that the host awaits. Signal handlers call it, too. */
static void notify(struct gate *g)
{
	if (g->event_fd >= 0)
		eventcount_fd_notify(g->event_fd);
	else
		eventcount_advance_private(&g->words->event, &g->words->waiting);
}

/* Returns the futex flag for this gate. The kernel finds a private futex by its address, and another one by its page,
 * which takes longer. */
static int mine(const struct gate *g)
{
	return g->event_fd < 0 ? FUTEX_PRIVATE_FLAG : 0;
}

void gate_reset(struct gate *g)
{
	memset(g->words, 0, sizeof(*g->words));
	if (g->event_fd >= 0)
		eventcount_fd_drain(g->event_fd);
}

uint32_t gate_park(struct gate *g, const struct loom_ctx *c, uint32_t last, uint64_t spin_ns)
{
	uint32_t *word = &c->ctl->phase, phase;
	/* Acquire, here and below: pairs with the host's release of READY or GO, which follows the set-up of the
	 * sample. */
	if (spin_ns && (phase = loom_load_acquire_sys(word)) == last) {
		uint64_t until = gate_clock() + spin_ns;
		__atomic_fetch_add(&g->words->watching, 1, __ATOMIC_RELAXED); /* a hint for go_alone() in launch.c */
		while ((phase = loom_load_acquire_sys(word)) == last && gate_clock() < until)
			loom_pause(c);
		__atomic_fetch_sub(&g->words->watching, 1, __ATOMIC_RELAXED);
	}
	if ((phase = loom_load_acquire_sys(word)) != last)
		return phase;
	/* Relaxed, because a thread that counts itself too late for gate_call() finds a new phase, and does not sleep.
	 */
	__atomic_fetch_add(&g->words->sleeping, 1, __ATOMIC_RELAXED);
	/* Sequentially consistent, as the load in go_alone(): it sees this, or this lane sees the new phase. */
	__atomic_store_n(&g->words->woken, 0, __ATOMIC_SEQ_CST);
	while ((phase = loom_load_acquire_sys(word)) == last)
		loom_futex_sleep(word, phase, 0, mine(g));
	__atomic_fetch_sub(&g->words->sleeping, 1, __ATOMIC_RELAXED);
	return phase;
}

int gate_is_callers(const struct loom_ctx *c)
{
	return __atomic_load_n(&c->ctl->awaited, __ATOMIC_RELAXED) != 0;
}

uint32_t gate_park_apart(struct gate *g, const struct loom_ctx *c, uint32_t last)
{
	for (;;) {
		/* Acquire: pairs with the release in gate_wake_apart(), which follows the store of the phase. */
		uint32_t turn = __atomic_load_n(&g->words->turn, __ATOMIC_ACQUIRE);
		uint32_t phase = loom_load_acquire_sys(&c->ctl->phase);
		if (phase != last && !(LOOM_PHASE_IS_GO(phase) && gate_is_callers(c)))
			return phase;
		loom_futex_sleep(&g->words->turn, turn, 0, mine(g));
	}
}

void gate_tell(struct gate *g, uint32_t *word, uint32_t value)
{
	/* Release: pairs with the acquire in gate_await(). */
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	notify(g);
}

void gate_arrive(struct gate *g, uint32_t lanes, uint32_t phase)
{
	struct gate_words *w = g->words;
	/* Each lane releases its earlier writes. The last lane acquires the writes of all lanes, and releases them to
	 * the host. */
	if (__atomic_add_fetch(&w->arrived, 1, __ATOMIC_ACQ_REL) != lanes)
		return;
	/* No lane arrives again before the host has seen `ready`. Release: pairs with the acquire in gate_spin(). */
	__atomic_store_n(&w->arrived, 0, __ATOMIC_RELEASE);
	gate_tell(g, &w->ready, phase);
}

uint32_t gate_spin(struct gate *g, const struct loom_ctx *c, uint32_t ready)
{
	uint32_t phase;
	uint64_t until = gate_clock() + GO_NS;
	/* Acquire: pairs with the host's release of GO. GO comes at once, unless the host thread waits for this core.
	 */
	while ((phase = loom_load_acquire_sys(&c->ctl->phase)) == ready)
		if (gate_clock() < until)
			loom_pause(c);
		else
			sched_yield();
	/* The phase already orders the lanes, but a race detector cannot see that if the host is another process.
	 * Acquire: pairs with the last lane's store of 0 in gate_arrive(). */
	(void)__atomic_load_n(&g->words->arrived, __ATOMIC_ACQUIRE);
	return phase;
}

/* Records the end time of a worker. The sample ends with its last worker. */
static void note_end(struct gate_words *w, uint64_t now_ns)
{
	uint64_t end = __atomic_load_n(&w->end_ns, __ATOMIC_RELAXED);
	while (end < now_ns &&
	       !__atomic_compare_exchange_n(&w->end_ns, &end, now_ns, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Called by the last worker to end. No worker calls it for a later sample before the host has read `done`. */
static void tell_done(struct gate *g, uint32_t phase)
{
	struct gate_words *w = g->words;
	__atomic_store_n(&w->ended_ns, __atomic_load_n(&w->end_ns, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
	__atomic_store_n(&w->end_ns, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&w->finished, 0, __ATOMIC_RELAXED);
	gate_tell(g, &w->done, phase);
}

void gate_finish(struct gate *g, uint32_t workers, uint32_t phase, uint64_t now_ns, int stopped)
{
	note_end(g->words, now_ns);
	/* Releases this worker's results and end time. The last worker acquires those of all workers. */
	if (__atomic_add_fetch(&g->words->finished, 1, __ATOMIC_ACQ_REL) == workers)
		tell_done(g, phase);
	else if (stopped)
		notify(g);
}

void gate_admit(struct gate *g, uint32_t phase, uint32_t members)
{
	/* Release: pairs with the acquire in gate_join(). */
	__atomic_store_n(&g->words->team, (uint64_t)phase << 32 | members, __ATOMIC_RELEASE);
}

void gate_call(struct gate *g, struct loom_ctl *ctl)
{
	struct gate_words *w = g->words;
	/* Relaxed: the host stored `call_due` before it admitted this worker. */
	if (__atomic_load_n(&w->call_due, __ATOMIC_RELAXED) && __atomic_load_n(&w->sleeping, __ATOMIC_RELAXED) &&
	    __atomic_exchange_n(&w->call_due, 0, __ATOMIC_RELAXED))
		gate_wake(g, ctl);
}

int gate_join(struct gate *g, const struct loom_ctx *c, uint32_t phase)
{
	uint64_t *word = &g->words->team, team = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	for (;;) {
		if (team >> 32 != phase) { /* the host has not admitted workers yet, or has started a later sample */
			if (loom_load_acquire_sys(&c->ctl->phase) != phase)
				return 0;
			loom_pause(c);
			team = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		} else if (team & GATE_CLOSED) {
			return 0;
		} else if (__atomic_compare_exchange_n(word, &team, team + 1, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			return 1;
		}
	}
}

void gate_part(struct gate *g, uint32_t phase, uint64_t now_ns, int stopped)
{
	uint64_t *word = &g->words->team;
	note_end(g->words, now_ns);
	/* GATE_CLOSED keeps further workers out. It is set before the last worker reports that all have left. The
	 * subtraction releases and acquires like the addition in gate_finish(). */
	__atomic_fetch_or(word, GATE_CLOSED, __ATOMIC_RELAXED);
	if ((uint32_t)__atomic_sub_fetch(word, 1, __ATOMIC_ACQ_REL) == GATE_CLOSED)
		tell_done(g, phase);
	else if (stopped)
		notify(g);
}

void gate_leave(struct gate *g, uint32_t threads)
{
	/* Releases and acquires as in gate_finish(). `gone` keeps the value `threads`, for which the host waits. */
	if (__atomic_add_fetch(&g->words->gone, 1, __ATOMIC_ACQ_REL) == threads)
		notify(g);
}

void gate_wake(const struct gate *g, struct loom_ctl *ctl)
{
	loom_futex_wake(&ctl->phase, INT_MAX, mine(g));
}

void gate_wake_apart(struct gate *g)
{
	__atomic_fetch_add(&g->words->turn, 1, __ATOMIC_RELEASE);
	loom_futex_wake(&g->words->turn, 1, mine(g));
}

void gate_nudge(struct gate *g)
{
	/* Release: pairs with the exchange in await(). */
	__atomic_store_n(&g->nudged, 1, __ATOMIC_RELEASE);
	notify(g);
}

int gate_watch(const uint32_t *word, uint32_t value, uint64_t most_ns)
{
	uint64_t until = gate_clock() + most_ns;
	int seen;
	/* Acquire: pairs with the release in gate_tell(). */
	while (!(seen = __atomic_load_n(word, __ATOMIC_ACQUIRE) == value) && gate_clock() < until)
		loom_relax();
	return seen;
}

/* Sleeps until the event word differs from `seen`. If the workers are in a process, it sleeps until the eventfd is
 * readable or the process ends. most: time limit. Returns 0 or errno. */
static int sleep_until(struct gate *g, uint32_t seen, struct pollfd *process, const struct timespec *most)
{
	struct pollfd on[2] = {{.fd = g->event_fd, .events = POLLIN}, *process};
	if (g->event_fd < 0) {
		uint64_t until = gate_clock() + (uint64_t)most->tv_sec * 1000000000u + (uint64_t)most->tv_nsec;
		errno = 0;
		return eventcount_sleep_private(&g->words->event, seen, until) ? ETIMEDOUT : errno;
	}
	if (poll_or_nap(on, 2, most) < 0)
		return errno;
	*process = on[1];
	if (on[0].revents)
		eventcount_fd_drain(g->event_fd); /* the caller then checks the words again */
	return 0;
}

static int await(struct gate *g, const uint32_t *word, uint32_t value, const uint32_t *stop, int pidfd, uint64_t end_ns)
{
	struct pollfd process = {.fd = pidfd, .events = POLLIN};
	for (int slept = 0;; slept = 1) {
		uint32_t seen = __atomic_load_n(&g->words->event, __ATOMIC_ACQUIRE);
		/* Acquire: pairs with the release in gate_tell(). */
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
			return 0;
		if (process.revents)
			return LOOM_EDIED;
		/* Checked before every sleep, because another wait may have consumed the notification of the nudge. */
		if (stop && __atomic_load_n(&g->nudged, __ATOMIC_RELAXED) &&
		    __atomic_exchange_n(&g->nudged, 0, __ATOMIC_ACQUIRE))
			return LOOM_EINTR;
		if (slept && stop && __atomic_load_n(stop, __ATOMIC_RELAXED))
			return LOOM_EINTR;
		uint64_t now = gate_clock();
		if (now >= end_ns)
			return LOOM_ETIMEDOUT;
		uint64_t left = end_ns - now;
		struct timespec most = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
		if (sleep_until(g, seen, &process, &most) == EINTR)
			return LOOM_EINTR;
	}
}

int gate_await(struct gate *g, const uint32_t *word, uint32_t value, const uint32_t *stop, int pidfd, uint64_t end_ns)
{
	/* Acquire: pairs with the release in gate_tell(). */
	if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
		return 0;
	(void)eventcount_enter_single(&g->words->event, &g->words->waiting);
	int code = await(g, word, value, stop, pidfd, end_ns);
	eventcount_leave_single(&g->words->waiting);
	return code;
}

int gate_await_within(struct gate *g, const uint32_t *word, uint32_t value, int pidfd, uint64_t span_ns)
{
	int code = LOOM_ETIMEDOUT;
	for (int tenth = 0; tenth < 10 && code == LOOM_ETIMEDOUT; tenth++) {
		uint64_t end = gate_deadline(span_ns / 10);
		while ((code = gate_await(g, word, value, NULL, pidfd, end)) == LOOM_EINTR)
			;
	}
	return code;
}
