/* SPDX-License-Identifier: Apache-2.0 */
/* Tests machine.h and the CPU device's cores.c on simulated machines. A simulated machine is a tree of /sys and /proc
 * in a folder, and an affinity. */
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define LOOM_MACHINE_ROOT "." /* the test changes into the folder of the simulated machine */
static cpu_set_t affinity;
static int fake_affinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
	(void)pid;
	memset(set, 0, bytes);
	memcpy(set, &affinity, sizeof(affinity));
	return 0;
}
#define sched_getaffinity fake_affinity
#include "plugins/device_cpu/cores.c"
#undef sched_getaffinity

#include "fake_host.h"

/* Cores are claimed per network namespace, so the test needs a namespace of its own. `alone` is 1 if it has one. */
static int alone;
__attribute__((constructor)) static void leave_others(void)
{
	alone = !unshare(CLONE_NEWNET) || !unshare(CLONE_NEWUSER | CLONE_NEWNET);
}

static char folder[] = "/tmp/gpuloom-test-XXXXXX";

static void put(const char *path, const char *text)
{
	char command[600];
	snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s')\"", path);
	CU_ASSERT_EQUAL_FATAL(system(command), 0);
	FILE *f = fopen(path, "w");
	CU_ASSERT_FATAL(f != NULL);
	fputs(text, f);
	fclose(f);
}

static void begin(void)
{
	snprintf(folder, sizeof(folder), "/tmp/gpuloom-test-XXXXXX");
	CU_ASSERT_FATAL(mkdtemp(folder) && !chdir(folder));
}

static void end(void)
{
	CU_ASSERT_EQUAL(chdir("/"), 0);
	test_remove(folder);
}

/* Makes `cores` cores with two hyper-threads each, i and i + cores. The first half is in package 0, and all are
 * allowed. */
static void machine(unsigned cores)
{
	char path[200], text[64];
	begin();
	CPU_ZERO(&affinity);
	for (unsigned cpu = 0; cpu < 2 * cores; cpu++) {
		unsigned core = cpu % cores, first = core < cores / 2 ? 0 : cores / 2;
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
		snprintf(text, sizeof(text), "%u,%u\n", core, core + cores);
		put(path, text);
		snprintf(path, sizeof(path), "sys/devices/system/cpu/cpu%u/topology/core_siblings_list", cpu);
		snprintf(text, sizeof(text), "%u-%u,%u-%u\n", first, first + cores / 2 - 1, cores + first,
			 cores + first + cores / 2 - 1);
		put(path, text);
		CPU_SET(cpu, &affinity);
	}
}

static void find(const char *list, uint32_t instance, uint32_t instances, struct cores *c)
{
	struct cores_want want = {.label = "cpu:0", .cores = list, .instance = instance, .instances = instances};
	struct loom_error err = {0};
	CU_ASSERT_EQUAL_FATAL(cores_find(&fake_host, &want, c, &err), 0);
}

/* ---- cores */

/* If cores are shared among ranks or devices, both hyper-threads of a core, i and i + 4, go to the same share. */
TEST(hyperthreads_are_not_cores_F12)
{
	struct loom_machine_cpu list[8];
	struct cores c;
	uint32_t from, to;
	machine(4);
	for (unsigned i = 0; i < 8; i++)
		list[i].cpu = i;
	loom_machine_place(list, 8);
	CU_ASSERT_EQUAL(loom_machine_share(list, 8, 0, 2, &from, &to), 0);
	CU_ASSERT(from == 0 && to == 4);
	CU_ASSERT(list[0].cpu == 0 && list[1].cpu == 4 && list[2].cpu == 1 && list[3].cpu == 5);
	CU_ASSERT_EQUAL(loom_machine_share(list, 8, 2, 3, &from, &to), 0);
	CU_ASSERT(from == 4 && to == 8);
	CU_ASSERT_EQUAL(loom_machine_share(list, 8, 5, 6, &from, &to), 0); /* a sixth share gets a hyper-thread */
	CU_ASSERT(from == 6 && to == 8);
	CU_ASSERT_EQUAL(loom_machine_share(list, 8, 9, 10, &from, &to), 1);
	CU_ASSERT(from == 1 && to == 2);

	find("", 0, 2, &c);
	CU_ASSERT_STRING_EQUAL(c.text, "0-1,4-5");
	cores_finish(&fake_host, &c);
	end();
}

TEST(physical_cores_first_F12)
{
	struct cores c;
	int crowded;
	uint32_t cpu[8];
	machine(4);
	if (!alone) {
		end();
		return;
	}
	find("", 0, 1, &c);
	CU_ASSERT_EQUAL_FATAL(c.count, 8);
	for (uint32_t i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(c.cpu[i].cpu, i);
		cpu[i] = cores_take(&c, i, &crowded);
		CU_ASSERT_EQUAL(cpu[i], i);
	}
	for (uint32_t i = 0; i < 8; i++)
		cores_give_back(cpu[i]);
	/* A worker of a second stack does not get the hyper-thread that shares a core with a worker of the first stack. */
	uint32_t one = cores_take(&c, 4, &crowded), other = cores_take(&c, 0, &crowded);
	CU_ASSERT_EQUAL(one, 4);
	CU_ASSERT_EQUAL(other, 1);
	cores_give_back(one);
	cores_give_back(other);
	cores_finish(&fake_host, &c);
	end();
}

/* Returns, as bits, the cores that `workers` workers of another process take. That process also starts at core 0. Bit 7
 * is set if one of its workers shares a core. */
static uint32_t beside(const struct cores *c, uint32_t workers)
{
	int status;
	pid_t child = fork();
	if (!child) {
		uint32_t bits = 0;
		int crowded, any = 0;
		memset(taken.core, 0, sizeof(taken.core)); /* as in a process that was not forked from this one */
		for (uint32_t i = 0; i < workers; i++) {
			bits |= 1u << cores_take(c, i, &crowded);
			any |= crowded;
		}
		_exit((int)(bits | (uint32_t)any << 7));
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT(WIFEXITED(status));
	return (uint32_t)WEXITSTATUS(status);
}

/* Independent processes, such as ranks that are started by hand, share no core. */
TEST(processes_share_no_core_F12)
{
	struct cores c;
	int crowded;
	uint32_t mine[3];
	machine(3); /* processors 0 to 5, of which 0 and 3, 1 and 4, and 2 and 5 share a core */
	if (!alone) {
		end();
		return;
	}
	find("", 0, 1, &c);
	mine[0] = cores_take(&c, 0, &crowded);
	CU_ASSERT(mine[0] == 0 && !crowded);
	CU_ASSERT_EQUAL(beside(&c, 1), 1u << 1);
	CU_ASSERT_EQUAL(beside(&c, 2), 1u << 1 | 1u << 2);
	/* the third worker gets no core of its own, but a free hyper-thread */
	CU_ASSERT_EQUAL(beside(&c, 3), 1u << 1 | 1u << 2 | 1u << 3);
	mine[1] = cores_take(&c, 1, &crowded);
	mine[2] = cores_take(&c, 2, &crowded);
	CU_ASSERT(mine[1] == 1 && mine[2] == 2 && !crowded);
	CU_ASSERT_EQUAL(beside(&c, 1), 1u << 3);
	CU_ASSERT_EQUAL(beside(&c, 4) >> 7, 1); /* one worker must share a core */
	for (int i = 0; i < 3; i++)
		cores_give_back(mine[i]);
	CU_ASSERT_EQUAL(beside(&c, 1), 1u << 0); /* the cores were returned */
	cores_finish(&fake_host, &c);
	end();
}

/* ---- CPU time */

#define V1                                                                                                             \
	"30 20 0:1 / /cg rw - tmpfs tmpfs rw\n31 30 0:2 %s /cg/cpu rw,nosuid shared:1 - cgroup cgroup "                \
	"rw,cpu,cpuacct\n"
#define V2 "31 30 0:2 %s /cg rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

static double quota(void)
{
	struct loom_machine_quota q;
	return loom_machine_quota(&q) ? -1 : q.cpus;
}

static void mounted(const char *format, const char *root, const char *groups)
{
	char text[600];
	begin();
	snprintf(text, sizeof(text), format, root);
	put("proc/self/mountinfo", text);
	put("proc/self/cgroup", groups);
}

TEST(quota_of_version_1_F14)
{
	struct loom_machine_quota q;
	mounted(V1, "/", "9:memory:/other\n4:cpuset:/no\n3:cpu,cpuacct:/a/b\n0::/\n");
	CU_ASSERT_EQUAL(quota(), -1);
	put("cg/cpu/cpu.cfs_quota_us", "-1\n");
	put("cg/cpu/cpu.cfs_period_us", "100000\n");
	CU_ASSERT_EQUAL(quota(), 0);
	put("cg/cpu/a/cpu.cfs_quota_us", "50000\n");
	put("cg/cpu/a/cpu.cfs_period_us", "100000\n");
	put("cg/cpu/a/cpu.stat", "nr_periods 77\nnr_throttled 21\nthrottled_time 5\n");
	put("cg/cpu/a/b/cpu.cfs_quota_us", "300000\n");
	put("cg/cpu/a/b/cpu.cfs_period_us", "100000\n");
	put("cg/cpu/a/b/cpu.stat", "nr_periods 7\nnr_throttled 1\n");
	CU_ASSERT_EQUAL(loom_machine_quota(&q), 0);
	CU_ASSERT(q.cpus == 0.5 && q.throttled == 21); /* the smallest quota of all groups counts */
	end();
	/* In a container, the process's own group is at the mount point, but /proc shows the group's path outside of
	 * the container. */
	mounted(V1, "/docker/77", "3:cpu,cpuacct:/docker/77\n");
	put("cg/cpu/cpu.cfs_quota_us", "150000\n");
	put("cg/cpu/cpu.cfs_period_us", "100000\n");
	CU_ASSERT_EQUAL(quota(), 1.5);
	end();
}

TEST(quota_of_version_2_T8b)
{
	struct loom_machine_quota q;
	mounted(V2, "/", "0::/a/b\n");
	put("cg/a/cpu.max", "50000 100000\n");
	put("cg/a/cpu.stat", "usage_usec 5\nnr_periods 9\nnr_throttled 8\nthrottled_usec 5\n");
	put("cg/a/b/cpu.max", "max 100000\n");
	CU_ASSERT_EQUAL(loom_machine_quota(&q), 0);
	CU_ASSERT(q.cpus == 0.5 && q.throttled == 8);
	end();
	mounted("31 30 0:2 %s /sys/fs/cgroup rw - tmpfs tmpfs rw\n", "/", "0::/\n"); /* no mount is visible */
	CU_ASSERT_EQUAL(quota(), -1);
	put("sys/fs/cgroup/cpu.max", "200000 100000\n");
	CU_ASSERT_EQUAL(quota(), 2);
	end();
	begin(); /* neither /proc nor /sys is visible */
	CU_ASSERT_EQUAL(quota(), -1);
	end();
}

TEST_MAIN("machine", 60)
