/* SPDX-License-Identifier: Apache-2.0 */
/* Tests drive CPU devices through rig/drive.h, as the core does. */
#ifndef LOOM_TEST_CPU_RIG_H
#define LOOM_TEST_CPU_RIG_H

#include "fake_host.h"
#include "rig/drive.h"

#define SECOND 1000000000ull

/* Opens `n` devices. `settings` has the settings of each device, separated by '|'. The last settings apply to all
 * further devices. */
FAKE_FN int rig_open(struct loom__drive *d, uint32_t n, const char *settings)
{
	*d = (struct loom__drive){.plugin = fake_load("device_cpu")};
	while (d->n < n) {
		char one[128];
		size_t length = strcspn(settings, "|");
		snprintf(one, sizeof(one), "%.*s", (int)length, settings);
		settings += settings[length] ? length + 1 : 0;
		int code = loom__drive_open(d, &fake_host, n, fake_settings(d->plugin, one));
		if (code)
			return code;
	}
	return 0;
}

FAKE_FN int rig_sample(struct loom__drive *d, uint32_t sample)
{
	uint64_t end;
	return loom__drive_sample(d, sample, &end);
}

#endif
