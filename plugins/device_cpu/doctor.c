/* SPDX-License-Identifier: Apache-2.0 */
/* What this machine offers CPU devices. */
#include <errno.h>
#include <numa.h>
#include <stdio.h>
#include <string.h>

#include "device_cpu.h"
#include "limits.h"

static void topology_row(struct loom_doctor *out, hwloc_topology_t t)
{
	char found[128];
	int packages = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PACKAGE);
	int cores = hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_CORE);
	snprintf(found, sizeof(found),
		 "%d package(s), %d physical core(s), %d CPU(s), %d NUMA node(s)", packages, cores,
		 hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_PU),
		 hwloc_get_nbobjs_by_type(t, HWLOC_OBJ_NUMANODE));
	out->row(out, "cpu: topology", "ok", found, "");
}

static void allowed_row(struct loom_doctor *out, hwloc_topology_t t, hwloc_const_bitmap_t allowed)
{
	char cpus[200], found[256];
	int have = hwloc_bitmap_weight(allowed);
	int all = hwloc_bitmap_weight(hwloc_topology_get_complete_cpuset(t));
	hwloc_bitmap_list_snprintf(cpus, sizeof(cpus), allowed);
	snprintf(found, sizeof(found), "%d of %d: %s", have, all, cpus);
	out->row(out, "cpu: cores allowed", have < all ? "limited" : "ok", found,
		 have < all ? "widen the control group's cpuset, or the affinity that taskset gave"
			    : "");
}

struct trial {
	hwloc_topology_t topology;
	hwloc_const_bitmap_t allowed;
	int code;
};

static void *try_pinning(void *arg)
{
	struct trial *t = arg;
	hwloc_bitmap_t one = hwloc_bitmap_dup(t->allowed);
	t->code = ENOMEM;
	if (!one)
		return NULL;
	hwloc_bitmap_singlify(one);
	int failed = hwloc_set_cpubind(t->topology, one, HWLOC_CPUBIND_THREAD) != 0;
	t->code = failed ? (errno ? errno : EINVAL) : 0;
	hwloc_bitmap_free(one);
	return NULL;
}

/* In a thread of its own, whose affinity ends with it. */
static void pinning_row(struct loom_doctor *out, hwloc_topology_t t, hwloc_const_bitmap_t allowed)
{
	struct trial trial = {.topology = t, .allowed = allowed};
	pthread_t thread;
	int failed = pthread_create(&thread, NULL, try_pinning, &trial);
	if (failed)
		trial.code = failed;
	else
		pthread_join(thread, NULL);
	if (!trial.code)
		out->row(out, "cpu: pinning", "ok", "a thread can be bound to a core", "");
	else
		out->row(out, "cpu: pinning", "limited", strerror(trial.code),
			 "say pin = no in [device.cpu], or allow sched_setaffinity");
}

static void time_row(struct loom_doctor *out, hwloc_const_bitmap_t allowed)
{
	char found[64];
	double cpus = limits_cpus();
	int tight = cpus > 0 && cpus < hwloc_bitmap_weight(allowed);
	if (cpus > 0)
		snprintf(found, sizeof(found), "%.2f CPUs by the control group", cpus);
	else
		snprintf(found, sizeof(found), "no limit");
	out->row(out, "cpu: time", tight ? "limited" : "ok", found,
		 tight ? "raise the CPU limit of the container, or use no more workers than that"
		       : "");
}

static void process_row(struct loom_doctor *out)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int code = errno;
	if (fd >= 0) {
		close(fd);
		out->row(out, "cpu: isolation = process", "ok", "pidfd_open works", "");
		return;
	}
	out->row(
	    out, "cpu: isolation = process", "no", strerror(code),
	    "use Linux 5.3 or later and a sandbox that allows pidfd_open, or isolation = thread");
}

void device_doctor(const struct loom_host *host, struct loom_doctor *out)
{
	(void)host;
	hwloc_topology_t topology;
	hwloc_bitmap_t allowed = hwloc_bitmap_alloc();
	int code = allowed ? cores_topology(&topology, allowed) : ENOMEM;
	if (code) {
		out->row(out, "cpu: topology", "no", strerror(code),
			 "hwloc needs /sys and /proc to be mounted");
	} else {
		topology_row(out, topology);
		allowed_row(out, topology, allowed);
		pinning_row(out, topology, allowed);
		time_row(out, allowed);
		hwloc_topology_destroy(topology);
	}
	hwloc_bitmap_free(allowed);
	if (numa_available() < 0)
		out->row(out, "cpu: NUMA binding", "limited", "libnuma finds no NUMA support",
			 "only needed on machines with several nodes: allow mbind");
	else
		out->row(out, "cpu: NUMA binding", "ok", "libnuma works", "");
	process_row(out);
}
