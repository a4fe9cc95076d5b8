/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP loops. The schedule has the form of OMP_SCHEDULE: "static", "dynamic,4", "guided". */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uneven.h"

void uneven_begin(uint32_t workers, const char *schedule)
{
	const char *comma = strchr(schedule, ',');
	size_t n = comma ? (size_t)(comma - schedule) : strlen(schedule);
	omp_sched_t kind = !strncmp(schedule, "static", n)    ? omp_sched_static
			   : !strncmp(schedule, "dynamic", n) ? omp_sched_dynamic
							      : omp_sched_guided;
	omp_set_num_threads((int)workers);
	omp_set_dynamic(0);
	omp_set_schedule(kind, comma ? atoi(comma + 1) : 0);
}

void uneven_loop(uint64_t n, uneven_body *body, void *job)
{
#pragma omp parallel for schedule(runtime)
	for (uint64_t i = 0; i < n; i++)
		body(job, i, (uint32_t)omp_get_thread_num());
}

int main(int argc, char **argv)
{
	return uneven_main(argc, argv);
}
