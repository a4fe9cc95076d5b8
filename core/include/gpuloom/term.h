/* SPDX-License-Identifier: Apache-2.0 */
/* Termination detectors: how workers learn that no task exists and none can come to exist (MGWS thesis, 4.6 and 5.6). */
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
	/* Polled by an idle worker. 1: no task exists or can come to exist. Once it is 1 for one
	 * worker it becomes 1 for all. `stolen_out` counts the tasks that others took from this worker in this sample,
	 * for detectors that vote in rounds (5.6.3). A detector that does not use `stolen_out` may define
	 * LOOM_TERM_COUNTS in its device code; on GPUs it then gets 0, which saves the counting. */
	int (*done)(struct loom_ctx *c, uint64_t stolen_out);
	/* LOOM_TERM_*, for schedulers of the CPU. Absent: 0. */
	uint32_t flags;
	uint32_t reserved;
};
/* With this flag only a worker's idle() can complete the detection, and that worker's next done() gives 1. So the
 * other idle workers may sleep until that worker wakes them. Without the flag every idle worker must go on asking,
 * because the detector makes progress inside done(). */
enum { LOOM_TERM_MAY_SLEEP = 1 };

#ifdef __cplusplus
}
#endif
#endif
