/* SPDX-License-Identifier: Apache-2.0 */
/* Monitor: one thread per device, in its space (WIC, section 5.4). It reads the faults when not every item
 * is placed by its producer, and ends the stalls whose deadline has passed or whose run was stopped.
 *
 * DAB and PFQ are bitmaps over the same index, a slot's even or odd rounds; a pending fault is ready where both have a bit. A
 * fault that is reported twice (two consumers, or a signal) sets the same bit twice. */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "../shared/child/thread.h"
#include "../shared/sync/wave.dev.h"
#include "wic.h"

#define MESSAGES 64
#define AGAIN_NS 1000000u
#define PATIENCE_NS 10000000000u

static uint64_t clock_ns(void)
{
	return loom_clock_ns(NULL);
}

/* The door: one side says what it wants and then looks at the other's word, both sequentially consistent. So
 * either the Monitor sees that it is shut, or who shuts it sees that the Monitor is inside. */
static int enter(struct wic_device *d)
{
	__atomic_store_n(&d->inside, 1u, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&d->open, __ATOMIC_SEQ_CST))
		return 1;
	__atomic_store_n(&d->inside, 0u, __ATOMIC_RELEASE);
	return 0;
}

static void leave(struct wic_device *d)
{
	__atomic_store_n(&d->inside, 0u, __ATOMIC_RELEASE); /* pairs with wic_shut_out */
}

int wic_shut_out(struct wic_device *d)
{
	uint64_t until = 0;
	__atomic_store_n(&d->open, 0u, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&d->inside, __ATOMIC_SEQ_CST)) {
		uint64_t now = clock_ns();
		until = until ? until : now + PATIENCE_NS;
		if (now >= until)
			return LOOM_EDIED;
		loom_cpu_yield();
	}
	return 0;
}

void wic_let_in(const struct wic *w, uint32_t device, struct wic_device *d)
{
	__atomic_store_n(&d->open, 1u, __ATOMIC_SEQ_CST); /* release: what was changed meanwhile */
	wic_ring(w, device);
}

static const struct sync_channel *channel_of(const struct wic_space *sp, uint64_t bit)
{
	uint32_t i = 0;
	while (i + 1 < sp->head->channels && sync_channel(sp->head, i + 1)->bit_at <= bit)
		i++;
	return sync_channel(sp->head, i);
}

/* Activates a pending fault whose data are there. A bit of the DAB is a hint, and the slot says what is true.
 * A bit that stays in the PFQ too long only means that a page is placed before it is asked for. */
static void serve(struct wic_space *sp, uint64_t bit)
{
	const struct sync_channel *k = channel_of(sp, bit);
	/* Not there: the producer has set its bit and not yet raised `full`. The fault stays pending. */
	uint32_t at = (uint32_t)bit - k->bit_at;
	if (!wic_serve(sp, k, at / 2, at % 2))
		return;
	sp->pfq[bit / 64] &= ~(1ull << bit % 64);
}

/* A stalled load: into the PFQ, or served at once. */
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
	uint32_t slot = g->first + (page - first) / k->run, half = (page - first) % k->run >= k->sides / 2 * k->step;
	uint64_t bit = wic_bit(k, slot) + half, mask = 1ull << bit % 64;
	sp->pfq[bit / 64] |= mask;
	/* A producer that sets a bit in the DAB raises `full`, and looks at `sleepers` or rings, afterwards:
	 * either its bit is seen here, or it sees who stalls. */
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

/* What GPUs have published for consumers here. CPUs publish rounds in between, which their word does not say one by one: it
 * jumps. No round of a GPU is jumped over, because the next of its slot comes after its readers. */
static void pass_on(struct wic_space *sp)
{
	uint32_t *passed = sp->passed;
	for (uint32_t i = 0; i < sp->head->channels; i++) {
		const struct sync_channel *k = sync_channel(sp->head, i);
		for (uint32_t slot = 0; k->to == sp->device && slot < k->slots; slot++) {
			/* Acquire: pairs with the GPU's release. */
			uint32_t now = __atomic_load_n(sync_full(NULL, sp->head, k, slot), __ATOMIC_ACQUIRE);
			if (passed[slot] != now)
				wic_pass_on(sp, k, (now - 1) * k->slots + slot);
			passed[slot] = now;
		}
		passed += k->slots;
	}
}

/* Ends the stalls that are due. The next deadline. What is read may be of two stalls of one worker: then a
 * page is placed that nobody asked for, which does no harm. */
static uint64_t check_stalls(struct wic_space *sp)
{
	uint64_t next = UINT64_MAX, now = clock_ns();
	for (uint32_t i = 0; i < sp->workers; i++) {
		struct wic_stall *t = &sp->stall[i];
		if (!__atomic_load_n(&t->active, __ATOMIC_SEQ_CST))
			continue;
		uint64_t until = __atomic_load_n(&t->until_ns, __ATOMIC_RELAXED);
		uint32_t tag = __atomic_load_n(&t->tag, __ATOMIC_RELAXED);
		const struct sync_channel *k =
			sync_channel(sp->head, __atomic_load_n(&t->channel, __ATOMIC_RELAXED));
		const struct sync_slot *s = sync_slot(sp->head, k, tag);
		if ((until && until <= now) || (__atomic_load_n(&s->full, __ATOMIC_SEQ_CST) & SYNC_POISON)) {
			wic_end_stall(sp, k, tag % k->slots, wic_half(k, tag));
			until = now + AGAIN_NS; /* unless it has left by then */
		}
		if (until && until < next)
			next = until;
	}
	return next;
}

/* Whether it was let in. */
static int work(struct wic_space *sp)
{
	struct wic_device *d = wic_device(sp->wic, sp->head, sp->device);
	if (!enter(d))
		return 0;
	if (sp->wic->needs_messages) {
		for (uint32_t i = 0; i < sp->opened; i++)
			read_faults(sp, sp->uffd[i]);
		serve_pending(sp);
	}
	if (sp->wic->sync.crosses)
		pass_on(sp);
	/* Whoever registers from here on rings, unless its deadline is after the next one found. */
	__atomic_store_n(&sp->next_ns, UINT64_MAX, __ATOMIC_SEQ_CST);
	__atomic_store_n(&sp->next_ns, check_stalls(sp), __ATOMIC_SEQ_CST);
	leave(d);
	return 1;
}

static void *monitor_main(void *arg)
{
	struct wic_space *sp = arg;
	struct pollfd on[1 + WIC_SHARDS_MAX] = {{.fd = sp->wic->bell[sp->device], .events = POLLIN}};
	nfds_t n = 1;
	for (uint32_t i = 0; sp->wic->needs_messages && i < sp->opened; i++)
		on[n++] = (struct pollfd){.fd = sp->uffd[i], .events = POLLIN};
	__atomic_store_n(&sp->began, 1u, __ATOMIC_RELEASE);
	for (;;) {
		eventfd_t rings;
		(void)eventfd_read(on->fd, &rings); /* before all looks, at `quit` too: no ring is lost */
		if (__atomic_load_n(&sp->quit, __ATOMIC_ACQUIRE))
			break;
		if (!work(sp)) { /* until wic_let_in rings; a fault that nobody reads would wake it for ever */
			ppoll(on, 1, NULL, NULL);
			continue;
		}
		uint64_t next = __atomic_load_n(&sp->next_ns, __ATOMIC_RELAXED), now = clock_ns();
		uint64_t left = next > now ? next - now : 0;
		struct timespec wait = {.tv_sec = (time_t)(left / 1000000000u),
					.tv_nsec = (long)(left % 1000000000u)};
		ppoll(on, n, next == UINT64_MAX ? NULL : &wait, NULL);
	}
	return NULL;
}

int wic_monitor_start(struct wic_space *sp)
{
	sigset_t all, old;
	sp->quit = sp->began = 0;
	sp->next_ns = UINT64_MAX;
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	int code = thread_create(&sp->monitor, monitor_main, sp);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* The caller may fork next: by then the start-up of the thread has let go of all locks. */
	while (!code && !__atomic_load_n(&sp->began, __ATOMIC_ACQUIRE))
		loom_cpu_yield();
	return code;
}

void wic_monitor_stop(struct wic_space *sp)
{
	__atomic_store_n(&sp->quit, 1u, __ATOMIC_RELEASE);
	wic_ring(sp->wic, sp->device);
	pthread_join(sp->monitor, NULL);
}
