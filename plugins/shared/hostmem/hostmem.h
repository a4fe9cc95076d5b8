/* SPDX-License-Identifier: Apache-2.0 */
/* Host memory that several processes can map: shared by the CPU device and the transports, which
 * compile hostmem.c into themselves because plug-ins link to nothing of gpuloom. */
#ifndef GPULOOM_HOSTMEM_H
#define GPULOOM_HOSTMEM_H

#include <gpuloom/device.h>

struct hostmem_want {
	const char *who; /* for messages: "cpu:0", "transport_host" */
	uint64_t bytes;
	int node; /* NUMA node to bind to; -1: the kernel decides */
	int huge; /* ask for huge pages */
};

/* Zeroed and page-aligned, every page present, so that no worker takes a page fault for it and a
 * lack of memory shows here. A binding that the kernel refuses is a warning. */
int hostmem_make(const struct loom_host *host, const struct hostmem_want *want,
		 struct loom_memory *memory, struct loom_error *err);
void hostmem_free(struct loom_memory *memory);

uint64_t hostmem_page(void);

#endif
