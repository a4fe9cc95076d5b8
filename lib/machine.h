/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel shows of the CPUs of this process: which CPUs share a core, and how much CPU time control groups
 * grant. The command and the plug-ins all use this header, so that they agree.
 *
 * hwloc is no alternative for three reasons. Its discovery costs each process milliseconds. Of its topology, only the
 * first sibling of each CPU is needed here. And hwloc lacks CPU quotas, which are most of the code below. */
#ifndef LOOM_LIB_MACHINE_H
#define LOOM_LIB_MACHINE_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fd.h"

#ifndef LOOM_MACHINE_ROOT
#define LOOM_MACHINE_ROOT "" /* folder that contains /proc and /sys; a test defines another one */
#endif
enum { LOOM_MACHINE_PATH = 2048 };

/* Reads a short file as a NUL-terminated text. Returns its length, or -1 with errno. */
static inline ssize_t loom_machine_read(const char *path, char *text, size_t room)
{
	size_t n = 0;
	int fd = open(path, O_RDONLY | LOOM_FD_CLOEXEC), code;
	if (fd < 0)
		return -1;
	while (n + 1 < room) {
		ssize_t got = read(fd, text + n, room - 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			code = errno;
			close(fd);
			errno = code;
			return -1;
		}
		if (!got)
			break;
		n += (size_t)got;
	}
	close(fd);
	text[n] = 0;
	return (ssize_t)n;
}

/* ---- topology ----------------------------------------------------------------------------------- */

/* A CPU, with the number that the operating system gives it. `core` and `package` are the lowest number of a CPU in the
 * same core or package. `node` is the NUMA node. */
struct loom_machine_cpu {
	unsigned cpu, core, package, node;
};

/* Returns the lowest of the CPUs in `what`, a list that /sys has for each CPU, or `otherwise` if that is unknown. */
static inline unsigned loom_machine_first(unsigned cpu, const char *what, unsigned otherwise)
{
	char path[sizeof(LOOM_MACHINE_ROOT) + 128], text[64], *end;
	snprintf(path, sizeof(path), LOOM_MACHINE_ROOT "/sys/devices/system/cpu/cpu%u/topology/%.40s", cpu, what);
	if (loom_machine_read(path, text, sizeof(text)) <= 0) /* the list begins with the lowest number */
		return otherwise;
	unsigned long first = strtoul(text, &end, 10);
	return end == text ? otherwise : (unsigned)first;
}

/* Returns the NUMA node of a CPU, or 0 if it is unknown. Tries node `likely` first to save system calls. */
static inline unsigned loom_machine_node(unsigned cpu, unsigned likely)
{
	char path[sizeof(LOOM_MACHINE_ROOT) + 128];
	for (unsigned i = 0; i <= 64; i++) {
		unsigned node = i ? i - 1 : likely;
		snprintf(path, sizeof(path), LOOM_MACHINE_ROOT "/sys/devices/system/cpu/cpu%u/node%u", cpu, node);
		if (!access(path, F_OK))
			return node;
	}
	return 0;
}

static inline int loom_machine_order(const void *a, const void *b)
{
	const struct loom_machine_cpu *x = (const struct loom_machine_cpu *)a, *y = (const struct loom_machine_cpu *)b;
	return x->package != y->package ? (x->package > y->package) - (x->package < y->package)
	       : x->node != y->node     ? (x->node > y->node) - (x->node < y->node)
	       : x->core != y->core     ? (x->core > y->core) - (x->core < y->core)
					: (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

/* Fills in the cores, packages and nodes of n CPUs whose numbers are given. Then sorts the list by package, node, core
 * and CPU. Without /sys, each CPU is a core, and all CPUs are in one package and node. */
static inline void loom_machine_place(struct loom_machine_cpu *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		list[i].core = loom_machine_first(list[i].cpu, "thread_siblings_list", list[i].cpu);
		list[i].package = loom_machine_first(list[i].cpu, "core_siblings_list", 0);
		list[i].node = loom_machine_node(list[i].cpu, i ? list[i - 1].node : 0);
	}
	qsort(list, n, sizeof(*list), loom_machine_order);
}

/* Divides the list into `of` equal shares, and selects share number `one`: list[*from] to list[*to - 1]. If there are
 * at least `of` cores, each share has whole cores, so no two shares have hyper-threads of one core. Returns 1 if there
 * are fewer CPUs than shares, because shares then overlap. */
static inline int loom_machine_share(const struct loom_machine_cpu *list, uint32_t n, uint32_t one, uint32_t of, uint32_t *from,
				     uint32_t *to)
{
	uint32_t cores = 0, at = 0;
	for (uint32_t i = 0; i < n; i++)
		cores += !i || list[i].core != list[i - 1].core;
	int split = cores < of; /* with too few cores, a share may begin inside a core */
	uint64_t units = split ? n : cores;
	uint64_t first = units >= of ? one * units / of : one % units, end = units >= of ? (one + 1ull) * units / of : first + 1;
	*from = *to = n;
	for (uint32_t i = 0; i < n; i++) {
		at += i && (split || list[i].core != list[i - 1].core);
		if (at >= first && *from == n)
			*from = i;
		if (at >= end && *to == n)
			*to = i;
	}
	return units < of;
}

/* ---- control groups, versions 1 and 2 ---------------------------------------------------------- */

struct loom_machine_quota {
	double cpus;	    /* CPUs that the group with the tightest limit may use, as in 1.5; 0: no limit */
	uint64_t throttled; /* number of periods in which this group had used up its CPU time */
};

/* Reads the limit of the group in folder `at` into *q, if it is tighter than that in *q. Returns 1 if the folder has
 * files about CPU time. */
static inline int loom_machine_group(const char *at, struct loom_machine_quota *q)
{
	static const char *const v2[] = {"cpu.max"}, *const v1[] = {"cpu.cfs_quota_us", "cpu.cfs_period_us"};
	char path[LOOM_MACHINE_PATH + 32], text[2][128], stat[1024];
	double share = 0, period = 0;
	int known = 0;
	snprintf(path, sizeof(path), "%s/%s", at, v2[0]);
	if (loom_machine_read(path, text[0], sizeof(text[0])) > 0) {
		known = 1;
		if (sscanf(text[0], "%lf %lf", &share, &period) != 2) /* fails for "max 100000", which means no limit */
			share = 0;
	} else {
		for (int i = 0; i < 2; i++) {
			snprintf(path, sizeof(path), "%s/%s", at, v1[i]);
			if (loom_machine_read(path, text[i], sizeof(text[i])) <= 0)
				return 0;
		}
		known = 1;
		share = strtod(text[0], NULL); /* -1 means no limit */
		period = strtod(text[1], NULL);
	}
	if (!(share > 0 && period > 0) || (q->cpus > 0 && share / period >= q->cpus))
		return known;
	q->cpus = share / period;
	q->throttled = 0;
	snprintf(path, sizeof(path), "%s/cpu.stat", at);
	const char *line = loom_machine_read(path, stat, sizeof(stat)) > 0 ? strstr(stat, "nr_throttled ") : NULL;
	if (line)
		q->throttled = strtoull(line + 13, NULL, 10);
	return known;
}

/* Reads the group `path`, as /proc/self/cgroup names it, and its ancestors up to the mount point of the hierarchy. */
static inline int loom_machine_groups(const char *mount, const char *path, struct loom_machine_quota *q)
{
	char at[LOOM_MACHINE_PATH];
	int n = snprintf(at, sizeof(at), "%s%s", mount, strcmp(path, "/") ? path : ""), known = 0;
	if (n <= 0 || (size_t)n >= sizeof(at))
		return 0;
	for (;;) {
		known |= loom_machine_group(at, q);
		char *slash = strrchr(at, '/');
		if (strlen(at) <= strlen(mount) || !slash)
			return known;
		*slash = 0;
	}
}

/* Returns 1 if `list`, such as "cpu,cpuacct", contains the word. */
static inline int loom_machine_has(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ',' || at[n] == '\n'))
			return 1;
	return 0;
}

/* Finds the group of this process in `groups`, the text of /proc/self/cgroup, and writes its path. The group is that of
 * version 2, or that of version 1 with the controller "cpu". Returns 0 if there is none. */
static inline int loom_machine_path(const char *groups, int v2, char path[LOOM_MACHINE_PATH])
{
	char list[256];
	for (const char *line = groups; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *first = strchr(line, ':'), *second = first ? strchr(first + 1, ':') : NULL;
		if (!second)
			continue;
		snprintf(list, sizeof(list), "%.*s", (int)(second - first - 1), first + 1);
		if (v2 ? *list != 0 : !loom_machine_has(list, "cpu"))
			continue;
		snprintf(path, LOOM_MACHINE_PATH, "%.*s", (int)strcspn(second + 1, "\n"), second + 1);
		return 1;
	}
	return 0;
}

/* Reads the tightest CPU limit of this process. Returns 0, or -1 if no control group has files about CPU time. In a
 * container, /proc/self/cgroup may show the path that the group has outside. Only the part of the path below the root
 * of the mount is used then. If the path is not below that root, the mount point itself shows the container's limit. */
static inline int loom_machine_quota(struct loom_machine_quota *q)
{
	static const char standard[] = LOOM_MACHINE_ROOT "/sys/fs/cgroup";
	const size_t room = 1 << 16;
	char path[LOOM_MACHINE_PATH], root[512], mount[512], whole[1040], *line, *rest = NULL, *groups = (char *)malloc(2 * room);
	char *mounts = groups ? groups + room : NULL;
	int known = 0;
	q->cpus = 0;
	q->throttled = 0;
	if (!groups || loom_machine_read(LOOM_MACHINE_ROOT "/proc/self/cgroup", groups, room) < 0)
		*(groups ? groups : path) = 0;
	if (groups && loom_machine_read(LOOM_MACHINE_ROOT "/proc/self/mountinfo", mounts, room) < 0)
		*mounts = 0;
	for (line = mounts; line && *line; line = rest) {
		size_t length = strcspn(line, "\n");
		rest = line + length + (line[length] == '\n');
		line[length] = 0;
		const char *type = strstr(line, " - "), *options = type ? strrchr(type, ' ') + 1 : "";
		int v2 = type && !strncmp(type, " - cgroup2 ", 11), v1 = type && !strncmp(type, " - cgroup ", 10);
		if ((!v2 && !(v1 && loom_machine_has(options, "cpu"))) ||
		    sscanf(line, "%*s %*s %*s %511s %511s", root, mount) != 2)
			continue;
		if (!loom_machine_path(groups, v2, path))
			snprintf(path, sizeof(path), "/");
		size_t n = strcmp(root, "/") ? strlen(root) : 0;
		int below = !strncmp(path, root, n) && (path[n] == '/' || !path[n]);
		snprintf(whole, sizeof(whole), "%s%s", LOOM_MACHINE_ROOT, mount);
		known |= loom_machine_groups(whole, below ? path + n : "", q);
	}
	if (groups && !known && loom_machine_path(groups, 1, path))
		known = loom_machine_groups(standard, path, q);
	if (!known)
		known = loom_machine_groups(standard, "", q);
	free(groups);
	return known ? 0 : -1;
}

#endif
