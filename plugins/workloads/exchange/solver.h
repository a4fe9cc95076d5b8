/* SPDX-License-Identifier: Apache-2.0 */
/* Common host half of C_CG and C_FE: the grid's matrix pattern, messages, reference. */
#ifndef SOLVER_H
#define SOLVER_H

#include "exchange.h"
#include "solver.dev.h"

struct solver {
	uint64_t edge, n, entries, most, indices;
	uint32_t *row, *column, *index, *out, *in; /* out and in: struct cg_part */
	double *value, *b, *want;                  /* the application fills `value` and `b` */
	double first_rr, last_rr;                  /* residuals of the reference */
	uint64_t *first;                           /* first row of each worker */
	struct ex_message *message;
	uint32_t messages, workers;
};

/* Makes the 27-point pattern on an edge^3 grid, distributed in equal ranges of rows, and the messages: which worker
 * needs which entries. */
int solver_pattern(struct ex *x, struct solver *s, uint64_t edge, uint32_t workers);
/* Returns the numbers of the messages from (out) or to each worker, as in struct cg_part. NULL: out of memory. */
uint32_t *solver_list(struct ex *x, const struct ex_message *m, uint32_t n, uint32_t workers, int out);
/* Declares channels and arrays of the device code. With `values`, the matrix and b are those of `s`, else the workers
 * compute them. */
void solver_arrays(struct ex *x, const struct solver *s, int values);
/* Runs the same iterations on one thread and whole vectors, with sums in the workers' order. */
int solver_reference(struct ex *x, struct solver *s, uint32_t iterations);
int solver_check(struct ex *x, const struct solver *s, struct ex_head *h, struct loom_error *err);

#endif
