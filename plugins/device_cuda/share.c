/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a GPU that several processes have: made by one, which gives the others a file descriptor. */
#include "driver.h"

#define CALL(c, function, ...) GPU_CALL(&(c)->gpu, &(c)->api, function, __VA_ARGS__)

static CUmemAllocationProp properties(const struct cuda *c)
{
	return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
				     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = c->device}};
}

/* To whole pieces of what the driver gives. */
static int round_up(struct cuda *c, uint64_t *bytes)
{
	const CUmemAllocationProp p = properties(c);
	size_t grain = 0;
	int rc = CALL(c, cuMemGetAllocationGranularity, &grain, &p, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
	if (rc == 0)
		*bytes = (*bytes + grain - 1) / grain * grain;
	return rc;
}

/* At an address of this process's, for this GPU to read and write. */
static int place(struct cuda *c, CUmemGenericAllocationHandle memory, uint64_t bytes, uint64_t *at)
{
	const CUmemAccessDesc access = {.location = properties(c).location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr p = 0;
	int mapped = 0, rc = CALL(c, cuMemAddressReserve, &p, bytes, 0, 0, 0);
	if (rc != 0)
		return rc;
	rc = CALL(c, cuMemMap, p, bytes, 0, memory, 0);
	mapped = rc == 0;
	if (rc == 0)
		rc = CALL(c, cuMemSetAccess, p, bytes, &access, 1);
	if (rc != 0) {
		if (mapped)
			c->api.cuMemUnmap(p, bytes);
		c->api.cuMemAddressFree(p, bytes);
	}
	*at = p;
	return rc;
}

int cuda_share(struct gpu *d, uint64_t *bytes, uint64_t *at, int *fd)
{
	struct cuda *c = (struct cuda *)d;
	const CUmemAllocationProp p = properties(c);
	CUmemGenericAllocationHandle memory;
	int rc = round_up(c, bytes);
	if (rc == 0)
		rc = CALL(c, cuMemCreate, &memory, *bytes, &p, 0);
	if (rc != 0)
		return rc;
	rc = place(c, memory, *bytes, at);
	if (rc == 0) {
		rc = CALL(c, cuMemExportToShareableHandle, fd, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		if (rc != 0)
			cuda_unshare(d, *at, *bytes);
	}
	c->api.cuMemRelease(memory); /* as long as it is mapped somewhere it stays */
	return rc;
}

int cuda_import(struct gpu *d, int fd, uint64_t *bytes, uint64_t *at)
{
	struct cuda *c = (struct cuda *)d;
	CUmemGenericAllocationHandle memory;
	int rc = round_up(c, bytes);
	if (rc == 0)
		rc = CALL(c, cuMemImportFromShareableHandle, &memory, (void *)(uintptr_t)fd,
			  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	if (rc != 0)
		return rc;
	rc = place(c, memory, *bytes, at);
	c->api.cuMemRelease(memory);
	return rc;
}

void cuda_unshare(struct gpu *d, uint64_t at, uint64_t bytes)
{
	struct cuda *c = (struct cuda *)d;
	c->api.cuMemUnmap(at, bytes);
	c->api.cuMemAddressFree(at, bytes);
}
