/* SPDX-License-Identifier: Apache-2.0 */
/* Alarms for policies: from a word in a block to the device that has it. */
#include "stack/stack.h"

static int open_alarm(const struct loom_alarms *alarms, uint32_t device, uint32_t kind, uint64_t offset,
		      struct loom_alarm **alarm, struct loom_error *err)
{
	struct loom_stack *s = alarms->stack;
	const struct loom__device *d = &s->device[device];
	for (size_t i = 0; i < s->policies; i++) {
		const struct loom__policy *p = &s->policy[i];
		if (p->choice->plugin != s->selected[kind] || !p->on_device[device])
			continue;
		if (!LOOM_HAS(d->ops, alarm))
			return LOOM__FAIL(err, LOOM_ENOTSUP, "%s has no interrupts", s->shape[device].name);
		loom_ref at = p->on_device[device] + offset;
		return d->ops->alarm(d->self, &s->segment[LOOM_REF_SEGMENT(at)], LOOM_REF_OFFSET(at), alarm, err);
	}
	return LOOM__FAIL(err, LOOM_EPLUGIN, "an alarm in a block that there is not");
}

void loom__alarms(struct loom_stack *s)
{
	s->alarms = (struct loom_alarms){.size = sizeof(s->alarms), .stack = s, .open = open_alarm};
	s->layout.alarms = &s->alarms;
}
