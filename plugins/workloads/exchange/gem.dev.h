/* SPDX-License-Identifier: Apache-2.0 */
/* G_GEM: the product C = A B in panels of 16 (model: multiple, access: streaming). Each worker has rows of A and of
 * C. The workers of all devices make panels of B in turn, one panel ahead of its use. They stream each panel to every
 * device: channel d carries panels to device d, where all workers read them. A worker makes its piece of A (C1),
 * waits for the panel, and adds the product to its rows of C (C2). Device code. */
#ifndef GEM_DEV_H
#define GEM_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { GEM_C = 0, GEM_A, GEM_B }; /* GEM_A: pieces of A; GEM_B: the panel that each worker makes */
enum { GEM_N = 0, GEM_SEED };
enum { GEM_K = 16, GEM_SLOTS = 4 };

LOOM_FN double gem_element(uint64_t seed, int which, uint64_t i, uint64_t j)
{
	uint64_t x = seed + (uint64_t)which * 0x9e3779b97f4a7c15ull + i * 0xbf58476d1ce4e5b9ull + j;
	x ^= x >> 31;
	x *= 0x94d049bb133111ebull;
	return (double)(int64_t)(x >> 52) - 2048;
}

LOOM_FN void gem_multiply(const struct loom_ctx *c, double *to, const double *a, const double *b,
			  uint64_t rows, uint64_t n, uint64_t kn)
{
	EX_EACH(c, i, 0, rows)
		for (uint64_t k = 0; k < kn; k++)
			for (uint64_t j = 0; j < n; j++)
				to[i * n + j] += a[i * GEM_K + k] * b[k * n + j];
}

LOOM_FN int gem_produce(struct loom_ctx *c, uint32_t panel)
{
	const struct ex_head *h = ex_head(c);
	uint64_t n = h->param[GEM_N], k0 = panel * GEM_K, kn = n - k0 < GEM_K ? n - k0 : GEM_K;
	double *room = (double *)ex_at(c, GEM_B) + c->worker * n * GEM_K;
	int rc = 0;
	EX_EACH(c, i, 0, kn * n)
		room[i] = gem_element(h->param[GEM_SEED], 1, k0 + i / n, i % n);
	ex_work(c, h->work_p);
	for (uint32_t d = 0; d < c->devices && !rc; d++)
		rc = ex_send(c, d, panel, room, 8 * kn * n);
	return rc;
}

LOOM_FN int gem_consume(struct loom_ctx *c, uint32_t panel, uint64_t from, uint64_t rows)
{
	const struct ex_head *h = ex_head(c);
	uint64_t n = h->param[GEM_N], k0 = panel * GEM_K, kn = n - k0 < GEM_K ? n - k0 : GEM_K;
	double *a = (double *)ex_at(c, GEM_A) + from * GEM_K, *to = (double *)ex_at(c, GEM_C) + from * n;
	const void *b;
	EX_EACH(c, i, 0, rows * GEM_K)
		a[i] = i % GEM_K < kn ? gem_element(h->param[GEM_SEED], 0, from + i / GEM_K, k0 + i % GEM_K) : 0;
	ex_work(c, h->work_c);
	int rc = ex_recv(c, c->device, panel, &b);
	if (rc)
		return rc;
	loom_barrier_lanes(c); /* all lanes have made the piece of A */
	gem_multiply(c, to, a, (const double *)b, rows, n, kn);
	ex_release(c, c->device, panel); /* also a barrier of the lanes, after which the piece may be overwritten */
	return 0;
}

LOOM_FN void workload_gem_kernel(struct loom_ctx *c)
{
	uint64_t n = ex_head(c)->param[GEM_N], from = ex_share(n, c->worker, c->workers);
	uint64_t rows = ex_share(n, c->worker + 1, c->workers) - from;
	uint32_t panels = (uint32_t)((n + GEM_K - 1) / GEM_K);
	int rc = 0;
	ex_begin(c);
	if (c->worker == 0)
		rc = gem_produce(c, 0);
	for (uint32_t p = 0; p < panels && !rc; p++) {
		if (p + 1 < panels && (p + 1) % c->workers == c->worker)
			rc = gem_produce(c, p + 1);
		if (!rc)
			rc = gem_consume(c, p, from, rows);
	}
	ex_end(c);
}

#endif
