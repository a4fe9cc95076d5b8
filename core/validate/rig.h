/* SPDX-License-Identifier: Apache-2.0 */
/* A small stack around one policy or workload: devices that are only shapes, blocks in memory that
 * every device sees at another address, workers on threads. What a plug-in must not do shows:
 *  - the host's view of the blocks cannot be touched while workers run, so a raw pointer faults;
 *  - a guard stands behind every block;
 *  - pauses come at any instruction (rough). */
#ifndef LOOM_VALIDATE_RIG_H
#define LOOM_VALIDATE_RIG_H

#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>
#include <pthread.h>

#include "validate/settings.h"
#include "validate/trial.h"

enum { LOOM__RIG_WORKERS = 128, LOOM__RIG_DEVICES = 8 };

struct loom__rig;

struct loom__rig_want {
	uint32_t devices, workers, lanes;
	uint32_t first; /* workers of device 0; 0: as many as the others */
	uint64_t seed, initial_tasks;
	uint64_t bytes[LOOM_KINDS]; /* a block for the stack of the test's own, for other kinds */
	const void *table[LOOM_KINDS]; /* device functions of other kinds */
	loom_task_fn *const *task;     /* [tasks] */
	uint32_t tasks;
	int open; /* 1: the host's view stays usable while workers run */
	int (*before_need)(void *arg, void *self, const struct loom_layout *layout,
			   struct loom_error *err);
	void (*midway)(struct loom__rig *r); /* NULL, or called by the host midway_ns into a run */
	uint64_t midway_ns;
	void *arg; /* before_need: NULL, or a call that comes before need() */
};

/* The blocks of a kind: the plug-in's as it asked, or the test's own. */
struct loom__rig_part {
	struct loom_need need;
	struct loom_view view; /* the host's */
	void *device[LOOM__RIG_DEVICES], *worker[LOOM__RIG_WORKERS];
	uint64_t global, on_device[LOOM__RIG_DEVICES], own[LOOM__RIG_WORKERS]; /* offsets */
	loom_ref *registry;
	char *local;
	uint64_t local_room;
};

struct loom__rig {
	struct loom__trial *t;
	struct loom__rig_want want;
	enum loom_kind kind;
	const struct loom_policy_ops *ops;
	void *self;
	struct loom__settings settings;
	struct loom_device_shape shape[LOOM__RIG_DEVICES];
	struct loom_layout layout;
	struct loom__rig_part part[LOOM_KINDS];
	int started;       /* start() was called and stop() is due */
	uint32_t attached; /* devices whose attachment is due to be detached */
	int file;
	uint64_t at, bytes;                  /* laid out; whole */
	char *host;                          /* the host's view of all blocks */
	char *view[LOOM__RIG_DEVICES];       /* the devices' views */
	char *segment[LOOM__RIG_DEVICES][2]; /* index 0 is unused */
	struct loom_ctl *ctl;                /* host memory: seen by all */
	struct loom_counters *counters;      /* [workers] */
	struct loom_task *initial;
	struct loom_ctx *ctx;        /* [workers * lanes] */
	struct loom_lanes *together; /* [workers] */
	uint32_t samples;
	char why[300]; /* of a refusal; stays after it */
	int too_large; /* it was for want of memory */
};

/* Creates the plug-in and its blocks. `settings` NULL: the trial's own options; else taken over.
 * 0, FAILED or SKIPPED; LOOM__REFUSED when the plug-in refuses options or layout with a proper
 * error, or wants more memory than the suite has: r->why says so. */
enum { LOOM__REFUSED = 100, LOOM__RIG_MEMORY = 1 << 30 };
int loom__rig_open(struct loom__rig *r, struct loom__trial *t, const struct loom__rig_want *want,
		   struct loom__settings *settings);
void loom__rig_close(struct loom__rig *r);

/* Before a sample: init(), control words, counters, contexts. No thread of the plug-in works on the blocks yet.
 * 0 or FAILED. */
int loom__rig_start(struct loom__rig *r);
/* The same, and ready(). */
int loom__rig_init(struct loom__rig *r);
/* Threads for all workers and lanes execute `body` with their contexts, from one start. After
 * limit_ns the stop word is set. 0; LOOM_ETIMEDOUT when the workers then left; a worker that stays
 * is a fault that ends the process. */
int loom__rig_run(struct loom__rig *r, void (*body)(struct loom_ctx *c), uint64_t limit_ns);
/* What the core does for sync plug-ins when a run is stopped or a device dies. */
void loom__rig_interrupt(struct loom__rig *r, int code, uint32_t device);
/* Hides the host's view from here on, or shows it again: what loom__rig_run() does by itself. */
void loom__rig_hide(struct loom__rig *r, int hidden);
/* After a sample: guards, the worker's latched failure, collect(). 0, FAILED, or the failure's
 * code, which the test judges. */
int loom__rig_check(struct loom__rig *r);
/* The guards alone: FAILED when something was written behind a block. */
int loom__rig_guards(struct loom__rig *r);
/* What the test's own block of `kind` is, in the host's view. */
void *loom__rig_block(const struct loom__rig *r, enum loom_kind kind);
/* "2 devices, 5 workers, 4 lanes, depth = 1" for sentences; valid until the next call. */
const char *loom__rig_text(const struct loom__rig *r, char *text, size_t room);

/* A moment that an adversary chooses, inside device code of tests: mostly none. */
void loom__dawdle(struct loom_ctx *c);

#endif
