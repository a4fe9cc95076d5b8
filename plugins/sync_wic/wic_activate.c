/* SPDX-License-Identifier: Apache-2.0 */
/* Activator: puts data on the faulting pages and resumes who is stalled there (WIC, section 5.5); and ends
 * stalls that no data will end.
 *
 * A page that ends a stall without data is poisoned: it is present but worthless. `poison` is set before
 * the page, and whoever finds it set after a load throws the page away again. The producer announces
 * (`full`) before it places; who poisons looks at `full` after it set `poison`: one of the two sees the
 * other. A producer that finds the page occupied tries again until its consumer has thrown it away. */
#include <string.h>
#include <sys/mman.h>

#include "wic.h"

static int place(const struct wic *w, int fd, uint64_t to, const void *from, uint64_t bytes, int wake)
{
	return w->o->mode == WIC_IN_PLACE ? uffd_continue(fd, to, bytes, wake) :
					    uffd_copy(fd, to, from, bytes, wake);
}

/* Pages 1 and up of the item. They are there already when the Monitor and the producer both came. */
static int place_rest(const struct wic *w, int fd, uint64_t to, const char *from, uint64_t bytes,
		      char *bounce)
{
	uint64_t whole = bytes / UFFD_PAGE * UFFD_PAGE, tail = bytes - whole;
	int rc = whole ? place(w, fd, to, from, whole, 0) : 0;
	if ((!rc || rc == -EEXIST) && tail) {
		memcpy(bounce, from + whole, tail);
		rc = place(w, fd, to + whole, bounce, UFFD_PAGE, 0);
	}
	return rc == -EEXIST ? 0 : rc;
}

static int poisoned(const struct wic_space *sp, struct sync_slot *s)
{
	wic_lock(sp->ctl, &s->lock);
	int is = __atomic_load_n(&s->poison, __ATOMIC_RELAXED) != 0;
	wic_unlock(&s->lock);
	return is;
}

int wic_activate(struct wic_space *sp, const struct sync_channel *k, uint32_t tag, const void *from,
		 uint64_t bytes, int padded, char *bounce, int *resumed)
{
	const struct wic *w = sp->wic;
	struct sync_slot *s = sync_slot(sp->head, k, tag);
	uint32_t round = sync_round(k, tag), page = wic_pages(sp, k, tag);
	const struct wic_route *route = wic_route(sp, k->to);
	*resumed = 0;
	if (page == PCM_NONE)
		return LOOM_EFULL;
	if (!route)
		return LOOM_EDIED;
	int fd = route->fd[wic_shard(w, k->to, page)];
	uint64_t to = wic_device(w, sp->head, k->to)->base + (uint64_t)page * UFFD_PAGE;
	if (padded)
		bytes = bytes ? (bytes + UFFD_PAGE - 1) / UFFD_PAGE * UFFD_PAGE : UFFD_PAGE;
	int rc = 0;
	if (bytes > UFFD_PAGE)
		rc = place_rest(w, fd, to + UFFD_PAGE, (const char *)from + UFFD_PAGE, bytes - UFFD_PAGE,
				bounce);
	if (bytes < UFFD_PAGE) {
		memcpy(bounce, from, bytes);
		from = bounce;
	}
	int wake = __atomic_load_n(&s->sleepers, __ATOMIC_RELAXED) != 0;
	for (uint32_t tries = 0; !rc; tries++) {
		rc = place(w, fd, to, from, UFFD_PAGE, wake);
		if (rc != -EEXIST)
			break;
		if (sync_reached(__atomic_load_n(&s->placed, __ATOMIC_ACQUIRE), round + 1))
			return 0; /* the other activator was faster */
		if (__atomic_load_n(&sp->ctl->stop, __ATOMIC_RELAXED))
			return LOOM_EINTR;
		rc = 0;
		wake = 1; /* who throws the poisoned page away goes on to stall without being counted again */
		if (poisoned(sp, s))
			uffd_wake(fd, to, UFFD_PAGE);
		if (tries)
			sched_yield();
	}
	if (rc)
		return rc == -ESRCH ? LOOM_EDIED : LOOM_EIO;
	/* Sequentially consistent, like the consumer's registration in `sleepers` before its load: one of
	 * the two sees the other, so nobody stalls on a page that was placed without a wake. */
	__atomic_store_n(&s->placed, (round + 1) & SYNC_ROUNDS, __ATOMIC_SEQ_CST);
	int late = __atomic_load_n(&s->sleepers, __ATOMIC_SEQ_CST) != 0;
	if (!wake && late)
		uffd_wake(fd, to, UFFD_PAGE);
	*resumed = wake || late;
	return 0;
}

int wic_activate_once(struct wic_space *sp, const struct sync_channel *k, uint32_t tag, const void *from,
		      uint64_t bytes, int *resumed)
{
	struct sync_slot *s = sync_slot(sp->head, k, tag);
	uint32_t round = sync_round(k, tag);
	int rc = 0;
	*resumed = 0;
	wic_lock(sp->ctl, &s->serve);
	if (!sync_reached(__atomic_load_n(&s->placed, __ATOMIC_ACQUIRE), round + 1) &&
	    sync_reached(__atomic_load_n(&s->released, __ATOMIC_ACQUIRE), round))
		rc = wic_activate(sp, k, tag, from, bytes, 1, NULL, resumed);
	wic_unlock(&s->serve);
	return rc;
}

void wic_poison(struct wic_space *sp, const struct sync_channel *k, uint32_t tag, uint32_t page)
{
	const struct wic *w = sp->wic;
	struct sync_slot *s = sync_slot(sp->head, k, tag);
	int fd = sp->uffd[wic_shard(w, sp->device, page)];
	uint64_t to = (uintptr_t)sp->pcm + (uint64_t)page * UFFD_PAGE;
	wic_lock(sp->ctl, &s->lock);
	int was = __atomic_load_n(&s->poison, __ATOMIC_RELAXED) != 0;
	if (was) {
		uffd_wake(fd, to, UFFD_PAGE);
		wic_unlock(&s->lock);
		return;
	}
	/* Sequentially consistent, like the producer's `full` before it places. */
	__atomic_store_n(&s->poison, 1u, __ATOMIC_SEQ_CST);
	uint32_t full = __atomic_load_n(&s->full, __ATOMIC_SEQ_CST);
	int coming = sync_reached(full, sync_round(k, tag) + 1);
	/* A producer that died may have announced what it never placed. */
	if (coming && !(full & SYNC_POISON)) {
		__atomic_store_n(&s->poison, 0u, __ATOMIC_SEQ_CST);
	} else {
		int rc = w->o->mode == WIC_IN_PLACE ? uffd_continue(fd, to, UFFD_PAGE, 1) :
						      uffd_zero(fd, to, UFFD_PAGE);
		if (rc == -EEXIST) { /* the data came first */
			__atomic_store_n(&s->poison, 0u, __ATOMIC_SEQ_CST);
			uffd_wake(fd, to, UFFD_PAGE);
		}
	}
	wic_unlock(&s->lock);
}

void wic_arm_again(struct wic_space *sp, const struct sync_channel *k, uint32_t tag, uint32_t page)
{
	struct sync_slot *s = sync_slot(sp->head, k, tag);
	wic_lock(sp->ctl, &s->lock);
	/* A slot that interrupt() has poisoned stays so until the sample ends: another reader of the page may
	 * not have looked at it yet, and would stall again with nobody left to end it. Both looks are under
	 * the lock that wic_poison holds, and `full` is poisoned before the Monitor comes. */
	if (__atomic_load_n(&s->poison, __ATOMIC_RELAXED) &&
	    !(__atomic_load_n(&s->full, __ATOMIC_SEQ_CST) & SYNC_POISON)) {
		madvise(sp->pcm + (uint64_t)page * UFFD_PAGE, UFFD_PAGE, MADV_DONTNEED);
		__atomic_store_n(&s->poison, 0u, __ATOMIC_SEQ_CST);
	}
	wic_unlock(&s->lock);
}
