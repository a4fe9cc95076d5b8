/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "facts/environment.h"
#include "lib/cpu_list.h"
#include "lib/machine.h"

/* Returns the number of entries of a list such as "0-3,8", which has five. */
static unsigned list_count(const char *list)
{
	cpu_set_t set[8]; /* room for 8192 CPUs */
	return loom__cpu_list(list, set, sizeof(set)) ? 0 : (unsigned)CPU_COUNT_S(sizeof(set), set);
}

/* Counts the hardware threads that are the first of their core, and those that are the first of their package. */
static void count_cores(unsigned *cores, unsigned *packages)
{
	*cores = *packages = 0;
	for (unsigned cpu = 0; cpu < (unsigned)sysconf(_SC_NPROCESSORS_CONF); cpu++) {
		*cores += loom_machine_first(cpu, "thread_siblings_list", cpu + 1) == cpu;
		*packages += loom_machine_first(cpu, "core_siblings_list", cpu + 1) == cpu;
	}
}

static unsigned allowed_cores(void)
{
	cpu_set_t *set = CPU_ALLOC(8192);
	size_t size = CPU_ALLOC_SIZE(8192);
	unsigned n = set && !sched_getaffinity(0, size, set) ? (unsigned)CPU_COUNT_S(size, set) : 0;
	CPU_FREE(set);
	return n;
}

static void cores_row(loom__doctor_fn *row, void *arg)
{
	unsigned threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN), mine = allowed_cores(), cores, packages;
	struct loom_machine_quota quota;
	struct loom__text t = {0};
	count_cores(&cores, &packages);
	loom_machine_quota(&quota);
	double granted = quota.cpus;
	loom__text_add(&t, "%u hardware thread%s", threads, threads == 1 ? "" : "s");
	if (cores)
		loom__text_add(&t, " on %u core%s in %u package%s", cores, cores == 1 ? "" : "s", packages,
			       packages == 1 ? "" : "s");
	loom__text_add(&t, ", %u of them for this process", mine);
	if (granted > 0)
		loom__text_add(&t, ", time for %.3g of them", granted);
	int short_of_time = granted > 0 && granted < mine;
	row(arg, "cores", mine < 2 || mine < threads || short_of_time ? "limited" : "ok", t.at,
	    mine < threads  ? "start gpuloom without taskset, or in a cpuset with more cores"
	    : short_of_time ? "raise the CPU limit of its control group (a container's --cpus)"
	    : mine < 2      ? "workers share one core: measurements are meaningless"
			    : "");
	loom__text_free(&t);
}

static void numa_row(loom__doctor_fn *row, void *arg)
{
	char line[256], found[64];
	if (loom__machine_line(line, sizeof(line), "/sys/devices/system/node/online")) {
		row(arg, "NUMA", "limited", "the kernel does not report its nodes",
		    "mount /sys, or use a kernel built with CONFIG_NUMA");
		return;
	}
	unsigned n = list_count(line);
	snprintf(found, sizeof(found), "%u node%s", n, n == 1 ? "" : "s");
	row(arg, "NUMA", "ok", found, "");
}

/* Tries real-time priority, because limits, capabilities and quotas of control groups all matter. The policy lacks
 * SCHED_RESET_ON_FORK, so switching back needs no privilege. */
static void realtime_row(loom__doctor_fn *row, void *arg)
{
	struct sched_param now, low = {.sched_priority = 1};
	int policy = sched_getscheduler(0);
	if (policy >= 0 && !sched_getparam(0, &now) && !sched_setscheduler(0, SCHED_FIFO, &low)) {
		sched_setscheduler(0, policy, &now);
		row(arg, "real-time priority", "ok", "SCHED_FIFO is permitted", "");
		return;
	}
	row(arg, "real-time priority", "limited", "SCHED_FIFO is not permitted; threads run at normal priority",
	    "ulimit -r 99 (rtprio in /etc/security/limits.conf), or CAP_SYS_NICE");
}

static int count_event(unsigned type, unsigned long long config)
{
	struct perf_event_attr attr = {
	    .type = type, .size = sizeof(attr), .config = config, .exclude_kernel = 1, .exclude_hv = 1};
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int why = errno;
	if (fd >= 0)
		close(fd);
	return fd >= 0 ? 0 : why;
}

static void counters_row(loom__doctor_fn *row, void *arg)
{
	char level[32], found[160];
	loom__machine_line(level, sizeof(level), "/proc/sys/kernel/perf_event_paranoid");
	int hardware = count_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES);
	int software = count_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	if (!hardware)
		row(arg, "perf counters", "ok", "hardware and software events", "");
	else if (!software)
		row(arg, "perf counters", "limited", "software events only; no hardware counters here",
		    "use real hardware, or a virtual machine with a virtual PMU");
	else {
		snprintf(found, sizeof(found), "failed: %s (perf_event_paranoid is %s)", strerror(software),
			 level[0] ? level : "not available");
		row(arg, "perf counters", "no", found, "sysctl kernel.perf_event_paranoid=2, or CAP_PERFMON");
	}
}

void loom__processor_rows(loom__doctor_fn *row, void *arg)
{
	cores_row(row, arg);
	numa_row(row, arg);
	realtime_row(row, arg);
	counters_row(row, arg);
}
