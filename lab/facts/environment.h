/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of the machine that affect a measurement and are not in its conf. This is an allow-list: no host name, no
 * user name, no path under a home, no environment variables. */
#ifndef LOOM_ENVIRONMENT_H
#define LOOM_ENVIRONMENT_H

#include "base/json.h"

#include "base/base.h"

/* Returns all facts as of now: values, or {"null_because": text}. NULL: memory ran out. */
cJSON *loom__environment(void);

/* Names of the facts that must agree for two results to be comparable, NULL-terminated. The other facts describe the
 * load and the version of gpuloom. */
extern const char *const loom__environment_fixed[];

/* Appends a fact as text: its value, or "not known (why)". */
void loom__environment_text(const cJSON *fact, struct loom__text *out);

/* The load of the machine between two captures, as shares of the time; NaN: not known. */
struct loom__activity {
	double seconds;
	double others;              /* CPU time of other programs, as a share of all cores */
	double steal;               /* CPU time that the hypervisor gave to other guests */
	double throttled;           /* periods in which the CPU quota was used up */
	double cpu, memory, io;     /* time in which a task waited for the resource: pressure stall information */
};
void loom__environment_activity(const cJSON *before, const cJSON *after, struct loom__activity *out);

/* Appends a description of each disturbance to `reasons`, and returns how many there are. */
size_t loom__environment_disturbed(const cJSON *before, const cJSON *after, cJSON *reasons);

/* ---- for the files that collect facts -------------------------------------------------------- */

/* Reads a short file without its last newline. Returns 0, or -1 with the reason in `why`. */
int loom__fact_read(const char *path, char *out, size_t room, char why[200]);
void loom__fact_none(cJSON *facts, const char *name, const char *fmt, ...) LOOM_PRINTF(3, 4);
/* Adds the content of a file as a fact. */
void loom__fact_file(cJSON *facts, const char *name, const char *path);

void loom__environment_machine(cJSON *facts); /* environment_machine.c */
void loom__environment_load(cJSON *facts);    /* environment_load.c */
/* Sets the seconds since boot, summed over all cores. Returns 0, or -1 with the reason in `why` unless NULL. */
int loom__cpu_seconds(double *busy, double *idle, double *steal, char why[200]);
/* Returns the CPU time of this process and its reaped children in seconds; NAN: unknown. */
double loom__own_cpu_seconds(void);

#endif
