/* SPDX-License-Identifier: Apache-2.0 */
/* The part of cholesky_blas.c for one type of numbers. That file includes it once for each type, so it has no guard.
 * WIDE is 1 for double, 0 for float. */
#include "cholesky_real.dev.h"

typedef void CHOLESKY_NAME(gemm)(int order, int ta, int tb, int m, int n, int k, CHOLESKY_REAL alpha,
				 const CHOLESKY_REAL *a, int lda, const CHOLESKY_REAL *b, int ldb, CHOLESKY_REAL beta,
				 CHOLESKY_REAL *c, int ldc);
typedef void CHOLESKY_NAME(syrk)(int order, int half, int trans, int n, int k, CHOLESKY_REAL alpha,
				 const CHOLESKY_REAL *a, int lda, CHOLESKY_REAL beta, CHOLESKY_REAL *c, int ldc);
typedef void CHOLESKY_NAME(trsm)(int order, int side, int half, int trans, int diagonal, int m, int n,
				 CHOLESKY_REAL alpha, const CHOLESKY_REAL *a, int lda, CHOLESKY_REAL *b, int ldb);

static void CHOLESKY_NAME(blas_update)(const struct cholesky_blas *b, struct cholesky_shape s, CHOLESKY_REAL *c,
				       const CHOLESKY_REAL *left, const CHOLESKY_REAL *right)
{
	int ld = (int)s.ld;
	if (left == right)
		((CHOLESKY_NAME(syrk) *)b->syrk[WIDE])(BY_COLUMNS, LOWER, AS_IT_IS, (int)s.rows, (int)s.inner, -1, left,
						       ld, 1, c, ld);
	else
		((CHOLESKY_NAME(gemm) *)b->gemm[WIDE])(BY_COLUMNS, AS_IT_IS, TRANSPOSED, (int)s.rows, (int)s.columns,
						       (int)s.inner, -1, left, ld, right, ld, 1, c, ld);
}

static void CHOLESKY_NAME(blas_solve)(const struct cholesky_blas *b, struct cholesky_shape s, CHOLESKY_REAL *c,
				      const CHOLESKY_REAL *l)
{
	((CHOLESKY_NAME(trsm) *)b->trsm[WIDE])(BY_COLUMNS, RIGHT, LOWER, TRANSPOSED, ANY_DIAGONAL, (int)s.rows,
					       (int)s.columns, 1, l, (int)s.ld, c, (int)s.ld);
}

/* Factors a tile by panels. The library updates the part to the right of each panel. */
static uint32_t CHOLESKY_NAME(blas_factor)(const struct cholesky_blas *b, struct cholesky_shape s, CHOLESKY_REAL *c)
{
	struct loom_ctx alone = {.lanes = 1};
	for (uint32_t at = 0, n; at < s.columns; at += n) {
		n = s.columns - at < PANEL ? s.columns - at : PANEL;
		CHOLESKY_REAL *panel = c + at + (size_t)at * s.ld, *below = panel + n, *rest = below + (size_t)n * s.ld;
		struct cholesky_shape diagonal = {n, n, 0, s.ld}, under = {s.rows - at - n, n, 0, s.ld},
				      right = {under.rows, under.rows, n, s.ld};
		uint32_t wrong = CHOLESKY_NAME(factor)(&alone, diagonal, panel);
		if (wrong)
			return at + wrong;
		if (!under.rows)
			break;
		CHOLESKY_NAME(blas_solve)(b, under, below, panel);
		CHOLESKY_NAME(blas_update)(b, right, rest, below, below);
	}
	return 0;
}
