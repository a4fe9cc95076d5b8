/* SPDX-License-Identifier: Apache-2.0 */
/* workload_cholesky: the arithmetic on tiles for one type of numbers. Device code. The file is included once for each
 * type, with CHOLESKY_REAL and CHOLESKY_NAME() defined. A program for GPUs has one type.
 *
 * A tile is stored by columns with leading dimension `ld`. Each lane works on every lanes-th row. */
#ifdef LOOM_DEVICE_COMPILE
#ifndef CHOLESKY_REAL
#define CHOLESKY_REAL double
#endif
#define CHOLESKY_NAME(name) cholesky_##name
#endif

/* Computes eight rows of a column: c -= a b^T, over `inner` columns of a and of b. Adjacent rows are `lanes` elements
 * apart. */
LOOM_FN void CHOLESKY_NAME(strip)(CHOLESKY_REAL *c, const CHOLESKY_REAL *a, const CHOLESKY_REAL *b, uint32_t ld,
				  uint32_t inner, uint32_t lanes)
{
	CHOLESKY_REAL sum[8] = {0, 0, 0, 0, 0, 0, 0, 0};
	LOOM_NO_UNROLL
	for (uint32_t k = 0; k < inner; k++) {
		CHOLESKY_REAL y = b[(size_t)k * ld];
		for (uint32_t r = 0; r < 8; r++)
			sum[r] += a[(size_t)k * ld + r * lanes] * y;
	}
	for (uint32_t r = 0; r < 8; r++)
		c[r * lanes] -= sum[r];
}

/* Computes this lane's rows, from row `from` to row `rows` (exclusive) of a column: c -= a b^T. */
LOOM_FN void CHOLESKY_NAME(column)(CHOLESKY_REAL *c, const CHOLESKY_REAL *a, const CHOLESKY_REAL *b, uint32_t ld,
				   uint32_t inner, uint32_t from, uint32_t rows, uint32_t lane, uint32_t lanes)
{
	uint32_t i = from + lane;
	LOOM_NO_UNROLL
	for (; i + 7 * lanes < rows; i += 8 * lanes)
		if (lanes == 1) /* the compiler then knows that rows are contiguous */
			CHOLESKY_NAME(strip)(c + i, a + i, b, ld, inner, 1);
		else
			CHOLESKY_NAME(strip)(c + i, a + i, b, ld, inner, lanes);
	LOOM_NO_UNROLL
	for (; i < rows; i += lanes) {
		CHOLESKY_REAL sum = 0;
		for (uint32_t k = 0; k < inner; k++)
			sum += a[i + (size_t)k * ld] * b[(size_t)k * ld];
		c[i] -= sum;
	}
}

/* Computes c -= a b^T. On the diagonal, where a is b, computes only the lower half of c. */
LOOM_FN void CHOLESKY_NAME(update)(struct loom_ctx *ctx, struct cholesky_shape s, CHOLESKY_REAL *c,
				   const CHOLESKY_REAL *a, const CHOLESKY_REAL *b)
{
	LOOM_NO_UNROLL
	for (uint32_t j = 0; j < s.columns; j++)
		CHOLESKY_NAME(column)(c + (size_t)j * s.ld, a, b + j, s.ld, s.inner, a == b ? j : 0, s.rows, ctx->lane,
				      ctx->lanes);
}

/* Computes c = c L^-T. Rows are independent, so lanes need no barrier. */
LOOM_FN void CHOLESKY_NAME(solve)(struct loom_ctx *ctx, struct cholesky_shape s, CHOLESKY_REAL *c,
				  const CHOLESKY_REAL *l)
{
	LOOM_NO_UNROLL
	for (uint32_t j = 0; j < s.columns; j++) {
		CHOLESKY_REAL *column = c + (size_t)j * s.ld, inverse = 1 / l[j + (size_t)j * s.ld];
		CHOLESKY_NAME(column)(column, c, l + j, s.ld, j, 0, s.rows, ctx->lane, ctx->lanes);
		for (uint32_t i = ctx->lane; i < s.rows; i += ctx->lanes)
			column[i] *= inverse;
	}
}

/* Computes L with c = L L^T. L replaces the lower half of c. Returns 0, or 1 plus the column whose pivot is not
 * positive. */
LOOM_FN uint32_t CHOLESKY_NAME(factor)(struct loom_ctx *ctx, struct cholesky_shape s, CHOLESKY_REAL *c)
{
	LOOM_NO_UNROLL
	for (uint32_t j = 0; j < s.columns; j++) {
		CHOLESKY_REAL *column = c + (size_t)j * s.ld;
		CHOLESKY_NAME(column)(column, c, c + j, s.ld, j, j, s.rows, ctx->lane, ctx->lanes);
		loom_barrier_lanes(ctx);
		double pivot = (double)column[j];
		if (!(pivot > 0))
			return j + 1;
		CHOLESKY_REAL root = (CHOLESKY_REAL)cholesky_root(pivot), inverse = 1 / root;
		loom_barrier_lanes(ctx);
		for (uint32_t i = j + ctx->lane; i < s.rows; i += ctx->lanes)
			column[i] = i == j ? root : column[i] * inverse;
		loom_barrier_lanes(ctx);
	}
	return 0;
}
