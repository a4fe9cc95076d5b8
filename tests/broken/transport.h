/* SPDX-License-Identifier: Apache-2.0 */
/* A sound transport, one piece of host memory, with places for a fault.
 * A fixture defines NAME and one hook, the fault, before it includes this. */
#ifndef LOOM_BROKEN_TRANSPORT_H
#define LOOM_BROKEN_TRANSPORT_H

#ifndef STEP /* from one segment to the next */
#define STEP(bytes) (((bytes) + 4095) & ~4095ull)
#endif
#ifndef SHIFT /* of every segment */
#define SHIFT 0
#endif
#ifndef OWNER /* what it says who owns a segment */
#define OWNER(owner) (owner)
#endif
#ifndef FILL /* memory is made */
#define FILL(at, bytes) (void)t
#endif
#ifndef SHARING /* how the host maps it */
#define SHARING MAP_SHARED
#endif
#ifndef CLOSE /* memory is freed */
#define CLOSE(fd) close(fd)
#endif
#ifndef UNMAP /* memory is unmapped from `mapped` devices */
#define UNMAP(mapped) (void)0
#endif
#ifndef REFUSED /* whether a device refused */
#define REFUSED(code) (code)
#endif

#include <gpuloom/transport.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct opts {
	uint8_t touch;
};
static const struct loom_opt rows[] = {
    LOOM_OPT(struct opts, touch, LOOM_OPT_BOOL, "no",
	     "Whether the host touches all pages first, so that no worker takes a page fault."),
    {0},
};

struct instance {
	const struct loom_host *host;
	const struct opts *opts;
};

static int create(const struct loom_host *host, const void *opts, void **self,
		  struct loom_error *err)
{
	struct instance *t = host->alloc(host, sizeof(*t));
	if (!t)
		return LOOM_FAIL(host, err, LOOM_ENOMEM, NAME ": out of memory");
	t->host = host;
	t->opts = opts;
	*self = t;
	return 0;
}

static void destroy(void *self)
{
	struct instance *t = self;
	if (t)
		t->host->free(t->host, t);
}

/* A file without a name: processes that have its descriptor can map it. */
static int make(struct instance *t, uint64_t bytes, struct loom_memory *m, struct loom_error *err)
{
	int fd = memfd_create(NAME, MFD_CLOEXEC);
	void *at = MAP_FAILED;
	if (fd >= 0 && !ftruncate(fd, (off_t)bytes))
		at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, SHARING, fd, 0);
	if (at == MAP_FAILED) {
		if (fd >= 0)
			close(fd);
		return LOOM_FAIL(t->host, err, LOOM_ENOMEM, NAME ": no %llu bytes of shared memory",
				 (unsigned long long)bytes);
	}
	FILL(at, bytes);
	*m = (struct loom_memory){
	    .size = sizeof(*m), .bytes = bytes, .fd = fd, .device = -1, .host = at};
	return 0;
}

static void unmake(struct loom_memory *m)
{
	munmap(m->host, m->bytes);
	CLOSE(m->fd);
}

static void unmap(const struct loom_devices *devices, const struct loom_memory *m, uint32_t mapped)
{
	UNMAP(mapped);
	while (mapped-- > 0)
		devices->ops[mapped]->mem_unmap(devices->self[mapped], m);
}

static int segments(void *self, const struct loom_devices *devices,
		    const struct loom_segment_want *want, uint32_t n, struct loom_segment *out,
		    struct loom_error *err)
{
	struct instance *t = self;
	uint64_t at = 0;
	if (!n)
		return 0;
	struct loom_memory *m = t->host->alloc(t->host, sizeof(*m));
	if (!m)
		return LOOM_FAIL(t->host, err, LOOM_ENOMEM, NAME ": out of memory");
	for (uint32_t i = 0; i < n; i++) {
		out[i] = (struct loom_segment){.memory = m,
					       .offset = at + SHIFT,
					       .bytes = want[i].bytes,
					       .owner = OWNER(want[i].owner),
					       .flags = want[i].flags};
		at += STEP(want[i].bytes);
	}
	int code = make(t, at + SHIFT, m, err);
	if (code)
		goto err_record;
	uint32_t mapped;
	for (mapped = 0; mapped < devices->count; mapped++) {
		code = devices->ops[mapped]->mem_map(devices->self[mapped], m, err);
		if (REFUSED(code))
			goto err_mapped;
	}
	return 0;
err_mapped:
	unmap(devices, m, mapped);
	unmake(m);
err_record:
	t->host->free(t->host, m);
	return code;
}

static void release(void *self, const struct loom_devices *devices,
		    const struct loom_segment *segment, uint32_t n)
{
	struct instance *t = self;
	if (!n)
		return;
	/* Ours, and const only for those who use the segments. */
	struct loom_memory *m = (struct loom_memory *)segment[0].memory;
	unmap(devices, m, devices->count);
	unmake(m);
	t->host->free(t->host, m);
}

static const struct loom_transport_ops ops = {
    .size = sizeof(ops),
    .create = create,
    .destroy = destroy,
    .segments = segments,
    .release = release,
};

LOOM_PLUGIN_DEFINE(TRANSPORT, NAME, "0.1.0", "Apache-2.0",
		   "one piece of host memory for all devices", .opts = rows,
		   .opts_size = sizeof(struct opts), .ops = &ops)

#endif
