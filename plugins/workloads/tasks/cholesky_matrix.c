/* SPDX-License-Identifier: Apache-2.0 */
#include "cholesky_matrix.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "lib/random.h"

/* Returns a number in [-0.5, 0.5). */
static double random_at(uint64_t i, uint64_t j)
{
	return (double)(loom__mix64(i << 32 | j) >> 11) * 0x1p-53 - 0.5;
}

/* Returns an element of the lower half. The addend on the diagonal makes the matrix positive definite, because the
 * eigenvalues of the random numbers are within 0.58 sqrt(size). */
static double element(const struct cholesky *m, uint32_t i, uint32_t j)
{
	double a = random_at(i, j) + (i == j ? 2 * sqrt(m->size) : 0);
	return m->wide ? a : (double)(float)a;
}

static void fill_tile(struct cholesky *m, uint32_t ti, uint32_t tj)
{
	void *tile = cholesky_tile(m, ti, tj);
	uint32_t rows = cholesky_rows(m, ti), columns = cholesky_rows(m, tj), ld = m->tile;
	for (uint32_t j = 0; j < columns; j++)
		for (uint32_t i = ti == tj ? j : 0; i < rows; i++) {
			double a = element(m, ti * ld + i, tj * ld + j);
			if (m->wide)
				((double *)tile)[i + (size_t)j * ld] = a;
			else
				((float *)tile)[i + (size_t)j * ld] = (float)a;
		}
}

void cholesky_fill(struct cholesky *m)
{
	uint64_t *pending = (uint64_t *)((char *)m + m->pending_at);
	for (uint32_t i = 0; i < m->tiles; i++)
		for (uint32_t j = 0; j <= i; j++) {
			for (uint32_t k = 0; k <= j; k++)
				*pending++ = cholesky_before(i, j, k);
			fill_tile(m, i, j);
		}
}

/* Products with a random vector x: ax = A x, lx = L^T x, llx = L lx. Those with abs_ are of absolute values, which
 * bound rounding errors. */
struct products {
	double *x, *ax, *lx, *abs_lx, *llx, *abs_llx;
};

/* half = 0: adds a tile's part of A x and L^T x. half = 1: adds its part of L times L^T x. */
static void multiply_tile(const struct cholesky *m, uint32_t ti, uint32_t tj, int half, struct products *p)
{
	const void *tile = cholesky_tile(m, ti, tj);
	uint32_t rows = cholesky_rows(m, ti), columns = cholesky_rows(m, tj);
	for (uint32_t jj = 0; jj < columns; jj++)
		for (uint32_t ii = ti == tj ? jj : 0; ii < rows; ii++) {
			uint32_t i = ti * m->tile + ii, j = tj * m->tile + jj;
			size_t at = ii + (size_t)jj * m->tile;
			double l = m->wide ? ((const double *)tile)[at] : (double)((const float *)tile)[at];
			if (half) {
				p->llx[i] += l * p->lx[j];
				p->abs_llx[i] += fabs(l) * p->abs_lx[j];
				continue;
			}
			double a = element(m, i, j);
			p->ax[i] += a * p->x[j];
			if (i != j)
				p->ax[j] += a * p->x[i];
			p->lx[j] += l * p->x[i];
			p->abs_lx[j] += fabs(l) * p->x[i];
		}
}

double cholesky_residual(const struct cholesky *m, double *room, uint32_t *row)
{
	size_t n = m->size;
	struct products p = {room, room + n, room + 2 * n, room + 3 * n, room + 4 * n, room + 5 * n};
	/* The unit for double is larger, because the sums of this check have rounding errors, too. */
	double worst = 0, unit = m->wide ? DBL_EPSILON * sqrt((double)n) : (double)FLT_EPSILON;
	memset(room, 0, CHOLESKY_ROOM(n));
	for (size_t i = 0; i < n; i++)
		p.x[i] = 1 + random_at(i, n);
	for (int half = 0; half < 2; half++)
		for (uint32_t i = 0; i < m->tiles; i++)
			for (uint32_t j = 0; j <= i; j++)
				multiply_tile(m, i, j, half, &p);
	for (uint32_t i = 0; i < n; i++) {
		double off = fabs(p.ax[i] - p.llx[i]) / (unit * p.abs_llx[i]);
		if (off <= worst)
			continue;
		*row = i;
		worst = off;
		if (off != off)
			break;
	}
	return worst;
}
