/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts of GPUs. A GPU's workers count the requests that they post. Each GPU has a thread, its interrupt controller, which
 * sleeps until the count exceeds the number of requests read. Then it rings the doorbell of a top half.
 *
 * No wake-up is lost, even if the host sees a count before its request or after it. The thread waits until the count is one
 * more than the number of requests read, which happens if a request is unread. If the host sees a count before its request,
 * there is a spurious wake-up, after which the host arms the interrupt again. Model: tests/models/qos_interrupt.pml. */
#include <stddef.h>
#include <string.h>

#include "service.h"

int qos_interrupts_open(struct service *s, const struct loom_layout *layout, struct loom_error *err)
{
	int rc = 0;
	s->interrupts_failed = 0;
	s->devices = layout->devices;
	memset(s->interrupt, 0, sizeof(s->interrupt));
	if (s->path.notify < LOOM_QOS_INTERRUPT)
		return 0;
	for (uint32_t d = 0; d < layout->devices && !rc; d++) {
		const struct loom_device_shape *has = &layout->device[d];
		if (has->kind != LOOM_ON_GPU)
			return LOOM_FAIL(
			    s->host, err, LOOM_ENOTSUP,
			    "%s: notify = %s is for GPUs only, and %s is not a GPU: set eventfd or poll",
			    s->name, s->path.notify == LOOM_QOS_HYBRID ? "hybrid" : "interrupt", has->name);
		if (!LOOM_HAS(layout, interrupts) || !layout->interrupts)
			return LOOM_FAIL(s->host, err, LOOM_ENOTSUP,
					 "%s: this stack has no interrupts: set notify = poll", s->name);
		rc =
		    layout->interrupts->open(layout->interrupts, d, LOOM_QOS, offsetof(struct qos_device_block, posted),
					     &s->interrupt[d].interrupt, err);
	}
	return rc;
}

void qos_interrupts_wake(struct service *s)
{
	for (uint32_t d = 0; d < s->devices; d++) {
		if (s->interrupt[d].interrupt)
			s->interrupt[d].interrupt->wake(s->interrupt[d].interrupt);
		qos_event_notify(&s->interrupt[d].armed);
	}
}

void qos_interrupts_close(struct service *s)
{
	for (uint32_t d = 0; d < s->devices; d++) {
		if (s->interrupt[d].interrupt)
			s->interrupt[d].interrupt->close(s->interrupt[d].interrupt);
		s->interrupt[d].interrupt = NULL;
	}
}

void qos_interrupts_arm(struct service *s)
{
	for (uint32_t d = 0; d < s->devices; d++)
		if (s->interrupt[d].interrupt)
			qos_event_notify(&s->interrupt[d].armed);
}

/* Rings the doorbell of a top half: of the cores that take interrupts in turn, or of the poller. Increments `rings` before the
 * wake-up, so that a top half that is about to sleep does not miss the ring. */
static void ring(struct service *s)
{
	struct qos_doorbell *d = qos_is_spread(s) ? qos_doorbell(s->head) : &s->head->doorbell[qos_poller(s)];
	__atomic_fetch_add(&d->interrupts, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&d->rings, 1, __ATOMIC_ACQ_REL);
	loom_futex_wake(&d->rings, 1, 0);
}

void qos_controller(struct qos_thread *t)
{
	struct service *s = t->s;
	struct qos_device_interrupt *a = &s->interrupt[t->vector];
	struct loom_error err = {0};
	while (qos_event_wait(s, &a->armed)) {
		if (__atomic_load_n(&s->interrupts_failed, __ATOMIC_ACQUIRE))
			continue; /* the thread stays until the end, because its CPU time is read at the end */
		/* The load follows the notification by qos_interrupts_arm(), so it sees the requests read before. */
		uint64_t taken = __atomic_load_n(&a->taken, __ATOMIC_ACQUIRE);
		int rc = a->interrupt->wait(a->interrupt, taken + 1, &err);
		qos_charge(t, QOS_CONTROLLER);
		if (rc && rc != LOOM_EINTR && !__atomic_exchange_n(&s->interrupts_failed, 1, __ATOMIC_ACQ_REL))
			LOOM_LOG(s->host, LOOM_LOG_WARN, s->name, "%s; the host polls", err.text);
		ring(s);
	}
}
