/* SPDX-License-Identifier: Apache-2.0 */
/* Completion of requests: stores the answer and counts it in the statistics. */
#include <errno.h>

#include "service.h"

/* Stores the answer. From then on the worker may use the slot again, and the bottom half may use the call again. */
static void answer(struct qos_call *call, int64_t result)
{
	struct qos_ring *from = call->ring;
	uint64_t *at = &from->answer[call->position & (from->slots - 1)];
	uint64_t word = (uint64_t)result << 1 | qos_phase(call->position, from->shift);
	/* This store precedes the answer. If the answer came first, a worker could see the answer and post the next request,
	 * and the bottom half would find the call busy. Release: pairs with the acquire in queue_one(), after which the bottom
	 * half writes the next call. */
	__atomic_store_n(&call->busy, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&from->served, from->served + 1, __ATOMIC_RELEASE); /* read by qos_path_quiesce() */
	/* Release: pairs with the acquires in qos_await() and qos_has_room(). */
	__atomic_store_n(at, word, __ATOMIC_RELEASE);
}

void qos_complete(struct service *s, struct qos_tenant *tenant, struct qos_call *call, int64_t result,
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
		qos_histogram_add(&tenant->latency, now_ns - posted_ns);
}

void qos_drop_queued(struct service *s)
{
	for (uint32_t i = 0; i < s->tenants; i++)
		for (struct qos_call *call; (call = qos_queue_take(&s->tenant[i].queue)); s->dropped++)
			answer(call, -ECANCELED);
}
