/* SPDX-License-Identifier: Apache-2.0 */
/* Termination detectors: when has all work been done? (MGWS thesis, 4.6 and 5.6) */
#ifndef GPULOOM_TERM_H
#define GPULOOM_TERM_H

#include "plugin.h"
#include "task.h"

#ifdef __cplusplus
extern "C" {
#endif

struct loom_term_ops {
	LOOM_POLICY_OPS
};

/* Device half. Collective over lanes. The scheduler promises:
 *  - idle() and busy() alternate, beginning with idle(); a worker that is not idle runs, holds or
 *    may make tasks;
 *  - it calls idle() only when its queues are empty and no thief is still copying from them;
 *  - a thief calls busy() before it marks its steal as complete. */
struct loom_term_dev {
	size_t size;
	void (*idle)(struct loom_ctx *c);
	void (*busy)(struct loom_ctx *c);
	/* Asked by an idle worker again and again: 1 when no task exists or can come to exist; once
	 * 1 for one worker it becomes 1 for all. `robbed` counts the tasks ever taken from this
	 * worker by others in this sample, for detectors that vote in rounds (5.6.3). Device code of others may
	 * define LOOM_TERM_COUNTS for GPUs: it has no use for `robbed`, and gets 0. */
	int (*done)(struct loom_ctx *c, uint64_t robbed);
	/* LOOM_TERM_*, for schedulers of the CPU. Absent: 0. */
	uint32_t flags;
	uint32_t reserved;
};
/* done() changes its answer only through the idle() of a worker, who gets 1 from its next done(): the
 * others may sleep until that worker wakes them. Without it every idle worker must go on asking, because
 * the detector passes its news on inside done(). */
enum { LOOM_TERM_RESTS = 1 };

#ifdef __cplusplus
}
#endif
#endif
