/* SPDX-License-Identifier: Apache-2.0 */
/* The cores of one instance, in the order of the topology. A core is a CPU as the operating system
 * numbers it. */
#ifndef GPULOOM_CPU_CORES_H
#define GPULOOM_CPU_CORES_H

#include <gpuloom/plugin.h>
#include <sched.h>

#include "lib/machine.h"


enum { CORES_MOST = 8192 }; /* what Linux can be built for */

struct cores_set {
	cpu_set_t part[CORES_MOST / CPU_SETSIZE];
};
static inline int cores_has(const struct cores_set *set, unsigned cpu)
{
	return CPU_ISSET_S(cpu, sizeof(set->part), set->part) != 0;
}
static inline void cores_add(struct cores_set *set, unsigned cpu)
{
	CPU_SET_S(cpu, sizeof(set->part), set->part);
}
static inline uint32_t cores_weight(const struct cores_set *set)
{
	return (uint32_t)CPU_COUNT_S(sizeof(set->part), set->part);
}
/* "0-3,8", with blanks. 0, or -1: it is no such list, or empty. */
int cores_parse(const char *text, struct cores_set *set);
void cores_print(const struct cores_set *set, char *text, size_t size);

struct cores {
	struct cores_set set;
	/* [count]: as the topology has them, but the first hyper-threads of all physical cores before the second ones */
	struct loom_machine_cpu *cpu;
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

/* A core of the set for one worker: of those that have the fewest workers of this process, of other stacks, too, the first
 * from the `from`-th on whose physical core is free; else one that no other process took; else any, and *crowded is 1. Until
 * it is given back. Any thread. */
uint32_t cores_take(const struct cores *cores, uint32_t from, int *crowded);
void cores_give_back(uint32_t cpu);

/* The cores that this process may use. 0 or errno. */
int cores_allowed(struct cores_set *set);

/* All of the set, in the order of the topology: how many. */
uint32_t cores_units(const struct cores_set *set, struct loom_machine_cpu *unit);

#endif
