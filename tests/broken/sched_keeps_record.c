/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps a pointer to the last record and reads it later. */
#define NAME "sched_keeps_record"
#define PUT(q, task)                                                                               \
	do {                                                                                       \
		(q)->pad[0] = (uint64_t)(uintptr_t)(task);                                         \
		((struct loom_task *)((q) + 1))[(q)->count++] = *(task);                           \
	} while (0)
#define TAKEN(q, task)                                                                              \
	do {                                                                                       \
		if ((q)->pad[0])                                                                   \
			*(task) = *(const struct loom_task *)(uintptr_t)(q)->pad[0];               \
		(q)->pad[0] = 0;                                                                   \
	} while (0)
#include "sched.h"
