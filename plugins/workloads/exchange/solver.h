/* SPDX-License-Identifier: Apache-2.0 */
/* Common host half of C_CG and C_FE: the pattern of the grid's matrix, the messages, and the reference. */
#ifndef SOLVER_H
#define SOLVER_H

#include "exchange.h"
#include "solver.dev.h"

struct solver {
	uint64_t edge, n, entries, most, indices;
	uint32_t *row, *column, *index, *out, *in; /* `out`, `in`: from solver_list() */
	double *value, *b, *want;                  /* the application fills `value` and `b` */
	double first_rr, last_rr;                  /* squared residuals of the reference, at its start and end */
	uint64_t *first;                           /* index of each worker's first row */
	struct ex_message *message;
	uint32_t messages, workers;
};

/* Makes the 27-point pattern on an edge^3 grid, whose rows are divided into equal ranges. Makes the messages with the
 * entries that a worker needs from another one. */
int solver_pattern(struct ex *x, struct solver *s, uint64_t edge, uint32_t workers);
/* Returns a list of the messages from each worker (out = 1) or to each worker, in the format of CG_OUT and CG_IN.
 * NULL: out of memory. */
uint32_t *solver_list(struct ex *x, const struct ex_message *m, uint32_t n, uint32_t workers, int out);
/* Declares the channels and arrays of the device code. If `values` is set, the matrix and b come from `s`. Otherwise
 * the workers compute them. */
void solver_arrays(struct ex *x, const struct solver *s, int values);
/* Runs the same iterations with whole vectors on one thread. Adds in the order of the workers. */
int solver_reference(struct ex *x, struct solver *s, uint32_t iterations);
int solver_check(struct ex *x, const struct solver *s, struct ex_head *h, struct loom_error *err);

#endif
