/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sched_plan: which worker runs which initial tasks, and in which order. */
#ifndef PLAN_TABLE_H
#define PLAN_TABLE_H

#include <stdint.h>

struct plan_table {
	uint64_t tasks;
	uint32_t workers;
	uint32_t *order; /* [tasks]: the tasks of all workers, worker by worker */
	uint64_t *first; /* [workers + 1]: where those of a worker begin */
	uint64_t longest; /* the largest sum of costs of a worker; 0 where costs are not known */
};

#define PLAN_FINE 256u /* tasks per worker */

/* Tasks by falling cost, each to the worker with the least work so far (LPT): at most 4/3 of the shortest makespan. Where a
 * worker has PLAN_FINE tasks or more, contiguous shares of equal cost: a task is then a small part of a share, and neighbours
 * stay together. Without costs (NULL) contiguous shares of equal numbers. 0 or ENOMEM; the table is then empty. */
int plan_table_make(struct plan_table *t, uint64_t tasks, const uint64_t *cost, uint32_t workers);
void plan_table_free(struct plan_table *t);

#endif
