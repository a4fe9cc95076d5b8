/* SPDX-License-Identifier: Apache-2.0 */
/* qos_steer: one core takes all interrupts and runs the path (HISS paper, section V-A). */
#include "service.h"
#include "lib/cpu_list.h"

struct steer_opts {
	const char *cores;
};

struct steer {
	struct qos base;
	const struct steer_opts *opts;
};

static const struct loom_opt rows[] = {
	LOOM_OPT(struct steer_opts, cores, LOOM_OPT_CPUS, "",
			 "Cores of which the first takes all interrupts. Empty: the last core of the process."),
	{.name = NULL},
};

QOS_CREATE(steer)

static void steer(void *self, const struct loom_qos_load *load, uint64_t *vectors)
{
	const struct steer *p = self;
	cpu_set_t set;
	uint32_t v = 0;
	loom__cpu_list(p->opts->cores ? p->opts->cores : "", &set, sizeof(set));
	while (CPU_COUNT(&set) && v < load->vectors && !CPU_ISSET(load->core[v], &set))
		v++;
	if (!CPU_COUNT(&set))
		v = load->vectors - 1;
	*vectors &= v < load->vectors ? 1ull << v : 0;
}

static const struct loom_qos_ops ops = {QOS_OPS_COMMON, .steer = steer};

QOS_PLUGIN(qos_steer, "All interrupts go to one core", rows, struct steer_opts, ops)
