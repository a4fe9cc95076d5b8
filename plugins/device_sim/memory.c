/* SPDX-License-Identifier: Apache-2.0 */
/* The device's memory is host memory. The simulation records its owner, which decides what an access costs. */
#include "../device_common/hostmem/hostmem.h"
#include "device_sim.h"

static int note(struct device *d, const struct loom_memory *memory, int32_t owner, struct loom_error *err)
{
	if (!memory_add_range(d->member.group, memory->host, memory->bytes, owner))
		return 0;
	return LOOM_FAIL(d->host, err, LOOM_ENOMEM, "%s: out of memory", d->name);
}

int device_mem_alloc(void *self, uint64_t bytes, uint32_t flags, struct loom_memory *memory, struct loom_error *err)
{
	struct device *d = self;
	(void)flags; /* the host can access all memory of this device */
	struct hostmem_want want = {.label = d->name, .bytes = bytes, .node = -1};
	int code = hostmem_make(d->host, &want, memory, err);
	if (code)
		return code;
	code = note(d, memory, d->member.index, err);
	if (code)
		hostmem_free(memory);
	return code;
}

void device_mem_free(void *self, struct loom_memory *memory)
{
	struct device *d = self;
	memory_drop_range(d->member.group, memory->host);
	hostmem_free(memory);
}

int device_mem_map(void *self, const struct loom_memory *memory, struct loom_error *err)
{
	struct device *d = self;
	if (memory->host)
		return note(d, memory, LOOM_SIM_HOST, err); /* memory that a device has registered keeps that device as owner */
	return LOOM_FAIL(d->host, err, LOOM_EUNAVAIL,
			 "%s: it cannot access memory that the host cannot access: use the host transport", d->name);
}

void device_mem_unmap(void *self, const struct loom_memory *memory)
{
	struct device *d = self;
	memory_drop_range(d->member.group, memory->host);
}
