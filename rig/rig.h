/* SPDX-License-Identifier: Apache-2.0 */
/* One simulated stack: what a worker finds in struct loom_ctx, without core and devices. Plug-ins and blocks of the
 * test's own, one part per kind; devices that are only shapes; workers on threads, or played by the caller.
 *
 *   loom__rig_shape, loom__rig_add for each plug-in, loom__rig_need, loom__rig_furnish, loom__rig_begin;
 *   loom__rig_init and loom__rig_run for each sample; loom__rig_close
 *
 * What a plug-in must not do shows: every device sees the blocks at another address, a guard stands behind every
 * block, the host's view cannot be touched while workers run (hidden), pauses come at any instruction (rough). */
#ifndef LOOM_RIG_H
#define LOOM_RIG_H

#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>

enum { LOOM__RIG_WORKERS = 128, LOOM__RIG_DEVICES = 8 };

struct loom__rig;

struct loom__rig_want {
	uint32_t devices, workers, lanes;
	uint32_t first;                   /* workers of device 0; 0: as many as the others */
	uint32_t kind[LOOM__RIG_DEVICES]; /* LOOM_ON_*; 0: a CPU */
	uint32_t noncoherent;                   /* loom_layout.noncoherent */
	const struct loom_barrier_scopes *barrier_scopes; /* loom_layout.barrier_scopes */
	uint64_t seed, initial_tasks;
	uint64_t bytes[LOOM_KINDS];    /* of kinds without a plug-in: a block for the stack of the test's own */
	const void *table[LOOM_KINDS]; /* device functions; NULL: the plug-in's */
	loom_task_fn *const *task;     /* [tasks] */
	uint32_t tasks;
	int one_view;   /* all see the blocks at one address: a thread sanitizer knows no other memory */
	int hidden;     /* not one_view: the host's view cannot be touched while workers run */
	int rough;      /* workers are halted at any instruction */
	uint32_t dirty; /* bits of kinds whose private memory is not cleared before a sample */
	size_t stack;   /* of a worker's thread; 0: as the system makes it */
	char *extra;    /* segment 2, of the test's own: one address for all; NULL: none */
	uint64_t extra_bytes;
	int (*before_need)(void *arg, void *self, const struct loom_layout *layout, struct loom_error *err);
	void *arg;                           /* before_need: NULL, or a call that comes before need() */
	void (*midway)(struct loom__rig *r); /* NULL, or called by the host midway_ns into a run */
	uint64_t midway_ns;
	/* Workers do not leave: must not return. NULL: the sentence is printed, exit 99. */
	void (*stuck)(struct loom__rig *r, const char *sentence);
	void *user; /* the caller's own */
};

/* The blocks of a kind: the plug-in's as it asked, or the test's own. */
struct loom__rig_part {
	const struct loom_plugin *plugin;  /* NULL: none */
	const struct loom_policy_ops *ops; /* of it */
	void *self;
	struct loom_need need;
	struct loom_view view; /* the host's */
	void *device[LOOM__RIG_DEVICES], *worker[LOOM__RIG_WORKERS];
	uint64_t global, on_device[LOOM__RIG_DEVICES], own[LOOM__RIG_WORKERS]; /* offsets */
	loom_ref *registry;
	char *local;
	uint64_t local_room;
	int started;       /* start() was called and stop() is due */
	uint32_t attached; /* devices whose attachment is due to be detached */
};

struct loom__rig {
	struct loom__rig_want want;
	struct loom_device_shape shape[LOOM__RIG_DEVICES];
	struct loom_layout layout;
	struct loom__rig_part part[LOOM_KINDS];
	int file;
	uint64_t at, bytes;                  /* laid out; whole */
	char *host;                          /* the host's view of all blocks */
	char *view[LOOM__RIG_DEVICES];       /* the devices' views */
	char *segment[LOOM__RIG_DEVICES][3]; /* index 0 is unused */
	struct loom_ctl *ctl;                /* host memory: seen by all */
	struct loom_counters *counters;      /* [workers] */
	struct loom_task *initial;
	struct loom_ctx *ctx;        /* [workers * lanes] */
	struct loom_lanes *together; /* [workers] */
	uint32_t samples;
	void *opts;  /* the caller's: of the plug-in ... */
	char *about; /* ... and in words */
};

void loom__rig_shape(struct loom__rig *r, const struct loom__rig_want *want);
/* create(): the plug-in becomes the part of its kind, and is destroyed by close(). Its error. */
int loom__rig_add(struct loom__rig *r, const struct loom_plugin *p, const struct loom_host *host, const void *opts,
		  struct loom_error *err);
/* channels() of a small default where a sync plug-in was not told any, and need() of all parts. */
int loom__rig_need(struct loom__rig *r, struct loom_error *err);
/* Bytes that all parts asked for; ~0: nobody can mean that. */
uint64_t loom__rig_asked(const struct loom__rig *r);
/* The memory. 0 or LOOM_ENOMEM. */
int loom__rig_furnish(struct loom__rig *r);
/* start() and attach() of all parts. The error of *what; "attach()" also means: this machine cannot. */
int loom__rig_begin(struct loom__rig *r, const char **what, struct loom_error *err);
void loom__rig_close(struct loom__rig *r);

/* Before a sample: init() of all parts, control words, counters, contexts. */
int loom__rig_init(struct loom__rig *r, struct loom_error *err);
/* After that, where attached: ready(). */
void loom__rig_ready(struct loom__rig *r);
/* Threads for all workers and lanes execute `body` with their contexts, from one start. After limit_ns
 * the stop word is set. 0; LOOM_ETIMEDOUT when the workers then left; those that stay are told to stuck(). */
int loom__rig_run(struct loom__rig *r, void (*body)(struct loom_ctx *c), uint64_t limit_ns);
/* What the core does when a run is stopped or a device dies, but for the stop word. */
void loom__rig_interrupt(struct loom__rig *r, int code, uint32_t device);
/* Hides the host's view from here on, or shows it again: what run() does by itself. */
void loom__rig_hide(struct loom__rig *r, int hidden);
/* What was written behind a block, in words; NULL: nothing. */
const char *loom__rig_guards(struct loom__rig *r, char *text, size_t room);
/* collect() of all parts. */
int loom__rig_collect(struct loom__rig *r, struct loom_report *report, struct loom_error *err);

/* The block for the stack of `kind`, in the host's view. */
static inline void *loom__rig_block(const struct loom__rig *r, enum loom_kind kind)
{
	return r->part[kind].view.global;
}
/* A place in the host's view as workers name it. */
static inline loom_ref loom__rig_ref(const struct loom__rig *r, const void *at)
{
	return LOOM_REF(1, (uint64_t)((const char *)at - r->host));
}

/* A moment that an adversary chooses, inside device code of tests: mostly none. */
void loom__dawdle(struct loom_ctx *c);

static inline uint64_t loom__rig_now(void)
{
	return loom_clock_ns(NULL);
}

#endif
