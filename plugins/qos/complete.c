/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a request, and what is counted with it. */
#include <errno.h>

#include "service.h"

/* Gives the slot to its worker and the call to the bottom half again. */
static void answer(struct ssr_call *call, int64_t result)
{
	struct ssr_source *from = call->source;
	uint64_t *at = &from->answer[call->position & (from->slots - 1)];
	uint64_t word = (uint64_t)result << 1 | ssr_lap(call->position, from->shift);
	/* Before the slot is free: else a worker that fills it at once would find its call taken. Release:
	 * pairs with the acquire of the bottom half, which writes the next call there. */
	__atomic_store_n(&call->busy, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&from->served, from->served + 1, __ATOMIC_RELEASE); /* ssr_path_quiet() reads it */
	/* Release: pairs with the acquire of the worker that waits, and of the one that posts next. */
	__atomic_store_n(at, word, __ATOMIC_RELEASE);
}

void ssr_complete(struct service *s, struct ssr_tenant *tenant, struct ssr_call *call, int64_t result,
		  uint64_t now_ns)
{
	uint64_t posted_ns = call->posted_ns;
	answer(call, result);
	s->served++;
	tenant->served++;
	if (result < 0) {
		s->errors++;
		tenant->errors++;
	}
	if (posted_ns && now_ns > posted_ns)
		ssr_histogram_add(&tenant->latency, now_ns - posted_ns);
}

void ssr_drop(struct service *s)
{
	for (uint32_t i = 0; i < s->tenants; i++)
		for (struct ssr_call *call; (call = ssr_queue_take(&s->tenant[i].queue)); s->dropped++)
			answer(call, -ECANCELED);
}
