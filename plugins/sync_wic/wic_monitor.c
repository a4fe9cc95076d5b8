/* SPDX-License-Identifier: Apache-2.0 */
/* Monitor: one thread per device, in its space (WIC, section 5.4). It reads the faults when not every item
 * is placed by its producer, and ends the stalls whose deadline has passed or whose run was stopped.
 *
 * DAB and PFQ are bitmaps over the same index, slot and side; a pending fault is ready where both have a
 * bit. A fault that is reported twice (two consumers, or a signal) sets the same bit twice. */
#include <errno.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>

#include "wic.h"

#define MESSAGES 64

void wic_ring(const struct wic *w, uint32_t device)
{
	(void)eventfd_write(w->bell[device], 1);
}

static uint64_t clock_ns(void)
{
	return loom_clock_ns(NULL);
}

static const struct sync_channel *channel_of(const struct wic_space *sp, uint64_t bit)
{
	uint32_t slot = (uint32_t)(bit / sp->wic->sides), i = 0;
	while (i + 1 < sp->head->channels && sync_channel(sp->head, i + 1)->bit_at <= slot)
		i++;
	return sync_channel(sp->head, i);
}

/* Activates a pending fault whose data are there. A bit of the DAB may be stale, when the producer has
 * activated its consumer itself: the slot says what is true. A pending fault stays in the PFQ until it
 * was activated; one that stays too long only means that an item is placed before it is asked for. */
static void serve(struct wic_space *sp, uint64_t bit)
{
	uint64_t mask = 1ull << bit % 64;
	int resumed;
	/* Cleared before the look: a producer that comes after sets it again, and rings. */
	__atomic_fetch_and(wic_dab(sp->wic, sp->head, bit), ~mask, __ATOMIC_SEQ_CST);
	const struct sync_channel *k = channel_of(sp, bit);
	uint32_t slot = (uint32_t)(bit / sp->wic->sides) - k->bit_at;
	struct sync_slot *s = sync_slot(sp->head, k, slot);
	uint32_t full = __atomic_load_n(&s->full, __ATOMIC_SEQ_CST), round = full - 1;
	if (!full || (full & SYNC_POISON) || wic_side(sp->wic, round) != bit % sp->wic->sides)
		return;
	uint32_t tag = round * k->slots + slot;
	sp->pfq[bit / 64] &= ~mask;
	wic_activate_once(sp, k, tag, wic_staging(sp, k, wic_pages(sp, k, tag), tag),
			  __atomic_load_n(&s->length, __ATOMIC_RELAXED), &resumed);
	sp->activated += (uint64_t)resumed;
}

/* A stalled load: into the PFQ, or served at once. */
static void take_fault(struct wic_space *sp, uint64_t address)
{
	uint32_t page = (uint32_t)((address - (uintptr_t)sp->pcm) / UFFD_PAGE);
	uint32_t group = 0;
	if (page < sp->wic->pages)
		group = __atomic_load_n(wic_owner(sp->wic, sp->head, sp->device, page), __ATOMIC_RELAXED);
	sp->messages++;
	if (!group)
		return;
	const struct wic_group *g = wic_group(sp->wic, sp->head, group - 1);
	const struct sync_channel *k = sync_channel(sp->head, g->channel);
	uint32_t first = __atomic_load_n(&g->page, __ATOMIC_ACQUIRE) - 1;
	uint32_t place = (page - first) / k->pages, slot = g->first + place % g->slots;
	uint64_t bit = ((uint64_t)k->bit_at + slot) * sp->wic->sides + place / g->slots, mask = 1ull << bit % 64;
	if (sp->pfq[bit / 64] & mask)
		sp->duplicates++;
	sp->pfq[bit / 64] |= mask;
	/* The look at the DAB comes after the entry in the PFQ, and a producer that sets a bit there
	 * looks at `sleepers`, or rings, afterwards: one of the two serves the fault. */
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

/* Ends the stalls that are due. The next deadline. */
static uint64_t check_stalls(struct wic_space *sp)
{
	uint64_t next = UINT64_MAX, now = clock_ns();
	for (uint32_t i = 0; i < sp->workers; i++) {
		struct wic_stall *t = &sp->stall[i];
		if (!__atomic_load_n(&t->active, __ATOMIC_SEQ_CST))
			continue;
		/* With the lock, the consumer stays in its wait, and the slot in its round. */
		wic_lock(sp->ctl, &t->lock);
		if (t->active) {
			const struct sync_slot *s = sync_slot(sp->head, t->k, t->tag);
			int due = t->until_ns && t->until_ns <= now;
			if (due)
				t->expired = 1;
			if (due || (__atomic_load_n(&s->full, __ATOMIC_SEQ_CST) & SYNC_POISON))
				wic_poison(sp, t->k, t->tag, t->page);
			else if (t->until_ns && t->until_ns < next)
				next = t->until_ns;
		}
		wic_unlock(&t->lock);
	}
	return next;
}

static void work(struct wic_space *sp)
{
	eventfd_t rings;
	(void)eventfd_read(sp->wic->bell[sp->device], &rings); /* before the looks: no ring is lost */
	pthread_mutex_lock(&sp->busy);
	if (sp->wic->needs_messages) {
		for (uint32_t i = 0; i < sp->opened; i++)
			read_faults(sp, sp->uffd[i]);
		serve_pending(sp);
	}
	/* Whoever registers from here on rings, unless its deadline is after the next one found. */
	__atomic_store_n(&sp->next_ns, UINT64_MAX, __ATOMIC_SEQ_CST);
	__atomic_store_n(&sp->next_ns, check_stalls(sp), __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&sp->busy);
}

static void *monitor_main(void *arg)
{
	struct wic_space *sp = arg;
	struct pollfd on[1 + WIC_SHARDS_MAX] = {{.fd = sp->wic->bell[sp->device], .events = POLLIN}};
	nfds_t n = 1;
	for (uint32_t i = 0; sp->wic->needs_messages && i < sp->opened; i++)
		on[n++] = (struct pollfd){.fd = sp->uffd[i], .events = POLLIN};
	__atomic_store_n(&sp->began, 1u, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&sp->quit, __ATOMIC_ACQUIRE)) {
		work(sp);
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
	int code = pthread_create(&sp->monitor, NULL, monitor_main, sp);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	/* The caller may fork next: by then the start-up of the thread has let go of all locks. */
	while (!code && !__atomic_load_n(&sp->began, __ATOMIC_ACQUIRE))
		sched_yield();
	return code;
}

void wic_monitor_stop(struct wic_space *sp)
{
	__atomic_store_n(&sp->quit, 1u, __ATOMIC_RELEASE);
	wic_ring(sp->wic, sp->device);
	pthread_join(sp->monitor, NULL);
}
