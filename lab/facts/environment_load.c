/* SPDX-License-Identifier: Apache-2.0 */
/* Facts about the load of the machine, which change all the time. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "facts/environment.h"
#include "lib/machine.h"

static double seconds_of(const struct timeval *t)
{
	return (double)t->tv_sec + (double)t->tv_usec / 1e6;
}

/* Reads "some avg10=0.13 avg60=... total=12345", where `what` is cpu, memory or io. Adds two facts: the share of the
 * last ten seconds in which a task waited for the resource, and the seconds of waiting since boot. */
static void add_pressure(cJSON *facts, const char *what)
{
	char path[64], text[512], why[200], name[48];
	double avg10, avg60, avg300, total;
	snprintf(path, sizeof(path), "/proc/pressure/%s", what);
	if (loom__fact_read(path, text, sizeof(text), why))
		goto none;
	if (sscanf(text, "some avg10=%lf avg60=%lf avg300=%lf total=%lf", &avg10, &avg60, &avg300, &total) != 4) {
		snprintf(why, sizeof(why), "%s: cannot be parsed", path);
		goto none;
	}
	snprintf(name, sizeof(name), "pressure_%s_avg10", what);
	loom__json_add_number(facts, name, avg10 / 100);
	snprintf(name, sizeof(name), "pressure_%s_s", what);
	loom__json_add_number(facts, name, total / 1e6);
	return;
none:
	snprintf(name, sizeof(name), "pressure_%s_avg10", what);
	loom__fact_none(facts, name, "%s", why);
	snprintf(name, sizeof(name), "pressure_%s_s", what);
	loom__fact_none(facts, name, "%s", why);
}

/* The first line of /proc/stat has the clock ticks since boot that all cores together have spent in each state. */
int loom__cpu_seconds(double *busy, double *idle, double *steal, char why[200])
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, STATES };
	char text[512], own[200];
	double t[STATES], tick = (double)sysconf(_SC_CLK_TCK);
	why = why ? why : own;
	if (loom__fact_read("/proc/stat", text, sizeof(text), why))
		return -1;
	if (tick <= 0 || sscanf(text, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &t[USER], &t[NICE], &t[SYSTEM], &t[IDLE],
				&t[IOWAIT], &t[IRQ], &t[SOFTIRQ], &t[STEAL]) != STATES) {
		snprintf(why, 200, "/proc/stat: cannot be parsed");
		return -1;
	}
	*busy = (t[USER] + t[NICE] + t[SYSTEM] + t[IRQ] + t[SOFTIRQ]) / tick;
	*idle = (t[IDLE] + t[IOWAIT]) / tick;
	*steal = t[STEAL] / tick;
	return 0;
}

static void add_cpu_time(cJSON *facts)
{
	static const char *const name[] = {"cpu_busy_s", "cpu_idle_s", "cpu_steal_s"};
	char why[200];
	double seconds[3];
	int none = loom__cpu_seconds(&seconds[0], &seconds[1], &seconds[2], why);
	for (int i = 0; i < 3; i++)
		if (none)
			loom__fact_none(facts, name[i], "%s", why);
		else
			loom__json_add_number(facts, name[i], seconds[i]);
}

double loom__own_cpu_seconds(void)
{
	struct rusage self, children;
	if (getrusage(RUSAGE_SELF, &self) || getrusage(RUSAGE_CHILDREN, &children))
		return NAN;
	return seconds_of(&self.ru_utime) + seconds_of(&self.ru_stime) + seconds_of(&children.ru_utime) +
	       seconds_of(&children.ru_stime);
}

static void add_own_time(cJSON *facts)
{
	double own = loom__own_cpu_seconds();
	if (isnan(own))
		loom__fact_none(facts, "own_cpu_s", "getrusage failed");
	else
		loom__json_add_number(facts, "own_cpu_s", own);
}

/* Adds the number of scheduler periods in which the control group had used up its CPU quota. */
static void add_throttled(cJSON *facts)
{
	struct loom_machine_quota quota;
	if (loom_machine_quota(&quota))
		loom__fact_none(facts, "cpu_throttled", "no control group with the controller 'cpu'");
	else
		loom__json_add_number(facts, "cpu_throttled", (double)quota.throttled);
}

void loom__environment_load(cJSON *facts)
{
	double load;
	if (getloadavg(&load, 1) == 1)
		loom__json_add_number(facts, "load_1m", load);
	else
		loom__fact_none(facts, "load_1m", "not reported by the system");
	add_pressure(facts, "cpu");
	add_pressure(facts, "memory");
	add_pressure(facts, "io");
	add_cpu_time(facts);
	add_throttled(facts);
	add_own_time(facts);
	/* The time is captured last, so that the interval since the first capture contains the times of all other
	 * values. */
	loom__json_add_number(facts, "uptime_s", (double)loom__now_ns() / 1e9);
}

/* ---- between two captures ----------------------------------------------------------------------- */

static double moved(const cJSON *before, const cJSON *after, const char *name)
{
	const cJSON *a = cJSON_GetObjectItemCaseSensitive(before, name);
	const cJSON *b = cJSON_GetObjectItemCaseSensitive(after, name);
	if (!cJSON_IsNumber(a) || !cJSON_IsNumber(b) || !(b->valuedouble >= a->valuedouble))
		return NAN;
	return b->valuedouble - a->valuedouble;
}

void loom__environment_activity(const cJSON *before, const cJSON *after, struct loom__activity *out)
{
	double busy = moved(before, after, "cpu_busy_s"), idle = moved(before, after, "cpu_idle_s");
	double steal = moved(before, after, "cpu_steal_s"), own = moved(before, after, "own_cpu_s");
	double all = busy + idle + steal;
	out->seconds = moved(before, after, "uptime_s");
	int enough = all >= 0.5; /* the ticks of /proc/stat are too coarse for shares of less time */
	out->others = enough ? fmax(0, busy - own) / all : NAN;
	out->steal = enough ? steal / all : NAN;
	out->cpu = moved(before, after, "pressure_cpu_s") / out->seconds;
	out->memory = moved(before, after, "pressure_memory_s") / out->seconds;
	out->throttled = moved(before, after, "cpu_throttled");
	out->io = moved(before, after, "pressure_io_s") / out->seconds;
}

static size_t reason(cJSON *reasons, double share, double limit, const char *fmt)
{
	char text[200];
	if (!(share > limit))
		return 0;
	snprintf(text, sizeof(text), fmt, 100 * fmin(share, 1));
	loom__json_append_text(reasons, text);
	return 1;
}

size_t loom__environment_disturbed(const cJSON *before, const cJSON *after, cJSON *reasons)
{
	struct loom__activity a;
	loom__environment_activity(before, after, &a);
	size_t n = reason(reasons, a.others, 0.05, "other programs used %.0f %% of the CPU time");
	n += reason(reasons, a.steal, 0.005, "the hypervisor gave %.1f %% of the CPU time to others (steal)");
	n += reason(reasons, a.cpu, 0.10,
		    "tasks waited for a core during %.0f %% of the time (pressure stall information)");
	n += reason(reasons, a.memory, 0.01,
		    "tasks waited for memory during %.1f %% of the time (pressure stall information)");
	n += reason(reasons, a.io, 0.05,
		    "tasks waited for input or output during %.0f %% of the time (pressure stall "
		    "information)");
	if (a.throttled > 0) {
		char text[200];
		snprintf(text, sizeof(text),
			 "the control group's CPU quota was used up in %.0f period%s, in which no worker ran: use "
			 "fewer workers, or raise the limit",
			 a.throttled, a.throttled == 1 ? "" : "s");
		loom__json_append_text(reasons, text);
		n++;
	}
	return n;
}
