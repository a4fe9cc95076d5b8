/* SPDX-License-Identifier: Apache-2.0 */
#include "run/engine.h"

int loom__energy(const struct loom_stack *s, double *joules, struct loom_error *err)
{
	uint64_t source[LOOM_MAX_DEVICES];
	double sum = 0, one = 0;
	if (s->layout.ranks > 1)
		return LOOM__FAIL(err, LOOM_ENOTSUP,
				  "[run] joules = yes: the counters of other ranks are not read: set ranks = 1, or joules = no");
	for (uint32_t d = 0; d < s->layout.devices; d++) {
		const struct loom__device *device = &s->device[d];
		if (!LOOM_HAS(device->hardware, energy))
			return LOOM__FAIL(err, LOOM_ENOTSUP,
					  "[run] joules = yes: %s has no energy counter: set joules = no", s->shape[d].name);
		int rc = device->hardware->energy(device->self, &source[d], &one, err);
		if (rc)
			return rc;
		uint32_t first = 0; /* the first device that has this counter */
		while (source[first] != source[d])
			first++;
		sum += first == d ? one : 0;
	}
	*joules = sum;
	return 0;
}

int loom__throttled(const struct loom_stack *s, uint64_t ns)
{
	int throttled = 0;
	for (uint32_t d = 0; d < s->layout.devices; d++)
		if (LOOM_HAS(s->device[d].hardware, throttled))
			throttled |= s->device[d].hardware->throttled(s->device[d].self, ns);
	return throttled;
}
