/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients on rows that are distributed over the workers (model: alternating, access: random). In each
 * iteration a worker sends the entries of p that other workers need, and multiplies the rows that need only its own
 * entries. Then it waits for entries from other workers, and multiplies the remaining rows. Two sums over all workers
 * follow. Device code of C_CG and C_FE.
 *
 * Alternating means that a worker first sends to workers of its own and of later devices. It sends to workers of
 * earlier devices after it has received their entries. */
#ifndef SOLVER_DEV_H
#define SOLVER_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { CG_ROWS = 0, CG_COLUMNS, CG_VALUES, CG_B, CG_X, CG_R, CG_Q, CG_P, CG_FIRST, CG_MESSAGES, CG_INDEX,
       CG_OUT, CG_IN, CG_PACKED, CG_RESIDUAL, CG_FREE };
enum { CG_N = 0, CG_MOST, CG_SUM }; /* number of rows; entries of the largest message; channel of the sums */

/* A worker's part of the vectors. CG_OUT and CG_IN list the messages from and to each worker: first[workers + 1],
 * then the indices of the messages. */
struct cg_part {
	uint64_t first, end; /* range of rows, without `end` */
	double *p;           /* the worker's copy of p; only its own and received entries are valid */
};

LOOM_FN double cg_row(const uint32_t *row, const uint32_t *column, const double *value, const double *p,
		      uint64_t i)
{
	double sum = 0;
	for (uint32_t e = row[i]; e < row[i + 1]; e++)
		sum += value[e] * p[column[e]];
	return sum;
}

/* Columns are sorted. So a row needs only this worker's entries if its first and its last column are the worker's. */
LOOM_FN int cg_is_inner(const uint32_t *row, const uint32_t *column, const struct cg_part *w, uint64_t i)
{
	return column[row[i]] >= w->first && column[row[i + 1] - 1] < w->end;
}

LOOM_FN void cg_multiply(const struct loom_ctx *c, const struct cg_part *w, int inner)
{
	const uint32_t *row = (const uint32_t *)ex_at(c, CG_ROWS);
	const uint32_t *column = (const uint32_t *)ex_at(c, CG_COLUMNS);
	const double *value = (const double *)ex_at(c, CG_VALUES);
	double *q = (double *)ex_at(c, CG_Q);
	EX_EACH(c, i, w->first, w->end)
		if (cg_is_inner(row, column, w, i) == inner)
			q[i] = cg_row(row, column, value, w->p, i);
}

/* after = 0: sends the messages to workers of this and of later devices. after = 1: sends those to earlier devices. */
LOOM_FN int cg_send(struct loom_ctx *c, const struct cg_part *w, uint32_t t, int after)
{
	const struct ex_head *h = ex_head(c);
	const struct ex_message *m = (const struct ex_message *)ex_at(c, CG_MESSAGES);
	const uint32_t *out = (const uint32_t *)ex_at(c, CG_OUT), *list = out + c->workers + 1;
	const uint32_t *index = (const uint32_t *)ex_at(c, CG_INDEX);
	double *packed = (double *)ex_at(c, CG_PACKED) + c->worker * h->param[CG_MOST];
	for (uint32_t k = out[c->worker]; k < out[c->worker + 1]; k++) {
		const struct ex_message *one = &m[list[k]];
		int earlier = one->to < c->first;
		if (earlier != after)
			continue;
		loom_barrier_lanes(c); /* the previous message has left `packed`, and p is complete */
		EX_EACH(c, i, 0, one->count)
			packed[i] = w->p[index[one->first + i]];
		int rc = ex_send_message(c, one, t, packed, 8 * one->count);
		if (rc)
			return rc;
	}
	return 0;
}

/* after = 0: receives from workers of this and of earlier devices. after = 1: receives from later devices. */
LOOM_FN int cg_receive(struct loom_ctx *c, const struct cg_part *w, uint32_t t, int after)
{
	const struct ex_message *m = (const struct ex_message *)ex_at(c, CG_MESSAGES);
	const uint32_t *in = (const uint32_t *)ex_at(c, CG_IN), *list = in + c->workers + 1;
	const uint32_t *index = (const uint32_t *)ex_at(c, CG_INDEX);
	for (uint32_t k = in[c->worker]; k < in[c->worker + 1]; k++) {
		const struct ex_message *one = &m[list[k]];
		const void *data;
		int later = one->from >= c->first + c->count;
		if (later != after)
			continue;
		int rc = ex_recv_message(c, one, t, &data);
		if (rc)
			return rc;
		EX_EACH(c, i, 0, one->count)
			w->p[index[one->first + i]] = ((const double *)data)[i];
		ex_release_message(c, one, t);
	}
	loom_barrier_lanes(c);
	return 0;
}

LOOM_FN double cg_dot(const double *a, const double *b, uint64_t from, uint64_t to)
{
	double sum = 0;
	for (uint64_t i = from; i < to; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Returns the ratio of two sums. It is 0 if the residual has become 0, so that all vectors stay as they are. */
LOOM_FN double cg_ratio(double a, double b)
{
	return b == 0 ? 0 : a / b;
}

LOOM_FN int cg_sum(struct loom_ctx *c, uint32_t round, double mine, double *sum)
{
	uint32_t gather = (uint32_t)ex_head(c)->param[CG_SUM];
	return ex_sum(c, gather, gather + 1, round, mine, sum);
}

LOOM_FN int cg_solve(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	const uint64_t *first = (const uint64_t *)ex_at(c, CG_FIRST);
	struct cg_part w = {first[c->worker], first[c->worker + 1],
			    (double *)ex_at(c, CG_P) + c->worker * h->param[CG_N]};
	double *x = (double *)ex_at(c, CG_X), *r = (double *)ex_at(c, CG_R), *q = (double *)ex_at(c, CG_Q);
	const double *b = (const double *)ex_at(c, CG_B);
	double rr, pq, next;
	EX_EACH(c, i, w.first, w.end) {
		x[i] = 0;
		r[i] = w.p[i] = b[i];
	}
	loom_barrier_lanes(c);
	int rc = cg_sum(c, 0, cg_dot(r, r, w.first, w.end), &rr);
	for (uint32_t t = 0; t < h->iterations && !rc; t++) {
		ex_work(c, h->work_p);
		if ((rc = cg_send(c, &w, t, 0)))
			break;
		ex_work(c, h->work_c);
		cg_multiply(c, &w, 1);
		if ((rc = cg_receive(c, &w, t, 0)) || (rc = cg_send(c, &w, t, 1)) ||
		    (rc = cg_receive(c, &w, t, 1)))
			break;
		cg_multiply(c, &w, 0);
		loom_barrier_lanes(c);
		if ((rc = cg_sum(c, 2 * t + 1, cg_dot(w.p, q, w.first, w.end), &pq)))
			break;
		EX_EACH(c, i, w.first, w.end) {
			x[i] += cg_ratio(rr, pq) * w.p[i];
			r[i] -= cg_ratio(rr, pq) * q[i];
		}
		loom_barrier_lanes(c);
		if ((rc = cg_sum(c, 2 * t + 2, cg_dot(r, r, w.first, w.end), &next)))
			break;
		EX_EACH(c, i, w.first, w.end)
			w.p[i] = r[i] + cg_ratio(next, rr) * w.p[i];
		rr = next;
		loom_barrier_lanes(c);
	}
	if (c->worker == 0 && c->lane == 0 && !rc)
		*(double *)ex_at(c, CG_RESIDUAL) = rr;
	return rc;
}

#endif
