/* SPDX-License-Identifier: Apache-2.0 */
/* Runs some tasks twice. */
#define NAME "sched_twice"
#define RUN(c, task)                                                                               \
	do {                                                                                       \
		loom_task_run(c, task);                                                            \
		if ((task)->param[1] == 1 && (task)->param[0] % 101 == 5)                          \
			loom_task_run(c, task);                                                    \
	} while (0)
#include "sched.h"
