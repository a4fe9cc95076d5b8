/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process can still get, so that a program can refuse a size before the kernel ends processes. */
#ifndef LOOM_LIB_MEMORY_LEFT_H
#define LOOM_LIB_MEMORY_LEFT_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number after `key` at the start of a line of a file, or UINT64_MAX if there is none. */
static inline uint64_t memory_number(const char *root, const char *folder, const char *file, const char *key)
{
	char line[128], path[600];
	uint64_t found = UINT64_MAX;
	int n = snprintf(path, sizeof(path), "%s%s%s", root, folder, file);
	FILE *f = n > 0 && (size_t)n < sizeof(path) ? fopen(path, "re") : NULL;
	while (f && found == UINT64_MAX && fgets(line, sizeof(line), f)) {
		char *end = line, *at = line + strlen(key);
		uint64_t value = strncmp(line, key, strlen(key)) ? 0 : strtoull(at, &end, 10);
		if (end > at)
			found = value;
	}
	if (f)
		fclose(f);
	return found;
}

/* Returns how much a cgroup leaves, with its parents. Files in the page cache can be dropped. `names`: the files of the
 * limit and of the use, and the keys in memory.stat. */
static inline uint64_t memory_of_cgroup(const char *root, char *folder, const char *const names[4])
{
	for (uint64_t left = UINT64_MAX;;) {
		uint64_t limit = memory_number(root, folder, names[0], ""),
			 used = memory_number(root, folder, names[1], "");
		if (limit != UINT64_MAX && used != UINT64_MAX) {
			for (int i = 2; i < 4; i++) {
				uint64_t cache = memory_number(root, folder, "/memory.stat", names[i]);
				used -= cache < used ? cache : 0;
			}
			limit -= used < limit ? used : limit;
			left = limit < left ? limit : left;
		}
		char *slash = strrchr(folder, '/');
		if (!slash)
			return left;
		*slash = 0;
	}
}

/* Returns the number of bytes, with free swap space, or UINT64_MAX if it is unknown. proc, sys: "/proc" and
 * "/sys/fs/cgroup"; tests use other folders. */
static inline uint64_t memory_left(const char *proc, const char *sys)
{
	static const char *const second[] = {"/memory.max", "/memory.current", "inactive_file ", "active_file "};
	static const char *const first[] = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file ",
					    "total_active_file "};
	char line[512], path[600];
	uint64_t left = memory_number(proc, "", "/meminfo", "MemAvailable:");
	uint64_t swap = memory_number(proc, "", "/meminfo", "SwapFree:");
	left = left < UINT64_MAX >> 10 ? left << 10 : UINT64_MAX;
	swap = swap < UINT64_MAX >> 10 ? swap << 10 : 0;
	snprintf(path, sizeof(path), "%s/self/cgroup", proc);
	FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		char *kind = strchr(line, ':'), *folder = kind ? strchr(kind + 1, ':') : NULL;
		if (!folder)
			continue;
		*folder++ = 0;
		folder[strcspn(folder, "\n")] = 0;
		uint64_t most = UINT64_MAX;
		if (!kind[1])
			most = memory_of_cgroup(sys, folder, second);
		else if (strstr(kind, "memory") && snprintf(path, sizeof(path), "%s/memory", sys) < (int)sizeof(path))
			most = memory_of_cgroup(path, folder, first);
		left = most < left ? most : left;
	}
	if (f)
		fclose(f);
	return left < UINT64_MAX - swap ? left + swap : UINT64_MAX;
}

#endif
