/* SPDX-License-Identifier: Apache-2.0 */
/* Idle time of cores, from the kernel's cpuidle counters. These are exact, while /proc/stat samples at the timer tick. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "service.h"

#ifndef QOS_CPU_FOLDER /* a test defines another folder */
#define QOS_CPU_FOLDER "/sys/devices/system/cpu"
#endif

/* Opens a file of a core's idle state. Returns NULL if it cannot be opened, with the reason in errno. */
static FILE *open_state(uint32_t core, uint32_t state, const char *what)
{
	char path[128];
	FILE *f;
	snprintf(path, sizeof(path), QOS_CPU_FOLDER "/cpu%u/cpuidle/state%u/%s", core, state, what);
	do
		f = fopen(path, "re");
	while (!f && errno == EINTR);
	return f;
}

/* Returns 0 if the kernel does not offer a file that could not be opened, and -1 if this is a failure. */
static int absence(void)
{
	return errno == ENOENT || errno == EACCES ? 0 : -1;
}

/* Reads a counter. Returns 1; 0 if the kernel does not have it; or -1 and errno if it cannot be read. */
static int read_number(uint32_t core, uint32_t state, const char *what, uint64_t *value)
{
	unsigned long long n = 0;
	errno = 0;
	FILE *f = open_state(core, state, what);
	int got = f ? fscanf(f, "%llu", &n) : absence(), code = errno;
	if (f)
		fclose(f);
	*value = n;
	errno = code ? code : EIO;
	return got < 0 ? -1 : got;
}

/* Adds a core's times in idle states to *idle. Returns the number of these states. */
static uint32_t add_core(uint32_t core, struct qos_idle *idle)
{
	uint64_t us, times;
	uint32_t state = 0;
	int got = 1;
	for (; state < QOS_IDLE_STATES && (got = read_number(core, state, "time", &us)) > 0; state++) {
		idle->ns += us * 1000;
		idle->state_ns[state] += us * 1000;
		if ((got = read_number(core, state, "usage", &times)) < 0)
			break;
		idle->entries += times;
	}
	if (got < 0)
		idle->unreadable = errno;
	return state;
}

void qos_idle_read(const struct service *s, struct qos_idle *idle)
{
	*idle = (struct qos_idle){.states = QOS_IDLE_STATES};
	for (uint32_t v = 0; v < s->vectors; v++) {
		uint64_t before = idle->entries;
		uint32_t states = add_core(s->core[v], idle);
		idle->states = states < idle->states ? states : idle->states;
		idle->counted |= idle->entries != before;
	}
}

/* Writes an idle state's name into `name`, in the form for names of metrics: "C6", "haltpoll_idle". The name is the number
 * of the state if the kernel has no name. Returns 0 or errno. */
static int name_state(uint32_t core, uint32_t state, char name[32])
{
	FILE *f = open_state(core, state, "name");
	int lost = f || !absence() ? 0 : errno;
	snprintf(name, 32, "%u", state);
	errno = 0;
	if (f && !fgets(name, 32, f))
		lost = errno ? errno : EIO;
	if (f)
		fclose(f);
	name[strcspn(name, "\n")] = 0;
	for (char *c = name; *c; c++)
		*c = (char)(isalnum((unsigned char)*c) ? *c : '_');
	return lost;
}

#define METRIC(name, unit, value) s->host->metric(s->host, report, name, unit, LOOM_BETTER_NONE, (double)(value))

int qos_idle_report(const struct service *s, struct loom_report *report, double seconds)
{
	const struct qos_idle *was = &s->start_idle;
	double all = seconds * 1e9 * s->vectors;
	struct qos_idle idle;
	char state[32], name[64];
	qos_idle_read(s, &idle);
	if (idle.unreadable || was->unreadable)
		return idle.unreadable ? idle.unreadable : was->unreadable;
	if (!idle.counted || !was->counted)
		return 0;
	METRIC("idle_share", "", (double)(idle.ns - was->ns) / all);
	METRIC("idle_entries_per_s", "1/s", (double)(idle.entries - was->entries) / seconds);
	for (uint32_t i = 0; i < idle.states; i++) {
		double share = (double)(idle.state_ns[i] - was->state_ns[i]) / all;
		int code = name_state(s->core[0], i, state);
		if (code)
			return code;
		snprintf(name, sizeof(name), "idle_share:%s", state);
		METRIC(name, "", share);
		if (i + 1 == idle.states)
			METRIC("idle_share_deepest", "", share);
	}
	return 0;
}
