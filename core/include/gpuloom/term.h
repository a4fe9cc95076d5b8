/* SPDX-License-Identifier: Apache-2.0 */
/* Termination detectors. They tell workers that no task exists and none can be spawned (MGWS thesis, 4.6 and 5.6). */
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

/* Device half. All ops are collective over the lanes of a worker. The scheduler guarantees three rules. A worker calls
 * idle() and busy() in turns, beginning with idle(); a worker that is not idle runs, holds or may spawn tasks. A worker
 * calls idle() only when its queues are empty and no thief is still copying from them. A thief calls busy() before it
 * marks its steal as complete. */
struct loom_term_dev {
	size_t size;
	void (*idle)(struct loom_ctx *c); /* The worker has no task. */
	void (*busy)(struct loom_ctx *c); /* The worker has a task again, or is about to take one. */
	/* An idle worker polls this. It returns 1 if no task exists and none can be spawned. What tasks wrote is then
	 * visible to the worker. After it has returned 1 to one worker, it will return 1 to all. `stolen_out` is the
	 * number of tasks that were stolen from this worker in this sample, or taken from a queue that workers share,
	 * for detectors that vote in rounds (5.6.3). A detector that does not use it may define LOOM_TERM_COUNTS in its
	 * device code. On GPUs, `stolen_out` is 0 for such a detector, which saves the counting. */
	int (*done)(struct loom_ctx *c, uint64_t stolen_out);
	uint32_t flags; /* LOOM_TERM_*, for schedulers on CPUs; 0 by default */
	uint32_t reserved;
};
/* Only a call of idle() can complete the detection, and done() then returns 1 to the worker that made this call. So
 * other idle workers may sleep until that worker wakes them. Without this flag, every idle worker must poll, because
 * the detector makes progress inside done(). */
enum { LOOM_TERM_MAY_SLEEP = 1 };

#ifdef __cplusplus
}
#endif
#endif
