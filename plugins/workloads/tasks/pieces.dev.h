/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of different lengths that are cut into pieces of at most `most` elements: sequences into chunks and pages, the slots of
 * experts into blocks. Device code.
 *
 * The only input is `start`, an array with the number of elements before each row, and the number of all at its end. The pieces of a
 * row have numbers from pieces_first() on. These numbers need no sum over the rows before, so a task can find its piece by itself,
 * if lengths are known only on the device. Up to one number for each row has no piece. */
#ifndef WORKLOAD_PIECES_DEV_H
#define WORKLOAD_PIECES_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include <gpuloom/dev/dev.h>
#endif

/* Returns how many pieces a row of this length has. */
LOOM_FN uint32_t pieces_of(uint32_t length, uint32_t most)
{
	return length / most + (length % most != 0);
}

LOOM_FN uint32_t pieces_first(const uint32_t *start, uint32_t row, uint32_t most)
{
	return start[row] / most + row;
}

/* Returns how many numbers the pieces of all rows have, for a sum of lengths. */
LOOM_FN uint32_t pieces_room(uint64_t length, uint32_t rows, uint32_t most)
{
	return (uint32_t)(length / most) + rows;
}

/* Returns 1 if pieces_first() of the row is at most `piece`. It needs no division, which takes a GPU as long as a load. */
LOOM_FN int pieces_begun(const uint32_t *start, uint32_t row, uint32_t most, uint32_t piece)
{
	return row <= piece && start[row] < (piece - row + 1ull) * most;
}

/* Returns the row to which a number belongs, by bisection. */
LOOM_FN uint32_t pieces_row(const uint32_t *start, uint32_t rows, uint32_t most, uint32_t piece)
{
	uint32_t row = 0;
	LOOM_NO_UNROLL
	while (rows - row > 1) {
		uint32_t middle = row + (rows - row) / 2;
		if (pieces_begun(start, middle, most, piece))
			row = middle;
		else
			rows = middle;
	}
	return row;
}

#endif
