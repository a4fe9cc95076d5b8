/* SPDX-License-Identifier: Apache-2.0 */
/* C_FE: Poisson's equation by finite elements on distorted hexahedra. A worker has the matrix rows of its nodes, and
 * the elements whose lowest corner is one of these nodes. In the assembly a worker first sends the contributions of
 * its elements to rows of later workers, piece by piece. Then it computes its own rows, and adds the contributions
 * from earlier workers. Conjugate gradients solve the system. Device code. */
#ifndef FE_DEV_H
#define FE_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "solver.dev.h"
#endif

enum { FE_EDGE = 8, FE_SEED };                     /* parameters, after those of the solver */
enum { FE_MESSAGES = CG_FREE, FE_OUT, FE_IN };      /* after the solver's arrays; FE_OUT, FE_IN: like CG_OUT, CG_IN */
enum { FE_LOAD = 27, FE_ROW, FE_ROWS_MOST = 32 };   /* a row in a message: 27 entries, load; most rows of a message */

LOOM_FN uint64_t fe_number(uint64_t edge, const uint64_t at[3])
{
	return (at[2] * edge + at[1]) * edge + at[0];
}

/* Computes the position x of the node at point `at` of the grid. Inner nodes are displaced from the grid. Corners of
 * an element have numbers 0 to 7: bit 0 is the corner's x, bit 1 its y, bit 2 its z. */
LOOM_FN void fe_node(uint64_t seed, uint64_t edge, const uint64_t at[3], double x[3])
{
	uint64_t v = seed ^ fe_number(edge, at) * 0x9e3779b97f4a7c15ull;
	for (uint32_t d = 0; d < 3; d++) {
		v ^= v >> 27;
		v *= 0x94d049bb133111ebull;
		double off = (double)(v >> 40) / 16777216.0 - 0.5;
		int border = at[d] == 0 || at[d] == edge - 1;
		x[d] = (double)at[d] + (border ? 0 : 0.3 * off);
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

/* Computes row `a` of an element's 8 x 8 stiffness matrix, and the load of corner `a`. The element has corners x. The
 * integrals use 2 x 2 x 2 Gauss points. */
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

LOOM_FN int fe_on_border(uint64_t edge, const uint64_t at[3])
{
	return at[0] == 0 || at[0] == edge - 1 || at[1] == 0 || at[1] == edge - 1 || at[2] == 0 ||
	       at[2] == edge - 1;
}

/* Computes what the elements with their lowest corner in [from, to) contribute to the row of a node: to its entries
 * and to its load. Nodes on the border have the value 0. */
LOOM_FN void fe_row(uint64_t seed, uint64_t edge, uint64_t from, uint64_t to, uint64_t node,
		    const uint32_t *column, uint32_t entries, double *value, double *load)
{
	uint64_t at[3] = {node % edge, node / edge % edge, node / edge / edge};
	int border = fe_on_border(edge, at);
	*load = 0;
	for (uint32_t e = 0; e < entries; e++)
		value[e] = border && column[e] == node && node >= from && node < to ? 1 : 0;
	for (uint32_t a = 0; a < 8 && !border; a++) { /* the node is corner `a` of this element */
		double x[8][3], k[8], part;
		uint64_t corner[8][3];
		for (uint32_t c = 0; c < 8; c++)
			for (uint32_t d = 0; d < 3; d++)
				corner[c][d] = at[d] - (a >> d & 1) + (c >> d & 1);
		uint64_t lowest = fe_number(edge, corner[0]);
		if (lowest < from || lowest >= to)
			continue;
		for (uint32_t c = 0; c < 8; c++)
			fe_node(seed, edge, corner[c], x[c]);
		fe_element(k, &part, x, a);
		*load += part;
		for (uint32_t c = 0; c < 8; c++) {
			uint64_t other = fe_number(edge, corner[c]);
			if (fe_on_border(edge, corner[c]))
				continue; /* this corner's value is 0 */
			for (uint32_t e = 0; e < entries; e++)
				if (column[e] == other)
					value[e] += k[c];
		}
	}
}

/* Sends the contributions of the worker's elements to rows of other workers. Computes them in the memory of the
 * channel. */
LOOM_FN int fe_send(struct loom_ctx *c, const struct cg_part *w)
{
	const struct ex_head *h = ex_head(c);
	const struct ex_message *m = (const struct ex_message *)ex_at(c, FE_MESSAGES);
	const uint32_t *out = (const uint32_t *)ex_at(c, FE_OUT), *list = out + c->workers + 1;
	const uint32_t *row = (const uint32_t *)ex_at(c, CG_ROWS);
	const uint32_t *column = (const uint32_t *)ex_at(c, CG_COLUMNS);
	for (uint32_t k = out[c->worker]; k < out[c->worker + 1]; k++) {
		const struct ex_message *one = &m[list[k]];
		void *at;
		int rc = ex_reserve(c, one->channel, ex_tag(one, 0), &at);
		if (rc)
			return rc;
		EX_EACH(c, i, 0, one->count) {
			double *to = (double *)at + i * FE_ROW;
			uint64_t r = one->first + i;
			fe_row(h->param[FE_SEED], h->param[FE_EDGE], w->first, w->end, r, column + row[r],
			       row[r + 1] - row[r], to, &to[FE_LOAD]);
		}
		if ((rc = ex_send_message(c, one, 0, NULL, 8 * FE_ROW * one->count)))
			return rc;
	}
	return 0;
}

/* Adds the contributions from other workers' elements, in a fixed order. So the result is reproducible to the bit. */
LOOM_FN int fe_receive(struct loom_ctx *c)
{
	const struct ex_message *m = (const struct ex_message *)ex_at(c, FE_MESSAGES);
	const uint32_t *in = (const uint32_t *)ex_at(c, FE_IN), *list = in + c->workers + 1;
	const uint32_t *row = (const uint32_t *)ex_at(c, CG_ROWS);
	double *value = (double *)ex_at(c, CG_VALUES), *b = (double *)ex_at(c, CG_B);
	for (uint32_t k = in[c->worker]; k < in[c->worker + 1]; k++) {
		const struct ex_message *one = &m[list[k]];
		const void *data;
		int rc = ex_recv_message(c, one, 0, &data);
		if (rc)
			return rc;
		EX_EACH(c, i, 0, one->count) {
			const double *from = (const double *)data + i * FE_ROW;
			uint64_t r = one->first + i;
			for (uint32_t e = row[r]; e < row[r + 1]; e++)
				value[e] += from[e - row[r]];
			b[r] += from[FE_LOAD];
		}
		/* Also a barrier of the lanes, because the next message may be for the same rows. */
		ex_release_message(c, one, 0);
	}
	return 0;
}

LOOM_FN int fe_assemble(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	const uint64_t *first = (const uint64_t *)ex_at(c, CG_FIRST);
	const uint32_t *row = (const uint32_t *)ex_at(c, CG_ROWS);
	const uint32_t *column = (const uint32_t *)ex_at(c, CG_COLUMNS);
	double *value = (double *)ex_at(c, CG_VALUES), *b = (double *)ex_at(c, CG_B);
	struct cg_part w = {first[c->worker], first[c->worker + 1], NULL};
	int rc = fe_send(c, &w);
	if (rc)
		return rc;
	EX_EACH(c, r, w.first, w.end)
		fe_row(h->param[FE_SEED], h->param[FE_EDGE], w.first, w.end, r, column + row[r],
		       row[r + 1] - row[r], value + row[r], &b[r]);
	loom_barrier_lanes(c);
	return fe_receive(c);
}

LOOM_FN void workload_fe_kernel(struct loom_ctx *c)
{
	ex_begin(c);
	if (fe_assemble(c) == 0)
		(void)cg_solve(c);
	ex_end(c);
}

#endif
