/* SPDX-License-Identifier: Apache-2.0 */
/* A test bench for devices: drives them as the core does, with one memory that holds everything. */
#ifndef LOOM_VALIDATE_BENCH_H
#define LOOM_VALIDATE_BENCH_H

#include <gpuloom/dev/probe.h>
#include <gpuloom/device.h>
#include <gpuloom/sched.h>

#include "validate/settings.h"
#include "validate/trial.h"

enum { LOOM__BENCH_DEVICES = 4, LOOM__BENCH_WORKERS = 256, LOOM__BENCH_LANES = 64 };

/* What a worker leaves for the host; lane 0 writes but where said. */
struct loom__bench_row {
	uint64_t runs; /* lanes that ran, over all samples */
	uint64_t random, address;
	uint64_t bad;   /* 1 + the number of the first check that failed; any lane */
	uint64_t wrong; /* meetings of lanes that went wrong; any lane */
	int32_t pid;
	uint32_t entered;
	uint64_t pad[2];
};

struct loom__bench_shared {
	struct loom_ctl ctl;
	struct loom_counters counters[LOOM__BENCH_WORKERS];
	loom_ref registry[LOOM__BENCH_WORKERS];
	struct loom_probe probe;
	char block[LOOM__BENCH_WORKERS][64];
	struct loom__bench_row row[LOOM__BENCH_WORKERS] __attribute__((aligned(64)));
	uint64_t slot[LOOM__BENCH_WORKERS][LOOM__BENCH_LANES];
};

struct loom__bench {
	struct loom__trial *t;
	const struct loom_device_ops *ops;
	uint32_t n;
	struct loom__settings settings[LOOM__BENCH_DEVICES];
	void *self[LOOM__BENCH_DEVICES];
	struct loom_device_shape shape[LOOM__BENCH_DEVICES];
	struct loom_layout layout;
	struct loom_memory memory;
	struct loom_segment segment[2];
	struct loom__bench_shared *shared; /* the host's view */
	loom_ref global[LOOM_KINDS], registry[LOOM_KINDS];
	uint64_t local_bytes[LOOM_KINDS];
	struct loom_sched_dev sched;
	struct loom_device_code code;
	struct loom_plugin policy;
	struct loom_launch launch[LOOM__BENCH_DEVICES];
	struct loom_error err;
	uint32_t mapped; /* devices 1 .. mapped have the memory */
};

/* Opens n devices. `wish` is pairs of option and value, ended by NULL: an option that there is not
 * is left out, *missing (may be NULL) is set. SKIPPED when the machine lacks what it takes. */
int loom__bench_open(struct loom__bench *b, struct loom__trial *t, uint32_t n,
		     const char *const *wish, int *missing);
/* Memory, registry and a program that is `run` (NULL: none, for the probe). */
int loom__bench_furnish(struct loom__bench *b, void (*run)(struct loom_ctx *c));
int loom__bench_launch(struct loom__bench *b, enum loom_entry entry);
int loom__bench_ready(struct loom__bench *b, uint32_t sample);
int loom__bench_go(struct loom__bench *b, uint32_t sample);
/* All of a sample; the code of the first op that failed, b->err says why. */
int loom__bench_sample(struct loom__bench *b, uint32_t sample, uint64_t *end_ns);
int loom__bench_retire(struct loom__bench *b, uint64_t timeout_ns);
void loom__bench_close(struct loom__bench *b);
/* FAILED when `code` is not 0: "launch(): why". */
int loom__bench_must(struct loom__bench *b, const char *what, int code);

static inline struct loom__bench_row *loom__bench_row(struct loom_ctx *c)
{
	return (struct loom__bench_row *)c->global[LOOM_SCHED] + c->worker;
}

#endif
