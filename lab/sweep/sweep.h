/* SPDX-License-Identifier: Apache-2.0 */
/* Running the cells of a sweep: in which order, how many samples at a time, and what a file already
 * has. How a cell is run is the caller's, so that this can be tested without plug-ins.
 *
 * Cells run in a random order, drawn anew for each round, and a cell's samples are spread over
 * rounds: what drifts with time (temperature, clock rates, a neighbour) then adds to the spread
 * within each cell, where it can be seen, instead of to the difference between cells. A visit costs
 * opening the stack and its warm-ups; so a visit takes as many samples as cost about as much, and
 * more when otherwise the budget would not do. */
#ifndef LOOM_SWEEP_H
#define LOOM_SWEEP_H

#include "stats/stats.h"
#include "sweep/journal.h"

#define LOOM__SWEEP_SCHEMA "gpuloom.sweep/1"

struct loom__sweep_cell {
	char id[33];   /* of the resolved configuration, in hexadecimal */
	cJSON *values; /* {section.key: value}; owned */
	char *skipped; /* why it is left out, or NULL; owned */
	int elsewhere; /* another shard runs it */
	/* The rest is the sweep's. */
	uint32_t have;    /* samples, those of the file included */
	int failed;       /* it could not be run (to the end) */
	int wrong;        /* ... because its result was wrong, now or when it was last tried */
	int noted, ended; /* the file has its `skipped` or `failed`, its `done` */
};

struct loom__sweep_ops {
	/* Gets a cell ready, warm-ups included. Any error but LOOM_EINTR is the cell's alone. */
	int (*open)(void *arg, size_t cell, void **run, struct loom_error *err);
	/* One verified sample: adds seconds, metrics, units and better to `line`. */
	int (*sample)(void *arg, void *run, cJSON *line, struct loom_error *err);
	void (*close)(void *arg, void *run);
	/* A line that the file has from before; may be NULL. */
	void (*before)(void *arg, const cJSON *line);
};

struct loom__sweep {
	struct loom__sweep_cell *cell;
	size_t cells;
	uint32_t samples;         /* wanted of each cell */
	uint64_t seed, budget_ns; /* 0: no budget */
	struct loom__journal *journal;
	const struct loom__sweep_ops *ops;
	void *arg;
	/* After each sample and cell; may be NULL. Returns 1 to stop. */
	int (*progress)(void *arg, const struct loom__sweep *s);
	/* Results, and for progress. */
	size_t wanted, taken; /* samples of this process */
	size_t rounds;	      /* that went over all cells that lacked samples */
	uint64_t began_ns;
	uint32_t at_a_time; /* samples per visit; 0: not decided yet */
	int out_of_budget, wrong, failures, last_error;
};

/* Takes what journal->before has into the cells. LOOM_EINVAL: it has other factors. */
int loom__sweep_resume(struct loom__sweep *s, const cJSON *header, struct loom_error *err);
/* Runs what is left. 0: all that was possible is done, or the budget is used up (out_of_budget);
 * LOOM_EINTR: stopped; other errors: the file could not be written. */
int loom__sweep_run(struct loom__sweep *s, struct loom_error *err);
void loom__sweep_free(struct loom__sweep *s); /* the cells */

/* Nanoseconds until the wanted samples are taken or the budget is used up; 0: not known yet. */
uint64_t loom__sweep_left(const struct loom__sweep *s);

#endif
