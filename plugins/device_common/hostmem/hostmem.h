/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that several processes can map, for the CPU device and the transports. Each of these plug-ins compiles
 * hostmem.c into itself, because plug-ins link to no library of gpuloom. */
#ifndef GPULOOM_HOSTMEM_H
#define GPULOOM_HOSTMEM_H

#include <gpuloom/device.h>

struct hostmem_want {
	const char *label; /* name in messages: "cpu:0", "transport_host" */
	uint64_t bytes;
	int node; /* NUMA node of the memory; -1: the kernel decides */
};

/* Makes zeroed, page-aligned memory with all pages present. So workers take no page faults, and a lack of memory is an
 * error of this call. If the kernel does not bind the memory to want->node, a warning is logged. */
int hostmem_make(const struct loom_host *host, const struct hostmem_want *want, struct loom_memory *memory,
		 struct loom_error *err);
void hostmem_free(struct loom_memory *memory);
uint64_t hostmem_page(void);

/* The ops of a device whose workers run on the host. Such a device defines create(), destroy() and shape(), and names
 * its other ops device_OP(). */
#define HOST_DEVICE_OPS                                                                                                \
	.create = create, .destroy = destroy, .shape = shape, .mem_alloc = device_mem_alloc,                           \
	.mem_free = device_mem_free, .mem_map = device_mem_map, .mem_unmap = device_mem_unmap, .build = device_build,  \
	.launch = device_launch, .ready = device_ready, .go = device_go, .wait = device_wait,                          \
	.retire = device_retire, .wake = device_wake

#endif
