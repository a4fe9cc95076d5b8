/* SPDX-License-Identifier: Apache-2.0 */
#include "solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int in_grid(uint64_t edge, uint64_t at, uint64_t d)
{
	return at + d >= 1 && at + d - 1 < edge;
}

static void make_rows(struct solver *s)
{
	uint64_t e = s->edge, at = 0;
	for (uint64_t i = 0; i < s->n; i++) {
		uint64_t x = i % e, y = i / e % e, z = i / e / e;
		s->row[i] = (uint32_t)at;
		for (uint64_t d = 0; d < 27; d++) /* columns in ascending order */
			if (in_grid(e, x, d % 3) && in_grid(e, y, d / 3 % 3) && in_grid(e, z, d / 9))
				s->column[at++] = (uint32_t)(((z + d / 9 - 1) * e + y + d / 3 % 3 - 1) * e +
							     x + d % 3 - 1);
	}
	s->row[s->n] = (uint32_t)at;
	s->entries = at;
}

static uint32_t owner(const struct solver *s, uint64_t row)
{
	uint32_t w = 0;
	while (s->first[w + 1] <= row)
		w++;
	return w;
}

/* Finds the columns of other workers that each worker needs. Makes a message for each pair of workers with such
 * columns. */
static int make_messages(struct ex *x, struct solver *s)
{
	uint8_t *wanted = calloc(s->workers, s->n);
	uint64_t total = 0;
	if (!wanted)
		return EX_NO_MEMORY;
	for (uint32_t w = 0; w < s->workers; w++)
		for (uint64_t i = s->first[w]; i < s->first[w + 1]; i++)
			for (uint32_t k = s->row[i]; k < s->row[i + 1]; k++) {
				uint64_t j = s->column[k];
				if ((j < s->first[w] || j >= s->first[w + 1]) && !wanted[w * s->n + j]) {
					wanted[w * s->n + j] = 1;
					total++;
				}
			}
	s->index = ex_alloc(x, total + 1, 4);
	s->message = ex_alloc(x, (uint64_t)s->workers * s->workers + 1, sizeof(*s->message));
	for (uint32_t w = 0; s->index && s->message && w < s->workers; w++) {
		struct ex_message *m = NULL;
		for (uint64_t j = 0; j < s->n; j++) {
			if (!wanted[w * s->n + j])
				continue;
			uint32_t from = owner(s, j);
			if (!m || m->from != from) {
				m = &s->message[s->messages++];
				*m = (struct ex_message){.from = from, .to = w, .first = (uint32_t)s->indices};
			}
			s->index[s->indices++] = (uint32_t)j;
			s->most = ++m->count > s->most ? m->count : s->most;
		}
	}
	free(wanted);
	return s->index && s->message ? 0 : EX_NO_MEMORY;
}

uint32_t *solver_list(struct ex *x, const struct ex_message *m, uint32_t n, uint32_t workers, int out)
{
	uint32_t *list = ex_alloc(x, workers + 1 + n, 4), at = 0;
	for (uint32_t w = 0; list && w < workers; w++) {
		list[w] = at;
		for (uint32_t i = 0; i < n; i++)
			if ((out ? m[i].from : m[i].to) == w)
				list[workers + 1 + at++] = i;
		list[w + 1] = at;
	}
	return list;
}

int solver_pattern(struct ex *x, struct solver *s, uint64_t edge, uint32_t workers)
{
	s->edge = edge;
	s->n = edge * edge * edge;
	s->workers = workers;
	s->most = 1;
	s->row = ex_alloc(x, s->n + 1, 4);
	s->column = ex_alloc(x, 27 * s->n, 4);
	s->value = ex_alloc(x, 27 * s->n, 8);
	s->b = ex_alloc(x, s->n, 8);
	s->want = ex_alloc(x, s->n, 8);
	s->first = ex_alloc(x, workers + 1, 8);
	if (!s->row || !s->column || !s->value || !s->b || !s->want || !s->first)
		return EX_NO_MEMORY;
	for (uint32_t w = 0; w <= workers; w++)
		s->first[w] = ex_share(s->n, w, workers);
	make_rows(s);
	if (make_messages(x, s))
		return EX_NO_MEMORY;
	s->out = solver_list(x, s->message, s->messages, workers, 1);
	s->in = solver_list(x, s->message, s->messages, workers, 0);
	return s->out && s->in ? 0 : EX_NO_MEMORY;
}

void solver_arrays(struct ex *x, const struct solver *s, int values)
{
	uint64_t list_bytes = 4ull * (s->workers + 1 + s->messages);
	ex_message_channels(x, s->message, s->messages, 2, 8 * s->most);
	x->head.param[CG_N] = s->n;
	x->head.param[CG_MOST] = s->most;
	x->head.param[CG_SUM] = ex_sum_channels(x);
	ex_copy(x, CG_ROWS, s->row, 4 * (s->n + 1));
	ex_copy(x, CG_COLUMNS, s->column, 4 * s->entries);
	if (values) {
		ex_copy(x, CG_VALUES, s->value, 8 * s->entries);
		ex_copy(x, CG_B, s->b, 8 * s->n);
	} else {
		ex_array(x, CG_VALUES, 8 * s->entries, EX_ZERO);
		ex_array(x, CG_B, 8 * s->n, EX_KEEP);
	}
	ex_array(x, CG_X, 8 * s->n, EX_POISON);
	ex_array(x, CG_R, 8 * s->n, EX_KEEP);
	ex_array(x, CG_Q, 8 * s->n, EX_KEEP);
	/* Poison shows the use of an entry that no message has brought. */
	ex_array(x, CG_P, 8 * s->n * s->workers, EX_POISON);
	ex_copy(x, CG_FIRST, s->first, 8 * (s->workers + 1));
	ex_copy(x, CG_MESSAGES, s->message, s->messages * sizeof(*s->message));
	ex_copy(x, CG_INDEX, s->index, 4 * s->indices);
	ex_copy(x, CG_OUT, s->out, list_bytes);
	ex_copy(x, CG_IN, s->in, list_bytes);
	ex_array(x, CG_PACKED, 8 * s->most * s->workers, EX_KEEP);
	ex_array(x, CG_RESIDUAL, 8, EX_POISON);
}

static double dot(const struct solver *s, const double *a, const double *b)
{
	double sum = 0;
	for (uint32_t w = 0; w < s->workers; w++)
		sum += cg_dot(a, b, s->first[w], s->first[w + 1]);
	return sum;
}

int solver_reference(struct ex *x, struct solver *s, uint32_t iterations)
{
	double *r = ex_alloc(x, s->n, 8), *p = ex_alloc(x, s->n, 8), *q = ex_alloc(x, s->n, 8);
	if (!r || !p || !q)
		return EX_NO_MEMORY;
	memcpy(r, s->b, 8 * s->n);
	memcpy(p, s->b, 8 * s->n);
	double rr = dot(s, r, r);
	s->first_rr = rr;
	for (uint32_t t = 0; t < iterations; t++) {
		for (uint64_t i = 0; i < s->n; i++)
			q[i] = cg_row(s->row, s->column, s->value, p, i);
		double pq = dot(s, p, q);
		for (uint64_t i = 0; i < s->n; i++) {
			s->want[i] += cg_ratio(rr, pq) * p[i];
			r[i] -= cg_ratio(rr, pq) * q[i];
		}
		double next = dot(s, r, r);
		for (uint64_t i = 0; i < s->n; i++)
			p[i] = r[i] + cg_ratio(next, rr) * p[i];
		rr = next;
	}
	s->last_rr = rr;
	return 0;
}

int solver_check(struct ex *x, const struct solver *s, struct ex_head *h, struct loom_error *err)
{
	double rr = *(const double *)ex_ptr(h, CG_RESIDUAL);
	if (!(rr >= 0) || !(rr <= s->last_rr * (1 + 1e-6) + 1e-30 * s->first_rr))
		return EX_WRONG(x, err, "residual: expected %g, found %g", sqrt(s->last_rr), sqrt(rr));
	x->host->metric(x->host, x->report, "residual", "", LOOM_BETTER_LESS, sqrt(rr / s->first_rr));
	return ex_compare(x, ex_ptr(h, CG_X), s->want, s->n, "unknown", err);
}
