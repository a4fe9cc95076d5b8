/* SPDX-License-Identifier: Apache-2.0 */
#include "fe.dev.h"

#include <stdlib.h>
#include <string.h>

#include "solver.h"

static const struct loom_opt rows[] = {
	EX_ROWS("14", 4, 256, "Nodes along an edge of the mesh.", "20"),
	{.name = NULL},
};

struct fe {
	struct solver solver; /* first, because check() casts the state to it */
	struct ex_message *message;
	uint32_t messages, *out, *in;
};

/* Lists messages for the rows to which the elements of a worker contribute and which belong to another worker. These
 * are the layer of nodes after the worker's own nodes. Returns the number of messages. `list` may be NULL. */
static uint32_t cut(const struct solver *s, struct ex_message *list)
{
	uint32_t n = 0;
	for (uint32_t w = 0; w < s->workers; w++) {
		uint64_t at = s->first[w + 1], end = at + s->edge * s->edge + s->edge + 1;
		end = at == s->first[w] ? at : end < s->n ? end : s->n;
		for (uint32_t v = w + 1; at < end; v++)
			while (at < end && at < s->first[v + 1]) {
				uint64_t to = at + FE_ROWS_MOST < end ? at + FE_ROWS_MOST : end;
				to = to < s->first[v + 1] ? to : s->first[v + 1];
				if (list)
					list[n] = (struct ex_message){.from = w, .to = v, .first = (uint32_t)at,
								      .count = (uint32_t)(to - at)};
				at = to;
				n++;
			}
	}
	return n;
}

static int make_messages(struct ex *x, struct fe *f)
{
	const struct solver *s = &f->solver;
	f->messages = cut(s, NULL);
	f->message = ex_alloc(x, f->messages + 1, sizeof(*f->message));
	if (!f->message)
		return EX_NO_MEMORY;
	cut(s, f->message);
	f->out = solver_list(x, f->message, f->messages, s->workers, 1);
	f->in = solver_list(x, f->message, f->messages, s->workers, 0);
	return f->out && f->in ? 0 : EX_NO_MEMORY;
}

static int plan(struct ex *x)
{
	struct fe *f = x->own;
	struct solver *s = &f->solver;
	int rc = solver_pattern(x, s, x->o->size, x->layout->workers);
	for (uint64_t i = 0; !rc && i < s->n; i++)
		fe_row(x->seed, s->edge, 0, s->n, i, s->column + s->row[i], s->row[i + 1] - s->row[i],
		       s->value + s->row[i], &s->b[i]);
	if (!rc)
		rc = solver_reference(x, s, x->o->iterations);
	if (!rc)
		rc = make_messages(x, f);
	if (rc)
		return EX_NO_MEMORY;
	solver_arrays(x, s, 0);
	ex_message_channels(x, f->message, f->messages, 1, 8 * FE_ROW * FE_ROWS_MOST);
	uint64_t list_bytes = 4ull * (s->workers + 1 + f->messages);
	ex_copy(x, FE_MESSAGES, f->message, f->messages * sizeof(*f->message));
	ex_copy(x, FE_OUT, f->out, list_bytes);
	ex_copy(x, FE_IN, f->in, list_bytes);
	x->head.param[FE_EDGE] = s->edge;
	x->head.param[FE_SEED] = x->seed;
	return 0;
}

static int check(struct ex *x, struct ex_head *h, struct loom_error *err)
{
	const struct solver *s = x->own;
	/* Convergence is slower than for C_CG, because the mesh is distorted. */
	if (x->o->iterations >= 20 && !(s->last_rr < 1e-2 * s->first_rr))
		return EX_WRONG(x, err, "the reference does not converge: residual %g of %g", s->last_rr,
				s->first_rr);
	return solver_check(x, s, h, err);
}

EX_PLUGIN(fe, struct fe, rows, "iterations", "C_FE: finite elements on hexahedra (alternating, random)",
	  LOOM_CODE_FILE("solver.dev.h"))
