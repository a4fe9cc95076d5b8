/* SPDX-License-Identifier: Apache-2.0 */
/* workload_cholesky: the shape of tiles, and the square root. Device code. */
#ifndef CHOLESKY_SHAPE_DEV_H
#define CHOLESKY_SHAPE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif

/* Shape of the tile that a step changes. `inner`: columns of the tiles that update it. `ld`: numbers between two
 * columns. */
struct cholesky_shape {
	uint32_t rows, columns, inner, ld;
};

/* Returns the square root of x by Newton's iteration, with equal results on all devices. The first guess halves the
 * exponent, with an error of 6 %. */
LOOM_FN double cholesky_root(double x)
{
	union {
		double number;
		uint64_t bits;
	} guess;
	guess.number = x;
	guess.bits = (guess.bits >> 1) + 0x1ff8000000000000ull;
	for (int i = 0; i < 5; i++)
		guess.number = 0.5 * (guess.number + x / guess.number);
	return guess.number;
}

#endif
