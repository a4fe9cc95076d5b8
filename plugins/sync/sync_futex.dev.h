/* SPDX-License-Identifier: Apache-2.0 */
/* sync_futex: consumers on a CPU sleep in a futex on the slot's word. gpu_wait.dev.h parks a GPU's workers. If a GPU
 * publishes an item, the host's listener wakes the CPU threads. Device code. */
#ifndef SYNC_FUTEX_DEV_H
#define SYNC_FUTEX_DEV_H

#define SYNC_OP(op) sync_futex_##op

#ifndef LOOM_DEVICE_COMPILE
#include "../sync_common/sleep.h"

enum { SYNC_FUTEX_SPIN = 0 }; /* index in setting[]: number of polls before the sleep */

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want, uint64_t until_ns)
{
	uint32_t spin = sync_local_head(c)->setting[SYNC_FUTEX_SPIN];
	for (uint32_t i = 0; i < spin; i++) {
		sync_counters(c)->polls++;
		/* Acquire: pairs with the same release as the loads in sync_sleep_until(). */
		if (sync_reached(loom_load_acquire_sys(word), want))
			return 0;
		loom_relax();
	}
	return sync_sleep_until(c, word, sleepers, want, until_ns);
}
#endif

#endif
