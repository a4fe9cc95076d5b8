/* SPDX-License-Identifier: Apache-2.0 */
/* The coherence probe (MGWS thesis, 5.9), which runs before a stack is used. Each pair of devices passes a word to and
 * fro by atomics, in each kind of memory that the transport provides. If atomics fail, all devices count as
 * non-coherent (loom_layout.noncoherent), and are probed again by loads and stores. */
#include <stdlib.h>
#include <unistd.h>

#include "gpuloom/dev/probe.h"
#include "stack/stack.h"

/* No probe fails before this time, because each exchange may take a time slice if other programs use the cores. If a
 * pair has exchanged some words when the time ends, the probe is repeated with twice the time, up to three times. If it
 * has exchanged none, the probe is repeated once on a busy machine, where a device may not have run at all. */
#define PROBE_TIMEOUT_NS 10000000000ull

/* Returns 1 if more threads want to run than there are processors. */
static int is_busy(void)
{
	double load = 0;
	return getloadavg(&load, 1) == 1 && load > (double)sysconf(_SC_NPROCESSORS_ONLN);
}

/* A memory in which two devices see different values. */
struct finding {
	uint32_t segment, a, b; /* index of the segment (0: no finding); indices of the two devices */
	const char *what;
};

static int probe_once(struct loom_stack *s, uint32_t segment, uint32_t a, uint32_t b, uint64_t timeout_ns,
		      struct loom_error *err)
{
	struct loom_probe *p = loom__host_at(s, LOOM_REF(segment, 0));
	*p = (struct loom_probe){.a = a, .b = b, .noncoherent = s->layout.noncoherent};
	static const uint64_t none[LOOM_KINDS_MAX]; /* addresses and sizes of blocks that there are not */
	struct loom_launch each[LOOM_MAX_DEVICES], launch = {.size = sizeof(launch),
				     .entry = LOOM_ENTRY_PROBE,
				     .layout = &s->layout,
				     .segment = s->memory.segment,
				     .segments = s->memory.segments + 1,
				     .ctl = s->ctl_ref,
				     .counters = s->counters_ref,
				     .probe = LOOM_REF(segment, 0),
				     .global = none,
				     .on_device = none,
				     .registry = none,
				     .local_bytes = none};
	loom__sample_reset(s);
	int rc = loom__images_copy(s, 1, err);
	uint32_t started = 0;
	for (; !rc && started < s->layout.devices; started += !rc) {
		each[started] = launch; /* a device may read its own until retire() has returned */
		each[started].device = started;
		rc = LOOM__OP(s->device[started].choice, "launch",
			      s->device[started].ops->launch(s->device[started].self, &each[started], err), err);
	}
	rc = rc ? rc : loom__sample_begin(s, 0, timeout_ns, err);
	rc = rc ? rc : loom__sample_end(s, UINT64_MAX, err);
	__atomic_store_n(&s->ctl->phase, LOOM_PHASE_RETIRE, __ATOMIC_RELEASE);
	for (uint32_t d = 0; d < started; d++) {
		int ended = s->device[d].ops->retire(s->device[d].self, PROBE_TIMEOUT_NS, rc ? NULL : err);
		rc = rc ? rc : ended;
	}
	rc = rc ? rc : loom__images_copy(s, 0, err);
	return rc;
}

static int probe_pair(struct loom_stack *s, uint32_t segment, uint32_t a, uint32_t b, struct finding *found,
		      struct loom_error *err)
{
	const struct loom_probe *p = loom__host_at(s, LOOM_REF(segment, 0));
	uint64_t timeout_ns = PROBE_TIMEOUT_NS;
	if (!s->layout.noncoherent && s->memory.segment[segment].memory->device < 0 &&
	    /* the probe may not detect that a link lacks atomics */
	    (s->shape[a].flags | s->shape[b].flags) & LOOM_SHAPE_NO_LINK_ATOMICS) {
		*found = (struct finding){segment, a, b, "a link has no atomic read-modify-writes"};
		return 0;
	}
	int rc = probe_once(s, segment, a, b, timeout_ns, err);
	if (rc == LOOM_ETIMEDOUT && p->reached != LOOM_PROBE_ROUNDS && is_busy())
		rc = probe_once(s, segment, a, b, timeout_ns *= 2, err);
	/* If a device has seen changes of the other device, the pair probably only needs more time. */
	while (rc == LOOM_ETIMEDOUT && p->reached != LOOM_PROBE_ROUNDS && (p->noncoherent ? p->back > 1 : p->word > 2) &&
	       timeout_ns < 8 * PROBE_TIMEOUT_NS)
		rc = probe_once(s, segment, a, b, timeout_ns *= 2, err);
	if (rc && rc != LOOM_ETIMEDOUT)
		return rc;
	/* If the time ran out before the last word was exchanged, the memory is incoherent, which is a finding. If it
	 * ran out later, that is an error. */
	if (p->reached != LOOM_PROBE_ROUNDS)
		*found = (struct finding){segment, a, b, "one device never saw the other's change"};
	else if (!p->noncoherent && (p->sum != 2ull * LOOM_PROBE_ADDS || p->swaps != 2 * LOOM_PROBE_ADDS))
		*found = (struct finding){segment, a, b, "additions or compare-and-swaps were lost"};
	else
		return rc;
	return 0;
}

/* Probes all pairs of devices in all kinds of memory, up to the first finding. */
static int probe_all(struct loom_stack *s, struct finding *found, struct loom_error *err)
{
	uint32_t devices = s->layout.devices, first;
	*found = (struct finding){0};
	struct loom_segment_want want[LOOM_MAX_DEVICES + 2];
	want[0] = (struct loom_segment_want){
		.bytes = sizeof(struct loom_ctl) + s->layout.workers * sizeof(struct loom_counters),
		.owner = -1,
		.flags = LOOM_MEMORY_HOST};
	for (uint32_t i = 0; i <= devices; i++)
		want[i + 1] = (struct loom_segment_want){.bytes = sizeof(struct loom_probe),
							 .owner = (int32_t)i - 1};
	int rc = loom__segments_add(s, want, devices + 2, &first, err);
	if (rc)
		return rc;
	s->ctl_ref = LOOM_REF(first, 0);
	s->counters_ref = LOOM_REF(first, sizeof(struct loom_ctl));
	s->ctl = loom__host_at(s, s->ctl_ref);
	for (uint32_t i = 0; !rc && i <= devices; i++) {
		if (s->memory.segment[first + 1 + i].flags & LOOM_MEMORY_PRIVATE)
			continue;
		int alone = 1; /* 0: an earlier segment is in the same memory, for which one probe suffices */
		for (uint32_t j = 0; j < i; j++)
			alone &= s->memory.segment[first + 1 + i].memory != s->memory.segment[first + 1 + j].memory;
		for (uint32_t a = 0; !rc && alone && a + 1 < devices; a++)
			for (uint32_t b = a + 1; !rc && !found->segment && b < devices; b++)
				rc = probe_pair(s, first + 1 + i, a, b, found, err);
	}
	int32_t home = found->segment ? s->memory.segment[found->segment].memory->device : -1;
	if (!rc && found->segment)
		rc = LOOM__FAIL(err, LOOM_EUNAVAIL, "transport %s: atomics of %s and %s are not coherent in %s memory: %s",
				loom__plan_get(&s->plan, LOOM_TRANSPORT)->label, s->shape[found->a].name, s->shape[found->b].name,
				home < 0 ? "the host's" : s->shape[home].name, found->what);
	loom__segments_release_last(s);
	s->ctl = NULL;
	return rc;
}

/* Returns 1 if there is a CPU, and a device whose link to the host has no atomic read-modify-writes. The probe may fail
 * to detect such a link. */
static int link_is_plain(const struct loom_layout *layout)
{
	int cpu = 0, plain = 0;
	for (uint32_t d = 0; d < layout->devices; d++) {
		cpu |= layout->device[d].kind != LOOM_ON_GPU;
		plain |= (layout->device[d].flags & LOOM_SHAPE_NO_LINK_ATOMICS) != 0;
	}
	return cpu && plain;
}

int loom__stack_probe(struct loom_stack *s, struct loom_error *err)
{
	struct finding found;
	struct loom_error why;
	if (s->layout.devices < 2)
		return 0;
	s->layout.noncoherent = link_is_plain(&s->layout) ||
			  (LOOM_HAS(s->transport, noncoherent) && s->transport->noncoherent(s->transport_self, &s->devices));
	int rc = probe_all(s, &found, &why);
	if (rc && found.segment && !s->layout.noncoherent) {
		s->layout.noncoherent = 1;
		LOOM_LOG(&s->host.table, LOOM_LOG_WARN, "gpuloom", "%s; devices are treated as non-coherent: tasks are exchanged through mailboxes", why.text);
		rc = probe_all(s, &found, &why);
	}
	if (!rc)
		s->host.table.choice(&s->host.table, "transport.atomics",
				   s->layout.noncoherent ? "within a device: tasks are exchanged through mailboxes" : "between devices");
	if (rc && found.segment)
		return LOOM__FAIL(err, rc, "%s; choose another transport or other devices", why.text);
	if (rc && err)
		*err = why;
	return rc;
}
