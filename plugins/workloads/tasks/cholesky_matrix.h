/* SPDX-License-Identifier: Apache-2.0 */
/* workload_cholesky: the matrix that is factored, and what is asked of the factor. */
#ifndef CHOLESKY_MATRIX_H
#define CHOLESKY_MATRIX_H

#include "workload_cholesky.dev.h"

/* The tiles, and how many tasks each step waits for; the head says where. */
void cholesky_fill(struct cholesky *m);

/* The largest |A x - L L^T x| of a row for a random x, over |L| |L^T| |x| and the rounding of a number: epsilon, for
 * double of sums of so many. A right answer is about 0.3, as errors have either sign; a step that is left out makes 100 and more
 * even with float and 8192 rows. No number where L holds such. `room`: CHOLESKY_ROOM bytes. */
#define CHOLESKY_RESIDUAL 8.0
#define CHOLESKY_ROOM(size) (6 * (size_t)(size) * sizeof(double))
double cholesky_residual(const struct cholesky *m, double *room, uint32_t *row);

#endif
