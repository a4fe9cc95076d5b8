/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/doctor/doctor.h"
#include "facts/environment.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int loom__machine_line(char *out, size_t room, const char *fmt, ...)
{
	char path[PATH_MAX], why[200];
	va_list args;
	va_start(args, fmt);
	vsnprintf(path, sizeof(path), fmt, args);
	va_end(args);
	int failed = loom__fact_read(path, out, room, why);
	out[failed ? 0 : strcspn(out, "\n")] = 0;
	return failed;
}

int loom__machine_unmounted(loom__doctor_fn *row, void *arg, const char *topic, const char *folder)
{
	char found[64], fix[64];
	if (!access(strcmp(folder, "/proc") ? "/sys/kernel" : "/proc/self", F_OK))
		return 0;
	snprintf(found, sizeof(found), "%s%s is not mounted", strcmp(folder, topic) ? "not known: " : "", folder);
	snprintf(fix, sizeof(fix), "mount %s, or pass it to the container", folder);
	row(arg, topic, "no", found, fix);
	return 1;
}

int loom__machine_capable(unsigned capability)
{
	char line[128];
	unsigned long long set = 0;
	FILE *f = fopen("/proc/self/status", "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "CapEff:", 7))
			set = strtoull(line + 7, NULL, 16);
	if (f)
		fclose(f);
	return set >> capability & 1;
}
