/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that run Cholesky factorizations with other runtimes share this code. They use the matrix, the steps and
 * the check of workload_cholesky. A program times its factorizations and prints a line of JSON that workload_exec
 * reads.
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

static inline void dag_update(const struct cholesky *m, uint32_t i, uint32_t j, void *c, const void *left,
			      const void *right)
{
	cholesky_blas_update(dag_blas, m->wide, cholesky_shape(m, i, j), c, left, right);
}

/* The runtime implements these functions. dag_run() factors the matrix. It is called any number of times between
 * dag_begin() and dag_end(). */
void dag_begin(uint32_t workers);
void dag_run(struct cholesky *m);
void dag_end(void);

#endif
