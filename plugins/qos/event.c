/* SPDX-License-Identifier: Apache-2.0 */
/* Wake-ups between threads of the path, and the choice of the top half that polls the rings. */
#include "lib/eventcount.h"
#include "service.h"

/* Returns the vector of the top half that polls the rings: the first vector that takes interrupts. Only one top half polls,
 * because several would take CPU time and locks from the threads that fill and serve. When steering selects other vectors, it
 * rings all doorbells, so that the next poller starts. */
uint32_t qos_poller(const struct service *s)
{
	uint64_t route = __atomic_load_n(&s->head->route, __ATOMIC_RELAXED);
	return route ? (uint32_t)__builtin_ctzll(route) : 0;
}

int qos_is_polled(const struct service *s)
{
	return s->path.notify >= LOOM_QOS_POLL;
}

/* If policies mask interrupts, the serving thread also reads the rings, and a poller watches over it. */
int qos_is_spread(const struct service *s)
{
	return s->path.notify == LOOM_QOS_INTERRUPT && !s->path.mask &&
	       !__atomic_load_n(&s->interrupts_failed, __ATOMIC_ACQUIRE);
}

void qos_event_notify(struct qos_event *e)
{
	/* Release: pairs with the loads in qos_event_wait(). */
	__atomic_fetch_add(&e->rings, 1, __ATOMIC_ACQ_REL);
	eventcount_notify_private(&e->rings, &e->waiting);
}

int qos_event_wait(struct service *s, struct qos_event *e)
{
	uint32_t seen = e->seen;
	if (__atomic_load_n(&e->rings, __ATOMIC_ACQUIRE) == seen) {
		(void)eventcount_enter_single(&e->rings, &e->waiting);
		while (__atomic_load_n(&e->rings, __ATOMIC_ACQUIRE) == seen && !__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE))
			eventcount_sleep_private(&e->rings, seen, 0);
		eventcount_leave_single(&e->waiting);
	}
	e->seen = __atomic_load_n(&e->rings, __ATOMIC_ACQUIRE);
	return !__atomic_load_n(&s->stop, __ATOMIC_ACQUIRE);
}
