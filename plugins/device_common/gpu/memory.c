/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the device, and mappings of other owners' memory. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "gpu.h"
#include "lib/align.h"

static struct mapping *find(struct gpu *d, const struct loom_memory *memory)
{
	struct mapping *m = d->mappings;
	while (m && m->memory != memory)
		m = m->next;
	return m;
}

static struct mapping *add(struct gpu *d, const struct loom_memory *memory, struct loom_error *err)
{
	struct mapping *m = d->host->alloc(d->host, sizeof(*m));
	if (!m) {
		LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
		return NULL;
	}
	*m = (struct mapping){.next = d->mappings, .memory = memory};
	d->mappings = m;
	return m;
}

static void drop(struct gpu *d, struct mapping *m)
{
	struct mapping **at = &d->mappings;
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	d->host->free(d->host, m);
}

/* ---- copies: beside the persistent kernel ---- */

int gpu_copy_in(void *self, const struct loom_memory *memory, uint64_t offset, const void *from, uint64_t bytes,
		struct loom_error *err)
{
	struct gpu *d = self;
	int code = gpu_enter(d, err);
	if (code)
		return code;
	int rc = d->driver->write(d, memory->handle + offset, from, bytes);
	if (rc != 0)
		code = gpu_fail(d, err, rc, NULL);
	gpu_leave(d);
	return code;
}

int gpu_copy_out(void *self, const struct loom_memory *memory, uint64_t offset, void *to, uint64_t bytes,
		 struct loom_error *err)
{
	struct gpu *d = self;
	int code = gpu_enter(d, err);
	if (code)
		return code;
	int rc = d->driver->read(d, to, memory->handle + offset, bytes);
	if (rc != 0)
		code = gpu_fail(d, err, rc, NULL);
	gpu_leave(d);
	return code;
}

/* ---- own memory ---- */

static int make_shared_with_host(struct gpu *d, uint64_t bytes, struct mapping *m, struct loom_memory *memory,
				 struct loom_error *err)
{
	void *host = NULL;
	int rc = d->driver->host_alloc(d, bytes, &host, &m->view);
	if (rc != 0)
		return gpu_fail(d, err, rc, NULL);
	memory->host = memset(host, 0, bytes);
	return 0;
}

/* Enables access to memory of GPU `number`. */
static int reach_peer(struct gpu *d, uint64_t at, int number, struct loom_error *err)
{
	int can = 0, rc = d->driver->reach(d, at, number, &can);
	if (rc != 0)
		return gpu_fail(d, err, rc, NULL);
	return can ? 0
		   : LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
			       "%s: it cannot access GPU %d's memory directly (no link between them, or PCIe peer "
			       "access is off): use the host transport",
			       d->name, number);
}

static int make_on_device(struct gpu *d, uint64_t bytes, struct mapping *m, struct loom_error *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	int next = d->options->memory == MEMORY_NEXT; /* what alloc() returns is aligned to at least 256 bytes */
	int rc = (next ? d->driver->alloc_next : d->driver->alloc)(d, bytes + page, &m->base);
	if (rc != 0) {
		char what[160];
		snprintf(what, sizeof(what), "%s of %" PRIu64 " KiB", gpu_failed_call(), bytes >> 10);
		return gpu_fail(d, err, rc, what);
	}
	m->view = loom__align(m->base, page);
	int code = next ? reach_peer(d, m->base, d->next, err) : 0;
	rc = code ? 0 : d->driver->clear(d, m->view, bytes);
	if (rc != 0)
		code = gpu_fail(d, err, rc, NULL);
	if (code)
		d->driver->free(d, m->base);
	return code;
}

int gpu_mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory, struct loom_error *err)
{
	struct gpu *d = self;
	int code = gpu_enter(d, err);
	if (code)
		return code;
	*memory = (struct loom_memory){.size = sizeof(*memory), .bytes = bytes, .fd = -1, .device = -1};
	struct mapping *m = add(d, memory, err);
	if (!m) {
		gpu_leave(d);
		return LOOM_ENOMEM;
	}
	m->own = 1;
	code = flags & LOOM_MEMORY_HOST || d->options->memory == MEMORY_HOST ? make_shared_with_host(d, bytes, m, memory, err)
									      : make_on_device(d, bytes, m, err);
	gpu_leave(d);
	if (code)
		drop(d, m);
	else
		memory->handle = m->view;
	return code;
}

void gpu_mem_free(void *self, struct loom_memory *memory)
{
	struct gpu *d = self;
	struct mapping *m = find(d, memory);
	if (!m || gpu_enter(d, NULL) != 0)
		return; /* a kernel that hangs may still access the memory */
	if (memory->host)
		d->driver->host_free(d, memory->host);
	else
		d->driver->free(d, m->base);
	gpu_leave(d);
	memory->host = NULL;
	drop(d, m);
}

/* ---- memory of the program ---- */

static int gpu_adopt(void *self, void *at, uint64_t bytes, struct loom_memory *memory, struct loom_error *err)
{
	struct gpu *d = self;
	uint64_t address = (uint64_t)(uintptr_t)at, begin = 0, size = 0;
	int number = -1, code = gpu_enter(d, err);
	if (code)
		return code;
	int rc = d->driver->range(d, address, &number, &begin, &size);
	struct mapping *m = NULL;
	if (rc != 0)
		code = gpu_fail(d, err, rc, NULL);
	else if (number != d->number)
		code = LOOM_ENOENT;
	else if (address - begin > size || bytes > size - (address - begin))
		code = LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: %" PRIu64 " bytes from %p on are not in one allocation, which has %" PRIu64 " bytes from there on",
				 d->name, bytes, at, begin + size - address);
	else if (!(m = add(d, memory, err)))
		code = LOOM_ENOMEM;
	gpu_leave(d);
	if (code)
		return code;
	*memory = (struct loom_memory){.size = sizeof(*memory), .bytes = bytes, .fd = -1, .handle = address};
	m->view = address;
	return 0;
}

static void gpu_disown(void *self, struct loom_memory *memory)
{
	struct gpu *d = self;
	struct mapping *m = find(d, memory);
	if (m)
		drop(d, m);
}

/* ---- other owners' memory ---- */

/* Maps memory of another GPU. An address is unique over all GPUs of a process, but access must be enabled. */
static int map_peer(struct gpu *d, const struct loom_memory *memory, struct mapping *m, struct loom_error *err)
{
	int number = -1;
	if (!memory->handle || d->driver->owner(d, memory->handle, &number) != 0)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: it cannot access memory of a device that is no %s GPU: use the host transport",
				 d->name, d->driver->vendor);
	m->view = memory->handle;
	return reach_peer(d, m->view, number, err);
}

static int map_host(struct gpu *d, const struct loom_memory *memory, struct mapping *m, struct loom_error *err)
{
	char what[240];
	int rc = d->driver->host_map(d, memory->host, memory->bytes, &m->view, &m->registered);
	if (rc == 0)
		return 0;
	snprintf(what, sizeof(what),
		 "%s: cannot map %" PRIu64 " KiB of host memory (raise the limit of locked memory, ulimit "
		 "-l)",
		 gpu_failed_call(), memory->bytes >> 10);
	return gpu_fail(d, err, rc, what);
}

int gpu_mem_map(void *self, const struct loom_memory *memory, struct loom_error *err)
{
	struct gpu *d = self;
	int code = gpu_enter(d, err);
	if (code)
		return code;
	struct mapping *m = add(d, memory, err);
	code = !m ? LOOM_ENOMEM : memory->host ? map_host(d, memory, m, err) : map_peer(d, memory, m, err);
	if (code && m)
		drop(d, m);
	gpu_leave(d);
	return code;
}

void gpu_mem_unmap(void *self, const struct loom_memory *memory)
{
	struct gpu *d = self;
	struct mapping *m = find(d, memory);
	if (!m || gpu_enter(d, NULL) != 0)
		return;
	if (m->registered)
		d->driver->host_unmap(d, memory->host);
	gpu_leave(d);
	drop(d, m);
}

/* ---- between processes that have GPUs of their own ---- */

/* An exported handle, as bytes that ranks can exchange. Descriptors are not used, because they would need a connection
 * between every two ranks. */
struct key {
	char maker[sizeof(((struct loom_memory_key *)0)->maker)];
	char bus[16];
	unsigned char handle[GPU_HANDLE];
	uint64_t offset;        /* offset of the memory in its allocation */
	/* the process that exports the memory; the memory's address in this process, which the process itself uses without the
	 * handle */
	uint64_t process, view;
};
_Static_assert(sizeof(struct key) <= sizeof(struct loom_memory_key), "it fits");
_Static_assert(sizeof(((struct key *)0)->bus) <= sizeof(((struct gpu *)0)->bus), "a name of a bus");

struct borrowed {
	struct borrowed *next;
	uint64_t base, at;
	int remote; /* 1: the memory is on another GPU */
};

/* Returns a random number for this process, because process numbers are unique only within a container. */
static uint64_t this_process(void)
{
	static uint64_t drawn;
	if (!drawn && getrandom(&drawn, sizeof(drawn), 0) != sizeof(drawn))
		drawn = (uint64_t)(uintptr_t)&drawn;
	return drawn ^ (uint64_t)getpid();
}

static int gpu_mem_key(void *self, const struct loom_memory *memory, struct loom_memory_key *key, struct loom_error *err)
{
	struct gpu *d = self;
	const struct mapping *m = find(d, memory);
	struct key k = {0};
	if (!m || !m->own || memory->host || !*d->bus || d->options->memory)
		return LOOM_FAIL(d->host, err, LOOM_ENOTSUP, "%s: no memory that other processes could open", d->name);
	int code = gpu_enter(d, err);
	if (code)
		return code;
	int rc = d->driver->lend(d, m->base, k.handle);
	if (rc != 0)
		code = gpu_fail(d, err, rc, NULL);
	gpu_leave(d);
	snprintf(k.maker, sizeof(k.maker), "%s", d->driver->name);
	snprintf(k.bus, sizeof(k.bus), "%.15s", d->bus);
	k.offset = m->view - m->base;
	k.process = this_process();
	k.view = m->view;
	memcpy(key, &k, sizeof(k));
	return code;
}

/* Checks that workers of this GPU can access memory of the GPU at `bus`. */
static int check_peer(struct gpu *d, const char *bus, struct loom_error *err)
{
	int number = -1, can = 0;
	struct gpu_atomics atomics = {0};
	if (!strcmp(bus, d->bus))
		return 0;
	if (d->driver->locate(d, bus, &number) != 0)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: it does not see the GPU at %s, which another rank uses: make all GPUs of the "
				 "host visible to each rank",
				 d->name, bus);
	int rc = d->driver->peers(d, d->number, number, &can);
	if (rc != 0)
		return gpu_fail(d, err, rc, NULL);
	if (!can)
		return LOOM_FAIL(
		    d->host, err, LOOM_EUNAVAIL,
		    "%s: it cannot access the memory of GPU %d directly (no link between them, or PCIe peer access is "
		    "off)",
		    d->name, number);
	if (d->driver->peer_atomics)
		d->driver->peer_atomics(d, d->number, number, &atomics);
	if (atomics.known && !atomics.add)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: the link to GPU %d has no atomics, so additions would be lost", d->name, number);
	return 0;
}

/* Opens the memory of a key. Called between enter() and leave(). */
static int borrow(struct gpu *d, const struct key *k, uint64_t *at, struct loom_error *err)
{
	int code = check_peer(d, k->bus, err);
	struct borrowed *b = code ? NULL : d->host->alloc(d->host, sizeof(*b));
	if (!b)
		return code ? code : LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
	int rc = d->driver->borrow(d, k->handle, &b->base);
	if (rc != 0) {
		d->host->free(d->host, b);
		return gpu_fail(d, err, rc, NULL);
	}
	b->at = *at = b->base + k->offset;
	b->remote = strcmp(k->bus, d->bus) != 0;
	b->next = d->borrowed;
	d->borrowed = b;
	return 0;
}

static int gpu_mem_open(void *self, const struct loom_memory_key *key, uint64_t *at, struct loom_error *err)
{
	struct gpu *d = self;
	struct key k;
	memcpy(&k, key, sizeof(k));
	if (strcmp(k.maker, d->driver->name) != 0)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: it cannot access memory of a device '%.15s' of another process: choose GPUs of "
				 "one vendor in all ranks",
				 d->name, k.maker);
	if (k.process == this_process()) {
		*at = k.view;
		return 0;
	}
	int code = gpu_enter(d, err);
	if (code)
		return code;
	code = borrow(d, &k, at, err);
	gpu_leave(d);
	return code;
}

static void gpu_mem_close(void *self, uint64_t at)
{
	struct gpu *d = self;
	struct borrowed **of = &d->borrowed;
	while (*of && (*of)->at != at)
		of = &(*of)->next;
	struct borrowed *b = *of;
	if (!b || gpu_enter(d, NULL) != 0)
		return; /* a kernel that hangs may still access the memory */
	d->driver->give_back(d, b->base);
	gpu_leave(d);
	*of = b->next;
	d->host->free(d->host, b);
}

const struct loom_device_sharing gpu_sharing = {.size = sizeof(gpu_sharing), .mem_key = gpu_mem_key, .mem_open = gpu_mem_open,
						.mem_close = gpu_mem_close, .adopt = gpu_adopt, .disown = gpu_disown};

int memory_is_remote(const struct gpu *d, uint64_t at)
{
	const struct borrowed *b = d->borrowed;
	while (b && b->at != at)
		b = b->next;
	return b && b->remote;
}

int memory_view(struct gpu *d, const struct loom_segment *segment, uint64_t *view, struct loom_error *err)
{
	const struct mapping *m = find(d, segment->memory);
	if (!m)
		return LOOM_FAIL(d->host, err, LOOM_EINTERNAL, "%s: a segment was never mapped here", d->name);
	*view = m->view + segment->offset;
	return 0;
}
