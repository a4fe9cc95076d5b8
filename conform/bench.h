/* SPDX-License-Identifier: Apache-2.0 */
/* Drives devices under test as the core does, with a trial that judges. */
#ifndef LOOM_CONFORM_BENCH_H
#define LOOM_CONFORM_BENCH_H

#include "conform/stand.h"
#include "rig/drive.h"

enum { LOOM__BENCH_WORKERS = 256, LOOM__BENCH_LANES = 64 };

/* Results of a worker for the host. Lane 0 writes them unless stated otherwise. */
struct loom__bench_row {
	uint64_t runs; /* lanes that ran, over all samples */
	uint64_t random, address;
	uint64_t bad;   /* 1 + the number of the first failed check, written by any lane */
	uint64_t wrong; /* the number of failed barriers, written by any lane */
	int32_t pid;
	uint32_t entered;
	uint64_t pad[2];
};
/* The contents of loom__drive's board. */
struct loom__bench_board {
	struct loom__bench_row row[LOOM__BENCH_WORKERS];
	uint64_t slot[LOOM__BENCH_WORKERS][LOOM__BENCH_LANES];
};

/* Opens n devices. `set` has pairs of option and value and ends with NULL; options that the plug-in lacks are ignored.
 * Returns SKIPPED if the machine lacks resources. */
int loom__bench_open(struct loom__drive *b, struct loom__trial *t, uint32_t n, const char *const *set);
/* Returns FAILED with "launch() fails: why" when `code` is not 0. */
int loom__bench_must(struct loom__drive *b, const char *what, int code);

static inline struct loom__bench_board *loom__bench_board(struct loom__drive *b)
{
	return (void *)b->shared->board;
}

static inline struct loom__bench_row *loom__bench_row(struct loom_ctx *c)
{
	return (struct loom__bench_row *)c->global[LOOM_SCHED] + c->worker;
}

#endif
