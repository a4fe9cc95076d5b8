/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an empty task, which a task function fills in and spawns. Device code. */
#ifndef WORKLOAD_TASK_DEV_H
#define WORKLOAD_TASK_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif

/* Makes an empty task. It is written in whole 8-byte words, and its data descriptor in one store, because schedulers
 * read it in this way. `= {0}` and an assignment to the tag would make stores that straddle those words. A load
 * across two stores stalls. */
LOOM_FN void workload_task(struct loom_task *t, uint32_t tag)
{
	typedef uint64_t __attribute__((__may_alias__)) word;
	word *w = (word *)t;
	w[0] = tag; /* all back ends are little-endian, so affinity and reserved bits are 0 */
	for (uint32_t i = 1; i < 6; i++)
		w[i] = 0;
#ifdef GPULOOM_DEV_CPU_H
	/* The asm keeps the compiler from merging this store with earlier ones. */
	typedef uint64_t __attribute__((vector_size(16), __may_alias__, aligned(8))) pair;
	__asm__ volatile("" ::: "memory");
	*(pair *)&w[6] = (pair){0, 0};
#else
	w[6] = w[7] = 0;
#endif
}

#endif
