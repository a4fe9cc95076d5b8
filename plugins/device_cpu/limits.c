/* SPDX-License-Identifier: Apache-2.0 */
#include "limits.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ROOT "/sys/fs/cgroup"

static double read_quota(const char *dir)
{
	char path[PATH_MAX + 32];
	snprintf(path, sizeof(path), "%s/cpu.max", dir);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	double quota = 0, period = 0;
	int n = fscanf(f, "%lf %lf", &quota, &period); /* "max 100000": no number */
	fclose(f);
	return n == 2 && period > 0 ? quota / period : 0;
}

/* cgroup v2: the tightest of our group and its parents. Inside a container the path may be that of
 * the outside; the root then still shows the container's own limit. */
double limits_cpus(void)
{
	char line[PATH_MAX], dir[PATH_MAX] = ROOT;
	FILE *f = fopen("/proc/self/cgroup", "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, "0::/", 4)) {
			line[strcspn(line, "\n")] = 0;
			snprintf(dir, sizeof(dir), ROOT "%.*s", PATH_MAX - 32, line + 3);
			break;
		}
	if (f)
		fclose(f);
	double least = 0;
	for (;;) {
		double cpus = read_quota(dir);
		if (cpus > 0 && (least == 0 || cpus < least))
			least = cpus;
		char *slash = strrchr(dir, '/');
		if (strlen(dir) <= strlen(ROOT) || !slash)
			return least;
		*slash = 0;
	}
}
