/* SPDX-License-Identifier: Apache-2.0 */
/* Drives devices as the core does: open, shape, memory, build, launch, samples, retire. One segment has all data:
 * control words, counters, one block for the stack (`board`) and a registry with one public block per worker. */
#ifndef LOOM_RIG_DRIVE_H
#define LOOM_RIG_DRIVE_H

#include <gpuloom/dev/probe.h>
#include <gpuloom/device.h>
#include <gpuloom/sched.h>
#include <gpuloom/workload.h>

enum { LOOM__DRIVE_DEVICES = 4, LOOM__DRIVE_WORKERS = 4300, LOOM__DRIVE_BOARD = 1 << 18 };

struct loom__drive_shared {
	struct loom_ctl ctl;
	struct loom_counters counters[LOOM__DRIVE_WORKERS];
	loom_ref registry[LOOM__DRIVE_WORKERS];
	struct loom_probe probe;
	char block[LOOM__DRIVE_WORKERS][64] __attribute__((aligned(64))); /* public blocks of the scheduler */
	char board[LOOM__DRIVE_BOARD];                                    /* the scheduler's block for the stack */
};
#define LOOM__DRIVE_REF(member) LOOM_REF(1, offsetof(struct loom__drive_shared, member))

struct loom__drive {
	const struct loom_plugin *plugin;
	const struct loom_device_ops *ops;
	uint32_t n;
	void *self[LOOM__DRIVE_DEVICES], *opts[LOOM__DRIVE_DEVICES]; /* opts: freed by loom__drive_close() */
	struct loom_device_shape shape[LOOM__DRIVE_DEVICES];
	struct loom_layout layout;
	struct loom_memory memory;         /* the memory of device 0 */
	struct loom_segment segment[3];    /* 1: struct loom__drive_shared; 2: for the test */
	struct loom__drive_shared *shared; /* the address for the host */
	loom_ref probe, global[LOOM_KINDS_MAX], registry[LOOM_KINDS_MAX], on_device[LOOM__DRIVE_DEVICES][LOOM_KINDS_MAX];
	uint64_t local_bytes[LOOM_KINDS_MAX];
	struct loom_sched_dev sched;
	struct loom_device_code code;
	struct loom_plugin run;
	/* plug-ins whose device code is built in; the caller may set them (such as LOOM_SYNC), loom__drive_build() sets
	 * [LOOM_SCHED] to `run`; NULL: none */
	const struct loom_plugin *policy[LOOM_KINDS_MAX];
	const struct loom_attachment *attachment;
	struct loom_launch launch[LOOM__DRIVE_DEVICES];
	uint32_t mapped;       /* devices 1 .. mapped map the memory */
	const char *what;      /* the op that failed last */
	struct loom_error err; /* the error of that op */
	void *user;            /* for the caller */
};

/* Opens one more device, of `all` in total. `opts` must be from malloc(); loom__drive_close() frees it. */
int loom__drive_open(struct loom__drive *d, const struct loom_host *host, uint32_t all, void *opts);
/* Allocates one memory on device 0, as the p2p transport does. */
int loom__drive_memory(struct loom__drive *d);
int loom__drive_build(struct loom__drive *d, void (*run)(struct loom_ctx *c));
int loom__drive_launch(struct loom__drive *d, enum loom_entry entry);
int loom__drive_ready(struct loom__drive *d, uint32_t sample);
int loom__drive_go(struct loom__drive *d, uint32_t sample);
int loom__drive_wait(struct loom__drive *d, uint64_t timeout_ns, uint64_t *end_ns);
/* Executes one sample: ready, go, wait. */
int loom__drive_sample(struct loom__drive *d, uint32_t sample, uint64_t *end_ns);
int loom__drive_retire(struct loom__drive *d, uint64_t timeout_ns);
void loom__drive_close(struct loom__drive *d);

#endif
