/* SPDX-License-Identifier: Apache-2.0 */
/* How threads of the path wake each other, and who of them looks for all. */
#include "service.h"

/* The first of the cores that steering leaves looks for all: were there more, they would take CPU time and locks from
 * whoever fills and serves. Whoever steers elsewhere rings all doors. */
uint32_t ssr_watcher(const struct service *s)
{
	uint64_t route = __atomic_load_n(&s->head->route, __ATOMIC_RELAXED);
	return route ? (uint32_t)__builtin_ctzll(route) : 0;
}

int ssr_is_watched(const struct service *s)
{
	return s->path.notify >= LOOM_QOS_POLL;
}

void ssr_bell_ring(struct ssr_bell *b)
{
	/* Acq_rel: what the ringer did before is seen by the one that takes the ring. */
	if (!__atomic_exchange_n(&b->rung, 1, __ATOMIC_ACQ_REL))
		loom_futex_wake(&b->rung, 1, FUTEX_PRIVATE_FLAG);
}

int ssr_bell_wait(struct service *s, struct ssr_bell *b)
{
	while (!__atomic_exchange_n(&b->rung, 0, __ATOMIC_ACQ_REL)) {
		if (__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
			return 0;
		loom_futex_sleep(&b->rung, 0, 0, FUTEX_PRIVATE_FLAG);
	}
	return !__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE);
}
