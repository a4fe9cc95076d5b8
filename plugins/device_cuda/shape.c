/* SPDX-License-Identifier: Apache-2.0 */
/* How many workers. Before there is a program: by a bound on registers that the compiler is then held
 * to. With the program: by what it takes. */
#include <stdio.h>
#include <string.h>

#include "device_cuda.h"

#define LEAST_REGISTERS 32 /* per thread: with fewer nearly everything spills */
#define MOST_REGISTERS 255 /* that a thread can have */
#define LANES_BYTES 16 /* struct loom_lanes in dev/cuda.h */
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int find_limits(struct device *d, struct loom_error *err)
{
	struct limits *l = &d->limits;
	int cooperative = 0;
	const struct {
		CUdevice_attribute attribute;
		int *to;
	} wanted[] = {
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &l->major},
		{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &l->minor},
		{CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &l->multiprocessors},
		{CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, &l->blocks},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &l->threads},
		{CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &l->registers},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &l->shared},
		{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &l->shared_per_block},
		{CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, &l->shared_reserved},
		{CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &l->threads_per_block},
		{CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, &cooperative},
	};
	for (size_t i = 0; i < COUNT(wanted); i++) {
		CUresult rc = d->cu.cuDeviceGetAttribute(wanted[i].to, wanted[i].attribute, d->gpu);
		if (rc != CUDA_SUCCESS)
			return cuda_fail(d, err, rc, "cuDeviceGetAttribute");
	}
	if (l->major < 7 || !cooperative)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: a GPU of compute capability %d.%d%s: 7.0 or later with cooperative "
				 "launches is needed (memory orders, resident workers)",
				 d->name, l->major, l->minor,
				 cooperative ? "" : " without cooperative launches");
	return 0;
}

static void find_node(struct device *d)
{
	char bus[32], path[96];
	d->node = -1;
	if (d->cu.cuDeviceGetPCIBusId(bus, sizeof(bus), d->gpu) != CUDA_SUCCESS)
		return;
	for (char *at = bus; *at; at++)
		*at = *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at; /* as sysfs has it */
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", bus);
	FILE *file = fopen(path, "re");
	if (!file)
		return;
	if (fscanf(file, "%d", &d->node) != 1)
		d->node = -1;
	fclose(file);
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* A block may have what lets `residency` of them fit; statically it has slots for broadcasts. */
static void set_workers(struct device *d, uint32_t residency, uint32_t workers)
{
	const struct limits *l = &d->limits;
	int shared = least(l->shared / (int)residency - l->shared_reserved, l->shared_per_block) -
		     LANES_BYTES;
	d->residency = residency;
	d->workers = workers;
	d->local_bytes = shared > 0 ? (uint32_t)(shared / (int)d->per_block) & ~127u : 0;
}

static int size_up(struct device *d, struct loom_error *err)
{
	const struct options *o = d->options;
	const struct limits *l = &d->limits;
	uint32_t sm = (uint32_t)l->multiprocessors;
	d->lanes = o->lanes;
	d->per_block = o->worker == WORKER_WARP ? o->warps : 1;
	if (d->lanes % 32 || (o->worker == WORKER_WARP && d->lanes != 32))
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: lanes = %u: must be a multiple of 32, and 32 with worker = warp",
				 d->name, d->lanes);
	int threads = (int)(d->lanes * d->per_block);
	int most = least(l->blocks, least(l->threads / threads, l->registers / (threads * LEAST_REGISTERS)));
	int sure = least(most, l->registers / (threads * (o->max_registers ? (int)o->max_registers
									     : MOST_REGISTERS)));
	if (!o->max_registers && sure < 1)
		sure = 1; /* a large block: the compiler has to do with fewer */
	if (threads > l->threads_per_block || sure < 1)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: blocks of %d threads with %u registers each do not fit: lower lanes, "
				 "warps or max_registers in [device.cuda]",
				 d->name, threads, o->max_registers);
	uint32_t room = (uint32_t)most * sm * d->per_block;
	if (o->workers > room || o->workers % d->per_block)
		return LOOM_FAIL(d->host, err, LOOM_EINVAL,
				 "%s: workers = %u: at most %u can be resident (%d blocks of %u on each of "
				 "%u multiprocessors), in multiples of %u",
				 d->name, o->workers, room, most, d->per_block, sm, d->per_block);
	d->bound = o->workers ? (o->workers / d->per_block + sm - 1) / sm : (uint32_t)sure;
	set_workers(d, d->bound, o->workers ? o->workers : d->bound * sm * d->per_block);
	return 0;
}

int shape_again(struct device *d, const struct kernel *k, uint64_t local_bytes, struct loom_error *err)
{
	int each = 0, most = d->limits.shared_per_block - k->shared;
	uint64_t shared = local_bytes * d->per_block;
	if (d->options->workers || shared > (uint64_t)most)
		return 0; /* who asks for too much is told later how much there is */
	CUresult rc = d->cu.cuFuncSetAttribute(k->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
					       most);
	if (rc == CUDA_SUCCESS)
		rc = d->cu.cuFuncSetAttribute(k->function,
					      CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
					      CU_SHAREDMEM_CARVEOUT_MAX_SHARED);
	if (rc == CUDA_SUCCESS)
		rc = d->cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(
			&each, k->function, (int)(d->lanes * d->per_block), shared);
	if (rc != CUDA_SUCCESS)
		return cuda_fail(d, err, rc, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
	if (each < 1)
		return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
				 "%s: the program does not fit on this GPU, with %d registers for each of "
				 "%u threads: lower lanes or warps in [device.cuda]",
				 d->name, k->registers, d->lanes * d->per_block);
	uint32_t residency = (uint32_t)each;
	set_workers(d, residency, residency * (uint32_t)d->limits.multiprocessors * d->per_block);
	return 0;
}

int shape_find(struct device *d, struct loom_error *err)
{
	int code = find_limits(d, err);
	if (!code)
		code = size_up(d, err);
	if (code)
		return code;
	find_node(d);
	if (d->options->arch && *d->options->arch)
		snprintf(d->arch, sizeof(d->arch), "%s", d->options->arch);
	else
		snprintf(d->arch, sizeof(d->arch), "sm_%d%d", d->limits.major, d->limits.minor);
	return 0;
}

int device_shape(void *self, struct loom_device_shape *shape, struct loom_error *err)
{
	const struct device *d = self;
	(void)err;
	shape->workers = d->workers;
	shape->lanes = d->lanes;
	shape->numa_node = d->node;
	shape->local_bytes = d->local_bytes;
	shape->kind = LOOM_ON_GPU;
	return 0;
}
