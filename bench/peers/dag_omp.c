/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP: one task with `depend` for each step on a tile. */
#include "dag.h"

#include <omp.h>

void dag_begin(uint32_t workers)
{
	omp_set_num_threads((int)workers);
	omp_set_dynamic(0);
}

void dag_end(void)
{
}

void dag_run(struct cholesky *m)
{
#pragma omp parallel
#pragma omp single
	for (uint32_t k = 0; k < m->tiles; k++) {
		double *d = cholesky_tile(m, k, k);
#pragma omp task depend(inout : d[0]) firstprivate(k, d)
		dag_factor(m, k, d);
		for (uint32_t i = k + 1; i < m->tiles; i++) {
			double *c = cholesky_tile(m, i, k);
#pragma omp task depend(in : d[0]) depend(inout : c[0]) firstprivate(i, k, c, d)
			dag_solve(m, i, k, c, d);
		}
		for (uint32_t i = k + 1; i < m->tiles; i++)
			for (uint32_t j = k + 1; j <= i; j++) {
				double *c = cholesky_tile(m, i, j), *a = cholesky_tile(m, i, k),
				       *b = cholesky_tile(m, j, k);
#pragma omp task depend(in : a[0], b[0]) depend(inout : c[0]) firstprivate(i, j, a, b, c)
				dag_update(m, i, j, c, a, b);
			}
	}
}
