/* SPDX-License-Identifier: Apache-2.0 */
/* Termination detectors, which tell workers that no task exists and none can be spawned (MGWS thesis, 4.6 and 5.6). */
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

/* Device half, collective over lanes. The scheduler guarantees: - idle() and busy() alternate, beginning with idle(); a
 * worker that is not idle runs, holds or may spawn tasks; - it calls idle() only when its queues are empty and no thief
 * is still copying from them; - a thief calls busy() before it marks its steal as complete. */
struct loom_term_dev {
	size_t size;
	void (*idle)(struct loom_ctx *c);
	void (*busy)(struct loom_ctx *c);
	/* An idle worker polls this. It returns 1 when no task exists and none can be spawned; after 1 for one worker
	 * it becomes 1 for all. `stolen_out` counts the tasks stolen from this worker in this sample, for detectors
	 * that vote in rounds (5.6.3). A detector without use for it may define LOOM_TERM_COUNTS in its device code; on
	 * GPUs `stolen_out` is then 0, which saves the counting. */
	int (*done)(struct loom_ctx *c, uint64_t stolen_out);
	uint32_t flags; /* LOOM_TERM_*, for schedulers of the CPU; 0 by default. */
	uint32_t reserved;
};
/* Only a worker's idle() can complete the detection, and done() of that worker then returns 1. So the other idle
 * workers may sleep until that worker wakes them. Without this flag every idle worker must poll, because the detector
 * makes progress inside done(). */
enum { LOOM_TERM_MAY_SLEEP = 1 };

#ifdef __cplusplus
}
#endif
#endif
