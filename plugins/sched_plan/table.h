/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sched_plan: the initial tasks of each worker, in the order in which the worker runs them. */
#ifndef PLAN_TABLE_H
#define PLAN_TABLE_H

#include <stdint.h>

struct plan_table {
	uint64_t tasks;
	uint32_t workers;
	uint32_t *order; /* [tasks]: indices of tasks: first the tasks of worker 0, then the tasks of worker 1, and so on */
	uint64_t *first; /* [workers + 1]: index in `order` at which a worker's tasks begin; the last entry is `tasks` */
	uint64_t longest; /* the largest sum of the costs of one worker's tasks; 0 if costs are not known */
};

#define PLAN_FINE 256u /* with so many tasks per worker or more, each worker gets a contiguous share */

/* Makes the table. Gives tasks, in the order of falling cost, to the worker with the least work so far (LPT). With this rule
 * the makespan is at most 4/3 of the shortest possible one. If there are PLAN_FINE tasks per worker or more, makes contiguous
 * shares of equal cost instead, because each task is a small part of a share, and neighbouring tasks stay together. If `cost`
 * is NULL or all costs are equal, makes contiguous shares of equal numbers of tasks. Returns 0, or ENOMEM with an empty
 * table. */
int plan_table_make(struct plan_table *t, uint64_t tasks, const uint64_t *cost, uint32_t workers);
void plan_table_free(struct plan_table *t);

#endif
