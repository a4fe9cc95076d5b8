/* SPDX-License-Identifier: Apache-2.0 */
/* Host half of workload_cg. The matrix is from the HPCG benchmark: 27 on the diagonal, and -1 elsewhere in the
 * 27-point pattern. The right-hand side makes all unknowns 1. */
#include "cg.dev.h"

#include <math.h>

#include "solver.h"

static const struct loom_opt rows[] = {
	EX_ROWS("16", 3, 256, "Points along an edge of the grid.", "20"),
	{.name = NULL},
};

static int plan(struct ex *x)
{
	struct solver *s = x->own;
	int rc = solver_pattern(x, s, x->o->size, x->layout->workers);
	for (uint64_t i = 0; !rc && i < s->n; i++)
		for (uint32_t k = s->row[i]; k < s->row[i + 1]; k++) {
			s->value[k] = s->column[k] == i ? 27 : -1;
			s->b[i] += s->value[k];
		}
	if (!rc)
		rc = solver_reference(x, s, x->o->iterations);
	if (rc)
		return EX_NO_MEMORY;
	solver_arrays(x, s, 1);
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct solver *s = x->own;
	const double *u = ex_ptr(h, CG_X);
	int rc = solver_check(x, s, h, err);
	/* After 20 iterations the error was 1e-6 for every size that was tried. */
	for (uint64_t i = 0; !rc && x->o->iterations >= 20 && i < s->n; i++)
		if (!(fabs(u[i] - 1) < 1e-3))
			return EX_WRONG(x, err, "unknown %llu is %g after %u iterations instead of 1",
					(unsigned long long)i, u[i], x->o->iterations);
	return rc;
}

EX_PLUGIN(cg, struct solver, rows, "iterations",
	  "C_CG: conjugate gradients on a 27-point stencil (alternating, random)", LOOM_CODE_FILE("solver.dev.h"))
