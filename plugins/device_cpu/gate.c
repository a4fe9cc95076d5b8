/* SPDX-License-Identifier: Apache-2.0 */
#include "gate.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

int gate_open(struct gate *g)
{
	/* Inherited by a forked child at the same address, and gone with the last who maps it. */
	void *p = mmap(NULL, sizeof(*g->words), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (p == MAP_FAILED)
		return errno;
	int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (bell < 0) {
		int code = errno;
		munmap(p, sizeof(*g->words));
		return code;
	}
	g->words = p;
	g->bell = bell;
	return 0;
}

void gate_close(struct gate *g)
{
	if (!g->words)
		return;
	munmap(g->words, sizeof(*g->words));
	close(g->bell);
	g->words = NULL;
}

static void silence(struct gate *g)
{
	eventfd_t rings;
	(void)eventfd_read(g->bell, &rings); /* non-blocking: it may not have rung */
}

void gate_reset(struct gate *g)
{
	memset(g->words, 0, sizeof(*g->words));
	silence(g);
}

uint32_t gate_park(const struct loom_ctx *c, uint64_t spin_ns)
{
	uint32_t *word = &c->ctl->phase;
	uint64_t until = gate_clock() + spin_ns;
	for (;;) {
		/* Acquire: pairs with the host's release of READY, after it set up the sample. */
		uint32_t phase = loom_load_acquire_sys(word);
		if (phase & 3) /* GO words and the first 0 are multiples of 4 */
			return phase;
		if (gate_clock() < until)
			loom_pause(c);
		else /* not FUTEX_PRIVATE: the host may be another process */
			syscall(SYS_futex, word, FUTEX_WAIT, phase, NULL, NULL, 0);
	}
}

void gate_tell(struct gate *g, uint32_t *word, uint32_t value)
{
	/* Release: pairs with the acquire in gate_await. */
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
	(void)eventfd_write(g->bell, 1);
}

void gate_arrive(struct gate *g, uint32_t lanes, uint32_t phase)
{
	struct gate_words *w = g->words;
	/* Each lane releases what it did; the last acquires it all and passes it on to the host. */
	if (__atomic_add_fetch(&w->arrived, 1, __ATOMIC_ACQ_REL) != lanes)
		return;
	/* No lane comes back before the host has seen `ready`. Release: pairs with gate_spin. */
	__atomic_store_n(&w->arrived, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&w->finished, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&w->end_ns, 0, __ATOMIC_RELAXED);
	gate_tell(g, &w->ready, phase);
}

uint32_t gate_spin(struct gate *g, const struct loom_ctx *c, uint32_t ready)
{
	uint32_t phase;
	/* Acquire: pairs with the host's release of GO. */
	while ((phase = loom_load_acquire_sys(&c->ctl->phase)) == ready)
		loom_pause(c);
	/* Lanes are ordered by way of the host already; a race detector cannot see that where the host is
	 * another process. Acquire: pairs with the last lane's reset in gate_arrive. */
	(void)__atomic_load_n(&g->words->arrived, __ATOMIC_ACQUIRE);
	return phase;
}

void gate_finish(struct gate *g, uint32_t workers, uint32_t phase, uint64_t now_ns, int stopped)
{
	struct gate_words *w = g->words;
	uint64_t end = __atomic_load_n(&w->end_ns, __ATOMIC_RELAXED);
	while (end < now_ns && !__atomic_compare_exchange_n(&w->end_ns, &end, now_ns, 1,
							    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	/* Releases the worker's results and its end_ns, acquires those of all before it. */
	if (__atomic_add_fetch(&w->finished, 1, __ATOMIC_ACQ_REL) == workers)
		gate_tell(g, &w->done, phase);
	else if (stopped)
		(void)eventfd_write(g->bell, 1);
}

void gate_leave(struct gate *g, uint32_t threads)
{
	/* Same pattern as above; `gone` stays at `threads`, which is what the host awaits. */
	if (__atomic_add_fetch(&g->words->gone, 1, __ATOMIC_ACQ_REL) == threads)
		(void)eventfd_write(g->bell, 1);
}

void gate_wake(struct loom_ctl *ctl)
{
	syscall(SYS_futex, &ctl->phase, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void gate_nudge(struct gate *g)
{
	/* Release, and before the ring: who has read the bell sees it. */
	__atomic_store_n(&g->nudged, 1, __ATOMIC_RELEASE);
	(void)eventfd_write(g->bell, 1);
}

int gate_await(struct gate *g, const uint32_t *word, uint32_t value, const uint32_t *stop, int pidfd,
	       uint64_t end_ns)
{
	struct pollfd on[2] = {{.fd = g->bell, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
	for (;;) {
		/* Acquire: pairs with the release in gate_tell. */
		if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == value)
			return 0;
		if (on[1].revents)
			return LOOM_EDIED;
		/* Looked at before every sleep, for another wait may have read the bell. */
		if (stop && __atomic_load_n(&g->nudged, __ATOMIC_RELAXED) &&
		    __atomic_exchange_n(&g->nudged, 0, __ATOMIC_ACQUIRE))
			return LOOM_EINTR;
		uint64_t now = gate_clock();
		if (now >= end_ns)
			return LOOM_ETIMEDOUT;
		uint64_t left = end_ns - now;
		struct timespec wait = {.tv_sec = (time_t)(left / 1000000000u),
					.tv_nsec = (long)(left % 1000000000u)};
		if (ppoll(on, 2, &wait, NULL) < 0)
			return LOOM_EINTR;
		if (!on[0].revents)
			continue;
		silence(g); /* before the look at the word: no ring is lost */
		if (stop && __atomic_load_n(stop, __ATOMIC_RELAXED) && __atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
			return LOOM_EINTR;
	}
}
