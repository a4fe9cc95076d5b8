/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the peak over any 1 s window from more rounds than there are points. */
#include "../plugins/qos/metrics.c"
#include "../plugins/qos/cpu_time.c"
#include "qos_rig.h"

uint64_t qos_files_charge(struct service *s, int all)
{
	(void)s, (void)all;
	return 0;
}

void qos_idle_read(const struct service *s, struct qos_idle *idle)
{
	(void)s;
	*idle = (struct qos_idle){0};
}

/* Simulates `turns` rounds per second, for three seconds. In the second one, `busy` of each 1,000 ns are busy, in the
 * others 100. */
static double dearest(uint64_t turns, uint64_t busy)
{
	static struct service s;
	uint64_t now = 1, step = SECOND / turns;
	memset(&s, 0, sizeof(s));
	for (uint64_t i = 0; i < 3 * turns; i++) {
		uint64_t share = i / turns == 1 ? busy : 100;
		s.stage_ns[QOS_WORKER] += step * share / 1000;
		qos_cpu_point(&s, now += step);
	}
	return (double)s.series.peak_ns / SECOND;
}

TEST(dearest_second)
{
	static const uint64_t turns[] = {1000, 10000, QOS_POINTS, 20000, 100000, 1000000};
	for (size_t i = 0; i < COUNT(turns); i++) {
		double found = dearest(turns[i], 800);
		CU_ASSERT(found > 0.795 && found < 0.805);
	}
}

TEST_MAIN("qos_metrics", 60)
