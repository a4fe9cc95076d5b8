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
/* Parses a list such as "0-3,8", in which blanks are allowed. Returns 0, or -1 if the text is not a list or the list is
 * empty. */
int cores_parse(const char *text, struct cores_set *set);
void cores_print(const struct cores_set *set, char *text, size_t size);

struct cores {
	struct cores_set set;
	/* [count]: in the order of the topology, but the first hyper-threads of all physical cores come before the
	 * second ones */
	struct loom_machine_cpu *cpu;
	uint32_t count;
	int shared;    /* 1: another device may use some of the cores, too */
	int node;      /* NUMA node of all cores; -1: they are on several nodes */
	char text[64]; /* the set as a list, such as "0-3,8" */
};

struct cores_want {
	const char *label; /* name of the device in messages: "cpu:0" */
	const char *cores; /* a list such as "0-3,8"; "": the instance's share of all allowed cores */
	uint32_t instance, instances;
	int oversubscribe;
};

int cores_find(const struct loom_host *host, const struct cores_want *want, struct cores *cores,
	       struct loom_error *err);
void cores_finish(const struct loom_host *host, struct cores *cores);

/* Takes a core of the set for one worker, among the cores with the fewest workers of this process (in all its stacks).
 * The search begins at index `from`. First it looks for a core on a free physical core, then for a core that no other
 * process has claimed. If there is neither, it takes any core and sets *crowded to 1. Any thread may call it.
 * cores_give_back() returns the core. */
uint32_t cores_take(const struct cores *cores, uint32_t from, int *crowded);
void cores_give_back(uint32_t cpu);

/* Gets the cores that this process may use. Returns 0 or errno. */
int cores_allowed(struct cores_set *set);

/* Writes all cores of the set to `unit`, in the order of the topology. Returns their number. */
uint32_t cores_units(const struct cores_set *set, struct loom_machine_cpu *unit);

#endif
