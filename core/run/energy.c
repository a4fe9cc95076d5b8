/* SPDX-License-Identifier: Apache-2.0 */
#include "run/engine.h"

/* Returns 1 if a device before d has the same counter. */
static int is_counted(const uint64_t *source, uint32_t d)
{
	for (uint32_t i = 0; i < d; i++)
		if (source[i] == source[d])
			return 1;
	return 0;
}

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
		sum += is_counted(source, d) ? 0 : one;
	}
	*joules = sum;
	return 0;
}
