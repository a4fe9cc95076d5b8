/* SPDX-License-Identifier: Apache-2.0 */
/* One stack without core and devices: struct loom_ctx with all that a worker needs. It has plug-ins or blocks of the
 * test, one part per kind; devices that are only shapes; and workers on threads, or called by the test.
 *
 * Call loom__rig_shape, loom__rig_add for each plug-in, loom__rig_need, loom__rig_furnish and loom__rig_begin; then
 * loom__rig_init and loom__rig_run for each sample; last loom__rig_close.
 *
 * Errors of plug-ins show: each device has the blocks at another address, and a guard follows every block. With
 * `hidden`, the host's view is inaccessible while workers run. With `rough`, workers pause at any instruction. */
#ifndef LOOM_RIG_H
#define LOOM_RIG_H

#include <gpuloom/dev/dev.h>
#include <gpuloom/workload.h>

enum { LOOM__RIG_WORKERS = 128, LOOM__RIG_DEVICES = 8 };

struct loom__rig;

struct loom__rig_want {
	uint32_t devices, workers, lanes;
	uint32_t first;                                   /* workers of device 0; 0: as many as the others */
	uint32_t kind[LOOM__RIG_DEVICES];                 /* LOOM_ON_*; 0: a CPU */
	uint32_t noncoherent;                             /* loom_layout.noncoherent */
	const struct loom_barrier_scopes *barrier_scopes; /* loom_layout.barrier_scopes */
	uint64_t seed, initial_tasks, costs; /* costs: enum loom_costs, without a workload */
	int counts; /* the workload comes first, as in the core: its tasks decide what schedulers need */
	uint64_t bytes[LOOM_KINDS_MAX];    /* size of a block for the stack, of kinds without a plug-in */
	const void *table[LOOM_KINDS_MAX]; /* device functions; NULL: those of the plug-in */
	loom_task_fn *const *task;     /* [tasks] */
	uint32_t tasks;
	int one_view;   /* all devices have the blocks at one address, which a thread sanitizer needs */
	int hidden;     /* the host's view is inaccessible while workers run; not with one_view */
	int rough;      /* workers are interrupted at any instruction */
	uint32_t dirty; /* bits of kinds whose scratchpad memory is not zeroed before a sample */
	size_t stack;   /* stack size of a worker's thread in bytes; 0: the default */
	char *extra;    /* segment 2, memory of the test at one address for all devices; NULL: none */
	uint64_t extra_bytes;
	int (*before_need)(void *arg, void *self, const struct loom_layout *layout, struct loom_error *err);
	void *arg;                           /* before_need: called before need(), if set */
	void (*midway)(struct loom__rig *r); /* called by the host midway_ns after the start of a run, if set */
	uint64_t midway_ns;
	/* The longest time, in ns of a fair share of the machine, that a run has until its workers end, and again until
	 * they leave after the stop flag is set. 0: no bound beside the caller's limit and the usual grace. */
	uint64_t most_ns;
	/* Called when workers do not leave; must not return. NULL: prints the sentence and exits with status 99. */
	void (*stuck)(struct loom__rig *r, const char *sentence);
	void *user; /* for the caller */
};

/* One kind in the rig: its plug-in and its blocks, with the sizes that the plug-in or, without one, the test requested. */
struct loom__rig_part {
	const struct loom_plugin *plugin;  /* NULL: none */
	const struct loom_policy_ops *ops; /* the ops of that plug-in */
	void *self;
	struct loom_need need;
	struct loom_view view; /* the blocks at the host's addresses */
	void *device[LOOM__RIG_DEVICES], *worker[LOOM__RIG_WORKERS];
	uint64_t global, on_device[LOOM__RIG_DEVICES], own[LOOM__RIG_WORKERS]; /* offsets */
	loom_ref *registry;
	char *local;
	uint64_t local_room;
	int started;       /* start() was called, so stop() is due */
	uint32_t attached; /* devices whose attachments are still to be detached */
};

struct loom__rig {
	struct loom__rig_want want;
	struct loom_device_shape shape[LOOM__RIG_DEVICES];
	struct loom_layout layout;
	struct loom__rig_part part[LOOM_KINDS_MAX];
	int file;
	uint64_t at, bytes;                  /* bytes laid out; total */
	char *host;                          /* all blocks, at the host's address */
	char *view[LOOM__RIG_DEVICES];       /* the views of the devices */
	char *segment[LOOM__RIG_DEVICES][3]; /* index 0 is unused */
	struct loom_ctl *ctl;                /* host memory, which all workers access */
	struct loom_counters *counters;      /* [workers] */
	struct loom_task *initial;
	struct loom_ctx *ctx;        /* [workers * lanes] */
	struct loom_lanes *together; /* [workers] */
	uint32_t samples;
	void *opts;  /* for the caller: options of the plug-in */
	char *about; /* for the caller: the options in words */
};

void loom__rig_shape(struct loom__rig *r, const struct loom__rig_want *want);
/* Calls create(). The plug-in becomes the part of its kind; loom__rig_close() destroys it. Returns create()'s error. */
int loom__rig_add(struct loom__rig *r, const struct loom_plugin *p, const struct loom_host *host, const void *opts,
		  struct loom_error *err);
/* Calls need() of all parts, after channels() with a small default for a sync plug-in without channels. */
int loom__rig_need(struct loom__rig *r, struct loom_error *err);
/* Returns the bytes that all parts requested; ~0: an invalid size. */
uint64_t loom__rig_asked(const struct loom__rig *r);
/* Allocates the memory. Returns 0 or LOOM_ENOMEM. */
int loom__rig_furnish(struct loom__rig *r);
/* Calls start() and attach() of all parts. Returns the error of *what; "attach()" may lack support on this machine. */
int loom__rig_begin(struct loom__rig *r, const char **what, struct loom_error *err);
void loom__rig_close(struct loom__rig *r);

/* Before a sample: calls init() of all parts, and sets control words, counters and contexts. */
int loom__rig_init(struct loom__rig *r, struct loom_error *err);
/* After loom__rig_init(): calls ready() of attached parts. */
void loom__rig_ready(struct loom__rig *r);
/* Runs `body` on threads for all workers and lanes, from a common start. Sets the stop flag after limit_ns. Returns 0,
 * or LOOM_ETIMEDOUT if the workers left only then. For workers that stay, stuck() is called. */
int loom__rig_run(struct loom__rig *r, void (*body)(struct loom_ctx *c), uint64_t limit_ns);
/* Acts as the core when a run is stopped or a device dies, without setting the stop flag. */
void loom__rig_interrupt(struct loom__rig *r, int code, uint32_t device);
/* Makes the view of the host inaccessible, or accessible again, as loom__rig_run() does. */
void loom__rig_hide(struct loom__rig *r, int hidden);
/* Returns a text about bytes written after a block, or NULL. */
const char *loom__rig_guards(struct loom__rig *r, char *text, size_t room);
/* Calls collect() of all parts. */
int loom__rig_collect(struct loom__rig *r, struct loom_report *report, struct loom_error *err);

/* Returns the block of the stack of `kind`, at the host's address. */
static inline void *loom__rig_block(const struct loom__rig *r, enum loom_kind kind)
{
	return r->part[kind].view.global;
}
/* Returns the reference of an address in the host's view. */
static inline loom_ref loom__rig_ref(const struct loom__rig *r, const void *at)
{
	return LOOM_REF(1, (uint64_t)((const char *)at - r->host));
}

/* Delays device code of tests, mostly by nothing. */
void loom__dawdle(struct loom_ctx *c);

/* splitmix64: every bit of x affects every bit of the result. */
static inline uint64_t loom__mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

static inline uint64_t loom__rig_now(void)
{
	return loom_clock_ns(NULL);
}

#endif
