/* SPDX-License-Identifier: Apache-2.0 */
/* Waiters next to a computation. The first worker of the first device publishes items to the waiters of the second
 * device, one after the other. It measures the time from a publication until the resumed consumer has acknowledged
 * the item. Other workers of the second device compute. Each group of its workers, such as the warps of a GPU's
 * block, has waiting and computing workers. Device code. */
#ifndef RESUME_DEV_H
#define RESUME_DEV_H

#ifndef LOOM_DEVICE_COMPILE
#include "exchange.dev.h"
#endif

enum { RESUME_ROLES = 0, RESUME_RECEIVED, RESUME_NS, RESUME_RESULTS };
enum { RESUME_WORDS = 0, RESUME_WAITERS, RESUME_ROUNDS, RESUME_ONE };
enum { RESUME_IDLE = 0, RESUME_SENDS, RESUME_WAITS, RESUME_COMPUTES };
/* Number of chains of a computing worker, and their steps. On an H200, four warps with two chains each saturate a
 * scheduler, but each warp stalls from time to time. Warps with four chains never stall, and keep other warps from
 * issuing for up to 10 us at a time. */
enum { RESUME_CHAINS = 2, RESUME_STEPS = 4000 };
/* Longest random pause before an item. The pause keeps items and polls from synchronising. */
enum { RESUME_JITTER_NS = 4096 };

struct resume_role {
	uint32_t what, number; /* `number`: index of a waiter */
};
/* Number of items that a consumer has received. The consumer writes it and its producer reads it. Behind the elements
 * of all waiters there is one more, which is 1 when a worker has finished computing. */
struct resume_received {
	uint64_t items, pad[7];
};
struct resume_result {
	uint64_t begin_ns, end_ns, wrong;
	uint64_t beside; /* index of the last item sent while all workers still computed */
	double sum;
};

LOOM_FN uint64_t resume_value(uint32_t tag, uint64_t place)
{
	return (tag + 1) * 0x9e3779b97f4a7c15ull + place;
}

/* Returns how many of `all` items waiter `number` of `waiters` gets. */
LOOM_FN uint32_t resume_items(uint32_t all, uint32_t number, uint32_t waiters)
{
	return all / waiters + (number < all % waiters);
}

LOOM_FN int resume_send(struct loom_ctx *c, uint32_t tag, uint64_t words, uint32_t waiters, uint64_t *ns)
{
	struct resume_received *received = (struct resume_received *)ex_at(c, RESUME_RECEIVED) + tag % waiters;
	uint64_t begin = 0;
	void *at;
	int rc = ex_reserve(c, 0, tag, &at);
	if (rc)
		return rc;
	EX_EACH(c, i, 0, words)
		((uint64_t *)at)[i] = resume_value(tag, i);
	ex_work(c, ex_head(c)->work_p);
	if (c->lane == 0) {
		begin = loom_clock_ns(c) + loom_random_below(c, RESUME_JITTER_NS);
		while (loom_clock_ns(c) < begin)
			loom_pause(c);
		begin = loom_clock_ns(c);
	}
	rc = ex_send(c, 0, tag, NULL, 8 * words);
	if (c->lane == 0 && !rc) {
		/* Relaxed, because no other data are read after it. */
		while (loom_load_relaxed_sys(&received->items) != tag / waiters + 1u && !loom_stopped(c))
			loom_pause(c);
		*ns = loom_clock_ns(c) - begin;
	}
	return rc;
}

/* Waits for item `i` of waiter `number`. */
LOOM_FN int resume_wait(struct loom_ctx *c, uint32_t i, uint32_t number, uint64_t words, uint32_t waiters,
			uint64_t *wrong)
{
	struct resume_received *received = (struct resume_received *)ex_at(c, RESUME_RECEIVED) + number;
	uint32_t tag = i * waiters + number;
	const void *data;
	/* ex_recv() would update the log before the acknowledgement below. */
	int rc = LOOM_CALL(sync, wait, c, 0, tag, 0, &data);
	if (rc)
		return ex_fail(c, rc, tag);
	if (c->lane == 0)
		loom_store_relaxed_sys(&received->items, (uint64_t)i + 1);
	EX_EACH(c, w, 0, words)
		*wrong += ((const uint64_t *)data)[w] != resume_value(tag, w);
	ex_release(c, 0, tag);
	return 0;
}

/* Returns the sum of chains of multiplications and additions, which is exact. `one` is 1, but the compiler does not
 * know it. */
LOOM_FN double resume_compute(struct loom_ctx *c, uint64_t rounds, float one)
{
	double sum = 0;
	for (uint64_t r = 0; r < rounds && !(r % 64 == 0 && loom_stopped(c)); r++) {
		float x[RESUME_CHAINS];
		for (uint32_t i = 0; i < RESUME_CHAINS; i++)
			x[i] = (float)i;
		for (uint32_t s = 0; s < RESUME_STEPS; s++)
			for (uint32_t i = 0; i < RESUME_CHAINS; i++)
				x[i] = x[i] * one + one;
		for (uint32_t i = 0; i < RESUME_CHAINS; i++)
			sum += x[i];
	}
	return sum;
}

LOOM_FN void workload_resume_kernel(struct loom_ctx *c)
{
	const struct ex_head *h = ex_head(c);
	const struct resume_role role = ((const struct resume_role *)ex_at(c, RESUME_ROLES))[c->worker];
	struct resume_result *result = (struct resume_result *)ex_at(c, RESUME_RESULTS) + c->worker;
	uint64_t words = h->param[RESUME_WORDS], wrong = 0;
	uint32_t waiters = (uint32_t)h->param[RESUME_WAITERS];
	struct resume_received *received = (struct resume_received *)ex_at(c, RESUME_RECEIVED);
	double sum = 0;
	int rc = 0;
	if (role.what == RESUME_IDLE)
		return;
	if (c->lane == 0)
		result->begin_ns = loom_clock_ns(c);
	if (role.what == RESUME_SENDS)
		for (uint32_t i = 0; i < h->iterations && !rc; i++) {
			if (c->lane == 0 && !loom_load_relaxed_sys(&received[waiters].items))
				result->beside = i;
			rc = resume_send(c, i, words, waiters, (uint64_t *)ex_at(c, RESUME_NS) + i);
		}
	else if (role.what == RESUME_WAITS)
		for (uint32_t i = 0; i < resume_items(h->iterations, role.number, waiters) && !rc; i++)
			rc = resume_wait(c, i, role.number, words, waiters, &wrong);
	else {
		sum = resume_compute(c, h->param[RESUME_ROUNDS], (float)h->param[RESUME_ONE]);
		if (c->lane == 0)
			loom_store_relaxed_sys(&received[waiters].items, (uint64_t)1);
	}
	if (wrong)
		loom_fetch_add_relaxed_dev(&result->wrong, wrong);
	if (c->lane == 0) {
		result->end_ns = loom_clock_ns(c);
		result->sum = sum;
	}
}

#endif
