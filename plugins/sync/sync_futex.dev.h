/* SPDX-License-Identifier: Apache-2.0 */
/* sync_futex: consumers sleep in the kernel on the slot's word. A GPU has no kernel to sleep in: its workers are parked as
 * wave.dev.h has it, and the host's listener wakes whom they would. Device code. */
#ifndef SYNC_FUTEX_DEV_H
#define SYNC_FUTEX_DEV_H

#define SYNC_OP(op) sync_futex_##op

#ifndef LOOM_DEVICE_COMPILE
#include "../shared/sync/park.h"
/* needs SYNC_OP */
#include "../shared/sync/wave.dev.h"

enum { SYNC_FUTEX_SPIN = 0 }; /* setting: looks before it sleeps */

LOOM_FN int sync_await(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers, uint32_t want,
		       uint64_t until_ns)
{
	uint32_t spin = sync_known(c)->setting[SYNC_FUTEX_SPIN];
	for (uint32_t i = 0; i < spin; i++) {
		sync_tally(c)->polls++;
		/* Acquire: as in park_await. */
		if (sync_reached(loom_load_acquire_sys(word), want))
			return 0;
		loom_relax();
	}
	return park_await(c, word, sleepers, want, until_ns);
}

LOOM_FN void sync_wake(struct loom_ctx *c, uint32_t *word, uint32_t *sleepers)
{
	if (!wave_leaves_it(c))
		park_wake_sleepers(word, sleepers);
}
#endif

#endif
