/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps for ALLOC and FREE. An allocation is a run of whole pages of a tenant's memory. Pages are present while they are
 * allocated, and absent otherwise. The heap's state is in host memory that no tenant can write. So a FREE with a wrong offset,
 * or a second FREE, finds no allocation, and fails. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "service.h"

int qos_heap_open(const struct loom_host *host, struct qos_heap *h, uint64_t bytes)
{
	h->pages = bytes / QOS_PAGE;
	h->extent = host->alloc(host, (h->pages + 1) * sizeof(*h->extent));
	h->taken = host->alloc(host, (h->pages / 64 + 1) * sizeof(*h->taken));
	return h->extent && h->taken ? 0 : LOOM_ENOMEM;
}

void qos_heap_close(const struct loom_host *host, struct qos_heap *h)
{
	host->free(host, h->extent);
	host->free(host, h->taken);
	*h = (struct qos_heap){0};
}

void qos_heap_reset(struct qos_heap *h)
{
	if (!h->extent)
		return;
	memset(h->extent, 0, h->pages * sizeof(*h->extent));
	memset(h->taken, 0, (h->pages / 64 + 1) * sizeof(*h->taken));
	h->next = 0;
}

static int is_taken(const struct qos_heap *h, uint64_t page)
{
	return (int)(h->taken[page / 64] >> (page % 64) & 1);
}

static void mark(struct qos_heap *h, uint64_t from, uint64_t n, int taken)
{
	for (uint64_t p = from; p < from + n; p++)
		if (taken)
			h->taken[p / 64] |= 1ull << (p % 64);
		else
			h->taken[p / 64] &= ~(1ull << (p % 64));
}

/* Returns the first page of a run of n free pages that starts in [from, to), or ~0 if there is none. */
static uint64_t find(const struct qos_heap *h, uint64_t from, uint64_t to, uint64_t n)
{
	uint64_t run = 0;
	for (uint64_t p = from; p < h->pages && p - run < to; p++) {
		run = is_taken(h, p) ? 0 : run + 1;
		if (run == n)
			return p + 1 - n;
	}
	return ~0ull;
}

int64_t qos_heap_alloc(struct qos_heap *h, char *base, uint64_t bytes)
{
	uint64_t n = (bytes + QOS_PAGE - 1) / QOS_PAGE;
	if (!n)
		return -EINVAL;
	if (n > h->pages)
		return -ENOMEM;
	uint64_t at = find(h, h->next, h->pages, n);
	if (at == ~0ull)
		at = find(h, 0, h->next, n);
	if (at == ~0ull)
		return -ENOMEM;
	if (base && madvise(base + at * QOS_PAGE, n * QOS_PAGE, MADV_POPULATE_WRITE))
		return -errno;
	mark(h, at, n, 1);
	h->extent[at] = (uint32_t)n;
	h->next = at + n;
	return (int64_t)(at * QOS_PAGE);
}

int64_t qos_heap_free(struct qos_heap *h, char *base, uint64_t offset)
{
	uint64_t at = offset / QOS_PAGE;
	if (offset % QOS_PAGE || at >= h->pages || !h->extent[at])
		return -EINVAL;
	uint64_t n = h->extent[at];
	/* MADV_REMOVE punches a hole into the file of shared memory, which frees the pages. */
	if (base && madvise(base + offset, n * QOS_PAGE, MADV_REMOVE))
		return -errno;
	mark(h, at, n, 0);
	h->extent[at] = 0;
	return (int64_t)(n * QOS_PAGE);
}

int qos_heap_owns(const struct qos_heap *h, uint64_t offset, uint64_t bytes)
{
	for (uint64_t p = offset / QOS_PAGE; p <= (offset + bytes - 1) / QOS_PAGE; p++)
		if (p >= h->pages || !is_taken(h, p))
			return 0;
	return 1;
}
