/* SPDX-License-Identifier: Apache-2.0 */
/* G_GEM: C = A B in panels of 16; multiple, streaming. Device 0 makes panel k of A and of B; each consumer
 * adds A_k B_k to its rows of C, and sends the rows back at the end. Device code. */
#ifndef GEM_DEV_H
#define GEM_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { GEM_C = 0, GEM_ROOM, GEM_PANEL }; /* GEM_ROOM: rows of a consumer; GEM_PANEL: a producer's */
enum { GEM_N = 0, GEM_SEED, GEM_CONSUMERS };
enum { GEM_K = 16 };

/* Channels: 2(d - 1) to device d: panels of A, one per consumer; 2(d - 1) + 1: panels of B, which all
 * consumers of d read; the last one: results to device 0. */
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

LOOM_FN int gem_produce(struct loom_ctx *c, uint32_t panel, double *room)
{
	const struct ex_head *h = ex_head(c);
	uint64_t n = h->param[GEM_N], seed = h->param[GEM_SEED], consumers = h->param[GEM_CONSUMERS];
	uint64_t k0 = panel * GEM_K, kn = n - k0 < GEM_K ? n - k0 : GEM_K;
	uint32_t before = 0; /* consumers on the devices before */
	int rc = 0;
	for (uint32_t d = 1; d < c->devices && !rc; d++) {
		uint32_t count = (uint32_t)h->param[4 + d];
		EX_EACH(c, i, 0, kn * n)
			room[i] = gem_element(seed, 1, k0 + i / n, i % n);
		ex_work(c, h->work_p);
		rc = ex_send(c, 2 * (d - 1) + 1, panel, room, 8 * kn * n);
		for (uint32_t w = 0; w < count && !rc; w++) {
			uint64_t from = ex_share(n, before + w, consumers);
			uint64_t rows = ex_share(n, before + w + 1, consumers) - from;
			loom_barrier_lanes(c);
			EX_EACH(c, i, 0, rows * GEM_K)
				room[i] = i % GEM_K < kn ? gem_element(seed, 0, from + i / GEM_K,
								       k0 + i % GEM_K) :
							   0;
			rc = ex_send(c, 2 * (d - 1), panel * count + w, room, 8 * rows * GEM_K);
		}
		before += count;
		loom_barrier_lanes(c);
	}
	return rc;
}

LOOM_FN int gem_consume(struct loom_ctx *c, uint32_t me, double *rows_of_c)
{
	const struct ex_head *h = ex_head(c);
	uint64_t n = h->param[GEM_N], from = ex_share(n, me, h->param[GEM_CONSUMERS]);
	uint64_t rows = ex_share(n, me + 1, h->param[GEM_CONSUMERS]) - from;
	uint32_t panels = (uint32_t)((n + GEM_K - 1) / GEM_K), channel = 2 * (c->device - 1);
	for (uint32_t p = 0; p < panels; p++) {
		const void *a, *b;
		uint32_t tag = p * c->count + c->worker - c->first;
		uint64_t left = n - p * (uint64_t)GEM_K;
		int rc;
		ex_work(c, h->work_c);
		if ((rc = ex_recv(c, channel + 1, p, &b)) || (rc = ex_recv(c, channel, tag, &a)))
			return rc;
		gem_multiply(c, rows_of_c, (const double *)a, (const double *)b, rows, n,
			     left < GEM_K ? left : GEM_K);
		ex_done(c, channel, tag);
		ex_done(c, channel + 1, p);
	}
	return ex_send(c, 2 * (c->devices - 1), me, rows_of_c, 8 * rows * n);
}

LOOM_FN int gem_collect(struct loom_ctx *c, uint32_t producers)
{
	const struct ex_head *h = ex_head(c);
	uint64_t n = h->param[GEM_N], consumers = h->param[GEM_CONSUMERS];
	double *all = (double *)ex_at(c, GEM_C);
	for (uint32_t w = c->worker; w < consumers; w += producers) {
		uint64_t from = ex_share(n, w, consumers), to = ex_share(n, w + 1, consumers);
		const void *data;
		int rc = ex_recv(c, 2 * (c->devices - 1), w, &data);
		if (rc)
			return rc;
		EX_EACH(c, i, 0, (to - from) * n)
			all[from * n + i] = ((const double *)data)[i];
		ex_done(c, 2 * (c->devices - 1), w);
	}
	return 0;
}

LOOM_FN void workload_gem_kernel(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	uint64_t n = h->param[GEM_N];
	uint32_t producers = c->workers - (uint32_t)h->param[GEM_CONSUMERS];
	uint32_t panels = (uint32_t)((n + GEM_K - 1) / GEM_K);
	int rc = 0;
	ex_begin(c);
	if (c->device == 0) {
		double *room = (double *)ex_at(c, GEM_PANEL) + c->worker * (n * GEM_K + n);
		for (uint32_t p = c->worker; p < panels && !rc; p += producers)
			rc = gem_produce(c, p, room);
		if (!rc)
			gem_collect(c, producers);
	} else {
		uint32_t me = c->worker - producers;
		uint64_t from = ex_share(n, me, h->param[GEM_CONSUMERS]);
		gem_consume(c, me, (double *)ex_at(c, GEM_ROOM) + from * n);
	}
	ex_end(c);
}

#endif
