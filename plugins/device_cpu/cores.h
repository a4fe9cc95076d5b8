/* SPDX-License-Identifier: Apache-2.0 */
/* The cores of an instance, in the order of the topology. A core is a CPU as the operating system numbers it. */
#ifndef GPULOOM_CPU_CORES_H
#define GPULOOM_CPU_CORES_H

#include <gpuloom/plugin.h>
#include <sched.h>

enum { CORES_MOST = 8192 }; /* the maximum of Linux */
#include "lib/machine.h"

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
/* Parses a list as "0-3,8"; blanks are allowed. Returns 0, or -1 if the text is no list, or an empty one. */
int cores_parse(const char *text, struct cores_set *set);
void cores_print(const struct cores_set *set, char *text, size_t size);

struct cores {
	struct cores_set set;
	/* [count]: in the order of the topology; the first hyper-threads of all physical cores come first */
	struct loom_machine_cpu *cpu;
	uint32_t count;
	int shared;    /* 1: another device may use some of the cores, too */
	int node;      /* NUMA node of all cores; -1: several nodes */
	char text[64]; /* as in "0-3,8" */
};

struct cores_want {
	const char *label; /* "cpu:0" */
	const char *cores; /* as in "0-3,8"; "": the instance's share of all allowed cores */
	uint32_t instance, instances;
	int oversubscribe;
};

int cores_find(const struct loom_host *host, const struct cores_want *want, struct cores *cores,
	       struct loom_error *err);
void cores_finish(const struct loom_host *host, struct cores *cores);

/* Takes a core of the set for one worker, among those with the fewest workers of this process (in all stacks). From
 * index `from` on it prefers a core whose physical core is free, then one that no other process has claimed. Else it
 * takes any, and *crowded is 1. Any thread may call it; cores_give_back() returns the core. */
uint32_t cores_take(const struct cores *cores, uint32_t from, int *crowded);
void cores_give_back(uint32_t cpu);

/* Gets the cores that this process may use. Returns 0 or errno. */
int cores_allowed(struct cores_set *set);

/* Writes all cores of the set in the order of the topology. Returns their number. */
uint32_t cores_units(const struct cores_set *set, struct loom_machine_cpu *unit);

#endif
