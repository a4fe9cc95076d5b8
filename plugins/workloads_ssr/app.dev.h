/* SPDX-License-Identifier: Apache-2.0 */
/* Applications whose input faults in (the paper's BFS, SpMV, SSSP, BPT and XSBench): what they share.
 * Device code. Each worker has a demand buffer of its own with the whole input and computes the whole
 * answer; a page is asked for before it is first read. In a quiet round all pages are there from the
 * start, so that the work is the same and the requests are not. */
#ifndef WORKLOAD_SSR_APP_DEV_H
#define WORKLOAD_SSR_APP_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "ssr.dev.h"
#endif

#define SSR_PAGE_BYTES 4096ull

/* Behind the control words in the global block. Constant. Arrays are named by their byte offsets in the
 * input, each of them aligned to its elements. */
struct ssr_input {
	uint64_t bytes;	 /* of the input: whole pages */
	uint64_t at;	 /* of worker 0's buffer, from the block; worker w's is w * bytes further */
	uint64_t n, m;	 /* vertices and edges, rows and entries, keys and nodes */
	uint64_t first, second, third;
	uint64_t lookups, levels;
	uint64_t pad[7];
};

/* Behind a worker's tally: a bit per page of its buffer, then `scratch` words of the job. */
struct ssr_reader {
	struct loom_ctx *c;
	const struct ssr_input *in;
	struct ssr_tally *tally;
	char *data;
	uint64_t *present;
	uint32_t *scratch;
	uint32_t grant;
	int failed; /* stopped, or refused: what is read from here on is 0 */
};

LOOM_FN const struct ssr_input *ssr_input(const struct loom_ctx *c)
{
	return (const struct ssr_input *)(ssr_control(c) + 1);
}

LOOM_FN void ssr_ask(struct ssr_reader *x, uint32_t service, uint64_t offset, uint64_t bytes)
{
	struct loom_request r = {0};
	uint64_t id;
	int64_t got = 0;
	r.service = service;
	r.buffer = x->grant;
	r.offset = offset;
	r.bytes = bytes;
	int rc = LOOM_CALL(qos, request, x->c, &r, &id);
	if (!rc)
		rc = LOOM_CALL(qos, wait, x->c, id, 0, &got);
	x->failed |= rc != 0 || got < 0;
	if (rc != LOOM_EINTR && (rc || got < 0))
		ssr_count_wrong(x->tally, service, rc ? rc : got);
	x->tally->posted++;
	loom_store_relaxed_sys(&x->tally->done, x->tally->done + 1);
}

/* 1 when the page is there. */
LOOM_FN int ssr_touch(struct ssr_reader *x, uint64_t offset)
{
	uint64_t page = offset / SSR_PAGE_BYTES, bit = 1ull << (page & 63);
	if (x->present[page / 64] & bit)
		return 1;
	if (!x->failed)
		ssr_ask(x, LOOM_SERVICE_FAULT, page * SSR_PAGE_BYTES, SSR_PAGE_BYTES);
	if (x->failed)
		return 0;
	x->present[page / 64] |= bit;
	return 1;
}

LOOM_FN uint32_t ssr_u32(struct ssr_reader *x, uint64_t array, uint64_t i)
{
	uint64_t offset = array + i * sizeof(uint32_t);
	return ssr_touch(x, offset) ? *(const uint32_t *)(x->data + offset) : 0;
}

LOOM_FN uint64_t ssr_u64(struct ssr_reader *x, uint64_t array, uint64_t i)
{
	uint64_t offset = array + i * sizeof(uint64_t);
	return ssr_touch(x, offset) ? *(const uint64_t *)(x->data + offset) : 0;
}

LOOM_FN void ssr_begin_round(struct ssr_reader *x, int quiet)
{
	uint64_t words = (x->in->bytes / SSR_PAGE_BYTES + 63) / 64;
	/* First of all, too: a device that maps the memory into a process of its own has touched every page. */
	if (!quiet || !x->tally->rounds)
		ssr_ask(x, LOOM_SERVICE_EVICT, 0, x->in->bytes);
	if (quiet && !x->failed)
		ssr_ask(x, LOOM_SERVICE_FAULT, 0, x->in->bytes);
	for (uint64_t i = 0; i < words; i++)
		x->present[i] = quiet && !x->failed ? ~0ull : 0;
}

/* Mixes one number into an answer; the host does the same. */
LOOM_FN uint64_t ssr_mix(uint64_t sum, uint64_t value)
{
	return (sum ^ value) * 0x100000001b3ull + 0x9e3779b9ull;
}

/* The queries of the two look-up jobs: the same on both sides. */
LOOM_FN uint64_t ssr_query(uint64_t worker, uint64_t i)
{
	uint64_t x = (worker << 32) + i + 1;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x ^ x >> 31;
}

/* The kernel of every application: `job` computes one round's answer. */
LOOM_FN void ssr_app_run(struct loom_ctx *c, uint64_t (*job)(struct ssr_reader *x))
{
	struct ssr_control *k = ssr_control(c);
	const struct ssr_plan *plan = ssr_plan(c);
	const struct ssr_input *in = ssr_input(c);
	struct ssr_tally *t = ssr_tally(c);
	if (c->lane)
		return;
	uint64_t words = (in->bytes / SSR_PAGE_BYTES + 63) / 64, cpu = ssr_own_clock();
	struct ssr_reader x = {.c = c,
			       .in = in,
			       .tally = t,
			       .data = (char *)k + in->at + c->worker * in->bytes,
			       .present = (uint64_t *)(t + 1),
			       .scratch = (uint32_t *)((uint64_t *)(t + 1) + words),
			       .grant = ssr_number_of(c, plan)};
	ssr_begin(t);
	do {
		ssr_begin_round(&x, loom_load_relaxed_sys(&k->quiet) != 0);
		uint64_t sum = job(&x);
		if (x.failed)
			break;
		if (t->rounds && sum != t->sum)
			ssr_count_wrong(t, LOOM_SERVICES, (int64_t)sum);
		t->sum = sum;
		t->rounds++;
	} while (plan->endless && !loom_load_relaxed_sys(&k->quit) && !loom_stopped(c));
	t->cpu_ns = ssr_own_clock() - cpu;
}

#endif
