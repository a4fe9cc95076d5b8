/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant's queue: which of its requests is served next.
 *
 * In the order of arrival; but reads of files that wait together are served by their places, as a lift
 * goes from floor to floor. Requests that are rare find the kernel's tables of the file cold, and
 * neighbours share their cache lines: the more wait, the less each pays for that. A sweep takes from each
 * place what waited when it came there, so that nobody waits for longer than one sweep takes. Whatever
 * is no read is a fence: it waits for the reads before it, and those behind it wait for it. */
#include <sys/mman.h>

#include "service.h"

#define HUGE_PAGE (2ull << 20)

int ssr_queue_open(struct ssr_queue *q, uint64_t calls, uint32_t order)
{
	uint64_t room = 1;
	while (room < calls)
		room *= 2;
	room = room < 2 ? 2 : room; /* what follows is of 64-bit words */
	uint64_t bytes = room * (sizeof(*q->call) + sizeof(*q->number));
	if (order == LOOM_QOS_PLACE)
		bytes += sizeof(*q->sweep) + room * sizeof(*q->sweep->next);
	/* A sweep goes through a long queue at random: the fewer pages, the better. */
	if (bytes > HUGE_PAGE / 4)
		bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return LOOM_ENOMEM;
	if (bytes >= HUGE_PAGE)
		madvise(at, bytes, MADV_HUGEPAGE);
	*q = (struct ssr_queue){.call = (struct ssr_call *)at, .mask = room - 1, .bytes = bytes};
	q->number = (uint32_t *)(q->call + room);
	if (order != LOOM_QOS_PLACE)
		return 0;
	q->sweep = (struct ssr_sweep *)(q->number + room);
	q->sweep->next = (uint32_t *)(q->sweep + 1);
	q->sweep->left = SSR_NOBODY;
	return 0;
}

void ssr_queue_reset(struct ssr_queue *q)
{
	q->head = q->tail = q->gone = 0;
	q->ahead_at = q->ahead_end = 0;
	for (uint64_t i = 0; i <= q->mask; i++)
		q->call[i].busy = 0;
	if (q->sweep)
		*q->sweep = (struct ssr_sweep){.next = q->sweep->next, .left = SSR_NOBODY};
}

void ssr_queue_close(struct ssr_queue *q)
{
	if (q->call)
		munmap(q->call, q->bytes);
	q->call = NULL;
}

uint64_t ssr_queue_waiting(const struct ssr_queue *q)
{
	/* Relaxed: others than the server look, too, who see too much rather than too little. Acquire: pairs with
	 * the bottom half's release; the calls up to there are written. */
	uint64_t gone = __atomic_load_n(&q->gone, __ATOMIC_RELAXED);
	return __atomic_load_n(&q->head, __ATOMIC_ACQUIRE) - gone;
}

uint64_t ssr_queue_oldest_ns(const struct ssr_queue *q)
{
	if (q->sweep || !ssr_queue_waiting(q))
		return 0;
	uint32_t first = q->ahead_at < q->ahead_end ? q->ahead[q->ahead_at] : q->number[q->tail & q->mask];
	return q->call[first].posted_ns;
}

/* ---- the sweep ------------------------------------------------------------------------------------ */

static void join(struct ssr_sweep *w, const struct ssr_call *call, uint32_t number)
{
	uint32_t place = (uint32_t)(call->argument / SSR_PAGE % SSR_PLACES);
	uint64_t *word = &w->full[place / 64], bit = 1ull << place % 64;
	w->next[number] = *word & bit ? w->first[place] : SSR_NOBODY;
	w->first[place] = number;
	*word |= bit;
	w->some |= 1ull << place / 64;
	w->waiting++;
}

/* The next place at which somebody waits, and all who wait there. */
static void go_on(struct ssr_sweep *w)
{
	uint32_t from = (w->at + 1) % SSR_PLACES, word = from / 64;
	uint64_t here = w->full[word] >> from % 64 << from % 64, beyond = w->some & ~1ull << word;
	if (!here) {
		word = (uint32_t)__builtin_ctzll(beyond ? beyond : w->some);
		here = w->full[word];
	}
	w->at = word * 64 + (uint32_t)__builtin_ctzll(here);
	w->left = w->first[w->at];
	w->full[word] &= ~(here & -here);
	if (!w->full[word])
		w->some &= ~(1ull << word);
}

int ssr_is_read(const struct ssr_call *call)
{
	/* A heap: an ALLOC or FREE of the same turn may decide about it. */
	return !call->error && call->service == LOOM_SERVICE_READ && call->grant->is.kind != LOOM_GRANT_HEAP;
}

/* ---- whose turn it is ----------------------------------------------------------------------------- */

static int choose(struct ssr_queue *q, uint64_t head, uint32_t *number)
{
	struct ssr_sweep *w = q->sweep;
	if (w && w->left == SSR_NOBODY && w->waiting)
		go_on(w);
	if (w && w->left != SSR_NOBODY) {
		*number = w->left;
		w->left = w->next[*number];
		w->waiting--;
		return 1;
	}
	if (q->tail == head)
		return 0;
	*number = q->number[q->tail++ & q->mask];
	return 1;
}

/* Several together, so that their cache lines come together. */
static void look_ahead(struct ssr_queue *q)
{
	uint64_t head = __atomic_load_n(&q->head, __ATOMIC_ACQUIRE);
	q->ahead_at = q->ahead_end = 0;
	while (q->ahead_end < SSR_AHEAD) {
		for (; q->sweep && q->tail != head; q->tail++) {
			uint32_t number = q->number[q->tail & q->mask];
			if (!ssr_is_read(&q->call[number]))
				break;
			join(q->sweep, &q->call[number], number);
		}
		if (!choose(q, head, &q->ahead[q->ahead_end]))
			break;
		__builtin_prefetch(&q->call[q->ahead[q->ahead_end++]], 1);
	}
	for (uint32_t i = 0; q->sweep && i < q->ahead_end; i++) {
		const struct ssr_call *call = &q->call[q->ahead[i]];
		__builtin_prefetch(&call->source->answer[call->position & (call->source->slots - 1)], 1);
	}
}

struct ssr_call *ssr_queue_take(struct ssr_queue *q)
{
	if (q->ahead_at == q->ahead_end)
		look_ahead(q);
	if (q->ahead_at == q->ahead_end)
		return NULL;
	__atomic_store_n(&q->gone, q->gone + 1, __ATOMIC_RELAXED);
	return &q->call[q->ahead[q->ahead_at++]];
}
