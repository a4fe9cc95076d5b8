/* SPDX-License-Identifier: Apache-2.0 */
/* workload_cholesky: the matrix, and the check of its factor L. */
#ifndef CHOLESKY_MATRIX_H
#define CHOLESKY_MATRIX_H

#include "workload_cholesky.dev.h"

/* Fills the tiles, and sets the number of tasks for which each step waits. */
void cholesky_fill(struct cholesky *m);

/* Returns the largest error of a row of L L^T x, for a random vector x, and stores the index of that row in *row. The
 * error is |A x - L L^T x|, divided by |L| |L^T| |x| and by a unit. The unit is epsilon, for double multiplied by the
 * square root of the size. A correct factor gives about 0.3, because errors have either sign. A missing step gives at
 * least 100, even with float and 8192 rows. The result is NaN if L contains one. `room` has CHOLESKY_ROOM bytes. */
#define CHOLESKY_RESIDUAL 8.0
#define CHOLESKY_ROOM(size) (6 * (size_t)(size) * sizeof(double))
double cholesky_residual(const struct cholesky *m, double *room, uint32_t *row);

#endif
