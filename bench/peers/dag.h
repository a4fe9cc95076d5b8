/* SPDX-License-Identifier: Apache-2.0 */
/* What the Cholesky factorizations by other runtimes share: the matrix, the steps and the check of workload_cholesky, timed
 * inside and printed as a line of JSON that workload_exec reads.
 *   PROGRAM [-w WORKERS] [-n SIZE] [-t TILE] */
#ifndef DAG_H
#define DAG_H

#include "../../plugins/workloads/tasks/cholesky_matrix.h"

extern const struct cholesky_blas *dag_blas;

static inline void dag_factor(const struct cholesky *m, uint32_t j, void *c)
{
	cholesky_blas_factor(dag_blas, m->wide, cholesky_shape(m, j, j), c);
}

static inline void dag_solve(const struct cholesky *m, uint32_t i, uint32_t j, void *c, const void *l)
{
	cholesky_blas_solve(dag_blas, m->wide, cholesky_shape(m, i, j), c, l);
}

static inline void dag_update(const struct cholesky *m, uint32_t i, uint32_t j, void *c, const void *left, const void *right)
{
	cholesky_blas_update(dag_blas, m->wide, cholesky_shape(m, i, j), c, left, right);
}

/* The runtime's own part. run() factors the matrix; between begin() and end() any number of times. */
void dag_begin(uint32_t workers);
void dag_run(struct cholesky *m);
void dag_end(void);

#endif
