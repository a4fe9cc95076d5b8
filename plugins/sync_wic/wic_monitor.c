/* SPDX-License-Identifier: Apache-2.0 */
/* The Monitor: a thread per device, in the process of the device's workers (WIC, section 5.4). It ends stalls if their
 * deadline has passed or the run was stopped. If not every producer places the pages of its items, the Monitor also reads
 * page faults and places the pages.
 *
 * DAB and PFQ are bitmaps with the same index: a bit for the even rounds and one for the odd rounds of each slot. A pending
 * fault is ready if both bits are set. The kernel may report a fault twice, for two consumers or after a signal. That is
 * harmless, because the same bit is set twice. */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <string.h>

#include "lib/poll.h"
#include "lib/thread.h"
#include "../sync_common/gpu_wait.dev.h"
#include "wic.h"

#define MESSAGES         64
#define REPEAT_NS        1000000u
#define PAUSE_TIMEOUT_NS 10000000000u

static uint64_t clock_ns(void)
{
	return loom_clock_ns(NULL);
}

/* Returns 1 if the Monitor may work. The Monitor stores `working` and then loads `allowed`; wic_pause_monitor() stores
 * `allowed` and then loads `working`. All four are sequentially consistent. So the Monitor sees that it must not work, or
 * the pausing thread sees that the Monitor works. */
static int start_work(struct wic_device *d)
{
	__atomic_store_n(&d->working, 1u, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&d->allowed, __ATOMIC_SEQ_CST))
		return 1;
	__atomic_store_n(&d->working, 0u, __ATOMIC_RELEASE);
	return 0;
}

static void end_work(struct wic_device *d)
{
	__atomic_store_n(&d->working, 0u, __ATOMIC_RELEASE); /* pairs with the load in wic_pause_monitor() */
}

int wic_pause_monitor(struct wic_device *d)
{
	uint64_t until = 0;
	__atomic_store_n(&d->allowed, 0u, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&d->working, __ATOMIC_SEQ_CST)) {
		uint64_t now = clock_ns();
		until = until ? until : now + PAUSE_TIMEOUT_NS;
		if (now >= until)
			return LOOM_EDIED;
		loom_cpu_yield();
	}
	return 0;
}

void wic_resume_monitor(const struct wic *w, uint32_t device, struct wic_device *d)
{
	__atomic_store_n(&d->allowed, 1u, __ATOMIC_SEQ_CST); /* the Monitor acquires changes made in the pause */
	wic_wake_monitor(w, device);
}

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static const struct sync_channel *channel_of(const struct wic_space *sp, uint64_t bit)
{
	uint32_t i = 0;
	while (i + 1 < sp->head->channels && sync_channel(sp->head, i + 1)->bit_at <= bit)
		i++;
	return sync_channel(sp->head, i);
}

/* Ends the stalls of a pending fault if its item is published. A bit of the DAB is only a hint; wic_activate() checks
 * `full`. If a bit stays in the PFQ too long, the only effect is that a page is placed before a consumer stalls. */
static void serve(struct wic_space *sp, uint64_t bit)
{
	const struct sync_channel *k = channel_of(sp, bit);
	/* The fault stays pending if the producer has set the bit in the DAB, but has not incremented `full` yet. */
	uint32_t at = (uint32_t)bit - k->bit_at;
	if (!wic_activate(sp, k, at / 2, at % 2))
		return;
	sp->pfq[bit / 64] &= ~(1ull << bit % 64);
}

/* Adds the page fault at `address` to the PFQ. If the DAB says that the item is published, serves the fault at once. */
static void take_fault(struct wic_space *sp, uint64_t address)
{
	uint32_t page = (uint32_t)((address - (uintptr_t)sp->pcm) / UFFD_PAGE);
	uint32_t group = 0;
	if (page < sp->wic->pages)
		group = __atomic_load_n(wic_owner(sp->wic, sp->head, sp->device, page), __ATOMIC_RELAXED);
	if (!group)
		return;
	const struct wic_group *g = wic_group(sp->wic, sp->head, group - 1);
	const struct sync_channel *k = sync_channel(sp->head, g->channel);
	uint32_t first = __atomic_load_n(&g->page, __ATOMIC_ACQUIRE) - 1;
	uint32_t slot = g->first + (page - first) / k->run,
		 half = (page - first) % k->run >= k->companions / 2 * k->step;
	uint64_t bit = wic_bit(k, slot) + half, mask = 1ull << bit % 64;
	sp->pfq[bit / 64] |= mask;
	/* A producer sets the bit in the DAB, then increments `full`, and then loads `sleepers` or wakes the Monitor. So either
	 * the Monitor sees the bit here, or the producer sees the stalled consumer. */
	if (__atomic_load_n(wic_dab(sp->wic, sp->head, bit), __ATOMIC_SEQ_CST) & mask)
		serve(sp, bit);
}

static void read_faults(struct wic_space *sp, int fd)
{
	struct uffd_msg list[MESSAGES];
	ssize_t n;
	while ((n = read(fd, list, sizeof(list))) > 0)
		for (ssize_t i = 0; i < n / (ssize_t)sizeof(*list); i++)
			if (list[i].event == UFFD_EVENT_PAGEFAULT)
				take_fault(sp, list[i].arg.pagefault.address);
}

static void serve_pending(struct wic_space *sp)
{
	for (uint64_t i = 0; i < sp->pfq_words; i++) {
		uint64_t ready = sp->pfq[i];
		if (ready)
			ready &= __atomic_load_n(wic_dab(sp->wic, sp->head, 64 * i), __ATOMIC_SEQ_CST);
		for (; ready; ready &= ready - 1)
			serve(sp, 64 * i + (uint64_t)__builtin_ctzll(ready));
	}
}

/* Forwards items that GPUs have published for consumers on this device. If CPUs publish rounds of the same slot in between,
 * the GPU's word does not count them, and later grows by more than 1. No round of a GPU is skipped, because a GPU publishes
 * the next round of a slot only after this round was read. */
static void forward(struct wic_space *sp)
{
	uint32_t *forwarded = sp->forwarded;
	for (uint32_t i = 0; i < sp->head->channels; i++) {
		const struct sync_channel *k = sync_channel(sp->head, i);
		for (uint32_t slot = 0; k->to == sp->device && slot < k->slots; slot++) {
			/* Acquire: pairs with the release with which the GPU publishes the item. */
			uint32_t now = __atomic_load_n(sync_full(NULL, sp->head, k, slot), __ATOMIC_ACQUIRE);
			if (forwarded[slot] != now)
				wic_forward(sp, k, (now - 1) * k->slots + slot);
			forwarded[slot] = now;
		}
		forwarded += k->slots;
	}
}

/* Ends the stalls whose deadline has passed or whose slot is poisoned. Returns the next deadline, or UINT64_MAX. The loaded
 * fields may come from two stalls of the same worker. In this case a page is placed without need, which is harmless. */
static uint64_t check_stalls(struct wic_space *sp)
{
	uint64_t next = UINT64_MAX, now = clock_ns();
	for (uint32_t i = 0; i < sp->workers; i++) {
		struct wic_stall *t = &sp->stall[i];
		if (!__atomic_load_n(&t->active, __ATOMIC_SEQ_CST))
			continue;
		uint64_t until = __atomic_load_n(&t->until_ns, __ATOMIC_RELAXED);
		uint32_t tag = __atomic_load_n(&t->tag, __ATOMIC_RELAXED);
		const struct sync_channel *k = sync_channel(sp->head, __atomic_load_n(&t->channel, __ATOMIC_RELAXED));
		const struct sync_slot *s = sync_slot(sp->head, k, tag);
		if ((until && until <= now) || (__atomic_load_n(&s->full, __ATOMIC_SEQ_CST) & SYNC_POISON)) {
			wic_end_stall(sp, k, tag % k->slots, wic_half(k, tag));
			until = now + REPEAT_NS; /* if the worker still waits at that time, its stall is ended once more */
		}
		if (until && until < next)
			next = until;
	}
	return next;
}

/* Returns 1 if the Monitor was allowed to work. */
static int work(struct wic_space *sp)
{
	struct wic_device *d = wic_device(sp->wic, sp->head, sp->device);
	if (!start_work(d))
		return 0;
	uint64_t begin = cpu_ns();
	if (sp->wic->needs_messages) {
		for (uint32_t i = 0; i < sp->opened; i++)
			read_faults(sp, sp->uffd[i]);
		serve_pending(sp);
	}
	if (sp->wic->sync.crosses_link)
		forward(sp);
	/* While next_ns is UINT64_MAX, each consumer that registers a deadline wakes the Monitor: stall() in wic_channel.c. */
	__atomic_store_n(&sp->next_ns, UINT64_MAX, __ATOMIC_SEQ_CST);
	__atomic_store_n(&sp->next_ns, check_stalls(sp), __ATOMIC_SEQ_CST);
	/* Relaxed: the host may read the time whenever it likes, but resets it only while this Monitor is paused. */
	__atomic_store_n(&d->monitor_ns, d->monitor_ns + cpu_ns() - begin, __ATOMIC_RELAXED);
	end_work(d);
	return 1;
}

static void *monitor_main(void *arg)
{
	struct wic_space *sp = arg;
	struct pollfd on[1 + WIC_SHARDS_MAX] = {{.fd = sp->wic->monitor_fd[sp->device], .events = POLLIN}};
	nfds_t n = 1;
	for (uint32_t i = 0; sp->wic->needs_messages && i < sp->opened; i++)
		on[n++] = (struct pollfd){.fd = sp->uffd[i], .events = POLLIN};
	for (;;) {
		eventcount_fd_drain(on->fd); /* before all checks, so that a wake-up after a check is not lost */
		if (__atomic_load_n(&sp->quit, __ATOMIC_ACQUIRE))
			break;
		/* A paused Monitor waits only for monitor_fd, because ppoll() would return at once while a fault is unread. */
		if (!work(sp)) {
			poll_or_nap(on, 1, NULL);
			continue;
		}
		uint64_t next = __atomic_load_n(&sp->next_ns, __ATOMIC_RELAXED), now = clock_ns();
		uint64_t left = next > now ? next - now : 0;
		struct timespec wait = {.tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u)};
		poll_or_nap(on, n, next == UINT64_MAX ? NULL : &wait);
	}
	return NULL;
}

int wic_monitor_start(struct wic_space *sp)
{
	sigset_t all, old;
	sp->quit = 0;
	sp->next_ns = UINT64_MAX;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int code = thread_start(&sp->monitor, monitor_main, sp);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return code;
}

void wic_monitor_stop(struct wic_space *sp)
{
	__atomic_store_n(&sp->quit, 1u, __ATOMIC_RELEASE);
	wic_wake_monitor(sp->wic, sp->device);
	pthread_join(sp->monitor, NULL);
}
