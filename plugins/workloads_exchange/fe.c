/* SPDX-License-Identifier: Apache-2.0 */
/* workload_fe: host half. */
#include "fe.dev.h"

#include "solver.h"

static const struct loom_opt rows[] = {
	EX_ROWS("14", 4, 256, "Nodes along an edge of the mesh.", "20"),
	{.name = NULL},
};

static int plan(struct ex *x, const struct loom_layout *layout, struct loom_error *err)
{
	struct solver *s = x->own;
	int rc = solver_pattern(s, x->o->size, layout->workers);
	for (uint64_t i = 0; !rc && i < s->n; i++)
		fe_row(x->seed, s->edge, i, s->row, s->column, s->value, s->b);
	if (!rc)
		rc = solver_reference(s, x->o->iterations);
	if (rc)
		return LOOM_FAIL(x->host, err, rc, "workload_fe: out of memory");
	x->head.param[FE_EDGE] = s->edge;
	x->head.param[FE_SEED] = x->seed;
	return solver_channels(x, s, layout);
}

static int fill(struct ex *x, struct ex_head *h, const struct loom_layout *layout)
{
	(void)layout;
	solver_fill(x->own, h, 0);
	return 0;
}

static int check(struct ex *x, struct ex_head *h, const struct loom_layout *layout,
		 struct loom_report *report, struct loom_error *err)
{
	const struct solver *s = x->own;
	(void)layout;
	/* What converges here is less than for C_CG: the mesh is distorted. */
	if (x->o->iterations >= 20 && !(s->last_rr < 1e-2 * s->first_rr))
		return EX_WRONG(x, err, "the reference does not converge: residual %g of %g", s->last_rr,
				s->first_rr);
	return solver_check(x, s, h, report, err);
}

static void finish(struct ex *x)
{
	solver_finish(x->own);
}

static const struct ex_app app = {.name = "fe", .bytes = sizeof(struct solver), .plan = plan, .fill = fill,
				  .check = check, .finish = finish};

EX_PLUGIN(fe, app, rows, "C_FE: finite elements on hexahedra (alternating, random)",
	  LOOM_CODE_FILE("solver.dev.h"))
