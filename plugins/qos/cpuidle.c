/* SPDX-License-Identifier: Apache-2.0 */
/* Idle time from the kernel's cpuidle counters, which is exact; /proc/stat samples at the tick. */
#include <stdio.h>

#include "service.h"

static int read_number(uint32_t core, int state, const char *what, uint64_t *value)
{
	char path[128];
	unsigned long long n = 0;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cpuidle/state%d/%s", core, state,
		 what);
	FILE *f = fopen(path, "re");
	int ok = f && fscanf(f, "%llu", &n) == 1;
	if (f)
		fclose(f);
	*value = n;
	return ok;
}

uint64_t qos_idle_core(uint32_t core, uint64_t *entries)
{
	uint64_t us, times, sum = 0;
	if (entries)
		*entries = 0;
	for (int state = 0; read_number(core, state, "time", &us); state++) {
		sum += us * 1000;
		if (entries && read_number(core, state, "usage", &times))
			*entries += times;
	}
	return sum;
}

void qos_idle_read(const struct service *s, struct qos_idle *idle)
{
	*idle = (struct qos_idle){0};
	for (uint32_t v = 0; v < s->vectors; v++) {
		uint64_t entries;
		idle->ns += qos_idle_core(s->core[v], &entries);
		idle->entries += entries;
		idle->consumed |= entries != 0;
	}
}
