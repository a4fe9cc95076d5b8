/* SPDX-License-Identifier: Apache-2.0 */
/* The device's memory, and its view of everybody's. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "device_cuda.h"

static struct mapping *find(struct device *d, const struct loom_memory *memory)
{
	struct mapping *m = d->mappings;
	while (m && m->memory != memory)
		m = m->next;
	return m;
}

static struct mapping *add(struct device *d, const struct loom_memory *memory, struct loom_error *err)
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

static void drop(struct device *d, struct mapping *m)
{
	struct mapping **at = &d->mappings;
	while (*at != m)
		at = &(*at)->next;
	*at = m->next;
	d->host->free(d->host, m);
}

/* ---- copies: on a stream that does not wait for the persistent kernel ---- */

static int await_copy(struct device *d, CUresult rc, const char *what, struct loom_error *err)
{
	if (rc == CUDA_SUCCESS)
		rc = d->cu.cuStreamSynchronize(d->copy);
	return rc == CUDA_SUCCESS ? 0 : cuda_fail(d, err, rc, what);
}

int memory_write(struct device *d, CUdeviceptr to, const void *from, uint64_t bytes,
		 struct loom_error *err)
{
	return await_copy(d, d->cu.cuMemcpyHtoDAsync(to, from, bytes, d->copy), "cuMemcpyHtoDAsync",
			  err);
}

int memory_read(struct device *d, void *to, CUdeviceptr from, uint64_t bytes, struct loom_error *err)
{
	return await_copy(d, d->cu.cuMemcpyDtoHAsync(to, from, bytes, d->copy), "cuMemcpyDtoHAsync",
			  err);
}

int device_copy_in(void *self, const struct loom_memory *memory, uint64_t offset, const void *from,
		   uint64_t bytes, struct loom_error *err)
{
	struct device *d = self;
	int code = enter(d, err);
	if (code)
		return code;
	code = memory_write(d, (CUdeviceptr)memory->handle + offset, from, bytes, err);
	leave(d);
	return code;
}

int device_copy_out(void *self, const struct loom_memory *memory, uint64_t offset, void *to,
		    uint64_t bytes, struct loom_error *err)
{
	struct device *d = self;
	int code = enter(d, err);
	if (code)
		return code;
	code = memory_read(d, to, (CUdeviceptr)memory->handle + offset, bytes, err);
	leave(d);
	return code;
}

/* ---- own memory ---- */

static int make_shared_with_host(struct device *d, uint64_t bytes, struct mapping *m,
				 struct loom_memory *memory, struct loom_error *err)
{
	void *host = NULL;
	CUresult rc = d->cu.cuMemHostAlloc(&host, bytes,
					   CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
	if (rc == CUDA_SUCCESS) {
		memset(host, 0, bytes);
		rc = d->cu.cuMemHostGetDevicePointer(&m->view, host, 0);
		if (rc != CUDA_SUCCESS)
			d->cu.cuMemFreeHost(host);
	}
	if (rc != CUDA_SUCCESS)
		return cuda_fail(d, err, rc, "cuMemHostAlloc");
	memory->host = host;
	return 0;
}

static int make_on_device(struct device *d, uint64_t bytes, struct mapping *m, struct loom_error *err)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	CUresult rc = d->cu.cuMemAlloc(&m->base, bytes + page); /* aligned to 256 bytes or more */
	if (rc != CUDA_SUCCESS) {
		char what[64];
		snprintf(what, sizeof(what), "cuMemAlloc of %" PRIu64 " KiB", bytes >> 10);
		return cuda_fail(d, err, rc, what);
	}
	m->view = (m->base + page - 1) & ~(CUdeviceptr)(page - 1);
	int code = await_copy(d, d->cu.cuMemsetD8Async(m->view, 0, bytes, d->copy), "cuMemsetD8Async",
			      err);
	if (code)
		d->cu.cuMemFree(m->base);
	return code;
}

int device_mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory,
		     struct loom_error *err)
{
	struct device *d = self;
	int code = enter(d, err);
	if (code)
		return code;
	*memory = (struct loom_memory){.size = sizeof(*memory), .bytes = bytes, .fd = -1, .device = -1};
	struct mapping *m = add(d, memory, err);
	if (!m) {
		leave(d);
		return LOOM_ENOMEM;
	}
	m->own = 1;
	code = flags & LOOM_MEMORY_HOST ? make_shared_with_host(d, bytes, m, memory, err)
					: make_on_device(d, bytes, m, err);
	leave(d);
	if (code)
		drop(d, m);
	else
		memory->handle = (uint64_t)m->view;
	return code;
}

void device_mem_free(void *self, struct loom_memory *memory)
{
	struct device *d = self;
	struct mapping *m = find(d, memory);
	if (!m || enter(d, NULL) != 0)
		return; /* lost: a kernel may still use it */
	if (memory->host)
		d->cu.cuMemFreeHost(memory->host);
	else
		d->cu.cuMemFree(m->base);
	leave(d);
	memory->host = NULL;
	drop(d, m);
}

/* ---- other owners' memory ---- */

/* Another GPU's: addresses are unique over all GPUs of a process, access must be allowed. */
static int map_peer(struct device *d, const struct loom_memory *memory, struct mapping *m,
		    struct loom_error *err)
{
	CUcontext owner = NULL;
	int ordinal = -1, can = 0;
	CUdevice other = 0;
	CUdeviceptr at = (CUdeviceptr)memory->handle;
	CUresult rc = at ? d->cu.cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, at)
			 : CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		rc = d->cu.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, at);
	if (rc == CUDA_SUCCESS)
		rc = d->cu.cuDeviceGet(&other, ordinal);
	if (rc != CUDA_SUCCESS)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: it cannot reach memory of a device that is no NVIDIA GPU: use the "
				 "host transport",
				 d->name);
	m->view = at;
	if (owner == d->context)
		return 0;
	rc = d->cu.cuDeviceCanAccessPeer(&can, d->gpu, other);
	if (rc == CUDA_SUCCESS && !can)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: it cannot reach GPU %d's memory directly (no NVLink, or PCIe "
				 "peer access is off): use the host transport",
				 d->name, ordinal);
	rc = d->cu.cuCtxEnablePeerAccess(owner, 0);
	if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
		return 0;
	return cuda_fail(d, err, rc, "cuCtxEnablePeerAccess");
}

static int map_host(struct device *d, const struct loom_memory *memory, struct mapping *m,
		    struct loom_error *err)
{
	CUresult rc = d->cu.cuMemHostRegister(memory->host, memory->bytes,
					      CU_MEMHOSTREGISTER_PORTABLE |
						      CU_MEMHOSTREGISTER_DEVICEMAP);
	/* Portable: one registration serves all GPUs; a GPU's own host memory needs none. */
	m->registered = rc == CUDA_SUCCESS;
	if (rc == CUDA_SUCCESS || rc == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
		rc = d->cu.cuMemHostGetDevicePointer(&m->view, memory->host, 0);
	if (rc == CUDA_SUCCESS)
		return 0;
	if (m->registered)
		d->cu.cuMemHostUnregister(memory->host);
	char what[160];
	snprintf(what, sizeof(what),
		 "cannot map %" PRIu64 " KiB of host memory (raise the limit of locked memory, ulimit -l)",
		 memory->bytes >> 10);
	return cuda_fail(d, err, rc, what);
}

int device_mem_map(void *self, const struct loom_memory *memory, struct loom_error *err)
{
	struct device *d = self;
	int code = enter(d, err);
	if (code)
		return code;
	struct mapping *m = add(d, memory, err);
	code = !m	      ? LOOM_ENOMEM :
	       memory->host ? map_host(d, memory, m, err) :
				map_peer(d, memory, m, err);
	if (code && m)
		drop(d, m);
	leave(d);
	return code;
}

void device_mem_unmap(void *self, const struct loom_memory *memory)
{
	struct device *d = self;
	struct mapping *m = find(d, memory);
	if (!m || enter(d, NULL) != 0)
		return;
	if (m->registered)
		d->cu.cuMemHostUnregister(memory->host);
	leave(d);
	drop(d, m);
}

int memory_view(struct device *d, const struct loom_segment *segment, CUdeviceptr *view,
		struct loom_error *err)
{
	const struct mapping *m = find(d, segment->memory);
	if (!m)
		return LOOM_FAIL(d->host, err, LOOM_EINTERNAL, "%s: a segment was never mapped here",
				 d->name);
	*view = m->view + segment->offset;
	return 0;
}
