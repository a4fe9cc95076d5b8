/* SPDX-License-Identifier: Apache-2.0 */
/* workload_cholesky: steps that a BLAS library computes. The library is loaded at start, and computes each call in
 * one thread. */
#ifndef CHOLESKY_BLAS_H
#define CHOLESKY_BLAS_H

#include <stddef.h>

#include "cholesky_shape.dev.h"

typedef void cholesky_call(void);
struct cholesky_blas {
	void *library;
	cholesky_call *gemm[2], *syrk[2], *trsm[2]; /* [0]: for float, [1]: for double */
};

/* Opens a library. `which` is "auto" or an argument of dlopen(). Returns 0, or -1 and the reason in `why`. */
int cholesky_blas_open(struct cholesky_blas *b, const char *which, char *why, size_t room);
void cholesky_blas_close(struct cholesky_blas *b);

/* The functions of cholesky_real.dev.h, computed by the library. `wide`: 1 if the numbers are double. */
uint32_t cholesky_blas_factor(const struct cholesky_blas *b, uint32_t wide, struct cholesky_shape s, void *c);
void cholesky_blas_solve(const struct cholesky_blas *b, uint32_t wide, struct cholesky_shape s, void *c, const void *l);
void cholesky_blas_update(const struct cholesky_blas *b, uint32_t wide, struct cholesky_shape s, void *c,
			  const void *left, const void *right);

#endif
