/* SPDX-License-Identifier: Apache-2.0 */
/* The Activator places pages with their data, and so resumes the consumers that are stalled on them. It also recycles pages,
 * which means to arm them again (WIC, section 5.5), and ends stalls without data. The rules are in wic.h.
 *
 * mode = in_place: the page exists in the file, and UFFDIO_CONTINUE places it by mapping it. A page that is placed without
 * need shows the same bytes as any other mapping of it.
 *
 * mode = copy: UFFDIO_COPY copies the item to pages of the consumer, so a page that is placed too early or too late would
 * show the wrong bytes. The slot's lock protects `full`, `released` and the slot's pages. To end a stall without data, a
 * thread places a page of zeroes and sets `spoiled`. A consumer arms such a page again, with the lock. Consumers are resumed
 * after the unlock, because a resumed consumer may take the core of the thread that holds the lock. */
#include <sys/mman.h>

#include "../sync_common/gpu_wait.dev.h"
#include "wic.h"

/* The place of an item. */
struct target {
	int fd;           /* userfaultfd descriptor of the pages on which consumers stall */
	uint32_t half;    /* wic_half() of the round */
	uint64_t at;      /* address of the item's first page, in the address space of its consumers */
	const char *item; /* address of the item on the staging pages */
	uint64_t colour;  /* offset of the item on its first page */
};

static int find(struct wic_space *sp, const struct sync_channel *k, const struct sync_slot *s, uint32_t first,
		uint32_t tag, struct target *t)
{
	const struct wic *w = sp->wic;
	const struct wic_route *route = wic_route(sp, k->to);
	if (!route) /* explain() in sync_wic.c gives the reason for LOOM_EUNAVAIL */
		return __atomic_load_n(&sp->truncated, __ATOMIC_RELAXED) ? LOOM_EUNAVAIL : LOOM_EDIED;
	uint32_t page = wic_turn(k, s, first, tag);
	t->fd = route->fd[wic_shard(w, k->to, first)];
	t->at = wic_device(w, sp->head, k->to)->base + (uint64_t)page * UFFD_PAGE;
	t->item = wic_staging(sp, k, s, first, tag);
	t->colour = wic_colour(k, tag);
	t->half = wic_half(k, tag);
	return 0;
}

/* Converts -errno into a LOOM_E code. EEXIST is a success: the page is placed already, so no consumer stalls on it. */
static int result(int rc)
{
	return !rc || rc == -EEXIST ? 0 : rc == -ESRCH ? LOOM_EDIED : LOOM_EIO;
}

/* Places the item's first page with mode = in_place; consumers stall only on this page. Sets `spent` before it places
 * the page, because a reader may release the slot directly afterwards. */
static int map(const struct target *t, struct sync_slot *s)
{
	__atomic_store_n(&s->spent[t->half], 1u, __ATOMIC_RELAXED);
	return result(uffd_continue(t->fd, t->at, UFFD_PAGE, 1));
}

/* Places the item's pages with mode = copy; called with the slot's lock. The first page comes last, because a consumer that was
 * stalled on it reads the other pages next. */
static int copy(const struct target *t, struct sync_slot *s, uint64_t bytes)
{
	const char *from = t->item - t->colour;
	uint64_t end = t->colour + bytes, whole = end ? (end + UFFD_PAGE - 1) / UFFD_PAGE * UFFD_PAGE : UFFD_PAGE;
	int rc = 0;
	__atomic_store_n(&s->spent[t->half], 1u, __ATOMIC_RELAXED);
	if (whole > UFFD_PAGE)
		rc = result(uffd_copy(t->fd, t->at + UFFD_PAGE, from + UFFD_PAGE, whole - UFFD_PAGE, 0));
	return rc ? rc : result(uffd_copy(t->fd, t->at, from, UFFD_PAGE, 0));
}

static int announce_copy(struct wic_space *sp, struct sync_slot *s, const struct target *t, uint64_t bytes,
			 int by_producer)
{
	int rc = wic_lock(sp->ctl, &s->lock), stalled = 0;
	if (rc)
		return rc;
	s->length = bytes;
	__atomic_fetch_add(&s->full, 1u, __ATOMIC_SEQ_CST);
	if (by_producer && __atomic_load_n(&s->sleepers, __ATOMIC_SEQ_CST)) {
		stalled = 1;
		rc = copy(t, s, bytes);
	}
	wic_unlock(&s->lock);
	if (stalled && !rc)
		uffd_wake(t->fd, t->at, UFFD_PAGE);
	return rc ? rc : stalled;
}

int wic_announce(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s, uint32_t first, uint32_t tag,
		 uint64_t bytes)
{
	const struct wic *w = sp->wic;
	int by_producer = w->o->activate == WIC_BY_PRODUCER, rc;
	uint64_t bit = wic_bit(k, tag);
	struct target t;
	/* Finds the page first: once `full` is incremented, the round may end, and its page may be reused. */
	rc = find(sp, k, s, first, tag, &t);
	if (rc)
		return rc;
	/* The bit in the DAB is a hint for the Monitor, which then checks the slot. */
	if (w->needs_messages)
		__atomic_fetch_or(wic_dab(w, sp->head, bit), 1ull << bit % 64, __ATOMIC_SEQ_CST);
	if (w->o->mode == WIC_COPY) {
		rc = announce_copy(sp, s, &t, bytes, by_producer);
	} else {
		/* Release: pairs with the loads of `full` in await_item() and take(). Sequentially consistent, as are the
		 * increment of `sleepers` in take() and the load of `full` after that increment. So at least one side sees the
		 * add of the other. */
		__atomic_fetch_add(&s->full, 1u, __ATOMIC_SEQ_CST);
		if (by_producer && __atomic_load_n(&s->sleepers, __ATOMIC_SEQ_CST))
			rc = (rc = map(&t, s)) ? rc : 1;
	}
	if (!by_producer) {
		rc = rc ? rc : __atomic_load_n(&s->sleepers, __ATOMIC_SEQ_CST) != 0;
		wic_wake_monitor(w, k->to);
	}
	return rc;
}

/* Returns 1 if the item of the round is published. */
static int is_full(const struct sync_slot *s, uint32_t round)
{
	return sync_reached(__atomic_load_n(&s->full, __ATOMIC_SEQ_CST), round + 1);
}

/* Finds the page of the slot's open round with an even or odd number, as `half` says. Called by the Monitor. If mode =
 * in_place, the round may end at any time, so the Monitor may place a page without need. */
static int find_current(struct wic_space *sp, const struct sync_channel *k, const struct sync_slot *s, uint32_t slot,
			uint32_t half, struct target *t, uint32_t *round)
{
	uint32_t first = wic_pages(sp, k, slot), tag = wic_current(k, s, slot, half);
	*round = sync_round(k, tag);
	return first == PCM_NONE ? LOOM_EFULL : find(sp, k, s, first, tag, t);
}

int wic_activate(struct wic_space *sp, const struct sync_channel *k, uint32_t slot, uint32_t half)
{
	struct sync_slot *s = sync_slot(sp->head, k, slot);
	uint32_t round;
	struct target t;
	int there;
	if (sp->wic->o->mode == WIC_IN_PLACE) {
		there = !find_current(sp, k, s, slot, half, &t, &round) && is_full(s, round);
		if (there)
			map(&t, s);
		return there;
	}
	if (wic_lock(sp->ctl, &s->lock))
		return 0;
	there = !find_current(sp, k, s, slot, half, &t, &round) && is_full(s, round);
	if (there)
		copy(&t, s, s->length);
	wic_unlock(&s->lock);
	if (there)
		uffd_wake(t.fd, t.at, UFFD_PAGE);
	return there;
}

void wic_end_stall(struct wic_space *sp, const struct sync_channel *k, uint32_t slot, uint32_t half)
{
	struct sync_slot *s = sync_slot(sp->head, k, slot);
	uint32_t round;
	struct target t;
	if (sp->wic->o->mode == WIC_IN_PLACE) {
		if (!find_current(sp, k, s, slot, half, &t, &round))
			map(&t, s);
		return;
	}
	/* If the lock fails, the run was stopped. The stall then ends without the lock, because consumers no longer use the
	 * bytes. */
	int failed = wic_lock(sp->ctl, &s->lock);
	int rc = find_current(sp, k, s, slot, half, &t, &round);
	if (!rc && is_full(s, round)) { /* a producer may have died before it placed the page */
		copy(&t, s, s->length);
	} else if (!rc) {
		__atomic_store_n(&s->spent[half], 1u, __ATOMIC_RELAXED);
		s->spoiled[half] = 1;
		uffd_zero(t.fd, t.at, UFFD_PAGE);
	}
	if (!failed)
		wic_unlock(&s->lock);
	if (!rc)
		uffd_wake(t.fd, t.at, UFFD_PAGE);
}

static void arm(const struct target *t, uint32_t pages)
{
	madvise((void *)(uintptr_t)t->at, (uint64_t)pages * UFFD_PAGE, MADV_DONTNEED);
}

/* wic_check_item() with mode = in_place. */
static const void *check_in_place(struct sync_slot *s, const struct target *t, uint32_t round)
{
	if (is_full(s, round))
		return t->item;
	arm(t, 1);
	/* Another consumer may have stalled on the page that was just armed. If the item is published or the slot poisoned,
	 * no other thread will end this stall. */
	uint32_t full = __atomic_load_n(&s->full, __ATOMIC_SEQ_CST);
	if (sync_reached(full, round + 1) || (full & SYNC_POISON))
		map(t, s);
	return sync_reached(full, round + 1) ? t->item : NULL;
}

static const void *check_copy(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s,
			      const struct target *t, uint32_t round)
{
	int wake = 0;
	if (wic_lock(sp->ctl, &s->lock))
		return NULL; /* the run was stopped; the caller checks the stop word */
	int there = is_full(s, round);
	if (s->spoiled[t->half]) {
		arm(t, k->pages);
		s->spoiled[t->half] = 0;
		if (there)
			wake = copy(t, s, s->length) == 0;
	}
	wic_unlock(&s->lock);
	if (wake)
		uffd_wake(t->fd, t->at, UFFD_PAGE);
	return there ? (const char *)(uintptr_t)t->at + t->colour : NULL;
}

const void *wic_check_item(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s, uint32_t tag,
			   uint32_t first)
{
	struct target t;
	if (find(sp, k, s, first, tag, &t))
		return NULL;
	return sp->wic->o->mode == WIC_IN_PLACE ? check_in_place(s, &t, sync_round(k, tag))
						: check_copy(sp, k, s, &t, sync_round(k, tag));
}

/* Called when all readers have released the round. Selects an armed page for the next round of this half. If all pages of the
 * half are placed, arms them again. A page is placed only if a consumer has stalled in its round. Returns the number of
 * pages that were armed. */
static uint64_t recycle(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s, uint32_t first,
			uint32_t half)
{
	uint32_t turns = k->companions / 2;
	if (!__atomic_load_n(&s->spent[half], __ATOMIC_RELAXED))
		return 0;
	__atomic_store_n(&s->spent[half], 0u, __ATOMIC_RELAXED);
	__atomic_store_n(&s->companion[half], (s->companion[half] + 1) % turns, __ATOMIC_RELAXED);
	if (++s->used[half] < turns)
		return 0;
	s->used[0] = s->used[1] = 0;
	/* Arms the pages of both halves with one call, because each call flushes the TLBs of other cores. */
	uint64_t pages = (uint64_t)k->companions * k->step;
	madvise(sp->pcm + (uint64_t)first * UFFD_PAGE, pages * UFFD_PAGE, MADV_DONTNEED);
	return pages;
}

uint64_t wic_free_slot(struct wic_space *sp, const struct sync_channel *k, struct sync_slot *s, uint32_t tag)
{
	const struct wic *w = sp->wic;
	uint64_t bit = wic_bit(k, tag), pages = 0;
	int locks = w->o->mode == WIC_COPY, failed = 0;
	if (w->needs_messages)
		__atomic_fetch_and(wic_dab(w, sp->head, bit), ~(1ull << bit % 64), __ATOMIC_SEQ_CST);
	if (locks)
		failed = wic_lock(sp->ctl, &s->lock);
	if (!failed)
		pages = recycle(sp, k, s, wic_pages(sp, k, tag), wic_half(k, tag));
	if (sp->head->setting[SYNC_COUNTS])
		__atomic_fetch_add(&sp->head->raised_by_cpus, 1ull, __ATOMIC_RELAXED);
	__atomic_fetch_add(&s->released, 1u, __ATOMIC_SEQ_CST);
	if (locks && !failed)
		wic_unlock(&s->lock);
	eventcount_notify(NULL, &s->released, &s->blocked);
	return pages;
}
