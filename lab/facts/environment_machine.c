/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that stay the same unless the machine is reconfigured. */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/utsname.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "facts/environment.h"
#include "facts/must.h"
#include "lib/machine.h"

#define CPU "/sys/devices/system/cpu/"

/* Reads the value of `key` for the first processor, as X in "model name : X". Returns 0, or -1 if there is no such
 * key. */
static int cpuinfo(const char *key, char *out, size_t room)
{
	char line[512];
	FILE *f = fopen("/proc/cpuinfo", "re");
	int found = 0;
	while (f && !found && fgets(line, sizeof(line), f)) {
		char *colon = strchr(line, ':');
		if (!colon || strncmp(line, key, strlen(key)) || !strchr("\t :", line[strlen(key)]))
			continue;
		colon += 1 + strspn(colon + 1, " ");
		colon[strcspn(colon, "\n")] = 0;
		snprintf(out, room, "%s", colon);
		found = 1;
	}
	if (f)
		fclose(f);
	return found ? 0 : -1;
}

static void add_cpuinfo(cJSON *facts, const char *name, const char *key)
{
	char text[256];
	if (cpuinfo(key, text, sizeof(text)))
		loom__fact_none(facts, name, "/proc/cpuinfo has no '%s'", key);
	else
		loom__json_add_text(facts, name, text);
}

/* Adds the cores on which this process may run, as in "0-3,8". */
static void add_affinity(cJSON *facts)
{
	const int most = 8192;
	cpu_set_t *set = CPU_ALLOC(most);
	size_t size = CPU_ALLOC_SIZE(most);
	struct loom__text t = {0};
	if (!set || sched_getaffinity(0, size, set)) {
		loom__fact_none(facts, "affinity", "%s", set ? strerror(errno) : "out of memory");
		CPU_FREE(set);
		return;
	}
	for (int i = 0; i < most; i++) {
		if (!CPU_ISSET_S(i, size, set))
			continue;
		int last = i;
		while (last + 1 < most && CPU_ISSET_S(last + 1, size, set))
			last++;
		loom__text_add(&t, last > i ? "%s%d-%d" : "%s%d", t.length ? "," : "", i, last);
		i = last;
	}
	loom__json_add_text(facts, "affinity", loom__must_text(&t));
	loom__text_free(&t);
	CPU_FREE(set);
}

static void add_quota(cJSON *facts)
{
	struct loom_machine_quota quota;
	char text[64] = "none";
	if (loom_machine_quota(&quota)) {
		loom__fact_none(facts, "cpu_quota", "no control group with the controller 'cpu'");
		return;
	}
	if (quota.cpus > 0)
		snprintf(text, sizeof(text), "%.3g cores", quota.cpus);
	loom__json_add_text(facts, "cpu_quota", text);
}

/* Adds the selected word of a kernel file such as "always [madvise] never". */
static void add_chosen(cJSON *facts, const char *name, const char *path)
{
	char text[256], why[200];
	if (loom__fact_chosen(path, text, sizeof(text), why))
		loom__fact_none(facts, name, "%s", why);
	else
		loom__json_add_text(facts, name, text);
}

/* Drivers report the boost in different files: the file "boost" has 0 if it is off, and the file "no_turbo" has 0 if it
 * is on. */
static void add_boost(cJSON *facts)
{
	char text[16], why[200];
	if (!loom__fact_read(CPU "cpufreq/boost", text, sizeof(text), why)) {
		loom__json_add_text(facts, "boost", strcmp(text, "0") ? "on" : "off");
		return;
	}
	if (!loom__fact_read(CPU "intel_pstate/no_turbo", text, sizeof(text), why))
		loom__json_add_text(facts, "boost", strcmp(text, "0") ? "off" : "on");
	else
		loom__fact_none(facts, "boost", "not reported by a cpufreq driver");
}

static void add_aslr(cJSON *facts)
{
	char text[16], why[200];
	int own = personality(0xffffffff);
	if (own >= 0 && own & ADDR_NO_RANDOMIZE)
		loom__json_add_text(facts, "aslr", "off for this process");
	else if (loom__fact_read("/proc/sys/kernel/randomize_va_space", text, sizeof(text), why))
		loom__fact_none(facts, "aslr", "%s", why);
	else
		loom__json_add_text(facts, "aslr", text);
}

static int is_entry(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

/* Adds the vulnerabilities that affect the processor, as in "vulnerable: a, b; mitigated: c". */
static void add_mitigations(cJSON *facts)
{
	struct dirent **list;
	struct loom__text open = {0}, closed = {0}, all = {0};
	int n = scandir(CPU "vulnerabilities", &list, is_entry, alphasort);
	if (n < 0) {
		loom__fact_none(facts, "mitigations", "%svulnerabilities: %s", CPU, strerror(errno));
		return;
	}
	for (int i = 0; i < n; i++) {
		char path[400], text[512], why[200];
		snprintf(path, sizeof(path), CPU "vulnerabilities/%s", list[i]->d_name);
		if (loom__fact_read(path, text, sizeof(text), why)) {
			loom__text_add(&open, "%s%s (not known: %s)", open.length ? ", " : "", list[i]->d_name, why);
		} else if (strncmp(text, "Not affected", 12)) {
			struct loom__text *to = strncmp(text, "Mitigation", 10) ? &open : &closed;
			loom__text_add(to, "%s%s", to->length ? ", " : "", list[i]->d_name);
		}
		free(list[i]);
	}
	free(list);
	loom__text_add(&all, "%s%s%s%s%s", open.at ? "vulnerable: " : "", loom__must_text(&open),
		       open.at && closed.at ? "; " : "", closed.at ? "mitigated: " : "", loom__must_text(&closed));
	const char *text = loom__must_text(&all);
	loom__json_add_text(facts, "mitigations", *text ? text : "not affected");
	loom__text_free(&open);
	loom__text_free(&closed);
	loom__text_free(&all);
}

/* Adds the name with which the hypervisor identifies itself in CPUID. On other processors, adds the product name from
 * the firmware. */
static void add_virtualisation(cJSON *facts)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned a, b, c, d;
	if (__get_cpuid(1, &a, &b, &c, &d)) {
		char text[13] = "";
		if (!(c >> 31)) {
			loom__json_add_text(facts, "virtualisation", "none");
			return;
		}
		__cpuid(0x40000000, a, b, c, d);
		memcpy(text, &b, 4);
		memcpy(text + 4, &c, 4);
		memcpy(text + 8, &d, 4);
		for (int i = 0; i < 12; i++)
			if (text[i] && (text[i] < ' ' || text[i] > '~'))
				text[i] = '?';
		loom__json_add_text(facts, "virtualisation", text);
		return;
	}
#endif
	char text[128], why[200];
	if (!loom__fact_read("/sys/hypervisor/type", text, sizeof(text), why) ||
	    !loom__fact_read("/sys/class/dmi/id/product_name", text, sizeof(text), why))
		loom__json_add_text(facts, "virtualisation", text);
	else
		loom__fact_none(facts, "virtualisation", "%s", why);
}

void loom__environment_machine(cJSON *facts)
{
	struct utsname u;
	add_cpuinfo(facts, "cpu_model", "model name");
	add_cpuinfo(facts, "microcode", "microcode");
	loom__fact_file(facts, "cores_online", CPU "online");
	loom__fact_file(facts, "cores_isolated", CPU "isolated");
	add_affinity(facts);
	add_quota(facts);
	loom__fact_file(facts, "numa_nodes", "/sys/devices/system/node/online");
	loom__fact_file(facts, "governor", CPU "cpu0/cpufreq/scaling_governor");
	add_boost(facts);
	loom__fact_file(facts, "smt", CPU "smt/control");
	add_chosen(facts, "huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled");
	add_aslr(facts);
	add_mitigations(facts);
	loom__fact_file(facts, "clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource");
	add_virtualisation(facts);
	if (uname(&u)) {
		loom__fact_none(facts, "kernel", "%s", strerror(errno));
		return;
	}
	loom__json_add_text(facts, "kernel", u.release);
	loom__json_add_text(facts, "machine", u.machine);
}
