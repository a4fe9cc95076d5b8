/* SPDX-License-Identifier: Apache-2.0 */
/* C_FE: Poisson's equation by finite elements on distorted hexahedra: each worker assembles the rows of its
 * nodes, and conjugate gradients solve the system. Device code. */
#ifndef FE_DEV_H
#define FE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "solver.dev.h"
#endif

enum { FE_EDGE = 8, FE_SEED }; /* parameters after the solver's */

/* Corner `a` of 0..7 lies at bit 0 in x, bit 1 in y, bit 2 in z; nodes are moved a little off the grid. */
LOOM_FN void fe_node(uint64_t seed, uint64_t edge, const uint64_t at[3], double x[3])
{
	uint64_t v = seed ^ ((at[2] * edge + at[1]) * edge + at[0]) * 0x9e3779b97f4a7c15ull;
	for (uint32_t d = 0; d < 3; d++) {
		v ^= v >> 27;
		v *= 0x94d049bb133111ebull;
		double off = (double)(v >> 40) / 16777216.0 - 0.5;
		int rim = at[d] == 0 || at[d] == edge - 1;
		x[d] = (double)at[d] + (rim ? 0 : 0.3 * off);
	}
}

LOOM_FN double fe_inverse(double inverse[3][3], double m[3][3])
{
	double det = 0;
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t j = 0; j < 3; j++)
			inverse[j][i] = m[(i + 1) % 3][(j + 1) % 3] * m[(i + 2) % 3][(j + 2) % 3] -
					m[(i + 1) % 3][(j + 2) % 3] * m[(i + 2) % 3][(j + 1) % 3];
	for (uint32_t j = 0; j < 3; j++)
		det += m[0][j] * inverse[j][0];
	for (uint32_t i = 0; i < 9; i++)
		inverse[i / 3][i % 3] /= det;
	return det;
}

/* Row `a` of the element's 8 x 8 stiffness matrix, and its load, by 2 x 2 x 2 Gauss points. */
LOOM_FN void fe_element(double k[8], double *load, double x[8][3], uint32_t a)
{
	for (uint32_t b = 0; b < 8; b++)
		k[b] = 0;
	*load = 0;
	for (uint32_t g = 0; g < 8; g++) {
		double at[3], shape[8][3], value[8], j[3][3] = {{0}}, inverse[3][3], grad[8][3];
		for (uint32_t d = 0; d < 3; d++)
			at[d] = (g >> d & 1) ? 0.78867513459481288 : 0.21132486540518712;
		for (uint32_t b = 0; b < 8; b++) {
			double f[3];
			for (uint32_t d = 0; d < 3; d++)
				f[d] = (b >> d & 1) ? at[d] : 1 - at[d];
			value[b] = f[0] * f[1] * f[2];
			for (uint32_t d = 0; d < 3; d++)
				shape[b][d] = ((b >> d & 1) ? 1 : -1) * f[(d + 1) % 3] * f[(d + 2) % 3];
			for (uint32_t r = 0; r < 3; r++)
				for (uint32_t d = 0; d < 3; d++)
					j[r][d] += shape[b][r] * x[b][d];
		}
		double weight = fe_inverse(inverse, j) / 8;
		for (uint32_t b = 0; b < 8; b++)
			for (uint32_t d = 0; d < 3; d++) {
				grad[b][d] = 0;
				for (uint32_t r = 0; r < 3; r++)
					grad[b][d] += inverse[d][r] * shape[b][r];
			}
		for (uint32_t b = 0; b < 8; b++)
			for (uint32_t d = 0; d < 3; d++)
				k[b] += weight * grad[a][d] * grad[b][d];
		*load += weight * value[a];
	}
}

LOOM_FN int fe_on_rim(uint64_t edge, const uint64_t at[3])
{
	return at[0] == 0 || at[0] == edge - 1 || at[1] == 0 || at[1] == edge - 1 || at[2] == 0 ||
	       at[2] == edge - 1;
}

/* The row of a node: over the up to 8 elements around it. Nodes on the rim keep the value 0. */
LOOM_FN void fe_row(uint64_t seed, uint64_t edge, uint64_t node, const uint32_t *row,
		    const uint32_t *column, double *value, double *b)
{
	uint64_t at[3] = {node % edge, node / edge % edge, node / edge / edge};
	for (uint32_t e = row[node]; e < row[node + 1]; e++)
		value[e] = 0;
	b[node] = 0;
	if (fe_on_rim(edge, at)) {
		for (uint32_t e = row[node]; e < row[node + 1]; e++)
			if (column[e] == node)
				value[e] = 1;
		return;
	}
	for (uint32_t a = 0; a < 8; a++) { /* the node is corner a of the element */
		double x[8][3], k[8], load;
		uint64_t corner[8][3];
		for (uint32_t c = 0; c < 8; c++) {
			for (uint32_t d = 0; d < 3; d++)
				corner[c][d] = at[d] - (a >> d & 1) + (c >> d & 1);
			fe_node(seed, edge, corner[c], x[c]);
		}
		fe_element(k, &load, x, a);
		b[node] += load;
		for (uint32_t c = 0; c < 8; c++) {
			uint64_t other = (corner[c][2] * edge + corner[c][1]) * edge + corner[c][0];
			if (fe_on_rim(edge, corner[c]))
				continue; /* times 0 */
			for (uint32_t e = row[node]; e < row[node + 1]; e++)
				if (column[e] == other)
					value[e] += k[c];
		}
	}
}

LOOM_FN void workload_fe_kernel(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	const uint64_t *first = (const uint64_t *)ex_at(c, CG_FIRST);
	ex_begin(c);
	EX_EACH(c, i, first[c->worker], first[c->worker + 1])
		fe_row(h->param[FE_SEED], h->param[FE_EDGE], i, (const uint32_t *)ex_at(c, CG_ROWS),
		       (const uint32_t *)ex_at(c, CG_COLUMNS), (double *)ex_at(c, CG_VALUES),
		       (double *)ex_at(c, CG_B));
	loom_barrier_lanes(c);
	(void)cg_solve(c);
	ex_end(c);
}

#endif
