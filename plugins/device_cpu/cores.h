/* SPDX-License-Identifier: Apache-2.0 */
/* The cores of one instance, in the order of the topology. A core is a CPU as the operating system
 * numbers it. */
#ifndef GPULOOM_CPU_CORES_H
#define GPULOOM_CPU_CORES_H

#include <gpuloom/plugin.h>
#include <hwloc.h>

struct cores {
	hwloc_topology_t topology;
	hwloc_bitmap_t set;
	unsigned *cpu; /* [count]: OS numbers, neighbours in the topology side by side */
	uint32_t count;
	int shared;    /* another device may have some of them too */
	int node;      /* NUMA node that has them all; -1: several */
	char text[64]; /* as in "0-3,8" */
};

struct cores_want {
	const char *who;   /* "cpu:0" */
	const char *cores; /* as in "0-3,8"; "": the instance's share of all allowed cores */
	uint32_t instance, instances;
	int oversubscribe;
};

int cores_find(const struct loom_host *host, const struct cores_want *want, struct cores *cores,
	       struct loom_error *err);
void cores_finish(const struct loom_host *host, struct cores *cores);

/* The machine's topology without what we do not ask for, and the cores that this process may use.
 * 0 or errno. */
int cores_topology(hwloc_topology_t *topology, hwloc_bitmap_t allowed);

#endif
