/* SPDX-License-Identifier: Apache-2.0 */
/* A tenant's queue, which decides the request to serve next.
 *
 * Requests are served in the order of arrival. With the option order = scan, pending reads of files are served in the order
 * of their offsets instead (SCAN, the elevator algorithm). The kernel's tables of a file are often not in the cache, and
 * neighbouring offsets share cache lines of these tables. So the more reads wait, the less time each read takes. At each
 * position a scan takes the reads that wait when it reaches the position, so no read waits longer than one scan. Requests
 * other than reads are fences. A fence waits for the reads before it, and the reads after it wait for the fence. */
#include <sys/mman.h>

#include "service.h"

#define HUGE_PAGE (2ull << 20)

int qos_queue_open(struct qos_queue *q, uint64_t calls, uint32_t order)
{
	uint64_t room = 1;
	while (room < calls)
		room *= 2;
	room = room < 2 ? 2 : room; /* an even number, so that the next array is aligned to 64 bits */
	uint64_t bytes = room * (sizeof(*q->call) + sizeof(*q->number));
	if (order == LOOM_QOS_SCAN)
		bytes += sizeof(*q->scan) + room * sizeof(*q->scan->next);
	/* A scan accesses a long queue in random order, so that huge pages save TLB misses. */
	if (bytes > HUGE_PAGE / 4)
		bytes = (bytes + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return LOOM_ENOMEM;
	if (bytes >= HUGE_PAGE)
		madvise(at, bytes, MADV_HUGEPAGE);
	*q = (struct qos_queue){.call = (struct qos_call *)at, .mask = room - 1, .bytes = bytes};
	q->number = (uint32_t *)(q->call + room);
	if (order != LOOM_QOS_SCAN)
		return 0;
	q->scan = (struct qos_scan *)(q->number + room);
	q->scan->next = (uint32_t *)(q->scan + 1);
	q->scan->left = QOS_NONE;
	return 0;
}

void qos_queue_reset(struct qos_queue *q)
{
	q->head = q->tail = q->gone = 0;
	q->ahead_at = q->ahead_end = 0;
	for (uint64_t i = 0; i <= q->mask; i++)
		q->call[i].busy = 0;
	if (q->scan)
		*q->scan = (struct qos_scan){.next = q->scan->next, .left = QOS_NONE};
}

void qos_queue_close(struct qos_queue *q)
{
	if (q->call)
		munmap(q->call, q->bytes);
	q->call = NULL;
}

uint64_t qos_queue_waiting(const struct qos_queue *q)
{
	/* Relaxed: a thread other than the serving one may load an old `gone`, so the result may be too high. Acquire: pairs
	 * with the release in queue_one(), so that the calls up to `head` are written. */
	uint64_t gone = __atomic_load_n(&q->gone, __ATOMIC_RELAXED);
	return __atomic_load_n(&q->head, __ATOMIC_ACQUIRE) - gone;
}

uint64_t qos_queue_oldest_ns(const struct qos_queue *q)
{
	if (q->scan || !qos_queue_waiting(q))
		return 0;
	uint32_t first = q->ahead_at < q->ahead_end ? q->ahead[q->ahead_at] : q->number[q->tail & q->mask];
	return q->call[first].posted_ns;
}

/* ---- the scan ---- */

static void join(struct qos_scan *w, const struct qos_call *call, uint32_t number)
{
	uint32_t place = (uint32_t)(call->argument / QOS_PAGE % QOS_PLACES);
	uint64_t *word = &w->full[place / 64], bit = 1ull << place % 64;
	w->next[number] = *word & bit ? w->first[place] : QOS_NONE;
	w->first[place] = number;
	*word |= bit;
	w->some |= 1ull << place / 64;
	w->waiting++;
}

/* Moves the scan to the next position with pending reads. All reads there become the list `left`. */
static void go_on(struct qos_scan *w)
{
	uint32_t from = (w->at + 1) % QOS_PLACES, word = from / 64;
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

int qos_is_read(const struct qos_call *call)
{
	/* A read into a heap must stay in order, because an ALLOC or FREE before it may change the heap. */
	return !call->error && call->service == LOOM_SERVICE_READ && call->grant->is.kind != LOOM_GRANT_HEAP;
}

/* ---- the next requests ---- */

static int choose(struct qos_queue *q, uint64_t head, uint32_t *number)
{
	struct qos_scan *w = q->scan;
	if (w && w->left == QOS_NONE && w->waiting)
		go_on(w);
	if (w && w->left != QOS_NONE) {
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

/* Chooses several calls together, so that their cache lines are fetched in parallel. */
static void prefetch_calls(struct qos_queue *q)
{
	uint64_t head = __atomic_load_n(&q->head, __ATOMIC_ACQUIRE);
	q->ahead_at = q->ahead_end = 0;
	while (q->ahead_end < QOS_PREFETCH) {
		for (; q->scan && q->tail != head; q->tail++) {
			uint32_t number = q->number[q->tail & q->mask];
			if (!qos_is_read(&q->call[number]))
				break;
			join(q->scan, &q->call[number], number);
		}
		if (!choose(q, head, &q->ahead[q->ahead_end]))
			break;
		__builtin_prefetch(&q->call[q->ahead[q->ahead_end++]], 1);
	}
	for (uint32_t i = 0; q->scan && i < q->ahead_end; i++) {
		const struct qos_call *call = &q->call[q->ahead[i]];
		__builtin_prefetch(&call->ring->answer[call->position & (call->ring->slots - 1)], 1);
	}
}

struct qos_call *qos_queue_take(struct qos_queue *q)
{
	if (q->ahead_at == q->ahead_end)
		prefetch_calls(q);
	if (q->ahead_at == q->ahead_end)
		return NULL;
	__atomic_store_n(&q->gone, q->gone + 1, __ATOMIC_RELAXED);
	return &q->call[q->ahead[q->ahead_at++]];
}
