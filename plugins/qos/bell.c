/* SPDX-License-Identifier: Apache-2.0 */
/* How threads of the path wake each other, and who of them looks for all. */
#include "lib/eventcount.h"
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
	/* Release: pairs with the loads in ssr_bell_wait(). */
	__atomic_fetch_add(&b->rung, 1, __ATOMIC_ACQ_REL);
	eventcount_notify_private(&b->rung, &b->waiting);
}

int ssr_bell_wait(struct service *s, struct ssr_bell *b)
{
	uint32_t heard = b->heard;
	if (__atomic_load_n(&b->rung, __ATOMIC_ACQUIRE) == heard) {
		(void)eventcount_enter_single(&b->rung, &b->waiting);
		while (__atomic_load_n(&b->rung, __ATOMIC_ACQUIRE) == heard && !__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
			eventcount_sleep_private(&b->rung, heard, 0);
		eventcount_leave_single(&b->waiting);
	}
	b->heard = __atomic_load_n(&b->rung, __ATOMIC_ACQUIRE);
	return !__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE);
}
