/* SPDX-License-Identifier: Apache-2.0 */
/* Loses every 97th task that is spawned. */
#define NAME "sched_loses"
#define PUT(q, task)                                                                               \
	if ((task)->param[0] % 97 != 96)                                                           \
	((struct loom_task *)((q) + 1))[(q)->count++] = *(task)
#include "sched.h"
