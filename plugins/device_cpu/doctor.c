/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of `gpuloom doctor` about the CPU. */
#include <errno.h>
#include <numa.h>
#include <stdio.h>
#include <string.h>

#include "device_cpu.h"

static void topology_row(struct loom_doctor *out, const struct loom_machine_cpu *unit, uint32_t n)
{
	char found[128];
	uint32_t packages = 0, cores = 0, nodes = 0;
	for (uint32_t i = 0; i < n; i++) {
		packages += !i || unit[i].package != unit[i - 1].package;
		cores += !i || unit[i].core != unit[i - 1].core;
		nodes += !i || unit[i].node != unit[i - 1].node;
	}
	snprintf(found, sizeof(found), "%u package(s), %u physical core(s), %u CPU(s), %u NUMA node(s)", packages,
		 cores, n, nodes);
	out->row(out, "cpu: topology", "ok", found, "");
}

static void allowed_row(struct loom_doctor *out, const struct cores_set *allowed)
{
	char cpus[200], found[256];
	long have = cores_weight(allowed), all = sysconf(_SC_NPROCESSORS_CONF);
	cores_print(allowed, cpus, sizeof(cpus));
	snprintf(found, sizeof(found), "%ld of %ld: %s", have, all, cpus);
	out->row(out, "cpu: cores allowed", have < all ? "limited" : "ok", found,
		 have < all ? "widen the control group's cpuset, or the affinity that taskset gave" : "");
}

struct trial {
	unsigned cpu;
	int code;
};

static void *try_pinning(void *arg)
{
	struct trial *t = arg;
	struct cores_set one = {0};
	cores_add(&one, t->cpu);
	t->code = pthread_setaffinity_np(pthread_self(), sizeof(one.part), one.part);
	return NULL;
}

/* The trial runs in a thread of its own, so that the affinity ends with that thread. */
static void pinning_row(struct loom_doctor *out, unsigned cpu)
{
	struct trial trial = {.cpu = cpu};
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
			 "set pin = no in [device.cpu], or allow sched_setaffinity");
}

static void time_row(struct loom_doctor *out, uint32_t allowed)
{
	char found[64];
	struct loom_machine_quota quota;
	loom_machine_quota(&quota);
	double cpus = quota.cpus;
	int tight = cpus > 0 && cpus < allowed;
	if (cpus > 0)
		snprintf(found, sizeof(found), "%.2f CPUs by the control group", cpus);
	else
		snprintf(found, sizeof(found), "no limit");
	out->row(out, "cpu: time", tight ? "limited" : "ok", found,
		 tight ? "raise the CPU limit of the container, or use no more workers than that" : "");
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
	out->row(out, "cpu: isolation = process", "no", strerror(code),
		 "use Linux 5.3 or later and a sandbox that allows pidfd_open, or isolation = thread");
}

void device_doctor(const struct loom_host *host, struct loom_doctor *out)
{
	struct cores_set allowed;
	int code = cores_allowed(&allowed);
	struct loom_machine_cpu *unit = code ? NULL : host->alloc(host, cores_weight(&allowed) * sizeof(*unit));
	if (!unit) {
		out->row(out, "cpu: topology", "no", strerror(code ? code : ENOMEM), "allow sched_getaffinity");
	} else {
		uint32_t n = cores_units(&allowed, unit);
		topology_row(out, unit, n);
		allowed_row(out, &allowed);
		pinning_row(out, unit->cpu);
		time_row(out, n);
		host->free(host, unit);
	}
	if (numa_available() < 0)
		out->row(out, "cpu: NUMA binding", "limited", "libnuma finds no NUMA support",
			 "needed only on machines with several nodes: allow mbind");
	else
		out->row(out, "cpu: NUMA binding", "ok", "libnuma works", "");
	process_row(out);
}
