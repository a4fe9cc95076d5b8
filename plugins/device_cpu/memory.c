/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the device, and mappings of other owners' memory. */
#include "device_cpu.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "../device_common/hostmem/hostmem.h"
#include "lib/align.h"

int device_mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory, struct loom_error *err)
{
	struct device *d = self;
	(void)flags; /* the host can access all memory of this device */
	struct hostmem_want want = {.label = d->name, .bytes = bytes, .node = d->cores.node};
	return hostmem_make(d->host, &want, memory, err);
}

void device_mem_free(void *self, struct loom_memory *memory)
{
	(void)self;
	hostmem_free(memory);
}

/* Only checks that the memory can be mapped. Threads use the host's mapping. A device process maps the memory when it
 * starts (views_remap()). */
int device_mem_map(void *self, const struct loom_memory *memory, struct loom_error *err)
{
	struct device *d = self;
	int process = d->options->isolation == ISOLATION_PROCESS;
	if (memory->host && (!process || memory->fd >= 0))
		return 0;
	return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
			 process ? "%s: with isolation = process it cannot access memory that has no file descriptor "
				   "to map: use isolation = thread, or a transport whose memory has one"
				 : "%s: it cannot access memory that the host cannot access: use the host transport",
			 d->name);
}

void device_mem_unmap(void *self, const struct loom_memory *memory)
{
	(void)self, (void)memory;
}

#define STEP (2u << 20) /* size of a huge page, and a multiple of every base page size */

/* Returns the index of the first segment in the same memory as segment i. */
static uint32_t first_in_memory(const struct loom_launch *what, uint32_t i)
{
	uint32_t first = 1;
	while (what->segment[first].memory != what->segment[i].memory)
		first++;
	return first;
}

/* Maps the segments into a region that has the same size in all devices. Each device shifts its mappings by its index,
 * because children of one parent would otherwise get equal addresses. With different addresses, a raw pointer in shared
 * memory faults instead of working by accident. */
int views_remap(struct launch *l)
{
	const struct loom_launch *what = l->what;
	uint64_t room = (LOOM_MAX_DEVICES + 1) * (uint64_t)STEP;
	for (uint32_t i = 1; i < what->segments; i++)
		if (first_in_memory(what, i) == i)
			room += loom__align(what->segment[i].memory->bytes, STEP);
	char *region = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (region == MAP_FAILED)
		return errno;
	char *at = (char *)loom__align((uint64_t)(uintptr_t)region, STEP) + (uint64_t)what->device * STEP;
	uint64_t page = hostmem_page();
	for (uint32_t i = 1; i < what->segments; i++) {
		const struct loom_segment *s = &what->segment[i];
		uint32_t first = first_in_memory(what, i);
		if (first != i) {
			l->view[i] = l->view[first] - what->segment[first].offset + s->offset;
			continue;
		}
		uint64_t bytes = loom__align(s->memory->bytes, page);
		if (s->memory->host && mprotect(s->memory->host, bytes, PROT_NONE) != 0)
			return errno;
		l->view[i] = NULL;
		if (!LOOM_SEGMENT_REACHES(s, what->device))
			continue;
		/* MAP_POPULATE fills the page tables, so that the first sample has no faults. */
		void *p =
		    mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, s->memory->fd, 0);
		if (p == MAP_FAILED)
			return errno;
		l->view[i] = at + s->offset;
		at += loom__align(bytes, STEP);
	}
	return 0;
}
