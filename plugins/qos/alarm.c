/* SPDX-License-Identifier: Apache-2.0 */
/* Interrupts of GPUs. A GPU's workers count what they post; for each GPU a thread, its interrupt controller, sleeps until
 * they have posted more than was read, and rings the door of the top half that looks for all.
 *
 * No wake-up is lost, whatever the order in which the host sees counts and requests, because nobody compares two
 * looks: what is waited for is one more than what was read, and the count gets there. A count that comes before its request
 * wakes the host in vain, which then arms again. tests/models/alarm.pml. */
#include <stddef.h>
#include <string.h>

#include "service.h"

int ssr_alarms_open(struct service *s, const struct loom_layout *layout, struct loom_error *err)
{
	int rc = 0;
	s->deaf = 0;
	s->devices = layout->devices;
	memset(s->interrupt, 0, sizeof(s->interrupt));
	if (s->path.notify < LOOM_QOS_INTERRUPT)
		return 0;
	for (uint32_t d = 0; d < layout->devices && !rc; d++) {
		const struct loom_device_shape *has = &layout->device[d];
		if (has->kind != LOOM_ON_GPU)
			return LOOM_FAIL(s->host, err, LOOM_ENOTSUP,
					 "%s: notify = %s is for GPUs alone, and %s is none: say eventfd, futex or poll", s->name,
					 s->path.notify == LOOM_QOS_HYBRID ? "hybrid" : "interrupt", has->name);
		if (!LOOM_HAS(layout, interrupts) || !layout->interrupts)
			return LOOM_FAIL(s->host, err, LOOM_ENOTSUP, "%s: no interrupts here: say notify = poll", s->name);
		rc = layout->interrupts->open(layout->interrupts, d, LOOM_QOS, offsetof(struct ssr_near, posted), &s->interrupt[d].interrupt, err);
	}
	return rc;
}

void ssr_alarms_wake(struct service *s)
{
	for (uint32_t d = 0; d < s->devices; d++) {
		if (s->interrupt[d].interrupt)
			s->interrupt[d].interrupt->wake(s->interrupt[d].interrupt);
		ssr_bell_ring(&s->interrupt[d].armed);
	}
}

void ssr_alarms_close(struct service *s)
{
	for (uint32_t d = 0; d < s->devices; d++) {
		if (s->interrupt[d].interrupt)
			s->interrupt[d].interrupt->close(s->interrupt[d].interrupt);
		s->interrupt[d].interrupt = NULL;
	}
}

void ssr_alarms_arm(struct service *s)
{
	for (uint32_t d = 0; d < s->devices; d++)
		if (s->interrupt[d].interrupt)
			ssr_bell_ring(&s->interrupt[d].armed);
}

/* Counted and heard, even by one who is about to sleep. */
static void ring_watcher(struct service *s)
{
	struct ssr_door *d = &s->head->door[ssr_watcher(s)];
	__atomic_fetch_add(&d->interrupts, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&d->rung, 1, __ATOMIC_ACQ_REL);
	loom_futex_wake(&d->rung, 1, 0);
}

void ssr_controller(struct ssr_thread *t)
{
	struct service *s = t->s;
	struct ssr_alarm *a = &s->interrupt[t->vector];
	struct loom_error err = {0};
	while (ssr_bell_wait(s, &a->armed)) {
		if (__atomic_load_n(&s->deaf, __ATOMIC_ACQUIRE))
			continue; /* until the end: the accounts know this thread */
		/* After it was armed: what is read later is not waited for again. */
		uint64_t taken = __atomic_load_n(&a->taken, __ATOMIC_ACQUIRE);
		int rc = a->interrupt->wait(a->interrupt, taken + 1, &err);
		ssr_charge(t, SSR_CONTROLLER);
		if (rc && rc != LOOM_EINTR && !__atomic_exchange_n(&s->deaf, 1, __ATOMIC_ACQ_REL))
			LOOM_LOG(s->host, LOOM_LOG_WARN, s->name, "%s; the host polls", err.text);
		ring_watcher(s);
	}
}
