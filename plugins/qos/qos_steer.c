/* SPDX-License-Identifier: Apache-2.0 */
/* qos_steer: selects the cores that take interrupts and run the path (HISS paper, section V-A). */
#include <stdlib.h>
#include <string.h>

#include "service.h"
#include "lib/cpu_list.h"

enum { TO_ONE = 0, TO_IDLE, AWAY };

struct steer_opts {
	uint32_t to;
	const char *cores;
	uint64_t period;
};

struct steer {
	struct qos base;
	const struct steer_opts *opts;
	uint64_t compared_ns, chosen;
	uint64_t idle_ns[QOS_VECTORS];
};

static const char *const to_choices[] = {"one", "idle", "away", NULL};
static const struct loom_opt rows[] = {
	LOOM_OPT(struct steer_opts, to, LOOM_OPT_ENUM, "one",
			 "Core that takes interrupts. one: the first of `cores`. idle: the core that was idle for "
			 "the longest part of the last period. away: any core but `cores`.", .choices = to_choices),
	LOOM_OPT(struct steer_opts, cores, LOOM_OPT_CPUS, "", "Cores to which `to` refers. Empty: the last core."),
	LOOM_OPT(struct steer_opts, period, LOOM_OPT_TIME, "100ms",
			 "Time between two comparisons of idle cores.", .min = 1e6, .max = 1e12),
	{.name = NULL},
};

QOS_CREATE(steer)

static uint64_t named(const struct steer *p, const struct loom_qos_load *load)
{
	cpu_set_t set;
	uint64_t bits = 0;
	if (!p->opts->cores || !*p->opts->cores)
		return 1ull << (load->vectors - 1);
	loom__cpu_list(p->opts->cores, &set, sizeof(set));
	for (uint32_t v = 0; v < load->vectors; v++)
		if (CPU_ISSET(load->core[v], &set))
			bits |= 1ull << v;
	return bits;
}

/* Chooses the core that was idle longest in the last period. Changes the core only if another core was idle longer than the
 * present one by a tenth of the period. */
static void choose_idle(struct steer *p, const struct loom_qos_load *load)
{
	uint64_t best = 0, here = 0;
	uint32_t at = 0;
	int first = !p->compared_ns;
	if (!first && load->now_ns - p->compared_ns < p->opts->period)
		return;
	for (uint32_t v = 0; v < load->vectors; v++) {
		uint64_t idle = qos_idle_core(load->core[v], NULL), gained = idle - p->idle_ns[v];
		p->idle_ns[v] = idle;
		if (p->chosen >> v & 1)
			here = gained;
		if (gained > best) {
			best = gained;
			at = v;
		}
	}
	p->compared_ns = load->now_ns;
	if (first || !p->chosen)
		p->chosen = 1ull << (load->vectors - 1);
	else if (best > here + p->opts->period / 10)
		p->chosen = 1ull << at;
}

static void steer(void *self, const struct loom_qos_load *load, uint64_t *vectors)
{
	struct steer *p = self;
	uint64_t bits = named(p, load);
	switch (p->opts->to) {
	case TO_ONE:
		*vectors &= bits & -bits;
		break;
	case AWAY:
		*vectors &= ~bits;
		break;
	default:
		choose_idle(p, load);
		*vectors &= p->chosen;
	}
}

static const struct loom_qos_ops ops = {QOS_OPS_COMMON, .steer = steer};

QOS_PLUGIN(qos_steer, "Interrupts go to one core, to an idle core, or away from some", rows,
	   struct steer_opts, ops)
